"""Days in the life of a hub, in seconds: every recorded state of the window comes back exactly.

A seeded driver changes objects, ships, merges, cuts fulls, restarts, goes on from points of the
past, pins, cleans up and crashes while it does; the model is the list of ends it wrote down. What
clean-up may delete is checked at every deletion. `HUBLET_PITR_SEED` repeats a history.
"""

import datetime as dt
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from snapshot.catalog import Catalog, load_catalog
from snapshot.chain import Chain
from snapshot.cleanup import Cleaned, look
from snapshot.errors import NothingToRestore, RemoteDenied
from snapshot.head import Head, decode_head
from snapshot.layout import HEAD, TRASH, is_manifest_name, is_segment_name
from snapshot.pins import list_pins, put_pin
from snapshot.points import AtPosition, AtRevision, AtTime, Latest, Target, points, resolve
from snapshot.policy import Policy
from snapshot.retention import Retention
from snapshot.ship import FullBegun, begin_full, put_full
from tests.fault.history import End, History, Judge
from tests.fault.memory_remote import MemoryRemote
from tests.unit.snapshot.support import KEY, StillClock

RETENTION = Retention()
STEPS, SOAK_STEPS, SOAK_SEEDS = 190, 600, 20
HOUR = 3600.0


class Bucket(MemoryRemote):
    """A bucket that checks every deletion, and can refuse them; `now` is its own clock."""

    def __init__(self) -> None:
        super().__init__(dt.datetime(2026, 5, 4, 3, 2, 1, tzinfo=dt.UTC))
        self.let_go: dict[str, dt.datetime] = {}
        """When HEAD ceased to name an object, at a clean-up."""
        self.refused: set[str] = set()
        self.kept_quietly: set[str] = set()
        self.deleted: list[str] = []

    def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
        before = self.catalog()
        written = super().put_if_match(name, source, etag=etag)
        after = decode_head(source)
        if (after.horizon, after.kept) != (before.head.horizon, before.head.kept):
            gone = before.names() - self.catalog().names()
            self.let_go |= dict.fromkeys(gone, self.now)
        return written

    def delete(self, name: str) -> None:
        if name in self.refused:
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
