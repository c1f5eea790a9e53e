"""Tending the chain: what keeps it short, proven and small, beside shipping.

Owns when: merges and fulls when they are due (`snapshot.policy`), a look at what lies in the bucket
at the start and every quarter of an hour, a restore drill and the clean-up every hour, one probe of
the bucket at the start. Cutting, reading back and drilling run in a thread of their own, so that
deltas go on meanwhile; what writes HEAD is handed to the shipping thread (`commit`).

What fails is told and tried again; none of it ends the hub but what a commit raises. A segment that
turns out to be damaged asks for a full, so that the newest state can be restored again.
"""

import asyncio
import contextlib
import errno
import shutil
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import structlog

from hub.backup.ending import Ending
from hub.backup.holdings import Holdings, holdings_of
from hub.backup.lane import Lane
from hub.backup.parts import Drilled, Listed, Tended
from hub.clock import Clock
from hub.config import Config
from hub.store import Store, StoreError, load_hub_key
from snapshot.catalog import Catalog
from snapshot.chain import Chain
from snapshot.cleanup import Cleaned, Look, look, propose, sweep, write_plan
from snapshot.errors import (
    ChainMoved,
    IntegrityError,
    RemoteError,
    SegmentCorrupt,
    SnapshotError,
)
from snapshot.head import Head, SegmentRef, check_key
from snapshot.listing import Listing, examine
from snapshot.merging import write_merge
from snapshot.pins import list_pins
from snapshot.policy import Due, Merge, Policy, full_due, merge_due
from snapshot.remote.probe import FencingLevel, probe
from snapshot.restore import needed_bytes
from snapshot.retention import Retention, Verdict
from snapshot.ship import FullBegun, Shipped, begin_full, put_full, read_back
from snapshot.start import RESERVE
from snapshot.verify import verify

_log = structlog.get_logger("hub.backup")
_T = TypeVar("_T")
REPEATED = (RemoteError, ChainMoved, OSError)
_DRILL_ROOM = 2
"""Room asked for before a drill, times what it takes: the hub writes on the same volume."""
_SHORTENING = frozenset({"merge", "full"})
"""What a damaged segment keeps from being done, and a new full makes unnecessary."""


class Commit(Protocol):
    """Runs in the shipping thread what writes HEAD."""

    def __call__(self, function: Callable[[], _T], /) -> Awaitable[_T]:
        """Run it; raises what ends the hub."""
        ...


@dataclass(frozen=True, slots=True)
class TendPolicy:
    """The numbers, in seconds, beside those of the chain and of retention."""

    look_every_s: float = 5.0
    list_every_s: float = 900.0
    drill_every_s: float = 3600.0
    clean_every_s: float = 3600.0
    first_drill_s: float = 300.0
    """After the start; the first full comes before."""
    retry_s: float = 60.0
    chain: Policy = field(default_factory=Policy)
    retention: Retention = field(default_factory=Retention)


class Tender:
    """Tends one chain; `ask_full` and the properties belong to the event loop's thread."""

    def __init__(
        self,
        store: Store,
        chain: Chain,
        clock: Clock,
        config: Config,
        *,
        commit: Commit,
        policy: TendPolicy | None = None,
    ) -> None:
        self._store, self._chain, self._clock, self._config = store, chain, clock, config
        self._commit, self._policy = commit, policy or TendPolicy()
        self._spool = config.data_dir / "spool"
        self._lane = Lane("tend")
        self._remote = Ending(chain.remote)
        self._asked: Due | None = None
        self._woken = asyncio.Event()
        self._next_s: dict[str, float] = {}
        self.last_full: Shipped | None = None
        self.tended = Tended()
        self.holdings = Holdings()
        self.on_news: Callable[[], None] = lambda: None
        """Called when there is something new to tell: a full, or what `tended` says."""
        self.on_shipped: Callable[[Shipped], None] = lambda _: None
        self.on_failed: Callable[[str, Exception], None] = lambda _op, _error: None
        self.on_cleaned: Callable[[Cleaned], None] = lambda _: None

    def ask_full(self) -> None:
        """Look at once and bring a full, whatever failed before."""
        self._asked = self._asked or Due.ASKED
        self._next_s.pop("full", None)
        self._woken.set()

    def shipped(self, shipped: Shipped) -> None:
        """Note what shipping committed by itself."""
        if shipped.level == "full":
            self.last_full = shipped
            self.on_news()
        self._follow_head()

    def _follow_head(self) -> None:
        self.holdings = self.holdings.with_head(self._chain.head)

    def _found(self, tended: Tended) -> None:
        """Tell what was found out."""
        if tended != self.tended:
            self.tended = tended
            self.on_news()

    async def run(self) -> None:
        """Look until cancelled; raises what a commit does when it ends the hub."""
        now = self._clock.monotonic_s()
        self._next_s = {
            "list": now,
            "drill": now + self._policy.first_drill_s,
            "clean": now + self._policy.first_drill_s,
            "probe": now,
        }
        while True:
            self._woken.clear()
            await self.look()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._policy.look_every_s):
                    await self._woken.wait()

    async def look(self) -> None:
        """Do what is due; a failure of one thing is told and does not keep the others."""
        if self._chain.head.full is None:
            return
        for name, what in (
            ("merge", self._merge_if_due),
            ("full", self._full_if_due),
            ("probe", self._probe),
            ("list", self._list),
            ("drill", self._drill),
            ("clean", self._clean),
        ):
            await self._try(name, what)

    async def _try(self, name: str, what: Callable[[], Awaitable[None]]) -> None:
        if self._next_s.get(name, 0.0) > self._clock.monotonic_s():
            return  # not due, or in the pause after a failure
        try:
            await what()
        except (*REPEATED, IntegrityError) as error:
            self.on_failed(name, error)
            _log.warning("tending_failed", what=name, problem=str(error))
            self._next_s[name] = self._clock.monotonic_s() + self._policy.retry_s
            if name in _SHORTENING:
                self._found(replace(self.tended, trouble=f"{name}: {error}"))
                if isinstance(error, IntegrityError):
                    self._asked = Due.DAMAGED
        else:
            if name in _SHORTENING and self.tended.trouble.startswith(f"{name}:"):
                self._found(replace(self.tended, trouble=""))

    # ---------------------------------------------------------------- shortening

    async def _merge_if_due(self) -> None:
        while due := merge_due(self._chain.head, now_ms=self._now_ms(), policy=self._policy.chain):
            ref = await self._lane.run(self._put_merge, due)
            await self._commit(partial(self._chain.commit_merge, ref))
            self._follow_head()
            _log.debug("merged", name=ref.name, parts=len(due.parts), size=ref.size)

    def _put_merge(self, due: Merge) -> SegmentRef:
        with _scratch(self._spool, "merge") as place:
            segment = write_merge(
                self._remote,
                self._chain.key,
                due.parts,
                place,
                epoch=self._chain.head.epoch,
                token=self._clock.token,
            )
            return self._chain.put_segment(segment, level=due.level)

    async def _full_if_due(self) -> None:
        head = self._chain.head
        due = self._asked or full_due(head, now_ms=self._now_ms(), policy=self._policy.chain)
        if due is None:
            return
        asked, self._asked = self._asked, None  # who asks from here on gets a further one
        try:
            await self._full(due)
        except BaseException:
            self._asked = self._asked or asked
            raise

    async def _full(self, due: Due) -> None:
        begun = await self._begin_full(due)
        if isinstance(begun, FullBegun):
            await self._finish_full(begun)
        elif begun is not None:
            self._done(begun)

    async def _begin_full(self, due: Due) -> FullBegun | Shipped | None:
        """Fix the position of a full; one that nobody waits for any more is closed."""
        chain, store = self._chain, self._store
        begin = asyncio.ensure_future(
            self._commit(
                lambda: begin_full(store, chain, self._spool, because=due, reserve=RESERVE)
            )
        )
        try:
            return await asyncio.shield(begin)
        except asyncio.CancelledError:
            await asyncio.wait([begin])
            is_begun = not begin.cancelled() and begin.exception() is None
            if is_begun and isinstance(begun := begin.result(), FullBegun):
                begun.close()
            raise

    async def _finish_full(self, begun: FullBegun) -> None:
        """Read and put the full, name it in HEAD, and read it back."""
        chain = self._chain
        if begun.delta is not None:
            self.on_shipped(begun.delta)
        try:
            put = await self._lane.run(put_full, begun, chain, self._spool)
        finally:  # in its thread: it may be reading still when the hub stops
            self._lane.later(begun.close)
        await self._commit(lambda: chain.commit_full(put.ref))
        self._done(put.shipped)
        if not await self._lane.run(read_back, chain, put.ref, self._spool):
            raise SegmentCorrupt("not read back as it was put", op="full", object=put.ref.name)
        await self._commit(lambda: chain.commit_verified(put.ref.name))
        self._follow_head()

    def _done(self, shipped: Shipped) -> None:
        self.on_shipped(shipped)
        self.shipped(shipped)
        _log.info("full_shipped", name=shipped.name, size=shipped.size, because=shipped.because)

    # ---------------------------------------------------------------- proving

    async def _probe(self) -> None:
        found = await self._lane.run(probe, self._remote, self._clock)
        self._chain.looks_first = found.fencing_level is not FencingLevel.ENFORCED
        self._next_s["probe"] = float("inf")
        self._found(
            replace(
                self.tended,
                fencing_level=int(found.fencing_level),
                missing=found.missing,
                clock_offset_s=found.clock_offset_s,
            )
        )
        if found.missing:
            _log.warning("fencing_degraded", missing=found.missing)

    async def _list(self) -> None:
        """Compare what lies in the bucket with what is named."""
        self._next_s["list"] = self._clock.monotonic_s() + self._policy.list_every_s
        found, holdings = await self._lane.run(self._list_now, self._chain.head)
        self._hold(holdings)
        listed = Listed(self._clock.now(), found.segments, found.size, found.problem)
        self._found(replace(self.tended, listed=listed))
        if found.problem:
            _log.error("chain_damaged", problem=found.problem)
            if found.is_head_hurt:
                self._asked = Due.DAMAGED

    def _list_now(self, head: Head) -> tuple[Listing, Holdings]:
        listing, catalog = examine(self._remote, head, self._chain.key)
        return listing, self._holdings_of(catalog)

    def _holdings_of(self, catalog: Catalog) -> Holdings:
        try:
            pins = list_pins(self._remote)
        except IntegrityError as error:
            _log.warning("pins_not_read", problem=str(error), hint=error.hint)
            pins = []
        return holdings_of(catalog, pins)

    def _hold(self, holdings: Holdings) -> None:
        """Take what the bucket says; HEAD may have gone on meanwhile."""
        self.holdings = holdings
        self._follow_head()
        self.on_news()

    async def _drill(self) -> None:
        """Build the newest state from the bucket beside the store, and compare."""
        self._next_s["drill"] = self._clock.monotonic_s() + self._policy.drill_every_s
        drilled = await self._lane.run(self._drill_now)
        if drilled.problem:
            self._found(replace(self.tended, drill=drilled))
            _log.error("drill_failed", problem=drilled.problem)
            self._asked = Due.DAMAGED
            return
        self._found(replace(self.tended, drill=drilled, key_proven=drilled.at))
        _log.info("drill_passed", rev=drilled.revision, seconds=round(drilled.seconds, 2))

    def _drill_now(self) -> Drilled:
        """Restore with the key as it lies in its file, so that the file is proven too."""
        began_s, head = self._clock.monotonic_s(), self._chain.head
        revision, problem = head.rev, ""
        try:
            key = load_hub_key(self._config.hub_key_path(), outside=self._config.data_dir)
            check_key(head, key)
            with _scratch(self._spool, "drill") as place:
                _check_room(place, _DRILL_ROOM * needed_bytes(head))
                found = verify(self._remote, key, clock=self._clock, scratch=place, deep=True)
            revision = found.revision
            if found.damaged:
                problem = f"segments are damaged: {', '.join(found.damaged)}"
        except REPEATED:
            raise
        except (SnapshotError, StoreError) as error:  # the store's: there is no key in the file
            problem = str(error)
        seconds = self._clock.monotonic_s() - began_s
        return Drilled(self._clock.now(), revision, seconds, problem)

    async def _clean(self) -> None:
        """Plan what retention lets go, and delete what was planned long enough ago."""
        self._next_s["clean"] = self._clock.monotonic_s() + self._policy.clean_every_s
        chain, remote, retention = self._chain, self._remote, self._policy.retention
        found = await self._lane.run(look, remote, chain.head, chain.key)
        verdict = await self._lane.run(propose, remote, found, retention)
        if not verdict.is_empty:
            await self._lane.run(write_plan, remote, found, verdict)
            if verdict.names:  # else HEAD names none of it: orphans
                await self._let_go(found, verdict)
            found = await self._lane.run(look, remote, chain.head, chain.key)
        cleaned = await self._lane.run(sweep, remote, found, retention)
        self._hold(await self._lane.run(self._holdings_of, found.catalog))
        self.on_cleaned(cleaned)
        if cleaned.deleted or cleaned.failed:
            _log.info("cleaned_up", deleted=cleaned.deleted, failed=cleaned.failed)

    async def _let_go(self, found: Look, verdict: Verdict) -> None:
        """Let HEAD forget what goes, but for what was pinned since it was judged."""
        chain = self._chain
        await self._commit(partial(chain.commit_horizon, verdict.horizon, verdict.kept))
        again = await self._lane.run(propose, self._remote, found, self._policy.retention)
        if not set(again.kept) <= set(verdict.kept):
            await self._commit(partial(chain.commit_horizon, verdict.horizon, again.kept))

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)

    def end(self) -> None:
        """Break off what the thread is doing, at the next object; `close` waits for it."""
        self._remote.end()

    def close(self) -> None:
        """Wait for what the thread is doing."""
        self.end()
        self._lane.close()


def _check_room(place: Path, needed: int) -> None:
    """Raise OSError, which is tried again, rather than fill the volume that the store is on."""
    free = shutil.disk_usage(place).free
    if free < needed:
        what = f"{free >> 20} MiB are free, {needed >> 20} MiB are needed beside the store"
        raise OSError(errno.ENOSPC, what)


@contextlib.contextmanager
def _scratch(spool: Path, name: str) -> Iterator[Path]:
    """Give an empty directory, gone afterwards; sweeps what a crash left of its name."""
    place = spool / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700, parents=True)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
