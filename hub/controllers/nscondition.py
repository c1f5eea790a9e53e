"""The conditions of a namespace on its way out: what is left, and what holds it.

Pure; mirrors status_condition_utils.go in k8s.io/kubernetes/pkg/controller/namespace/deletion. All
five are always written, in this order; what does not fail is False, with its reason.
"""

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hub.meta import Obj
from hub.meta.errors import Resource
from hub.meta.timestamp import format_time

_QUIET = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": (
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
}


@dataclass(slots=True)
class Remains:
    """What a pass over a namespace has left: objects by resource, their finalizers, refusals."""

    objects: Counter[Resource] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    def count(self, resource: Resource, finalizers: Sequence[str]) -> None:
        """Count an object that is still there."""
        self.objects[resource] += 1
        self.finalizers.update(finalizers)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left and nothing went wrong."""
        return not self.objects and not self.errors


def update_conditions(namespace: Obj, remains: Remains, now: dt.datetime) -> None:
    """Write the five conditions in place; a time moves only with its status."""
    loud = _loud(remains)
    status = namespace.setdefault("status", {})
    present = {c.get("type"): c for c in status.get("conditions") or []}
    fresh = []
    for type_, quiet in _QUIET.items():
        reason, message = loud.get(type_, quiet)
        value = "True" if type_ in loud else "False"
        old = present.get(type_) or {}
        since = old.get("lastTransitionTime") if old.get("status") == value else None
        condition = {
            "type": type_,
            "status": value,
            "lastTransitionTime": since or format_time(now),
            "reason": reason,
            "message": message,
        }
        fresh.append(condition)
    others = [c for c in status.get("conditions") or [] if c.get("type") not in _QUIET]
    status["conditions"] = [*others, *fresh]


def _loud(remains: Remains) -> Mapping[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    if remains.errors:
        text = ", ".join(sorted(remains.errors))
        message = f"Failed to delete all resource types, {len(remains.errors)} remaining: {text}"
        found["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", message)
    if remains.objects:
        texts = sorted(
            f"{resource.resource}.{resource.group} has {count} resource instances"
            for resource, count in remains.objects.items()
        )
        message = f"Some resources are remaining: {', '.join(texts)}"
        found["NamespaceContentRemaining"] = ("SomeResourcesRemain", message)
    if remains.finalizers:
        texts = sorted(
            f"{name} in {count} resource instances" for name, count in remains.finalizers.items()
        )
        message = f"Some content in the namespace has finalizers remaining: {', '.join(texts)}"
        found["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
    return found
