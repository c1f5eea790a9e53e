"""Days in the life of a hub, in seconds: every recorded state of the window comes back exactly.

A seeded driver changes objects, ships, merges, cuts fulls, restarts, goes on from points of the
past, pins, cleans up and crashes while it does; the model is the list of ends it wrote down. What
clean-up may delete is checked at every deletion. `HUBLET_PITR_SEED` repeats a history.
"""

import asyncio
import copy
import datetime as dt
import os
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from snapshot.catalog import Catalog, load_catalog
from snapshot.chain import Chain
from snapshot.cleanup import Cleaned, look, propose
from snapshot.errors import NothingToRestore, RemoteDenied
from snapshot.head import Head, decode_head
from snapshot.layout import HEAD, TRASH, is_manifest_name, is_segment_name
from snapshot.pins import list_pins, put_pin, remove_pin
from snapshot.points import AtPosition, AtRevision, AtTime, Latest, Target, points, resolve
from snapshot.policy import Policy
from snapshot.restore import restore
from snapshot.retention import Retention
from snapshot.ship import FullBegun, begin_full, put_full
from tests.fault.history import End, History, Judge
from tests.fault.memory_remote import MemoryRemote
from tests.unit.snapshot.support import KEY, StillClock
from tools.hubrestore.access import Prefix
from tools.hubrestore.keeping import _carry_out

RETENTION = Retention()
STEPS, SOAK_STEPS, SOAK_SEEDS = 150, 600, 20
HOUR = 3600.0


class Bucket(MemoryRemote):
    """A bucket that checks every deletion, and can refuse them; `now` is its own clock."""

    def __init__(self) -> None:
        super().__init__(dt.datetime(2026, 5, 4, 3, 2, 1, tzinfo=dt.UTC))
        self.let_go: dict[str, dt.datetime] = {}
        """When HEAD ceased to name an object, at a clean-up."""
        self.refused: set[str] = set()
        self.kept_quietly: set[str] = set()
        self.is_locked = False
        self.deleted: list[str] = []

    def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
        before, after = decode_head(self.get(HEAD).data), decode_head(source)
        if (after.horizon, after.kept) == (before.horizon, before.kept):
            return super().put_if_match(name, source, etag=etag)
        named = self.catalog().names()
        written = super().put_if_match(name, source, etag=etag)
        self.let_go |= dict.fromkeys(named - self.catalog().names(), self.now)
        return written

    def delete(self, name: str) -> None:
        if name in self.refused or self.is_locked:
            raise RemoteDenied("it is locked", op="delete", object=name)
        if name in self.kept_quietly:
            return
        if is_segment_name(name) or is_manifest_name(name):
            assert name not in self.catalog().names(), f"{name} is in use"
            assert self.now - self.head(name).modified >= RETENTION.min_age, f"{name} is young"
            let_go = self.let_go.get(name)
            assert let_go is None or self.now - let_go >= RETENTION.min_age, f"{name} just went"
            self.deleted.append(name)
        super().delete(name)

    def catalog(self) -> Catalog:
        head = Chain(self, KEY, clock=StillClock()).read_head()
        assert head is not None
        return _catalog(self, head)

    def copy(self) -> "Bucket":
        """Return another bucket that holds the same."""
        other = Bucket()
        other.now, other._objects, other._written = self.now, dict(self._objects), self._written
        return other

    def names(self) -> set[str]:
        """Return every segment and manifest that lies there."""
        found = {entry.name for entry in self.list()}
        return {name for name in found if is_segment_name(name) or is_manifest_name(name)}


def _catalog(remote: Bucket, head: Head) -> Catalog:
    return load_catalog(remote, head, KEY)


@dataclass
class Days:
    """The driver and its model; times are the bucket's but where they say otherwise."""

    directory: Path
    chance: random.Random
    remote: Bucket = field(default_factory=Bucket)
    clock: StillClock = field(default_factory=StillClock)
    parents: dict[int, int] = field(default_factory=dict)
    fulls: list[tuple[str, dt.datetime]] = field(default_factory=list)
    orphans: dict[str, dt.datetime] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    cleaned: Cleaned = field(default_factory=Cleaned)
    numbers: int = 0

    def __post_init__(self) -> None:
        self.history = History(self.directory / "hub-0", self.remote, self.clock)
        self.judge = Judge(self.history, self.directory)
        self.scratch = self.directory / "merges"
        self.scratch.mkdir()
        self._last_clean = self.remote.now

    @property
    def ends(self) -> dict[int, End]:
        return self.history.ends

    def wait(self, seconds: float) -> None:
        """Let time pass for the hub and the bucket."""
        self.clock.pass_s(seconds)
        self.remote.now += dt.timedelta(seconds=seconds)

    # ---------------------------------------------------------------- steps

    async def start(self) -> None:
        self.history.open()
        await self.change(*(f"pod-{number}" for number in range(6)), "secret")

    async def change(self, *names: str) -> None:
        """Change some objects and ship."""
        self.numbers += 1
        for name in names or self.chance.sample([f"pod-{n}" for n in range(12)], 2):
            found = name in self._names() and not names and self.chance.random() < 0.2
            if found:
                await self.history.drop(name)
            else:
                await self.history.put(name, text=str(self.numbers))
        before = self.history.head.seq
        after = self.history.ship(at=self.remote.now)
        if after != before:
            self.parents[after] = before

    def _names(self) -> set[str]:
        store = self.history.store
        return {bytes(entry.key).split(b"\0")[2].decode() for entry in store.scan(b"").entries}

    def tend(self, crash: str = "") -> None:
        """Merge and cut what is due; clean up every hour."""
        self.history.shorten(self.scratch, Policy())
        self._note_full()
        if self.remote.now - self._last_clean >= dt.timedelta(hours=1):
            self._last_clean = self.remote.now
            self.cleaned = self.history.clean(RETENTION, crash=crash)

    def _note_full(self) -> None:
        full = self.history.head.full
        if full is not None and full.name not in {name for name, _ in self.fulls}:
            self.fulls.append((full.name, self.remote.head(full.name).modified))

    async def step(self) -> None:
        """Let one thing happen, and some time pass."""
        what = self.chance.choices(
            ("change", "idle", "restart", "fork", "pin", "crash", "orphan", "look"),
            (70, 4, 4, 3, 3, 6, 3, 7),
        )[0]
        self.told.append(f"{what} at {self.history.head.seq}")
        self.wait(self.chance.uniform(60, 2400))
        if what == "idle":
            self.wait(self.chance.uniform(1, 9) * HOUR)
        elif what == "restart":
            await self.history.restart()
        elif what == "fork":
            await self.fork()
        elif what == "pin":
            self.pin()
        elif what == "orphan":
            self.leave_orphan()
        elif what == "look":
            self.check(self.chance.sample(self.young(), min(3, len(self.young()))))
        if what in {"change", "crash"}:
            await self.change()
        self.tend(self.chance.choice(("plan", "commit")) if what == "crash" else "")
        assert self.remote.catalog().names() <= self.remote.names()

    async def fork(self) -> None:
        """Go on from a point of the past, and now and then from one of that past again."""
        for _ in range(self.chance.choice((1, 1, 2))):
            self.history.starts += 1
            place = self.directory / f"hub-{self.history.starts}"
            seq = self.chance.choice(self.young() or [self.history.head.seq])
            self.told.append(f"fork to {seq}")
            restored = await self.history.fork(AtPosition(seq), place)
            assert restored.state_hash == self.ends[seq].state_hash == self.history.head.state_hash
            assert self.history.head.seq == seq
        if self.chance.random() < 0.5:
            self.history.full()

    def pin(self) -> None:
        """Pin a recorded point, on whatever branch."""
        seq = self.chance.choice(self.young() or [self.history.head.seq])
        point = resolve(self.remote.catalog(), AtPosition(seq))
        put_pin(self.remote, f"pin-{self.numbers}-{len(self.told)}", point, clock=self.clock)

    def leave_orphan(self) -> None:
        """Put a full and never name it, as a hub does that is killed then."""
        begun = begin_full(self.history.store, self.history.chain, self.history.spool)
        if isinstance(begun, FullBegun):
            put = put_full(begun, self.history.chain, self.history.spool)
            self.orphans[put.ref.name] = self.remote.now

    # ---------------------------------------------------------------- checks

    def young(self) -> list[int]:
        """Return every recorded end of the window."""
        oldest = self.remote.now - RETENTION.window
        return [seq for seq, end in self.ends.items() if end.at >= oldest]

    def line(self) -> list[int]:
        """Return the positions in the past of HEAD, oldest first."""
        at, found = self.history.head.seq, []
        while at:
            found.append(at)
            at = self.parents[at]
        return found[::-1]

    def check(self, chosen: list[int]) -> None:
        """Restore recorded ends by everything that names them."""
        line = self.line()
        after = dict(pairwise(line))
        for seq in chosen:
            end = self.ends[seq]
            assert self.judge.obtain(AtPosition(seq)).point.seq == seq
            if seq not in line:
                continue
            self.check_named(AtRevision(end.rev), seq, note="")
            self.check_named(AtTime(end.time_ms), seq, note="")
            note = "lies between two segments" if seq in after else "is after the newest"
            self.check_named(AtRevision(end.rev + 1), seq, note=note)
            self.check_named(AtTime(end.time_ms + 1), seq, note=note)

    def check_named(self, target: Target, seq: int, *, note: str) -> None:
        got = self.judge.obtain(target)
        assert got.point.seq == seq, (target, got.point)
        assert note in got.point.note
        assert bool(note) == bool(got.point.note)

    def check_everything(self) -> None:
        """Check all that can be asked of a prefix at rest."""
        self.check(self.young())
        catalog = self.remote.catalog()
        line = set(self.line())
        listed = points(catalog)
        assert {point.seq for point in listed} <= line
        assert line & set(self.young()) <= {point.seq for point in listed}
        for point in listed:
            assert self.judge.obtain(AtPosition(point.seq)).damaged == ()
        for pin in list_pins(self.remote):
            assert self.judge.obtain(AtPosition(pin.seq)).base.rev == pin.rev
        verified = [ref for ref in catalog.segments if ref.is_verified]
        assert len(verified) >= min(RETENTION.min_verified, len(self.fulls) - 1)
        assert self.kept_fulls() <= catalog.names()

    def kept_fulls(self) -> set[str]:
        """Return the last full of each of the last days that have one."""
        by_day = {at.date(): name for name, at in self.fulls}
        return {by_day[day] for day in sorted(by_day)[-RETENTION.daily :]}

    def settle(self) -> None:
        """Let clean-up go on without a change for the window, twice the minimum age, and more."""
        for _ in range(44):
            self.wait(HOUR + 1)
            self.tend()


async def live(directory: Path, seed: int, steps: int) -> Days:
    """Live through a history; its seed and last steps are told when it fails."""
    print(f"HUBLET_PITR_SEED={seed}")
    days = Days(directory, random.Random(seed))
    await days.start()
    try:
        for _ in range(steps):
            await days.step()
        days.check_everything()
        days.settle()
        days.check_everything()
        left = days.remote.names() - days.remote.catalog().names()
        assert not left, f"nothing names {sorted(left)}"
        assert not any(entry.name.startswith(TRASH) for entry in days.remote.list())
    except BaseException:
        print("\n".join(days.told[-12:]))
        raise
    finally:
        await days.history.close()
    return days


@pytest.mark.soak
@pytest.mark.timeout(0)
async def test_every_recorded_end_of_the_window_comes_back(tmp_path: Path, is_soak: bool) -> None:
    given = os.environ.get("HUBLET_PITR_SEED")
    seeds = [int(given)] if given else range(SOAK_SEEDS if is_soak else 1)
    for seed in seeds:
        place = tmp_path / str(seed)
        place.mkdir()
        days = await live(place, seed, SOAK_STEPS if is_soak else STEPS)
        assert len(days.ends) > 100
        assert days.remote.deleted
        assert days.history.head.branches
        print(len(days.ends), "ends,", len(days.remote.deleted), "deleted")


@pytest.fixture(scope="module")
def two_days(tmp_path_factory: pytest.TempPathFactory) -> Days:
    """A hub with two days behind it: an end every forty minutes, nothing else."""

    async def make() -> Days:
        made = Days(tmp_path_factory.mktemp("days"), random.Random(1))
        await made.start()
        await quiet(made, hours=48)
        await made.history.close()
        return made

    return asyncio.run(make())


@pytest.fixture
async def days(two_days: Days, tmp_path: Path) -> AsyncIterator[Days]:
    """The hub of `two_days`, restored from a copy of its bucket."""
    made = Days(tmp_path, random.Random(1), two_days.remote.copy(), copy.deepcopy(two_days.clock))
    made.parents, made.fulls = dict(two_days.parents), list(two_days.fulls)
    made.ends.update(two_days.ends)
    restore(made.remote, KEY, made.history.directory, clock=made.clock)
    made.history.open()
    yield made
    await made.history.close()


async def quiet(days: Days, *, hours: float, every_s: float = 2400) -> None:
    """Let an end come now and then."""
    for _ in range(int(hours * HOUR / every_s)):
        days.wait(every_s)
        await days.change()
        days.tend()


async def test_a_hub_that_is_idle_for_days_keeps_its_past_and_forks(
    days: Days, tmp_path: Path
) -> None:
    days.settle()
    days.settle()
    newest = days.history.head.seq
    days.check_everything()
    oldest = points(days.remote.catalog())[0].seq
    await days.history.fork(AtPosition(oldest), tmp_path / "other")
    assert days.judge.obtain(AtPosition(newest)).point.seq == newest
    days.settle()
    assert days.judge.obtain(Latest()).point.seq == oldest
    assert days.judge.obtain(AtPosition(newest)).point.seq == newest, "it is the day's full"
    assert [(fork.base_seq, fork.seq) for fork in days.remote.catalog().branches] == [
        (oldest, newest)
    ]


async def test_the_state_at_the_start_of_the_window_is_kept_too(days: Days) -> None:
    """What was the newest state a day ago may be hours older, and its full younger."""
    await days.change()
    days.wait(0.9 * HOUR)
    newest = days.history.head.seq
    days.history.full()
    days.wait(600)
    await days.change()
    for _ in range(23):
        days.wait(HOUR)
        days.tend()
    days.wait(1200)
    days.tend()
    full = days.ends[newest]
    assert full.at < days.remote.now - RETENTION.window
    moment = int((full.at + dt.timedelta(minutes=50)).timestamp() * 1000)
    assert days.judge.obtain(AtTime(moment)).point.seq == newest


async def test_older_times_mean_the_last_full_of_a_day_before(days: Days) -> None:
    await quiet(days, hours=8 * 24, every_s=2 * HOUR)
    last_of_day = {at.date(): (name, at) for name, at in days.fulls}
    for _, (name, at) in sorted(last_of_day.items())[-RETENTION.daily : -2]:
        got = days.judge.obtain(AtTime(int(at.timestamp() * 1000) + 3_600_000))
        assert [each.ref.name for each in got.fetched] == [name]
        assert "lies between two segments" in got.point.note
    with pytest.raises(NothingToRestore, match="the oldest is revision"):
        days.judge.obtain(AtTime(int(days.remote.now.timestamp() * 1000) - 60 * 86_400_000))


async def test_a_week_has_its_last_full_for_five_weeks(days: Days) -> None:
    await quiet(days, hours=44 * 24, every_s=20 * HOUR)
    weeks = {at.toordinal() // 7: name for name, at in days.fulls}
    named = days.remote.catalog().names()
    assert {weeks[week] for week in sorted(weeks)[-RETENTION.weekly :]} <= named
    oldest = min(days.remote.head(name).modified for name in named if "/full/" in name)
    assert days.remote.now - oldest < dt.timedelta(days=7 * (RETENTION.weekly + 1))


async def test_a_crash_between_plan_and_head_deletes_nothing_early(days: Days) -> None:
    """The plan is older than the HEAD that lets go; the age counts from that (see `Bucket`)."""
    days.wait(3 * HOUR)
    before = {entry.name for entry in days.remote.list(TRASH)}
    days.history.clean(RETENTION, crash="plan")
    (plan,) = {entry.name for entry in days.remote.list(TRASH)} - before
    named = look(days.remote, days.history.head, KEY).plans[plan].names
    assert set(named) & days.remote.catalog().names()
    days.wait(5.5 * HOUR)
    days.history.clean(RETENTION, crash="commit")
    assert not set(named) & days.remote.catalog().names()
    days.wait(0.6 * HOUR)
    days.history.clean(RETENTION)
    assert set(named) <= days.remote.names()
    days.wait(5.5 * HOUR)
    days.history.clean(RETENTION)
    assert not set(named) & days.remote.names()


@pytest.mark.parametrize("years", [-9, 9])
async def test_a_hub_whose_clock_is_years_off_deletes_nothing_early(days: Days, years: int) -> None:
    days.clock.at += dt.timedelta(days=365 * years)
    young = days.young()
    await days.history.restart()
    await quiet(days, hours=9)
    assert len(young) > 30
    for seq in young:
        if seq in days.young():
            assert days.judge.obtain(AtPosition(seq)).point.seq == seq


@pytest.mark.parametrize("is_quiet", [True, False])
async def test_an_object_that_refuses_to_go_is_counted_and_tried_again(
    days: Days, *, is_quiet: bool
) -> None:
    days.history.clean(RETENTION)
    (stuck,) = list(look(days.remote, days.history.head, KEY).planned)[:1]
    (days.remote.kept_quietly if is_quiet else days.remote.refused).add(stuck)
    days.wait(7 * HOUR)
    cleaned = days.history.clean(RETENTION)
    assert cleaned.failed == 1
    assert cleaned.deleted > 1
    assert stuck in days.remote.names()
    assert days.history.clean(RETENTION).failed == 1
    days.remote.kept_quietly.clear()
    days.remote.refused.clear()
    assert days.history.clean(RETENTION) == Cleaned(deleted=1, plans=1)
    assert stuck not in days.remote.names()


async def test_a_bucket_that_lets_nothing_be_deleted_only_fails_to(days: Days) -> None:
    days.history.clean(RETENTION)
    days.wait(7 * HOUR)
    days.remote.is_locked = True
    cleaned = days.history.clean(RETENTION)
    assert (cleaned.deleted, cleaned.plans) == (0, 0)
    assert cleaned.failed > 1
    days.remote.is_locked = False
    days.settle()
    assert days.remote.names() == days.remote.catalog().names()


async def test_orphans_go_after_their_age_and_a_late_one_after_its_own(days: Days) -> None:
    """A segment of an epoch long over, created by a writer that had been stopped, is young."""
    await days.history.put("pod-1", text="orphan")
    days.leave_orphan()
    (early,) = days.orphans
    epoch = days.history.head.epoch
    await days.history.restart()
    days.wait(5 * HOUR)
    late = f"e{epoch:08d}/d0/1-2-0badcafe.hs"
    days.remote.put_if_absent(late, b"late")
    gone: dict[str, float] = {}
    for hour in range(24):
        days.tend()
        for name in (early, late):
            if name not in days.remote.names():
                gone.setdefault(name, 5 + hour)
        days.wait(HOUR)
    assert 12 <= gone[early] <= 14
    assert 17 <= gone[late] <= 19


async def test_a_pin_holds_its_point_whatever_its_age(days: Days) -> None:
    seq = days.history.head.seq - 1
    point = resolve(days.remote.catalog(), AtPosition(seq))
    put_pin(days.remote, "before-upgrade", point, clock=days.clock)
    await quiet(days, hours=60 * 24, every_s=30 * HOUR)
    assert days.judge.obtain(AtPosition(seq)).damaged == ()
    remove_pin(days.remote, "before-upgrade")
    days.settle()
    with pytest.raises(NothingToRestore):
        resolve(days.remote.catalog(), AtPosition(seq))


async def test_a_clean_up_with_nothing_to_do_writes_nothing(days: Days) -> None:
    days.settle()
    days.settle()
    before = {entry.name: entry.modified for entry in days.remote.list()}
    days.settle()
    assert {entry.name: entry.modified for entry in days.remote.list()} == before


async def test_a_point_pinned_while_it_is_let_go_is_kept(days: Days) -> None:
    seq = days.history.head.seq - 1
    point = resolve(days.remote.catalog(), AtPosition(seq))
    for _ in range(10):
        days.wait(6 * HOUR)
        await days.change()
    prefix = Prefix(days.remote, KEY, days.history.head, days.clock)
    chain, retention = prefix.chain(), Retention()
    at = look(days.remote, chain.head, KEY)
    verdict = propose(days.remote, at, retention)
    assert {ref.name for ref in at.catalog.segments if ref.seq == seq} & set(verdict.names)
    put_pin(days.remote, "just-now", point, clock=days.clock)
    _carry_out(prefix, chain, at, verdict, retention)
    days.history.chain.read_head()
    assert days.judge.obtain(AtPosition(seq)).damaged == ()
