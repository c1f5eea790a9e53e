"""From a ManagedCluster to the things its agents need: acceptance, denial, taints.

The order of OCM's managedcluster controller (pkg/registration/hub/managedcluster): on acceptance
namespace, finalizers, RBAC, Lease, condition; on denial the rights are cut to looking at its own
ManagedCluster. How a cluster goes is `hub.fleet.detachment`'s.

A cluster that is simply absent is left alone: after a restore "not there" may mean "not known yet",
and cutting a live agent's rights is worse than keeping them. For the same reason a cluster that was
going, or was denied, when a restored hub starts keeps what it has until the hold is over: it may
have been made anew or accepted since. What a person decides after the start is done at once.
"""

import asyncio

from hub.auth.bootstrap_policy import (
    CLUSTER_NAME_LABEL,
    CLUSTER_ROLE_PREFIX,
    cluster_rbac,
    shared_cluster_roles,
)
from hub.clock import Clock
from hub.fleet.conditions import (
    ACCEPTED,
    AVAILABLE,
    condition_status,
    find_condition,
    set_condition,
)
from hub.fleet.detachment import FINALIZERS, FORCE, Detachment
from hub.fleet.kinds import CLUSTER_GROUP, MANAGED_CLUSTER, MANAGED_CLUSTER_ADDON, MANIFEST_WORK
from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.meta.timestamp import format_micro_time, format_time
from hub.registry.builtin import LEASE, NAMESPACE
from hub.registry.engine import Engine
from hub.registry.hold import Hold
from hub.registry.kind import Kind
from hub.registry.objects import is_deleting, meta_of
from hub.registry.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE_BINDING
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain

LEASE_NAME = "managed-cluster-lease"
ACCEPTED_ON = "open-cluster-management.io/automatically-accepted-on"
UNREACHABLE = f"{CLUSTER_GROUP}/unreachable"
UNAVAILABLE = f"{CLUSTER_GROUP}/unavailable"
_UNHURRIED_S = 10.0
"""How long what an agent reports of itself may wait for a look at its cluster's belongings."""
_WORKERS = 64
"""Clusters in work at once: each waits for commits, and commits of many share one fsync."""
_RBAC = {kind.kind: kind for kind in (CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE_BINDING)}


class Registration:
    """Keeps what belongs to each ManagedCluster in step with it."""

    def __init__(self, engine: Engine, clock: Clock, *, auto_accept: bool, hold: Hold) -> None:
        self._engine, self._clock, self._auto_accept = engine, clock, auto_accept
        self._restore = hold
        self._held: set[str] = set()
        self._detachment = Detachment(engine, clock)
        self._queue = Queue()
        engine.watches.listen(MANAGED_CLUSTER, self._cluster_changed)
        for kind in (MANAGED_CLUSTER_ADDON, MANIFEST_WORK):
            engine.watches.listen(kind, self._content_changed)

    def _cluster_changed(self, event: Event) -> None:
        before = event.previous
        if before is None or _decisions(before) != _decisions(event.obj):
            self._held.discard(event.name)
        if before is not None and _concerns(before) == _concerns(event.obj):
            self._queue.add_after(event.name, _UNHURRIED_S)  # many reports are one look
        else:
            self._queue.add(event.name)

    def _content_changed(self, event: Event) -> None:
        cluster = self._engine.peek(MANAGED_CLUSTER, event.namespace)
        if cluster is not None and is_deleting(cluster):
            self._queue.add(event.namespace)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        for cluster in () if self._restore.is_over else self._engine.each(MANAGED_CLUSTER):
            if is_deleting(cluster) or not _is_wanted(cluster):
                self._held.add(str(meta_of(cluster)["name"]))
        for name in self._engine.names(MANAGED_CLUSTER):
            self._queue.add(name)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(drain("registration", self._queue, self.reconcile, workers=_WORKERS))
            await self._restore.wait()
            held, self._held = self._held, set()
            for name in held:
                self._queue.add(name)

    async def reconcile(self, name: str) -> float | None:
        """Bring one cluster's belongings into order."""
        cluster = self._engine.peek(MANAGED_CLUSTER, name)
        if cluster is None:
            return None
        is_held = name in self._held
        if is_deleting(cluster):
            return None if is_held else await self._detachment.advance(name, cluster)
        if self._wants_auto_acceptance(cluster):
            await self._auto_accept_one(name)
            return None
        if _is_wanted(cluster):
            await self._accept(name, cluster)
        elif not is_held and self._is_to_deny(name, cluster):
            await self._deny(name)
        await self._mark(name)
        return None

    # ---------------------------------------------------------------- acceptance

    def _wants_auto_acceptance(self, cluster: Obj) -> bool:
        annotations = meta_of(cluster).get("annotations") or {}
        return self._auto_accept and ACCEPTED_ON not in annotations

    async def _auto_accept_one(self, name: str) -> None:
        def accept(obj: Obj) -> None:
            meta = meta_of(obj)
            stamp = {ACCEPTED_ON: format_time(self._clock.now())}
            meta["annotations"] = {**(meta.get("annotations") or {}), **stamp}
            obj["spec"]["hubAcceptsClient"] = True

        await self._engine.modify(MANAGED_CLUSTER, name, accept)

    async def _accept(self, name: str, cluster: Obj) -> None:
        labels = {CLUSTER_NAME_LABEL: name}
        lease = {
            "metadata": {"name": LEASE_NAME, "namespace": name, "labels": labels},
            "spec": {
                "holderIdentity": LEASE_NAME,
                # agents of several hubs read it before they write it, and crash without it
                "renewTime": format_micro_time(self._clock.now()),
            },
        }
        rbac = [*shared_cluster_roles(), *cluster_rbac(name)]
        await self._ensure(NAMESPACE, {"metadata": {"name": name, "labels": labels}})
        await self._hold(name, cluster)
        async with asyncio.TaskGroup() as group:
            for obj in rbac:
                group.create_task(self._ensure(_RBAC[obj["kind"]], obj))
            group.create_task(self._ensure(LEASE, lease))
        await self._set_accepted(
            name, "True", "HubClusterAdminAccepted", "Accepted by hub cluster admin"
        )

    async def _ensure(self, kind: Kind, obj: Obj) -> None:
        """Create `obj`, or bring rules, subjects and labels of the present one back to it."""
        meta = obj["metadata"]
        namespace = str(meta.get("namespace") or "")
        present = self._engine.peek(kind, str(meta["name"]), namespace)
        if present is None:
            try:
                await self._engine.create(kind, obj, namespace=namespace)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
            return
        if kind is LEASE or not _is_behind(present, obj):
            return

        def update(current: Obj) -> None:
            for field in ("rules", "subjects"):
                if field in obj:
                    current[field] = obj[field]
            labels = meta_of(current).get("labels") or {}
            meta_of(current)["labels"] = {**labels, **(meta.get("labels") or {})}

        await self._engine.modify(kind, str(meta["name"]), update, namespace=namespace)

    async def _hold(self, name: str, cluster: Obj) -> None:
        """Put the finalizers on a cluster, and in the same write the taint it begins with."""
        present = meta_of(cluster).get("finalizers") or []
        if all(f in present for f in FINALIZERS):
            return

        def hold(obj: Obj) -> None:
            found = meta_of(obj).get("finalizers") or []
            meta_of(obj)["finalizers"] = [*found, *(f for f in FINALIZERS if f not in found)]
            _taint(obj)

        await self._engine.modify(MANAGED_CLUSTER, name, hold)

    async def _set_accepted(self, name: str, status: str, reason: str, message: str) -> None:
        now = self._clock.now()

        def change(obj: Obj) -> None:
            set_condition(obj, ACCEPTED, status, reason=reason, message=message, now=now)

        await self._engine.modify(MANAGED_CLUSTER, name, change, subresource="status")

    def _is_to_deny(self, name: str, cluster: Obj) -> bool:
        """Whether a cluster that is not accepted has anything of an acceptance.

        The condition alone does not tell: it is written last, and an acceptance that failed before
        has given rights already.
        """
        told = condition_status(cluster, ACCEPTED)
        if told == "True":
            return True
        denied = {obj["kind"]: obj for obj in cluster_rbac(name, accepted=False)}
        for obj in cluster_rbac(name):
            meta, kept = obj["metadata"], denied.get(obj["kind"])
            present = self._engine.peek(
                _RBAC[obj["kind"]], str(meta["name"]), str(meta.get("namespace") or "")
            )
            if present is None:
                continue
            if kept is None or told != "False" or _is_behind(present, kept):
                return True
        return False

    async def _deny(self, name: str) -> None:
        for obj in cluster_rbac(name, accepted=False):
            await self._ensure(_RBAC[obj["kind"]], obj)
        await self._detachment.remove(
            ROLE_BINDING, f"{CLUSTER_ROLE_PREFIX}{name}:registration", name
        )
        await self._detachment.release_work_binding(name)
        await self._set_accepted(
            name, "False", "HubClusterAdminDenied", "Denied by hub cluster admin"
        )

    # ---------------------------------------------------------------- taints

    async def _mark(self, name: str) -> None:
        """Taint a cluster that cannot take workloads, as OCM's taint controller does."""
        cluster = self._engine.peek(MANAGED_CLUSTER, name)
        if cluster is not None and _taints_of(cluster) != _wanted_taints(cluster):
            await self._engine.modify(MANAGED_CLUSTER, name, _taint)


def _concerns(cluster: Obj) -> tuple[Obj, Obj, Obj | None, str]:
    """Return what decides about a cluster's belongings: all but most of its status."""
    aside = ("resourceVersion", "managedFields")
    meta = {key: value for key, value in meta_of(cluster).items() if key not in aside}
    accepted = find_condition(cluster, ACCEPTED)
    return meta, cluster.get("spec") or {}, accepted, condition_status(cluster, AVAILABLE)


def _is_wanted(cluster: Obj) -> bool:
    return bool((cluster.get("spec") or {}).get("hubAcceptsClient"))


def _decisions(cluster: Obj) -> tuple[bool, bool, object]:
    """Return what only persons decide about whether a cluster stays."""
    forced = (meta_of(cluster).get("annotations") or {}).get(FORCE)
    return _is_wanted(cluster), is_deleting(cluster), forced


def _is_behind(present: Obj, wanted: Obj) -> bool:
    fields = ("rules", "subjects")
    if any(field in wanted and present.get(field) != wanted[field] for field in fields):
        return True
    labels = meta_of(present).get("labels") or {}
    return any(labels.get(k) != v for k, v in (wanted["metadata"].get("labels") or {}).items())


def _taints_of(cluster: Obj) -> list[str]:
    """Return which of the hub's own taints a cluster has."""
    taints = (cluster.get("spec") or {}).get("taints") or []
    return [str(t.get("key")) for t in taints if t.get("key") in (UNREACHABLE, UNAVAILABLE)]


def _wanted_taints(cluster: Obj) -> list[str]:
    available = condition_status(cluster, AVAILABLE)
    if available == "True":
        return []
    return [UNAVAILABLE if available == "False" else UNREACHABLE]


def _taint(cluster: Obj) -> None:
    """Bring the hub's own taints in line with the Available condition, in place."""
    spec = cluster.setdefault("spec", {})
    kept = [t for t in spec.get("taints") or [] if t.get("key") not in (UNREACHABLE, UNAVAILABLE)]
    kept += [{"key": key, "effect": "NoSelect"} for key in _wanted_taints(cluster)]
    spec.pop("taints", None)
    if kept:
        spec["taints"] = kept
