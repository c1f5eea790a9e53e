"""Writes to a store flat out and says on stdout what was acknowledged, until it is killed.

    python -m tests.fault.kill_writer DIRECTORY SEED

Lines: ``opening``, ``ready REVISION``, then ``OPERATION NAME NUMBER REVISION`` an acknowledgement;
an object's text is its number, rising with every write to it. A line is out of the process before
the next write to that object begins.
"""

import asyncio
import os
import random
import sys
from pathlib import Path

from hub.clock import SystemClock
from hub.store import Draft, Index, Key, Op, Revision, Store, Write, encode_key, load_hub_key

TASKS = 24
KEEP_ENTRIES = 3000
PADDING = "abcdefgh" * 100


def say(*words: object) -> None:
    """Write a line past every buffer of ours."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def draft(number: int, size: int) -> Draft:
    return Draft(b'{"rv":"', f'","number":{number},"padding":"{PADDING[:size]}"}}'.encode())


class Writer:
    """Creates, updates, renews and deletes one object; every sixth is volatile and only grows."""

    def __init__(self, store: Store, seed: int, number: int) -> None:
        self.store = store
        self.random = random.Random(seed * 1000 + number)
        self.name = f"{number:03}"
        self.is_volatile = number % 6 == 0
        resource = "events" if self.is_volatile else "widgets"
        self.key = encode_key(resource, "one", self.name)
        self.number = 0

    async def run(self) -> None:
        """Go on where the last process was killed."""
        stored = self.store.get(self.key)
        revision = stored.revision if stored else None
        self.number = int(self.store.meta_get(self.name) or b"0") + 1_000_000
        await self.store.meta_put({self.name: b"%d" % self.number})
        while True:
            self.number += 1
            revision = await self.step(revision)

    async def step(self, revision: Revision | None) -> Revision | None:
        body = draft(self.number, self.random.randrange(800))
        if revision is None:
            return await self.commit(Op.CREATE, body, None)
        if not self.is_volatile and self.random.random() < 0.1:
            await self.commit(Op.DELETE, body, revision)
            return None
        if not self.is_volatile and self.random.random() < 0.3:
            return self.store.renew(self.key, body, Index(b""), expect=revision)
        return await self.commit(Op.UPDATE, body, revision)

    async def commit(self, op: Op, body: Draft, expect: Revision | None) -> Revision:
        write = Write(
            op,
            Key(self.key),
            body,
            Index(b""),
            expect,
            sealed=int(self.name) % 2 == 0,
            volatile=self.is_volatile,
        )
        (revision,) = await self.store.commit(write)
        say(op.name, self.name, self.number, revision)
        return revision


async def housekeeping(store: Store) -> None:
    """Flush and compact all the time."""
    while True:
        await store.flush()
        await store.compact_log(store.log_revision(keeping=KEEP_ENTRIES))


async def main() -> None:
    path, seed = Path(sys.argv[1]), int(sys.argv[2])
    say("opening")
    key = load_hub_key(path.with_name(path.name + ".key"), outside=path)
    store = Store.open(path, hub_key=key, clock=SystemClock(), map_bytes=1 << 30)
    say("ready", store.revision)
    async with asyncio.TaskGroup() as group:
        for number in range(TASKS):
            group.create_task(Writer(store, seed, number).run())
        group.create_task(housekeeping(store))


if __name__ == "__main__":
    asyncio.run(main())
