"""Fields that a JSON text has twice: whether there are any, at almost no cost, and which.

The decoder keeps the last of them, as Go does, so they can be found in the text only. Owns the
texts of sigs.k8s.io/json's strict errors, in the order of the text.

>>> text = b'{"spec":{"b":1,"b":2},"a":[{"c":1,"c":1}]}'
>>> has_duplicates(text, {"spec": {"b": 2}, "a": [{"c": 1}]})
True
>>> faults(text)
['duplicate field "spec.b"', 'duplicate field "a[0].c"']
"""

import json
from typing import Any

from hub.meta.codec.json import decode_value, encode
from hub.meta.knownfields import TYPE_META, message_below
from hub.meta.protobuf.schema import MessageSpec, Shape

MAX_FAULTS = 100
"""How many are told of, as in sigs.k8s.io/json."""


_OPERATION = frozenset({"op", "from", "path", "value"})


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object, all of them."""


def has_duplicates(data: bytes, value: object) -> bool:
    r"""Whether the decoder has dropped a member of an object: `value` is what it made of `data`.

    A member takes two quotation marks at least, and nothing else is lost in writing the value
    again, but for a mark that was written as \u0022; then the answer may be True without cause.
    """
    return data.count(b'"') != encode(value).count(b'"') or b"\\u0022" in data


def faults(data: bytes, message: MessageSpec | None = None) -> list[str]:
    """Return what a strict decoder says of a JSON text that can be read.

    With `message` it is read as that built-in kind: fields that it does not have are told of, too,
    and not looked into. Slow: for texts in which `has_duplicates`.
    """
    found: dict[str, None] = {}
    _walk(json.loads(data, object_pairs_hook=_Pairs), message, "", found, is_typed=bool(message))
    return list(found)[:MAX_FAULTS]


def unknown_field(path: str) -> str:
    """Return how a strict decoder tells of a field that a kind does not have."""
    return f'unknown field "{path}"'


def patch_faults(data: bytes, *, is_json_patch: bool) -> list[str]:
    """Return what a strict decoder says of a patch that can be read."""
    value = decode_value(data)
    found = faults(data) if has_duplicates(data, value) else []
    if not is_json_patch:
        return found
    unknown = [
        unknown_field(f"[{at}].{name}")
        for at, operation in enumerate(value if isinstance(value, list) else ())
        if isinstance(operation, dict)
        for name in operation
        if name not in _OPERATION
    ]
    return [f"json patch {text}" for text in unknown + found][:MAX_FAULTS]


def _walk(
    value: Any, message: MessageSpec | None, path: str, found: dict[str, None], *, is_typed: bool
) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, below in value:
            at = f"{path}.{name}" if path else name
            is_type_meta = not path and name in TYPE_META
            if message is not None and name not in message.by_name and not is_type_meta:
                found.setdefault(unknown_field(at))
                continue
            if name in seen:
                found.setdefault(f'duplicate field "{at}"')
            seen.add(name)
            inner = None if message is None else message_below(message, name)
            if not is_typed or inner is not None or _is_map(message, name):
                _walk(below, inner, at, found, is_typed=is_typed)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _walk(item, message, f"{path}[{position}]", found, is_typed=is_typed)


def _is_map(message: MessageSpec | None, name: str) -> bool:
    """Whether a field of a struct is a map; what lies below other fields reads itself in Go."""
    field = None if message is None else message.by_name.get(name)
    return field is not None and field.shape is Shape.MAP
