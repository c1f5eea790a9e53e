"""How far back the log reaches: an hour, never past what is not shipped, never above its bound."""

import asyncio
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.backup.history import LOOK_EVERY_S, History, HistoryPolicy
from hub.backup.runner import Backup
from hub.store import MapFull, Position, Revision, Store
from tests.unit.backup.virtual import LoopClock, run
from tests.unit.snapshot.support import StillClock

POLICY = HistoryPolicy(keep_s=3600.0, max_entries=100, max_bytes=100_000)


@dataclass
class Stats:
    log_entries: int
    log_bytes: int
    log_after: Revision


@dataclass
class FakeLog:
    """A log whose entries are revisions; stands for the store and for the backup."""

    entries: list[int] = field(default_factory=list)
    rev: int = 0
    after: int = 0
    shipped: int | None = None
    is_full: bool = False
    cuts: int = 0
    entry_bytes: int = 1

    @property
    def position(self) -> Position:
        return Position(Revision(self.rev), bytes(32), 1)

    def stats(self) -> Stats:
        size = len(self.entries) * self.entry_bytes
        return Stats(len(self.entries), size, Revision(self.after))

    def log_revision(self, *, keeping: int) -> Revision:
        rest = self.entries[: len(self.entries) - keeping]
        return Revision(rest[-1] if rest else 0)

    async def compact_log(self, keep_after: Revision) -> None:
        self.cuts += 1
        if self.is_full:
            raise MapFull("the volume is full")
        self.entries = self.entries[bisect_right(self.entries, keep_after) :]
        self.after = keep_after

    def shipped_revision(self) -> Revision:
        return Revision(self.rev if self.shipped is None else self.shipped)

    def write(self, count: int) -> None:
        self.entries += range(self.rev + 1, self.rev + count + 1)
        self.rev += count


@dataclass
class Rig:
    log: FakeLog = field(default_factory=FakeLog)
    clock: StillClock = field(default_factory=StillClock)

    def __post_init__(self) -> None:
        self.history = History(
            cast("Store", self.log), cast("Backup", self.log), self.clock, POLICY
        )

    async def look_after(self, seconds: float) -> Revision | None:
        self.clock.pass_s(seconds)
        return await self.history.look()


async def test_what_is_younger_than_an_hour_stays_and_what_is_older_goes() -> None:
    rig = Rig()
    rig.log.write(10)
    assert await rig.history.look() is None
    rig.log.write(10)
    assert await rig.look_after(3540) is None
    assert await rig.look_after(60) == 10
    assert rig.log.entries == list(range(11, 21))
    assert await rig.look_after(3539) is None
    assert await rig.look_after(60) == 20
    assert rig.log.entries == []


async def test_what_is_not_shipped_stays_however_old_and_goes_once_it_is() -> None:
    rig = Rig()
    rig.log.write(30)
    rig.log.shipped = 12
    await rig.history.look()
    assert await rig.look_after(3600) == 12
    assert await rig.look_after(3600) is None
    rig.log.shipped = 25
    assert await rig.look_after(60) == 25
    rig.log.shipped = 30
    assert await rig.look_after(60) == 30


async def test_a_log_above_its_bound_is_cut_to_it_shipped_or_not() -> None:
    rig = Rig()
    rig.log.shipped = 0
    rig.log.write(350)
    assert await rig.history.look() == 250
    assert len(rig.log.entries) == POLICY.max_entries
    rig.log.write(1)
    assert await rig.look_after(60) == 251


async def test_a_log_of_large_entries_is_cut_to_half_its_size() -> None:
    rig = Rig()
    rig.log.entry_bytes = 10_000
    rig.log.write(10)
    assert await rig.history.look() is None  # at the bound
    rig.log.write(10)
    assert await rig.look_after(60) == 15
    assert len(rig.log.entries) * rig.log.entry_bytes == POLICY.max_bytes // 2


async def test_nothing_is_asked_of_the_store_when_nothing_is_to_be_cut() -> None:
    rig = Rig()
    rig.log.write(10)
    for _ in range(59):
        assert await rig.look_after(60) is None
    assert rig.log.cuts == 0


@given(
    st.lists(
        st.tuples(
            st.integers(min_value=0, max_value=80),
            st.integers(min_value=0, max_value=200),
            st.sampled_from((60.0, 600.0, 1800.0)),
        ),
        max_size=30,
    )
)
def test_the_bounds_hold_whatever_happens(steps: list[tuple[int, int, float]]) -> None:
    async def work() -> None:
        rig = Rig()
        seen: list[tuple[float, int]] = []
        for count, lag, pause in steps:
            rig.log.write(count)
            shipped = max(rig.log.rev - lag, rig.log.shipped or 0)
            rig.log.shipped = shipped
            rig.clock.pass_s(pause)
            before = rig.log.entries
            seen.append((rig.clock.monotonic_s(), rig.log.rev))
            await rig.history.look()
            cut = before[: len(before) - len(rig.log.entries)]
            old = max((r for s, r in seen if s <= rig.clock.monotonic_s() - 3600), default=0)
            assert len(rig.log.entries) <= POLICY.max_entries
            if len(before) <= POLICY.max_entries:
                assert all(revision <= min(old, shipped) for revision in cut)
                assert all(revision > min(old, shipped) for revision in rig.log.entries)

    asyncio.run(work())


def test_a_full_volume_is_reported_and_tried_again_a_minute_later() -> None:
    async def work() -> None:
        log = FakeLog(is_full=True)
        log.write(150)
        history = History(cast("Store", log), cast("Backup", log), LoopClock(), POLICY)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2.5 * LOOK_EVERY_S):
                await history.run()
        assert log.cuts == 2

    run(work())
