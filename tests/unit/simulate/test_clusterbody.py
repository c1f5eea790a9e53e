"""The registration agent's bodies, held against what a real agent sent."""

import datetime as dt

from hub.meta import Obj
from hub.meta.protobuf import decode_envelope, encode_envelope
from tools.simulate.clusterbody import (
    ACCEPTED,
    available_event,
    new_csr,
    renewed,
    status_patch,
)
from tools.simulate.identity import new_request

_NOW = dt.datetime(2026, 11, 30, 18, 45, 46, 292185, tzinfo=dt.UTC)


def _cluster(*conditions: Obj) -> Obj:
    return {
        "metadata": {"name": "c1", "uid": "u", "resourceVersion": "486"},
        "spec": {"hubAcceptsClient": True},
        "status": {"conditions": list(conditions)},
    }


def _accepted() -> Obj:
    return {
        "type": ACCEPTED,
        "status": "True",
        "reason": "HubClusterAdminAccepted",
        "lastTransitionTime": "2026-11-30T18:45:45Z",
    }


def test_nothing_is_reported_before_acceptance() -> None:
    assert status_patch(_cluster(), now="x") is None
    denied = {**_accepted(), "status": "False"}
    assert status_patch(_cluster(denied), now="x") is None


def test_an_accepted_cluster_reports_joined_and_available_and_keeps_the_hubs_condition() -> None:
    patch = status_patch(_cluster(_accepted()), now="2026-11-30T18:45:46Z")
    assert patch is not None
    assert patch["metadata"] == {"resourceVersion": "486", "uid": "u"}
    conditions = patch["status"]["conditions"]
    assert conditions[0] == _accepted()
    assert [c["type"] for c in conditions[1:]] == [
        "ManagedClusterJoined",
        "ManagedClusterConditionAvailable",
    ]


def test_what_was_reported_is_not_reported_again() -> None:
    cluster = _cluster(_accepted())
    patch = status_patch(cluster, now="2026-11-30T18:45:46Z")
    assert patch is not None
    cluster["status"] = patch["status"]
    assert status_patch(cluster, now="2026-11-30T19:00:00Z") is None


def test_a_cluster_the_hub_calls_unknown_is_reported_available_again() -> None:
    cluster = _cluster(_accepted())
    patch = status_patch(cluster, now="1")
    assert patch is not None
    cluster["status"] = patch["status"]
    cluster["status"]["conditions"][-1] |= {"status": "Unknown", "lastTransitionTime": "2"}
    again = status_patch(cluster, now="3")
    assert again is not None
    assert again["status"]["conditions"][-1]["lastTransitionTime"] == "3"


def test_csr_lease_and_event_survive_the_way_through_protobuf() -> None:
    lease = {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": "managed-cluster-lease", "resourceVersion": "7"},
        "spec": {"holderIdentity": "managed-cluster-lease", "leaseDurationSeconds": 60},
    }
    cluster = _cluster(_accepted())
    for obj in (
        new_csr("c1", new_request("c1", "abcde")),
        renewed(lease, now=_NOW),
        available_event(cluster, now=_NOW),
    ):
        assert _is_subset(obj, decode_envelope(encode_envelope(obj)))


def _is_subset(part: object, whole: object) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and _is_subset(value, whole[key]) for key, value in part.items()
        )
    return part == whole
