"""What a scale reads from an object: the causes are those of kube-apiserver 1.36.2."""

import pytest

from hub.meta import Obj
from hub.registry.crd.replicas import replica_causes
from hub.registry.kind import ScalePaths

PATHS = ScalePaths(("spec", "replicas"), ("status", "replicas"), ("status", "selector"))


def told(obj: Obj) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in replica_causes(obj, PATHS)]


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"spec": {}},
        {"spec": None},
        {"spec": {"replicas": 0}},
        {"spec": {"replicas": 2147483647}, "status": {"replicas": 1, "selector": "a=b"}},
    ],
)
def test_what_a_scale_can_show_is_no_fault(obj: Obj) -> None:
    assert told(obj) == []


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"replicas": -1}, "-1: should be a non-negative integer"),
        ({"replicas": 3000000000}, "3000000000: should be less than or equal to 2147483647"),
        ({"replicas": "x"}, "0: .spec.replicas accessor error: x is of the type string, expected"),
        ({"replicas": 1.5}, "0: .spec.replicas accessor error: 1.5 is of the type float64, "),
        ({"replicas": None}, "0: .spec.replicas accessor error: <nil> is of the type <nil>, "),
        ({"replicas": True}, "0: .spec.replicas accessor error: true is of the type bool, "),
        (
            "s",
            "0: .spec.replicas accessor error: s is of the type string, expected map[string]i",
        ),
    ],
)
def test_replicas_must_be_a_number_that_a_scale_holds(spec: object, text: str) -> None:
    (found,) = told({"spec": spec})
    assert found.startswith(f".spec.replicas: Invalid value: {text}")


def test_a_status_is_looked_at_as_well() -> None:
    assert told({"status": {"replicas": -1, "selector": 7}}) == [
        ".status.replicas: Invalid value: -1: should be a non-negative integer",
        (
            '.status.selector: Invalid value: "": .status.selector accessor error: 7 is of the type'
            " int64, expected string"
        ),
    ]
