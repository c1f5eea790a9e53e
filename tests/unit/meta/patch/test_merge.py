"""JSON merge patch: the examples of RFC 7396 and its laws."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.meta.patch import merge_patch

# appendix A of the RFC, the cases whose patch and target are objects
EXAMPLES: list[tuple[Obj, Obj, Obj]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "result"), EXAMPLES)
def test_the_examples_of_the_rfc_hold(target: Obj, patch: Obj, result: Obj) -> None:
    assert merge_patch(target, patch) == result


@pytest.mark.parametrize(
    ("patch", "kind"),
    [
        ([1], "array"),
        ("a", "string"),
        (None, "null"),
        (1, "number"),
        (1.5, "number"),
        (True, "bool"),
    ],
)
def test_a_patch_that_is_no_object_is_refused(patch: object, kind: str) -> None:
    with pytest.raises(
        ApiError, match=f"error decoding patch: json: cannot unmarshal {kind} "
    ) as e:
        merge_patch({}, patch)
    assert e.value.code == 400


def test_a_patch_too_deep_to_walk_is_refused() -> None:
    patch: Obj = {}
    for _ in range(5000):
        patch = {"a": patch}
    with pytest.raises(ApiError, match="exceeded max depth"):
        merge_patch({}, patch)


SCALARS = st.none() | st.integers(0, 3) | st.text("xy", max_size=2)
VALUES = st.recursive(
    SCALARS,
    lambda v: st.dictionaries(st.sampled_from("abc"), v, max_size=3) | st.lists(v, max_size=2),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


def naive(target: object, patch: object) -> object:
    """The RFC's pseudocode, word for word."""
    if not isinstance(patch, dict):
        return patch
    result = copy.deepcopy(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            if name in result:
                del result[name]
        else:
            result[name] = naive(result.get(name), value)
    return result


@given(OBJECTS, OBJECTS)
def test_merging_agrees_with_the_rfcs_pseudocode_and_changes_no_input(
    target: Obj, patch: Obj
) -> None:
    before = copy.deepcopy((target, patch))
    assert merge_patch(target, patch) == naive(target, patch)
    assert (target, patch) == before


@given(OBJECTS, OBJECTS)
def test_merging_twice_is_merging_once(target: Obj, patch: Obj) -> None:
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once
