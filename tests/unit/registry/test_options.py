"""Options of list and watch requests: a table of what is understood and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.meta.errors import ApiError
from hub.registry.options import (
    NOW,
    ListOptions,
    decode_continue,
    encode_continue,
    is_true,
    parse_list_options,
    parse_revision,
)
from tests.unit.registry.given import CATALOG

SERVED = CATALOG.find("", "v1", "configmaps")


def parse(query: dict[str, str], *, is_watch: bool = False) -> ListOptions:
    assert SERVED is not None
    return parse_list_options(query, SERVED, is_watch=is_watch)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, False),
        ("false", False),
        ("False", False),
        ("0", False),
        ("", True),
        ("true", True),
        ("1", True),
        ("yes", True),
    ],
)
def test_booleans_are_read_as_go_reads_them(text: str | None, *, expected: bool) -> None:
    assert is_true(text) is expected


@pytest.mark.parametrize("text", ["abc", "-1", "1.5", "+1", " 1", "\u0661", "0x1"])
def test_a_revision_is_a_plain_decimal(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_revision(text)
    assert refused.value.code == 400
    assert (parse_revision(""), parse_revision("0"), parse_revision("17")) == (None, 0, 17)


# rv, match, continue -> list: k8s.io/apimachinery internalversion/validation
@pytest.mark.parametrize(
    ("revision", "match", "code"),
    [
        ("", "", 0),
        ("0", "", 0),
        ("5", "", 0),
        ("", "NotOlderThan", 422),
        ("0", "NotOlderThan", 0),
        ("5", "NotOlderThan", 0),
        ("", "Exact", 422),
        ("0", "Exact", 422),
        ("5", "Exact", 0),
        ("5", "exact", 422),
        ("5", "Nearly", 422),
        ("x", "Exact", 400),
    ],
)
def test_how_a_list_may_name_its_revision(revision: str, match: str, code: int) -> None:
    query = {"resourceVersion": revision, "resourceVersionMatch": match}
    if not code:
        found = parse(query)
        assert (found.revision, found.revision_match) == (parse_revision(revision), match)
        return
    with pytest.raises(ApiError) as refused:
        parse(query)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("initial", "match", "bookmarks", "is_watch", "code"),
    [
        ("true", "NotOlderThan", "true", True, 0),
        ("false", "NotOlderThan", "true", True, 0),
        ("false", "NotOlderThan", "", True, 0),
        ("true", "NotOlderThan", "false", True, 422),
        ("true", "", "true", True, 422),
        ("true", "Exact", "true", True, 422),
        ("true", "NotOlderThan", "true", False, 422),
        ("false", "NotOlderThan", "true", False, 422),
    ],
)
def test_when_initial_events_may_be_asked_for(
    initial: str, match: str, bookmarks: str, *, is_watch: bool, code: int
) -> None:
    query = {"sendInitialEvents": initial, "resourceVersionMatch": match}
    if bookmarks:
        query["allowWatchBookmarks"] = bookmarks
    if not code:
        assert parse(query, is_watch=is_watch).wants_initial_events is (initial == "true")
        return
    with pytest.raises(ApiError) as refused:
        parse(query, is_watch=is_watch)
    assert refused.value.code == code


def test_a_watch_takes_no_match_without_initial_events() -> None:
    with pytest.raises(ApiError) as refused:
        parse({"resourceVersion": "5", "resourceVersionMatch": "NotOlderThan"}, is_watch=True)
    assert "forbidden for watch" in refused.value.message


def test_a_token_comes_without_a_revision() -> None:
    token = encode_continue(5, "a")
    with pytest.raises(ApiError) as refused:
        parse({"continue": token, "resourceVersion": "5"})
    assert refused.value.code == 400
    assert parse({"continue": token, "resourceVersion": "0"}).continue_token == token


@pytest.mark.parametrize(("text", "limit"), [("", 0), ("0", 0), ("-7", 0), ("500", 500)])
def test_a_limit_below_one_is_none(text: str, limit: int) -> None:
    assert parse({"limit": text}).limit == limit


def test_a_name_is_pinned_by_selector_or_path() -> None:
    assert parse({"fieldSelector": "metadata.name=a"}).pinned_name == "a"
    assert parse({"fieldSelector": "metadata.name!=a"}).pinned_name == ""
    assert SERVED is not None
    query = {"fieldSelector": "metadata.name=a"}
    both = parse_list_options(query, SERVED, is_watch=True, path_name="b")
    assert both.pinned_name == "b"
    assert not both.fields.matches({"metadata.name": "a"})
    assert not both.fields.matches({"metadata.name": "b"})


@given(st.integers(min_value=1, max_value=2**63), st.text(min_size=1))
def test_a_token_reads_back(revision: int, start: str) -> None:
    token = encode_continue(revision, start)
    assert decode_continue(token) == (revision, start)
    assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_a_token_has_the_form_of_kube_apiservers() -> None:
    recorded = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6ODM1LCJzdGFydCI6Im0zXHUwMDAwIn0"
    assert encode_continue(835, "m3") == recorded
    assert decode_continue(recorded) == (835, "m3")
    now = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoibTNcdTAwMDAifQ"
    assert encode_continue(NOW, "m3") == now
    assert decode_continue(now) == (0, "m3")


# rv, match, limit -> the one revision to show
@pytest.mark.parametrize(
    ("revision", "match", "limit", "exact"),
    [
        ("", "", "", 0),
        ("", "", "5", 0),
        ("0", "", "5", 0),
        ("7", "", "", 0),
        ("7", "", "5", 7),
        ("7", "NotOlderThan", "5", 0),
        ("7", "Exact", "", 7),
        ("7", "Exact", "5", 7),
    ],
)
def test_which_revision_a_list_must_show(revision: str, match: str, limit: str, exact: int) -> None:
    query = {"resourceVersion": revision, "resourceVersionMatch": match, "limit": limit}
    assert parse(query).exact_revision == exact


def test_a_match_is_forbidden_with_a_token_and_every_fault_is_told() -> None:
    query = {"continue": encode_continue(5, "a"), "resourceVersionMatch": "Nearly"}
    with pytest.raises(ApiError) as refused:
        parse(query)
    assert [cause.message for cause in refused.value.causes] == [
        "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        "Forbidden: resourceVersionMatch is forbidden when continue is provided",
        'Unsupported value: "Nearly": supported values: "Exact", "NotOlderThan", ""',
    ]


@given(st.text(max_size=60))
def test_any_other_text_is_no_token(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        decode_continue(text)
    assert refused.value.code == 400


@pytest.mark.parametrize("text", ["1" + "0" * 25, "9" * 5000, "1_0", " 5", "five"])
def test_numbers_that_do_not_fit_64_bits_are_refused(text: str) -> None:
    with pytest.raises(ApiError) as revision:
        parse_revision(text)
    assert (revision.value.code, len(revision.value.message) < 200) == (400, True)
    for query in ({"limit": text}, {"timeoutSeconds": text}):
        with pytest.raises(ApiError) as refused:
            parse(query, is_watch="timeoutSeconds" in query)
        assert refused.value.code == 400
    assert parse({"timeoutSeconds": str(2**63 - 1)}, is_watch=True).timeout_s == 2**63 - 1
