"""The policy: when a full is due."""

import pytest

from snapshot.head import SegmentRef
from snapshot.policy import Due, Policy, next_kind
from tests.unit.snapshot.support import head, ref

MIB = 1 << 20
POLICY = Policy(max_tail=4, max_delta_ratio=0.5, delta_floor_bytes=MIB, full_every_ms=1000)


def tail(*sizes: int) -> tuple[SegmentRef, ...]:
    return tuple(ref(10 + n, 11 + n, size=size) for n, size in enumerate(sizes))


@pytest.mark.parametrize(
    ("full_size", "deltas", "now_ms", "due"),
    [
        (100, (), 0, Due.DELTA),
        (100, (10, 10, 10), 0, Due.DELTA),
        (100, (10, 10, 10, 10), 0, Due.TAIL),
        (100, (MIB,), 0, Due.DELTA),
        (100, (MIB, 1), 0, Due.BYTES),
        (10 * MIB, (4 * MIB, MIB), 0, Due.DELTA),
        (10 * MIB, (4 * MIB, MIB, 1), 0, Due.BYTES),
        (100, (), 999, Due.DELTA),
        (100, (), 1000, Due.AGE),
        (100, (MIB, MIB, MIB, MIB), 1000, Due.TAIL),
    ],
)
def test_a_full_is_due(full_size: int, deltas: tuple[int, ...], now_ms: int, due: Due) -> None:
    made = head(full=ref(0, 10, size=full_size), tail=tail(*deltas))
    assert next_kind(made, now_ms=now_ms, policy=POLICY) is due


def test_the_first_segment_is_a_full() -> None:
    assert next_kind(head(full=None), now_ms=0, policy=POLICY) is Due.FIRST


def test_the_default_bounds_are_those_of_the_document() -> None:
    assert (Policy().max_tail, Policy().max_delta_ratio) == (64, 0.5)
