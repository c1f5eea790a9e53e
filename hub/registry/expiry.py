"""Events have a time to live: an hour, as kube-apiserver's default."""

import asyncio
from collections import deque

import structlog

from hub.clock import Clock
from hub.meta.codec.json import decode, draft
from hub.registry.engine import Engine
from hub.registry.kind import Kind
from hub.store import Draft, MapFull, Revision
from hub.store import prefix as key_prefix

_log = structlog.get_logger("hub.registry")
TTL_S = 3600.0
_SWEEP_S = 60.0


class EventExpiry:
    """Deletes events that were last written more than `TTL_S` ago.

    Judged by revisions of this process's lifetime: after a restart the clock of every event begins
    anew, so that an event may live up to twice as long, never shorter.
    """

    def __init__(self, engine: Engine, kind: Kind, clock: Clock) -> None:
        self._engine, self._kind, self._clock = engine, kind, clock
        self._marks = deque([(clock.monotonic_s(), engine.store.revision)])
        self._horizon = Revision(0)
        """Everything up to it is too old."""

    async def run(self) -> None:
        """Sweep until cancelled; a full disk keeps the events until there is room."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            try:
                await self.look()
            except* MapFull as errors:
                _log.warning("events_not_swept", problem=str(errors.exceptions[0]))

    async def look(self) -> int:
        """Note where the store stands and delete what is too old; return how much.

        :raises ExceptionGroup: of MapFull
        """
        now, store = self._clock.monotonic_s(), self._engine.store
        self._marks.append((now, store.revision))
        while self._marks and self._marks[0][0] <= now - TTL_S:
            self._horizon = self._marks.popleft()[1]
        if not self._horizon:
            return 0
        prefix, above = key_prefix(self._kind.id, None), Revision(self._horizon + 1)
        return await store.sweep(prefix, older_than=above, redraft=_redraft)


def _redraft(document: bytes) -> Draft:
    head, tail = draft(decode(document))
    return Draft(head, tail)
