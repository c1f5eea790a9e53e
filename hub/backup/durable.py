"""Those who wait for a revision to be in the bucket.

Owns the waiting and nothing else: who ships, and when, is the runner's. Many waiters share one
segment; one that gives up (its future is cancelled) is forgotten. For the event loop's thread.
"""

import asyncio

from hub.store import Revision
from snapshot.errors import SnapshotError


class DurableWaiters:
    """The waiters, each with the revision that it waits for."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], Revision] = {}
        self._end: SnapshotError | None = None

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def add(self, revision: Revision) -> asyncio.Future[None]:
        """Return what is done once the bucket holds `revision`, or fails with what ended it."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._end is not None:
            future.set_exception(self._end)
            return future
        self._waiting[future] = revision
        future.add_done_callback(self._forget)
        return future

    def shipped(self, revision: Revision) -> None:
        """Wake those whose revision is in the bucket, which holds everything up to this one."""
        for future, wanted in self._waiting.items():
            if wanted <= revision and not future.done():
                future.set_result(None)

    def failed(self, error: SnapshotError) -> None:
        """Wake everybody with what ends shipping for good; whoever comes later gets it as well."""
        self._end = self._end or error
        for future in self._waiting:
            if not future.done():
                future.set_exception(self._end)

    def close(self) -> None:
        """Wake everybody: the hub stops, and ships what is left when nobody waits any more."""
        self.failed(SnapshotError("the hub is stopping", op="ship"))

    def _forget(self, future: asyncio.Future[None]) -> None:
        self._waiting.pop(future, None)
