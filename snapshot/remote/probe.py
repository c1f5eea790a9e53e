"""What a bucket really does, found out by doing it.

Owns the trial of an object store: what the fence of the chain rests on (create-only,
compare-and-swap, each also under a race), what clean-up and checks rest on (a delete that deletes,
lists that are current), and the server's clock. Servers are known that take a condition and ignore
it, so nothing is believed from an answer alone: what lies there afterwards counts.

All of it happens under ``probe/<token>/``, deleted again also after an error; what a killed probe
left is deleted by a later one. It costs some sixty requests, most of them at once.
"""

import contextlib
import datetime as dt
import enum
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

from hub.clock import Clock
from snapshot.errors import (
    ObjectExists,
    ObjectMissing,
    PreconditionFailed,
    RemoteDenied,
    RemoteError,
    RemoteInvalid,
    RemoteUnavailable,
)
from snapshot.layout import PROBES
from snapshot.remote.api import Remote

CLOCK_TOLERANCE_S = 60.0
"""By how much the clocks of server and hub may differ without a word."""

_RACERS = 8
_RACES = 3
"""Rounds: a server that races may get one right by luck."""
_REST_AGE = dt.timedelta(hours=1)
_SINGLE = ("read", "listed", "create", "swap", "wrong", "held", "present", "absent")
_NAMES = (*_SINGLE, *(f"{what}-race-{n}" for what in ("create", "swap") for n in range(_RACES)))


class FencingLevel(enum.IntEnum):
    """How far the bucket itself keeps a second writer out."""

    DEGRADED = 1
    """Some condition does not hold: only whoever starts hubs keeps them apart."""
    ENFORCED = 2
    """Every condition holds, also in a race: of two writers one is refused."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a bucket did when it was tried. The fields up to `is_read_current` are the fence."""

    can_refuse_create: bool
    """A create-only put of a name that is taken is refused, and the object stays."""
    can_swap: bool
    """A put that names the right etag replaces."""
    can_refuse_swap: bool
    """A put that names another etag is refused, and the object stays."""
    can_refuse_absent: bool
    """A put that names an etag where there is no object is refused, and makes none."""
    has_one_creator: bool
    """Of several create-only puts of one name at once exactly one succeeds."""
    has_one_swapper: bool
    """Of several puts that name one etag at once exactly one succeeds."""
    is_read_current: bool
    """A read sees what the last put wrote."""
    is_list_current: bool
    """A list shows what was put and nothing that was deleted."""
    can_delete: bool
    """A deleted object is gone."""
    clock_offset_s: float
    """By how much the server's clock is ahead of ours; S3 tells whole seconds, rounded down."""

    @property
    def fencing_level(self) -> FencingLevel:
        """Return what the fence of the chain is worth on this bucket."""
        is_whole = all(getattr(self, name) for name in _FENCE)
        return FencingLevel.ENFORCED if is_whole else FencingLevel.DEGRADED

    @property
    def missing(self) -> tuple[str, ...]:
        """Return what failed, in plain words, the worst first; empty when all is well."""
        failed = [words for name, words in _WORDS.items() if not getattr(self, name)]
        if abs(self.clock_offset_s) > CLOCK_TOLERANCE_S:
            way = "ahead of" if self.clock_offset_s > 0 else "behind"
            failed.append(f"the server's clock is {abs(self.clock_offset_s):.0f} s {way} ours")
        return tuple(failed)


_WORDS = {
    "can_refuse_create": "create-only (If-None-Match: *) replaces an object that is there",
    "can_swap": "compare-and-swap (If-Match) with the right etag does not replace",
    "can_refuse_swap": "compare-and-swap (If-Match) with a wrong etag is not refused",
    "can_refuse_absent": "compare-and-swap (If-Match) of a missing object makes one",
    "has_one_creator": "of several creators at once more than one is told that it won",
    "has_one_swapper": "of several swappers at once more than one is told that it won",
    "is_read_current": "a read does not see the last write",
    "is_list_current": "a list does not show the last write or delete",
    "can_delete": "a deleted object is still there, or deleting is not allowed",
}
_FENCE = tuple(_WORDS)[:7]


def probe(remote: Remote, clock: Clock) -> Capabilities:
    """Try a prefix; leaves nothing behind.

    A capability that is missing is no error. Raises `RemoteUnavailable`, `RemoteDenied`, and
    `RemoteError` when what answers is no S3 server, there is no bucket, or no object can be made.
    """
    with ThreadPoolExecutor(_RACERS, thread_name_prefix="probe") as pool:
        trial = _Trial(remote, f"{PROBES}{clock.token(8).hex()}/", pool)
        try:
            found = _try_all(trial, clock)
        except BaseException:
            with contextlib.suppress(RemoteError):  # the error that came first says more
                trial.clean()
            raise
        trial.clean()
    _sweep(remote, clock.now() + dt.timedelta(seconds=found.clock_offset_s))
    return found


def _try_all(trial: "_Trial", clock: Clock) -> Capabilities:
    offset_s, is_read_current = trial.make_and_read(clock)
    can_delete, is_list_current = trial.list_and_delete()
    return Capabilities(
        can_refuse_create=trial.refuses_create(),
        can_swap=trial.swaps(),
        can_refuse_swap=trial.refuses_swap(),
        can_refuse_absent=trial.refuses_absent(),
        has_one_creator=all(trial.has_one_creator(n) for n in range(_RACES)),
        has_one_swapper=all(trial.has_one_swapper(n) for n in range(_RACES)),
        is_read_current=is_read_current,
        is_list_current=is_list_current,
        can_delete=can_delete,
        clock_offset_s=offset_s,
    )


@dataclass(frozen=True, slots=True)
class _Trial:
    """The single trials, each on objects of its own."""

    remote: Remote
    base: str
    pool: ThreadPoolExecutor

    def make_and_read(self, clock: Clock) -> tuple[float, bool]:
        """Return the server's clock against ours (0 when it cannot be told), and what a get saw."""
        before = clock.now()
        self._make("read", b"one")
        after = clock.now()
        is_current = self._content("read") == b"one"
        try:
            modified = self.remote.head(self.base + "read").modified
        except ObjectMissing:
            return 0.0, False
        return (modified - before - (after - before) / 2).total_seconds(), is_current

    def list_and_delete(self) -> tuple[bool, bool]:
        """Return whether a delete deletes, and whether lists follow what is there."""
        self._make("listed", b"one")
        is_shown = self._is_listed("listed")
        _delete(self.remote, self.base + "listed")
        is_gone = self._content("listed") is None
        return is_gone, is_shown and not (is_gone and self._is_listed("listed"))

    def refuses_create(self) -> bool:
        self._make("create", b"one")
        outcome = self._create("create", b"two")
        return isinstance(outcome, ObjectExists) and self._content("create") == b"one"

    def swaps(self) -> bool:
        etag = self._make("swap", b"one")
        return self._swap("swap", b"two", etag) != etag and self._content("swap") == b"two"

    def refuses_swap(self) -> bool:
        wrong = self._make("wrong", b"another")
        self._make("held", b"one")
        outcome = self._swap("held", b"two", wrong)
        return isinstance(outcome, PreconditionFailed) and self._content("held") == b"one"

    def refuses_absent(self) -> bool:
        etag = self._make("present", b"one")
        outcome = self._swap("absent", b"two", etag)
        is_refused = isinstance(outcome, ObjectMissing | PreconditionFailed)
        return is_refused and self._content("absent") is None

    def has_one_creator(self, turn: int) -> bool:
        name = f"create-race-{turn}"
        return self._has_one_winner(name, lambda data: self._create(name, data))

    def has_one_swapper(self, turn: int) -> bool:
        name = f"swap-race-{turn}"
        etag = self._make(name, b"start")
        return self._has_one_winner(name, lambda data: self._swap(name, data, etag))

    def clean(self) -> None:
        """Delete whatever a trial may have made, listed or not."""
        list(self.pool.map(lambda name: _delete(self.remote, self.base + name), _NAMES))

    def _has_one_winner(self, name: str, attempt: Callable[[bytes], str | RemoteError]) -> bool:
        """Race; at most one may be told that it won, and what is there must be of the winner.

        None is told when the winner's answer was lost and its retry met its own effect.
        """
        start = threading.Barrier(_RACERS, timeout=60)
        entries = [b"%d" % who for who in range(_RACERS)]

        def run(data: bytes) -> str | RemoteError:
            start.wait()
            return attempt(data)

        racers = [self.pool.submit(run, data) for data in entries]
        wait(racers)
        outcomes = zip(entries, racers, strict=True)
        won = [data for data, racer in outcomes if isinstance(racer.result(), str)]
        return len(won) <= 1 and self._content(name) in (won or entries)

    def _make(self, name: str, data: bytes) -> str:
        """Make an object of a fresh name and return its etag."""
        outcome = self._create(name, data)
        if isinstance(outcome, ObjectExists):  # a retry has met its own effect
            return self.remote.get(self.base + name).etag
        if isinstance(outcome, RemoteError):
            raise outcome
        return outcome

    def _create(self, name: str, data: bytes) -> str | RemoteError:
        return _outcome(lambda: self.remote.put_if_absent(self.base + name, data))

    def _swap(self, name: str, data: bytes, etag: str) -> str | RemoteError:
        return _outcome(lambda: self.remote.put_if_match(self.base + name, data, etag=etag))

    def _content(self, name: str) -> bytes | None:
        try:
            return self.remote.get(self.base + name).data
        except ObjectMissing:
            return None

    def _is_listed(self, name: str) -> bool:
        return any(entry.name == self.base + name for entry in self.remote.list(self.base))


def _outcome(put: Callable[[], str]) -> str | RemoteError:
    """Return the etag, or how the server refused: a condition that it does not know is refused."""
    try:
        return put()
    except (RemoteUnavailable, RemoteDenied, RemoteInvalid):
        raise
    except RemoteError as error:
        return error


def _delete(remote: Remote, name: str) -> None:
    """Delete where that is allowed; what is still there afterwards tells."""
    with contextlib.suppress(RemoteDenied):
        remote.delete(name)


def _sweep(remote: Remote, now: dt.datetime) -> None:
    """Delete what killed probes left; `now` is the server's, and one may be at work at present."""
    for entry in list(remote.list(PROBES)):
        if now - entry.modified > _REST_AGE:
            _delete(remote, entry.name)
