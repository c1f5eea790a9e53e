"""The committer: the one thread that owns the write transaction.

Owns group commit: a batch is whatever is queued, with a short linger when writers are concurrent
and none when a single one waits; one transaction, one fsync, then every caller is answered. A job
that is refused fails alone; an error of the engine or the disk fails the batch with `MapFull` or
`Broken`, and the thread goes on with the next one. Should even that fail, every job from then on is
answered with `Broken`, so that nobody waits for a thread that has ended.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import lmdb

from hub.store.api import Change, Position, Revision
from hub.store.errors import Broken, StoreError
from hub.store.ledger import Ledger, Shared
from hub.store.lmdb_env import Environment, Txn
from hub.store.sequence import Slot

LINGER_S = 0.003
BATCH_WRITES = 500


class Job(Protocol):
    """Something to do inside a write transaction."""

    @property
    def weight(self) -> int:
        """How many writes it makes; a batch holds about `BATCH_WRITES`."""
        ...

    def apply(self, ledger: Ledger) -> object:
        """Do it and return the result; StoreError and ValueError mean that nothing was written."""
        ...


@dataclass(slots=True)
class Ticket:
    """A queued job and who waits for it."""

    job: Job
    future: asyncio.Future[object]
    result: object = None
    error: BaseException | None = None


@dataclass(slots=True)
class Batch:
    """What became of one transaction; `position` is None when it failed."""

    tickets: list[Ticket]
    settled: list[tuple[Slot, Change | None]] = field(default_factory=list)
    position: Position | None = None
    ceiling: Revision | None = None
    has_failed: bool = False
    """Whether the engine or the disk refused it, and not all of its jobs were refused before."""


@dataclass(slots=True)
class Commits:
    """What the thread has done since it started; read from others, a little behind at most."""

    done: int = 0
    failed: int = 0
    seconds: float = 0.0
    """Spent in transactions, their fsync included."""


class Committer:
    """Runs the thread; `deliver` is called from it with each finished batch."""

    __slots__ = (
        "_deliver",
        "_is_closing",
        "_linger_s",
        "_now_s",
        "_queue",
        "_shared",
        "_stop",
        "_thread",
        "_wake",
        "commits",
    )

    def __init__(
        self,
        shared: Shared,
        *,
        deliver: Callable[[Batch], None],
        now_s: Callable[[], float],
        linger_s: float = LINGER_S,
    ) -> None:
        """Take `now_s`, a monotonic clock."""
        self._shared, self._deliver, self._linger_s = shared, deliver, linger_s
        self._now_s = now_s
        self.commits = Commits()
        self._queue: deque[Ticket] = deque()
        self._wake = threading.Semaphore(0)
        self._stop = threading.Event()
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="hublet-committer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, ticket: Ticket) -> None:
        """Queue a job; from the event loop's thread."""
        self._queue.append(ticket)
        self._wake.release()

    def stop(self) -> None:
        """Ask the thread to end once the queue is empty; nothing may be submitted afterwards."""
        self._is_closing = True
        self._stop.set()
        self._wake.release()

    def join(self) -> None:
        """Wait for the thread to end."""
        self._thread.join()

    def _run(self) -> None:
        previous = 1
        escaped: BaseException | None = None
        while tickets := self._gather(previous):
            began_s = self._now_s()
            if escaped is None:
                try:
                    batch = self._commit(tickets)
                except BaseException as error:  # noqa: BLE001  the thread must not end unnoticed
                    escaped = error
            if escaped is not None:  # perhaps with its transaction open: it cannot be used again
                batch = _broken(tickets, escaped)
            self._count(batch, self._now_s() - began_s)
            previous = len(tickets)
            self._deliver(batch)

    def _gather(self, previous: int) -> list[Ticket]:
        """Wait for work; an empty list ends the thread."""
        is_closing = self._is_closing  # before the queue: what was queued before the end is seen
        while not self._queue:
            if is_closing:
                return []
            self._wake.acquire()
            is_closing = self._is_closing
        if previous > 1 or len(self._queue) > 1:
            self._stop.wait(self._linger_s)
        tickets: list[Ticket] = []
        weight = 0
        while self._queue and weight < BATCH_WRITES:
            ticket = self._queue.popleft()
            weight += ticket.job.weight
            tickets.append(ticket)
        return tickets

    def _count(self, batch: Batch, seconds: float) -> None:
        commits = self.commits
        commits.seconds += seconds
        if batch.has_failed:
            commits.failed += 1
        elif batch.position is not None:
            commits.done += 1

    def _commit(self, tickets: list[Ticket]) -> Batch:
        batch = Batch(tickets)
        ledger: Ledger | None = None
        txn: Txn | None = None
        try:
            txn = self._shared.env.begin()
            ledger = Ledger(self._shared, txn)
            for ticket in tickets:
                _apply(ticket, ledger)
            batch.settled = ledger.settled
            if all(ticket.error for ticket in tickets):
                txn.abort()
            else:
                batch.position, batch.ceiling = ledger.finish()
                txn.commit()
        except Exception as error:  # noqa: BLE001  the thread's top level: every caller is told, the thread goes on
            if txn is not None:
                txn.abort()
            _fail(batch, ledger, error, self._shared.env)
        return batch


def _apply(ticket: Ticket, ledger: Ledger) -> None:
    try:
        ticket.result = ticket.job.apply(ledger)
    except (StoreError, ValueError) as error:
        ticket.error = error


def _fail(batch: Batch, ledger: Ledger | None, error: Exception, env: Environment) -> None:
    """Fail every ticket; the revisions drawn are never shown."""
    for ticket in batch.tickets:
        if ticket.error is None:
            ticket.error = env.refused(error) if isinstance(error, lmdb.Error) else error
            ticket.error.__cause__ = error if isinstance(error, lmdb.Error) else None
    batch.position, batch.has_failed = None, True
    if ledger is not None:
        batch.settled = [(slot, None) for slot, _ in ledger.settled]


def _broken(tickets: list[Ticket], error: BaseException) -> Batch:
    """Fail every ticket, those refused alone too: whoever hears of it knows that the store ends."""
    for ticket in tickets:
        ticket.error = Broken(
            f"the store cannot tell what became of a commit ({error!r}): start the hub again; the "
            "next start finds out whether the last writes are in the file"
        )
        ticket.error.__cause__ = error
    return Batch(tickets, has_failed=True)
