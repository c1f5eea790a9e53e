"""The fields that a built-in kind has: what else an object holds is dropped, and told of.

Owns what Go's decoder does when it reads JSON into a struct; the fields are those of
`hub.meta.protobuf.tables`. Custom kinds have schemas for that, see `hub.meta.schema.prune`.
Arguments are never changed: what stays as it is, is shared. Values of a wrong type stay, for the
type checks to find.

>>> message = MESSAGES["ConfigMap"]
>>> prune({"kind": "ConfigMap", "data": {"a": "b"}, "datum": {}, "metadata": {"x": 1}}, message)
({'kind': 'ConfigMap', 'data': {'a': 'b'}, 'metadata': {}}, ['datum', 'metadata.x'])
"""

from typing import Any

from hub.meta import Obj
from hub.meta.protobuf.schema import MessageSpec, Shape
from hub.meta.protobuf.tables import MESSAGES

TYPE_META = frozenset({"apiVersion", "kind"})


def prune(obj: Obj, message: MessageSpec) -> tuple[Obj, list[str]]:
    """Return `obj` without the fields that `message` does not have, and their paths in order."""
    unknown: list[str] = []
    return _struct(obj, message, "", unknown), unknown


def message_below(message: MessageSpec, name: str) -> MessageSpec | None:
    """Return the message of a field that is one, or a list of one; None for any other field."""
    field = message.by_name.get(name)
    return MESSAGES.get(field.type) if field is not None else None


def _struct(obj: Obj, message: MessageSpec, path: str, unknown: list[str]) -> Obj:
    kept: Obj = {}
    is_same = True
    for name, value in obj.items():
        at = f"{path}.{name}" if path else name
        field = message.by_name.get(name)
        if field is None:
            if path or name not in TYPE_META:
                unknown.append(at)
                is_same = False
                continue
            new = value
        else:
            below = MESSAGES.get(field.type)
            new = value if below is None else _field(value, below, at, field.shape, unknown)
        is_same = is_same and new is value
        kept[name] = new
    return obj if is_same else kept


def _field(value: Any, below: MessageSpec, path: str, shape: Shape, unknown: list[str]) -> Any:
    if shape is Shape.ONE:
        return _struct(value, below, path, unknown) if isinstance(value, dict) else value
    if not isinstance(value, list):
        return value
    new = [
        _struct(item, below, f"{path}[{at}]", unknown) if isinstance(item, dict) else item
        for at, item in enumerate(value)
    ]
    return value if all(a is b for a, b in zip(new, value, strict=True)) else new
