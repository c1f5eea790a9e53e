"""A loop on which an hour passes at once: waiting moves the time, nothing else does."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import TypeVar

from tests.unit.snapshot.support import StillClock

T = TypeVar("T")


class _Jump(selectors.SelectSelector):
    """Where a loop would wait, this moves its time."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:  # type: ignore[explicit-any]  # typeshed's SelectorKey has an Any
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "nothing is left that could happen"
            self.now_s += max(timeout, 0.0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now_s


class LoopClock(StillClock):
    """The loop's time as the clock's."""

    def monotonic_s(self) -> float:
        return asyncio.get_running_loop().time()


def run(work: Coroutine[object, object, T]) -> T:
    """Run `work` in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


def now_s() -> float:
    """Return the virtual seconds since the loop began."""
    return asyncio.get_running_loop().time() - 1000.0
