"""ClusterRoles that gather the rules of others, chosen by labels.

Mirrors k8s.io/kubernetes/pkg/controller/clusterroleaggregation: the rules of an aggregating role
are those of all roles that its selectors choose, selector by selector, in order of names, each rule
once; whatever is written there by hand is replaced. The rules lie in the stored object, so that
authorisation knows nothing of it.
"""

from hub.meta import Obj
from hub.meta.selectors import LabelSelector, structured_label_selector
from hub.registry.engine import Engine
from hub.registry.objects import meta_of
from hub.registry.rbac import CLUSTER_ROLE
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain
from hub.store import Op, decode_index


class RoleAggregator:
    """Keeps the rules of aggregating roles current."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._queue = Queue()
        # aggregating roles and what they choose: a fleet has thousands of roles, few aggregate
        self._selectors: dict[str, tuple[LabelSelector, ...]] = {}
        engine.watches.listen(CLUSTER_ROLE, self._changed)

    def _changed(self, event: Event) -> None:
        change = event.change
        self._note(event.name, None if change.op is Op.DELETE else event.obj)
        states = [decode_index(i)[0] for i in (change.index, change.previous_index) if i]
        for name, selectors in self._selectors.items():
            if name == event.name or any(s.matches(labels) for s in selectors for labels in states):
                self._queue.add(name)

    def _note(self, name: str, role: Obj | None) -> None:
        """Remember what a role chooses."""
        selectors = _selectors_of(role) if role is not None else ()
        if selectors:
            self._selectors[name] = selectors
        else:
            self._selectors.pop(name, None)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        async for role in self._engine.paced(CLUSTER_ROLE):
            self._note(str(meta_of(role)["name"]), role)
        for name in self._selectors:
            self._queue.add(name)
        await drain("aggregation", self._queue, self.reconcile)

    async def reconcile(self, name: str) -> float | None:
        """Write the rules of one aggregating role, if they are not what is there."""
        role = self._engine.peek(CLUSTER_ROLE, name)
        if role is None or name not in self._selectors:
            return None
        rules = self._gather(name)
        if rules != (role.get("rules") or []):
            await self._engine.modify(CLUSTER_ROLE, name, lambda obj: {**obj, "rules": rules})
        return None

    def _gather(self, name: str) -> list[Obj]:
        rules: list[Obj] = []
        for selector in self._selectors[name]:
            for role in self._engine.each(CLUSTER_ROLE, selector=selector):
                if meta_of(role)["name"] != name:
                    rules += [rule for rule in role.get("rules") or () if rule not in rules]
        return rules


def _selectors_of(role: Obj) -> tuple[LabelSelector, ...]:
    found = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
    return tuple(structured_label_selector(selector) for selector in found)
