"""The conditions of a CustomResourceDefinition, and the names it may have.

Pure; mirrors apiextensions-apiserver's ``pkg/controller/status/naming_controller.go`` and
``pkg/apis/apiextensions/helpers.go``.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hub.meta import Obj

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_LISTED = ("shortNames", "categories")


def find_condition(obj: Obj, type_: str) -> Obj | None:
    """Return a condition, None when the object has none of the type."""
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == type_:
            found: Obj = condition
            return found
    return None


def is_true(obj: Obj, type_: str) -> bool:
    """Whether a condition is there and True."""
    found = find_condition(obj, type_)
    return found is not None and found.get("status") == "True"


def set_condition(obj: Obj, now: str, type_: str, *, status: str, reason: str, text: str) -> None:
    """Set a condition in place; its time changes with its status only."""
    state = obj.setdefault("status", {})
    conditions = state["conditions"] = list(state.get("conditions") or ())
    found = find_condition(obj, type_)
    if found is None:
        found = {"type": type_, "status": ""}
        conditions.append(found)
    changed = found["status"] != status
    since = now if changed else found.get("lastTransitionTime", now)
    found |= {"status": status, "lastTransitionTime": since, "reason": reason, "message": text}


@dataclass(slots=True)
class Taken:
    """The names that are in use in a group; kinds and list kinds share one space."""

    resources: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)

    def add(self, names: Obj) -> None:
        """Add the names of one kind."""
        self.resources.update(n for n in (names.get("plural"), names.get("singular")) if n)
        self.resources.update(names.get("shortNames") or ())
        self.kinds.update(n for n in (names.get("kind"), names.get("listKind")) if n)


@dataclass(frozen=True, slots=True)
class Naming:
    """What has become of the names a definition asks for; `conflict` ("", "") = none."""

    accepted: Obj
    conflict: tuple[str, str]


def accept_names(obj: Obj, others: Iterable[Obj]) -> Naming:
    """Return which of the names may be used, beside the accepted names of `others`."""
    taken = Taken()
    for names in others:
        taken.add(names)
    asked = obj["spec"]["names"]
    accepted = dict((obj.get("status") or {}).get("acceptedNames") or {})
    conflict = ("", "")
    for key, reason, space in (
        ("plural", "PluralConflict", taken.resources),
        ("singular", "SingularConflict", taken.resources),
        ("shortNames", "ShortNamesConflict", taken.resources),
        ("kind", "KindConflict", taken.kinds),
        ("listKind", "ListKindConflict", taken.kinds),
    ):
        wanted = asked.get(key)
        used = [n for n in (wanted if key in _LISTED else [wanted]) or () if n in space]
        if used:
            conflict = (reason, ", ".join(f'"{name}" is already in use' for name in used))
        elif wanted:
            accepted[key] = wanted
        else:
            accepted.pop(key, None)
    if asked.get("categories"):
        accepted["categories"] = asked["categories"]
    else:
        accepted.pop("categories", None)
    return Naming(accepted, conflict)


def note_names(obj: Obj, naming: Naming, now: str) -> None:
    """Write into the status what has become of the names; Established once all were accepted."""
    obj.setdefault("status", {})["acceptedNames"] = naming.accepted
    reason, text = naming.conflict
    if reason:
        set_condition(obj, now, "NamesAccepted", status="False", reason=reason, text=text)
        if not is_true(obj, "Established"):
            set_condition(
                obj,
                now,
                "Established",
                status="False",
                reason="NotAccepted",
                text="not all names are accepted",
            )
        return
    set_condition(
        obj,
        now,
        "NamesAccepted",
        status="True",
        reason="NoConflicts",
        text="no conflicts found",
    )
    if not is_true(obj, "Established"):
        set_condition(
            obj,
            now,
            "Established",
            status="True",
            reason="InitialNamesAccepted",
            text="the initial names have been accepted",
        )
