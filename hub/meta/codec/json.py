"""JSON: compact UTF-8 out, one document in.

Owns the encoding of objects and the `Draft` form, in which the store fills in the resourceVersion.
Choosing a format is `hub.meta.body`'s business; duplicate keys are not seen here (the last one
wins, as in Go).

Invariant: what `decode` returns can be encoded again and is at most `MAX_DEPTH` deep, so code that
walks objects recursively is safe.
"""

from typing import Any

import msgspec

from hub.meta import Obj
from hub.meta.errors import ApiError, bad_request

MAX_DEPTH = 250
"""Levels of nesting accepted in a body; deeper ones get a 400."""

_BEFORE_RV = ("name", "generateName", "namespace", "selfLink", "uid")

_CONTAINERS = frozenset({dict, list})

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def encode(obj: object) -> bytes:
    """Return `obj` as compact UTF-8 JSON, keys in their own order.

    Raises a 400 ApiError for text with lone surrogates, which UTF-8 cannot carry.
    """
    try:
        return _encoder.encode(obj)
    except UnicodeEncodeError as e:
        raise bad_request(f"object cannot be written as JSON: {e}") from e


def decode_value(data: bytes) -> Any:
    """Return the one JSON value of `data`, of any type. Raises a 400 ApiError."""
    try:
        value = _decoder.decode(data)
    except msgspec.DecodeError as e:
        raise _malformed(str(e)) from e
    except RecursionError as e:
        raise _malformed("exceeded max depth") from e
    # counting brackets is nearly free and clears almost every body; strings that hold brackets only
    # cost the walk
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH:
        check_depth(value)
    return value


def decode(data: bytes) -> Obj:
    """Return the JSON object of `data`. Raises a 400 ApiError for anything else."""
    value = decode_value(data)
    if not isinstance(value, dict):
        raise _malformed(f"the body must be an object, not {kind_of(value)}")
    return value


def draft(obj: Obj) -> tuple[bytes, bytes]:
    """Return `obj` as JSON in two pieces, around the value of ``metadata.resourceVersion``.

    Whatever resourceVersion `obj` has is left out. The pieces are encoded apart and joined, so no
    text inside the object can be taken for the place.

    >>> draft({"kind": "T", "metadata": {"name": "a", "labels": {}}, "spec": 1})
    (b'{"kind":"T","metadata":{"name":"a","resourceVersion":"', b'","labels":{}},"spec":1}')
    """
    metadata: Obj = obj.get("metadata") or {}
    before = {k: metadata[k] for k in _BEFORE_RV if k in metadata}
    after = {k: v for k, v in metadata.items() if k not in before and k != "resourceVersion"}
    types: Obj = {k: obj[k] for k in ("kind", "apiVersion") if k in obj}
    rest = {k: v for k, v in obj.items() if k not in types and k != "metadata"}
    head = b'%b"metadata":%b"resourceVersion":"' % (_open(types), _open(before))
    return head, b'"%b%b' % (_close(after), _close(rest))


def check_depth(value: object) -> None:
    """Raise a 400 ApiError when `value` nests deeper than `MAX_DEPTH`; does not recurse."""
    level: list[Any] = [value] if type(value) in _CONTAINERS else []
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node)
            if type(child) in _CONTAINERS
        ]
        if not level:
            return
    raise _malformed("exceeded max depth")


def kind_of(value: object) -> str:
    """Return the JSON name of the type of `value`."""
    names = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}
    return names.get(type(value), "number")


def _open(obj: Obj) -> bytes:
    return encode(obj)[:-1] + b"," if obj else b"{"


def _close(obj: Obj) -> bytes:
    return b"," + encode(obj)[1:] if obj else b"}"


def _malformed(problem: str) -> ApiError:
    return bad_request(f"couldn't get version/kind; json parse error: {problem}")
