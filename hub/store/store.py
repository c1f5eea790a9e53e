"""The store: everything the hub keeps, in one LMDB file, behind one object.

Owns the event loop's side: queuing commits, renewing Leases in memory, and settling what the
committer thread has done. The file, its formats and the thread have modules of their own. Knows
nothing of Kubernetes.

Invariants: a commit's future resolves only after its fsync; `revision` moves up and subscribers are
called in one callback of the loop, so that reading at `Page.revision` and listening from then on
misses nothing; a batch that fails leaves no trace but skipped revisions.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self, cast

from hub.clock import Clock
from hub.store import audit, export, log, reader, rekey
from hub.store.api import (
    Change,
    Draft,
    Index,
    Key,
    Listener,
    Match,
    Op,
    Page,
    Position,
    Revision,
    Stored,
    Write,
)
from hub.store.committer import LINGER_S, Batch, Commits, Committer, Job, Ticket
from hub.store.errors import Broken, Closed, FutureRevision, InvariantError, MapFull
from hub.store.hubkey import HubKey
from hub.store.job import CommitJob, CompactJob, FlushJob
from hub.store.ledger import CEILING_BLOCK
from hub.store.lmdb_env import MAP_BYTES, extra_name, read_marks
from hub.store.opening import Opened, open_file, record_clean, record_floor
from hub.store.publisher import Publisher
from hub.store.renewal import renew
from hub.store.stats import Stats, stats_of
from hub.store.sweep import sweep

FLUSH_S = 15.0
"""How long a renewal may stay in memory only."""


class Store:
    """One open store. Methods belong to the event loop's thread unless they say otherwise."""

    __slots__ = (
        "_broken",
        "_ceiling",
        "_committer",
        "_extension",
        "_flush_s",
        "_is_closed",
        "_lock",
        "_loop",
        "_position",
        "_publisher",
        "_shared",
        "_timer",
        "dir_id",
        "trouble",
        "was_clean",
    )

    def __init__(
        self,
        opened: Opened,
        *,
        loop: asyncio.AbstractEventLoop | None,
        clock: Clock,
        linger_s: float,
        flush_s: float,
    ) -> None:
        """Take an open file; callers use `open`."""
        self._shared, self._lock, self._loop = opened.shared, opened.lock, loop
        self._position, self._ceiling = opened.position, opened.ceiling
        self.dir_id = opened.dir_id
        self.was_clean = opened.was_clean
        self.trouble = ""
        """Why the last commit failed, "" when it did not; tried anew at every flush at least."""
        self._broken: asyncio.Future[None] | None = None if loop is None else loop.create_future()
        self._flush_s = flush_s
        self._is_closed = False
        self._extension: asyncio.Future[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._committer: Committer | None = None
        self._publisher: Publisher | None = None
        if loop is not None:
            self._publisher = Publisher(opened.shared.sequence, loop)
            self._committer = Committer(
                opened.shared,
                deliver=self._hand_over,
                now_s=clock.monotonic_s,
                linger_s=linger_s,
            )
            self._committer.start()
            self._timer = loop.call_later(flush_s, self._tick)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        hub_key: HubKey,
        clock: Clock,
        loop: asyncio.AbstractEventLoop | None = None,
        can_create: bool = True,
        dir_id: str | None = None,
        map_bytes: int = MAP_BYTES,
        linger_s: float = LINGER_S,
        flush_s: float = FLUSH_S,
    ) -> Self:
        """Open the store of a directory; create it when there is none and `can_create`.

        Without a loop, given or running, the store is *offline*: reading, exports, `verify` and
        `raise_floor` work, and `close_offline` closes it. `dir_id` names the directory when it is
        created (default: a fresh uid) and is kept; a copy of the directory has the same.

        Raises Locked (another process), Corrupt (foreign or torn file), KeyMismatch (another hub's
        key, or a key inside the directory), MapFull (no space to start), FileNotFoundError (no
        store there and `can_create` is False).
        """
        if loop is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                loop = None
        opened = open_file(
            path,
            hub_key=hub_key,
            token=clock.token,
            dir_id=dir_id or clock.uid(),
            can_create=can_create,
            map_bytes=map_bytes,
        )
        return cls(opened, loop=loop, clock=clock, linger_s=linger_s, flush_s=flush_s)

    @property
    def position(self) -> Position:
        """Where the durable objects stand: last committed revision, state hash, count."""
        return self._position

    @property
    def commits(self) -> Commits:
        """What the committer has done since the store was opened."""
        return self._committer.commits if self._committer is not None else Commits()

    @property
    def revision(self) -> Revision:
        """The revision for list and watch: everything at or below it has been shown."""
        return self._shared.sequence.shown

    @property
    def compacted(self) -> Revision:
        """Watches may resume at this revision or above it."""
        with self._shared.env.read() as txn:
            return read_marks(txn, self._shared.env).compacted

    async def commit(
        self, *writes: Write, meta: Mapping[str, bytes | None] | None = None
    ) -> tuple[Revision, ...]:
        """Write all or nothing, durably; return the revisions in the order of the writes.

        At most one write a key. `meta` records small values of the caller's in the same
        transaction, see `meta_get`; None removes one. A cancelled wait does not undo the write.

        Raises Exists, NotFound, Conflict (this commit alone was refused), MapFull (disk or map
        full: nothing written, try again later), Closed.
        """
        _check(writes)
        extras = {extra_name(name): value for name, value in (meta or {}).items()}
        future = self._submit(CommitJob(writes, extras))
        for write in writes:
            if not write.volatile:
                self._shared.overlay.freeze(write.key)
        return cast("tuple[Revision, ...]", await future)

    def renew(self, key: Key, draft: Draft, index: Index, *, expect: Revision) -> Revision:
        """Take a renewal of an object that exists, in memory; return its revision at once.

        The object must be at `expect` and keep its index; it stays sealed when it was. Subscribers
        see the renewal once every lower revision has been shown. Raises NotFound, Conflict (also
        while a durable write to the key is under way), ValueError for another index, MapFull when
        the disk has been full for so long that no reserved revisions are left.
        """
        publisher = self._live()
        revision = renew(
            self._shared, key, draft, index=index, expect=expect, ceiling=self._ceiling
        )
        publisher.schedule()
        self._extend()
        return revision

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each batch of changes from now on; return how to unsubscribe.

        Changes come in strict order of their revisions, once each, in the callback that moves
        `revision` to the last of them.
        """
        return self._live().subscribe(listener)

    def get(self, key: Key) -> Stored | None:
        """Return what lies at a key now, renewals and volatile objects included."""
        return reader.get(self._shared, key)

    def read(self, stored: Stored) -> bytes:
        """Return the JSON document of an entry; from any thread. Raises Corrupt."""
        return self._shared.codecs.decode(stored.key, stored.raw)

    def scan(
        self,
        prefix: bytes,
        *,
        after: Key | None = None,
        limit: int | None = None,
        match: Match | None = None,
        is_counted: bool = True,
    ) -> Page:
        """Return the entries under a prefix after a key, in order of the stored key.

        Reflects everything at or below `Page.revision`, perhaps also changes above it that
        subscribers are about to see. `has_more` says that keys follow, matching or not.
        `is_counted=False` leaves `remaining` out, which saves walking to the end of the prefix.
        """
        return reader.scan(
            self._shared, prefix, after=after, limit=limit, match=match, is_counted=is_counted
        )

    def scan_at(
        self,
        prefix: bytes,
        revision: Revision,
        *,
        after: Key | None = None,
        limit: int | None = None,
        match: Match | None = None,
        is_counted: bool = True,
    ) -> Page:
        """Return the entries that were under a prefix at a revision, otherwise as `scan`.

        Exactly those, whatever has been written since, while the log reaches back that far. Not in
        the log are renewals and volatile objects: an object may show a renewal that is newer, or
        (when it was durably written since) be without one that was there; volatile objects are
        shown as they are now. Raises Compacted, FutureRevision when `revision` lies above the
        visible one.
        """
        return reader.scan_at(
            self._shared,
            prefix,
            revision,
            after=after,
            limit=limit,
            match=match,
            is_counted=is_counted,
        )

    def get_at(self, key: Key, revision: Revision) -> Stored | None:
        """Return what lay at a key at a revision, with the bounds and errors of `scan_at`.

        What has not been written since needs no log: that it was compacted is no error then.
        """
        return reader.get_at(self._shared, key, revision)

    def changes(self, after: Revision, prefix: bytes, *, limit: int | None = None) -> list[Change]:
        """Return what changed under a prefix in (`after`, `revision`], in revision order.

        Durable writes one by one, from the log; of renewals and volatile objects what is there now,
        as one UPDATE or CREATE (their deletions are not remembered). With `limit` the first ones:
        ask again after the last. What subscribers are shown from now on continues it without gap or
        overlap. Raises Compacted, or FutureRevision when `after` was never handed out.
        """
        return reader.changes(self._shared, after, prefix, limit=limit)

    def meta_get(self, name: str) -> bytes | None:
        """Return a small value kept for a caller, outside state hash and revisions; any thread."""
        with self._shared.env.read() as txn:
            return txn.get(extra_name(name), db=self._shared.env.meta)

    async def meta_put(self, values: Mapping[str, bytes | None]) -> None:
        """Record small values durably; None removes one. Raises MapFull, Closed."""
        await self.commit(meta=values)

    async def flush(self) -> None:
        """Write the renewals of memory to the file. Raises MapFull, Closed."""
        await self._flush()

    async def sweep(
        self, prefix: bytes, *, older_than: Revision, redraft: Callable[[bytes], Draft]
    ) -> int:
        """Delete the volatile objects under a prefix below a revision; return how many.

        `redraft` turns a document into the draft that watchers are shown. Objects that change
        meanwhile are left alone.
        """
        return await sweep(self, prefix, older_than=older_than, redraft=redraft)

    async def rotate_data_key(self, hub_key: HubKey) -> int:
        """Add a data key, durably, and seal under it from now on; return its number.

        What is sealed under older ones stays readable; `reseal` brings it under the new one. Raises
        KeyMismatch for another hub key than the store's, StoreError after 254 rotations, MapFull,
        Closed.
        """
        ring, wrapped = rekey.next_ring(self._shared, hub_key)
        await self._submit(rekey.RotateJob(self._shared, wrapped))
        self._shared.codecs.use(ring)
        return ring.current

    async def reseal(self, redraft: Callable[[bytes], Draft]) -> int:
        """Write every sealed object that is under an older data key anew; return how many.

        `redraft` turns a document into its draft; nothing else of it changes. Volatile objects stay
        as they are.
        """
        shared = self._shared
        return await rekey.reseal(
            self, shared.env, under=shared.codecs.keys.current, redraft=redraft
        )

    def log_revision(self, *, keeping: int) -> Revision:
        """Return the revision to compact the log to when its last `keeping` entries shall stay."""
        with self._shared.env.read() as txn:
            return log.keeping(txn, self._shared.env, keeping)

    async def compact_log(self, keep_after: Revision) -> None:
        """Drop the log at or below a revision, in steps; watches resume above it.

        The caller keeps what backups still need. Raises FutureRevision, MapFull, Closed.
        """
        if keep_after > self.revision:
            raise FutureRevision(asked=keep_after, current=self.revision)
        job = CompactJob(self._shared.env, keep_after)
        while await self._submit(job):
            pass
        self._shared.log_index.cut(keep_after)

    def raise_floor(self, to: Revision, *, is_compacted: bool) -> None:
        """Go on above `to`, durably; `is_compacted`: watches may not resume below it either.

        For after a restore, before serving: nothing may be under way.
        """
        ceiling = record_floor(self._shared, to, is_compacted=is_compacted)
        self._shared.sequence.raise_to(to)
        if is_compacted:
            self._shared.log_index.cut(to)
        self._ceiling = max(self._ceiling, ceiling)

    def verify(self) -> Position:
        """Check the whole file against itself and return its position; from any thread.

        Takes about 10 us an object. Raises Corrupt with the first contradiction.
        """
        return audit.verify(self._shared.env, self._shared.codecs)

    def export_full(self) -> export.FullExport:
        """Begin an export of every durable object; from any thread, see `hub.store.export`."""
        return export.export_full(self._shared.env)

    def export_delta(self, after: Revision) -> export.DeltaExport:
        """Return the last write to each key above a revision; from any thread.

        Raises Compacted when the log does not reach back that far, FutureRevision when `after` is
        above the position.
        """
        return export.export_delta(self._shared.env, after)

    def stats(self) -> Stats:
        """Return sizes for metrics; from any thread, microseconds."""
        return stats_of(self._shared)

    @property
    def is_broken(self) -> bool:
        """Whether the engine has given up: nothing can be read or written any more."""
        return self._broken is not None and self._broken.done()

    async def watch_over(self) -> None:
        """Wait until the engine gives up. Raises Broken then; the process is to end."""
        if self._broken is None:
            raise InvariantError("the store was opened without an event loop")
        await asyncio.shield(self._broken)

    async def close(self) -> None:
        """Finish what is queued, flush the renewals, record a clean end; closing twice is harmless.

        Raises MapFull when the flush or the record failed; the store is closed all the same.
        """
        if self._is_closed:
            return
        if self._committer is None:
            self.close_offline()
            return
        flushed = self._flush()
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._committer.stop()
        try:
            await asyncio.to_thread(self._committer.join)
            await flushed
            record_clean(self._shared)
        finally:
            self._committer.join()
            self._release()

    def close_offline(self) -> None:
        """Close a store that was opened without a loop."""
        if self._committer is not None:
            raise InvariantError("the store runs on an event loop: await close")
        if self._is_closed:
            return
        self._is_closed = True
        try:
            record_clean(self._shared)
        finally:
            self._release()

    def _release(self) -> None:
        self._shared.env.close()
        self._lock.close()

    def _live(self) -> Publisher:
        if self._is_closed:
            raise Closed("the store is closed")
        if self._publisher is None:
            raise InvariantError("the store was opened without an event loop")
        return self._publisher

    def _submit(self, job: Job) -> asyncio.Future[object]:
        self._live()
        if self._loop is None or self._committer is None:
            raise InvariantError("the store was opened without an event loop")
        future: asyncio.Future[object] = self._loop.create_future()
        self._committer.submit(Ticket(job, future))
        return future

    def _hand_over(self, batch: Batch) -> None:
        """Pass a finished batch to the loop; called by the committer's thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._deliver, batch)

    def _deliver(self, batch: Batch) -> None:
        shared = self._shared
        if batch.position is not None and batch.ceiling is not None:
            self._position = batch.position
            self._ceiling = max(self._ceiling, batch.ceiling)
            self.trouble = ""
        for slot, change in batch.settled:
            shared.sequence.settle(slot, change)
        for ticket in batch.tickets:
            if isinstance(ticket.job, CommitJob):
                self._thaw(ticket.job.writes, is_done=ticket.error is None)
                if ticket.error is None:
                    self._index(ticket.job.writes, cast("tuple[Revision, ...]", ticket.result))
            if isinstance(ticket.error, MapFull | Broken):
                self.trouble = str(ticket.error)
            if isinstance(ticket.error, Broken):
                self._break(ticket.error)
            if ticket.future.cancelled():
                continue
            if ticket.error is None:
                ticket.future.set_result(ticket.result)
            else:
                ticket.future.set_exception(ticket.error)
        if self._publisher is not None:
            self._publisher.publish()

    def _break(self, error: Broken) -> None:
        if self._broken is not None and not self._broken.done():
            self._broken.set_exception(error)
            self._broken.exception()  # whoever watches over the store is told all the same

    def _index(self, writes: tuple[Write, ...], revisions: tuple[Revision, ...]) -> None:
        for write, revision in zip(writes, revisions, strict=True):
            if not write.volatile:
                self._shared.log_index.add(revision, write.key)

    def _thaw(self, writes: tuple[Write, ...], *, is_done: bool) -> None:
        overlay = self._shared.overlay
        for write in writes:
            if not write.volatile:
                overlay.thaw(write.key)
                if is_done:
                    overlay.drop(write.key)

    def _tick(self) -> None:
        if self._loop is not None:
            self._timer = self._loop.call_later(self._flush_s, self._tick)
            self._flush()

    def _flush(self) -> asyncio.Future[object]:
        rows = self._shared.overlay.take_dirty()
        future = self._submit(FlushJob(self._shared.env, rows))
        future.add_done_callback(self._flushed)
        return future

    def _flushed(self, future: asyncio.Future[object]) -> None:
        if future.cancelled() or future.exception() is not None:
            self._shared.overlay.mark_dirty()

    def _extend(self) -> None:
        """Have more revisions reserved in time; a failed try is repeated by the next renewal."""
        is_low = self._ceiling - self._shared.sequence.last < CEILING_BLOCK // 2
        if is_low and (self._extension is None or self._extension.done()):
            self._extension = self._submit(CommitJob((), {}))
            self._extension.add_done_callback(_retrieve)


def _retrieve(future: asyncio.Future[object]) -> None:
    """Take note of an error nobody waits for: what it concerns is tried again."""
    if not future.cancelled():
        future.exception()


def _check(writes: tuple[Write, ...]) -> None:
    if len({write.key for write in writes}) != len(writes):
        raise ValueError("a commit may write each key once")
    for write in writes:
        if (write.op is Op.CREATE) is not (write.expect is None):
            raise ValueError(
                f"{write.key!r}: expect belongs to UPDATE and DELETE, got {write.op!r}"
            )
