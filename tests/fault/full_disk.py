"""Fills a store until the file may not grow, then lets it grow again; exits 0 when all was kept.

    python -m tests.fault.full_disk DIRECTORY

The limit on a file's size (RLIMIT_FSIZE) makes every write beyond it fail as a full volume's do.
"""

import asyncio
import resource
import sys
from pathlib import Path

from hub.store import MapFull, Revision, Store
from tests.unit.store.given import create, draft, key, noise, open_store, update

LIMIT_BYTES = 1_500_000


async def fill(store: Store) -> list[Revision]:
    revisions: list[Revision] = []
    for n in range(10_000):
        try:
            revisions += await store.commit(create(key(f"n{n:05}"), noise(4000)))
        except MapFull:
            return revisions
    raise AssertionError("the file grew past its limit")


async def main() -> None:
    store = open_store(Path(sys.argv[1]))
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, hard))
    revisions = await fill(store)
    assert len(revisions) > 50
    for _ in range(20):
        try:
            await store.commit(create(key("more"), noise(300_000)))
        except MapFull:
            continue
        raise AssertionError("a write fitted into a full file")
    assert store.verify() == store.position
    entries = store.scan(b"").entries
    assert [entry.revision for entry in entries] == revisions
    renewed = store.renew(entries[0].key, draft("renewed"), entries[0].index, expect=revisions[0])
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    (late,) = await store.commit(create(key("late"), noise(300_000)))
    await store.commit(update(entries[1].key, "new", expect=revisions[1]))
    assert late > renewed > revisions[-1]
    assert store.verify() == store.position
    await store.close()
    store = open_store(Path(sys.argv[1]))
    assert store.verify().count == len(revisions) + 1
    await store.close()


if __name__ == "__main__":
    asyncio.run(main())
