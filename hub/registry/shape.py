"""The types of fields: what strategies and controllers may rely on, and typed clients can read.

A shape names known fields only; everything else passes through. It is not a schema: nothing is
pruned, except that a null field counts as absent, as Go clients mean it, and of values only that is
checked which Go's decoders choke on (`Number`, `Text`): one object with a time that is none would
stop every informer that reads it.

>>> conform({"spec": {"paused": None, "names": ["a"]}}, {"spec": {"paused": bool, "names": [str]}})
({'spec': {'names': ['a']}}, [])
>>> conform({"spec": "x"}, {"spec": dict})[1][0].wanted
'object'
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from hub.meta import Obj
from hub.meta.codec.base64 import decode_base64
from hub.meta.codec.json import kind_of
from hub.meta.timestamp import parse_time

_SHOWN = 40


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with any keys, whose values are all of one type."""

    value: "Shape"


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number of so many bits, with a sign."""

    bits: int

    def is_fit(self, value: object) -> bool:
        """Whether it is one that Go can hold."""
        half = 1 << (self.bits - 1)
        return isinstance(value, int) and not isinstance(value, bool) and -half <= value < half


@dataclass(frozen=True, slots=True)
class Text:
    """A text of a certain form, which Go calls `word`.

    `is_secret`: it is never shown. `keeps_null`: Go prints null where there is none.
    """

    word: str
    has_form: Callable[[str], bool]
    is_secret: bool = False
    keeps_null: bool = False

    def is_fit(self, value: object) -> bool:
        """Whether it is a text of that form."""
        return isinstance(value, str) and self.has_form(value)


def _is_time(text: str) -> bool:
    try:
        parse_time(text)
    except ValueError:
        return False
    return True


def _is_micro_time(text: str) -> bool:
    return _SIX_DIGITS.search(text) is not None and _is_time(text)


def _is_base64(text: str) -> bool:
    try:
        decode_base64(text)
    except ValueError:
        return False
    return True


_SIX_DIGITS = re.compile(r"[^.]\.[0-9]{6}(Z|[+-]..:..)\Z")
INT32, INT64 = Number(32), Number(64)
TIME, MICRO_TIME = Text("Time", _is_time), Text("MicroTime", _is_micro_time)
PLAIN_TIME, PLAIN_MICRO_TIME = replace(TIME, keeps_null=True), replace(MICRO_TIME, keeps_null=True)
BYTES = Text("[]uint8", _is_base64, is_secret=True)

Shape: TypeAlias = "type | Number | Text | MapOf | list[Shape] | dict[str, Shape]"

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
        elif value is None:
            if isinstance(below, Text) and below.keeps_null:
                found[key] = None
        else:
            found[key] = _value(value, below, f"{path}.{key}" if path else key, misfits)
    return found


def _value(value: object, shape: Shape, path: str, misfits: list[Misfit]) -> object:
    wanted = _type_of(shape)
    if value is None:
        return wanted()  # an element: Go leaves it as it was, the zero value
    if isinstance(shape, Number | Text):
        if not shape.is_fit(value):
            misfits.append(Misfit(path, _shown(value, shape), _word_of(shape)))
        return value
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


def _shown(value: object, shape: Number | Text) -> str:
    """Return what to say of a value that does not fit, the value itself when it may be told."""
    kind = kind_of(value)
    is_near = type(value) is _type_of(shape)
    if not is_near or (isinstance(shape, Text) and shape.is_secret):
        return kind
    return f"{kind} {str(value)[:_SHOWN]}"


def _word_of(shape: Number | Text) -> str:
    return f"int{shape.bits}" if isinstance(shape, Number) else shape.word


def _type_of(shape: Shape) -> type:
    if isinstance(shape, Number):
        return int
    if isinstance(shape, Text):
        return str
    if isinstance(shape, dict | MapOf):
        return dict
    return list if isinstance(shape, list) else shape
