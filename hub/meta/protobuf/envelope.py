"""The envelope around every protobuf body: ``k8s NUL`` and a ``runtime.Unknown``.

Owns the way from bytes to an object with ``apiVersion`` and ``kind``, and back. Mirrors
apimachinery's ``pkg/runtime/serializer/protobuf``; its messages are kept where a client sees them.

    Unknown: typeMeta=1 {apiVersion=1 kind=2}  raw=2  contentEncoding=3  contentType=4
"""

from hub.meta import Obj
from hub.meta.codec import json
from hub.meta.errors import ApiError, bad_request
from hub.meta.protobuf import wire
from hub.meta.protobuf.decoder import Decoder
from hub.meta.protobuf.encoder import encode_message
from hub.meta.protobuf.tables import find_message
from hub.meta.protobuf.wire import WireError, bytes_field

MAGIC = b"k8s\x00"

_PROTOBUF = "application/vnd.kubernetes.protobuf"


def is_supported(api_version: str, kind: str) -> bool:
    """Whether bodies of this kind can be read and written as protobuf."""
    return find_message(api_version, kind) is not None


def decode_envelope(data: bytes) -> Obj:
    """Return the object of a protobuf body, ``kind`` and ``apiVersion`` first.

    Raises a 400 ApiError naming the byte and the field, or the kind that has no table.
    """
    if not data.startswith(MAGIC):
        raise bad_request(
            "provided data does not appear to be a protobuf message,"
            f" expected prefix [{' '.join(str(b) for b in MAGIC)}]"
        )
    try:
        return _decode(data)
    except WireError as e:
        raise bad_request(f"unable to decode the protobuf body: {e}") from e


def encode_envelope(obj: Obj) -> bytes:
    """Return `obj` as a protobuf body, as client-go sends it.

    Raises ValueError for a kind without a table and for a field that does not fit.
    """
    api_version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
    spec = find_message(api_version, kind)
    if spec is None:
        raise ValueError(f"kind {kind!r} of {api_version!r} has no protobuf table, send JSON")
    body = {k: v for k, v in obj.items() if k not in {"apiVersion", "kind"}}
    types = bytes_field(1, api_version.encode()) + bytes_field(2, kind.encode())
    unknown = [bytes_field(1, types), bytes_field(2, encode_message(spec, body))]
    return b"".join([MAGIC, *unknown, bytes_field(3, b""), bytes_field(4, b"")])


def _decode(data: bytes) -> Obj:
    parts = {f.number: f for f in wire.fields(data, len(MAGIC), len(data))}
    for number, part in parts.items():
        if number <= 4 and part.wire_type != wire.BYTES:
            raise WireError(f"wrong wire type {part.wire_type}", part.start)
    empty = wire.Field(0, wire.BYTES, 0, len(data), len(data))
    types, raw, encoding, content = (parts.get(n, empty) for n in (1, 2, 3, 4))
    api_version, kind = _type_meta(data, types)
    if encoding.start != encoding.end:
        raise WireError("unsupported contentEncoding", encoding.start)
    content_type = data[content.start : content.end]
    if content_type == b"application/json":
        return {"kind": kind, "apiVersion": api_version, **json.decode(data[raw.start : raw.end])}
    if content_type not in {b"", _PROTOBUF.encode()}:
        raise WireError("unsupported contentType", content.start)
    spec = find_message(api_version, kind)
    if spec is None:
        raise _unknown_kind(api_version, kind)
    body = Decoder(data).decode(spec, raw.start, raw.end)
    return {"kind": kind, "apiVersion": api_version, **body}


def _type_meta(data: bytes, types: wire.Field) -> tuple[str, str]:
    texts = {1: "", 2: ""}
    for part in wire.fields(data, types.start, types.end):
        if part.number in texts and part.wire_type == wire.BYTES:
            try:
                texts[part.number] = data[part.start : part.end].decode()
            except UnicodeDecodeError as e:
                raise WireError("text is not UTF-8", part.start) from e
    return texts[1], texts[2]


def _unknown_kind(api_version: str, kind: str) -> ApiError:
    return bad_request(
        f'no kind "{kind}" is registered for version "{api_version}" as protobuf, send JSON'
    )
