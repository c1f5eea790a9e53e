"""How long to wait after a failure: client-go's exponential back-off with jitter.

Mirrors the reflector's manager (k8s.io/client-go/tools/cache/reflector.go): 0.8 s doubling to 30 s,
each stretched by up to its own length, and forgotten after two quiet minutes.
"""

import random
from dataclasses import dataclass

FACTOR = 2.0


@dataclass(slots=True)
class Backoff:
    """The delays of one retrying task; `random` draws the jitter."""

    random: random.Random
    base_s: float = 0.8
    cap_s: float = 30.0
    reset_after_s: float = 120.0
    _step_s: float = 0.0
    _last_at_s: float = 0.0

    def next_s(self, now_s: float) -> float:
        """Return the delay before the next try, given a monotonic `now_s`."""
        if not self._step_s or now_s - self._last_at_s > self.reset_after_s:
            self._step_s = self.base_s
        delay_s = self._step_s * (1.0 + self.random.random())
        self._step_s = min(self._step_s * FACTOR, self.cap_s)
        self._last_at_s = now_s + delay_s
        return delay_s

    def reset(self) -> None:
        """Start again from the shortest delay."""
        self._step_s = 0.0
