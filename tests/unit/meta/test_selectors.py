"""Label and field selectors against apimachinery's texts and a naive model."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.meta.errors import ApiError
from hub.meta.selectors import (
    NOTHING,
    FieldRequirement,
    LabelSelector,
    parse_field_selector,
    parse_label_selector,
    structured_label_selector,
)

INTEGER_WANTED = (
    """values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer"""
)
LABELS = {"env": "dev", "tier": "", "size": "12", "a.b/c": "x"}


@pytest.mark.parametrize(
    ("text", "is_match"),
    [
        ("", True),
        ("  ", True),
        ("env=dev", True),
        ("env==dev", True),
        ("env = dev , size", True),
        ("env!=dev", False),
        ("none!=dev", True),
        ("env in (dev,test)", True),
        ("env in (test)", False),
        ("env notin (test)", True),
        ("none notin (x)", True),
        ("none in (x)", False),
        ("tier", True),
        ("!tier", False),
        ("!none", True),
        ("none", False),
        ("tier=", True),
        ("env=", False),
        ("tier in ()", True),
        ("tier in (,a)", True),
        ("env in (a,,b)", False),
        ("a.b/c=x", True),
        ("size>11", True),
        ("size>12", False),
        ("size<13", True),
        ("env>1", False),
        ("none<1", False),
        ("env=dev,size=13", False),
        ("in=x", False),
        ("!in", True),
        ("env in (in,notin,dev)", True),
    ],
)
def test_a_label_selector_selects_what_apimachinery_would(text: str, is_match: bool) -> None:
    assert parse_label_selector(text).matches(LABELS) is is_match


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("=", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        (
            "a>x",
            "unable to parse requirement: " + INTEGER_WANTED,
        ),
    ],
)
def test_a_broken_label_selector_is_explained_in_apimachinerys_words(
    text: str, message: str
) -> None:
    with pytest.raises(ApiError) as caught:
        parse_label_selector(text)
    assert (caught.value.code, caught.value.message) == (400, message)


def test_a_bad_key_and_a_bad_value_are_named() -> None:
    with pytest.raises(ApiError, match=r'requirement: <nil>: Invalid value: "-a": name part must'):
        parse_label_selector("-a=b")
    with pytest.raises(ApiError, match=r'requirement: values\[0\]\[a\]: Invalid value: "b/c": a v'):
        parse_label_selector("a=b/c")


@pytest.mark.parametrize(
    "text", ["", "a", "!a", "a=b", "a!=b", "a>1", "a<1", "a in (b,c)", "a notin (b)", "a=b,c,d=e"]
)
def test_a_label_selector_prints_as_it_reads(text: str) -> None:
    assert str(parse_label_selector(text)) == text


KEYS = st.sampled_from(["a", "b", "c", "in", "notin"])
VALUES = st.sampled_from(["", "x", "y", "in", "1", "2"])
SETS = st.lists(VALUES, min_size=1, max_size=3)


def holds(term: tuple[str, str, list[str]], labels: dict[str, str]) -> bool:
    key, operator, values = term
    if operator in {"=", "==", "in"}:
        return labels.get(key) in values
    if operator in {"!=", "notin"}:
        return labels.get(key) not in values
    return (key in labels) is (operator == "exists")


def written(term: tuple[str, str, list[str]]) -> str:
    key, operator, values = term
    if operator in {"in", "notin"}:
        return f"{key} {operator} ({', '.join(values)})"
    return {"exists": key, "absent": f"!{key}"}.get(operator, f"{key} {operator}{values[0]}")


TERMS = st.one_of(
    st.tuples(KEYS, st.sampled_from(["in", "notin"]), SETS),
    st.tuples(
        KEYS, st.sampled_from(["=", "==", "!=", "exists", "absent"]), SETS.map(lambda v: v[:1])
    ),
)


@given(st.lists(TERMS, max_size=4), st.dictionaries(KEYS, VALUES))
def test_label_selectors_agree_with_a_naive_model(
    terms: list[tuple[str, str, list[str]]], labels: dict[str, str]
) -> None:
    selector = parse_label_selector(",".join(written(t) for t in terms))
    assert selector.matches(labels) is all(holds(t, labels) for t in terms)
    assert selector.is_empty is (not terms)


@given(st.text(alphabet="ab=!(),<> in-./\x00é", max_size=20))
def test_any_text_is_a_label_selector_or_a_400(text: str) -> None:
    with suppress(ApiError):
        selector = parse_label_selector(text)
        assert parse_label_selector(str(selector)) == selector


def test_a_structured_selector_means_what_its_text_means() -> None:
    structured = structured_label_selector(
        {
            "matchLabels": {"env": "dev"},
            "matchExpressions": [
                {"key": "size", "operator": "In", "values": ["12", "13"]},
                {"key": "old", "operator": "DoesNotExist"},
                {"key": "tier", "operator": "Exists"},
                {"key": "zone", "operator": "NotIn", "values": ["z"]},
            ],
        }
    )
    assert structured == parse_label_selector("env=dev,!old,size in (12,13),tier,zone notin (z)")
    assert structured.matches(LABELS)


def test_an_absent_structured_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert structured_label_selector(None) is NOTHING
    assert not NOTHING.matches({})
    assert not NOTHING.is_empty
    assert structured_label_selector({}) == LabelSelector()
    assert structured_label_selector({"matchLabels": None, "matchExpressions": None}).is_empty


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (
            {"matchExpressions": [{"key": "a", "operator": "Like"}]},
            '"Like" is not a valid label selector operator',
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]},
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
            'values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
        ),
    ],
)
def test_a_broken_structured_selector_is_refused(selector: dict[str, object], message: str) -> None:
    with pytest.raises(ApiError, match=re.escape(message)):
        structured_label_selector(selector)


def test_a_field_selector_tells_what_it_pins() -> None:
    selector = parse_field_selector("metadata.name=a,type!=b,status.phase==")
    assert selector.requirements == (
        FieldRequirement("metadata.name", "a"),
        FieldRequirement("status.phase", ""),
        FieldRequirement("type", "b", is_equal=False),
    )
    assert selector.pinned("metadata.name") == "a"
    assert selector.pinned("status.phase") == ""
    assert selector.pinned("type") is None
    assert selector.matches({"metadata.name": "a", "type": "c"})
    assert not selector.matches({"metadata.name": "a", "type": "b"})
    assert not selector.matches({"metadata.name": "b", "type": "c"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
        (r"a=b\n", r"invalid field selector: invalid escape sequence: \n"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_a_broken_field_selector_is_explained(text: str, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse_field_selector(text)
    assert (caught.value.code, caught.value.message) == (400, message)


def test_empty_terms_of_a_field_selector_are_skipped() -> None:
    assert parse_field_selector("").is_empty
    assert parse_field_selector(",a=b,,").requirements == (FieldRequirement("a", "b"),)


@given(
    st.lists(
        st.builds(
            FieldRequirement,
            st.from_regex(r"[a-z]{1,4}(\.[a-z]{1,4})?", fullmatch=True),
            st.text(alphabet="ab\\,=!\n", max_size=5),
            st.booleans(),
        ),
        max_size=3,
    )
)
def test_a_field_selector_reads_back_what_it_prints(terms: list[FieldRequirement]) -> None:
    text = ",".join(str(t) for t in terms)
    assert sorted(parse_field_selector(text).requirements, key=str) == sorted(terms, key=str)


@given(st.text(alphabet="a.=!,\\", max_size=15))
def test_any_text_is_a_field_selector_or_a_400(text: str) -> None:
    with suppress(ApiError):
        selector = parse_field_selector(text)
        assert parse_field_selector(str(selector)) == selector
