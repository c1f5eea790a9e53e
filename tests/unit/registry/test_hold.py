"""The hold after a restore: when it ends, and why."""

import asyncio

import pytest

from hub.registry.hold import GRACE, NOT_HELD, RETURNED, Hold
from tests.unit.registry.given import VirtualClock, VirtualLoop


def test_other_starts_are_not_held_and_count_all_the_same() -> None:
    clock = VirtualClock()
    hold = Hold(clock)
    assert (hold.is_over, hold.reason) == (True, NOT_HELD)
    hold.expect(["a", "b"])
    clock.move(3)
    assert hold.has_awaited("a")
    assert not hold.has_awaited("a")
    assert not hold.has_awaited("stranger")
    assert (hold.returned, hold.expected) == (1, 2)
    assert hold.seconds == {50: 3.0, 95: None, 100: None}
    assert hold.reason == NOT_HELD


@pytest.mark.parametrize(("count", "enough"), [(100, 95), (3, 3), (20, 19), (1, 1)])
def test_it_is_over_when_95_per_cent_have_returned(count: int, enough: int) -> None:
    clock = VirtualClock()
    hold = Hold(clock, grace_s=300)
    hold.expect(f"c{n}" for n in range(count))
    for n in range(enough):
        assert not hold.is_over
        clock.move(1)
        hold.has_awaited(f"c{n}")
    assert (hold.is_over, hold.reason) == (True, RETURNED)
    assert hold.seconds[95] == float(enough)
    assert hold.grace_left_s == 300 - enough


def test_it_is_over_when_the_grace_is() -> None:
    clock = VirtualClock()
    hold = Hold(clock, grace_s=300)
    hold.expect(["a"])
    clock.move(299)
    assert not hold.is_over
    clock.move(1)
    assert (hold.is_over, hold.reason) == (True, GRACE)
    hold.has_awaited("a")
    assert (hold.reason, hold.seconds[100]) == (GRACE, 300.0)


def test_without_any_cluster_only_the_grace_ends_it() -> None:
    hold = Hold(VirtualClock(), grace_s=300)
    hold.expect([])
    assert not hold.is_over


def test_a_cluster_that_leaves_is_awaited_no_longer() -> None:
    hold = Hold(VirtualClock(), grace_s=300)
    hold.expect(["a", "b"])
    hold.has_awaited("a")
    hold.forget("a")
    assert (hold.returned, hold.expected) == (1, 2)
    hold.forget("b")
    assert (hold.returned, hold.expected, hold.reason) == (1, 1, RETURNED)


@pytest.mark.parametrize("comes_back", [False, True])
def test_who_waits_goes_on_at_its_end(*, comes_back: bool) -> None:
    async def test() -> None:
        loop = asyncio.get_running_loop()
        hold, began = Hold(VirtualClock(), grace_s=300), loop.time()
        hold.expect(["a"])
        if comes_back:
            loop.call_later(60, hold.has_awaited, "a")
        await hold.wait()
        assert hold.reason == (RETURNED if comes_back else GRACE)
        assert (loop.time() - began < 299) is comes_back
        await hold.wait()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(test())
