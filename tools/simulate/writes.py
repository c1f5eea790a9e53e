"""What was written, and has to be seen on the watch of the objects it was written to.

Owns the writes whose revision the watch has not shown yet. A hub that answers a write with revision
N must show exactly N, before anything newer: so a watch that leaves a change out is found out, by
the agent's own patches and by what the administrator created. Knows also how long a new object took
from its request to the watch. Times are monotonic seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass

from hub.meta import Obj
from tools.simulate.honesty import MISSED, OUTDATED, Fault, number

PATIENCE_S = 30.0
"""How long a watch that is open may take to show a write."""


@dataclass(slots=True, eq=False)
class Write:
    """One request on its way, and what the watch has shown of its object meanwhile."""

    name: str
    seen: list[str]
    listed: str = ""
    """The revision of a list that came meanwhile."""


@dataclass(frozen=True, slots=True)
class _Due:
    name: str
    revision: str
    since_s: float


class Writes:
    """The writes to the objects of one watch."""

    __slots__ = ("_created_s", "_due", "_now_s", "_on_delivery", "_open", "revision")

    def __init__(self, now_s: Callable[[], float], on_delivery: Callable[[float], None]) -> None:
        self.revision = ""
        """The last the watch has shown."""
        self._now_s, self._on_delivery = now_s, on_delivery
        self._open: list[Write] = []
        self._due: list[_Due] = []
        self._created_s: dict[str, float] = {}

    # -- those who write

    def begin(self, name: str, based_on: str = "") -> Write:
        """Note that a write to `name`, now at revision `based_on`, is about to be sent."""
        write = Write(name, [based_on])
        self._open.append(write)
        if not based_on:
            self._created_s[name] = self._now_s()
        return write

    def end(self, write: Write, revision: str) -> list[Fault]:
        """Note the revision a write was given; "" when it has none, or nobody knows."""
        self._open.remove(write)
        if not revision:
            self._created_s.pop(write.name, None)
            return []
        if revision in write.seen or number(revision) <= number(write.listed):
            return []
        if number(revision) <= number(self.revision):
            return [self._missed(write.name, revision, self.revision)]
        self._due.append(_Due(write.name, revision, self._now_s()))
        return []

    # -- the watch

    def shown(self, name: str, revision: str) -> list[Fault]:
        """Note an event; `name` is empty for a bookmark."""
        self.revision = revision
        if name:
            self._note(name, revision)
        if not self._due:
            return []
        late = [due for due in self._due if number(due.revision) <= number(revision)]
        self._due = [due for due in self._due if due not in late]
        return [
            self._missed(due.name, due.revision, revision)
            for due in late
            if (due.name, due.revision) != (name, revision)
        ]

    def _note(self, name: str, revision: str) -> None:
        for write in self._open:
            if write.name == name:
                write.seen.append(revision)
        began_s = self._created_s.pop(name, None)
        if began_s is not None:
            self._on_delivery(self._now_s() - began_s)

    def listed(self, objects: dict[str, Obj], revision: str) -> list[Fault]:
        """Note a whole list: it stands for every event before it."""
        self.revision, faults, left = revision, list[Fault](), list[_Due]()
        for name in objects:
            self._created_s.pop(name, None)
        for write in self._open:
            write.listed = revision
        for due in self._due:
            found = objects.get(due.name)
            if number(due.revision) > number(revision):
                left.append(due)
            elif found and number(found["metadata"]["resourceVersion"]) < number(due.revision):
                text = f"a list at {revision} has {due.name} before its revision {due.revision}"
                faults.append(Fault(OUTDATED, text))
        self._due = left
        return faults

    def overdue(self) -> list[Fault]:
        """Return the writes an open watch should have shown by now."""
        limit_s = self._now_s() - PATIENCE_S
        return [
            Fault(MISSED, f"{due.name} was written at revision {due.revision}, and not shown")
            for due in self._due
            if due.since_s < limit_s
        ]

    @staticmethod
    def _missed(name: str, revision: str, later: str) -> Fault:
        return Fault(MISSED, f"{name} at revision {revision} was not shown before {later}")
