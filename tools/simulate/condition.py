"""Status conditions, set as apimachinery's ``meta.SetStatusCondition`` does. Pure."""

from collections.abc import Sequence
from typing import TypeAlias

from hub.meta import Obj

Conditions: TypeAlias = list[Obj]


def find_condition(obj: Obj, kind: str) -> Obj | None:
    """Return the condition of `obj`'s status with type `kind`."""
    conditions: Conditions = (obj.get("status") or {}).get("conditions") or []
    return next((c for c in conditions if c.get("type") == kind), None)


def is_true(obj: Obj, kind: str, *, generation: int | None = None) -> bool:
    """Whether condition `kind` is True, and was so for `generation` when that is given."""
    condition = find_condition(obj, kind)
    if condition is None or condition.get("status") != "True":
        return False
    return generation is None or condition.get("observedGeneration") == generation


def condition(
    kind: str, status: str, *, reason: str, message: str, generation: int | None = None
) -> Obj:
    """Return a condition without its transition time."""
    made = {"type": kind, "status": status, "reason": reason, "message": message}
    return made if generation is None else {**made, "observedGeneration": generation}


def set_conditions(existing: Conditions, wanted: Sequence[Obj], *, now: str) -> Conditions:
    """Return `existing` with `wanted` in it; a transition time moves only with the status.

    >>> old = {"type": "A", "status": "True", "reason": "R", "lastTransitionTime": "1"}
    >>> new = {"type": "A", "status": "True", "reason": "S"}
    >>> set_conditions([old], [new], now="2")[0]["lastTransitionTime"]
    '1'
    """
    result = {c["type"]: c for c in existing}
    for fresh in wanted:
        before = result.get(fresh["type"])
        is_same = before is not None and before.get("status") == fresh["status"]
        since = before.get("lastTransitionTime", now) if before and is_same else now
        result[fresh["type"]] = {"lastTransitionTime": since, **fresh}
    return list(result.values())
