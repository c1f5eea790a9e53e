"""Makes the golden files of the snapshot format: ``python -m tests.unit.snapshot.golden DIR``.

The files of a released format are never made again: a new format gets a new directory beside the
old one, and every release goes on reading all of them. Each holds a prefix as a hub left it, the
hub key (a test's, worth nothing) and what is expected after a restore.

``format-1`` (made by the release that wrote it): a full, two deltas, released HEAD; the contents.
``format-2`` (made by this module): two epochs. The first ships a base full, five deltas, a merge of
two of them, a checkpoint and two more deltas; the second goes on from a point before those two,
which it leaves behind as a branch. There is a pin. Expected: every position, and its contents.
"""

import asyncio
import base64
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TypedDict

from hub.store import Store, create_hub_key
from snapshot.merging import write_merge
from snapshot.pins import put_pin
from snapshot.points import AtPosition, Point
from snapshot.remote import open_remote
from snapshot.restore import restore
from snapshot.ship import ship_full
from tests.unit.snapshot.hub import TestHub, serve
from tests.unit.snapshot.support import KEY, StillClock, contents


class Expected(TypedDict):
    """A position, and the state there."""

    seq: int
    revision: int
    time_ms: int
    objects: int
    state_hash: str
    contents: dict[str, str]


def render(found: dict[bytes, bytes]) -> dict[str, str]:
    """Return contents as they stand in ``expected.json``."""
    return {base64.b64encode(key).decode(): value.decode() for key, value in sorted(found.items())}


def contents_of(directory: Path) -> dict[bytes, bytes]:
    """Return everything in a restored directory."""
    store = Store.open(directory / "store", hub_key=KEY, clock=StillClock(), can_create=False)
    try:
        return {bytes(key): value for key, value in contents(store).items()}
    finally:
        store.close_offline()


async def ship(hub: TestHub) -> Expected:
    """Ship what changed a second after the last time, and note what the position holds."""
    clock = hub.chain.clock
    assert isinstance(clock, StillClock)
    clock.pass_s(1)
    assert hub.ship() is not None
    head = hub.chain.head
    return Expected(
        seq=head.seq,
        revision=head.rev,
        time_ms=head.segments[-1].time_ms,
        objects=head.objects,
        state_hash=head.state_hash,
        contents=render(hub.contents()),
    )


def merge(hub: TestHub) -> None:
    """Merge the two oldest deltas of the tail."""
    with tempfile.TemporaryDirectory() as name:
        chain = hub.chain
        segment = write_merge(
            chain.remote, KEY, chain.head.tail[:2], Path(name), epoch=1, token=chain.clock.token
        )
        chain.commit_merge(chain.put_segment(segment, level="d1"))


async def first_epoch(hub: TestHub) -> list[Expected]:
    """Ship positions 1 to 8, with a merge, a checkpoint at 6, and a pin at 4."""
    await hub.put("a", "b", "c", "secret-1", "k" * 600, text="golden")
    made = [await ship(hub)]
    await hub.put("a", "d", text="changed")
    await hub.drop("b")
    made.append(await ship(hub))
    await hub.put("secret-1", "secret-2", text="changed twice")
    made.append(await ship(hub))
    merge(hub)
    for name in ("e", "b", "f"):
        await hub.put(name, text=f"with {name}")
        made.append(await ship(hub))
    pinned = Point(4, made[3]["revision"], made[3]["time_ms"])
    put_pin(hub.chain.remote, "before-f", pinned, clock=hub.chain.clock, note="golden")
    assert ship_full(hub.store, hub.chain, hub.spool) is not None
    for name in ("left", "behind"):
        await hub.put(name, text="on a branch")
        made.append(await ship(hub))
    hub.chain.release()
    return made


async def second_epoch(hub: TestHub) -> list[Expected]:
    """Ship positions 9 and 10, after 6."""
    clock = hub.chain.clock
    assert isinstance(clock, StillClock)
    clock.pass_s(60)
    await hub.put("g", "secret-2", text="another history")
    made = [await ship(hub)]
    await hub.drop("a")
    made.append(await ship(hub))
    hub.chain.release()
    return made


async def make(directory: Path) -> None:
    """Write a prefix of format 2, its key and what is expected of it."""
    remote = open_remote((directory / "prefix").absolute().as_uri())
    create_hub_key(directory / "hub-key.txt", token=lambda _: KEY.secret)
    with tempfile.TemporaryDirectory() as data:
        async with serve(Path(data) / "one", remote, seed="golden 1") as hub:
            made = await first_epoch(hub)
        two, clock = Path(data) / "two", StillClock("golden restore")
        await asyncio.to_thread(restore, remote, KEY, two, clock=clock, to=AtPosition(6))
        async with serve(two, remote, seed="golden 2") as hub:
            made += await second_epoch(hub)
    remote.close()
    shutil.rmtree(directory / "prefix" / ".tmp", ignore_errors=True)
    (directory / "prefix" / ".lock").unlink(missing_ok=True)
    text = json.dumps({"points": made}, indent=1)
    (directory / "expected.json").write_text(text + "\n")


if __name__ == "__main__":
    asyncio.run(make(Path(sys.argv[1])))
