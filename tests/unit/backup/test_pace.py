"""When a segment is due, in virtual time."""

import asyncio
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.backup.pace import Pace
from hub.store import encode_key
from tests.unit.backup.virtual import LoopClock, now_s, run


def due_after(*changes: float, urgent: float | None = None) -> float:
    """Return when a segment is due after changes at these seconds."""

    async def work() -> float:
        pace = Pace(LoopClock())
        loop = asyncio.get_running_loop()
        for at in changes:
            loop.call_later(at, pace.changed)
        if urgent is not None:
            loop.call_later(urgent, pace.hurry)
        await pace.wait()
        return now_s()

    return run(work())


@pytest.mark.parametrize(
    ("changes", "urgent", "due"),
    [
        ((0.0,), None, 0.1),
        ((5.0,), None, 5.1),
        ((0.0, 0.05), None, 0.15),
        ((0.0, 0.09, 0.18), None, 0.28),
        ((0.0, 0.2), None, 0.1),
        (tuple(n / 20 for n in range(100)), None, 1.0),
        ((0.0, 0.95), None, 0.1),
        ((), None, 30.0),
        ((), 7.0, 7.0),
        ((7.0,), 7.02, 7.02),
        (tuple(n / 20 for n in range(100)), 0.42, 0.42),
        ((29.99,), None, 30.09),
    ],
)
def test_a_segment_is_due(changes: tuple[float, ...], urgent: float | None, due: float) -> None:
    assert due_after(*changes, urgent=urgent) == pytest.approx(due, abs=1e-6)


@given(st.lists(st.floats(min_value=0.001, max_value=0.3), min_size=1, max_size=40))
def test_a_change_waits_for_100_ms_of_quiet_and_a_second_at_most(gaps: list[float]) -> None:
    changes = list(accumulate(gaps))
    due = changes[0] + 1.0
    for change, after in zip(changes, [*changes[1:], float("inf")], strict=True):
        if after > change + 0.1:
            due = min(due, change + 0.1)
            break
    assert due_after(*changes) == pytest.approx(due, abs=1e-6)


def test_a_change_during_a_round_waits_from_its_own_time_on() -> None:
    async def work() -> None:
        pace = Pace(LoopClock())
        pace.changed()
        await pace.wait()
        pace.begin()
        loop = asyncio.get_running_loop()
        for at in (0.1, 0.15, 2.95):
            loop.call_later(at, pace.changed)
        await asyncio.sleep(3.0)  # the round; virtual
        await pace.wait()
        assert now_s() == pytest.approx(3.1)  # a second after the first has long passed

    run(work())


@pytest.mark.parametrize(
    ("sizes", "due"),
    [
        ([("a", 1)] * 2000, 0.1),  # one object, and its value as it is now
        ([(f"{n}", 1) for n in range(999)], 0.1),
        ([(f"{n}", 1) for n in range(1000)], 0.0),
        ([("a", 1 << 19), ("b", (1 << 19) - 1)], 0.1),
        ([("a", 1 << 19), ("b", 1 << 19)], 0.0),
        ([("a", 1 << 20), ("a", 10)], 0.0),
        ([("a", 1 << 19)] * 8, 0.1),
    ],
)
def test_many_changes_are_due_at_once(sizes: list[tuple[str, int]], due: float) -> None:
    async def work() -> None:
        pace = Pace(LoopClock())
        for name, size in sizes:
            pace.gathered([(encode_key("configmaps", "a", name), size)])
        await pace.wait()
        assert now_s() == pytest.approx(due)
        pace.begin()
        pace.gathered([(encode_key("configmaps", "a", "last"), 1)])
        await pace.wait()
        assert now_s() == pytest.approx(due + 0.1)  # a segment begins the count anew

    run(work())


def test_a_round_forgets_what_came_before_it() -> None:
    async def work() -> None:
        pace = Pace(LoopClock())
        pace.hurry()
        await pace.wait()
        pace.begin()
        await pace.wait()
        assert now_s() == pytest.approx(30.0)

    run(work())


def test_pauses_after_failures_double_up_to_half_a_minute_until_one_succeeds() -> None:
    async def work() -> None:
        pace = Pace(LoopClock())
        assert [pace.failed() for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
        pace.succeeded()
        assert pace.failed() == 0.5

    run(work())


def test_a_failed_round_is_due_again_without_another_change() -> None:
    async def work() -> None:
        pace = Pace(LoopClock())
        pace.changed()
        await pace.wait()
        pace.begin()
        await asyncio.sleep(pace.failed())
        await pace.wait()
        assert now_s() == pytest.approx(0.1 + 0.5)

    run(work())
