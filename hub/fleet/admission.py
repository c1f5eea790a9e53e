"""What may be written into a ManagedCluster and a ManagedClusterSetBinding, beyond their shape.

In-process form of OCM's admission webhooks (pkg/registration/webhook): acceptance, set membership
and binding need rights of their own, so that a bootstrap identity cannot accept itself. The rules
for works are `hub.fleet.work_admission`'s.
"""

from urllib.parse import urlsplit

from hub.auth.rbac import Authorizer
from hub.auth.user import Attributes, User
from hub.fleet.detachment import FORCE
from hub.fleet.kinds import (
    CLUSTER_GROUP,
    MANAGED_CLUSTER,
    MANAGED_CLUSTER_SET_BINDING,
    MANIFEST_WORK,
    MANIFEST_WORK_REPLICA_SET,
    REGISTER_GROUP,
)
from hub.fleet.work_admission import WorkAdmission, admit_replica_set
from hub.meta import Obj
from hub.meta.errors import Resource, bad_request, forbidden
from hub.meta.timestamp import format_time
from hub.registry.builtin import NAMESPACE
from hub.registry.engine import Engine
from hub.registry.objects import is_deleting, meta_of
from hub.registry.strategy import Occasion

SET_LABEL = f"{CLUSTER_GROUP}/clusterset"
DEFAULT_SET = "default"


class ClusterAdmission:
    """The rules for ManagedCluster."""

    def __init__(self, engine: Engine, authorizer: Authorizer) -> None:
        self._engine, self._authorizer = engine, authorizer

    def __call__(self, new: Obj, old: Obj | None, occasion: Occasion) -> None:
        """Default the set, stamp taints, ask for the rights of acceptance and set changes.

        Denial takes the same right. OCM's webhook asks nothing then, so that whoever holds the
        bootstrap token, which lies on every cluster, may cut off any other. So does the annotation
        `FORCE`, which set in advance would turn a later detachment into an abandonment.
        """
        name = str(meta_of(new).get("name") or "")
        self._default_set(new)
        self._stamp_taints(new, old, occasion)
        _check_addresses(new)
        is_accepted = bool((new.get("spec") or {}).get("hubAcceptsClient"))
        was_accepted = old is not None and bool((old.get("spec") or {}).get("hubAcceptsClient"))
        right = Attributes("update", REGISTER_GROUP, "*", "managedclusters", "accept", name=name)
        if is_accepted is not was_accepted:
            action = "accept" if is_accepted else "deny"
            if is_accepted:
                self._refuse_ending(name)
            self._require(occasion.user, right, name, f"{action} ManagedCluster")
        if _force_of(new) not in ("", _force_of(old)):
            action = (
                f"set the annotation {FORCE}: this takes the right to update "
                f"managedclusters/accept in {REGISTER_GROUP}"
            )
            self._require(occasion.user, right, name, action)
        before = set_of(old) if old is not None else ""
        after = set_of(new)
        for changed in {before, after} - {""} if before != after else ():
            asked = Attributes(
                "create", CLUSTER_GROUP, "*", "managedclustersets", "join", name=changed
            )
            self._require(occasion.user, asked, name, f'add or remove a cluster of set "{changed}"')

    def _refuse_ending(self, name: str) -> None:
        """Refuse to accept a cluster whose namespace is on its way out, with all that is in it."""
        namespace = self._engine.peek(NAMESPACE, name)
        if namespace is not None and is_deleting(namespace):
            raise forbidden(
                Resource(CLUSTER_GROUP, "managedclusters/accept"),
                name,
                f'cluster namespace "{name}" is terminating',
            )

    def _require(self, user: User, asked: Attributes, name: str, action: str) -> None:
        if not self._authorizer.authorize(user, asked).allowed:
            raise forbidden(
                MANAGED_CLUSTER.resource, name, f'user "{user.name}" is not allowed to {action}'
            )

    @staticmethod
    def _default_set(obj: Obj) -> None:
        meta = meta_of(obj)
        if not (meta.get("labels") or {}).get(SET_LABEL):
            meta["labels"] = {**(meta.get("labels") or {}), SET_LABEL: DEFAULT_SET}

    @staticmethod
    def _stamp_taints(new: Obj, old: Obj | None, occasion: Occasion) -> None:
        before = {
            (t.get("key"), t.get("value"), t.get("effect")): t
            for t in ((old or {}).get("spec") or {}).get("taints") or []
        }
        now = format_time(occasion.clock.now())
        for taint in (new.get("spec") or {}).get("taints") or []:
            known = before.get((taint.get("key"), taint.get("value"), taint.get("effect")))
            taint["timeAdded"] = known.get("timeAdded", now) if known else now


def _force_of(cluster: Obj | None) -> str:
    """Return what a cluster says of detachment by force, "" for nothing."""
    annotations = meta_of(cluster).get("annotations") if cluster is not None else None
    return str((annotations or {}).get(FORCE) or "")


def _check_addresses(cluster: Obj) -> None:
    """Refuse client configs whose URL no client could use."""
    configs = (cluster.get("spec") or {}).get("managedClusterClientConfigs") or []
    for position, config in enumerate(configs):
        url = str(config.get("url") or "")
        if not _is_https(url):
            raise bad_request(
                f"spec.managedClusterClientConfigs[{position}].url: {url!r} must be https://HOST"
            )


def _is_https(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme == "https" and bool(parts.hostname)
    except ValueError:  # half an IPv6 address
        return False


def set_of(cluster: Obj) -> str:
    """Return the set that a cluster's label names, "" when it has none."""
    return str((meta_of(cluster).get("labels") or {}).get(SET_LABEL) or "")


class BindingAdmission:
    """The rules for ManagedClusterSetBinding (pkg/registration/webhook/v1beta2)."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def __call__(self, new: Obj, old: Obj | None, occasion: Occasion) -> None:
        """Demand the name of the set for the binding, and of its maker the right to bind it."""
        name = str(meta_of(new).get("name") or "")
        wanted = str((new.get("spec") or {}).get("clusterSet") or "")
        if name != wanted:
            raise bad_request(
                f"metadata.name: must be {wanted!r}, the set in spec.clusterSet, not {name!r}"
            )
        if old is not None:
            return
        asked = Attributes("create", CLUSTER_GROUP, "*", "managedclustersets", "bind", name=name)
        if not self._authorizer.authorize(occasion.user, asked).allowed:
            raise forbidden(
                Resource(CLUSTER_GROUP, "managedclustersets/bind"),
                name,
                f'user "{occasion.user.name}" is not allowed to bind cluster set "{name}"',
            )


def install_admission(engine: Engine, authorizer: Authorizer) -> None:
    """Put the fleet's rules into the engine."""
    engine.admit(MANAGED_CLUSTER, ClusterAdmission(engine, authorizer))
    engine.review(MANAGED_CLUSTER_SET_BINDING, BindingAdmission(authorizer))
    engine.review(MANIFEST_WORK, WorkAdmission(authorizer))
    engine.review(MANIFEST_WORK_REPLICA_SET, admit_replica_set)
