"""From protobuf messages to objects as Go's JSON encoder would print them.

Owns values: what each field type looks like in JSON, which zero values are printed, and the limits.
A message that stands for one of two things in JSON (a schema or a list of them, a schema or a bool)
becomes that. Unknown fields are skipped; null is never written. Times lose what Go's types cannot
hold: ``Time`` its nanoseconds, ``MicroTime`` those below a microsecond.

Invariant: any bytes give an object or a `WireError` with offset and field; at most `MAX_VALUES`
values are made, `MAX_DEPTH` messages deep.
"""

import base64
import datetime as dt
import struct

from hub.meta import Obj
from hub.meta.codec import json
from hub.meta.errors import ApiError
from hub.meta.protobuf import wire
from hub.meta.protobuf.schema import INTEGERS, ZEROS, FieldSpec, MessageSpec, Presence, Shape
from hub.meta.protobuf.tables import MESSAGES
from hub.meta.protobuf.wire import Field, WireError
from hub.meta.timestamp import format_micro_time, format_time

MAX_VALUES = 200_000
"""Fields and map entries accepted in one body."""

MAX_DEPTH = 100
"""How deep messages may nest (schemas hold schemas)."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_WHOLE = 1e21
"""From here on Go prints numbers with an exponent."""


class Decoder:
    """Decodes messages of one body, counting what it makes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = MAX_VALUES
        self._depth = 0

    def decode(self, spec: MessageSpec, start: int, end: int) -> Obj:
        """Return the message in ``data[start:end]``, keys as in the table. Raises WireError."""
        values: Obj = {}
        self._read(spec, start, end, values)
        return _printed(spec, values)

    def _read(self, spec: MessageSpec, start: int, end: int, values: Obj) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise WireError(f"more than {MAX_DEPTH} messages deep", start)
        for field in wire.fields(self._data, start, end):
            self._spend(field.start)
            known = spec.by_number.get(field.number)
            if known is None:
                continue
            try:
                self._add(known, field, values)
            except WireError as e:
                e.path = f"{known.name}.{e.path}" if e.path else known.name
                raise
        self._depth -= 1

    def _spend(self, offset: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise WireError(f"more than {MAX_VALUES} values", offset)

    def _add(self, spec: FieldSpec, field: Field, values: Obj) -> None:
        is_number = spec.type in INTEGERS and spec.shape is not Shape.MAP
        if is_number and spec.shape is Shape.LIST and field.wire_type == wire.BYTES:
            values.setdefault(spec.name, []).extend(self._packed(spec, field))
            return
        is_double = spec.type == "double"
        wanted = wire.VARINT if is_number else wire.FIXED64 if is_double else wire.BYTES
        if field.wire_type != wanted:
            raise WireError(f"wrong wire type {field.wire_type}", field.start)
        if spec.shape is Shape.MAP:
            key, value = self._entry(spec, field)
            values.setdefault(spec.name, {})[key] = value
        elif spec.shape is Shape.LIST:
            values.setdefault(spec.name, []).append(self._value(spec, field))
        elif spec.type in MESSAGES:
            # a message may come in pieces, which are read one onto the other
            message = values.setdefault(spec.name, {})
            self._read(MESSAGES[spec.type], field.start, field.end, message)
        else:
            values[spec.name] = self._value(spec, field)

    def _packed(self, spec: FieldSpec, field: Field) -> list[object]:
        numbers: list[object] = []
        at = field.start
        while at < field.end:
            self._spend(at)
            number, at = wire.read_varint(self._data, at, field.end)
            numbers.append(_number(spec.type, number))
        return numbers

    def _entry(self, spec: FieldSpec, field: Field) -> tuple[str, object]:
        key: str = ""
        value: object = [] if spec.type == "strings" else {} if spec.type in MESSAGES else ""
        for part in wire.fields(self._data, field.start, field.end):
            self._spend(part.start)
            if part.number in {1, 2} and part.wire_type != wire.BYTES:
                raise WireError(f"wrong wire type {part.wire_type}", part.start)
            if part.number == 1:
                key = self._text(part)
            elif part.number == 2:
                value = self._value(spec, part)
        return key, value

    def _value(self, spec: FieldSpec, field: Field) -> object:
        if spec.type == "string":
            return self._text(field)
        if spec.type in INTEGERS:
            return _number(spec.type, field.value)
        if spec.type == "double":
            return _double(self._data[field.start : field.end])
        if spec.type == "bytes":
            return base64.b64encode(self._data[field.start : field.end]).decode()
        if spec.type in {"time", "microtime"}:
            return self._time(spec.type, field)
        if spec.type == "strings":
            return self._strings(field)
        if spec.type == "rawjson":
            return self._raw_json(field)
        below: Obj = {}
        self._read(MESSAGES[spec.type], field.start, field.end, below)
        return below

    def _text(self, field: Field) -> str:
        try:
            return self._data[field.start : field.end].decode()
        except UnicodeDecodeError as e:
            raise WireError("text is not UTF-8", field.start + e.start) from e

    def _time(self, kind: str, field: Field) -> str | None:
        """Return the time as text; an empty message is Go's zero time, which prints as null."""
        if field.start == field.end:
            return None
        seconds = nanos = 0
        for part in wire.fields(self._data, field.start, field.end):
            if part.number == 1 and part.wire_type == wire.VARINT:
                seconds = wire.signed(part.value, 64)
            elif part.number == 2 and part.wire_type == wire.VARINT:
                nanos = wire.signed(part.value, 32)
        try:
            moment = _EPOCH + dt.timedelta(seconds=seconds, microseconds=nanos // 1000)
        except OverflowError as e:
            raise WireError(f"time of {seconds} s is out of range", field.start) from e
        return format_time(moment) if kind == "time" else format_micro_time(moment)

    def _strings(self, field: Field) -> list[str]:
        items: list[str] = []
        for part in wire.fields(self._data, field.start, field.end):
            self._spend(part.start)
            if part.number == 1 and part.wire_type == wire.BYTES:
                items.append(self._text(part))
        return items

    def _raw_json(self, field: Field) -> object:
        raw = b""
        for part in wire.fields(self._data, field.start, field.end):
            if part.number == 1 and part.wire_type == wire.BYTES:
                raw = self._data[part.start : part.end]
        if not raw:
            return None
        try:
            return json.decode_value(raw)
        except ApiError as e:
            raise WireError(e.message, field.start) from e


def _number(kind: str, value: int) -> int | bool:
    if kind == "bool":
        return value != 0
    return wire.signed(value, 32 if kind == "int32" else 64)


def _double(raw: bytes) -> int | float:
    """Return the number as Go prints it: without a fraction when it has none."""
    (value,) = struct.unpack("<d", raw)
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < _WHOLE else number


def _printed_below(spec: MessageSpec, values: Obj) -> object:
    """Return the JSON form of a message inside another."""
    printed = _printed(spec, values)
    if spec.name == "JSONSchemaPropsOrArray":
        return printed.get("schema", printed.get("jSONSchemas", []))
    if spec.name == "JSONSchemaPropsOrBool":
        return printed.get("schema", bool(printed.get("allows")))
    if spec.name == "JSONSchemaPropsOrStringArray":
        return printed.get("schema", printed.get("property", []))
    return printed


def _printed(spec: MessageSpec, values: Obj) -> Obj:
    """Return what Go prints: the table's order, zeros only where the table wants them, no null."""
    printed: Obj = {}
    for field in spec.fields:
        value = _printed_field(field, values.get(field.name))
        if value is None or (_is_zero(value) and field.presence is Presence.NONZERO):
            continue
        printed[field.name] = value
    return printed


def _printed_field(field: FieldSpec, value: object) -> object:
    below = MESSAGES.get(field.type)
    if value is None:
        wants_zero = field.presence is Presence.ALWAYS and field.shape is Shape.ONE
        return ZEROS.get(field.type) if wants_zero else None
    if below is None:
        return value
    if isinstance(value, list):
        return [_printed_below(below, v) for v in value]
    if isinstance(value, dict) and field.shape is Shape.MAP:
        return {key: _printed_below(below, v) for key, v in value.items()}
    return _printed_below(below, value) if isinstance(value, dict) else value


def _is_zero(value: object) -> bool:
    # an empty message is printed: omitempty does nothing for a struct
    return not value and not isinstance(value, dict)
