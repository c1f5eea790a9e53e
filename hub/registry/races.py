"""Writes to one object that race each other.

Owns whose turn it is. A group commit lets one of them through; were all the others to compute again
at once, most would lose again, and a bound on that would be a 409 to somebody who named no
revision. kube-apiserver's GuaranteedUpdate (k8s.io/apiserver/pkg/storage/etcd3) knows no bound.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from weakref import WeakValueDictionary

from hub.store import Conflict

_PAUSE_S = 0.001
_T = TypeVar("_T")


class Races:
    """Repeats attempts until they win. For the event loop's thread."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()

    async def settle(self, key: tuple[str, ...], attempt: Callable[[], Awaitable[_T]]) -> _T:
        """Return what `attempt` returns once it raises no store Conflict any more.

        A Conflict must mean an outdated read: it is computed again from what is there then.
        Attempts that lost once go one after another.
        """
        try:
            return await attempt()
        except Conflict:
            pass
        async with self._locks.setdefault(key, asyncio.Lock()):
            while True:
                try:
                    return await attempt()
                except Conflict:
                    # a renewal is refused without waiting for the write that stands in its way
                    await asyncio.sleep(_PAUSE_S)
