"""Whether rules cover rules, against what the rules allow."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.auth import coverage
from hub.auth.coverage import TooManyGrantsError, compact, describe, uncovered
from hub.auth.rule import Rule, parse_rules
from hub.auth.user import Attributes
from hub.meta import Obj
from tests.unit.auth.rbac_support import role, rule


def rules(*given: Obj) -> tuple[Rule, ...]:
    return parse_rules(role(*given))


def test_the_example_holds() -> None:
    failed, tried = doctest.testmod(coverage)
    assert (failed, tried) == (0, 3)


@pytest.mark.parametrize(
    ("owned", "wanted"),
    [
        ([rule("get", "core", "pods")], rule("get", "core", "pods")),
        ([rule("*", "*", "*")], rule("get list", "core apps", "pods deployments/scale", names="a")),
        ([rule("get", "core", "*/scale")], rule("get", "core", "pods/scale")),
        ([rule("get", "core", "pods")], rule("get", "core", "pods", names="a b")),
        ([rule("get", "core", "pods", names="a b")], rule("get", "core", "pods", names="b")),
        # several rules together, each for a part
        (
            [rule("get", "core", "pods secrets"), rule("list", "core", "pods secrets")],
            rule("get list", "core", "pods secrets"),
        ),
        ([rule("get", urls="/a/*")], rule("get", urls="/a/b /a/c*")),
        ([rule("get", urls="*")], rule("get", urls="/a *")),
        ([], rule("", "core", "pods")),
        ([], rule("get")),
    ],
)
def test_rules_that_are_held_are_covered(owned: list[Obj], wanted: Obj) -> None:
    assert uncovered(rules(*owned), rules(wanted)) == []


@pytest.mark.parametrize(
    ("owned", "wanted", "lacking"),
    [
        ([], rule("get", "core", "pods"), ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}']),
        (
            [rule("get", "core", "pods")],
            rule("*", "core", "pods"),
            ['{APIGroups:[""], Resources:["pods"], Verbs:["*"]}'],
        ),
        (
            [rule("get", "core", "pods secrets")],
            rule("get", "core", "*"),
            ['{APIGroups:[""], Resources:["*"], Verbs:["get"]}'],
        ),
        (
            [rule("get", "core", "pods")],
            rule("get", "core", "pods/log"),
            ['{APIGroups:[""], Resources:["pods/log"], Verbs:["get"]}'],
        ),
        (
            [rule("get", "core", "pods/log")],
            rule("get", "core", "*/log"),
            ['{APIGroups:[""], Resources:["*/log"], Verbs:["get"]}'],
        ),
        # a right on names is none on all
        (
            [rule("get", "core", "pods", names="a")],
            rule("get", "core", "pods"),
            ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
        ),
        (
            [rule("get", "core", "pods", names="a")],
            rule("get", "core", "pods", names="a b"),
            ['{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}'],
        ),
        (
            [rule("get", urls="/a/*")],
            rule("get", urls="/a /a/*"),
            ['{NonResourceURLs:["/a"], Verbs:["get"]}'],
        ),
        (
            [rule("*", "*", "*")],
            rule("get", urls="/a"),
            ['{NonResourceURLs:["/a"], Verbs:["get"]}'],
        ),
        # names are no help for URLs
        (
            [rule("get", names="x", urls="/a")],
            rule("get", urls="/a"),
            ['{NonResourceURLs:["/a"], Verbs:["get"]}'],
        ),
    ],
)
def test_what_is_not_held_is_told(owned: list[Obj], wanted: Obj, lacking: list[str]) -> None:
    assert [describe(r) for r in uncovered(rules(*owned), rules(wanted))] == lacking


def test_the_verbs_of_one_resource_and_name_are_put_together() -> None:
    wanted = rules(
        rule("get", "core", "pods secrets"),
        rule("list watch", "core", "pods"),
        rule("get list", "core", "pods", names="a b"),
        rule("get post", urls="/a"),
    )
    shown = sorted(describe(r) for r in compact(uncovered([], wanted)))
    assert shown == [
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "list"]}',
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get" "list"]}',
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list" "watch"]}',
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
        '{NonResourceURLs:["/a"], Verbs:["get"]}',
        '{NonResourceURLs:["/a"], Verbs:["post"]}',
    ]


def test_too_many_grants_are_not_compared_unless_held_as_a_whole() -> None:
    many = " ".join(f"x{number}" for number in range(400))
    wanted = rules(rule(many, many, many))
    with pytest.raises(TooManyGrantsError, match="10000"):
        uncovered(rules(rule("get", "core", "pods")), wanted)
    assert uncovered(rules(rule("*", "*", "*")), wanted) == []


VERBS, GROUPS = ["get", "list", "*"], ["", "apps", "*"]
RESOURCES = ["pods", "pods/log", "*", "*/log"]
NAMES = ["x", "y"]


def _lists(values: list[str], *, least: int = 0) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), min_size=least, max_size=2, unique=True).map(tuple)


some_rules = st.lists(
    st.builds(
        Rule,
        _lists(VERBS, least=1),
        _lists(GROUPS, least=1),
        _lists(RESOURCES, least=1),
        _lists(NAMES),
        st.just(()),
    ),
    max_size=3,
)
questions = [
    Attributes(verb, group, "v1", resource, subresource, name=name)
    for verb in ("get", "list", "delete")
    for group in ("", "apps", "other")
    for resource in ("pods", "secrets")
    for subresource in ("", "log", "exec")
    for name in ("", "x", "y", "z")
]


@given(owned=some_rules, wanted=some_rules)
def test_who_holds_rules_may_do_all_that_they_allow(owned: list[Rule], wanted: list[Rule]) -> None:
    if uncovered(owned, wanted):
        return
    for asked in questions:
        if any(rule.is_allowing(asked) for rule in wanted):
            assert any(rule.is_allowing(asked) for rule in owned), asked


@given(owned=some_rules, wanted=some_rules)
def test_what_lacks_and_what_is_held_cover_the_whole(owned: list[Rule], wanted: list[Rule]) -> None:
    lacking = uncovered(owned, wanted)
    assert uncovered([*owned, *lacking], wanted) == []
    assert uncovered([*owned, *compact(lacking)], wanted) == []
    assert uncovered(wanted, wanted) == []
