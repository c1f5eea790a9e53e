"""The feature labels of a ManagedCluster: which add-ons it has, and how they do.

Mirrors OCM's pkg/registration/hub/addon/discovery_controller.go:
``feature.open-cluster-management.io/addon-<name>`` is available, unhealthy or unreachable, so that
placements can select clusters by their add-ons. An add-on whose name is too long for a label's key
has none: refused once, it would keep all the others from being written.
"""

from hub.fleet.conditions import AVAILABLE, condition_status, find_condition
from hub.fleet.kinds import MANAGED_CLUSTER, MANAGED_CLUSTER_ADDON
from hub.meta import Obj
from hub.meta.names import label_key_errors
from hub.registry.engine import Engine
from hub.registry.objects import is_deleting, meta_of
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain
from hub.store import Op

PREFIX = "feature.open-cluster-management.io/addon-"
_ADDON_AVAILABLE = "Available"
_VALUES = {"True": "available", "False": "unhealthy"}


class Features:
    """Keeps the labels of every cluster in step with its add-ons."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._queue = Queue()
        engine.watches.listen(MANAGED_CLUSTER_ADDON, self._addon_changed)
        engine.watches.listen(MANAGED_CLUSTER, self._cluster_changed)

    def _addon_changed(self, event: Event) -> None:
        before = event.previous
        if before is None or event.change.op is Op.DELETE or _value(before) != _value(event.obj):
            self._queue.add(event.namespace)

    def _cluster_changed(self, event: Event) -> None:
        """Look when a cluster reports for the first time, and when its labels were changed."""
        before = event.previous
        if event.change.op is Op.DELETE:
            return
        if (
            before is None
            or _features(before) != _features(event.obj)
            or find_condition(before, AVAILABLE) is None
        ):
            self._queue.add(event.name)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        for name in self._engine.names(MANAGED_CLUSTER):
            self._queue.add(name)
        await drain("features", self._queue, self.reconcile, workers=16)

    async def reconcile(self, name: str) -> float | None:
        """Bring the labels of one cluster into line."""
        cluster = self._engine.peek(MANAGED_CLUSTER, name)
        if cluster is None or is_deleting(cluster) or find_condition(cluster, AVAILABLE) is None:
            return None
        wanted = {
            key: _value(addon)
            for addon in self._engine.each(MANAGED_CLUSTER_ADDON, name)
            if not label_key_errors(key := f"{PREFIX}{meta_of(addon)['name']}")
            and not is_deleting(addon)
        }
        if _features(cluster) == wanted:
            return None

        def label(obj: Obj) -> None:
            labels = meta_of(obj).get("labels") or {}
            kept = {key: value for key, value in labels.items() if not key.startswith(PREFIX)}
            meta_of(obj)["labels"] = {**kept, **wanted}

        await self._engine.modify(MANAGED_CLUSTER, name, label)
        return None


def _features(cluster: Obj) -> dict[str, str]:
    labels = meta_of(cluster).get("labels") or {}
    return {key: value for key, value in labels.items() if key.startswith(PREFIX)}


def _value(addon: Obj) -> str:
    if is_deleting(addon):
        return ""
    return _VALUES.get(condition_status(addon, _ADDON_AVAILABLE), "unreachable")
