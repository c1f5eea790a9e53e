"""Owner references and finalizers that mean nothing are refused in apimachinery's words."""

import pytest

from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.meta.objectmeta import check_types
from hub.meta.owners import finalizer_name_causes, owner_causes

FIELD = "metadata.ownerReferences"
GOOD: Obj = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "1"}


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"apiVersion": ""}, ".apiVersion", 'Invalid value: "": version must not be empty'),
        ({"apiVersion": "a/"}, ".apiVersion", 'Invalid value: "a/": version must not be empty'),
        ({"kind": ""}, ".kind", 'Invalid value: "": kind must not be empty'),
        ({"name": None}, ".name", 'Invalid value: "": name must not be empty'),
        ({"uid": ""}, ".uid", 'Invalid value: "": uid must not be empty'),
    ],
)
def test_a_reference_needs_all_its_parts(change: Obj, field: str, message: str) -> None:
    (cause,) = owner_causes([GOOD, {**GOOD, **change}], FIELD)
    assert (cause.field, cause.message) == (f"{FIELD}{field}", message)
    assert cause.reason == "FieldValueInvalid"


def test_an_event_owns_nothing() -> None:
    (cause,) = owner_causes([{**GOOD, "apiVersion": "v1", "kind": "Event"}], FIELD)
    assert "/v1, Kind=Event is disallowed from being an owner" in cause.message
    assert owner_causes([{**GOOD, "kind": "Event"}], FIELD) == []


def test_one_reference_at_most_is_the_controllers() -> None:
    one, two = {**GOOD, "controller": True}, {**GOOD, "name": "e", "controller": True}
    assert owner_causes([one, GOOD], FIELD) == []
    (cause,) = owner_causes([one, GOOD, two], FIELD)
    assert cause.message.endswith(
        'Only one reference can have Controller set to true. Found "true" in references for '
        "Deployment/d and Deployment/e"
    )


def test_finalizers_are_qualified_names_and_name_one_policy() -> None:
    assert finalizer_name_causes(["orphan", "example.com/x"], "f") == []
    (cause,) = finalizer_name_causes(["a b"], "f")
    assert cause.message.startswith('Invalid value: "a b": name part must consist of')
    (cause,) = finalizer_name_causes(["orphan", "foregroundDeletion"], "f")
    assert "finalizer orphan and foregroundDeletion cannot be both set" in cause.message


@pytest.mark.parametrize("change", [{"uid": 1}, {"controller": "true"}, {"apiVersion": {}}])
def test_the_parts_of_a_reference_have_their_types(change: Obj) -> None:
    with pytest.raises(ApiError, match="cannot unmarshal"):
        check_types({"metadata": {"ownerReferences": [{**GOOD, **change}]}})
    check_types({"metadata": {"ownerReferences": [{**GOOD, "controller": None}]}})
