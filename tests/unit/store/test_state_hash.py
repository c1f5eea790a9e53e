"""The whole-state hash."""

import doctest

from hypothesis import given
from hypothesis import strategies as st

from hub.store import state_hash
from hub.store.api import Key, Revision

OBJECTS = st.dictionaries(
    st.binary(min_size=1, max_size=4),
    st.tuples(st.integers(0, 9), st.binary(max_size=4)),
    max_size=6,
)


def test_the_worked_example_holds() -> None:
    assert doctest.testmod(state_hash).failed == 0


@given(OBJECTS)
def test_the_order_of_writes_does_not_matter(objects: dict[bytes, tuple[int, bytes]]) -> None:
    terms = [state_hash.term(Key(k), Revision(r), raw) for k, (r, raw) in objects.items()]
    forth, back = state_hash.EMPTY, state_hash.EMPTY
    for one, other in zip(terms, reversed(terms), strict=True):
        forth, back = state_hash.add(forth, one), state_hash.add(back, other)
    assert forth == back
    for one in terms:
        forth = state_hash.subtract(forth, one)
    assert forth == state_hash.EMPTY


def test_key_revision_and_value_all_count() -> None:
    terms = {
        state_hash.term(Key(b"a"), Revision(1), b"bc"),
        state_hash.term(Key(b"ab"), Revision(1), b"c"),
        state_hash.term(Key(b"a"), Revision(2), b"bc"),
        state_hash.term(Key(b"a"), Revision(1), b"bd"),
    }
    assert len(terms) == 4


def test_an_object_counted_twice_does_not_cancel() -> None:
    one = state_hash.term(Key(b"a"), Revision(1), b"x")
    assert state_hash.add(state_hash.add(state_hash.EMPTY, one), one) != state_hash.EMPTY


def test_the_bytes_are_the_number_in_32_bytes() -> None:
    number = state_hash.subtract(state_hash.EMPTY, 1)
    assert state_hash.to_bytes(number) == b"\xff" * 32
    assert state_hash.from_bytes(state_hash.to_bytes(number)) == number
