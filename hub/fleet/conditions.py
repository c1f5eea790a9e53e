"""Status conditions: finding and setting them, with OCM's rule for lastTransitionTime."""

import datetime as dt

from hub.meta import Obj
from hub.meta.timestamp import format_time

AVAILABLE = "ManagedClusterConditionAvailable"
ACCEPTED = "HubAcceptedManagedCluster"
CLOCK_SYNCED = "ManagedClusterConditionClockSynced"
JOINED = "ManagedClusterJoined"


def find_condition(obj: Obj, type_: str) -> Obj | None:
    """Return the condition of that type, None if there is none."""
    for condition in (obj.get("status") or {}).get("conditions") or []:
        if isinstance(condition, dict) and condition.get("type") == type_:
            return condition
    return None


def condition_status(obj: Obj, type_: str) -> str:
    """Return "True", "False", "Unknown", or "" when there is no such condition."""
    found = find_condition(obj, type_)
    return str(found.get("status", "")) if found else ""


def set_condition(
    obj: Obj, type_: str, status: str, *, reason: str, message: str, now: dt.datetime
) -> None:
    """Set a condition in place; lastTransitionTime moves only when the status does."""
    conditions = obj.setdefault("status", {}).setdefault("conditions", [])
    fresh = {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": format_time(now),
    }
    for position, old in enumerate(conditions):
        if old.get("type") == type_:
            if old.get("status") == status:
                fresh["lastTransitionTime"] = old.get(
                    "lastTransitionTime", fresh["lastTransitionTime"]
                )
            conditions[position] = {**old, **fresh}
            return
    conditions.append(fresh)
