"""Strategic merge patch: what each directive does, the order of merged lists, and the refusals."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.meta.patch import PatchSchema, find_schema, merge_patch, strategic_patch

ITEM = PatchSchema({"items": "name", "set": ""})
SCHEMA = PatchSchema({"items": "name", "set": ""}, below={"items": ITEM, "sub": ITEM})


def patched(target: Obj, patch: Obj) -> Obj:
    before = copy.deepcopy((target, patch))
    found = strategic_patch(target, patch, SCHEMA)
    assert (target, patch) == before
    return found


def names(*found: str, **rest: str) -> list[Obj]:
    return [{"name": name, **rest} for name in found]


# ------------------------------------------------------------------ objects


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": None}, {}),
        ({"a": 1}, {"b": None}, {"a": 1}),
        ({"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"x": 1, "y": 2}}),
        ({"a": {"x": 1}}, {"a": {"x": None}}, {"a": {}}),
        ({"a": 1}, {"a": {"x": None, "y": 2}}, {"a": {"y": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": [1]}, {"a": "x"}, {"a": "x"}),
        ({}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
    ],
)
def test_without_directives_objects_merge_and_unnamed_lists_are_replaced(
    target: Obj, patch: Obj, result: Obj
) -> None:
    assert patched(target, patch) == result


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        (
            {"a": {"x": 1}, "b": 1},
            {"a": {"$patch": "replace", "y": 2, "z": None}},
            {"a": {"y": 2}, "b": 1},
        ),
        ({"a": {"x": 1}, "b": 1}, {"a": {"$patch": "delete"}}, {"b": 1}),
        ({"a": 1}, {"$patch": "replace", "b": 2}, {"b": 2}),
        ({"a": 1}, {"$patch": "delete", "b": 2}, {}),
        ({}, {"a": {"$patch": "replace", "y": 2}}, {"a": {"y": 2}}),
        ({}, {"a": {"$patch": "delete"}}, {}),
        ({}, {"a": {"b": {"$patch": "delete"}, "c": 1}}, {"a": {"c": 1}}),
        ({"a": {"x": 1}}, {"a": {"$patch": "replace", "b": {"$patch": "delete"}}}, {"a": {}}),
    ],
)
def test_an_object_is_replaced_or_deleted_by_directive(
    target: Obj, patch: Obj, result: Obj
) -> None:
    assert patched(target, patch) == result


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ({"$retainKeys": ["a", "b"], "b": 2}, {"a": 1, "b": 2}),
        ({"$retainKeys": [], "a": None}, {}),
        (
            {"$retainKeys": ["set"], "$setElementOrder/set": ["y", "x"]},
            {"set": ["y", "x"]},
        ),
        ({"$retainKeys": ["set"], "$deleteFromPrimitiveList/set": ["x"]}, {"set": ["y"]}),
    ],
)
def test_retain_keys_drops_every_other_member(patch: Obj, result: Obj) -> None:
    assert patched({"a": 1, "set": ["x", "y"], "z": 3}, patch) == result


# ------------------------------------------------------------------ lists


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        # what the patch brings comes first, what is known keeps its place
        (names("a"), names("b"), names("b", "a")),
        (names("a", "b"), names("b", v="1"), [{"name": "a"}, {"name": "b", "v": "1"}]),
        (names("a", "b", "c"), names("c", "a"), names("b", "c", "a")),
        (names("a", v="1"), [{"name": "a", "v": None}], names("a")),
        (names("a", "b"), [{"name": "a", "$patch": "delete"}], names("b")),
        (names("a", "a", "b"), [{"name": "a", "$patch": "delete"}], names("b")),
        (names("a"), [{"name": "x", "$patch": "delete"}], names("a")),
        (names("a", "b"), [{"$patch": "replace"}, *names("c")], names("c")),
        (names("a", "b"), [{"$patch": "replace"}], []),
        (names("a", "a"), names("a", v="1"), [*names("a", v="1"), *names("a")]),
        (None, [{"name": "x", "$patch": "delete"}, *names("c", v="1")], names("c", v="1")),
        ([], [], []),
        (names("a"), [], names("a")),
        (
            [{"name": "a", "items": names("x"), "set": ["p"]}],
            [{"name": "a", "items": names("y"), "set": ["q"]}],
            [{"name": "a", "items": names("y", "x"), "set": ["q", "p"]}],
        ),
        (
            [],
            [{"name": "a", "$setElementOrder/set": ["q"], "set": ["q"], "n": None}],
            [{"name": "a", "set": ["q"]}],
        ),
    ],
)
def test_items_with_a_merge_key_merge_by_it(
    target: list[Obj] | None, patch: list[Obj], result: list[Obj]
) -> None:
    whole = {} if target is None else {"items": target}
    assert patched(whole, {"items": patch})["items"] == result


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        (["a", "b"], {"set": ["c"]}, ["c", "a", "b"]),
        (["a", "b"], {"set": ["b"]}, ["a", "b"]),
        (["a", "b"], {"$deleteFromPrimitiveList/set": ["a", "x"]}, ["b"]),
        (["a", "b"], {"$deleteFromPrimitiveList/set": ["a"], "set": ["c"]}, ["c", "b"]),
        (["a"], {"$deleteFromPrimitiveList/set": ["a"], "set": ["a"]}, []),
        (["a"], {"$setElementOrder/set": ["a", "b"], "set": ["b"]}, ["a", "b"]),
        (None, {"$deleteFromPrimitiveList/set": ["a"]}, None),
        (None, {"$setElementOrder/set": ["a"]}, None),
        ("x", {"set": ["a"]}, ["a"]),
        (["a"], {"set": None}, None),
        (["a"], {"set": None, "$setElementOrder/set": ["a"]}, None),
    ],
)
def test_a_set_of_texts_is_joined_and_diminished(
    target: object, patch: Obj, result: object
) -> None:
    whole = {} if target is None else {"set": target}
    assert patched(whole, patch).get("set") == result


@pytest.mark.parametrize(
    ("target", "order", "patch", "result"),
    [
        ("abc", "cab", None, "cab"),
        ("ab", "abc", "c", "abc"),
        ("ax", "bac", "bc", "bacx"),
        ("xay", "ab", "b", "xaby"),
        ("abcd", "ca", None, "bcad"),
        ("a", "", None, "a"),
        (None, "ab", "ab", "ab"),
        ("abd", "bc", "cA", "bdc"),  # A: a is deleted; c slides into its room
        ("ad", "bc", "bcA", "dbc"),
    ],
)
def test_an_order_holds_for_what_it_names_and_the_rest_stays_in_place(
    target: str | None, order: str, patch: str | None, result: str
) -> None:
    change: Obj = {"$setElementOrder/items": names(*order)}
    if patch is not None:
        change["items"] = [
            {"name": n.lower(), "$patch": "delete"} if n.isupper() else {"name": n} for n in patch
        ]
    found = patched({} if target is None else {"items": names(*target)}, change)["items"]
    assert "".join(item["name"] for item in found) == result


def test_an_order_of_a_list_that_is_replaced_is_of_no_account() -> None:
    order = {"$setElementOrder/rules": [{"a": 1}]}
    assert patched({"rules": [1, 2]}, order) == {"rules": [1, 2]}
    assert patched({"rules": [1, 2]}, {**order, "rules": [2]}) == {"rules": [2]}
    assert patched({}, order) == {}


# ------------------------------------------------------------------ refusals

NO_KEY = 'map: {"a":1} does not contain declared merge key: name'


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"$patch": "merge"}, 'unknown patch type: merge in map: {"$patch":"merge"}'),
        ({"sub": {"$patch": 1}}, "unknown patch type: 1 in map"),
        ({"items": [{"$patch": "merge", "name": "a"}]}, "merging lists cannot yet be specified"),
        ({"items": [{"$patch": "x", "name": "a"}]}, "unknown patch type: x in map"),
        ({"items": [{"a": 1}]}, NO_KEY),
        ({"items": [{"$patch": "delete"}]}, "does not contain declared merge key: name"),
        ({"items": ["x"]}, 'list element types are not identical: "x" is no object'),
        ({"set": [{"name": "x"}]}, "cannot merge lists without merge key"),
        ({"$retainKeys": "a"}, "invalid patch format of retainKeys"),
        ({"$retainKeys": [{}]}, "invalid patch format of retainKeys"),
        ({"$retainKeys": ["a"], "b": 1}, "invalid patch format of retainKeys"),
        ({"$setElementOrder/set": "a"}, "invalid patch format of setElementOrder list"),
        ({"$setElementOrder": ["a"]}, "invalid patch format of setElementOrder list"),
        ({"$setElementOrderX/set": ["a"]}, "invalid patch format of setElementOrder list"),
        ({"$setElementOrder/items": [{"a": 1}]}, NO_KEY),
        ({"$setElementOrder/items": ["a"]}, "list element types are not identical"),
        ({"$deleteFromPrimitiveList": ["a"]}, "invalid patch format of primitive list"),
        ({"$deleteFromPrimitiveList/set": None}, "invalid patch format of primitive list"),
        (
            {"$setElementOrder/set": ["a", "b"], "set": ["b", "a"]},
            'The order in patch list:\n["b","a"]\n doesn\'t match $setElementOrder list:\n',
        ),
        ({"$setElementOrder/set": ["a"], "set": ["a", "c"]}, "The order in patch list"),
    ],
)
def test_directives_that_make_no_sense_are_400(patch: Obj, message: str) -> None:
    target = {"items": names("a"), "set": ["a"], "sub": {}}
    with pytest.raises(ApiError) as caught:
        strategic_patch(target, patch, SCHEMA)
    assert caught.value.code == 400
    assert message in caught.value.message


@pytest.mark.parametrize("name", ["set", "items"])
def test_lists_of_lists_are_kubes_422(name: str) -> None:
    with pytest.raises(ApiError) as caught:
        strategic_patch({name: []}, {name: [["a"]]}, SCHEMA)
    assert (caught.value.code, str(caught.value.__cause__)) == (
        422,
        "lists of lists are not supported",
    )


def test_more_items_than_can_be_merged_at_once_are_413() -> None:
    many = [str(n) for n in range(20_001)]
    assert len(strategic_patch({"set": many}, {"set": many[:20_000]}, SCHEMA)["set"]) == 20_001
    assert strategic_patch({}, {"rules": many}, SCHEMA) == {"rules": many}
    for patch in ({"set": many}, {"$setElementOrder/set": many}):
        with pytest.raises(ApiError, match="at most 20000 items into set") as caught:
            strategic_patch({}, patch, SCHEMA)
        assert caught.value.code == 413


def test_a_patch_that_is_no_object_or_too_deep_is_400() -> None:
    with pytest.raises(ApiError, match="cannot unmarshal array into Go value") as caught:
        strategic_patch({}, [1], SCHEMA)
    assert caught.value.code == 400
    deep: Obj = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(ApiError, match="exceeded max depth"):
        strategic_patch({}, deep, SCHEMA)


# ------------------------------------------------------------------ the kinds served


def reference(uid: str) -> Obj:
    return {"uid": uid, "kind": "ConfigMap", "name": uid, "apiVersion": "v1"}


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("v1", "ConfigMap"), ("v1", "Namespace"), ("v1", "ServiceAccount"), ("events.k8s.io/v1", "E")],
)
def test_owners_and_finalizers_of_every_kind_merge(api_version: str, kind: str) -> None:
    target = {"metadata": {"ownerReferences": [reference("1")], "finalizers": ["a"]}}
    patch = {
        "metadata": {
            "ownerReferences": [{"uid": "1", "controller": True}, reference("2")],
            "finalizers": ["b"],
            "managedFields": [{}],
        }
    }
    assert strategic_patch(target, patch, find_schema(api_version, kind))["metadata"] == {
        "ownerReferences": [{**reference("1"), "controller": True}, reference("2")],
        "finalizers": ["b", "a"],
        "managedFields": [{}],
    }


def test_the_secrets_of_an_account_merge_and_its_pull_secrets_are_replaced() -> None:
    schema = find_schema("v1", "ServiceAccount")
    target = {"secrets": names("a"), "imagePullSecrets": names("a")}
    patch = {"secrets": names("b"), "imagePullSecrets": names("b")}
    assert strategic_patch(target, patch, schema) == {
        "secrets": names("b", "a"),
        "imagePullSecrets": names("b"),
    }


@pytest.mark.parametrize(
    ("api_version", "kind", "field", "is_merged"),
    [
        ("v1", "Namespace", "status", True),
        ("certificates.k8s.io/v1", "CertificateSigningRequest", "status", False),
    ],
)
def test_conditions_merge_in_namespaces_only(
    api_version: str, kind: str, field: str, *, is_merged: bool
) -> None:
    one, two = {"type": "A", "status": "True"}, {"type": "B", "status": "True"}
    schema = find_schema(api_version, kind)
    found = strategic_patch({field: {"conditions": [one]}}, {field: {"conditions": [two]}}, schema)
    assert found[field]["conditions"] == ([two, one] if is_merged else [two])


def test_the_rules_of_a_role_are_replaced() -> None:
    schema = find_schema("rbac.authorization.k8s.io/v1", "Role")
    target = {"rules": [{"verbs": ["get"]}]}
    assert strategic_patch(target, {"rules": [{"verbs": ["list"]}]}, schema) == {
        "rules": [{"verbs": ["list"]}]
    }


# ------------------------------------------------------------------ laws

SCALARS = st.integers(0, 3) | st.text("xy", max_size=2)
VALUES = st.recursive(
    SCALARS,
    lambda v: st.dictionaries(st.sampled_from("abc"), v, max_size=3) | st.lists(v, max_size=2),
    max_leaves=12,
)
PLAIN = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)
LETTERS = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)


@given(PLAIN, PLAIN)
def test_without_nulls_and_merged_lists_it_is_a_merge_patch(target: Obj, patch: Obj) -> None:
    assert patched(target, patch) == merge_patch(target, patch)


@given(LETTERS, LETTERS, LETTERS)
def test_a_patch_as_kubectl_makes_it_leads_to_what_was_wanted(
    live: list[str], wanted: list[str], dropped: list[str]
) -> None:
    """Applied: all of `wanted` in its order; `dropped` was applied before; others are kept."""
    gone = [n for n in dropped if n not in wanted]
    change: Obj = {
        "$setElementOrder/items": names(*wanted),
        "items": [{"name": n, "v": "1"} for n in wanted]
        + [{"name": n, "$patch": "delete"} for n in gone],
        "$setElementOrder/set": wanted,
        "set": wanted,
        "$deleteFromPrimitiveList/set": gone,
    }
    found = patched({"items": names(*live), "set": live}, change)
    others = [n for n in live if n not in wanted and n not in gone]
    for result in ([item["name"] for item in found["items"]], found["set"]):
        assert [n for n in result if n in wanted] == wanted
        assert [n for n in result if n not in wanted] == others
    assert all(item.get("v") == "1" for item in found["items"] if item["name"] in wanted)
    again = patched(found, change)
    assert again == found
