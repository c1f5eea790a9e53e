"""How far back the log reaches: long enough for watches to resume, never past what is not shipped.

Owns the bounds of the log. A watch whose revision is older gets 410 and lists again; a delta whose
start is gone becomes a full, so the log is cut even while the bucket is away once it is too long.
"""

import asyncio
from collections import deque
from dataclasses import dataclass

import structlog

from hub.backup.runner import Backup
from hub.clock import Clock
from hub.store import MapFull, Revision, Stats, Store

_log = structlog.get_logger("hub.backup")
LOOK_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class HistoryPolicy:
    """The bounds: entries younger than `keep_s` stay, up to `max_entries` or `max_bytes` of them.

    `max_bytes` keeps a few clients that write much and often from filling the volume.
    """

    keep_s: float = 3600.0
    max_entries: int = 200_000
    max_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class _Mark:
    at_s: float
    revision: Revision


class History:
    """Cuts the log once a minute."""

    def __init__(
        self, store: Store, backup: Backup, clock: Clock, policy: HistoryPolicy | None = None
    ) -> None:
        self._store, self._backup, self._clock = store, backup, clock
        self._policy = policy or HistoryPolicy()
        self._marks: deque[_Mark] = deque()
        self._old = Revision(0)
        """Everything up to here is older than the policy keeps."""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.look()
            except MapFull as error:
                _log.warning("log_not_cut", problem=str(error))

    async def look(self) -> Revision | None:
        """Note where the log stands and cut what is too old or too much; return the new start."""
        now, stats = self._clock.monotonic_s(), self._store.stats()
        self._marks.append(_Mark(now, self._store.position.revision))
        while self._marks and self._marks[0].at_s <= now - self._policy.keep_s:
            self._old = self._marks.popleft().revision
        keep_after = min(self._old, self._backup.shipped_revision())
        most = self._most(stats)
        if stats.log_entries > most:
            keep_after = max(keep_after, self._store.log_revision(keeping=most))
        if keep_after <= stats.log_after:
            return None
        await self._store.compact_log(keep_after)
        return keep_after

    def _most(self, stats: Stats) -> int:
        """Return how many entries may stay: as many as are allowed, fewer when they are large."""
        if stats.log_bytes <= self._policy.max_bytes:
            return self._policy.max_entries
        # half of the bound, so that not every look has something to cut
        by_size = stats.log_entries * (self._policy.max_bytes // 2) // stats.log_bytes
        return min(self._policy.max_entries, by_size)
