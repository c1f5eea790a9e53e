"""The two forms of a key."""

import doctest
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.store import key as key_module
from hub.store.api import Key
from hub.store.key import (
    HEAD_BYTES,
    KEY_BYTES,
    STORED_KEY_BYTES,
    decode_key,
    encode_key,
    is_long,
    prefix,
    stored_key,
)

PARTS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=8)
TUPLES = st.tuples(PARTS, st.one_of(st.just(""), PARTS), PARTS)


def test_the_worked_example_holds() -> None:
    assert doctest.testmod(key_module).failed == 0


@given(TUPLES)
def test_a_key_decodes_to_its_parts(parts: tuple[str, str, str]) -> None:
    assert decode_key(encode_key(*parts)) == parts


@given(st.lists(TUPLES, min_size=2, max_size=10))
def test_keys_sort_as_their_parts_do(tuples: list[tuple[str, str, str]]) -> None:
    by_parts = sorted(tuples, key=lambda parts: [part.encode() for part in parts])
    assert sorted(encode_key(*parts) for parts in tuples) == [
        encode_key(*each) for each in by_parts
    ]


@given(TUPLES)
def test_prefixes_cover_their_keys_and_no_others(parts: tuple[str, str, str]) -> None:
    resource, namespace, _ = parts
    key = encode_key(*parts)
    assert key.startswith(prefix(resource))
    assert key.startswith(prefix(resource, namespace))
    assert not key.startswith(prefix(resource + "x"))
    assert not key.startswith(prefix(resource, namespace + "x"))
    assert not key.startswith(prefix(resource[:-1]))


@pytest.mark.parametrize(
    ("resource", "namespace", "name"),
    [("", "n", "x"), ("r", "n", ""), ("r\0s", "n", "x"), ("r", "n\0", "x"), ("r", "n", "x\0y")],
)
def test_parts_that_would_blur_a_key_are_refused(resource: str, namespace: str, name: str) -> None:
    with pytest.raises(ValueError, match="key"):
        encode_key(resource, namespace, name)


def test_a_key_has_a_length_limit() -> None:
    encode_key("r", "n", "x" * (KEY_BYTES - 4))
    with pytest.raises(ValueError, match="shorten the name"):
        encode_key("r", "n", "x" * (KEY_BYTES - 3))


def test_a_key_the_engine_takes_is_stored_as_it_is() -> None:
    key = encode_key("r", "n", "x" * (STORED_KEY_BYTES - 4))
    assert len(key) == STORED_KEY_BYTES
    assert stored_key(key) == key
    assert not is_long(key)


def test_a_longer_key_keeps_its_head_and_takes_a_hash() -> None:
    key = encode_key("r", "n", "x" * STORED_KEY_BYTES)
    stored = stored_key(key)
    assert len(stored) == STORED_KEY_BYTES
    assert stored.startswith(key[:HEAD_BYTES])
    assert is_long(stored)
    assert stored != stored_key(Key(key + b"y"))


def test_long_keys_sort_with_the_short_ones_up_to_the_head() -> None:
    heads = ["a" * 470 + letter for letter in "abc"]
    keys = [encode_key("r", "n", head + tail) for head in heads for tail in ("", "z" * 500)]
    stored = [stored_key(key) for key in keys]
    assert all(first < second for first, second in pairwise(stored))
