"""From recordings to a timeline: what is asked, seen, closed, and done by the administrator, in
order.

The administrator worked outside the recording; what they did is read off the watches. An event is
placed after the write that made it (a client's answer names the revision), so that the replay
waits for it when the client had seen it and not before.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.server.wire_recording import Exchange, RecordedEvent

Verb = Literal["create", "replace", "delete", "patch-status", "approve"]
RESTART = "hub killed and started again"
_REST_S = 2.0


@dataclass(frozen=True, slots=True)
class Action:
    """What the administrator did, named by the recorded revision it made."""

    recording: str
    revision: str
    verb: Verb


ACTIONS = (
    Action("v1.3", "524", "create"),
    Action("v1.3", "544", "replace"),
    Action("v1.3", "588", "create"),
    Action("v1.3", "593", "patch-status"),
    Action("v1.3", "598", "approve"),
    Action("v1.3", "609", "delete"),
    Action("v1.3", "621", "delete"),
    Action("v0.16", "526", "create"),
    Action("v0.16", "549", "replace"),
    Action("v0.16", "559", "create"),
    Action("v0.16", "564", "patch-status"),
    Action("v0.16", "569", "approve"),
    Action("v0.16", "611", "delete"),
    Action("v0.16", "623", "delete"),
)


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


Item = Ask | See | Close | Act | Restart
_ORDER = {Act: 0, Ask: 1, See: 2, Close: 3, Restart: 4}


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
    for exchange in exchanges:
        items += _sights(exchange, made, removed)
    back = min(x.t for x in exchanges if x.step == RESTART)
    items.append((back - 1.0, Restart()))
    return [item for _, item in sorted(items, key=lambda i: (i[0], _ORDER[type(i[1])]))]


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
        if event.type != "BOOKMARK"
    }
    for action in ACTIONS:
        t, exchange, event = found[action.recording, action.revision]
        yield t, Act(action, exchange, event)


def _sights(
    exchange: Exchange, made: dict[str, float], removed: dict[str, float]
) -> Iterator[tuple[float, See]]:
    """Yield what the client saw, the hub's own steps folded into the state they lead to."""
    run: list[RecordedEvent] = []
    at = exchange.t
    events = [event for event in exchange.events if not event.is_periodic_bookmark]
    for event, after in itertools.zip_longest(events, events[1:]):
        at = max(at, event.t, made.get(event.revision, 0.0))
        if event.type == "DELETED":
            at = max(at, removed.get(event.object["metadata"]["uid"], 0.0))
        is_own = event.type == "MODIFIED" and event.revision not in made
        if is_own and after is not None and _goes_on(event, after, made):
            run.append(event)
            continue
        yield at, See(exchange, event, tuple(run))
        run = []


def _goes_on(event: RecordedEvent, after: RecordedEvent, made: dict[str, float]) -> bool:
    """Whether the hub itself changed the same object again before it came to rest."""
    is_own = after.type == "MODIFIED" and after.revision not in made
    return is_own and after.name == event.name and after.t - event.t < _REST_S
