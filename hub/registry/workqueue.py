"""Work queues and the loop that drains them.

Owns *when* a key is reconciled: once for any number of changes, never twice at a time, again after
a failure with a growing delay. Mirrors client-go/util/workqueue. What reconciling means is each
controller's.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import structlog

from hub.meta.errors import ApiError

_log = structlog.get_logger("hub.controllers")
Reconcile: TypeAlias = Callable[[str], Awaitable[float | None]]
"""Brings the world of one key into order; returns after how many seconds to look again, or None."""

_FIRST_RETRY_S, _LAST_RETRY_S = 0.05, 60.0


class Queue:
    """Keys that want attention. For the event loop's thread."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()
        self._wanted: set[str] = set()
        self._active: set[str] = set()
        self._ready = asyncio.Event()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._failures: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, key: str) -> None:
        """Ask for `key` to be reconciled; a key already waiting is not queued twice."""
        if key in self._wanted:
            return
        self._wanted.add(key)
        if key not in self._active:
            self._waiting.append(key)
            self._ready.set()

    def add_after(self, key: str, delay_s: float) -> None:
        """Ask for `key` later; the earliest of several such wishes counts."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        when = loop.time() + max(delay_s, 0.0)
        if timer is not None and not timer.cancelled() and timer.when() <= when:
            return
        if timer is not None:
            timer.cancel()
        self._timers[key] = loop.call_at(when, self._fire, key)

    def _fire(self, key: str) -> None:
        self._timers.pop(key, None)
        self.add(key)

    async def take(self) -> str:
        """Return the next key; it is active until `done`."""
        while not self._waiting:
            self._ready.clear()
            await self._ready.wait()
        key = self._waiting.popleft()
        self._wanted.discard(key)
        self._active.add(key)
        return key

    def done(self, key: str) -> None:
        """Give `key` back; if it was asked for meanwhile it waits again."""
        self._active.discard(key)
        if key in self._wanted:
            self._waiting.append(key)
            self._ready.set()

    def retry(self, key: str) -> float:
        """Ask for a key that failed, later each time; return the delay in seconds."""
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        delay = min(_FIRST_RETRY_S * float(1 << min(count, 20)), _LAST_RETRY_S)
        self.add_after(key, delay)
        return delay

    def forget(self, key: str) -> None:
        """Reset the delay of `key` after a success."""
        self._failures.pop(key, None)

    def close(self) -> None:
        """Drop all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()


async def drain(name: str, queue: Queue, reconcile: Reconcile, *, workers: int = 1) -> None:
    """Reconcile keys until cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(_work(name, queue, reconcile))
    finally:
        queue.close()


async def _work(name: str, queue: Queue, reconcile: Reconcile) -> None:
    while True:
        key = await queue.take()
        try:
            again = await reconcile(key)
        except Exception as error:  # noqa: BLE001  a task's top level: one key must not stop the rest
            delay = queue.retry(key)
            if is_refusal(error):
                # conflicts and races are daily bread: another look settles them
                _log.debug("reconcile_retried", controller=name, key=key, problem=str(error))
            else:
                _log.exception("reconcile_failed", controller=name, key=key, retry_in_s=delay)
        else:
            queue.forget(key)
            if again is not None:
                queue.add_after(key, again)
        finally:
            queue.done(key)
        # a key that needs nothing awaits nothing: without a breath a whole fleet is one turn
        await asyncio.sleep(0)


def is_refusal(error: Exception) -> bool:
    """Whether nothing but API errors went wrong, alone or together in a task group."""
    if isinstance(error, ExceptionGroup):
        return error.split(ApiError)[1] is None
    return isinstance(error, ApiError)
