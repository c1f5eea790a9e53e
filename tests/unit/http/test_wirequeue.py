from hypothesis import given
from hypothesis import strategies as st

from hub.http.wirequeue import WireQueue

PARTS = st.lists(st.binary(max_size=40), max_size=200)


@given(parts=PARTS, sizes=st.lists(st.integers(0, 70), min_size=1))
def test_what_is_put_comes_out_in_order_in_pieces_of_the_size_asked_for(
    parts: list[bytes], sizes: list[int]
) -> None:
    queue = WireQueue()
    for part in parts:
        queue.put(part)
    expected = b"".join(parts)
    assert len(queue) == len(expected)
    taken = b""
    for size in sizes:
        piece = queue.take(size)
        taken += piece
        assert len(piece) == min(size, len(expected) - len(taken) + len(piece))
    assert taken == expected[: len(taken)]
    assert queue.take(len(expected) + 1) == expected[len(taken) :]
    assert len(queue) == 0


def test_a_queue_can_be_filled_while_it_is_emptied() -> None:
    queue = WireQueue()
    out = b""
    for number in range(1_000):
        queue.put(b"%04d" % number)
        out += queue.take(3)
    out += queue.take(10_000)
    assert out == b"".join(b"%04d" % number for number in range(1_000))


def test_a_cleared_queue_is_empty() -> None:
    queue = WireQueue()
    queue.put(b"abc")
    queue.take(1)
    queue.clear()
    queue.put(b"de")
    assert (len(queue), queue.take(9)) == (2, b"de")
