"""Shipping beside serving: every durable change reaches the bucket.

Owns the start on a prefix, the rounds of shipping and the end. When a round is due is `pace`'s,
how a segment is cut and committed `snapshot`'s. All of it runs in one worker thread; no request
waits for the bucket that has not asked for it (`durable`).

A bucket that cannot be reached or refuses, and a local disk that is full, are counted and tried
again, and never stop serving. A prefix that another hub has taken (`Fenced`), whose HEAD is gone or
that contradicts what this hub wrote stops it.
"""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

import structlog
from prometheus_client import CollectorRegistry

from hub.backup.durable import DurableWaiters
from hub.backup.metrics import BackupMetrics
from hub.backup.pace import Pace, PacePolicy
from hub.backup.protected import Protected
from hub.clock import Clock
from hub.config import Config
from hub.registry.catalog import Catalog
from hub.store import (
    Change,
    HubKey,
    Revision,
    Store,
    create_hub_key,
    has_store,
    load_hub_key,
)
from snapshot.arbiter import Continue, Create, Refuse, TakeClaim
from snapshot.chain import Chain
from snapshot.errors import ChainMoved, RemoteError, SnapshotError, StartRefused
from snapshot.head import Head
from snapshot.local import LocalState, load_claim, load_state, save_state
from snapshot.remote import Remote, open_remote
from snapshot.ship import Shipped, ship, ship_full
from snapshot.start import arbitrate, begin, remember

_log = structlog.get_logger("hub.backup")
_T = TypeVar("_T")
_P = ParamSpec("_P")

RESERVE = 100_000_000
"""Revisions reserved ahead in HEAD: 3,000 clusters use them up in three weeks without a bucket."""
_UNDER_WAY = 10_000
"""More writes than can still be on their way to the committer when the hub stops."""
REPEATED = (RemoteError, ChainMoved, OSError)
"""What the next attempt may not meet again; anything else ends the hub."""
START_KINDS = {Create: "empty", Continue: "continue", TakeClaim: "restored"}


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
        pace: PacePolicy | None = None,
    ) -> None:
        self._store, self._chain, self._dir = store, chain, config.data_dir
        self._pace = Pace(clock, pace)
        self._metrics = BackupMetrics(metrics, self._unshipped, is_on=chain is not None)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="ship")
        self._wants_full = self._is_writer = False
        self._end: SnapshotError | None = None
        self._is_protected: Protected | None = None
        self._waiters = DurableWaiters()
        self.start_kind = "local"

    # ---------------------------------------------------------------- starting

    async def take_over(self, hub_id: str) -> None:
        """Become the writer of the prefix; revisions go on above all that were ever handed out.

        :raises SnapshotError: the arbiter refuses, or the bucket does not answer
        """
        if self._chain is None:
            return
        if load_state(self._dir) is None:
            save_state(self._dir, LocalState(dir_id=self._store.dir_id, hub_id=hub_id))
        begun = await self._in_worker(
            begin,
            self._chain,
            self._dir,
            dir_id=self._store.dir_id,
            position=self._store.position,
            reserve=RESERVE,
        )
        self.start_kind = START_KINDS.get(type(begun.decision), "continue")
        if not isinstance(begun.decision, Create):
            is_restored = isinstance(begun.decision, TakeClaim)
            self._store.raise_floor(Revision(begun.floor), is_compacted=is_restored)
        self._is_writer = True
        self._wants_full = isinstance(begun.decision, TakeClaim) or begun.head.full is None
        if self._wants_full:
            self._pace.hurry()
        elif self._unshipped():  # a crash came before they were shipped
            self._pace.changed()
        _log.info("epoch_taken", epoch=begun.head.epoch, start=self.start_kind, floor=begun.floor)

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

    def refusal(self) -> str:
        """Return why the hub must not answer, "" when it may."""
        return f"this hub must not write any more: {self._end}" if self._end else ""

    # ---------------------------------------------------------------- running

    async def run(self) -> None:
        """Ship until cancelled.

        :raises SnapshotError: another hub has the prefix (`Fenced`), HEAD is gone, or what lies
            under the prefix is not what this hub wrote
        """
        if self._chain is None:
            await asyncio.Event().wait()
        try:
            await self._ship_forever()
        finally:
            self._waiters.close()

    async def _ship_forever(self) -> None:
        while True:
            await self._pace.wait()
            try:
                await self._ship_what_is_due()
            except REPEATED as error:
                self._metrics.failed()
                pause_s = self._pace.failed()
                _log.warning("backup_failed", problem=str(error), retry_in_s=pause_s)
                await asyncio.sleep(pause_s)
            except SnapshotError as error:
                _log.error("backup_stopped", problem=str(error), hint=error.hint)
                self._waiters.failed(error)
                raise
            else:
                self._pace.succeeded()

    async def _ship_what_is_due(self) -> None:
        """Cut and commit what is due; without a change, make sure that the prefix is still ours."""
        self._pace.begin()
        shipped = await self._in_worker(self._ship)
        self._wants_full = False
        self._waiters.shipped(self.shipped_revision())
        if not self._unshipped():  # changes that came while it was cut are in it
            self._pace.begin()
        if shipped is None:
            self._metrics.confirmed()
            return
        self._metrics.shipped(shipped)
        _log.debug("segment_shipped", name=shipped.name, size=shipped.size, because=shipped.because)

    def _ship(self) -> Shipped | None:
        """Do one round in the worker thread; what ends the hub once ends every later round too."""
        if self._end is not None:
            raise self._end
        try:
            return self._ship_round()
        except REPEATED:
            raise
        except SnapshotError as error:
            self._end = error  # from here on nothing is answered
            raise

    def _ship_round(self) -> Shipped | None:
        chain, store = self._require_chain(), self._store
        send = ship_full if self._wants_full else ship
        shipped = send(store, chain, self._dir / "spool", reserve=RESERVE)
        if shipped is None:
            # renewals take revisions too: keep the reservation ahead of them
            chain.confirm(reserved_rev=store.revision + RESERVE)
        remember(self._dir, chain.head, dir_id=store.dir_id)
        return shipped

    def _require_chain(self) -> Chain:
        if self._chain is None:
            raise ValueError("there is no object store")
        return self._chain

    async def _in_worker(
        self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Run what blocks on disk and network, one at a time, beside the loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._worker, functools.partial(function, *args, **kwargs)
        )

    # ---------------------------------------------------------------- stopping

    async def finish(self) -> None:
        """Ship the rest and release the prefix; call it before the store is closed.

        A bucket that does not answer is reported, and holds up the stop no longer than its own
        time-outs.

        :raises SnapshotError: as `run`
        """
        try:
            if self._chain is not None and self._is_writer and self._end is None:
                await self._ship_what_is_due()
                last = self._store.revision + _UNDER_WAY
                head: Head = await self._in_worker(self._chain.release, last_rev=last)
                _log.info("prefix_released", epoch=head.epoch, rev=head.rev)
        except REPEATED as error:
            _log.warning("final_segment_failed", problem=str(error), unshipped=self._unshipped())
        finally:
            self._worker.shutdown(wait=True)
            if self._chain is not None:
                self._chain.remote.close()


async def open_backup(
    config: Config, clock: Clock, *, metrics: CollectorRegistry, pace: PacePolicy | None = None
) -> tuple[Store, Backup]:
    """Open the store of the data directory, unless the prefix says that it must not be.

    The caller holds the directory (`snapshot.target.occupied`) until the store is closed.
    Raises `StoreError` when the directory cannot be opened; `SnapshotError` when it is empty and
    the prefix holds a hub, or the bucket cannot be read.
    """
    is_new = not has_store(config.store_dir())
    if not config.object_store and not config.detach:
        _refuse_without_store(config.data_dir)
    remote = open_remote(config.object_store) if config.object_store else None
    if remote is not None and is_new and not config.hub_key_path().exists():
        await asyncio.to_thread(_refuse_without_key, remote, config)
    hub_key = _hub_key(config, clock, can_create=is_new)
    chain = None
    if remote is not None:
        chain = Chain(remote, hub_key, clock=clock)
        if is_new:
            await asyncio.to_thread(_refuse_foreign, chain, config.data_dir)
    store = Store.open(config.store_dir(), hub_key=hub_key, clock=clock)
    return store, Backup(config, clock, store, chain=chain, metrics=metrics, pace=pace)


def _hub_key(config: Config, clock: Clock, *, can_create: bool) -> HubKey:
    path = config.hub_key_path()
    if path.exists() or not can_create:
        return load_hub_key(path, outside=config.data_dir)
    return _new_hub_key(path, config.data_dir, clock)


def _new_hub_key(path: Path, directory: Path, clock: Clock) -> HubKey:
    path.parent.mkdir(parents=True, exist_ok=True)
    return create_hub_key(path, token=clock.token, outside=directory)


def _refuse_without_store(directory: Path) -> None:
    """Refuse to run what has a prefix without looking at it: another hub may have it by now."""
    state, claim = load_state(directory), load_claim(directory)
    if claim is not None:
        what = f"the data directory was restored from {claim.object_store}"
    elif state is not None and state.epoch:
        what = f"the data directory has shipped up to revision {state.rev}"
    else:
        return
    raise StartRefused(
        f"{what}, and no object store is given",
        op="start",
        hint="give the same --object-store; or, to run it apart from its prefix for good, --detach "
        "(two hubs of one identity must never serve the same agents)",
    )


def _refuse_without_key(remote: Remote, config: Config) -> None:
    """Refuse to make a new key for a prefix that was written under another, HEAD there or not."""
    if next(iter(remote.list()), None) is None:
        return
    raise StartRefused(
        f"the data directory is empty, there is no key file {config.hub_key_path()}, and the "
        "prefix holds what a hub wrote",
        op="start",
        hint="give the hub its key with --key-file and run: hub-restore restore --object-store URL "
        "--data-dir NEWDIR --key-file KEY; or give a new hub a prefix of its own",
    )


def _refuse_foreign(chain: Chain, directory: Path) -> None:
    decision, _ = arbitrate(chain, directory, dir_id="", position=None)
    if isinstance(decision, Refuse):
        raise StartRefused(decision.reason, op="start", hint=decision.hint)
