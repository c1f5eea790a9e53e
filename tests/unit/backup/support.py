"""A backup on fakes: a store that is moved by hand, and a bucket that does what it is told."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar, cast

import pytest
from prometheus_client import CollectorRegistry

from hub.backup import runner
from hub.backup.holdings import Holdings
from hub.backup.parts import Tended
from hub.backup.runner import Backup
from hub.backup.tend import Tender
from hub.config import Config
from hub.fleet.kinds import FLEET
from hub.registry.builtin import BUILTIN
from hub.registry.catalog import Catalog
from hub.store import (
    Change,
    Index,
    Key,
    Listener,
    Op,
    Position,
    Revision,
    Store,
    Stored,
    encode_key,
)
from snapshot.arbiter import Continue, Decision
from snapshot.chain import Chain
from snapshot.head import Head
from snapshot.policy import Due
from snapshot.ship import Shipped
from snapshot.start import Begun
from tests.unit.backup.virtual import LoopClock, now_s
from tests.unit.snapshot.support import full_ref, head

T = TypeVar("T")


class Inline(Executor):
    """Runs at once, in the caller's thread: virtual time and real threads do not mix."""

    def submit(self, fn: Callable[..., T], /, *args: object, **kwargs: object) -> "Future[T]":  # type: ignore[explicit-any]  # the base class's signature
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  handed to whoever awaits it, as a pool does
            future.set_exception(error)
        return future


@dataclass
class FakeStore:
    """The part of a store that the runner sees."""

    rev: int = 50
    renewed: int = 0
    listeners: list[Listener] = field(default_factory=list)
    floors: list[tuple[int, bool]] = field(default_factory=list)
    objects: set[Key] = field(default_factory=set)
    dir_id = "dir"

    @property
    def position(self) -> Position:
        return Position(Revision(self.rev), bytes(32), 1)

    @property
    def revision(self) -> Revision:
        return Revision(self.rev + self.renewed)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: None

    def raise_floor(self, to: Revision, *, is_compacted: bool) -> None:
        self.floors.append((to, is_compacted))

    def get(self, key: Key) -> Stored | None:
        return Stored(key, Revision(1), Index(b""), b"") if key in self.objects else None

    def change(
        self, resource: str = "configmaps", op: Op = Op.UPDATE, *, name: str = "x", size: int = 2
    ) -> None:
        """Commit a change and show it."""
        self.rev += 1
        key = encode_key(resource, "", name)
        self._show(Change(op, key, Revision(self.rev), bytes(size), Index(b""), None, None))

    def renew(self) -> None:
        """Show a renewal, which takes a revision and is in no log."""
        self.renewed += 1
        key, index = encode_key("leases.coordination.k8s.io", "c", "l"), Index(b"")
        revision = Revision(self.rev + self.renewed)
        self._show(Change(Op.UPDATE, key, revision, b"{}", index, index, None, is_logged=False))

    def _show(self, change: Change) -> None:
        for listener in self.listeners:
            listener([change])


@dataclass
class FakeBucket:
    """The chain and the functions that use it; `faults` are raised by the next rounds."""

    head: Head
    store: FakeStore
    faults: list[Exception] = field(default_factory=list)
    release_faults: list[Exception] = field(default_factory=list)
    done: list[tuple[float, str]] = field(default_factory=list)
    """When, in virtual seconds, and what: full, delta, confirm or release."""
    tried: list[float] = field(default_factory=list)
    reserved: int = 0
    is_open: bool = True
    is_drained: bool = False

    @property
    def remote(self) -> "FakeBucket":
        return self

    def close(self) -> None:
        self.is_open = False

    def confirm(self, *, reserved_rev: int) -> Head:
        self.reserved = reserved_rev
        self._do("confirm")
        return self.head

    def release(self, *, last_rev: int, is_drained: bool) -> Head:
        if self.release_faults:
            raise self.release_faults.pop(0)
        self._do("release")
        self.reserved, self.is_drained = last_rev, is_drained
        return self.head

    def ship(self) -> Shipped | None:
        self.tried.append(now_s())
        if self.faults:
            raise self.faults.pop(0)
        level = "full" if self.head.full is None else "d0"
        if level == "d0" and self.head.rev == self.store.rev:
            return None
        before, self.head = self.head.rev, at(self.store.rev)
        self._do("full" if level == "full" else "delta")
        return Shipped(level, Due.DELTA, "name", before, self.store.rev, 1, 1, 0.0, 0.0)

    def _do(self, what: str) -> None:
        self.done.append((round(now_s(), 3), what))


def at(revision: int) -> Head:
    """HEAD at a revision."""
    full = full_ref(revision) if revision else None
    return head(full=full, reserved_rev=100_000)


@dataclass
class FakeTender:
    """What tends the chain, which the runner only starts, feeds and ends."""

    asked: int = 0
    seen: list[Shipped] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    last_full: Shipped | None = None
    tended: Tended = field(default_factory=Tended)
    holdings: Holdings = field(default_factory=Holdings)
    on_news: Callable[[], None] = lambda: None
    is_open: bool = True
    is_ended: bool = False
    on_close: Callable[[], None] = lambda: None

    def ask_full(self) -> None:
        self.asked += 1

    def shipped(self, shipped: Shipped) -> None:
        self.seen.append(shipped)

    async def run(self) -> None:
        if self.faults:
            raise self.faults.pop(0)
        await asyncio.Event().wait()

    def end(self) -> None:
        self.is_ended = True

    def close(self) -> None:
        self.is_open = False
        self.on_close()


@dataclass
class Rig:
    """A backup and what it stands on."""

    backup: Backup
    store: FakeStore
    bucket: FakeBucket
    tender: FakeTender
    metrics: CollectorRegistry

    def failures(self, reason: str) -> float:
        labels = {"operation": "ship", "reason": reason}
        return self.metrics.get_sample_value("hublet_backup_failures_total", labels) or 0.0

    async def start(self) -> None:
        await self.backup.take_over("hub")
        self.backup.follow(Catalog((*BUILTIN, *FLEET)))

    async def run_for(self, seconds: float) -> None:
        """Ship for so long; raises what ends shipping."""
        try:
            async with asyncio.timeout(seconds):
                await self.backup.run()
        except TimeoutError:
            return


class Make(Protocol):
    """Builds a rig; call it inside the loop."""

    def __call__(
        self, *, shipped: int = 50, decision: Decision | None = None, strict_s: int = 0
    ) -> Rig: ...


def build(
    patch: pytest.MonkeyPatch,
    directory: Path,
    *,
    shipped: int = 50,
    decision: Decision | None = None,
    strict_s: int = 0,
) -> Rig:
    """Wire a backup whose bucket holds everything up to `shipped`."""
    store, metrics = FakeStore(), CollectorRegistry()
    bucket = FakeBucket(at(shipped), store)
    begun = Begun(decision or Continue(floor=1000), bucket.head, 1000)
    patch.setattr(runner, "begin", lambda *_, **__: begun)
    patch.setattr(runner, "remember", lambda *_, **__: None)
    patch.setattr(runner, "ship", lambda *_, **__: bucket.ship())
    backup = Backup(
        Config(data_dir=directory, object_store="s3://b/p", strict_fencing=strict_s),
        LoopClock(),
        cast("Store", store),
        chain=cast("Chain", bucket),
        metrics=metrics,
    )
    backup._lane.close()
    backup._lane._worker = cast("ThreadPoolExecutor", Inline())
    tender = FakeTender()
    backup._tender = cast("Tender", tender)
    return Rig(backup, store, bucket, tender, metrics)
