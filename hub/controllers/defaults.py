"""What every namespace has: the ServiceAccount ``default`` and the hub's serving CA.

Mirrors k8s.io/kubernetes/pkg/controller/serviceaccount/serviceaccounts_controller.go and
pkg/controller/certificates/rootcacertpublisher, but for one thing: a new namespace and both objects
are one commit, so that nobody ever sees it without them. What is deleted comes back, and a CA that
somebody changed is set right.
"""

import asyncio

from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.registry.builtin import CONFIG_MAP, NAMESPACE, SERVICE_ACCOUNT
from hub.registry.engine import Engine
from hub.registry.kind import Kind
from hub.registry.objects import is_deleting, meta_of
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain
from hub.store import Op

ACCOUNT = "default"
ROOT_CA = "kube-root-ca.crt"
_FILE = "ca.crt"
_WORKERS = 32
_NOTE = {"kubernetes.io/description": "The CA that signs this hub's serving certificate."}


class NamespaceDefaults:
    """Keeps both objects in every namespace that is not on its way out."""

    def __init__(self, engine: Engine, *, ca_pem: str) -> None:
        self._engine, self._data = engine, {_FILE: ca_pem}
        self._queue = Queue()
        engine.accompany(NAMESPACE, self._companions)
        engine.watches.listen(SERVICE_ACCOUNT, self._account_changed)
        engine.watches.listen(CONFIG_MAP, self._ca_changed)

    def _companions(self, namespace: Obj) -> list[tuple[Kind, Obj]]:
        name = str(meta_of(namespace)["name"])
        return [(SERVICE_ACCOUNT, _account(name)), (CONFIG_MAP, self._ca(name))]

    def _ca(self, namespace: str) -> Obj:
        meta = {"name": ROOT_CA, "namespace": namespace, "annotations": _NOTE}
        return _typed("ConfigMap", meta) | {"data": self._data}

    def _account_changed(self, event: Event) -> None:
        if event.name == ACCOUNT and event.change.op is Op.DELETE:
            self._queue.add(event.namespace)

    def _ca_changed(self, event: Event) -> None:
        if event.name != ROOT_CA or event.change.op is Op.CREATE:
            return
        if event.change.op is Op.DELETE or event.obj.get("data") != self._data:
            self._queue.add(event.namespace)

    async def run(self) -> None:
        """Look at every namespace, then keep them so until cancelled."""
        for name in self._engine.names(NAMESPACE):
            await asyncio.sleep(0)  # there are thousands: the loop goes on between them
            if not self._is_complete(name):
                self._queue.add(name)
        await drain("defaults", self._queue, self.reconcile, workers=_WORKERS)

    def _is_complete(self, namespace: str) -> bool:
        found = self._engine.peek(CONFIG_MAP, ROOT_CA, namespace)
        is_right = found is not None and found.get("data") == self._data
        return is_right and self._engine.find(SERVICE_ACCOUNT, ACCOUNT, namespace) is not None

    async def reconcile(self, name: str) -> float | None:
        """Bring one namespace in order."""
        namespace = self._engine.peek(NAMESPACE, name)
        if namespace is None or is_deleting(namespace):
            return None
        if self._engine.find(SERVICE_ACCOUNT, ACCOUNT, name) is None:
            await self._create(SERVICE_ACCOUNT, _account(name))
        present = self._engine.peek(CONFIG_MAP, ROOT_CA, name)
        if present is None:
            await self._create(CONFIG_MAP, self._ca(name))
        elif present.get("immutable") and present.get("data") != self._data:
            # frozen by somebody: only a new one can carry the CA
            await self._engine.delete(CONFIG_MAP, ROOT_CA, namespace=name)
        else:
            await self._engine.modify(CONFIG_MAP, ROOT_CA, self._set_right, namespace=name)
        return None

    def _set_right(self, present: Obj) -> None:
        if present.get("data") != self._data:
            present["data"] = self._data
            present.pop("binaryData", None)

    async def _create(self, kind: Kind, obj: Obj) -> None:
        try:
            await self._engine.create(kind, obj, namespace=str(meta_of(obj)["namespace"]))
        except ApiError as error:
            if error.code not in (403, 404, 409):  # the namespace is going, or somebody was faster
                raise


def _account(namespace: str) -> Obj:
    return _typed("ServiceAccount", {"name": ACCOUNT, "namespace": namespace})


def _typed(kind: str, meta: Obj) -> Obj:
    return {"apiVersion": "v1", "kind": kind, "metadata": meta}
