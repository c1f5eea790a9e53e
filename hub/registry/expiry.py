"""Events have a time to live: an hour, as kube-apiserver's default."""

import asyncio

from hub.clock import Clock
from hub.meta.codec.json import decode, draft
from hub.registry.engine import Engine
from hub.registry.kind import Kind
from hub.store import Draft, Revision
from hub.store import prefix as key_prefix

TTL_S = 3600.0
_SWEEP_S = 60.0


class EventExpiry:
    """Deletes events that were last written more than `TTL_S` ago.

    Judged by revisions of this process's lifetime: after a restart the clock of every event begins
    anew, so that an event may live up to twice as long, never shorter.
    """

    def __init__(self, engine: Engine, kind: Kind, clock: Clock) -> None:
        self._engine, self._kind, self._clock = engine, kind, clock

    async def run(self) -> None:
        """Sweep until cancelled."""
        marks: list[tuple[float, Revision]] = [
            (self._clock.monotonic_s(), self._engine.store.revision)
        ]
        while True:
            await asyncio.sleep(_SWEEP_S)
            now = self._clock.monotonic_s()
            marks.append((now, self._engine.store.revision))
            horizon = Revision(0)
            while marks and marks[0][0] <= now - TTL_S:
                horizon = marks.pop(0)[1]
            if horizon:
                await self._engine.store.sweep(
                    key_prefix(self._kind.id, None), older_than=horizon, redraft=_redraft
                )


def _redraft(document: bytes) -> Draft:
    head, tail = draft(decode(document))
    return Draft(head, tail)
