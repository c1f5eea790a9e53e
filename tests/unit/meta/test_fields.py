"""Telling a change of one field from any other."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.meta import Obj
from hub.meta.fields import differs_only_in

LEASE: Obj = {
    "metadata": {"name": "l", "resourceVersion": "1", "managedFields": [1], "labels": {"a": "b"}},
    "spec": {"holderIdentity": "h", "renewTime": "t1"},
}


def changed(path: str, value: object) -> Obj:
    obj = copy.deepcopy(LEASE)
    *parents, last = path.split(".")
    at = obj
    for parent in parents:
        at = at.setdefault(parent, {})
    at[last] = value
    return obj


@pytest.mark.parametrize(
    "obj",
    [
        LEASE,
        changed("spec.renewTime", "t2"),
        changed("spec.renewTime", {"any": "thing"}),
        changed("metadata.resourceVersion", "2"),
        changed("metadata.managedFields", []),
        {"metadata": {"name": "l", "labels": {"a": "b"}}, "spec": {"holderIdentity": "h"}},
    ],
)
def test_a_renewal_differs_only_in_its_time(obj: Obj) -> None:
    assert differs_only_in(obj, LEASE, "spec.renewTime")
    assert differs_only_in(LEASE, obj, "spec.renewTime")


@pytest.mark.parametrize(
    "obj",
    [
        changed("spec.holderIdentity", "other"),
        changed("spec.leaseDurationSeconds", 60),
        changed("metadata.labels", {}),
        changed("metadata.generation", 2),
        changed("metadata", None),
        changed("spec", None),
        changed("spec", []),
        changed("status", {}),
        {"metadata": LEASE["metadata"]},
        {"spec": LEASE["spec"]},
    ],
)
def test_any_other_change_is_seen(obj: Obj) -> None:
    assert not differs_only_in(obj, LEASE, "spec.renewTime")
    assert not differs_only_in(LEASE, obj, "spec.renewTime")


OBJECTS = st.dictionaries(
    st.sampled_from("ab"),
    st.integers(0, 1) | st.dictionaries(st.sampled_from("ab"), st.integers(0, 1)),
)


@given(OBJECTS, OBJECTS)
def test_it_agrees_with_taking_the_field_out_of_both(new: Obj, old: Obj) -> None:
    def without(obj: Obj) -> Obj:
        inner = obj.get("a")
        return (
            obj | {"a": {k: v for k, v in inner.items() if k != "b"}}
            if isinstance(inner, dict)
            else obj
        )

    assert differs_only_in(new, old, "a.b") is (without(new) == without(old))
