"""A hub whose history is written down: every end of a segment with the state it had then.

The store, the chain and the segments are real; the bucket is in memory, and one clock is the hub's
and (unless told otherwise) the bucket's.
"""

import datetime as dt
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from hub.store import STORE_DIRECTORY, Op, Revision, Store
from snapshot.chain import Chain
from snapshot.cleanup import Cleaned, look, propose, sweep, write_plan
from snapshot.head import Head, SegmentRef
from snapshot.merging import write_merge
from snapshot.plan import Obtained, obtain
from snapshot.points import Target
from snapshot.policy import Merge, Policy, full_due, merge_due
from snapshot.remote import Remote
from snapshot.restore import Restored, build, restore
from snapshot.retention import Retention
from snapshot.ship import FullBegun, begin_full, put_full, read_back, ship
from snapshot.start import begin, remember
from tests.unit.snapshot.support import KEY, StillClock, contents, write
from tests.unit.store.given import kill

Contents = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class End:
    """The end of a segment as it was when HEAD first named it."""

    seq: int
    rev: int
    time_ms: int
    state_hash: str
    contents: Contents
    at: dt.datetime
    """By the bucket's clock."""


@dataclass
class History:
    """One hub on one prefix; `ends` by position."""

    directory: Path
    remote: Remote
    clock: StillClock
    ends: dict[int, End] = field(default_factory=dict)
    starts: int = 0

    def open(self) -> None:
        """Start the hub on its directory; a restored one goes on from its point."""
        self.starts += 1
        place = self.directory / STORE_DIRECTORY
        self.store = Store.open(place, hub_key=KEY, clock=self.clock, linger_s=0.0)
        self.chain = Chain(self.remote, KEY, clock=self.clock)
        begun = begin(
            self.chain,
            self.directory,
            dir_id=self.store.dir_id,
            position=self.store.position,
            reserve=1000,
        )
        self.store.raise_floor(Revision(begun.floor), is_compacted=True)

    async def close(self) -> None:
        """Stop the hub as a crash does: HEAD is not released."""
        await self.store.close()

    async def restart(self) -> None:
        """Stop and start: the next epoch."""
        await self.close()
        self.open()

    async def fork(self, to: Target, directory: Path) -> Restored:
        """Restore a point into another directory and go on there."""
        await self.close()
        restored = restore(self.remote, KEY, directory, clock=self.clock, to=to)
        self.directory = directory
        self.open()
        return restored

    @property
    def head(self) -> Head:
        return self.chain.head

    @property
    def spool(self) -> Path:
        return self.directory / "spool"

    def now_ms(self) -> int:
        return int(self.clock.now().timestamp() * 1000)

    # ---------------------------------------------------------------- changing

    async def put(self, *names: str, text: str = "x") -> None:
        """Create or update objects; those named secret* are sealed."""
        for name in names:
            found = self.store.get(write(Op.CREATE, name).key)
            op = Op.UPDATE if found else Op.CREATE
            expect = found.revision if found else None
            await self.store.commit(write(op, name, text, expect=expect))

    async def drop(self, name: str) -> None:
        """Delete an object."""
        found = self.store.get(write(Op.CREATE, name).key)
        assert found is not None
        await self.store.commit(write(Op.DELETE, name, expect=found.revision))

    # ---------------------------------------------------------------- shipping

    def ship(self, at: dt.datetime | None = None) -> int:
        """Ship what changed and write the end down; return HEAD's position."""
        ship(self.store, self.chain, self.spool, reserve=1000)
        remember(self.directory, self.head, dir_id=self.store.dir_id)
        head = self.head
        if head.seq not in self.ends:
            self.ends[head.seq] = End(
                head.seq,
                head.rev,
                head.segments[-1].time_ms,
                head.state_hash,
                {bytes(key): value for key, value in contents(self.store).items()},
                at or self.clock.now(),
            )
        return head.seq

    def full(self) -> SegmentRef | None:
        """Cut a full where HEAD stands; None when it has one of this state."""
        begun = begin_full(self.store, self.chain, self.spool, reserve=1000)
        if not isinstance(begun, FullBegun):
            return None
        put = put_full(begun, self.chain, self.spool)
        self.chain.commit_full(put.ref)
        if read_back(self.chain, put.ref, self.spool):
            self.chain.commit_verified(put.ref.name)
        return put.ref

    def merge(self, due: Merge, scratch: Path) -> SegmentRef:
        """Merge deltas of the tail."""
        scratch.mkdir()
        epoch = self.head.epoch
        segment = write_merge(
            self.remote, KEY, due.parts, scratch, epoch=epoch, token=self.clock.token
        )
        ref = self.chain.put_segment(segment, level=due.level)
        self.chain.commit_merge(ref)
        return ref

    def shorten(self, scratch: Path, policy: Policy) -> None:
        """Do the merges and the full that are due, as the tender does."""
        while due := merge_due(self.head, now_ms=self.now_ms(), policy=policy):
            self.merge(due, scratch / f"merge-{self.head.nonce}")
        if full_due(self.head, now_ms=self.now_ms(), policy=policy):
            self.full()

    def clean(self, retention: Retention, *, crash: str = "") -> Cleaned:
        """Clean up as the tender does; `crash`: stop after "plan" or "commit"."""
        found = look(self.remote, self.head, KEY)
        verdict = propose(self.remote, found, retention)
        if not verdict.is_empty:
            write_plan(self.remote, found, verdict)
            if crash == "plan":
                return Cleaned()
            if verdict.names:
                self.chain.commit_horizon(verdict.horizon, verdict.kept)
            if crash == "commit":
                return Cleaned()
            found = look(self.remote, self.head, KEY)
        return sweep(self.remote, found, retention)


@dataclass
class Judge:
    """Says whether what a restore would build is exactly what was there.

    A path is built once; after that only the bytes of its segments are compared, which were proven
    then.
    """

    history: History
    scratch: Path
    proven: dict[tuple[str, ...], int] = field(default_factory=dict)
    """The segments of each path that was built, and the position it led to."""
    bytes_of: dict[str, bytes] = field(default_factory=dict)

    def obtain(
        self, target: Target, *, head: Head | None = None, is_last_consistent: bool = False
    ) -> Obtained:
        """Obtain a state and hold it against the end that was written down."""
        place = self.scratch / "obtained"
        place.mkdir()
        try:
            head = head or Chain(self.history.remote, KEY, clock=self.history.clock).read_head()
            assert head is not None
            got = obtain(
                self.history.remote,
                KEY,
                head,
                place,
                target=target,
                is_last_consistent=is_last_consistent,
            )
            self._check(got, place)
            return got
        finally:
            shutil.rmtree(place)

    def _check(self, got: Obtained, place: Path) -> None:
        end = self.history.ends[got.point.seq]
        assert (got.base.seq, got.base.rev) == (end.seq, end.rev)
        assert (got.point.rev, got.base.state_hash) == (end.rev, end.state_hash)
        names = tuple(each.ref.name for each in got.fetched)
        for each in got.fetched:
            data = each.path.read_bytes()
            assert self.bytes_of.setdefault(each.ref.name, data) == data
        if names not in self.proven:
            self._prove(got, place, end)
            self.proven[names] = end.seq
        assert self.proven[names] == end.seq

    def _prove(self, got: Obtained, place: Path, end: End) -> None:
        build(place / "store", got, KEY, dir_id="proof")
        assert contents_of(place / "store", self.history.clock) == (end.state_hash, end.contents)


def contents_of(place: Path, clock: StillClock) -> tuple[str, Contents]:
    """Return a store's state hash, counted anew, and what it holds."""
    store = Store.open(place, hub_key=KEY, clock=clock, linger_s=0.0)
    try:
        assert store.verify() == store.position
        held = {bytes(key): value for key, value in contents(store).items()}
        return store.position.state_hash.hex(), held
    finally:
        kill(store)
