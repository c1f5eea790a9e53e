"""The shapes of built-in kinds, from the tables that decode their protobuf.

One source for both wires: what a client may send as JSON is what it could have sent as protobuf, so
that typed clients, which read every field, can decode whatever is stored.

>>> shape_of("v1", "ConfigMap")["immutable"]
<class 'bool'>
"""

from functools import cache

from hub.meta.protobuf.schema import FieldSpec, MessageSpec, Presence
from hub.meta.protobuf.schema import Shape as Multiplicity
from hub.meta.protobuf.tables import KINDS, MESSAGES
from hub.registry.shape import (
    BYTES,
    INT32,
    INT64,
    MICRO_TIME,
    PLAIN_MICRO_TIME,
    PLAIN_TIME,
    TIME,
    MapOf,
    Shape,
)

_SCALARS: dict[str, Shape] = {
    "string": str,
    "bytes": BYTES,
    "bool": bool,
    "int32": INT32,
    "int64": INT64,
    "time": TIME,
    "microtime": MICRO_TIME,
    "strings": [str],
}
"""What JSON has in place of each scalar; any value stands for those that are not here."""

_PLAIN: dict[str, Shape] = {"time": PLAIN_TIME, "microtime": PLAIN_MICRO_TIME}
_ELSEWHERE = frozenset({"ObjectMeta", "ListMeta"})


@cache
def shape_of(api_version: str, kind: str) -> dict[str, Shape]:
    """Return the shape of a built-in kind, but for its metadata."""
    return _message(KINDS[api_version, kind])


def _message(message: MessageSpec) -> dict[str, Shape]:
    found = {spec.name: _field(spec) for spec in message.fields if spec.type not in _ELSEWHERE}
    return {name: shape for name, shape in found.items() if shape is not None}


def _field(spec: FieldSpec) -> "Shape | None":
    inner = _SCALARS.get(spec.type)
    if spec.presence is not Presence.POINTER:
        inner = _PLAIN.get(spec.type, inner)
    if inner is None and spec.type in MESSAGES:
        inner = _message(MESSAGES[spec.type])
    if inner is None:
        return None
    if spec.shape is Multiplicity.LIST:
        return [inner]
    return MapOf(inner) if spec.shape is Multiplicity.MAP else inner
