"""A token bucket: how often something may happen."""

from hub.clock import Clock


class Bucket:
    """Holds `burst` tokens at most, and gets `per_s` back a second."""

    __slots__ = ("_burst", "_clock", "_per_s", "_refilled_at_s", "_tokens")

    def __init__(self, clock: Clock, burst: int, per_s: int) -> None:
        self._clock, self._burst, self._per_s = clock, burst, per_s
        self._tokens = float(burst)
        self._refilled_at_s = clock.monotonic_s()

    def take(self) -> bool:
        """Take a token; False when there is none."""
        now_s = self._clock.monotonic_s()
        refill = (now_s - self._refilled_at_s) * self._per_s
        self._tokens = min(self._burst, self._tokens + refill) - 1
        self._refilled_at_s = now_s
        return self._tokens >= 0
