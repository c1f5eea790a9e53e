"""How a ManagedCluster goes: what is in its namespace, and its rights but those of the work agent.

The order of OCM's gc and managedcluster controllers (pkg/registration/hub): add-ons in the order of
their cleanup priority, then works, each waiting for the agents' finalizers. The role, its binding
and the registration agent's binding go in the first pass; the work agent keeps its rights until its
last work is gone. The namespace is kept.

An agent that is dead never takes its finalizers off. For such a cluster an administrator sets the
annotation `FORCE`: an Event says what is abandoned on the cluster, as nobody removes it there, and
then the finalizers are taken off here.
"""

from hub.auth.bootstrap_policy import CLUSTER_ROLE_PREFIX, WORK_FINALIZER
from hub.clock import Clock
from hub.fleet.conditions import find_condition, set_condition
from hub.fleet.kinds import CLUSTER_GROUP, MANAGED_CLUSTER, MANAGED_CLUSTER_ADDON, MANIFEST_WORK
from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.registry.engine import Engine
from hub.registry.kind import Kind
from hub.registry.objects import is_deleting, meta_of
from hub.registry.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE_BINDING
from hub.registry.report import reference_to, warn

FINALIZERS = (f"{CLUSTER_GROUP}/resource-cleanup", f"{CLUSTER_GROUP}/api-resource-cleanup")
CLEANUP_PRIORITY = "open-cluster-management.io/cleanup-priority"
FORCE = "hublet.io/force-detach"
DELETING = "Deleting"
_LOOK_AGAIN_S = 5.0
_NAMED = 20
"""How many abandoned objects an Event names; it counts the rest."""


class Detachment:
    """Takes deleted clusters apart."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine, self._clock = engine, clock

    async def advance(self, name: str, cluster: Obj) -> float | None:
        """Do what can be done now; return when to look again, None when the cluster is free."""
        if (meta_of(cluster).get("annotations") or {}).get(FORCE) == "true":
            await self._abandon(name, cluster)
        kind, remaining = MANAGED_CLUSTER_ADDON, await self._remove_all(MANAGED_CLUSTER_ADDON, name)
        if not remaining:
            kind, remaining = MANIFEST_WORK, await self._remove_all(MANIFEST_WORK, name)
        await self.remove(CLUSTER_ROLE_BINDING, f"{CLUSTER_ROLE_PREFIX}{name}")
        await self.remove(CLUSTER_ROLE, f"{CLUSTER_ROLE_PREFIX}{name}")
        await self.remove(ROLE_BINDING, f"{CLUSTER_ROLE_PREFIX}{name}:registration", name)
        if remaining:
            await self._tell_remaining(name, kind, remaining)
            return _LOOK_AGAIN_S
        await self.release_work_binding(name)
        await self._release(name, cluster)
        return None

    async def _release(self, name: str, cluster: Obj) -> None:
        if not set(FINALIZERS) & set(meta_of(cluster).get("finalizers") or []):
            return

        def release(obj: Obj) -> None:
            found = meta_of(obj).get("finalizers") or []
            meta_of(obj)["finalizers"] = [f for f in found if f not in FINALIZERS]

        await self._tell(name, "True", "NoResource", "Nothing is left in the cluster's namespace")
        await self._engine.modify(MANAGED_CLUSTER, name, release)

    async def _tell_remaining(self, name: str, kind: Kind, remaining: int) -> None:
        """Say in the condition ``Deleting`` what holds the cluster."""
        pending = sum(is_deleting(each) for each in self._engine.each(kind, name))
        message = (
            f"The resource {kind.plural} is remaining, the remaining count is {remaining}, the "
            f"finalizer pending count is {pending}"
        )
        await self._tell(name, "False", "ResourceRemaining", message)

    async def _tell(self, name: str, status: str, reason: str, message: str) -> None:
        """Write the condition ``Deleting``, once for each change of it."""
        cluster = self._engine.peek(MANAGED_CLUSTER, name)
        if cluster is None or (find_condition(cluster, DELETING) or {}).get("message") == message:
            return
        now = self._clock.now()

        def change(obj: Obj) -> None:
            set_condition(obj, DELETING, status, reason=reason, message=message, now=now)

        await self._engine.modify(MANAGED_CLUSTER, name, change, subresource="status")

    async def _abandon(self, name: str, cluster: Obj) -> None:
        """Tell what stays on the cluster, and take the finalizers off what is in the namespace.

        In this order: nothing is abandoned untold. What fails in between is told twice.
        """
        held = [
            (kind, str(meta_of(obj)["name"]))
            for kind in (MANAGED_CLUSTER_ADDON, MANIFEST_WORK)
            for obj in self._engine.each(kind, name)
            if meta_of(obj).get("finalizers")
        ]
        if not held:
            return
        await self._tell_abandoned(cluster, [f"{kind.plural}/{own}" for kind, own in held])
        for kind, own in held:
            await self._strip(kind, own, name)

    async def _tell_abandoned(self, cluster: Obj, abandoned: list[str]) -> None:
        shown = ", ".join(abandoned[:_NAMED])
        more = f" and {len(abandoned) - _NAMED} more" if len(abandoned) > _NAMED else ""
        await warn(
            self._engine,
            reference_to(MANAGED_CLUSTER, cluster),
            reason="ForcedDetach",
            message=f"Given up without their agent, so what they applied stays: {shown}{more}",
            component="hublet",
        )

    async def _strip(self, kind: Kind, name: str, namespace: str) -> None:
        def strip(obj: Obj) -> None:
            meta_of(obj).pop("finalizers", None)

        try:
            await self._engine.modify(kind, name, strip, namespace=namespace)
        except ApiError as error:
            if error.code != 404:  # gone meanwhile
                raise

    async def _remove_all(self, kind: Kind, namespace: str) -> int:
        """Delete the objects of a kind, the lowest cleanup priority first; return how many remain.

        Those of a higher priority, and those held by finalizers.
        """
        found = {str(obj["metadata"]["name"]): obj for obj in self._engine.each(kind, namespace)}
        remaining = len(found)
        lowest = min((_cleanup_priority(obj) for obj in found.values()), default=0)
        for name, obj in found.items():
            if _cleanup_priority(obj) == lowest:
                remaining -= await self.remove(kind, name, namespace)
        return remaining

    async def remove(self, kind: Kind, name: str, namespace: str = "") -> bool:
        """Delete an object if it is there; whether it is gone now."""
        if self._engine.find(kind, name, namespace) is None:
            return True
        try:
            deleted = await self._engine.delete(kind, name, namespace=namespace)
        except ApiError as error:
            if error.code == 404:
                return True
            raise
        return deleted.is_gone

    async def release_work_binding(self, cluster: str) -> None:
        """Take the rights of the work agent, once it has no work left."""
        name = f"{CLUSTER_ROLE_PREFIX}{cluster}:work"
        if await self.remove(ROLE_BINDING, name, cluster):
            return

        def release(obj: Obj) -> None:
            found = meta_of(obj).get("finalizers") or []
            meta_of(obj)["finalizers"] = [f for f in found if f != WORK_FINALIZER]

        await self._engine.modify(ROLE_BINDING, name, release, namespace=cluster)


def _cleanup_priority(obj: Obj) -> int:
    """Return 0 to 100, 0 for what says nothing or nonsense."""
    text = str((meta_of(obj).get("annotations") or {}).get(CLEANUP_PRIORITY) or "")
    return min(int(text), 100) if text.isascii() and text.isdigit() else 0
