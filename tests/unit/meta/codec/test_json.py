"""JSON bodies and drafts."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.meta import Obj
from hub.meta.codec import json
from hub.meta.errors import ApiError
from hub.store.api import Draft, Revision

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=4), v, max_size=3),
    max_leaves=8,
)
METADATA = st.dictionaries(
    st.sampled_from(["name", "namespace", "uid", "resourceVersion", "labels", "generation", "x"]),
    VALUES,
)


def test_json_is_compact_utf8_in_the_order_given() -> None:
    assert json.encode({"b": [1, "é"], "a": None}) == '{"b":[1,"é"],"a":null}'.encode()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "Input data was truncated"),
        (b"{", "Input data was truncated"),
        (b'{"a":1}x', "trailing characters"),
        (b'{"a":NaN}', "invalid character"),
        (b'{"a":1e999}', "Number out of range"),
        (b'{"a":"\xff"}', "Invalid UTF-8"),
        (b"[]", "the body must be an object, not array"),
        (b'"a"', "the body must be an object, not string"),
        (b"null", "the body must be an object, not null"),
        (b"true", "the body must be an object, not bool"),
        (b"1", "the body must be an object, not number"),
        (b"[" * 3000, "exceeded max depth"),
    ],
)
def test_what_is_no_json_object_is_a_400(data: bytes, problem: str) -> None:
    with pytest.raises(ApiError, match=problem) as caught:
        json.decode(data)
    assert caught.value.code == 400
    assert caught.value.message.startswith("couldn't get version/kind; json parse error: ")


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


def test_nesting_is_bounded_exactly() -> None:
    json.decode(nested(json.MAX_DEPTH))
    with pytest.raises(ApiError, match="exceeded max depth"):
        json.decode(nested(json.MAX_DEPTH + 1))


def test_many_brackets_side_by_side_are_not_deep() -> None:
    wide = b'{"a":[' + b",".join([b'{"b":["{"]}'] * 1000) + b"]}"
    assert len(json.decode(wide)["a"]) == 1000


def test_text_that_utf8_cannot_carry_is_a_400_on_the_way_out() -> None:
    with pytest.raises(ApiError, match="cannot be written as JSON"):
        json.encode({"a": "\ud800"})


def test_a_number_of_any_size_survives() -> None:
    assert json.encode(json.decode(b'{"a":18446744073709551616}')) == b'{"a":18446744073709551616}'


@given(st.binary(max_size=64))
def test_any_bytes_are_an_object_or_a_400(data: bytes) -> None:
    with suppress(ApiError):
        obj = json.decode(data)
        assert json.decode(json.encode(obj)) == obj


def test_a_draft_puts_the_revision_where_kube_writes_it() -> None:
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "creationTimestamp": "2026-11-30T18:00:00Z",
            "uid": "u",
            "resourceVersion": "old",
            "labels": {"a": "b"},
            "name": "c1",
            "namespace": "tour",
        },
        "data": {"k": '","resourceVersion":"'},
    }
    head, tail = json.draft(obj)
    assert head == (
        b'{"kind":"ConfigMap","apiVersion":"v1","metadata":'
        b'{"name":"c1","namespace":"tour","uid":"u","resourceVersion":"'
    )
    assert tail == (
        b'","creationTimestamp":"2026-11-30T18:00:00Z","labels":{"a":"b"}},'
        rb'"data":{"k":"\",\"resourceVersion\":\""}}'
    )


@given(METADATA, st.dictionaries(st.sampled_from(["kind", "apiVersion", "spec", "zz"]), VALUES))
def test_a_draft_at_a_revision_is_the_object_with_that_revision(metadata: Obj, rest: Obj) -> None:
    obj = {**rest, "metadata": metadata}
    bytes_at = Draft(*json.draft(obj)).at(Revision(42))
    assert json.decode(bytes_at) == {**rest, "metadata": {**metadata, "resourceVersion": "42"}}


def test_a_draft_of_an_object_without_metadata_gets_one() -> None:
    assert b"7".join(json.draft({})) == b'{"metadata":{"resourceVersion":"7"}}'
