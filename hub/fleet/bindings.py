"""Whether the set that a ManagedClusterSetBinding names is there.

Mirrors OCM's pkg/registration/hub/managedclustersetbinding: the condition ``Bound`` follows the set
as it comes and goes. Who may bind is admission's.
"""

from hub.clock import Clock
from hub.fleet.conditions import find_condition, set_condition
from hub.fleet.kinds import MANAGED_CLUSTER_SET, MANAGED_CLUSTER_SET_BINDING
from hub.meta import Obj
from hub.registry.engine import Engine
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain
from hub.store import Op

BOUND = "Bound"


class Bindings:
    """Keeps the condition of every binding current."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine, self._clock = engine, clock
        self._queue = Queue()
        engine.watches.listen(MANAGED_CLUSTER_SET_BINDING, self._binding_changed)
        engine.watches.listen(MANAGED_CLUSTER_SET, self._set_changed)

    def _binding_changed(self, event: Event) -> None:
        if event.change.op is not Op.DELETE:
            self._queue.add(f"{event.namespace}/{event.name}")

    def _set_changed(self, event: Event) -> None:
        if event.change.op is not Op.UPDATE:
            self._look_at(event.name)

    def _look_at(self, name: str) -> None:
        """Look at the bindings of a set; they have its name."""
        for binding in self._engine.each(MANAGED_CLUSTER_SET_BINDING):
            meta = binding["metadata"]
            if meta["name"] == name:
                self._queue.add(f"{meta['namespace']}/{name}")

    async def run(self) -> None:
        """Reconcile until cancelled."""
        for binding in self._engine.each(MANAGED_CLUSTER_SET_BINDING):
            meta = binding["metadata"]
            self._queue.add(f"{meta['namespace']}/{meta['name']}")
        await drain("bindings", self._queue, self.reconcile)

    async def reconcile(self, key: str) -> float | None:
        """Say of one binding whether its set is there."""
        namespace, _, name = key.partition("/")
        binding = self._engine.peek(MANAGED_CLUSTER_SET_BINDING, name, namespace)
        if binding is None:
            return None
        wanted = str((binding.get("spec") or {}).get("clusterSet") or "")
        is_there = self._engine.find(MANAGED_CLUSTER_SET, wanted) is not None
        status = "True" if is_there else "False"
        reason = "ClusterSetBound" if is_there else "ClusterSetNotFound"
        present = find_condition(binding, BOUND) or {}
        if (present.get("status"), present.get("reason")) == (status, reason):
            return None
        now = self._clock.now()

        def change(obj: Obj) -> None:
            set_condition(obj, BOUND, status, reason=reason, message="", now=now)

        await self._engine.modify(
            MANAGED_CLUSTER_SET_BINDING, name, change, namespace=namespace, subresource="status"
        )
        return None
