"""Namespaces on their way out: delete what is inside, then let go.

Mirrors k8s.io/kubernetes/pkg/controller/namespace: while a namespace is Terminating nothing new can
be made in it; once it is empty its ``kubernetes`` finalizer is taken off and it is gone.
"""

from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.registry.builtin import NAMESPACE
from hub.registry.catalog import Catalog
from hub.registry.engine import Engine
from hub.registry.objects import is_deleting
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain
from hub.store import decode_key
from hub.store import prefix as key_prefix

_LOOK_AGAIN_S = 2.0


class NamespaceController:
    """Empties and removes terminating namespaces."""

    def __init__(self, engine: Engine, catalog: Catalog) -> None:
        self._engine, self._catalog = engine, catalog
        self._queue = Queue()
        engine.watches.listen(NAMESPACE, self._changed)

    def _changed(self, event: Event) -> None:
        if is_deleting(event.obj):
            self._queue.add(event.name)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        for namespace in self._engine.each(NAMESPACE):
            if is_deleting(namespace):
                self._queue.add(str(namespace["metadata"]["name"]))
        await drain("namespace", self._queue, self.reconcile)

    async def reconcile(self, name: str) -> float | None:
        """Delete the contents of one terminating namespace; finish it when it is empty."""
        namespace = self._engine.peek(NAMESPACE, name)
        if namespace is None or not is_deleting(namespace):
            return None
        remaining = 0
        for kind in self._catalog:
            if not kind.is_namespaced or kind.is_virtual:
                continue
            page = self._engine.store.scan(key_prefix(kind.id, name))
            for entry in page.entries:
                remaining += await self._remove(kind.id, decode_key(entry.key)[2], name)
        if remaining:
            return _LOOK_AGAIN_S
        await self._engine.modify(NAMESPACE, name, _without_finalizers, subresource="finalize")
        return None

    async def _remove(self, resource_id: str, name: str, namespace: str) -> int:
        """Delete one object; return 1 when it is still there (held by finalizers), else 0."""
        kind = self._catalog.by_id(resource_id)
        if kind is None:
            return 0
        try:
            deleted = await self._engine.delete(kind, name, namespace=namespace)
        except ApiError as error:
            if error.code == 404:
                return 0
            raise
        return 0 if deleted.is_gone else 1


def _without_finalizers(obj: Obj) -> Obj:
    found = (obj.get("spec") or {}).get("finalizers") or []
    # others' finalizers are theirs to take off
    return {**obj, "spec": {"finalizers": [f for f in found if f != "kubernetes"]}}
