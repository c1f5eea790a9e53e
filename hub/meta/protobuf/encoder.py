"""From objects to protobuf messages, byte for byte as Go's generated code writes them.

Owns the writing half, for clients of ours (the simulator) that must look like a typed Go client:
fields by number, map entries sorted by key, plain values written even when zero.
"""

import datetime as dt
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from hub.meta import Obj
from hub.meta.codec import json
from hub.meta.codec.base64 import decode_base64
from hub.meta.protobuf.schema import INTEGERS, FieldSpec, MessageSpec, Presence, Shape
from hub.meta.protobuf.tables import MESSAGES
from hub.meta.protobuf.wire import FIXED64, bytes_field, varint, varint_field
from hub.meta.timestamp import parse_time

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
T = TypeVar("T")
_RANGES = {"int32": 2**31, "int64": 2**63}


def encode_message(spec: MessageSpec, obj: Obj, path: str = "") -> bytes:
    """Return `obj` as a message; None counts as absent.

    Raises ValueError naming the field whose value does not fit the table, or that the table does
    not know.
    """
    unknown = obj.keys() - spec.by_name.keys()
    if unknown:
        raise ValueError(f"{path}{min(unknown)} is not a field of {spec.name}")
    pieces = [
        piece
        for field in sorted(spec.fields, key=lambda f: f.number)
        for piece in _encode_field(field, obj.get(field.name), f"{path}{field.name}")
    ]
    return b"".join(pieces)


def _encode_field(field: FieldSpec, value: object, path: str) -> Iterator[bytes]:
    if field.shape is Shape.LIST:
        for i, item in enumerate(_checked(value, list, path) if value is not None else ()):
            yield _encode_one(field, item, f"{path}[{i}]")
    elif field.shape is Shape.MAP:
        entries = _checked(value, dict, path) if value is not None else {}
        for key in sorted(entries):
            entry = bytes_field(1, _text(key, path)) + bytes_field(
                2, _payload(field.type, entries[key], f"{path}[{key}]")
            )
            yield bytes_field(field.number, entry)
    elif value is not None:
        yield _encode_one(field, value, path)
    elif field.presence is not Presence.POINTER and field.type != "bytes":
        yield _encode_zero(field)


def _encode_one(field: FieldSpec, value: object, path: str) -> bytes:
    if field.type == "double":
        number = _checked(float(value) if isinstance(value, int) else value, float, path)
        return varint(field.number << 3 | FIXED64) + struct.pack("<d", number)
    if field.type in INTEGERS:
        return varint_field(field.number, _number(field.type, value, path))
    return bytes_field(field.number, _payload(field.type, value, path))


def _encode_zero(field: FieldSpec) -> bytes:
    if field.type in INTEGERS:
        return varint_field(field.number, 0)
    is_message = field.type in MESSAGES
    return bytes_field(
        field.number, encode_message(MESSAGES[field.type], {}) if is_message else b""
    )


def _payload(kind: str, value: object, path: str) -> bytes:
    if kind == "string":
        return _text(value, path)
    if kind == "bytes":
        return _from_base64(value, path)
    if kind in {"time", "microtime"}:
        return _time(kind, value, path)
    if kind == "strings":
        items = _checked(value, list, path)
        return b"".join(bytes_field(1, _text(item, path)) for item in items)
    if kind == "rawjson":
        return bytes_field(1, json.encode(value))
    if kind in _UNIONS:
        value = _UNIONS[kind](value)
    return encode_message(MESSAGES[kind], _checked(value, dict, path), f"{path}.")


def _or_array(value: object) -> Obj:
    return {"jSONSchemas": value} if isinstance(value, list) else {"schema": value}


def _or_bool(value: object) -> Obj:
    is_bool = isinstance(value, bool)
    return {"allows": value} if is_bool else {"allows": True, "schema": value}


def _or_strings(value: object) -> Obj:
    return {"property": value} if isinstance(value, list) else {"schema": value}


_UNIONS: Mapping[str, Callable[[object], Obj]] = {
    "JSONSchemaPropsOrArray": _or_array,
    "JSONSchemaPropsOrBool": _or_bool,
    "JSONSchemaPropsOrStringArray": _or_strings,
}
"""Messages that are one of two things in JSON."""


def _time(kind: str, value: object, path: str) -> bytes:
    try:
        since = parse_time(_checked(value, str, path)) - _EPOCH
    except ValueError as e:
        raise ValueError(f"{path}: {e}") from e
    nanos = since.microseconds * 1000 if kind == "microtime" else 0
    return varint_field(1, since.days * 86400 + since.seconds) + varint_field(2, nanos)


def _number(kind: str, value: object, path: str) -> int:
    if kind == "bool":
        return int(_checked(value, bool, path))
    number = _checked(value, int, path)
    limit = _RANGES[kind]
    if isinstance(number, bool) or not -limit <= number < limit:
        raise ValueError(f"{path} must be an {kind}, not {value!r}")
    return number


def _from_base64(value: object, path: str) -> bytes:
    text = _checked(value, str, path)
    try:
        return decode_base64(text)
    except ValueError as e:
        raise ValueError(f"{path} must be base64: {e}") from e


def _text(value: object, path: str) -> bytes:
    return _checked(value, str, path).encode()


def _checked(value: object, kind: type[T], path: str) -> T:
    if not isinstance(value, kind):
        problem = f"{path} must be a {kind.__name__}, not {type(value).__name__}"
        raise ValueError(problem)  # noqa: TRY004 - one error for every field that does not fit
    return value
