"""The bodies the registration agent sends: cluster, CSR, status, lease, event. Pure.

Shapes and texts follow OCM's agent as recorded; what differs per cluster is the argument.
"""

import base64
import datetime as dt

from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.meta import Obj
from tools.simulate.condition import condition, is_true, set_conditions
from tools.simulate.identity import KeyRequest
from tools.simulate.resource import CLUSTERS, CSRS, EVENTS

SIGNER = "kubernetes.io/kube-apiserver-client"
LEASE_NAME = "managed-cluster-lease"
ACCEPTED = "HubAcceptedManagedCluster"
JOINED = "ManagedClusterJoined"
AVAILABLE = "ManagedClusterConditionAvailable"
CLOCK_SYNCED = "ManagedClusterConditionClockSynced"

_CONTROLLER = "klusterlet-agent"
USAGES = ["digital signature", "key encipherment", "client auth"]
_VERSION = {"kubernetes": "v1.33.4"}
_CAPACITY = {"cpu": "48", "memory": "188742Mi", "pods": "750"}
_ALLOCATABLE = {"cpu": "45500m", "memory": "179218Mi", "pods": "750"}


def new_cluster(name: str) -> Obj:
    """Return the ManagedCluster an agent creates for itself, not accepted."""
    return {
        "kind": "ManagedCluster",
        "apiVersion": CLUSTERS.api_version,
        "metadata": {"name": name},
        "spec": {"hubAcceptsClient": False},
        "status": {"conditions": None, "version": {}},
    }


def new_csr(cluster: str, request: KeyRequest) -> Obj:
    """Return the CSR for an agent's first certificate."""
    return {
        "kind": "CertificateSigningRequest",
        "apiVersion": CSRS.api_version,
        "metadata": {"generateName": f"{cluster}-", "labels": {CLUSTER_NAME_LABEL: cluster}},
        "spec": {
            "request": base64.b64encode(request.request_pem.encode()).decode(),
            "signerName": SIGNER,
            "usages": list(USAGES),
        },
    }


def status_patch(cluster: Obj, *, now: str) -> Obj | None:
    """Return the status patch an agent's view of `cluster` calls for, None when all is said."""
    status: Obj = cluster.get("status") or {}
    if not is_true(cluster, ACCEPTED):
        return None
    existing = status.get("conditions") or []
    wanted = [
        condition(JOINED, "True", reason="ManagedClusterJoined", message="Managed cluster joined"),
        condition(
            AVAILABLE,
            "True",
            reason="ManagedClusterAvailable",
            message="Managed cluster is available",
        ),
    ]
    fresh = {
        "conditions": set_conditions(existing, wanted, now=now),
        "version": _VERSION,
        "capacity": _CAPACITY,
        "allocatable": _ALLOCATABLE,
    }
    if all(status.get(key) == value for key, value in fresh.items()):
        return None
    return {"metadata": preconditions(cluster), "status": fresh}


def preconditions(obj: Obj) -> Obj:
    """Return the metadata OCM's patcher puts into every patch."""
    metadata: Obj = obj["metadata"]
    return {"resourceVersion": metadata["resourceVersion"], "uid": metadata["uid"]}


def renewed(lease: Obj, *, now: dt.datetime) -> Obj:
    """Return `lease` as read, with a new renewTime."""
    spec = {**(lease.get("spec") or {}), "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    return {**lease, "spec": spec}


def available_event(cluster: Obj, *, now: dt.datetime) -> Obj:
    """Return the event an agent reports when its cluster has become available."""
    name = cluster["metadata"]["name"]
    nanoseconds = int(now.timestamp() * 1_000_000) * 1_000
    return {
        "kind": "Event",
        "apiVersion": EVENTS.api_version,
        "metadata": {"name": f"{name}.{nanoseconds:x}", "namespace": name},
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": _CONTROLLER,
        "reportingInstance": f"{_CONTROLLER}-{name}",
        "action": "Available",
        "reason": "Available",
        "regarding": {
            "kind": "ManagedCluster",
            "namespace": name,
            "name": name,
            "uid": cluster["metadata"]["uid"],
            "apiVersion": CLUSTERS.api_version,
            "resourceVersion": cluster["metadata"]["resourceVersion"],
        },
        "note": f"cluster {name} was imported and is managed by the hub; its API server answers",
        "type": "Normal",
    }
