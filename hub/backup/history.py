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
from hub.store import MapFull, Revision, Store

_log = structlog.get_logger("hub.backup")
LOOK_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class HistoryPolicy:
    """The bounds: entries younger than `keep_s` stay, up to `max_entries` of them."""

    keep_s: float = 3600.0
    max_entries: int = 200_000


@dataclass(frozen=True, slots=True)
class _Mark:
    at_s: float
    revision: Revision
    entries: int
    """Log entries up to here, counted from the start of this process."""


class History:
    """Cuts the log once a minute."""

    def __init__(
        self, store: Store, backup: Backup, clock: Clock, policy: HistoryPolicy | None = None
    ) -> None:
        self._store, self._backup, self._clock = store, backup, clock
        self._policy = policy or HistoryPolicy()
        self._marks: deque[_Mark] = deque()
        self._cut = 0

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
        now = self._clock.monotonic_s()
        length = self._store.stats().log_entries
        self._marks.append(_Mark(now, self._store.position.revision, self._cut + length))
        cut: _Mark | None = None
        while self._marks and self._is_past(self._marks[0], now, length):
            cut = self._marks.popleft()
        if cut is None:
            return None
        keep_after = cut.revision
        if length <= self._policy.max_entries:
            keep_after = min(keep_after, self._backup.shipped_revision())
        await self._store.compact_log(keep_after)
        self._cut += length - self._store.stats().log_entries
        return keep_after

    def _is_past(self, mark: _Mark, now: float, length: int) -> bool:
        is_old = mark.at_s <= now - self._policy.keep_s
        behind = self._cut + length - mark.entries
        return is_old or behind >= self._policy.max_entries
