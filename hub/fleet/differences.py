"""What a restored hub and its fleet do not agree on, as far as the hub can see it.

From the agents' requests: clusters with a valid certificate that the state does not know, works and
add-ons that agents report on and the state does not have, and agents that have seen more than the
state. In memory and bounded; nothing is decided by it.
"""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar

from hub.clock import Clock
from hub.fleet.ahead import Ahead
from hub.fleet.kinds import MANAGED_CLUSTER, MANAGED_CLUSTER_ADDON, MANIFEST_WORK
from hub.fleet.sightings import cluster_of
from hub.meta import Obj
from hub.meta.timestamp import format_time
from hub.registry.engine import Engine
from hub.registry.hold import Hold
from hub.registry.kind import Kind
from hub.registry.watch import Event
from hub.store import Op

_K = TypeVar("_K")
_V = TypeVar("_V")
MOST_CLUSTERS = 5_000
MOST_OBJECTS = 2_000
_NAMED = 20
"""How many of each a summary names."""
_REFUSED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND})
_KINDS: dict[tuple[str, str], Kind] = {
    (kind.storage.group, kind.plural): kind for kind in (MANIFEST_WORK, MANAGED_CLUSTER_ADDON)
}
_VERBS = frozenset({"get", "update", "patch"})


@dataclass(frozen=True, slots=True)
class Asked:
    """What an agent asked for by name, and the code it got."""

    user: str
    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    code: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """A cluster or an object that an agent has and the hub does not: last `agent`, first, last."""

    what: str
    agent: str
    first: dt.datetime
    last: dt.datetime

    def as_obj(self) -> Obj:
        """Return the wire form."""
        first, last = format_time(self.first), format_time(self.last)
        return {"name": self.what, "agent": self.agent, "firstSeen": first, "lastSeen": last}


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Everything at a glance; the tuples name the latest few, the numbers count what is kept."""

    is_restored: bool
    is_held: bool
    """Whether agents that are ahead still wait."""
    held_s: float
    """How long they will."""
    clusters_expected: int
    clusters_returned: int
    clusters_awaited: tuple[str, ...]
    """Known, and not back yet."""
    clusters_ahead: int
    ahead: tuple[str, ...]
    unknown_clusters: int
    unknown: tuple[str, ...]
    unknown_objects: int
    objects: tuple[str, ...]
    """As ``manifestworks CLUSTER/NAME``."""

    @property
    def has_differences(self) -> bool:
        """Whether the fleet has what the hub does not know."""
        return bool(self.clusters_ahead or self.unknown_clusters or self.unknown_objects)

    @property
    def message(self) -> str:
        """Return the differences and what to do about them, in one sentence or two."""
        if not self.has_differences:
            return "nothing that agents have shown is unknown to the hub"
        found = [
            text
            for count, text in (
                (self.clusters_ahead, f"{self.clusters_ahead} agents have seen a later state"),
                (self.unknown_clusters, _told(self.unknown_clusters, "clusters", self.unknown)),
                (self.unknown_objects, _told(self.unknown_objects, "objects", self.objects)),
            )
            if count
        ]
        return f"{'; '.join(found)}. {self._advice}"

    @property
    def _advice(self) -> str:
        if self.is_held:
            return (
                "Their works are not listed to these agents until the grace period is over; make "
                "again what is missing, or restore a later state, or see --restore-grace"
            )
        return (
            "An agent removes what it applied for a work that the hub does not have an hour after "
            "it has listed; a work made again before that is kept"
        )


def _told(count: int, what: str, names: tuple[str, ...]) -> str:
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return f"{count} {what} that the hub does not know ({', '.join(names)}{more})"


class Differences:
    """Notes what agents show. For the event loop's thread.

    Unknown clusters are noted after every start, unknown objects after a restore only: otherwise
    what an agent misses was deleted.
    """

    def __init__(
        self, engine: Engine, clock: Clock, *, hold: Hold, ahead: Ahead, is_restored: bool
    ) -> None:
        self._engine, self._clock, self._hold, self._ahead = engine, clock, hold, ahead
        self._is_restored = is_restored
        self._clusters: dict[str, Unknown] = {}
        self._objects: dict[tuple[str, str, str], Unknown] = {}
        self._deleted: dict[tuple[str, str, str], None] = {}
        engine.watches.listen(MANAGED_CLUSTER, self._cluster_changed)
        if is_restored:
            for kind in _KINDS.values():
                engine.watches.listen(kind, self._object_changed)

    def note(self, asked: Asked) -> None:
        """Note a request of an agent; most are fine and cost one look at the code."""
        if asked.code not in _REFUSED:
            return
        cluster, agent = cluster_of(asked.user)
        if self._engine.find(MANAGED_CLUSTER, cluster) is None:
            _put(self._clusters, cluster, self._seen(cluster, agent, self._clusters.get(cluster)))
            _bound(self._clusters, MOST_CLUSTERS)
        elif self._is_one_sided(asked):
            place = (asked.resource, asked.namespace, asked.name)
            what = f"{asked.resource} {asked.namespace}/{asked.name}"
            _put(self._objects, place, self._seen(what, agent, self._objects.get(place)))
            _bound(self._objects, MOST_OBJECTS)

    def _is_one_sided(self, asked: Asked) -> bool:
        """Whether an agent has an object that was never here, not one that was just deleted."""
        if not self._is_restored or asked.code != HTTPStatus.NOT_FOUND or not asked.name:
            return False
        kind = _KINDS.get((asked.group, asked.resource))
        place = (asked.resource, asked.namespace, asked.name)
        if kind is None or asked.verb not in _VERBS or place in self._deleted:
            return False
        return self._engine.find(kind, asked.name, asked.namespace) is None

    def _seen(self, what: str, agent: str, before: Unknown | None) -> Unknown:
        now = self._clock.now()
        return Unknown(what, agent, before.first if before else now, now)

    def _cluster_changed(self, event: Event) -> None:
        if event.change.op is not Op.DELETE:
            self._clusters.pop(event.name, None)

    def _object_changed(self, event: Event) -> None:
        place = (event.kind.plural, event.namespace, event.name)
        if event.change.op is Op.DELETE:
            self._deleted[place] = None
            _bound(self._deleted, MOST_OBJECTS)
        elif event.change.op is Op.CREATE:
            self._objects.pop(place, None)
            self._deleted.pop(place, None)

    # ---------------------------------------------------------------- what is known

    def unknown_clusters(self) -> list[Obj]:
        """Return the clusters that the hub does not know, the one seen last at the end."""
        return [each.as_obj() for each in self._clusters.values()]

    def of(self, cluster: str) -> Obj:
        """Return what concerns one cluster."""
        unknown = self._clusters.get(cluster)
        return {
            "unknownSince": format_time(unknown.first) if unknown else "",
            "isAhead": cluster in self._ahead.clusters,
            "isHeld": cluster in self._ahead.clusters and self._ahead.is_holding,
            "unknownObjects": [
                each.as_obj() for (_, space, _), each in self._objects.items() if space == cluster
            ],
        }

    def summary(self) -> Summary:
        """Return everything at a glance."""
        hold, ahead = self._hold, self._ahead.clusters
        return Summary(
            is_restored=self._is_restored,
            is_held=self._ahead.is_holding,
            held_s=hold.grace_left_s if self._is_restored else 0.0,
            clusters_expected=hold.expected,
            clusters_returned=hold.returned,
            clusters_awaited=tuple(sorted(hold.awaited)[:_NAMED]),
            clusters_ahead=len(ahead),
            ahead=tuple(sorted(ahead)[:_NAMED]),
            unknown_clusters=len(self._clusters),
            unknown=tuple(_last(each.what for each in self._clusters.values())),
            unknown_objects=len(self._objects),
            objects=tuple(_last(each.what for each in self._objects.values())),
        )


def _put(seen: dict[_K, Unknown], key: _K, entry: Unknown) -> None:
    """Put an entry last."""
    seen.pop(key, None)
    seen[key] = entry


def _bound(kept: dict[_K, _V], most: int) -> None:
    """Drop the entry at the front when there are too many."""
    if len(kept) > most:
        del kept[next(iter(kept))]


def _last(names: Iterable[str]) -> list[str]:
    return list(names)[-_NAMED:]
