"""JSON patch: the examples of RFC 6902, what kube-apiserver does beyond it, limits, and a model."""

import copy
import json
from collections.abc import Callable
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.meta.patch import json_patch

# appendix A of the RFC, the examples that succeed
EXAMPLES: list[tuple[Obj, list[Obj], Obj]] = [
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
    (
        {"foo": ["bar", "baz"]},
        [{"op": "add", "path": "/foo/1", "value": "qux"}],
        {"foo": ["bar", "qux", "baz"]},
    ),
    ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    ({"foo": ["bar", "qux"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar"]}),
    (
        {"baz": "qux", "foo": "bar"},
        [{"op": "replace", "path": "/baz", "value": "boo"}],
        {"baz": "boo", "foo": "bar"},
    ),
    (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    (
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    (
        {"baz": "qux", "foo": ["a", 2, "c"]},
        [
            {"op": "test", "path": "/baz", "value": "qux"},
            {"op": "test", "path": "/foo/1", "value": 2},
        ],
        {"baz": "qux", "foo": ["a", 2, "c"]},
    ),
    (
        {"foo": "bar"},
        [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
        {"foo": "bar", "child": {"grandchild": {}}},
    ),
    (
        {"foo": "bar"},
        [{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}],
        {"foo": "bar", "baz": "qux"},
    ),
    (
        {"/": 9, "~1": 10},
        [{"op": "test", "path": "/~01", "value": 10}],
        {"/": 9, "~1": 10},
    ),
    (
        {"foo": ["bar"]},
        [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}],
        {"foo": ["bar", ["abc", "def"]]},
    ),
]

# what kube-apiserver takes although the RFC does not
LAX: list[tuple[Obj, list[Obj], Obj]] = [
    ({"a": {}}, [{"op": "replace", "path": "/a/b", "value": 1}], {"a": {"b": 1}}),
    ({"a": {}}, [{"op": "copy", "from": "/x", "path": "/a/b"}], {"a": {"b": None}}),
    ({"a": 1}, [{"op": "test", "path": "/b", "value": None}], {"a": 1}),
    ({"a": 1}, [{"op": "test", "path": "/b"}], {"a": 1}),
    ({"a": 1}, [{"op": "add", "path": "/b"}], {"a": 1, "b": None}),
    ({"a": [1, 2]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1]}),
    ({"a": [1, 2]}, [{"op": "add", "path": "/a/-1", "value": 3}], {"a": [1, 2, 3]}),
    ({"a": [1, 2]}, [{"op": "replace", "path": "/a/+01", "value": 3}], {"a": [1, 3]}),
    ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
    ({"a": 1}, [{"op": "test", "path": "", "value": {"a": 1.0}}], {"a": 1}),
    ({"a": {"": 1}}, [{"op": "move", "from": "/a/", "path": "/"}], {"a": {}, "": 1}),
]


@pytest.mark.parametrize(("target", "patch", "result"), EXAMPLES + LAX)
def test_the_examples_of_the_rfc_and_kubes_additions_hold(
    target: Obj, patch: list[Obj], result: Obj
) -> None:
    assert json_patch(target, patch) == result


def refusal(target: Obj, patch: object) -> ApiError:
    with pytest.raises(ApiError) as caught:
        json_patch(target, patch)
    return caught.value


DOES_NOT_APPLY: list[tuple[Obj, list[object], str]] = [
    ({"baz": "qux"}, [{"op": "test", "path": "/baz", "value": "bar"}], "another one"),
    ({"a": True}, [{"op": "test", "path": "/a", "value": 1}], "another one"),
    ({"a": "10"}, [{"op": "test", "path": "/a", "value": 10}], "another one"),
    ({"a": [1, [2]]}, [{"op": "test", "path": "/a", "value": [1, [3]]}], "another one"),
    ({"a": {"b": None}}, [{"op": "test", "path": "/a", "value": {}}], "another one"),
    ({"foo": "bar"}, [{"op": "add", "path": "/baz/bat", "value": 1}], "nothing that could hold"),
    ({"a": "b"}, [{"op": "add", "path": "/a/0", "value": 1}], "nothing that could hold"),
    ({"a": "b"}, [{"op": "test", "path": "/a/b/c", "value": 1}], "nothing that could hold"),
    ({}, [{"op": "remove", "path": "/a"}], "no member 'a'"),
    ({}, [{"op": "move", "from": "/a", "path": "/b"}], "no member 'a'"),
    ({"a": {"b": 1}}, [{"op": "move", "from": "/a", "path": "/a/b"}], "nothing that could hold"),
    ({"a": [1]}, [{"op": "remove", "path": "/a/1"}], "out of range"),
    ({"a": [1]}, [{"op": "remove", "path": "/a/-2"}], "out of range"),
    ({"a": []}, [{"op": "remove", "path": "/a/-1"}], "out of range"),
    ({"a": [1]}, [{"op": "replace", "path": "/a/1", "value": 2}], "out of range"),
    ({"a": [1]}, [{"op": "add", "path": "/a/2", "value": 2}], "out of range"),
    ({"a": [1]}, [{"op": "add", "path": f"/a/{10**30}", "value": 2}], "no index"),
    ({"a": [1]}, [{"op": "remove", "path": "/a/-"}], "no index"),
    ({"a": [1]}, [{"op": "remove", "path": "/a/1_0"}], "no index"),
    ({"a": [1]}, [{"op": "remove", "path": "/a/\u0661"}], "no index"),
    ({"a": 1}, [{"op": "add", "path": "", "value": {}}], "begins with '/'"),
    ({"a": 1}, [{"op": "remove", "path": ""}], "begins with '/'"),
    ({"a": 1}, [{"op": "remove", "path": "x/a"}], "begins with '/'"),
    ({"a": 1}, [{"op": "add", "value": {}}], "begins with '/'"),
    ({"a": 1}, [{"op": "copy", "path": "/b"}], "'from' must be a path"),
    ({"a": 1}, [{"op": "merge", "path": "/b"}], "the operations are add, remove"),
    ({"a": 1}, [{"path": "/b"}], "the operations are add, remove"),
    ({"a": 1}, [None], "the operations are add, remove"),
    ({"a": 1}, [{"op": "replace", "path": "", "value": [1]}], "not an object"),
    ({"a": 1}, [{"op": "replace", "path": "", "value": 1}, {"op": "add", "path": "/a"}], "hold"),
]


@pytest.mark.parametrize(("target", "patch", "why"), DOES_NOT_APPLY)
def test_what_does_not_apply_is_kubes_422_and_the_reason_is_its_cause(
    target: Obj, patch: list[object], why: str
) -> None:
    error = refusal(target, patch)
    assert error.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the server rejected our request due to an error in our request",
        "reason": "Invalid",
        "details": {},
        "code": 422,
    }
    assert why in str(error.__cause__)


def test_the_reason_names_the_operation() -> None:
    patch = [{"op": "test", "path": "/a", "value": 1}, {"op": "remove", "path": "/b"}]
    cause = refusal({"a": 1}, patch).__cause__
    assert str(cause) == "operation 1, 'remove' of '/b': there is no member 'b'"


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        ({"a": 1}, "cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ("x", "cannot unmarshal string into Go value of type []handlers.jsonPatchOp"),
        ([1], "cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        ([{"op": 1}], "cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
        (
            [{"op": "add", "path": ["a"]}],
            "cannot unmarshal array into Go struct field jsonPatchOp.path of type string",
        ),
        (
            [{"op": "copy", "from": True}],
            "cannot unmarshal bool into Go struct field jsonPatchOp.from of type string",
        ),
    ],
)
def test_what_is_no_list_of_operations_is_400(patch: object, text: str) -> None:
    error = refusal({}, patch)
    assert (error.code, error.message) == (400, f"error decoding patch: json: {text}")


def test_no_operations_change_nothing() -> None:
    assert json_patch({"a": 1}, []) == {"a": 1}
    assert json_patch({"a": 1}, None) == {"a": 1}


TOO_MANY = "The allowed maximum operations in a JSON patch is 10000, got 10001"


def test_ten_thousand_operations_are_taken_and_one_more_is_413() -> None:
    patch: list[Obj] = [{"op": "add", "path": "/a/0", "value": 1}] * 10_000
    assert len(json_patch({"a": []}, patch)["a"]) == 10_000
    error = refusal({"a": []}, [*patch, patch[0]])
    assert (error.code, error.reason, error.message) == (
        413,
        "RequestEntityTooLarge",
        f"Request entity is too large: {TOO_MANY}",
    )


def test_items_may_not_be_pushed_along_without_end() -> None:
    step: Obj = {"op": "add", "path": "/a/0", "value": 1}
    error = refusal({"a": [0] * 100_000}, [step] * 5000)
    assert (error.code, "would be moved" in str(error.__cause__)) == (422, True)
    taking: Obj = {"op": "remove", "path": "/a/0"}
    assert refusal({"a": [0] * 100_000}, [taking] * 5000).code == 422
    last: Obj = {"op": "remove", "path": "/a/-1"}
    assert len(json_patch({"a": [0] * 100_000}, [last] * 5000)["a"]) == 95_000


def test_copies_may_add_three_mebibytes_and_no_more() -> None:
    target = {"a": "x" * (1024 * 1024 - 2)}
    copies = [{"op": "copy", "from": "/a", "path": f"/{n}"} for n in range(3)]
    assert len(json_patch(target, copies)) == 4
    error = refusal(target, [*copies, {"op": "copy", "from": "/b", "path": "/c"}])
    assert error.code == 422
    assert "more than 3145728" in str(error.__cause__)


def test_copies_that_double_are_stopped_early() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 5000
    assert refusal({"a": ["x" * 100]}, doubling).code == 422


def test_a_result_too_deep_to_walk_is_refused() -> None:
    step: Obj = {"op": "add", "path": "/a" * 200, "value": {}}
    for _ in range(100):
        step["value"] = {"a": step["value"]}
    deep: Obj = {}
    for _ in range(200):
        deep = {"a": deep}
    assert refusal(deep, [step]).code == 400
    nesting = [{"op": "copy", "from": "/a", "path": f"{'/a' * 2**n}"} for n in range(14)]
    assert refusal({"a": {}}, nesting).code in (400, 422)


# ------------------------------------------------------------------ a model

Change: TypeAlias = Callable[[object, str], object]
TOKENS = st.sampled_from(["a", "b", "~", "/", "", "0", "1", "2", "-"])
SCALARS = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["x", "y"])
VALUES = st.recursive(
    SCALARS,
    lambda v: st.dictionaries(TOKENS, v, max_size=3) | st.lists(v, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(TOKENS, VALUES, max_size=4)


class DoesNotApplyError(Exception):
    pass


def places(value: object, path: str = "") -> list[str]:
    """Every pointer into a value, and beside it."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, below in value.items():
            found += places(below, f"{path}/{key.replace('~', '~0').replace('/', '~1')}")
        found.append(f"{path}/new")
    elif isinstance(value, list):
        for index, below in enumerate(value):
            found += places(below, f"{path}/{index}")
        found += [f"{path}/{len(value)}", f"{path}/-"]
    return found


def model_read(value: object, tokens: list[str]) -> object:
    """The RFC's evaluation of a pointer, recursively; a missing member reads as null."""
    if not tokens:
        return value
    token, *rest = tokens
    if isinstance(value, dict):
        if rest and token not in value:
            raise DoesNotApplyError
        return model_read(value.get(token), rest)
    if isinstance(value, list) and token.isdigit() and int(token) < len(value):
        return model_read(value[int(token)], rest)
    raise DoesNotApplyError


def model_write(value: object, tokens: list[str], change: Change) -> object:
    """A new value in which `change(parent, token)` has been made at a pointer."""
    token, *rest = tokens
    if not rest:
        if not isinstance(value, dict | list):
            raise DoesNotApplyError
        return change(value, token)
    below = model_write(model_read(value, [token]), rest, change)
    if isinstance(value, dict):
        return {**value, token: below}
    assert isinstance(value, list)
    return [below if i == int(token) else item for i, item in enumerate(value)]


def model_add(new: object) -> Change:
    def change(parent: object, token: str) -> object:
        if isinstance(parent, dict):
            return {**parent, token: new}
        assert isinstance(parent, list)
        at = len(parent) if token == "-" else int(token) if token.isdigit() else 99
        if at > len(parent):
            raise DoesNotApplyError
        return [*parent[:at], new, *parent[at:]]

    return change


def model_remove(parent: object, token: str) -> object:
    if isinstance(parent, dict) and token in parent:
        return {k: v for k, v in parent.items() if k != token}
    if isinstance(parent, list) and token.isdigit() and int(token) < len(parent):
        return [item for i, item in enumerate(parent) if i != int(token)]
    raise DoesNotApplyError


def model_replace(new: object) -> Change:
    def change(parent: object, token: str) -> object:
        if isinstance(parent, dict):
            return {**parent, token: new}
        return model_add(new)(model_remove(parent, token), token)

    return change


def model(target: object, patch: list[Obj]) -> object:
    for op in patch:
        at, come_from = (
            [t.replace("~1", "/").replace("~0", "~") for t in op[k].split("/")[1:]]
            for k in ("path", "from")
        )
        if op["op"] == "add":
            target = model_write(target, at, model_add(op["value"]))
        elif op["op"] == "remove":
            target = model_write(target, at, model_remove)
        elif op["op"] == "replace":
            target = model_write(target, at, model_replace(op["value"]))
        elif op["op"] == "copy":
            target = model_write(target, at, model_add(model_read(target, come_from)))
        elif op["op"] == "move":
            moved = model_read(target, come_from)
            without = model_write(target, come_from, model_remove)
            target = model_write(without, at, model_add(moved))
        elif json.dumps(model_read(target, at), sort_keys=True) != json.dumps(
            op["value"], sort_keys=True
        ):
            raise DoesNotApplyError
    return target


@given(OBJECTS, st.data())
def test_patching_agrees_with_a_model_that_copies_everything_and_changes_no_input(
    target: Obj, data: st.DataObject
) -> None:
    pointers = st.sampled_from(places(target))
    operation = st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
            "path": pointers,
            "from": pointers,
            "value": VALUES,
        }
    )
    patch = data.draw(st.lists(operation, max_size=5))
    before = copy.deepcopy((target, patch))
    try:
        expected = model(target, patch)
    except DoesNotApplyError:
        assert refusal(target, patch).code == 422
    else:
        found = json_patch(target, patch)
        assert json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True)
    assert (target, patch) == before


@given(OBJECTS, VALUES)
def test_the_result_shares_nothing_with_what_went_in(target: Obj, value: object) -> None:
    patch = [
        {"op": "add", "path": "/new", "value": value},
        {"op": "copy", "from": "/new", "path": "/again"},
        {"op": "add", "path": "/list", "value": [[]]},
        {"op": "add", "path": "/list/0/-", "value": 1},
    ]
    before = copy.deepcopy((target, patch))
    first = json_patch(target, patch)
    assert json_patch(target, patch) == first
    assert (target, patch) == before
