"""Brings objects in line one request at a time, as a controller's work queue does.

Owns which names are being worked on. After a successful request the object is left alone until the
watch shows something newer than what the request was based on, so that nothing is sent twice.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext

from hub.meta import Obj
from tools.simulate.backoff import Backoff
from tools.simulate.frame import MalformedError
from tools.simulate.session import HubAwayError, RefusedError

Act = Callable[[Obj], Awaitable[bool]]
"""Send what the object calls for; returns False when it calls for nothing."""


class Upkeep:
    """Runs `act` on objects that changed, never twice at once for one name.

    `limit` bounds how many are worked on at once, over all names.
    """

    def __init__(
        self,
        group: asyncio.TaskGroup,
        objects: Callable[[], Mapping[str, Obj]],
        act: Act,
        *,
        rng: random.Random,
        limit: AbstractAsyncContextManager[None] | None = None,
    ) -> None:
        self._group, self._objects, self._act, self._rng = group, objects, act, rng
        self._limit = limit or nullcontext()
        self._running: set[str] = set()
        self._based_on: dict[str, str] = {}

    def wake(self, name: str) -> None:
        """Look at `name` again."""
        if name not in self._running:
            self._running.add(name)
            self._group.create_task(self._keep(name))

    async def _keep(self, name: str) -> None:
        backoff = Backoff(self._rng)
        try:
            while (delay_s := await self._step(name, backoff)) is not None:
                if delay_s:
                    await asyncio.sleep(delay_s)
        finally:
            self._running.discard(name)

    async def _step(self, name: str, backoff: Backoff) -> float | None:
        """Return how long to wait before looking again, None when there is nothing to do."""
        async with self._limit:
            obj = self._fresh(name)  # only now: the wait may have been long
            if obj is None:
                return None
            try:
                has_acted = await self._act(obj)
            except RefusedError as error:
                is_outdated = error.status == 409 and self._has_changed(name, obj)
                return 0.0 if is_outdated else backoff.next_s(time.monotonic())
            except (HubAwayError, MalformedError):
                return backoff.next_s(time.monotonic())
        if has_acted:
            self._based_on[name] = _revision(obj)
        # `wake` leaves a name that is being worked on alone, so look again before leaving it
        return 0.0 if has_acted or self._has_changed(name, obj) else None

    def _fresh(self, name: str) -> Obj | None:
        """Return the object unless a request based on just this state has already been made."""
        obj = self._objects().get(name)
        if obj is None:
            self._based_on.pop(name, None)
            return None
        return None if self._based_on.get(name) == _revision(obj) else obj

    def _has_changed(self, name: str, obj: Obj) -> bool:
        now = self._objects().get(name)
        return now is not None and _revision(now) != _revision(obj)


def _revision(obj: Obj) -> str:
    revision: str = obj["metadata"]["resourceVersion"]
    return revision
