"""What a hub must not do on a watch, as checks of one event or one list. Pure.

Every finding is a `Fault`: a kind, under which it is counted, and a text. The checks are those an
informer relies on without making them: revisions rise, each change comes once, none is left out,
and a list is no older than what was seen before.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hub.meta import Obj
from tools.simulate.frame import WatchEvent

OUT_OF_ORDER = "revision out of order"
REPEATED = "revision repeated"
MISSED = "revision missed"
OUTDATED = "list outdated"
OMITTED = "object omitted"
"""An agent that holds the object would start to evict what it has applied."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing a hub must not do."""

    kind: str
    text: str


def check_event(event: WatchEvent, known: Obj | None, *, revision: str, hold: str) -> list[Fault]:
    """Check one event after the initial ones.

    `known` is the object as it was, `revision` the last that was seen, `hold` the finalizer of the
    one who watches.
    """
    return [*_check_order(event, revision), *_check_course(event, known, hold)]


def _check_order(event: WatchEvent, revision: str) -> Iterator[Fault]:
    now, before = number(event.metadata["resourceVersion"]), number(revision)
    if now < before:
        yield Fault(OUT_OF_ORDER, f"{_told(event)} came after revision {revision}")
    elif now == before and event.type != "BOOKMARK":
        yield Fault(REPEATED, f"{_told(event)} came a second time")


def _check_course(event: WatchEvent, known: Obj | None, hold: str) -> Iterator[Fault]:
    """Check that nothing can have happened between the object as it was and as it is now."""
    if event.type == "BOOKMARK":
        return
    if known is None:
        if event.type != "ADDED":
            yield Fault(MISSED, f"{_told(event)}, and nothing was told of it before")
        return
    was = known["metadata"]
    if event.type == "ADDED":
        yield Fault(MISSED, f"{_told(event)}, and its end was not told after {_at(was)}")
    elif was.get("uid") != event.metadata.get("uid"):
        yield Fault(MISSED, f"{_told(event)} is another object than {_at(was)}")
    elif event.type == "DELETED" and is_held(known, hold):
        yield Fault(MISSED, f"{_told(event)}, and its deletion was not told after {_at(was)}")
    elif event.type == "MODIFIED":
        rise = event.metadata.get("generation", 0) - was.get("generation", 0)
        if rise not in (0, 1):
            yield Fault(MISSED, f"{_told(event)}: its generation has risen by {rise}")


def check_list(
    before: Mapping[str, Obj], after: Mapping[str, Obj], *, asked: str, revision: str, hold: str
) -> list[Fault]:
    """Check a whole list at `revision` against what was known; it was `asked` to be no older."""
    faults = []
    if number(revision) < number(asked):
        faults.append(Fault(OUTDATED, f"a list at {revision}, asked for no older than {asked}"))
    for name, obj in after.items():
        faults += _check_listed(name, before.get(name), obj, revision)
    for name, obj in before.items():
        if name not in after and is_held(obj, hold):
            faults.append(omitted(name, revision))
    return faults


def _check_listed(name: str, was: Obj | None, obj: Obj, revision: str) -> Iterator[Fault]:
    own = obj["metadata"]
    if number(own["resourceVersion"]) > number(revision):
        yield Fault(OUT_OF_ORDER, f"a list at {revision} has {name} at {_at(own)}")
    if was is None or was["metadata"].get("uid") != own.get("uid"):
        return
    if number(own["resourceVersion"]) < number(was["metadata"]["resourceVersion"]):
        yield Fault(OUTDATED, f"a list has {name} at {_at(own)}, after {_at(was['metadata'])}")


def omitted(name: str, revision: str) -> Fault:
    """Return what it is to leave an object that is held out of a list."""
    return Fault(OMITTED, f"a list at {revision} leaves out {name}, which this agent holds")


def is_held(obj: Obj, hold: str) -> bool:
    """Whether `obj` cannot go before the one with finalizer `hold` was told that it shall."""
    metadata = obj["metadata"]
    is_kept = bool(hold) and hold in (metadata.get("finalizers") or [])
    return is_kept and not metadata.get("deletionTimestamp")


def number(revision: str) -> int:
    """Return a revision as a number; none is before all."""
    return int(revision) if revision.isdecimal() else 0


def _told(event: WatchEvent) -> str:
    name = event.metadata.get("name", "")
    return f"{event.type} {name} at {_at(event.metadata)}".replace("  ", " ")


def _at(metadata: Obj) -> str:
    return f"revision {metadata['resourceVersion']}"


def revision_of(obj: Obj) -> str:
    """Return the revision of an object, "" when it has none."""
    return str((obj.get("metadata") or {}).get("resourceVersion", ""))
