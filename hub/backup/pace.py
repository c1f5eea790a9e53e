"""When the next segment is due, and how long to wait after one that failed.

Owns the timing of shipping and nothing else: a segment 100 ms after the last change and at most a
second after the first; at once for what must not be lost, and for 1,000 changed objects or 1 MiB of
their values; a heartbeat when nothing happens, so that a hub whose prefix was taken finds out;
growing pauses while the bucket does not answer.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from hub.clock import Clock
from hub.store import Key


@dataclass(frozen=True, slots=True)
class PacePolicy:
    """The numbers: times, and how much may wait for a segment."""

    debounce_s: float = 0.1
    max_wait_s: float = 1.0
    heartbeat_s: float = 30.0
    first_retry_s: float = 0.5
    last_retry_s: float = 30.0
    max_objects: int = 1000
    max_bytes: int = 1 << 20
    """Of the values, as JSON."""


class Pace:
    """Says when to ship; all of it belongs to the event loop's thread."""

    def __init__(self, clock: Clock, policy: PacePolicy | None = None) -> None:
        self._clock = clock
        self._policy = policy or PacePolicy()
        self._dirty, self._urgent = asyncio.Event(), asyncio.Event()
        self._first_s = self._last_s = 0.0
        self._retry_s = self._policy.first_retry_s
        self._sizes: dict[Key, int] = {}
        self._bytes = 0

    def changed(self) -> None:
        """Note a change that is to be shipped."""
        self._last_s = self._clock.monotonic_s()
        if not self._dirty.is_set():
            self._first_s = self._last_s
            self._dirty.set()

    def gathered(self, sizes: Iterable[tuple[Key, int]]) -> None:
        """Note changed objects with the bytes of their values; many of them are due at once."""
        self.changed()
        if self._urgent.is_set():
            return
        for key, size in sizes:
            self._bytes += size - self._sizes.get(key, 0)
            self._sizes[key] = size
        is_many = len(self._sizes) >= self._policy.max_objects
        if is_many or self._bytes >= self._policy.max_bytes:
            self._urgent.set()

    def hurry(self) -> None:
        """Note a change that is to be shipped at once."""
        self.changed()
        self._urgent.set()

    def begin(self) -> None:
        """Forget the changes noted so far: they are being shipped."""
        self._dirty.clear()
        self._urgent.clear()
        self._sizes.clear()
        self._bytes = 0

    async def wait(self) -> None:
        """Return when a segment is due, or the heartbeat."""
        try:
            async with asyncio.timeout(self._policy.heartbeat_s):
                await self._dirty.wait()
        except TimeoutError:
            return
        while (rest_s := self._rest_s()) > 0:
            try:
                async with asyncio.timeout(rest_s):
                    await self._urgent.wait()
            except TimeoutError:
                continue

    def _rest_s(self) -> float:
        """Return how long the changes noted may still wait for others to join them."""
        if self._urgent.is_set():
            return 0.0
        policy = self._policy
        due_s = min(self._last_s + policy.debounce_s, self._first_s + policy.max_wait_s)
        return due_s - self._clock.monotonic_s()

    def succeeded(self) -> None:
        """Note that the bucket answers: the next failure is the first again."""
        self._retry_s = self._policy.first_retry_s

    def failed(self) -> float:
        """Note an attempt that will be repeated; return how long to wait before."""
        self.changed()
        pause_s, self._retry_s = self._retry_s, min(self._retry_s * 2, self._policy.last_retry_s)
        return pause_s
