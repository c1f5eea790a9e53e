"""The index block."""

import doctest

from hypothesis import given
from hypothesis import strategies as st

from hub.store import index as index_module
from hub.store.index import EMPTY, decode_index, encode_index

TEXT = st.text(max_size=6)
HOSTILE = st.text(st.sampled_from("\0\x01\x02a01é\ud800"), max_size=6)
PAIRS = st.dictionaries(TEXT | HOSTILE, TEXT | HOSTILE, max_size=5)


def test_the_worked_example_holds() -> None:
    assert doctest.testmod(index_module).failed == 0


@given(PAIRS, PAIRS)
def test_a_block_decodes_to_what_went_in(labels: dict[str, str], fields: dict[str, str]) -> None:
    assert decode_index(encode_index(labels, fields)) == (labels, fields)


def test_nothing_takes_no_bytes() -> None:
    assert encode_index({}, {}) == EMPTY == b""


def test_order_is_kept() -> None:
    labels, _ = decode_index(encode_index({"b": "1", "a": "2"}, {}))
    assert list(labels) == ["b", "a"]
