"""The first minutes after a restore: what destroys waits until the fleet is back, or for a grace.

What an older state does not know must not be destroyed for that. So after a restore controllers
that delete wait until `SHARE` per cent of the clusters that the state knows have renewed their
Lease, or until the grace period is over. Returning clusters are counted after every start; only a
restore is held.
"""

import asyncio
from collections.abc import Iterable

import structlog

from hub.clock import Clock

_log = structlog.get_logger("hub.registry")
SHARE = 95
MILESTONES = (50, SHARE, 100)
"""Per cent of the clusters whose return is timed."""

NOT_HELD, GRACE, RETURNED = "not a restore", "grace period over", f"{SHARE} % returned"


class Hold:
    """Tells when what destroys may begin, and how the fleet comes back.

    `grace_s`: the longest wait from now on, 0 for a start that is not held.
    """

    def __init__(self, clock: Clock, *, grace_s: float = 0.0) -> None:
        self._clock = clock
        self._began_s = clock.monotonic_s()
        self._until_s = self._began_s + grace_s
        self._over = asyncio.Event()
        self._awaited: set[str] = set()
        self.expected = 0
        """Clusters that the state knew as accepted and not going, those that left since aside."""
        self.returned = 0
        """How many of them have renewed their Lease since the start."""
        self.seconds: dict[int, float | None] = dict.fromkeys(MILESTONES)
        """From the start until so many per cent had returned, None before that."""
        self.reason = ""
        """Why the hold ended, "" while it lasts."""
        if grace_s <= 0:
            self._end(NOT_HELD)

    @property
    def is_over(self) -> bool:
        """Whether what destroys may go on."""
        if not self.reason and not self.grace_left_s:
            self._end(GRACE)
        return bool(self.reason)

    @property
    def grace_left_s(self) -> float:
        """Return what is left of the grace period, whoever has returned."""
        return max(self._until_s - self._clock.monotonic_s(), 0.0)

    @property
    def awaited(self) -> frozenset[str]:
        """Which clusters have not returned yet."""
        return frozenset(self._awaited)

    async def wait(self) -> None:
        """Wait until the hold is over."""
        if self.reason:
            return
        try:
            async with asyncio.timeout(self.grace_left_s):
                await self._over.wait()
        except TimeoutError:
            self._end(GRACE)

    # ---------------------------------------------------------------- who comes back

    def expect(self, clusters: Iterable[str]) -> None:
        """Begin to count: these are expected back."""
        self._awaited = set(clusters)
        self.expected = len(self._awaited)
        if not self.reason:
            _log.info("held", grace_s=self.grace_left_s, expected=self.expected)

    def has_awaited(self, cluster: str) -> bool:
        """Whether a cluster was still awaited; it has returned now."""
        if cluster not in self._awaited:
            return False
        self._awaited.discard(cluster)
        self.returned += 1
        self._count()
        return True

    def forget(self, cluster: str) -> None:
        """Await a cluster no longer that was deleted or is not accepted any more."""
        if cluster in self._awaited:
            self._awaited.discard(cluster)
            self.expected -= 1
            self._count()

    def _count(self) -> None:
        """Time what has been reached; without any cluster nothing ever is."""
        if not self.expected:
            return
        after_s = self._clock.monotonic_s() - self._began_s
        for share in MILESTONES:
            if self.seconds[share] is None and self.returned * 100 >= self.expected * share:
                self.seconds[share] = after_s
        if self.seconds[SHARE] is not None and not self.reason:
            self._end(RETURNED)

    def _end(self, reason: str) -> None:
        if self.reason:
            return
        self.reason = reason
        self._over.set()
        if reason != NOT_HELD:
            _log.info("hold_ended", reason=reason, returned=self.returned, expected=self.expected)
