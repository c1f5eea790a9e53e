"""A hub on a lying bucket: nothing acknowledged is lost, and nothing false is ever restored.

One history: a real store with random writes, shipped through a remote with seeded faults as the
hub's runner does it (`REPEATED` errors are tried again), the writer started anew at random points
and after every other error. At any moment the bucket holds a state that was cut, and none older
than the last acknowledged one.
"""

import contextlib
import datetime as dt
import random
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

import pytest

from hub.backup.tend import REPEATED
from hub.store import Op, Store
from snapshot.errors import (
    Fenced,
    HeadGone,
    NothingToRestore,
    RemoteError,
    SnapshotError,
    StartRefused,
)
from snapshot.remote import Remote
from snapshot.restore import restore
from snapshot.ship import ship
from snapshot.start import remember
from tests.fault.faulty_remote import FAILING, LYING, READING, FaultyRemote, Rates
from tests.fault.memory_remote import MemoryRemote
from tests.unit.snapshot.hub import TestHub, serve
from tests.unit.snapshot.support import KEY, StillClock, write

SEEDS, SOAK_SEEDS = 20, 300
STEPS, SOAK_STEPS = 10, 30
NEVER_TRUE = (Fenced, HeadGone, StartRefused)
"""There is one writer and nobody deletes: a hub that says this would have stopped for nothing."""


@dataclass
class History:
    """One hub, its lying bucket, and what it was told."""

    seed: int
    directory: Path
    rates: Rates
    steps: int
    cut: dict[int, str] = field(default_factory=dict)
    """State hash by revision, of every state that was to be shipped."""
    acknowledged: int = -1
    starts: int = 0
    restored: int = 0
    refused: int = 0
    """Restores through lies that ended in an error."""

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.inner = MemoryRemote()
        self.remote = FaultyRemote(self.inner, self.seed, self.rates)

    async def run(self) -> None:
        """Live through the steps, then ship once without faults, and start from the bucket."""
        while self.steps > 0:
            await self.live()
            self.check_bucket()
        self.remote.settle()
        async with self.serve(self.directory) as hub:
            await self.write(hub)
            self.ship(hub)
            position, contents = hub.store.position, hub.contents()
        done = restore(self.inner, KEY, self.directory / "again", clock=StillClock("again"))
        assert (done.revision, done.state_hash) == (position.revision, position.state_hash.hex())
        async with self.serve(self.directory / "again") as hub:
            assert hub.contents() == contents

    async def live(self) -> None:
        """Be one process: from its start to a stop, a crash, or an error that ends it."""
        self.steps -= 1
        try:
            async with self.serve(self.directory) as hub:
                while self.steps > 0 and self.chance.random() < 0.9:
                    self.steps -= 1
                    await self.step(hub)
        except REPEATED:
            return  # a start without an answer; in rounds it is met there
        except NEVER_TRUE as error:
            raise AssertionError(f"the hub stops for nothing: {error}") from error
        except SnapshotError as error:
            if not self.rates.truncated:
                raise AssertionError(f"only lies about bytes may end a hub: {error}") from error

    @asynccontextmanager
    async def serve(self, directory: Path) -> AsyncIterator[TestHub]:
        self.starts += 1
        self.remote.history.append(f"start {self.starts}")
        async with serve(directory, self.remote, seed=f"{self.seed}-{self.starts}") as hub:
            self.pass_s(hub, 0)
            yield hub

    def pass_s(self, hub: TestHub, seconds: float) -> None:
        """Move the hub's clock and the bucket's; they agree."""
        self.inner.now += dt.timedelta(seconds=seconds)
        clock = hub.chain.clock
        assert isinstance(clock, StillClock)
        clock.at = self.inner.now

    async def step(self, hub: TestHub) -> None:
        """Write, let time pass, and ship, with a few tries."""
        await self.write(hub)
        self.pass_s(hub, self.chance.choice((0.1, 1, 60, 400, 4000)))
        for _ in range(self.chance.randint(1, 4)):
            try:
                self.ship(hub)
            except REPEATED as error:
                self.remote.history.append(f"again after {type(error).__name__}")
                if self.chance.random() < 0.3:
                    await self.write(hub)
            else:
                return

    async def write(self, hub: TestHub) -> None:
        """Create, change or delete a few objects."""
        for _ in range(self.chance.randint(1, 3)):
            names = self.chance.sample(
                [f"{kind}-{n}" for kind in ("a", "secret") for n in range(9)], 2
            )
            if self.chance.random() < 0.2 and exists(hub.store, names[0]):
                await hub.drop(names[0])
            else:
                await hub.put(*names, text=str(self.chance.random()))

    def ship(self, hub: TestHub) -> None:
        """Ship; once it returns, this very state is what a restore must give, or a later one."""
        position = hub.store.position
        self.cut[position.revision] = position.state_hash.hex()
        ship(hub.store, hub.chain, self.directory / "spool", reserve=1000)
        self.acknowledged = position.revision
        self.remote.history.append(f"acknowledged {position.revision}")
        if self.chance.random() < 0.9:  # else the process ends right here, as far as its disk knows
            remember(self.directory, hub.chain.head, dir_id=hub.store.dir_id)
        self.check_bucket()

    def check_bucket(self) -> None:
        """Restore behind the lies: it must succeed. Through lies: an error, or nothing false."""
        try:
            self.restore_from(self.inner)
        except NothingToRestore:
            assert self.acknowledged < 0
        except SnapshotError as error:
            raise AssertionError(f"the bucket cannot be restored: {error}") from error
        if self.chance.random() < 0.5:
            self.check_through_lies(
                FaultyRemote(self.inner, self.chance.randrange(1 << 30), READING)
            )

    def check_through_lies(self, through: FaultyRemote) -> None:
        try:
            self.restore_from(through)
        except SnapshotError as error:
            self.refused += 1
            if not any(": " in line for line in through.history) and self.acknowledged >= 0:
                raise AssertionError(f"no lie was told, and yet: {error}") from error

    def restore_from(self, remote: Remote) -> None:
        target = self.directory.with_name("restored")
        try:
            done = restore(remote, KEY, target, clock=StillClock("r"))
            assert self.cut.get(done.revision) == done.state_hash, "this state never was"
            assert done.revision >= self.acknowledged, "what was acknowledged is lost"
            self.restored += 1
        finally:
            shutil.rmtree(target, ignore_errors=True)
        assert not target.with_name("restored.restoring").exists()


def exists(store: Store, name: str) -> bool:
    return store.get(write(Op.CREATE, name).key) is not None


async def live_through(seed: int, directory: Path, rates: Rates, *, steps: int) -> History:
    """Run one history; what led to a failure is printed with it."""
    history = History(seed, directory / f"hub-{seed}" / "data", rates, steps)
    history.directory.parent.mkdir()
    try:
        await history.run()
    except BaseException:
        print(f"seed {seed}:", *history.remote.history, sep="\n")
        raise
    shutil.rmtree(history.directory.parent)
    return history


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("rates", [FAILING, LYING], ids=["failing", "lying"])
async def test_a_lying_bucket_loses_nothing_and_gives_nothing_false(
    tmp_path: Path, is_soak: bool, rates: Rates
) -> None:
    told: Counter[str] = Counter()
    histories = []
    steps = SOAK_STEPS if is_soak else STEPS
    for seed in range(SOAK_SEEDS if is_soak else SEEDS):
        history = await live_through(seed, tmp_path, rates, steps=steps)
        histories.append(history)
        told.update(line.rpartition(": ")[2] for line in history.remote.history if ": " in line)
    kinds = {field.name for field in fields(rates) if getattr(rates, field.name)} - {"stale"}
    assert kinds <= set(told), "a kind of fault was never met"
    assert sum(each.restored for each in histories) > len(histories)
    assert sum(each.refused for each in histories) > len(histories) / 2
    print(dict(told), sum(each.starts for each in histories), "starts")


def test_a_seed_tells_the_same_lies_again() -> None:
    def lie() -> list[str]:
        remote = FaultyRemote(MemoryRemote(), 7, LYING)
        for n in range(200):
            with contextlib.suppress(RemoteError):
                remote.put_if_absent(f"x{n % 20}", b"12345")
            with contextlib.suppress(RemoteError):
                remote.get(f"x{n % 20}")
            with contextlib.suppress(RemoteError):
                remote.delete(f"x{(n + 7) % 20}")
            with contextlib.suppress(RemoteError):
                list(remote.list())
        return remote.history

    told = lie()
    assert told == lie()
    faults = {line.rpartition(": ")[2] for line in told if ": " in line}
    assert faults == {field.name for field in fields(LYING)}
