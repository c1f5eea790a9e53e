"""When a simulated work agent begins to evict, as OCM's does."""

from tools.simulate.evictions import GRACE_S, Evictions
from tools.simulate.tally import Tally


class Time:
    """Stands still until it is moved."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_work_that_is_missing_is_evicted_after_an_hour() -> None:
    tally, time = Tally(), Time()
    evictions = Evictions(tally, time, applied=["a", "b"])
    evictions.look({"a", "b", "never-applied"})
    assert tally.evictions_begun == 0
    evictions.look({"a"})
    evictions.look({"a"})
    assert (tally.evictions_begun, evictions.begun) == (1, frozenset("b"))
    time.now_s = GRACE_S - 1
    evictions.look({"a"})
    assert tally.evicted == 0
    time.now_s = GRACE_S
    evictions.look({"a"})
    assert (tally.evicted, evictions.begun) == (1, frozenset())


def test_a_work_that_comes_back_ends_its_eviction() -> None:
    tally, time = Tally(), Time()
    evictions = Evictions(tally, time)
    evictions.applied("a")
    evictions.look(())
    evictions.look({"a"})
    time.now_s = 2 * GRACE_S
    evictions.look({"a"})
    assert (tally.evictions_begun, tally.evictions_ended, tally.evicted) == (1, 1, 0)


def test_a_work_that_is_deleted_in_order_is_not_evicted() -> None:
    tally = Tally()
    evictions = Evictions(tally, Time(), applied=["a"])
    evictions.removed("a")
    evictions.look(())
    assert tally.evictions_begun == 0
