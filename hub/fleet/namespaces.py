"""Which namespaces the sets of a cluster want on it.

Mirrors OCM's pkg/registration/hub/managedcluster/managed_namespace_controller.go:
``status.managedNamespaces`` of a cluster lists ``spec.managedNamespaces`` of all its sets, by set
and name; the agent makes the namespaces and says in each entry how that went, which is kept.
"""

from hub.fleet.kinds import MANAGED_CLUSTER, MANAGED_CLUSTER_SET
from hub.fleet.sets import selector_of
from hub.meta import Obj
from hub.meta.selectors import LabelSelector
from hub.registry.engine import Engine
from hub.registry.objects import is_deleting, meta_of
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain
from hub.store import Op


class ManagedNamespaces:
    """Keeps the list of every cluster in step with its sets."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._queue = Queue()
        # the sets that want something, read again after one of them changed
        self._sets: list[tuple[LabelSelector, list[Obj]]] | None = None
        engine.watches.listen(MANAGED_CLUSTER, self._cluster_changed)
        engine.watches.listen(MANAGED_CLUSTER_SET, self._set_changed)

    def _cluster_changed(self, event: Event) -> None:
        if event.change.op is Op.DELETE:
            return
        if event.change.op is Op.CREATE or event.change.previous_index != event.change.index:
            self._queue.add(event.name)

    def _set_changed(self, event: Event) -> None:
        """Look at the clusters of a set, and those it was left by, when its wishes change."""
        before, now = event.previous, event.obj
        is_other = event.change.op is Op.DELETE or before is None or _terms(before) != _terms(now)
        if not is_other or not any(map(_wishes, filter(None, (before, now)))):
            return
        self._sets = None
        for name in self._engine.names(MANAGED_CLUSTER):
            self._queue.add(name)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        for name in self._engine.names(MANAGED_CLUSTER):
            self._queue.add(name)
        await drain("managed-namespaces", self._queue, self.reconcile)

    async def reconcile(self, name: str) -> float | None:
        """Write the list of one cluster, if it is another."""
        cluster = self._engine.peek(MANAGED_CLUSTER, name)
        if cluster is None or is_deleting(cluster):
            return None
        wanted = self._wanted(cluster)
        if merged(wanted, _present(cluster)) == _present(cluster):
            return None

        def change(obj: Obj) -> None:
            status = obj.setdefault("status", {})
            found = merged(wanted, _present(obj))
            status.pop("managedNamespaces", None)
            if found:
                status["managedNamespaces"] = found

        await self._engine.modify(MANAGED_CLUSTER, name, change, subresource="status")
        return None

    def _wanted(self, cluster: Obj) -> list[Obj]:
        if self._sets is None:
            self._sets = [
                (selector_of(name, each), _wished(name, each))
                for each in self._engine.each(MANAGED_CLUSTER_SET)
                if not is_deleting(each) and _wishes(each)
                for name in (str(each["metadata"]["name"]),)
            ]
        labels = meta_of(cluster).get("labels") or {}
        found = [
            wish for selector, wishes in self._sets if selector.matches(labels) for wish in wishes
        ]
        return sorted(found, key=_place)


def merged(wanted: list[Obj], present: list[Obj]) -> list[Obj]:
    """Return the wanted entries, each with the conditions that its agent has put into it."""
    known = {_place(entry): entry.get("conditions") for entry in present}
    return [
        {**entry, "conditions": conditions} if (conditions := known.get(_place(entry))) else entry
        for entry in wanted
    ]


def _place(entry: Obj) -> tuple[str, str]:
    return str(entry.get("clusterSet")), str(entry.get("name"))


def _present(cluster: Obj) -> list[Obj]:
    return list((cluster.get("status") or {}).get("managedNamespaces") or [])


def _wishes(cluster_set: Obj) -> list[Obj]:
    return list((cluster_set.get("spec") or {}).get("managedNamespaces") or [])


def _wished(name: str, cluster_set: Obj) -> list[Obj]:
    return [{**wish, "clusterSet": name} for wish in _wishes(cluster_set)]


def _terms(cluster_set: Obj) -> tuple[object, object, bool]:
    spec = cluster_set.get("spec") or {}
    return spec.get("managedNamespaces"), spec.get("clusterSelector"), is_deleting(cluster_set)
