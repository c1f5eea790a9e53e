"""Where a reflector stands: the decisions of client-go's list-and-watch, without I/O.

Mirrors k8s.io/client-go/tools/cache/reflector.go with WatchList, as recorded: first a WatchList;
when a watch ends cleanly, the next one starts at the last revision seen; `ERROR` 410 or a refusal
leads to a WatchList that is not older than the last revision, after a pause.

    LIST --bookmark initial-events-end--> WATCH --ended, away--> WATCH --expired, refused--> LIST
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field

from hub.meta import Obj
from tools.simulate.frame import MalformedError, WatchEvent
from tools.simulate.honesty import REPEATED, Fault, check_event, check_list, omitted
from tools.simulate.writes import Writes


class Phase(enum.Enum):
    """What the next request is."""

    LIST = "list"
    WATCH = "watch"


class End(enum.Enum):
    """Why a watch stream is over."""

    CLEAN = "clean"  # the hub ended it, at timeoutSeconds or when it stopped
    AWAY = "away"  # the connection is lost, or the hub says it cannot now
    EXPIRED = "expired"  # ERROR 410
    REFUSED = "refused"  # any other error


def without_managers(obj: Obj) -> Obj:
    """Leave the managed fields out, which are half of many objects, and nobody here reads."""
    obj["metadata"].pop("managedFields", None)
    return obj


@dataclass(slots=True)
class WatchState:
    """The phase, the last revision seen, and the objects known by name, as `keep` leaves them.

    `hold` is the finalizer by which the one who watches keeps objects, `held` the names of those it
    keeps from an earlier run, `writes` what the watch has to show.
    """

    keep: Callable[[Obj], Obj] = without_managers
    hold: str = ""
    held: frozenset[str] = frozenset()
    writes: Writes | None = None
    faults: list[Fault] = field(default_factory=list)
    """What the hub must not have done; the owner empties it."""
    phase: Phase = Phase.LIST
    revision: str = ""
    objects: dict[str, Obj] = field(default_factory=dict)
    is_synced: bool = False
    _initial: dict[str, Obj] = field(default_factory=dict)
    _events_seen: int = 0

    def opened(self) -> None:
        """Note that a new stream begins."""
        self._initial = {}
        self._events_seen = 0

    def apply(self, event: WatchEvent) -> list[str]:
        """Take one event in and return the names whose object changed.

        Not for ERROR events. Raises `MalformedError` for an event out of place.
        """
        self._events_seen += 1
        if self.phase is Phase.LIST:
            return self._apply_initial(event)
        name = event.metadata.get("name", "")
        known = self.objects.get(name)
        self.faults += check_event(event, known, revision=self.revision, hold=self.hold)
        self.revision = event.metadata["resourceVersion"]
        if self.writes is not None:
            self.faults += self.writes.shown(name, self.revision)
        if event.type == "BOOKMARK":
            return []
        if event.type == "DELETED":
            return [name] if self.objects.pop(name, None) is not None else []
        self.objects[name] = self.keep(event.object)
        return [name]

    def ended(self, end: End, *, lasted_s: float) -> bool:
        """Decide the next request after a stream; return whether to pause before it."""
        if self.phase is Phase.LIST:
            if end is End.EXPIRED:
                self.revision = ""  # even "not older than" is out of reach: take whatever is there
            return True
        if end in {End.EXPIRED, End.REFUSED}:
            self.phase = Phase.LIST
            return True
        # client-go calls a watch that ends within a second without an event "very short" and pauses
        is_very_short = lasted_s < 1.0 and not self._events_seen
        return end is End.AWAY or is_very_short

    def _apply_initial(self, event: WatchEvent) -> list[str]:
        if event.ends_initial_events:
            return self._end_initial(event.metadata["resourceVersion"])
        if event.type in {"ADDED", "MODIFIED"}:
            name = event.metadata["name"]
            if event.type == "ADDED" and name in self._initial:
                self.faults.append(Fault(REPEATED, f"a list has {name} twice"))
            self._initial[name] = self.keep(event.object)
        elif event.type == "DELETED":
            self._initial.pop(event.metadata["name"], None)
        elif event.type == "BOOKMARK":
            raise MalformedError("a bookmark came before the end of the initial events")
        return []

    def _end_initial(self, revision: str) -> list[str]:
        """Take the list over that is complete now."""
        before, self.objects, self._initial = self.objects, self._initial, {}
        self.faults += check_list(
            before, self.objects, asked=self.revision, revision=revision, hold=self.hold
        )
        self.faults += [omitted(n, revision) for n in self.held if n not in self.objects]
        self.held = frozenset()
        if self.writes is not None:
            self.faults += self.writes.listed(self.objects, revision)
        self.revision, self.phase, self.is_synced = revision, Phase.WATCH, True
        names = [*self.objects, *(n for n in before if n not in self.objects)]
        return [n for n in names if _revision(before.get(n)) != _revision(self.objects.get(n))]


def _revision(obj: Obj | None) -> str | None:
    return obj["metadata"]["resourceVersion"] if obj else None
