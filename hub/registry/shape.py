"""The types of the fields that the hub itself reads.

Strategies and controllers rely on them. A shape names known fields only; everything else passes
through. It is not a schema: no values are checked and nothing is pruned, except that a null field
counts as absent, as Go clients mean it.

>>> conform({"spec": {"paused": None, "names": ["a"]}}, {"spec": {"paused": bool, "names": [str]}})
({'spec': {'names': ['a']}}, [])
>>> conform({"spec": "x"}, {"spec": dict})[1][0].wanted
'object'
"""

from dataclasses import dataclass
from typing import TypeAlias

from hub.meta import Obj
from hub.meta.codec.json import kind_of


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with any keys, whose values are all of one type."""

    value: type


Shape: TypeAlias = "type | MapOf | list[Shape] | dict[str, Shape]"
CONDITIONS: Shape = [{"type": str, "status": str, "reason": str, "message": str}]

_WORDS = {str: "string", int: "integer", bool: "boolean", dict: "object", list: "array"}


@dataclass(frozen=True, slots=True)
class Misfit:
    """A field of a wrong type: where, what it is and what it should be, in JSON's words."""

    path: str
    got: str
    wanted: str


def conform(obj: Obj, shape: dict[str, Shape]) -> tuple[Obj, list[Misfit]]:
    """Return `obj` without the nulls in known fields, and what does not fit `shape`."""
    misfits: list[Misfit] = []
    return _object(obj, shape, "", misfits), misfits


def _object(obj: Obj, shape: dict[str, Shape], path: str, misfits: list[Misfit]) -> Obj:
    found: Obj = {}
    for key, value in obj.items():
        below = shape.get(key)
        if below is None or type(value) is below:  # nearly every field: unknown, or of its type
            found[key] = value
        elif value is not None:
            found[key] = _value(value, below, f"{path}.{key}" if path else key, misfits)
    return found


def _value(value: object, shape: Shape, path: str, misfits: list[Misfit]) -> object:
    wanted = _type_of(shape)
    if value is None and wanted is str:
        return ""  # an element: Go leaves it as it was
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        misfits.append(Misfit(path, kind_of(value), _WORDS[wanted]))
        return value
    if isinstance(shape, dict) and isinstance(value, dict):
        return _object(value, shape, path, misfits)
    if isinstance(shape, MapOf) and isinstance(value, dict):
        return {k: _value(v, shape.value, f"{path}.{k}", misfits) for k, v in value.items()}
    if isinstance(shape, list) and isinstance(value, list):
        return [_value(v, shape[0], f"{path}[{i}]", misfits) for i, v in enumerate(value)]
    return value


def _type_of(shape: Shape) -> type:
    if isinstance(shape, dict | MapOf):
        return dict
    return list if isinstance(shape, list) else shape
