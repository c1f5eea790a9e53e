"""Revisions from one counter, shown in order."""

import doctest
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.store import sequence as sequence_module
from hub.store.api import Change, Index, Key, Op, Revision
from hub.store.errors import InvariantError
from hub.store.sequence import Sequence


def change(revision: Revision) -> Change:
    return Change(Op.CREATE, Key(b"k"), revision, b"", Index(b""), None, None)


def test_the_worked_example_holds() -> None:
    assert doctest.testmod(sequence_module).failed == 0


@given(st.permutations(range(8)), st.sets(st.integers(0, 7)))
def test_changes_come_out_in_order_whatever_order_they_settle_in(
    order: list[int], dropped: set[int]
) -> None:
    sequence = Sequence(Revision(100))
    slots = [sequence.take() for _ in order]
    released: list[int] = []
    settled: set[int] = set()
    for at in order:
        slot = slots[at]
        sequence.settle(slot, None if at in dropped else change(slot.revision))
        settled.add(at)
        released += [each.revision for each in sequence.release()]
        complete = next((n for n in range(8) if n not in settled), 8)
        assert sequence.shown == 100 + complete
    assert released == [101 + n for n in range(8) if n not in dropped]


def test_two_threads_never_draw_the_same_revision() -> None:
    sequence = Sequence(Revision(0))
    drawn: list[list[int]] = [[], []]

    def draw(into: list[int]) -> None:
        into.extend(sequence.take().revision for _ in range(2000))

    threads = [threading.Thread(target=draw, args=(each,)) for each in drawn]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(drawn[0] + drawn[1]) == list(range(1, 4001))


def test_nothing_is_drawn_above_the_ceiling() -> None:
    sequence = Sequence(Revision(5))
    assert sequence.take_below(Revision(6)) is not None
    assert sequence.take_below(Revision(6)) is None
    assert sequence.last == 6


def test_a_floor_is_raised_only_while_nothing_is_under_way() -> None:
    sequence = Sequence(Revision(5))
    slot = sequence.take()
    with pytest.raises(InvariantError):
        sequence.raise_to(Revision(50))
    sequence.settle(slot, None)
    sequence.release()
    sequence.raise_to(Revision(50))
    assert (sequence.shown, sequence.take().revision) == (50, 51)
