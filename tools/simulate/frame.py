"""Watch events out of a stream of chunks.

A JSON watch is one document a line, in chunks of any size. Anything else is a `MalformedError`: a
watch stream cannot be read on after it.
"""

from dataclasses import dataclass

from hub.meta import Obj
from hub.meta.codec import json
from hub.meta.errors import ApiError

MAX_LINE_BYTES = 16 * 2**20
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"})


class MalformedError(Exception):
    """What the hub sent is not what the protocol says."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event; `object` is a Status for ERROR."""

    type: str
    object: Obj

    @property
    def metadata(self) -> Obj:
        """Return the object's metadata, empty when it has none."""
        metadata: Obj = self.object.get("metadata") or {}
        return metadata

    @property
    def ends_initial_events(self) -> bool:
        """Whether this is the bookmark after the last initial event of a WatchList."""
        annotations: Obj = self.metadata.get("annotations") or {}
        return self.type == "BOOKMARK" and annotations.get(INITIAL_EVENTS_END) == "true"


class LineFrames:
    """Collects chunks and gives back whole lines as events."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[WatchEvent]:
        """Return the events that `chunk` completes. Raises `MalformedError`."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            raise MalformedError(f"a watch event is longer than {MAX_LINE_BYTES} bytes")
        return [parse_event(line) for line in lines if line]

    def close(self) -> None:
        """Check that the stream ended between two events. Raises `MalformedError`."""
        if self._rest:
            raise MalformedError(f"the watch ended inside an event: {self._rest[:80]!r}")


def parse_event(line: bytes) -> WatchEvent:
    """Return the event of one line. Raises `MalformedError`."""
    try:
        frame = json.decode(line)
    except ApiError as error:
        raise MalformedError(f"a watch event is not JSON: {line[:80]!r}") from error
    kind, obj = frame.get("type"), frame.get("object")
    if kind not in _TYPES or not isinstance(obj, dict):
        raise MalformedError(f"a watch event has no known type or no object: {line[:80]!r}")
    event = WatchEvent(kind, obj)
    if kind != "ERROR" and not event.metadata.get("resourceVersion"):
        raise MalformedError(f"a watch event has no resourceVersion: {line[:80]!r}")
    return event
