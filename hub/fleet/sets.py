"""The ``default`` and ``global`` ManagedClusterSets, and how many clusters each set has.

Mirrors OCM's pkg/registration/hub/managedclusterset: both sets come back when they are deleted, and
to their selector when it is edited, unless annotated ``autoupdate: "false"``; status tells whether
a set is empty.
"""

from hub.clock import Clock
from hub.fleet.admission import DEFAULT_SET, SET_LABEL, set_of
from hub.fleet.conditions import find_condition, set_condition
from hub.fleet.kinds import CLUSTER_GROUP, MANAGED_CLUSTER, MANAGED_CLUSTER_SET
from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.meta.selectors import LabelSelector, parse_label_selector, structured_label_selector
from hub.registry.engine import Engine
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain
from hub.store import Index, Key, Op, decode_index
from hub.store import prefix as key_prefix

GLOBAL_SET = "global"
_SETTLE_S = 1.0
_AUTOUPDATE = f"{CLUSTER_GROUP}/autoupdate"
_BUILT_IN: dict[str, Obj] = {
    DEFAULT_SET: {"selectorType": "ExclusiveClusterSetLabel"},
    GLOBAL_SET: {"selectorType": "LabelSelector", "labelSelector": {}},
}


class Sets:
    """Keeps the built-in sets there and every set's count current."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine, self._clock = engine, clock
        self._queue = Queue()
        engine.watches.listen(MANAGED_CLUSTER, self._cluster_changed)
        engine.watches.listen(MANAGED_CLUSTER_SET, self._set_changed)

    def _cluster_changed(self, event: Event) -> None:
        if event.change.op is Op.UPDATE and event.change.previous_index == event.change.index:
            return
        # a thousand clusters joining are one count
        for name in {set_of(event.obj), DEFAULT_SET, GLOBAL_SET} - {""}:
            self._queue.add_after(name, _SETTLE_S)
        if event.previous is not None and set_of(event.previous):
            self._queue.add_after(set_of(event.previous), _SETTLE_S)

    def _set_changed(self, event: Event) -> None:
        self._queue.add(event.name)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        for name in _BUILT_IN:
            self._queue.add(name)
        for found in self._engine.each(MANAGED_CLUSTER_SET):
            self._queue.add(str(found["metadata"]["name"]))
        await drain("sets", self._queue, self.reconcile)

    async def reconcile(self, name: str) -> float | None:
        """Make one set exist if it must, and count its clusters."""
        found = self._engine.peek(MANAGED_CLUSTER_SET, name)
        if found is None:
            if name in _BUILT_IN:
                await self._create(name)
            return None
        if self._is_edited(name, found):
            await self._engine.modify(MANAGED_CLUSTER_SET, name, _with_built_in_selector)
            return None
        count = self._count(name, found)
        status, reason = (
            ("True", "NoClusterMatched") if count == 0 else ("False", "ClustersSelected")
        )
        message = (
            "No ManagedCluster selected" if count == 0 else f"{count} ManagedClusters selected"
        )
        present = find_condition(found, "ClusterSetEmpty") or {}
        if present.get("status") == status and present.get("message") == message:
            return None
        now = self._clock.now()

        def change(obj: Obj) -> None:
            set_condition(obj, "ClusterSetEmpty", status, reason=reason, message=message, now=now)

        await self._engine.modify(MANAGED_CLUSTER_SET, name, change, subresource="status")
        return None

    @staticmethod
    def _is_edited(name: str, found: Obj) -> bool:
        wanted = _BUILT_IN.get(name)
        annotations = found["metadata"].get("annotations") or {}
        if wanted is None or annotations.get(_AUTOUPDATE) == "false":
            return False
        return bool((found.get("spec") or {}).get("clusterSelector") != wanted)

    async def _create(self, name: str) -> None:
        obj: Obj = {"metadata": {"name": name}, "spec": {"clusterSelector": _BUILT_IN[name]}}
        try:
            await self._engine.create(MANAGED_CLUSTER_SET, obj)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    def _count(self, name: str, found: Obj) -> int:
        selector = selector_of(name, found)

        def match(_key: Key, index: Index) -> bool:
            return selector.matches(decode_index(index)[0])

        prefix = key_prefix(MANAGED_CLUSTER.id, None)
        return len(self._engine.store.scan(prefix, match=match).entries)


def _with_built_in_selector(obj: Obj) -> None:
    selector = _BUILT_IN[str(obj["metadata"]["name"])]
    obj["spec"] = {**(obj.get("spec") or {}), "clusterSelector": dict(selector)}


def selector_of(name: str, found: Obj) -> LabelSelector:
    """Return which clusters belong to a set."""
    selector = (found.get("spec") or {}).get("clusterSelector") or {}
    if selector.get("selectorType") == "LabelSelector":
        return structured_label_selector(selector.get("labelSelector") or {})
    return parse_label_selector(f"{SET_LABEL}={name}")
