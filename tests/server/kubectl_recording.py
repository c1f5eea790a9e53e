"""The golden recordings of kubectl in tests/golden/wire as exchanges with decoded answers."""

import base64
import json
import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from hub.meta import Obj
from hub.meta.protobuf import MAGIC, decode_envelope, wire
from hub.meta.protobuf.decoder import Decoder
from hub.meta.protobuf.tables import find_message
from tests.server.wire_recording import GOLDEN, RecordedEvent

CLUSTERADM = "clusteradm"
Document = Literal["", "discovery", "resources", "openapi", "index"]


@dataclass(frozen=True, slots=True, eq=False)
class KubectlExchange:
    """One recorded request with its answer (an outline for a `document`), or with its events.

    `answer` is None where there was no body or the golden file does not keep it.
    """

    recording: str
    seq: int
    step: str
    user: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    status: int
    content_type: str
    warning: str
    answer: Obj | str | None
    events: tuple[RecordedEvent, ...]

    @property
    def is_watch(self) -> bool:
        return "watch=true" in self.path

    @property
    def route(self) -> str:
        """The path without its query."""
        return urlsplit(self.path).path

    @property
    def parts(self) -> tuple[str, str, str]:
        """Group, version and plural with subresource (``configmaps``, ``widgets/scale``).

        The plural is empty for what is no resource.
        """
        parts = self.route.strip("/").split("/")
        if parts[0] == "openapi" and parts[2:3] == ["apis"]:
            return parts[3], "".join(parts[4:5]), ""
        if parts[0] not in ("api", "apis"):
            return "", "", ""
        start = 1 if parts[0] == "api" else 2
        group = "" if parts[0] == "api" else "".join(parts[1:2])
        version = "".join(parts[start : start + 1])
        rest = parts[start + 1 :]
        if rest[:1] == ["namespaces"] and len(rest) > 2:
            rest = rest[2:]
        return group, version, "/".join([*rest[:1], *rest[2:]])

    @property
    def document(self) -> Document:
        """Which document it is, of those compared by their outlines."""
        if self.route in ("/api", "/apis"):
            return "discovery"
        if self.route.startswith("/openapi/v3"):
            return "index" if self.route == "/openapi/v3" else "openapi"
        is_list = self.route.startswith("/api") and not self.parts[2]
        return "resources" if is_list else ""

    @property
    def left_out(self) -> str:
        """Why it is not replayed, empty when it is."""
        media_type = dict(self.headers).get("content-type", "")
        is_own = self.method == "PATCH" and b"managedFields" in self.body
        if media_type == "application/apply-patch+yaml" or is_own:
            return "server-side apply"
        return ""

    @property
    def objects(self) -> list[Obj]:
        """The objects in its answer or its events, bookmarks left out."""
        if self.is_watch:
            return [event.object for event in self.events if event.type != "BOOKMARK"]
        if not isinstance(self.answer, dict):
            return []
        found: list[Obj] = self.answer.get("items", [self.answer])
        return found

    @property
    def label(self) -> str:
        """What the table of differences matches: ``1.35/46 PATCH configmaps``."""
        verb = "WATCH" if self.is_watch else self.method
        return f"{self.recording}/{self.seq} {verb} {self.parts[2] or self.route}"

    def event_label(self, event: RecordedEvent) -> str:
        """The same for an event: ``1.35/141 MODIFIED configmaps``."""
        return f"{self.recording}/{self.seq} {event.type} {self.parts[2]}"


def read_kubectl(recording: str) -> list[KubectlExchange]:
    """Return the exchanges of a recording of kubectl (or clusteradm) in order of arrival."""
    kept: dict[tuple[str, int], Obj | str | None] = {}
    found: list[KubectlExchange] = []
    for name in dict.fromkeys(["1.35", recording]):  # later files refer to the first
        file = f"{name}.jsonl" if name == CLUSTERADM else f"kubectl-{name}.jsonl"
        for line in map(json.loads, (GOLDEN / file).read_text().splitlines()):
            same = line.get("res_body_same_as")
            answer = kept[same[0], same[1]] if same else _decoded(line.get("res_body"))
            kept[file, line["seq"]] = answer
            if name == recording:
                found.append(_exchange(recording, line, answer))
    return found


def _exchange(recording: str, line: Obj, answer: Obj | str | None) -> KubectlExchange:
    body = line["req_body"]
    return KubectlExchange(
        recording=recording,
        seq=line["seq"],
        step=line["step"],
        user=line["user"],
        method=line["method"],
        path=line["path"],
        headers=tuple((name.lower(), value) for name, value in line["req_headers"]),
        body=_dense(body) if isinstance(body, dict) else base64.b64decode(body),
        status=line["status"],
        content_type=line["content_type"],
        warning=line.get("warning", ""),
        answer=answer,
        events=tuple(
            RecordedEvent(at, event["type"], event["object"])
            for at, event in line.get("events", ())
        ),
    )


def _dense(body: Obj) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def _decoded(body: Obj | str | None) -> Obj | str | None:
    if not isinstance(body, str):
        return body
    data = base64.b64decode(body)
    return decode_protobuf(data) if data.startswith(MAGIC) else data.decode()


def decode_protobuf(data: bytes) -> Obj:
    """Return the object in a protobuf answer; a list is its metadata and its items.

    A list's message has ``metadata=1`` and ``items=2``; the items have the kind of the list.
    """
    unknown = fields_of(data, len(MAGIC), len(data))
    types = fields_of(data, *unknown[1][0])
    api_version, kind = (data[slice(*types[number][0])].decode() for number in (1, 2))
    item = find_message(api_version, kind.removesuffix("List"))
    if not kind.endswith("List") or item is None:
        return decode_envelope(data)
    parts = fields_of(data, *unknown[2][0])
    items = [Decoder(data).decode(item, *at) for at in parts.get(2, ())]
    meta = _list_meta(data, parts[1][0])
    return {"kind": kind, "apiVersion": api_version, "metadata": meta, "items": items}


def _list_meta(data: bytes, at: tuple[int, int]) -> Obj:
    """Return a ListMeta: resourceVersion=2."""
    return {"resourceVersion": data[slice(*fields_of(data, *at)[2][0])].decode()}


def fields_of(data: bytes, start: int, end: int) -> dict[int, list[tuple[int, int]]]:
    """Return where the fields of a message lie, by their numbers."""
    found: dict[int, list[tuple[int, int]]] = {}
    for field in wire.fields(data, start, end):
        found.setdefault(field.number, []).append((field.start, field.end))
    return found


UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
