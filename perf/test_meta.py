"""What one request costs in hub.meta: the paths every agent takes every few seconds.

`make perf` runs it; the checks beside each measurement keep a wrong answer from looking fast.
"""

from pytest_benchmark.fixture import BenchmarkFixture

from hub.meta import Obj
from hub.meta.codec import json
from hub.meta.patch import merge_patch
from hub.meta.protobuf import decode_envelope, encode_envelope
from hub.meta.selectors import parse_label_selector

LEASE: Obj = {
    "kind": "Lease",
    "apiVersion": "coordination.k8s.io/v1",
    "metadata": {
        "name": "managed-cluster-lease",
        "namespace": "cluster-0001",
        "uid": "7f0cbb1c-2f4e-4f0f-8a43-0a5a6a9f9d1e",
        "resourceVersion": "123456",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {"leaseDurationSeconds": 60, "renewTime": "2026-01-01T00:00:10.000000Z"},
}


def _cluster(conditions: int) -> Obj:
    return {
        "kind": "ManagedCluster",
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "metadata": {"name": "cluster-0001", "labels": {f"label-{n}": "value" for n in range(20)}},
        "status": {
            "conditions": [
                {"type": f"Type{n}", "status": "True", "reason": "Measured", "message": "x" * 80}
                for n in range(conditions)
            ]
        },
    }


def test_decoding_a_protobuf_lease(benchmark: BenchmarkFixture) -> None:
    body = encode_envelope(LEASE)
    assert benchmark(decode_envelope, body)["spec"] == LEASE["spec"]


def test_encoding_a_protobuf_lease(benchmark: BenchmarkFixture) -> None:
    assert decode_envelope(benchmark(encode_envelope, LEASE))["metadata"] == LEASE["metadata"]


def test_decoding_a_json_cluster(benchmark: BenchmarkFixture) -> None:
    cluster = _cluster(conditions=20)
    assert benchmark(json.decode, json.encode(cluster)) == cluster


def test_merging_a_status_patch(benchmark: BenchmarkFixture) -> None:
    old, new = _cluster(conditions=20), _cluster(conditions=21)
    assert benchmark(merge_patch, old, {"status": new["status"]}) == new


def test_matching_a_label_selector(benchmark: BenchmarkFixture) -> None:
    labels = _cluster(conditions=0)["metadata"]["labels"]
    selector = parse_label_selector("label-3=value,label-19 in (a,value),!absent")
    assert benchmark(selector.matches, labels)
