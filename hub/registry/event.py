"""Event: one object, shown in the core group and in events.k8s.io.

Stored as the core group writes it; the other view renames fields
(k8s.io/kubernetes/pkg/apis/core/v1 and events/v1 conversions). Events are volatile: they have a
time to live and never enter log, state hash or snapshots.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from hub.meta import Obj
from hub.meta.table import Column, since
from hub.registry.kind import Kind, View
from hub.registry.printing import Printer, computed, name_printer, text_printer
from hub.registry.strategy import Strategy
from hub.registry.tabled import shape_of

_CORE_TO_NEW = {
    "message": "note",
    "involvedObject": "regarding",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_NEW_TO_CORE = {new: core for core, new in _CORE_TO_NEW.items()}


def _renamed(obj: Obj, names: Mapping[str, str], api_version: str) -> Obj:
    foreign = set(names.values())  # fields that only the other view knows
    shown: Obj = {names.get(k, k): value for k, value in obj.items() if k not in foreign}
    shown["apiVersion"] = api_version
    return shown


def to_core(obj: Obj) -> Obj:
    """Return an events.k8s.io Event as the core group has it."""
    return _renamed(obj, _NEW_TO_CORE, "v1")


def from_core(obj: Obj) -> Obj:
    """Return a core Event as events.k8s.io has it, which shows no reporter when there is none."""
    shown = _renamed(obj, _CORE_TO_NEW, "events.k8s.io/v1")
    for name in ("reportingController", "reportingInstance"):
        if not shown.get(name):
            shown.pop(name, None)
    return shown


class EventStrategy(Strategy):
    """What field selectors of events know (kubectl describe asks by involvedObject)."""

    def default(self, obj: Obj) -> None:
        """Fill in what a core Event always shows."""
        obj.setdefault("eventTime", None)
        for name in ("reportingComponent", "reportingInstance"):
            obj[name] = obj.get(name) or ""

    def fields(self, obj: Obj) -> Mapping[str, str]:
        """Offer the object it is about, its reason, type and source."""
        about: Obj = obj.get("involvedObject") or {}
        source = (obj.get("source") or {}).get("component") or obj.get("reportingComponent") or ""
        found = {f"involvedObject.{name}": str(about.get(name) or "") for name in _ABOUT}
        found["reason"] = str(obj.get("reason") or "")
        found["type"] = str(obj.get("type") or "")
        found["source"] = str(source)
        found["reportingComponent"] = str(obj.get("reportingComponent") or "")
        return {name: value for name, value in found.items() if value}

    def selectable(self) -> tuple[str, ...]:
        """Name them."""
        names = tuple(f"involvedObject.{name}" for name in _ABOUT)
        return (*names, "reason", "type", "source", "reportingComponent")


_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELD_NAMES = {
    **{f"regarding.{name}": f"involvedObject.{name}" for name in _ABOUT},
    "reportingController": "reportingComponent",
    "reason": "reason",
    "type": "type",
}
"""How events.k8s.io calls what it selects by (k8s.io/kubernetes/pkg/apis/events/v1)."""


def _about(event: Obj) -> str:
    about = event.get("involvedObject") or {}
    kind, name = str(about.get("kind", "")).lower(), about.get("name", "")
    return f"{kind}/{name}" if name else kind


def _part(event: Obj) -> object:
    return (event.get("involvedObject") or {}).get("fieldPath") or ""


def _source(event: Obj) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host else str(component)


def _message(event: Obj) -> str:
    return str(event.get("message") or "").strip()


def _first_seen(event: Obj) -> object:
    return event.get("firstTimestamp") or event.get("eventTime")


def _last_seen(event: Obj) -> object:
    series = (event.get("series") or {}).get("lastObservedTime")
    return series or event.get("lastTimestamp") or _first_seen(event)


def _count(event: Obj) -> object:
    return (event.get("series") or {}).get("count") or event.get("count") or 1


def _text(
    name: str, cell: Callable[[Obj], object], description: str, *, priority: int = 0
) -> Printer:
    return computed(
        name, lambda obj: cell(_as_core(obj)), description=description, priority=priority
    )


def _time(
    name: str, moment: Callable[[Obj], object], description: str, *, priority: int = 0
) -> Printer:
    column = Column(name, "string", "", description, priority)
    return Printer(column, lambda obj, now: since(moment(_as_core(obj)), now))


def _as_core(obj: Obj) -> Obj:
    return obj if obj.get("apiVersion") == "v1" else to_core(obj)


def _printers() -> tuple[Printer, ...]:
    return (
        _time("Last Seen", _last_seen, "When it was last observed."),
        text_printer("Type", ".type"),
        text_printer("Reason", ".reason"),
        _text("Object", _about, "What it is about."),
        _text("Subobject", _part, "The part of the object that it is about.", priority=1),
        _text("Source", _source, "Who reported it, and where.", priority=1),
        _text("Message", _message, "What happened."),
        _time("First Seen", _first_seen, "When it was first observed.", priority=1),
        _text("Count", _count, "How often it was observed.", priority=1),
        Printer(replace(name_printer().column, priority=1), name_printer().cell),
    )


EVENT = Kind(
    kind="Event",
    plural="events",
    singular="event",
    short_names=("ev",),
    views=(
        View(
            "",
            "v1",
            printers=_printers(),
            shape=shape_of("v1", "Event"),
        ),
        View(
            "events.k8s.io",
            "v1",
            printers=_printers(),
            shape=shape_of("events.k8s.io/v1", "Event"),
            to_storage=to_core,
            from_storage=from_core,
            field_names=_FIELD_NAMES,
        ),
    ),
    is_namespaced=True,
    strategy=EventStrategy(),
    is_volatile=True,
)
