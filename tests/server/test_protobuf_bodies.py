"""Every recorded protobuf body, sent to a hub as it was, comes back from it as Go decodes it.

`tests.server.test_wire_replay` and the replay of kubectl go through our encoder, since two hubs
cannot share identities. Here it has no part: the bytes of a body are sent as they were recorded,
and in those of an update uid, resourceVersion and creationTimestamp are exchanged one field by one.
"""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from hub.meta import Obj
from hub.meta.codec.json import decode
from hub.meta.protobuf import MAGIC, decode_envelope, wire
from hub.meta.protobuf.wire import bytes_field, varint_field
from tests.hubs import Api, running_hub
from tests.server.support import PROTOBUF
from tests.server.wire_recording import GOLDEN

BODIES = GOLDEN.parent / "protobuf"
NOT_SERVED = ("apps", "batch", "networking", "policy", "scheduling", "services", "resourcequotas")
"""Groups and core kinds of which kubectl sent something, too."""

_IDENTITY = {"/metadata/uid", "/metadata/resourceVersion", "/metadata/creationTimestamp"}
_OWN = {
    "": ("/metadata/namespace", "/metadata/generation", "/metadata/managedFields"),
    "CertificateSigningRequest": (
        *("/spec/username", "/spec/groups", "/spec/extra", "/spec/uid", "/status/certificate"),
        "/status/conditions/0/lastTransitionTime",
    ),
    "Namespace": ("/metadata/labels/kubernetes.io~1metadata.name", "/spec", "/status/phase"),
    "Secret": ("/type",),
    "SelfSubjectAccessReview": ("/status",),
    "SelfSubjectReview": ("/status",),
    "SelfSubjectRulesReview": ("/status", "/spec/namespace"),  # an API server empties its spec
    "TokenRequest": ("/metadata/name", "/status"),
}
"""What the hub writes, wherever the body has it."""
_FILLED = "/spec/audiences/"
"""What the hub fills in where nobody said it: whom a token is for."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One body, with the request in which a client sent it first."""

    method: str
    path: str
    body: bytes

    @property
    def decoded(self) -> Obj:
        """What Go decodes it to, where that was recorded; else what we do."""
        return _DECODED.get(self.body) or decode_envelope(self.body)


_DECODED: dict[bytes, Obj] = {
    file.read_bytes(): decode(file.with_suffix(".decoded.json").read_bytes())
    for file in BODIES.glob("*.bin")
}


def recorded() -> list[Sent]:
    """Return every distinct body about a kind that a hub serves, in order of the recordings.

    Options of deletions are no objects to be read back; the replay of clusteradm sends them.
    """
    found: dict[bytes, Sent] = {}
    for file in sorted(GOLDEN.glob("*.jsonl")):
        for line in map(json.loads, file.read_text().splitlines()):
            body = line["req_body"]
            raw = base64.b64decode(body) if isinstance(body, str) else b""
            is_object = raw.startswith(MAGIC) and line["method"] != "DELETE"
            if is_object and not any(word in line["path"] for word in NOT_SERVED):
                found.setdefault(raw, Sent(line["method"], line["path"], raw))
    return list(found.values())


async def test_every_recorded_protobuf_body_comes_back_as_it_was_sent(tmp_path: Path) -> None:
    bodies = recorded()
    assert {sent.body for sent in bodies} >= _DECODED.keys()
    assert (len(_DECODED), len(bodies)) == (30, 78)
    async with running_hub(tmp_path / "data") as hub:
        for sent in bodies:
            answer, found = await _send(hub.admin, sent)
            wanted = _told(sent.decoded)
            for told in (_told(answer), _told(found)):
                filled = {p for p in told.keys() - wanted.keys() if p.startswith(_FILLED)}
                assert {p: v for p, v in told.items() if p not in filled} == wanted, sent.path


async def _send(admin: Api, sent: Sent) -> tuple[Obj, Obj]:
    """Send a body; return the answer, and the object as the hub has it then, if it has it."""
    parts = urlsplit(sent.path)
    await _make_ready(admin, sent, parts.path)
    body = sent.body
    target = parts.path.removesuffix("/approval")
    if sent.method == "PUT":
        body = _as(body, (await admin.get(target))["metadata"])
    answer = await admin.call(sent.method, sent.path, body, content_type=PROTOBUF)
    assert answer.status in (200, 201), (sent.path, answer.body)
    obj = answer.obj()
    kind = str(obj["kind"])
    if "dryRun=All" in parts.query or kind.endswith(("Review", "TokenRequest")):
        return obj, obj
    if sent.method == "POST":
        target = f"{target}/{obj['metadata']['name']}"
    return obj, await admin.get(target)


async def _make_ready(admin: Api, sent: Sent, path: str) -> None:
    """Make what a body needs: its namespace, what it updates."""
    steps = path.strip("/").split("/")
    if "namespaces" in steps[:-1]:
        namespace = steps[steps.index("namespaces") + 1]
        await admin.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    if sent.method != "PUT":
        return
    target = path.removesuffix("/approval")
    collection, name = target.rsplit("/", 1)
    await admin.call("DELETE", target)
    obj = decode_envelope(sent.body)
    meta = {k: v for k, v in obj["metadata"].items() if k in ("generateName", "labels")}
    await admin.create(collection, {"metadata": {**meta, "name": name}, "spec": obj["spec"]})


def _as(body: bytes, ours: Obj) -> bytes:
    """Return a body with our identity in its ObjectMeta (uid=5 resourceVersion=6).

    The time of creation (8) goes, which the hub knows.
    """

    def metadata(data: bytes) -> bytes:
        kept = b"".join(copy for number, copy in _copies(data) if number not in (5, 6, 8))
        identity = bytes_field(5, ours["uid"].encode())
        return kept + identity + bytes_field(6, ours["resourceVersion"].encode())

    def changed(data: bytes, at: int, change: Callable[[bytes], bytes]) -> bytes:
        return b"".join(
            bytes_field(at, change(_payload(copy))) if number == at else copy
            for number, copy in _copies(data)
        )

    unknown = changed(body[len(MAGIC) :], 2, lambda raw: changed(raw, 1, metadata))
    return MAGIC + unknown


def _copies(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the fields of a message by number, each as the bytes it was."""
    for field in wire.fields(data, 0, len(data)):
        if field.wire_type == wire.VARINT:
            yield field.number, varint_field(field.number, field.value)
        else:
            assert field.wire_type == wire.BYTES
            yield field.number, bytes_field(field.number, data[field.start : field.end])


def _payload(field: bytes) -> bytes:
    (found,) = wire.fields(field, 0, len(field))
    return field[found.start : found.end]


def _told(obj: Obj) -> dict[str, object]:
    """Return every value of an object by its JSON pointer, but what the hub writes itself."""
    own = (*_OWN[""], *_OWN.get(obj["kind"], ()), *_IDENTITY)
    if obj["metadata"].get("generateName"):
        own = (*own, "/metadata/name")
    return {
        path: value
        for path, value in _leaves("", obj)
        if not any(path == name or path.startswith(f"{name}/") for name in own)
    }


def _leaves(path: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield what stands at the ends; Go's null and empty object say nothing."""
    if isinstance(value, dict):
        for name, child in value.items():
            yield from _leaves(f"{path}/{name.replace('~', '~0').replace('/', '~1')}", child)
    elif isinstance(value, list):
        for position, child in enumerate(value):
            yield from _leaves(f"{path}/{position}", child)
    elif value is not None:
        yield path, value
