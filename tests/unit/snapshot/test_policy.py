"""The policy: when a full or a merge is due."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.head import Level, SegmentRef
from snapshot.policy import Due, Merge, Policy, full_due, merge_due
from tests.unit.snapshot.support import full_ref, head, ref

MIB = 1 << 20
POLICY = Policy(
    max_d0=4,
    d1_every_ms=300,
    max_d1=3,
    d2_every_ms=900,
    max_delta_ratio=0.5,
    delta_floor_bytes=MIB,
    full_every_ms=1000,
)


def tail(*sizes: int) -> tuple[SegmentRef, ...]:
    return tuple(ref(10 + n, 11 + n, seq=2 + n, size=size) for n, size in enumerate(sizes))


def leveled(levels: str, *, step_ms: int = 0) -> tuple[SegmentRef, ...]:
    """A tail by the digits of its levels, each `step_ms` younger than the one before."""
    kinds: dict[str, Level] = {"0": "d0", "1": "d1", "2": "d2"}
    return tuple(
        ref(10 + n, 11 + n, seq=2 + n, level=kinds[digit], time_ms=n * step_ms)
        for n, digit in enumerate(levels)
    )


@pytest.mark.parametrize(
    ("full_size", "deltas", "now_ms", "due"),
    [
        (100, (), 0, None),
        (100, (10, 10, 10, 10, 10, 10), 0, None),
        (100, (MIB,), 0, None),
        (100, (MIB, 1), 0, Due.BYTES),
        (10 * MIB, (4 * MIB, MIB), 0, None),
        (10 * MIB, (4 * MIB, MIB, 1), 0, Due.BYTES),
        (100, (), 1000, None),
        (100, (10,), 999, None),
        (100, (10,), 1000, Due.AGE),
        (100, (MIB, MIB), 1000, Due.BYTES),
    ],
)
def test_a_full_is_due(
    full_size: int, deltas: tuple[int, ...], now_ms: int, due: Due | None
) -> None:
    made = head(full=full_ref(10, size=full_size), tail=tail(*deltas))
    assert full_due(made, now_ms=now_ms, policy=POLICY) is due


def test_the_first_segment_is_a_full() -> None:
    assert full_due(head(full=None), now_ms=0, policy=POLICY) is Due.FIRST
    assert merge_due(head(full=None), now_ms=10**9, policy=POLICY) is None


@pytest.mark.parametrize(
    ("levels", "now_ms", "level", "parts"),
    [
        ("", 10**6, None, ""),
        ("0", 10**6, None, ""),
        ("000", 299, None, ""),
        ("000", 300, "d1", "000"),
        ("0000", 0, "d1", "0000"),
        ("1100", 299, None, ""),
        ("1100", 301, "d1", "00"),
        ("11", 899, None, ""),
        ("11", 900, "d2", "11"),
        ("111", 0, "d2", "111"),
        ("1110", 0, "d2", "111"),
        ("1110000", 0, "d1", "0000"),
        ("2", 10**6, None, ""),
        ("222222", 10**6, None, ""),
        ("2110", 10**6, "d2", "11"),
    ],
)
def test_a_merge_is_due(levels: str, now_ms: int, level: Level | None, parts: str) -> None:
    made = head(full=full_ref(10), tail=leveled(levels))
    due = merge_due(made, now_ms=now_ms, policy=POLICY)
    if level is None:
        assert due is None
        return
    at = levels.index(parts)
    assert due == Merge(level, made.tail[at : at + len(parts)])


def test_the_age_of_a_merge_is_that_of_its_oldest_part() -> None:
    made = head(full=full_ref(10), tail=leveled("000", step_ms=100))
    assert merge_due(made, now_ms=299, policy=POLICY) is None
    assert merge_due(made, now_ms=300, policy=POLICY) == Merge("d1", made.tail)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 2000))
def test_merging_what_is_due_comes_to_an_end_and_leaves_a_short_tail(
    d2: int, d1: int, d0: int, now_ms: int
) -> None:
    tail = leveled("2" * d2 + "1" * d1 + "0" * d0)
    steps = 0
    while due := merge_due(head(full=full_ref(10), tail=tail), now_ms=now_ms, policy=POLICY):
        first, last = due.parts[0], due.parts[-1]
        at = tail.index(first)
        assert tail[at : at + len(due.parts)] == due.parts
        merged = ref(
            first.from_rev, last.to_rev, seq=last.seq, from_seq=first.from_seq, level=due.level
        )
        tail = (*tail[:at], merged, *tail[at + len(due.parts) :])
        steps += 1
    assert steps <= 2
    assert sum(each.level == "d0" for each in tail) < POLICY.max_d0
    assert sum(each.level == "d1" for each in tail) < POLICY.max_d1


def test_the_default_bounds_are_those_of_the_document() -> None:
    policy = Policy()
    assert (policy.max_d0, policy.max_d1, policy.max_delta_ratio) == (64, 12, 0.5)
    assert (policy.d1_every_ms, policy.d2_every_ms, policy.full_every_ms) == (
        5 * 60_000,
        60 * 60_000,
        60 * 60_000,
    )
