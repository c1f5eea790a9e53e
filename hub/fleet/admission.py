"""What may be written into a ManagedCluster and a ManifestWork, beyond their shape.

In-process form of OCM's admission webhooks (pkg/registration/webhook/v1, pkg/work/webhook):
acceptance and set membership need rights of their own, so that a bootstrap identity cannot accept
itself; manifests are bounded and unambiguous.
"""

from hub.auth.rbac import Authorizer
from hub.auth.user import Attributes, User
from hub.fleet.kinds import (
    CLUSTER_GROUP,
    MANAGED_CLUSTER,
    MANIFEST_WORK,
    MAX_MANIFESTS_BYTES,
    REGISTER_GROUP,
)
from hub.meta import Obj
from hub.meta.codec.json import encode
from hub.meta.errors import bad_request, forbidden
from hub.meta.timestamp import format_time
from hub.registry.engine import Engine
from hub.registry.objects import meta_of
from hub.registry.strategy import Occasion

SET_LABEL = f"{CLUSTER_GROUP}/clusterset"
DEFAULT_SET = "default"


class ClusterAdmission:
    """The rules for ManagedCluster."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def __call__(self, new: Obj, old: Obj | None, occasion: Occasion) -> None:
        """Default the set, stamp taints, ask for the rights of acceptance and set changes.

        Denial takes the same right. OCM's webhook asks nothing then, so that whoever holds the
        bootstrap token, which lies on every cluster, may cut off any other.
        """
        name = str(meta_of(new).get("name") or "")
        self._default_set(new)
        self._stamp_taints(new, old, occasion)
        is_accepted = bool((new.get("spec") or {}).get("hubAcceptsClient"))
        was_accepted = old is not None and bool((old.get("spec") or {}).get("hubAcceptsClient"))
        if is_accepted is not was_accepted:
            asked = Attributes(
                "update", REGISTER_GROUP, "*", "managedclusters", "accept", name=name
            )
            action = "accept" if is_accepted else "deny"
            self._require(occasion.user, asked, name, f"{action} ManagedCluster")
        before = set_of(old) if old is not None else ""
        after = set_of(new)
        for changed in {before, after} - {""} if before != after else ():
            asked = Attributes(
                "create", CLUSTER_GROUP, "*", "managedclustersets", "join", name=changed
            )
            self._require(occasion.user, asked, name, f'add or remove a cluster of set "{changed}"')

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


def set_of(cluster: Obj) -> str:
    """Return the set that a cluster's label names, "" when it has none."""
    return str((meta_of(cluster).get("labels") or {}).get(SET_LABEL) or "")


def admit_work(new: Obj, old: Obj | None, occasion: Occasion) -> None:
    """Refuse a work without manifests, with too many bytes, or with two manifests of one object.

    :raises ApiError: 400, as OCM's webhook
    """
    manifests = ((new.get("spec") or {}).get("workload") or {}).get("manifests")
    if not isinstance(manifests, list) or not manifests:
        raise bad_request("spec.workload.manifests: must hold at least one manifest")
    size = sum(len(encode(m)) for m in manifests)
    if size > MAX_MANIFESTS_BYTES:
        raise bad_request(
            f"spec.workload.manifests: {size} bytes exceed the limit of {MAX_MANIFESTS_BYTES}; "
            "split them over several ManifestWorks"
        )
    seen: set[tuple[str, str, str, str]] = set()
    for position, manifest in enumerate(manifests):
        where = f"spec.workload.manifests[{position}]"
        if (
            not isinstance(manifest, dict)
            or not manifest.get("kind")
            or not manifest.get("apiVersion")
        ):
            raise bad_request(f"{where}: needs apiVersion and kind")
        meta = manifest.get("metadata") or {}
        if not isinstance(meta, dict) or not meta.get("name"):
            raise bad_request(
                f"{where}.metadata.name: must be given, generateName is not supported"
            )
        found = (
            str(manifest["apiVersion"]),
            str(manifest["kind"]),
            str(meta.get("namespace") or ""),
            str(meta["name"]),
        )
        if found in seen:
            raise bad_request(
                f"{where}: the same object stands in the work twice: {'/'.join(found)}"
            )
        seen.add(found)


def install_admission(engine: Engine, authorizer: Authorizer) -> None:
    """Put the fleet's rules into the engine."""
    engine.admit(MANAGED_CLUSTER, ClusterAdmission(authorizer))
    engine.admit(MANIFEST_WORK, admit_work)
