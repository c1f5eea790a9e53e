"""The golden recordings in tests/golden/wire as exchanges with decoded answers and events."""

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from hub.meta import Obj
from hub.meta.protobuf import decode_envelope
from hub.meta.protobuf.wire import fields

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "wire"
INITIAL_END = "k8s.io/initial-events-end"
_FILES = {
    "v1.3": "klusterlet-v1.3-bootstrap.jsonl",
    "v0.16": "klusterlet-v0.16-bootstrap.jsonl",
    "v1.3-detach": "klusterlet-v1.3-detach.jsonl",
    "v1.3-expired": "klusterlet-v1.3-expired.jsonl",
    "v1.3-rotation": "klusterlet-v1.3-rotation.jsonl",
}
"""The recordings by the names that labels have for them."""


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """One frame of a recorded watch; `t` is in seconds since the recording began."""

    t: float
    type: str
    object: Obj

    @property
    def revision(self) -> str:
        return str(self.object["metadata"].get("resourceVersion", ""))

    @property
    def name(self) -> str:
        return str(self.object["metadata"].get("name", ""))

    @property
    def is_initial_end(self) -> bool:
        return INITIAL_END in (self.object["metadata"].get("annotations") or {})

    @property
    def is_periodic_bookmark(self) -> bool:
        return self.type == "BOOKMARK" and not self.is_initial_end


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """One recorded request with its answer, or with its events when it is a watch."""

    recording: str
    seq: int
    t: float
    step: str
    user: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    status: int
    content_type: str
    answer: Obj
    events: tuple[RecordedEvent, ...]
    ends: float
    end: str

    @property
    def is_watch(self) -> bool:
        return "watch=true" in self.path

    @property
    def resource(self) -> str:
        """Resource and subresource, without cluster and name: ``managedclusters/status``."""
        parts = urlsplit(self.path).path.strip("/").split("/")
        rest = parts[5:] if parts[3:4] == ["namespaces"] else parts[3:]
        return "/".join([rest[0], *rest[2:]])

    @property
    def label(self) -> str:
        """What the table of differences matches: ``v1.3/10 PATCH managedclusters/status``."""
        verb = "WATCH" if self.is_watch else self.method
        return f"{self.recording}/{self.seq} {verb} {self.resource}"

    def event_label(self, event: RecordedEvent) -> str:
        """The same for an event: ``v1.3/7 MODIFIED managedclusters@504``."""
        return f"{self.recording}/{self.seq} {event.type} {self.resource}@{event.revision}"


def read_recording(recording: str) -> list[Exchange]:
    """Return the exchanges of a recording in order of arrival."""
    text = (GOLDEN / _FILES[recording]).read_text()
    return [_exchange(recording, json.loads(line)) for line in text.splitlines()]


def _exchange(recording: str, line: Obj) -> Exchange:
    t = float(line["t"])
    return Exchange(
        recording=recording,
        seq=line["seq"],
        t=t,
        step=line["step"],
        user=line["identity"]["user"],
        method=line["method"],
        path=line["path"],
        headers=tuple((name.lower(), value) for name, value in line["req_headers"]),
        body=base64.b64decode(line["req_body"] or ""),
        status=line["status"],
        content_type=line["content_type"],
        answer=_object(line.get("res_body", {})),
        events=tuple(_event(t + offset, frame) for offset, frame in line.get("events", [])),
        ends=t + float(line.get("dur", 0.0)),
        end=line["end"],
    )


def _object(body: Obj | str) -> Obj:
    return decode_envelope(base64.b64decode(body)) if isinstance(body, str) else body


def _event(t: float, frame: Obj | str) -> RecordedEvent:
    if isinstance(frame, str):
        return _protobuf_event(t, base64.b64decode(frame))
    return RecordedEvent(t, frame["type"], frame["object"])


def _protobuf_event(t: float, frame: bytes) -> RecordedEvent:
    """Decode a WatchEvent: type=1, object=2 (a RawExtension: raw=1)."""
    by_number = {f.number: f for f in fields(frame, 0, len(frame))}
    raw = next(f for f in fields(frame, by_number[2].start, by_number[2].end) if f.number == 1)
    kind = frame[by_number[1].start : by_number[1].end].decode()
    return RecordedEvent(t, kind, decode_envelope(frame[raw.start : raw.end]))
