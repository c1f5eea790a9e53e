"""What a field of a built-in kind may hold."""

import pytest

from hub.meta import Obj
from hub.registry.shape import INT32, Misfit, conform
from hub.registry.tabled import shape_of

ACCOUNT, NAMESPACE, SECRET = ("v1", "ServiceAccount"), ("v1", "Namespace"), ("v1", "Secret")
ROLE = ("rbac.authorization.k8s.io/v1", "ClusterRole")
LEASE = ("coordination.k8s.io/v1", "Lease")
EVENT = ("v1", "Event")
HALF = "2026-01-01T00:00:00.5Z"
LOWER = "2026-01-01t00:00:00.500000z"
REQUEST = ("certificates.k8s.io/v1", "CertificateSigningRequest")


def nested(path: str, value: object) -> Obj:
    """``a.b[].c`` with a value as the object it is in."""
    found = value
    for name in reversed(path.split(".")):
        plain = name.removesuffix("[]")
        found = {plain: [found] if plain != name else found}
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("kind", "path", "value", "got", "wanted"),
    [
        (ACCOUNT, "automountServiceAccountToken", 7, "number", "boolean"),
        (ACCOUNT, "secrets[].name", 7, "number", "string"),
        (LEASE, "spec.leaseDurationSeconds", 5_000_000_000, "number 5000000000", "int32"),
        (LEASE, "spec.leaseDurationSeconds", True, "bool", "int32"),
        (LEASE, "spec.leaseDurationSeconds", 1.5, "number", "int32"),
        (LEASE, "spec.renewTime", "yesterday", "string yesterday", "MicroTime"),
        (LEASE, "spec.renewTime", HALF, f"string {HALF}", "MicroTime"),
        (LEASE, "spec.renewTime", LOWER, f"string {LOWER}", "MicroTime"),
        (EVENT, "firstTimestamp", "2026-13-01", "string 2026-13-01", "Time"),
        (EVENT, "series.count", "3", "string", "int32"),
        (SECRET, "data.a", "c2VjcmV0!", "string", "[]uint8"),
        (REQUEST, "spec.extra.a[]", 1, "number", "string"),
        (ROLE, "aggregationRule.clusterRoleSelectors[].matchLabels.a", 1, "number", "string"),
        (NAMESPACE, "status.conditions[].lastTransitionTime", 5, "number", "Time"),
    ],
)
def test_what_a_typed_client_could_not_read_is_found(
    kind: tuple[str, str], path: str, value: object, got: str, wanted: str
) -> None:
    """A secret's value is never shown."""
    where = path.replace("[]", "[0]")
    assert conform(nested(path, value), shape_of(*kind))[1] == [Misfit(where, got, wanted)]


def test_what_fits_is_left_as_it_is() -> None:
    event: Obj = {
        "metadata": {"name": "e", "labels": 7},
        "firstTimestamp": "2026-01-01T00:00:00.5Z",
        "eventTime": "2026-01-01T00:00:00.500000+01:00",
        "lastTimestamp": None,
        "series": {"count": -(1 << 31)},
        "involvedObject": {"name": "a", "unknown": {"x": 1}},
    }
    assert conform(event, shape_of(*EVENT)) == (event, [])
    secret: Obj = {"data": {"a": "eA==\n", "b": ""}, "type": "Opaque"}
    assert conform(secret, shape_of(*SECRET)) == (secret, [])


def test_a_null_goes_where_go_leaves_nothing() -> None:
    """A pointer that is nil is left out, a time that is none is printed as null."""
    lease: Obj = {"spec": {"renewTime": None, "holderIdentity": None}}
    assert conform(lease, shape_of(*LEASE)) == ({"spec": {}}, [])
    event: Obj = {"firstTimestamp": None, "series": None}
    assert conform(event, shape_of(*EVENT)) == ({"firstTimestamp": None}, [])


def test_a_null_element_is_the_zero_value_as_in_go() -> None:
    """Whether that will do is validation's business."""
    request: Obj = {
        "spec": {"usages": [None], "extra": {"a": None}},
        "status": {"conditions": [None]},
    }
    wanted: Obj = {"spec": {"usages": [""], "extra": {"a": []}}, "status": {"conditions": [{}]}}
    assert conform(request, shape_of(*REQUEST)) == (wanted, [])
    numbers = conform(
        {"n": [None, 1], "b": [None], "f": [None]}, {"n": [int], "b": [bool], "f": [INT32]}
    )
    assert numbers == ({"n": [0, 1], "b": [False], "f": [0]}, [])
    secret = conform({"data": {"a": None}}, shape_of(*SECRET))
    assert secret == ({"data": {"a": ""}}, [])
