"""Who watches what: an index from changes to watchers, and one encoding for all of them.

Owns the live watchers of one hub. A watcher is found by dictionary look-ups on (resource,
namespace, name) or on one label it pins, never by testing every watcher against every change
(kube-apiserver tests 3,000 x 3,000 for the agents' ``metadata.name`` watches). An event is encoded
once a variant and the same bytes go to every watcher.

Invariants: a watcher gets each change after its start exactly once, in revision order; what it may
see is decided by its selectors alone, with entering and leaving shown as ADDED and DELETED
(k8s.io/apiserver cacher, watchCacheEvent).
"""

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from hub.meta import Obj
from hub.meta.codec.json import decode, encode
from hub.meta.requirement import Operator
from hub.meta.selectors import FieldSelector, LabelSelector
from hub.registry.kind import Kind
from hub.store import Change, Index, Op, Revision, decode_index, decode_key

Sink: TypeAlias = Callable[[bytes], None]
Encoder: TypeAlias = Callable[[bytes], bytes]
Place: TypeAlias = tuple[str, ...]
_TIDY_FROM = 1024


@dataclass(frozen=True, slots=True)
class Variant:
    """A form in which events are written: equal keys share their bytes.

    `encode` takes the stored JSON document. `later`: the form of all events but the first of a
    watch, None = the same.
    """

    key: tuple[str, ...]
    encode: Encoder
    later: "Variant | None" = None


class Event:
    """One change of a served kind; decoded and encoded at most once per form."""

    __slots__ = ("_frames", "_obj", "_previous", "change", "kind", "name", "namespace")

    def __init__(self, change: Change, kind: Kind, namespace: str, name: str) -> None:
        self.change, self.kind, self.namespace, self.name = change, kind, namespace, name
        self._obj: Obj | None = None
        self._previous: Obj | None = None
        self._frames: dict[tuple[str, ...], bytes] = {}

    @property
    def obj(self) -> Obj:
        """The object after the change (for a deletion its last state), shared: do not change it."""
        if self._obj is None:
            self._obj = decode(self.change.value)
        return self._obj

    @property
    def previous(self) -> Obj | None:
        """The object before the change, None for a creation, shared: do not change it."""
        if self._previous is None and self.change.previous is not None:
            self._previous = decode(self.change.previous())
        return self._previous

    def frame(self, type_: str, variant: Variant) -> bytes:
        """Return the watch event as a line of JSON."""
        key = (type_, *variant.key)
        line = self._frames.get(key)
        if line is None:
            line = frame(type_, variant.encode(self._document(type_)))
            self._frames[key] = line
        return line

    def _document(self, type_: str) -> bytes:
        if type_ != "DELETED" or self.change.op is Op.DELETE or self.previous is None:
            return self.change.value
        # the object left the selection: show it as it was, at the revision at which it left
        gone = dict(self.previous)
        gone["metadata"] = {**gone["metadata"], "resourceVersion": str(self.change.revision)}
        return encode(gone)


def frame(type_: str, document: bytes) -> bytes:
    """Return one line of a JSON watch stream."""
    return b'{"type":"%b","object":%b}\n' % (type_.encode(), document)


@dataclass(slots=True, eq=False)
class Watcher:
    """One open watch.

    `since`: changes at or below it have been seen; `told`: the highest revision that its client
    knows of; `held` keeps frames while the start is being sent; `cut` ends a watch without a clean
    end, so that its client lists again.
    """

    kind: Kind
    namespace: str
    name: str
    labels: LabelSelector
    fields: FieldSelector
    variant: Variant
    sink: Sink
    since: Revision
    told: int = 0
    held: list[bytes] | None = None
    held_limit_bytes: int = 0
    cut: Callable[[], None] | None = None
    _held_bytes: int = 0
    on_timeout: Callable[[], None] | None = None
    is_closed: bool = False
    places: list[Place] = field(default_factory=list)

    def matches(self, namespace: str, name: str, index: Index) -> bool:
        """Whether an object in the state that `index` describes belongs to the selection."""
        if self.namespace and namespace != self.namespace:
            return False
        if self.name and name != self.name:
            return False
        if self.labels.is_empty and self.fields.is_empty:
            return True
        labels, fields = decode_index(index)
        if not self.labels.matches(labels):
            return False
        return self.fields.matches(
            {**fields, "metadata.name": name, "metadata.namespace": namespace}
        )

    def offer(self, event: Event) -> bool:
        """Show `event` if it concerns the selection; return whether it does."""
        change = event.change
        if change.revision <= self.since:
            return False
        self.since = change.revision
        type_ = self._type_of(event)
        if type_ is None:
            return False
        self.told = change.revision
        self.send(event.frame(type_, self.next_variant()))
        return True

    def next_variant(self) -> Variant:
        """Return the form of the event that is sent next, which is then taken to be sent."""
        variant = self.variant
        if variant.later is not None:
            self.variant = variant.later
        return variant

    def _type_of(self, event: Event) -> str | None:
        change = event.change
        is_now = change.op is not Op.DELETE and self.matches(
            event.namespace, event.name, change.index
        )
        was = change.previous_index is not None and self.matches(
            event.namespace, event.name, change.previous_index
        )
        if is_now:
            return "MODIFIED" if was else "ADDED"
        return "DELETED" if was else None

    def send(self, line: bytes) -> None:
        """Hand a line to the client, after what is still held back."""
        if self.is_closed:
            return
        if self.held is None:
            self.sink(line)
            return
        self.held.append(line)
        self._held_bytes += len(line)
        if self._held_bytes > self.held_limit_bytes and self.cut is not None:
            self.cut()

    def take_held(self) -> list[bytes]:
        """Return what was held back so far; the rest goes on being held."""
        held, self.held, self._held_bytes = self.held or [], [], 0
        return held

    def release(self) -> None:
        """Send what was held back while the start of the watch was on its way."""
        held, self.held = self.held, None
        for line in held or ():
            if not self.is_closed:
                self.sink(line)


@dataclass(order=True, slots=True)
class Alarm:
    """One deadline; it lies in the heap until it is due, even when it is off."""

    at_s: float
    order: int
    action: Callable[[], float | None] | None = field(compare=False)

    def off(self) -> None:
        """Let go of the action, and of all it refers to."""
        self.action = None


class Alarms:
    """Deadlines of many watchers in one heap, so that an idle watch costs no timer and no task.

    Those that are off are dropped when the heap has doubled: clients choose how far away they are.
    """

    def __init__(self) -> None:
        self._heap: list[Alarm] = []
        self._order = itertools.count()
        self._tidy_at = _TIDY_FROM

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, when_s: float, action: Callable[[], float | None]) -> Alarm:
        """Run `action` at `when_s` (monotonic); it returns when to run again, or None."""
        alarm = Alarm(when_s, next(self._order), action)
        heapq.heappush(self._heap, alarm)
        if len(self._heap) >= self._tidy_at:
            self._tidy()
        return alarm

    def _tidy(self) -> None:
        self._heap = [alarm for alarm in self._heap if alarm.action is not None]
        heapq.heapify(self._heap)
        self._tidy_at = max(_TIDY_FROM, 2 * len(self._heap))

    def run(self, now_s: float) -> None:
        """Run what is due."""
        while self._heap and self._heap[0].at_s <= now_s:
            due = heapq.heappop(self._heap)
            again = due.action() if due.action is not None else None
            if again is not None:
                due.at_s = again
                heapq.heappush(self._heap, due)


class WatchHub:
    """The watchers of a hub, indexed by what they can be found by."""

    def __init__(self, kind_of: Callable[[str], Kind | None]) -> None:
        self._kind_of = kind_of
        self._watchers: dict[Place, dict[int, Watcher]] = {}
        self._listeners: dict[str, list[Callable[[Event], None]]] = {}
        self._listeners_to_all: list[Callable[[Event], None]] = []
        self._count = 0
        self.events = 0
        """How many changes were shown, counted once for each watcher."""

    def __len__(self) -> int:
        return self._count

    def add(self, watcher: Watcher) -> None:
        """Begin to show changes to `watcher`."""
        watcher.places = [self._place_of(watcher)]
        for place in watcher.places:
            self._watchers.setdefault(place, {})[id(watcher)] = watcher
        self._count += 1

    def remove(self, watcher: Watcher) -> None:
        """Forget `watcher`; it gets nothing more."""
        if watcher.is_closed:
            return
        watcher.is_closed = True
        for place in watcher.places:
            found = self._watchers[place]
            found.pop(id(watcher), None)
            if not found:
                del self._watchers[place]
        self._count -= 1

    def listen(self, kind: Kind, listener: Callable[[Event], None]) -> None:
        """Call `listener` for every change of `kind`, in process."""
        self._listeners.setdefault(kind.id, []).append(listener)

    def unlisten(self, kind: Kind, listener: Callable[[Event], None]) -> None:
        """Call `listener` no more; nothing when it was not called anyway."""
        found = self._listeners.get(kind.id, [])
        if listener in found:
            found.remove(listener)

    def listen_to_all(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` for every change of any kind, also of kinds that come later."""
        self._listeners_to_all.append(listener)

    def show(self, changes: Iterable[Change]) -> None:
        """Give durable changes, in revision order, to all they concern. The store's listener.

        Who fails keeps nobody else from a change: a watcher that cannot be shown one is cut, so
        that its client lists again; the errors are raised once everything was shown.
        """
        errors: list[Exception] = []
        for change in changes:
            resource, namespace, name = decode_key(change.key)
            kind = self._kind_of(resource)
            if kind is not None:
                errors += self._show_one(Event(change, kind, namespace, name))
        if errors:
            raise ExceptionGroup("some of the watchers failed", errors)

    def _show_one(self, event: Event) -> Iterator[Exception]:
        for listener in (*self._listeners.get(event.kind.id, ()), *self._listeners_to_all):
            try:
                listener(event)
            except Exception as error:  # noqa: BLE001  raised by `show`, after all had their turn
                yield error
        for watcher in self._concerned(event):
            try:
                self.events += watcher.offer(event)
            except Exception as error:  # noqa: BLE001  the same
                self.remove(watcher)
                if watcher.cut is not None:
                    watcher.cut()
                yield error

    def close_all(self) -> None:
        """End every watch (the hub is stopping)."""
        for found in list(self._watchers.values()):
            self._close(found)

    def close_kind(self, resource: str) -> None:
        """End the watches of a kind that is served otherwise from now on, or no longer."""
        for place, found in list(self._watchers.items()):
            if place[1] == resource:
                self._close(found)

    @staticmethod
    def _close(watchers: dict[int, Watcher]) -> None:
        for watcher in list(watchers.values()):
            if watcher.on_timeout is not None:
                watcher.on_timeout()

    @staticmethod
    def _place_of(watcher: Watcher) -> Place:
        resource = watcher.kind.id
        if watcher.name:
            return ("name", resource, watcher.namespace, watcher.name)
        if watcher.namespace:
            return ("namespace", resource, watcher.namespace)
        for wanted in watcher.labels.requirements:
            if wanted.operator is Operator.EQUALS and len(wanted.values) == 1:
                return ("label", resource, wanted.key, next(iter(wanted.values)))
        return ("all", resource)

    def _concerned(self, event: Event) -> Iterator[Watcher]:
        for place in self._places_of(event):
            found = self._watchers.get(place)
            if found:
                yield from list(found.values())

    def _places_of(self, event: Event) -> Iterator[Place]:
        resource = event.kind.id
        yield ("all", resource)
        yield ("name", resource, event.namespace, event.name)
        if event.namespace:
            yield ("namespace", resource, event.namespace)
            yield ("name", resource, "", event.name)
        seen: set[tuple[str, str]] = set()
        for index in (event.change.index, event.change.previous_index):
            if index:
                seen.update(decode_index(index)[0].items())
        for key, value in seen:
            yield ("label", resource, key, value)
