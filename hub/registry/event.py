"""Event: one object, shown in the core group and in events.k8s.io.

Stored as the core group writes it; the other view renames fields
(k8s.io/kubernetes/pkg/apis/core/v1 and events/v1 conversions). Events are volatile: they have a
time to live and never enter log, state hash or snapshots.
"""

from collections.abc import Mapping

from hub.meta import Obj
from hub.registry.kind import Kind, View
from hub.registry.printing import Printer, computed, path_printer
from hub.registry.shape import Shape
from hub.registry.strategy import Strategy

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
    """Return a core Event as events.k8s.io has it."""
    return _renamed(obj, _CORE_TO_NEW, "events.k8s.io/v1")


class EventStrategy(Strategy):
    """What field selectors of events know (kubectl describe asks by involvedObject)."""

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
_OBJECT: Shape = dict.fromkeys(_ABOUT, str)
_SOURCE: Shape = {"component": str, "host": str}


def _about(obj: Obj) -> str:
    about = obj.get("involvedObject") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _last_seen(obj: Obj) -> object:
    series = (obj.get("series") or {}).get("lastObservedTime")
    return series or obj.get("lastTimestamp") or obj.get("eventTime") or ""


def _printers() -> tuple[Printer, ...]:
    return (
        computed("Last Seen", _last_seen, description="When it was last observed."),
        path_printer("Type", ".type"),
        path_printer("Reason", ".reason"),
        computed("Object", _about, description="What it is about."),
        path_printer("Message", ".message"),
        path_printer("Name", ".metadata.name", priority=1),
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
            shape={"involvedObject": _OBJECT, "source": _SOURCE, "series": dict},
        ),
        View(
            "events.k8s.io",
            "v1",
            printers=_printers(),
            shape={"regarding": _OBJECT, "deprecatedSource": _SOURCE, "series": dict},
            to_storage=to_core,
            from_storage=from_core,
        ),
    ),
    is_namespaced=True,
    strategy=EventStrategy(),
    is_volatile=True,
)
