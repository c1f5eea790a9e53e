"""Namespaces on their way out: delete what is inside, tell what holds it, then let go.

Mirrors k8s.io/kubernetes/pkg/controller/namespace: while a namespace is Terminating nothing new can
be made in it; once it is empty its ``kubernetes`` finalizer is taken off and, unless others are
there, it is gone. Until then its conditions say what is left.
"""

import asyncio

from hub.controllers.nscondition import Remains, update_conditions
from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.registry.builtin import NAMESPACE
from hub.registry.catalog import Catalog
from hub.registry.engine import Engine
from hub.registry.hold import Hold
from hub.registry.kind import Kind
from hub.registry.objects import is_deleting, meta_of
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain
from hub.store import Op

FINALIZER = "kubernetes"
_LOOK_AGAIN_S = 15.0
_WORKERS = 8
_AT_ONCE = 64
"""Deletions under way at a time: their commits share an fsync."""


class NamespaceController:
    """Empties and removes terminating namespaces.

    `hold`: until it is over namespaces wait that are Terminating at the start.
    """

    def __init__(self, engine: Engine, catalog: Catalog, *, hold: Hold) -> None:
        self._engine, self._catalog, self._hold = engine, catalog, hold
        self._queue = Queue()
        self._terminating: set[str] = set()
        self._held: set[str] = set()
        engine.watches.listen(NAMESPACE, self._changed)
        engine.watches.listen_to_all(self._content_changed)

    def _kinds(self) -> list[Kind]:
        return [kind for kind in self._catalog if kind.is_namespaced and not kind.is_virtual]

    def _changed(self, event: Event) -> None:
        if event.change.op is Op.DELETE:
            self._terminating.discard(event.name)
        elif is_deleting(event.obj) and event.name not in self._terminating:
            self._terminating.add(event.name)
            self._queue.add(event.name)

    def _content_changed(self, event: Event) -> None:
        if event.change.op is Op.DELETE and event.namespace in self._terminating:
            self._queue.add(event.namespace)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        async for namespace in self._engine.paced(NAMESPACE):
            if is_deleting(namespace):
                self._held.add(str(meta_of(namespace)["name"]))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(drain("namespace", self._queue, self.reconcile, workers=_WORKERS))
            await self._hold.wait()
            held, self._held = self._held, set()
            for name in held:
                self._queue.add(name)

    async def reconcile(self, name: str) -> float | None:
        """Delete the contents of one terminating namespace; finish it when it is empty."""
        if name in self._held:
            return None
        namespace = self._engine.peek(NAMESPACE, name)
        if namespace is None or not is_deleting(namespace):
            return None
        self._terminating.add(name)
        if FINALIZER not in ((namespace.get("spec") or {}).get("finalizers") or ()):
            return None  # our part is done, others hold it
        remains = Remains()
        for kind in self._kinds():
            await self._empty(kind, name, remains)
        now = self._engine.clock.now()
        await self._engine.modify(
            NAMESPACE, name, lambda obj: update_conditions(obj, remains, now), subresource="status"
        )
        if not remains.is_empty:
            return _LOOK_AGAIN_S
        await self._engine.modify(NAMESPACE, name, _release, subresource="finalize")
        return None

    async def _empty(self, kind: Kind, namespace: str, remains: Remains) -> None:
        """Delete all of a kind in a namespace, and count what is still there."""
        names = self._engine.names(kind, namespace)
        for start in range(0, len(names), _AT_ONCE):
            async with asyncio.TaskGroup() as group:
                for name in names[start : start + _AT_ONCE]:
                    group.create_task(self._remove(kind, name, namespace, remains))

    async def _remove(self, kind: Kind, name: str, namespace: str, remains: Remains) -> None:
        try:
            deleted = await self._engine.delete(
                kind, name, namespace=namespace, policy="Background"
            )
        except ApiError as error:
            if error.code != 404:
                remains.errors.append(str(error))
            return
        if not deleted.is_gone:
            remains.count(kind.resource, meta_of(deleted.obj).get("finalizers") or ())


def _release(namespace: Obj) -> None:
    spec = namespace.get("spec") or {}
    kept = [name for name in spec.get("finalizers") or () if name != FINALIZER]
    namespace["spec"] = {"finalizers": kept} if kept else {}
