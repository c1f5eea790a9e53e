"""Works that have done their job go when their time is over.

Mirrors OCM's pkg/work/hub/controllers/manifestworkgarbagecollection:
``spec.deleteOption.ttlSecondsAfterFinished`` counts from the condition ``Complete``; a work of a
ManifestWorkReplicaSet is its maker's.
"""

import asyncio

from hub.clock import Clock
from hub.fleet.conditions import find_condition
from hub.fleet.kinds import MANIFEST_WORK
from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.meta.timestamp import parse_time
from hub.registry.call import Preconditions
from hub.registry.engine import Engine
from hub.registry.hold import Hold
from hub.registry.objects import is_deleting, meta_of
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain
from hub.store import Op

REPLICA_SET_LABEL = "work.open-cluster-management.io/manifestworkreplicaset"
_COMPLETE = "Complete"


class CompletedWorks:
    """Deletes completed works at their time.

    `hold`: until then none goes.
    """

    def __init__(self, engine: Engine, clock: Clock, *, hold: Hold) -> None:
        self._engine, self._clock, self._hold = engine, clock, hold
        self._held: set[str] = set()
        self._queue = Queue()
        engine.watches.listen(MANIFEST_WORK, self._changed)

    def _changed(self, event: Event) -> None:
        if event.change.op is not Op.DELETE and _ttl(event.obj) is not None:
            self._queue.add(f"{event.namespace}/{event.name}")

    async def run(self) -> None:
        """Reconcile until cancelled."""
        async for work in self._engine.paced(MANIFEST_WORK):
            if _ttl(work) is not None:
                meta = meta_of(work)
                self._queue.add(f"{meta['namespace']}/{meta['name']}")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(drain("completed-works", self._queue, self.reconcile))
            await self._hold.wait()
            held, self._held = self._held, set()
            for key in held:
                self._queue.add(key)

    async def reconcile(self, key: str) -> float | None:
        """Delete one work if its time is over; return when it will be."""
        namespace, _, name = key.partition("/")
        work = self._engine.peek(MANIFEST_WORK, name, namespace)
        left = None if work is None else self._left(work)
        if work is None or left is None:
            return None
        if left > 0:
            return left
        if not self._hold.is_over:
            self._held.add(key)
            return None
        meta = meta_of(work)
        judged = Preconditions(str(meta["uid"]), str(meta["resourceVersion"]))
        try:
            await self._engine.delete(
                MANIFEST_WORK, name, namespace=namespace, preconditions=judged
            )
        except ApiError as error:
            if error.code not in (404, 409):  # gone, or changed: its change is looked at
                raise
        return None

    def _left(self, work: Obj) -> float | None:
        """Return how many seconds a work still has, None when it is not to go."""
        ttl, complete = _ttl(work), find_condition(work, _COMPLETE) or {}
        if ttl is None or is_deleting(work) or complete.get("status") != "True":
            return None
        try:
            since = parse_time(str(complete.get("lastTransitionTime")))
        except ValueError:
            return None
        # the agent's clock says when: one that is ahead must not keep a work for longer
        return ttl - max((self._clock.now() - since).total_seconds(), 0.0)


def _ttl(work: Obj) -> float | None:
    """Return how long a work may stay once it is complete, None for ever."""
    if REPLICA_SET_LABEL in (meta_of(work).get("labels") or {}):
        return None
    found = ((work.get("spec") or {}).get("deleteOption") or {}).get("ttlSecondsAfterFinished")
    return None if found is None else float(found)
