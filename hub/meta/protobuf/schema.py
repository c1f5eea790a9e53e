"""Message tables: from the compact text of `hub.meta.protobuf.tables` to field descriptors.

Owns the notation. A table is a name, a colon and its fields, in the order of the JSON form::

    ObjectReference: kind=1 count=2:int32 when=3:time? labels=4:{string} items=5:[string]
    name=6:string!

    name=number[:type][presence]    type: a scalar (default string), a message, [repeated] or {map
    from string}

Scalars: string, bytes (base64 in JSON), bool, int32, int64, double, time, microtime, rawjson
(FieldsV1, apiextensions' JSON), strings (ExtraValue). Presence says what Go's types say: plain = a
value with ``omitempty`` (zero is left out of the JSON, but written on the wire), ``!`` = always
printed, ``?`` = a pointer (absent or present, zero included).
"""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass

SCALARS = frozenset(
    {
        "string",
        "bytes",
        "bool",
        "int32",
        "int64",
        "double",
        "time",
        "microtime",
        "rawjson",
        "strings",
    }
)
INTEGERS = frozenset({"bool", "int32", "int64"})
ZEROS: Mapping[str, str | int | bool] = {"string": "", "bool": False, "int32": 0, "int64": 0}
"""What Go prints for an absent value with ``!``; the other types print null, which is left out."""


class Shape(enum.Enum):
    """How many values a field holds."""

    ONE = "one"
    LIST = "list"
    MAP = "map"


class Presence(enum.Enum):
    """When a field is printed, see the module."""

    NONZERO = ""
    ALWAYS = "!"
    POINTER = "?"


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a message: its JSON name, number, element type (scalar or message) and shape."""

    name: str
    number: int
    type: str
    shape: Shape
    presence: Presence


@dataclass(frozen=True, slots=True)
class MessageSpec:
    """A message: its fields in JSON order, and by number."""

    name: str
    fields: tuple[FieldSpec, ...]
    by_number: Mapping[int, FieldSpec]
    by_name: Mapping[str, FieldSpec]


_FIELD = re.compile(r"([\w$-]+)=(\d+)(?::([\[{]?)([\w.]+)[\]}]?)?([!?]?)")
_SHAPES = {"": Shape.ONE, "[": Shape.LIST, "{": Shape.MAP}


def parse_tables(text: str) -> dict[str, MessageSpec]:
    """Return the messages of a table text by name. Raises ValueError naming what is wrong."""
    # a line that is not indented begins a message, indented ones go on
    joined = re.sub(r"\n[ ]+", " ", text)
    heads = (line.partition(":") for line in joined.splitlines() if line)
    messages = {name: _message(name, body) for name, _, body in heads}
    for message in messages.values():
        for field in message.fields:
            if field.type not in SCALARS and field.type not in messages:
                raise ValueError(f"{message.name}.{field.name} has the unknown type {field.type}")
    return messages


def _message(name: str, body: str) -> MessageSpec:
    specs = tuple(_field(name, word) for word in body.split())
    by_number = {f.number: f for f in specs}
    by_name = {f.name: f for f in specs}
    if not len(specs) == len(by_number) == len(by_name):
        raise ValueError(f"{name} names a field or a number twice")
    return MessageSpec(name, specs, by_number, by_name)


def _field(message: str, word: str) -> FieldSpec:
    found = _FIELD.fullmatch(word)
    if found is None:
        raise ValueError(f"{message} has the field {word!r}, write it name=number:type")
    name, number, bracket, kind, presence = found.groups()
    shape = _SHAPES[bracket or ""]
    return FieldSpec(name, int(number), kind or "string", shape, Presence(presence))
