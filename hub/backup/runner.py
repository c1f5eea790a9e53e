"""Shipping beside serving: every durable change reaches the bucket.

Owns the start on a prefix, the rounds of shipping and the end. When a round is due is `pace`'s,
how a segment is cut and committed `snapshot`'s, what keeps the chain short and proven `tend`'s. All
commits run in one worker thread; no request waits for the bucket that has not asked for it
(`durable`).

A bucket that cannot be reached or refuses, and a local disk that is full, are counted and tried
again, and never stop serving (unless strict fencing says so). A prefix that another hub has taken
(`Fenced`), whose HEAD is gone or that contradicts what this hub wrote stops it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import structlog
from prometheus_client import CollectorRegistry

from hub.backup.durable import DurableWaiters
from hub.backup.lane import Lane
from hub.backup.metrics import BackupMetrics
from hub.backup.pace import Pace, PacePolicy
from hub.backup.parts import Parts
from hub.backup.protected import Protected
from hub.backup.tend import REPEATED, Tender, TendPolicy
from hub.clock import Clock
from hub.config import Config
from hub.registry.catalog import Catalog
from hub.store import Change, Revision, Store
from snapshot.arbiter import Adopt, Allowed, Continue, Create, Decision, TakeClaim
from snapshot.chain import Chain
from snapshot.errors import Fenced, SnapshotError
from snapshot.head import Head
from snapshot.local import Claim, LocalState, load_claim, load_state, save_state, spend_claim
from snapshot.ship import Shipped, ship
from snapshot.start import begin, remember, remember_fenced

_log = structlog.get_logger("hub.backup")
_T = TypeVar("_T")

RESERVE = 100_000_000
"""Revisions reserved ahead in HEAD: 3,000 clusters use them up in three weeks without a bucket."""
_ASKS = 3
"""How often an idle hub asks the bucket within the time of strict fencing."""
_UNDER_WAY = 10_000
"""More writes than can still be on their way to the committer when the hub stops."""
START_KINDS = {
    Create: "empty",
    Continue: "continue",
    TakeClaim: "restored",
    Adopt: "adopted",
}


class Backup:
    """The shipping of one hub; without an object store it does nothing and says so."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        store: Store,
        *,
        chain: Chain | None,
        metrics: CollectorRegistry,
        allowed: Allowed = Allowed(),  # noqa: B008  frozen
        pace: PacePolicy | None = None,
        tend: TendPolicy | None = None,
    ) -> None:
        self._config, self._clock, self._store = config, clock, store
        self._chain, self._dir, self._allowed = chain, config.data_dir, allowed
        self._pace = Pace(clock, _often_enough(pace or PacePolicy(), config.strict_fencing))
        self._metrics = BackupMetrics(metrics, self.parts, store)
        self._lane = Lane("ship")
        self._tender: Tender | None = None
        if chain is not None:
            self._tender = Tender(store, chain, clock, config, commit=self._commit, policy=tend)
            self._metrics.follow(self._tender)
        self._is_writer = False
        self._end: SnapshotError | None = None
        self._is_protected: Protected | None = None
        self._waiters = DurableWaiters()
        self._trouble = ""
        self._behind_from_s: float | None = None
        self._asked_s = clock.monotonic_s()
        """When the last round began that the bucket has answered."""
        self._claim: Claim | None = None
        self.start_kind = "local"
        self._on_news: Callable[[], None] = lambda: None

    # ---------------------------------------------------------------- starting

    async def take_over(self, hub_id: str) -> None:
        """Become the writer of the prefix; revisions go on above all that were ever handed out.

        :raises SnapshotError: the arbiter refuses, or the bucket does not answer
        """
        if self._chain is None or self._tender is None:
            return
        if load_state(self._dir) is None:
            save_state(self._dir, LocalState(dir_id=self._store.dir_id, hub_id=hub_id))
        claim = load_claim(self._dir)
        asked_s = self._clock.monotonic_s()
        begun = await self._lane.run(
            begin,
            self._chain,
            self._dir,
            dir_id=self._store.dir_id,
            position=self._store.position,
            reserve=RESERVE,
            allowed=self._allowed,
            place=self._config.place,
            keeps_claim=True,
        )
        self.start_kind = _start_kind(begun.decision, claim)
        is_other = self.is_from_elsewhere
        self._asked_s = asked_s
        if not isinstance(begun.decision, Create):
            self._store.raise_floor(Revision(begun.floor), is_compacted=is_other)
        self._is_writer = True
        self._claim = claim if self.start_kind == "restored" else None
        if begun.head.full is None:
            self._pace.hurry()
        elif self._unshipped():  # a crash came before they were shipped
            self._pace.changed()
        if is_other:
            self._tender.ask_full()
        _log.info("epoch_taken", epoch=begun.head.epoch, start=self.start_kind, floor=begun.floor)

    @property
    def is_from_elsewhere(self) -> bool:
        """Whether the state may lack what another directory of this hub had."""
        return self.start_kind in {"restored", "adopted"}

    def spend_claim(self) -> None:
        """Forget that the state came from elsewhere: the store says it itself now, durably."""
        if self._chain is not None:
            spend_claim(self._dir)

    @property
    def has_lost_nothing(self) -> bool:
        """Whether all that was ever acknowledged is known to be here."""
        return self._claim is not None and self._claim.drained

    def tell(self, on_news: Callable[[], None]) -> None:
        """Call `on_news` whenever there is something new to say of shipping or tending."""
        self._on_news = on_news
        if self._tender is not None:
            self._tender.on_news = on_news

    def follow(self, catalog: Catalog) -> None:
        """Watch the store for what is to be shipped."""
        if self._chain is None:
            return
        self._is_protected = Protected(catalog, self._store)
        self._store.subscribe(self._changed)
        if self._unshipped():  # what the start itself has changed since
            self._pace.changed()

    def _changed(self, changes: list[Change]) -> None:
        """Note what is not in the bucket yet; renewals and Events never will be."""
        shipped = self.shipped_revision()
        due = [each for each in changes if each.is_logged and each.revision > shipped]
        if not due:
            return
        if self._behind_from_s is None:
            self._behind_from_s = self._clock.monotonic_s()
        if self._is_protected is not None and any(map(self._is_protected, due)):
            self._pace.hurry()
        else:
            self._pace.gathered((each.key, len(each.value)) for each in due)

    async def durable(self, revision: Revision) -> None:
        """Return once HEAD in the bucket names a segment that holds `revision`; hurries it.

        Waits as long as the bucket does not answer: bound it.

        :raises SnapshotError: shipping has ended, for good or because the hub stops
        """
        if self._end is not None:
            raise self._end
        if self._require_chain().head.rev >= revision:
            return
        self._pace.hurry()
        await self._waiters.add(revision)

    def ask_full(self) -> None:
        """Let a full of the present state be shipped soon; nothing without an object store."""
        if self._tender is not None:
            self._tender.ask_full()

    def _unshipped(self) -> int:
        """Return how far the bucket is behind the last durable revision."""
        if self._chain is None or not self._is_writer:
            return 0
        return max(0, self._store.position.revision - self._chain.head.rev)

    def shipped_revision(self) -> Revision:
        """Return up to where the log is no longer needed for shipping."""
        if self._chain is None:
            return self._store.position.revision
        return Revision(self._chain.head.rev if self._is_writer else 0)

    def parts(self) -> Parts:
        """Return what shipping knows of itself now."""
        parts = Parts(
            start_kind=self.start_kind,
            has_store=self._chain is not None,
            head=self._chain.head if self._chain is not None and self._is_writer else None,
            behind=self._unshipped(),
            behind_s=self._lag_s(),
            trouble=self._trouble,
            end=str(self._end or ""),
            claim=self._claim,
            last_full=None,
        )
        if self._tender is None:
            return parts
        tender = self._tender
        return replace(
            parts, last_full=tender.last_full, tended=tender.tended, holdings=tender.holdings
        )

    def _lag_s(self) -> float:
        """Return for how long the bucket has lacked something; from now on if nobody noted it."""
        if not self._unshipped():
            return 0.0
        now_s = self._clock.monotonic_s()
        if self._behind_from_s is None:
            self._behind_from_s = now_s
        return now_s - self._behind_from_s

    def refusal(self) -> str:
        """Return why the hub must not answer, "" when it may."""
        return f"this hub must not write any more: {self._end}" if self._end else ""

    def write_refusal(self) -> str:
        """Return why the hub must not write for now, "" when it may.

        With strict fencing a hub that has not been told by the bucket for a while that the prefix
        is still its own stops writing; without, it goes on, until the revisions are used up that
        HEAD reserves: beyond them a restore elsewhere could give out the same ones.
        """
        if self._chain is None or not self._is_writer:
            return ""
        if self._store.revision + _UNDER_WAY >= self._chain.head.reserved_rev:
            return "the revisions reserved in the object store are used up, and it does not answer"
        if not self._config.strict_fencing:
            return ""
        silent_s = self._clock.monotonic_s() - self._asked_s
        if silent_s < self._config.strict_fencing:
            return ""
        return f"the object store has not answered for {silent_s:.0f} s (strict fencing)"

    # ---------------------------------------------------------------- running

    async def run(self) -> None:
        """Ship until cancelled.

        :raises SnapshotError: another hub has the prefix (`Fenced`), HEAD is gone, or what lies
            under the prefix is not what this hub wrote
        """
        if self._chain is None or self._tender is None:
            await asyncio.Event().wait()
            return
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._ship_forever(), name="ship")
                group.create_task(self._tender.run(), name="tend")
        except* SnapshotError as errors:
            self._waiters.failed(self._end or _first(errors))
            raise _first(errors) from errors
        finally:
            self._waiters.close()

    async def _ship_forever(self) -> None:
        while True:
            await self._pace.wait()
            try:
                await self._ship_what_is_due()
            except REPEATED as error:
                self._metrics.failed("ship", error)
                self._is_troubled(self._told(error))
                pause_s = self._pace.failed()
                _log.warning("backup_failed", problem=self._trouble, retry_in_s=pause_s)
                await asyncio.sleep(pause_s)
            else:
                self._is_troubled("")
                self._pace.succeeded()

    def _is_troubled(self, trouble: str) -> None:
        """Note how the last attempt ended, and tell when that is not how the one before did."""
        is_news, self._trouble = bool(trouble) != bool(self._trouble), trouble
        if is_news:
            self._on_news()

    def _told(self, error: Exception) -> str:
        """Return what went wrong; the error of a file that was being written names no place."""
        return f"{self._dir}: {error}" if isinstance(error, OSError) else str(error)

    async def _ship_what_is_due(self) -> None:
        """Cut and commit what is due; without a change, make sure that the prefix is still ours."""
        self._pace.begin()
        began_s = self._clock.monotonic_s()
        shipped = await self._commit(self._ship_round)
        self._asked_s = began_s
        self._behind_from_s = began_s if self._unshipped() else None
        self._waiters.shipped(self.shipped_revision())
        if not self._unshipped():  # changes that came while it was cut are in it
            self._pace.begin()
        await self._commit(self._remember)  # after those who wait: it costs two syncs
        self._metrics.confirmed()
        if shipped is None:
            return
        self._metrics.shipped(shipped)
        if self._tender is not None:
            self._tender.shipped(shipped)
        _log.debug("segment_shipped", name=shipped.name, size=shipped.size, because=shipped.because)

    async def _commit(self, function: Callable[[], _T], /) -> _T:
        """Run what writes HEAD, in the worker thread; what ends the hub once ends every later one.

        :raises SnapshotError: what ended it
        """
        return await self._lane.run(self._guarded, function)

    def _guarded(self, function: Callable[[], _T]) -> _T:
        if self._end is not None:
            raise self._end
        try:
            return function()
        except REPEATED:
            raise
        except SnapshotError as error:
            self._end = error  # from here on nothing is answered
            _log.error("backup_stopped", problem=str(error), hint=error.hint)
            if isinstance(error, Fenced):
                remember_fenced(self._dir, error.by)
            raise

    def _ship_round(self) -> Shipped | None:
        chain, store = self._require_chain(), self._store
        shipped = ship(store, chain, self._dir / "spool", reserve=RESERVE)
        if shipped is None:
            # renewals take revisions too: keep the reservation ahead of them
            chain.confirm(reserved_rev=store.revision + RESERVE)
        return shipped

    def _remember(self) -> None:
        head = self._require_chain().head
        remember(self._dir, head, dir_id=self._store.dir_id, place=self._config.place)

    def _require_chain(self) -> Chain:
        if self._chain is None:
            raise ValueError("there is no object store")
        return self._chain

    # ---------------------------------------------------------------- stopping

    async def finish(self) -> None:
        """Ship the rest and release the prefix; call it before the store is closed.

        Tending is waited for last: whoever kills a hub that is slow to stop then loses nothing. A
        bucket that does not answer is reported, and holds up the stop no longer than its own
        time-outs.

        :raises SnapshotError: as `run`
        """
        try:
            if self._tender is not None:
                self._tender.end()
            if self._chain is not None and self._is_writer and self._end is None:
                await self._ship_what_is_due()
                head = await self._commit(self._release)
                _log.info("prefix_released", epoch=head.epoch, rev=head.rev)
        except REPEATED as error:
            problem = self._told(error)
            _log.warning("final_segment_failed", problem=problem, unshipped=self._unshipped())
        finally:
            if self._tender is not None:
                self._tender.close()
            self._lane.close()
            if self._chain is not None:
                self._chain.remote.close()

    def _release(self) -> Head:
        last = self._store.revision + _UNDER_WAY
        return self._require_chain().release(last_rev=last, is_drained=True)


def _start_kind(decision: Decision, claim: Claim | None) -> str:
    """Return how the hub began; a claim not spent yet is of a start that crashed on its way."""
    if isinstance(decision, Continue) and claim is not None:
        return START_KINDS[Adopt if claim.adopted else TakeClaim]
    return START_KINDS.get(type(decision), "continue")


def _often_enough(pace: PacePolicy, strict_s: int) -> PacePolicy:
    """Return the pace with which an idle hub asks the bucket well within strict fencing's time."""
    if not strict_s:
        return pace
    most_s = strict_s / _ASKS
    return replace(
        pace,
        heartbeat_s=min(pace.heartbeat_s, most_s),
        last_retry_s=min(pace.last_retry_s, most_s),
        first_retry_s=min(pace.first_retry_s, most_s),
    )


def _first(errors: BaseExceptionGroup[SnapshotError]) -> SnapshotError:
    """Return the first of a group's errors."""
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
