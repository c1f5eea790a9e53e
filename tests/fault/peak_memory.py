"""A process that takes a full, verifies or restores one, and says how much memory that took.

``python -m tests.fault.peak_memory WHAT PLACE``: PLACE has a store in ``hub`` and, after ``full``,
the prefix in ``bucket``. Prints the growth of anonymous memory in bytes: pages of the mapped file
are the kernel's, which takes them back when it needs them.
"""

import asyncio
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from hub.clock import SystemClock
from hub.store import Draft, Index, Op, Store, Write, encode_key
from snapshot.remote import open_remote
from snapshot.restore import restore
from snapshot.verify import verify
from tests.unit.snapshot.hub import serve
from tests.unit.snapshot.support import KEY

COUNT, VALUE_BYTES = 2_048, 64 << 10
STORE_BYTES = COUNT * VALUE_BYTES
"""What the documents take; compressed to half, once in the state and once in the log, the file is
as large.
"""
_BATCH = 64


def fill(place: Path) -> None:
    """Make the store."""
    asyncio.run(_fill(place / "hub" / "store"))


async def _fill(directory: Path) -> None:
    clock = SystemClock()
    store = Store.open(directory, hub_key=KEY, clock=clock)
    for first in range(0, COUNT, _BATCH):
        await store.commit(*(_write(number, clock) for number in range(first, first + _BATCH)))
    await store.close()


def _write(number: int, clock: SystemClock) -> Write:
    noise = clock.token(VALUE_BYTES // 2).hex()
    return Write(
        op=Op.CREATE,
        key=encode_key("configmaps", "default", f"m-{number}"),
        draft=Draft(b'{"metadata":{"resourceVersion":"', f'"}},"x":"{noise}"}}'.encode()),
        index=Index(b""),
    )


def take_full(place: Path) -> None:
    """Ship the store to an empty prefix."""
    asyncio.run(_ship(place))


async def _ship(place: Path) -> None:
    async with serve(place / "hub", open_remote((place / "bucket").as_uri())) as hub:
        shipped = hub.ship()
        assert shipped is not None
        assert shipped.level == "full"
        assert shipped.size > STORE_BYTES // 2


def take_back(place: Path) -> None:
    """Restore the newest state."""
    remote = open_remote((place / "bucket").as_uri())
    assert restore(remote, KEY, place / "new", clock=SystemClock()).objects == COUNT


def prove(place: Path) -> None:
    """Verify the prefix, the state built beside it included."""
    remote = open_remote((place / "bucket").as_uri())
    assert verify(remote, KEY, clock=SystemClock(), scratch=place, deep=True).objects == COUNT


WHAT: dict[str, Callable[[Path], None]] = {
    "full": take_full,
    "restore": take_back,
    "verify": prove,
}


class Watcher(threading.Thread):
    """Notes the largest anonymous memory, a few hundred times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.first = self.most = anonymous_bytes()
        self._end = threading.Event()

    def run(self) -> None:
        while not self._end.wait(0.002):
            self.most = max(self.most, anonymous_bytes())

    def grown(self) -> int:
        self._end.set()
        self.join()
        return self.most - self.first


def anonymous_bytes() -> int:
    """The memory of this process that is not the content of a file."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10


def main(what: str, place: str) -> None:
    watcher = Watcher()
    watcher.start()
    WHAT[what](Path(place))
    print(watcher.grown())


if __name__ == "__main__":
    main(*sys.argv[1:])
