"""The objects of a fleet as a hub has them, consistent enough that a hub finds little to do.

The samples of `tools.sample_fleet`, less what the hub makes itself (roles, root CA, Events), with
owners that exist and requests that are fresh, and with as many works and secrets as the sizing of
the design assumes: 38 objects a cluster once the hub has added its own.
"""

import datetime as dt
from collections.abc import Iterator
from itertools import islice

from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.fleet.kinds import FLEET
from hub.meta import Obj
from hub.meta.codec.json import draft, encode
from hub.registry.builtin import BUILTIN
from hub.registry.catalog import Catalog
from hub.registry.objects import index_of
from hub.store import Draft, Op, Store, Write, encode_key
from tools.sample_fleet import Fleet

_ADDON_GROUP = "addon.open-cluster-management.io/v1alpha1"
_LEFT_TO_THE_HUB = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Event")
_APPS = ("frontend", "checkout", "inventory", "billing", "ingress", "logging", "metrics")
_MORE = 3
"""Secrets and ConfigMaps beyond the samples' one Secret."""
_BATCH = 400


def fleet_objects(clusters: int) -> Iterator[Obj]:
    """Yield the objects of `clusters` clusters, and the add-ons' common owners."""
    fleet = Fleet(clusters, blobs=1.0)
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    owners: dict[str, Obj] = {}
    for number in range(clusters):
        cluster = ""
        for obj in fleet.cluster(number):
            cluster = cluster or obj["metadata"]["name"]
            if obj["kind"] in _LEFT_TO_THE_HUB or obj["metadata"]["name"] == "kube-root-ca.crt":
                continue
            if obj["kind"] == "ManagedClusterAddOn":
                owner = _owner(owners, obj)
                if owner is not None:
                    yield owner
            if obj["kind"] == "CertificateSigningRequest":
                obj["metadata"]["creationTimestamp"] = now
            if obj["kind"] == "Lease":  # by this label the hub knows a heartbeat
                obj["metadata"]["labels"] = {CLUSTER_NAME_LABEL: cluster}
            yield obj
        yield from _more(fleet, cluster)


def _owner(owners: dict[str, Obj], addon: Obj) -> Obj | None:
    """Give the add-on the owner that exists; return the owner when it is new."""
    name = addon["metadata"]["name"]
    reference = addon["metadata"]["ownerReferences"][0]
    if name in owners:
        reference["uid"] = owners[name]["metadata"]["uid"]
        return None
    owners[name] = {
        "apiVersion": _ADDON_GROUP,
        "kind": "ClusterManagementAddOn",
        "metadata": {
            "name": name,
            "uid": reference["uid"],
            "creationTimestamp": addon["metadata"]["creationTimestamp"],
            "generation": 1,
        },
        "spec": {"addOnMeta": {"displayName": name}, "installStrategy": {"type": "Manual"}},
        "status": {},
    }
    return owners[name]


def _more(fleet: Fleet, cluster: str) -> Iterator[Obj]:
    """Yield what a cluster has beyond the samples, under names of their own."""
    for app in _APPS:
        yield _named(fleet.work(cluster, app), f"{app}-more")
    for number in range(_MORE):
        yield _named(fleet.secret(cluster), f"secret-{number}")
        yield _named(fleet.config_map(cluster), f"bundle-{number}")


def _named(obj: Obj, name: str) -> Obj:
    obj["metadata"]["name"] = name
    return obj


def creations(objects: Iterator[Obj]) -> Iterator[Write]:
    """Yield the writes that make `objects`, with their uids and times as they are."""
    catalog = Catalog((*BUILTIN, *FLEET))
    for obj in objects:
        served = catalog.find_kind(obj["apiVersion"], obj["kind"])
        if served is None:
            raise ValueError(f"no kind {obj['apiVersion']} {obj['kind']}")
        kind, meta = served.kind, obj["metadata"]
        head, tail = draft(obj)
        yield Write(
            op=Op.CREATE,
            key=encode_key(kind.id, meta.get("namespace", ""), meta["name"]),
            draft=Draft(head, tail),
            index=index_of(kind, obj),
            sealed=kind.is_sealed,
        )


async def fill(store: Store, clusters: int) -> int:
    """Put a fleet into a store; return how many objects that is."""
    count, writes = 0, creations(fleet_objects(clusters))
    while batch := list(islice(writes, _BATCH)):
        await store.commit(*batch)
        count += len(batch)
    return count


def cluster_documents(clusters: int, count: int) -> list[bytes]:
    """Return the JSON of the first ManagedClusters of a fleet, about 4 KB each."""
    found = (obj for obj in fleet_objects(clusters) if obj["kind"] == "ManagedCluster")
    return [encode(obj) for obj in islice(found, count)]
