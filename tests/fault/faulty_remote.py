"""A lying bucket: every operation may go wrong in every way that a network and a server have.

Every fault is drawn from one seed, so that a history repeats itself, and is written down in
`history`. One thread at a time.
"""

import collections
import contextlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn, TypeAlias

from snapshot.errors import (
    ObjectExists,
    ObjectMissing,
    PreconditionFailed,
    RemoteError,
    RemoteUnavailable,
)
from snapshot.remote import Blob, Entry, Remote, Source

_LISTS_KEPT = 8

_Late: TypeAlias = tuple[int, str, Callable[[], object]]
"""The operation after which it arrives, what it is, and how it is sent."""


@dataclass(frozen=True, slots=True)
class Rates:
    """How often an operation meets each fault; what does not apply to it does not happen."""

    lost: float = 0.0
    """No answer, and nothing was done."""
    answer_lost: float = 0.0
    """No answer, and it was done (put, delete)."""
    late: float = 0.0
    """No answer, and it is done after one of the next operations (put, delete)."""
    busy: float = 0.0
    """409 or 503, and nothing was done."""
    twice: float = 0.0
    """Sent twice, as by a client that missed the first answer; the second one is told (put)."""
    refused: float = 0.0
    """Done, and answered with 412 (put)."""
    stale: float = 0.0
    """The objects that were there some operations ago (list)."""
    truncated: float = 0.0
    """A part of the bytes, and no error (get)."""


FAILING = Rates(
    lost=0.06, answer_lost=0.06, late=0.06, busy=0.04, twice=0.05, refused=0.05, stale=0.2
)
"""Every fault that leaves the bytes alone."""
LYING = replace(FAILING, truncated=0.08)
READING = Rates(lost=0.04, busy=0.02, stale=0.2, truncated=0.15)


@dataclass
class FaultyRemote:
    """`Remote` in front of another, with faults. `rates` may be set anew at any time."""

    inner: Remote
    seed: int
    rates: Rates = LYING
    history: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._late: tuple[_Late, ...] = ()
        self._count = 0
        self._lists: collections.deque[tuple[Entry, ...]] = collections.deque(maxlen=_LISTS_KEPT)

    @property
    def url(self) -> str:
        return self.inner.url

    def get(self, name: str) -> Blob:
        with self._operation(f"get {name}", "lost", "busy", "truncated") as fault:
            blob = self.inner.get(name)
            return Blob(self._cut(blob.data), blob.etag) if fault == "truncated" else blob

    def get_to_file(self, name: str, path: Path) -> int:
        with self._operation(f"get {name}", "lost", "busy", "truncated") as fault:
            size = self.inner.get_to_file(name, path)
            if fault == "truncated":
                data = self._cut(path.read_bytes())
                return path.write_bytes(data)
            return size

    def put_if_absent(self, name: str, source: Source) -> str:
        data = source if isinstance(source, bytes) else source.read_bytes()
        refusal = ObjectExists("the object exists", op="put", object=name)
        return self._put(f"create {name}", lambda: self.inner.put_if_absent(name, data), refusal)

    def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
        refusal = PreconditionFailed("another object is there", op="put", object=name)
        return self._put(
            f"swap {name}", lambda: self.inner.put_if_match(name, source, etag=etag), refusal
        )

    def head(self, name: str) -> Entry:
        with self._operation(f"head {name}", "lost", "busy"):
            return self.inner.head(name)

    def list(self, under: str = "") -> Iterator[Entry]:
        with self._operation(f"list {under}", "lost", "busy", "stale") as fault:
            now = tuple(self.inner.list())
            shown = self._random.choice(self._lists) if fault == "stale" and self._lists else now
        return (entry for entry in shown if entry.name.startswith(under))

    def delete(self, name: str) -> None:
        with self._operation(f"delete {name}", "lost", "answer_lost", "late", "busy") as fault:
            if fault == "late":
                self._send_late(f"delete {name}", lambda: self.inner.delete(name))
            self.inner.delete(name)
            if fault == "answer_lost":
                _no_answer(name)

    def close(self) -> None:
        self.inner.close()

    def settle(self) -> None:
        """Let arrive what is still on its way, and lie no more."""
        self.rates = Rates()
        self._arrive(self._late)
        self._late = ()

    def _put(self, what: str, put: Callable[[], str], refusal: RemoteError) -> str:
        faults = ("lost", "answer_lost", "late", "busy", "twice", "refused")
        with self._operation(what, *faults) as fault:
            if fault == "late":
                self._send_late(what, put)
            etag = put()
            if fault == "answer_lost":
                _no_answer(what)
            if fault == "refused":
                raise refusal
            return put() if fault == "twice" else etag

    @contextlib.contextmanager
    def _operation(self, what: str, *faults: str) -> Iterator[str]:
        """Draw a fault for an operation, do what it forbids, write it down; let arrive what is due.

        An operation that is refused by the bucket itself is no fault, whatever was drawn.
        """
        fault = self._draw(faults)
        if not what.startswith(("get", "head")):
            self._lists.append(tuple(self.inner.list()))
        self._count += 1
        self.history.append(f"{self._count} {what}{f': {fault}' if fault else ''}")
        try:
            if fault in {"lost", "busy"}:
                _no_answer(what, "slow down" if fault == "busy" else "no answer")
            yield fault
        except RemoteError as error:
            self.history.append(f"{self._count} {what} -> {type(error).__name__}")
            raise
        finally:
            due = tuple(each for each in self._late if each[0] <= self._count)
            self._late = tuple(each for each in self._late if each[0] > self._count)
            self._arrive(due)

    def _draw(self, faults: tuple[str, ...]) -> str:
        """One number for every operation, whatever applies to it: rates can be compared."""
        drawn = self._random.random()
        for fault in faults:
            drawn -= getattr(self.rates, fault)
            if drawn < 0:
                return fault
        return ""

    def _send_late(self, what: str, send: Callable[[], object]) -> NoReturn:
        self._late += ((self._count + self._random.randint(1, 6), what, send),)
        _no_answer(what)

    def _arrive(self, due: tuple[_Late, ...]) -> None:
        for _, what, send in due:
            try:
                send()
            except (ObjectExists, ObjectMissing, PreconditionFailed) as error:
                self.history.append(f"{self._count} late {what} -> {type(error).__name__}")
            else:
                self.history.append(f"{self._count} late {what} -> done")

    def _cut(self, data: bytes) -> bytes:
        """A part of the bytes, nothing as often as anything else."""
        if not data or self._random.random() < 0.3:
            return b""
        return data[: self._random.randrange(len(data))]


def _no_answer(what: str, why: str = "no answer") -> NoReturn:
    raise RemoteUnavailable(why, op="ask", object=what)
