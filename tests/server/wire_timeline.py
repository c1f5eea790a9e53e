"""From recordings to a timeline: what is asked, seen, closed, and done by the administrator, in
order.

The administrator worked outside the recording; what they did is read off the watches. An event is
placed after the write that made it (a client's answer names the revision), so that the replay
waits for it when the client had seen it and not before.
"""

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.server.wire_actions import ACTIONS, COMPACTIONS, RESTARTS, Action
from tests.server.wire_recording import Exchange, RecordedEvent

RESTART = "hub killed and started again"
_REST_S = 2.0


@dataclass(frozen=True, slots=True)
class Ask:
    """Send a recorded request."""

    exchange: Exchange


@dataclass(frozen=True, slots=True)
class See:
    """Wait for our counterpart of a recorded event.

    `run` holds the hub's own steps right before it, which need not be the same on two hubs.
    """

    exchange: Exchange
    event: RecordedEvent
    run: tuple[RecordedEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class Close:
    """The recorded watch ended here."""

    exchange: Exchange


@dataclass(frozen=True, slots=True)
class Act:
    """The administrator acts, so that `event` comes about."""

    action: Action
    exchange: Exchange
    event: RecordedEvent


@dataclass(frozen=True, slots=True)
class Restart:
    """The hub is gone and comes back."""


@dataclass(frozen=True, slots=True)
class Compact:
    """The hub forgets its past."""


Item = Ask | See | Close | Act | Restart | Compact
_ORDER = {Act: 0, Ask: 1, See: 2, Close: 3, Restart: 4, Compact: 5}


def build_timeline(exchanges: Sequence[Exchange]) -> list[Item]:
    """Return the items of all recordings of one hub, merged by time."""
    made: dict[str, float] = {}
    for revision, t in _made_by_clients(exchanges):
        made.setdefault(revision, t)  # the write that removes an object answers with an older one
    acts = {act.event.revision: (t, act) for t, act in _acts(exchanges)}
    made |= {revision: t for revision, (t, _) in acts.items()}
    items: list[tuple[float, Item]] = [(t, act) for t, act in acts.values()]
    items += [(x.t, Ask(x)) for x in exchanges]
    items += [(x.ends, Close(x)) for x in exchanges if x.is_watch]
    removed = dict(_removed_by_clients(exchanges))
    writes = _Writes(made)
    for exchange in exchanges:
        items += _sights(exchange, writes, removed)
    back = min((x.t for x in exchanges if x.step == RESTART), default=0.0)
    items += [(back - 1.0, Restart())] if back else []
    recording = exchanges[0].recording
    items += [(t, Restart()) for t in RESTARTS.get(recording, ())]
    items += [(t, Compact()) for t in COMPACTIONS.get(recording, ())]
    return [item for _, item in sorted(items, key=lambda i: (i[0], _ORDER[type(i[1])]))]


class _Writes:
    """The revisions that were made from outside, and when: nothing is seen before its cause.

    Clocks put some events of the hub's own before the write they followed; revisions do not.
    """

    def __init__(self, made: Mapping[str, float]) -> None:
        self._made = made
        self._revisions = sorted(int(revision) for revision in made)
        times = (made[str(revision)] for revision in self._revisions)
        self._latest = list(itertools.accumulate(times, max))

    def __contains__(self, revision: str) -> bool:
        return revision in self._made

    def cause(self, revision: str) -> float:
        """When a revision was made, or the last write before it if the hub made it itself."""
        if revision in self._made:
            return self._made[revision]
        at = bisect.bisect_left(self._revisions, int(revision or 0))
        return self._latest[at - 1] if at else 0.0


def _made_by_clients(exchanges: Iterable[Exchange]) -> Iterator[tuple[str, float]]:
    """Yield the revision that each successful write made, and when it was asked for."""
    for x in exchanges:
        if x.method != "GET" and x.status in (200, 201):
            yield str(x.answer["metadata"]["resourceVersion"]), x.t


def _removed_by_clients(exchanges: Iterable[Exchange]) -> Iterator[tuple[str, float]]:
    """Yield the uid of each object whose last finalizer a client took off, and when it asked."""
    for x in exchanges:
        meta = x.answer.get("metadata") or {}
        if x.method == "PATCH" and "deletionTimestamp" in meta and not meta.get("finalizers"):
            yield str(meta["uid"]), x.t


def _acts(exchanges: Iterable[Exchange]) -> Iterator[tuple[float, Act]]:
    found = {
        (x.recording, event.revision): (event.t, x, event)
        for x in exchanges
        for event in x.events
        if event.type not in ("BOOKMARK", "ERROR")
    }
    recordings = {x.recording for x in exchanges}
    for action in ACTIONS:
        if action.recording in recordings:
            t, exchange, event = found[action.recording, action.revision]
            yield t if action.at is None else action.at, Act(action, exchange, event)


def _sights(
    exchange: Exchange, writes: _Writes, removed: dict[str, float]
) -> Iterator[tuple[float, See]]:
    """Yield what the client saw, the hub's own steps folded into the state they lead to."""
    run: list[RecordedEvent] = []
    at = exchange.t
    events = [event for event in exchange.events if not event.is_periodic_bookmark]
    for event, after in itertools.zip_longest(events, events[1:]):
        at = max(at, event.t, writes.cause(event.revision))
        if event.type == "DELETED":
            at = max(at, removed.get(event.object["metadata"]["uid"], 0.0))
        is_own = event.type == "MODIFIED" and event.revision not in writes
        if is_own and after is not None and _goes_on(event, after, writes):
            run.append(event)
            continue
        yield at, See(exchange, event, tuple(run))
        run = []


def _goes_on(event: RecordedEvent, after: RecordedEvent, writes: _Writes) -> bool:
    """Whether the hub itself changed the same object again before it came to rest."""
    is_own = after.type == "MODIFIED" and after.revision not in writes
    return is_own and after.name == event.name and after.t - event.t < _REST_S
