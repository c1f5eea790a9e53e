"""The checks of types, texts, numbers and enumerations, compiled.

Owns the yes and no that k8s.io/kube-openapi/pkg/validation/validate (type.go, values.go) gives,
with its oddities: a list passes for a text with a format, a number that is whole passes for an
integer up to 2^53, a boundary that an integer type cannot hold refuses every value.
"""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from hub.meta.schema import formats
from hub.meta.schema.gotext import same
from hub.meta.schema.regex import compile_go
from hub.meta.schema.structural import Number, Schema

Check: TypeAlias = Callable[[Any], bool]

_JSON_TYPES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}
_MAX_JSON_FLOAT = float(2**53 - 1)
_EPSILON = 1e-9
_INT64 = (-(2**63), 2**63 - 1)
_INT32 = (-(2**31), 2**31 - 1)
_MAX_FLOAT32 = 3.4028235677973366e38  # half way to what is not one any more


def format_of(schema: Schema) -> str:
    """Return the format that counts: one that is known for the type, or none."""
    name = schema.rules.format
    types = schema.types
    if types == ("integer",):
        return name if name in ("int32", "int64") else ""
    if types == ("number",):
        return name if name in ("float", "double") else ""
    is_text = types in ((), ("string",)) or len(types) > 1
    return name if is_text and formats.find(name) is not None else ""


def native(value: Any) -> Any:
    """Return a JSON value as Go decodes it: a whole number beyond 64 bits is a float."""
    if type(value) is int and not _INT64[0] <= value <= _INT64[1]:
        return float(value) if abs(value) < 2**1024 else math.inf
    return value


def is_whole(value: float) -> bool:
    """Whether a float counts as an integer (go-openapi/swag IsFloat64AJSONInteger)."""
    if not math.isfinite(value) or abs(value) > _MAX_JSON_FLOAT:
        return False
    nearest = math.copysign(math.floor(abs(value) + 0.5), value)
    return value == nearest or abs(value - nearest) < _EPSILON * abs(nearest)


REFUSED: Check = lambda _: False  # noqa: E731 -- a mark, compared by identity


def type_check(schema: Schema, kind: type) -> Check | None:
    """Return what a value of the Python type `kind` must satisfy: nothing, a check, or REFUSED."""
    types = schema.types
    counted = format_of(schema)
    if not types and not counted:
        return None
    found = _JSON_TYPES[kind]
    is_numeric = "number" in types or "integer" in types
    if counted and kind in (str, list) and not is_numeric:
        return None
    if found in types or (found == "integer" and "number" in types):
        # a whole number beyond 64 bits is a float to Go
        return _fits_go_integer if kind is int and "number" not in types else None
    if kind is float and "integer" in types:
        return is_whole
    return REFUSED


def _fits_go_integer(value: int) -> bool:
    return type(native(value)) is int


def text_check(schema: Schema) -> Check | None:
    """Return the check of length, pattern and format, None without any."""
    rules = schema.rules
    counted = format_of(schema)
    has_format = formats.find(counted) if counted else None
    search = compile_go(rules.pattern).search if rules.pattern else None
    least, most = rules.min_length, rules.max_length
    if least is None and most is None:
        return _pattern_and_format(search, has_format)
    low, high = least or 0, math.inf if most is None else most
    rest = _pattern_and_format(search, has_format)
    if rest is None:
        return lambda value: low <= len(value) <= high
    return lambda value: low <= len(value) <= high and rest(value)


def _pattern_and_format(search: Any, has_format: Check | None) -> Check | None:
    if search is None:
        return has_format
    if has_format is None:
        return lambda value: search(value) is not None
    return lambda value: search(value) is not None and has_format(value)


def number_check(schema: Schema) -> Check | None:
    """Return the check of range, boundaries and factor, None without any."""
    rules = schema.rules
    if boundary_faults(schema):
        return REFUSED
    checks: list[Check] = []
    if range_name(schema):
        checks.append(_range_check(schema))
    maximum, minimum, factor = rules.maximum, rules.minimum, rules.multiple_of
    if maximum is not None:
        checks.append(lambda v: not is_above(v, maximum, exclusive=rules.exclusive_maximum))
    if minimum is not None:
        checks.append(lambda v: not is_below(v, minimum, exclusive=rules.exclusive_minimum))
    if factor is not None:
        checks.append(lambda v: is_multiple(v, factor))
    if len(checks) <= 1:
        return checks[0] if checks else None
    return lambda value: all(check(value) for check in checks)


def _range_check(schema: Schema) -> Check:
    if range_name(schema) == "number":
        return lambda value: in_range(value, schema)
    low, high = _INT32 if format_of(schema) == "int32" else _INT64
    return lambda v: low <= v <= high if type(v) is int else in_range(v, schema)


def range_name(schema: Schema) -> str:
    """Return the type whose range numbers must fit, "" when any will do."""
    if schema.types == ("integer",):
        return "integer"
    return "number" if schema.types == ("number",) and format_of(schema) == "float" else ""


def in_range(value: Number, schema: Schema) -> bool:
    """Whether a number fits the type and format of `schema`."""
    value = native(value)
    if range_name(schema) == "number":
        return abs(value) < _MAX_FLOAT32
    if range_name(schema) == "":
        return True
    if isinstance(value, float) and not value.is_integer():
        return False  # Go reads its digits as an integer
    low, high = _INT32 if format_of(schema) == "int32" else _INT64
    return low <= value <= high


def boundary_faults(schema: Schema) -> list[str]:
    """Return which of a schema's own numbers do not fit its type; every value is refused then."""
    rules = schema.rules
    named = (
        ("MultipleOf", rules.multiple_of),
        ("Minimum boundary", rules.minimum),
        ("Maximum boundary", rules.maximum),
    )
    return [
        name
        for name, boundary in named
        if boundary is not None and not in_range(float(boundary), schema)
    ]


def is_above(value: Number, maximum: Number, *, exclusive: bool) -> bool:
    """Whether `value` breaks a maximum; one for integers is cut to an integer, as in Go."""
    value = native(value)
    limit = int(maximum) if type(value) is int else maximum
    return value >= limit if exclusive else value > limit


def is_below(value: Number, minimum: Number, *, exclusive: bool) -> bool:
    """Whether `value` breaks a minimum; one for integers is cut to an integer, as in Go."""
    value = native(value)
    limit = int(minimum) if type(value) is int else minimum
    return value <= limit if exclusive else value < limit


def is_multiple(value: Number, factor: Number) -> bool:
    """Whether `value` is a multiple; never of a factor that is not positive."""
    value = native(value)
    if type(value) is int:
        whole = int(factor)
        return whole > 0 and value % whole == 0
    if factor <= 0:
        return False
    return is_whole(1 / factor * value if factor < 1 else value / factor)


def enum_check(schema: Schema) -> Check | None:
    """Return the check of an enumeration, None without one."""
    allowed = schema.rules.enum
    if not allowed:
        return None
    if all(isinstance(a, str) for a in allowed):
        texts = frozenset(allowed)
        return lambda value: type(value) is str and value in texts
    return lambda value: is_one_of(value, allowed)


def is_one_of(value: Any, allowed: tuple[Any, ...]) -> bool:
    """Whether `value` is in an enumeration; numbers are compared in the type that stands there."""
    value = native(value)
    for one in allowed:
        if one is None:
            continue  # Go's comparison never finds null
        if same(value, native(one)):
            return True
        if type(value) is float and type(one) is int and math.isfinite(value) and int(value) == one:
            return True
        if type(value) is int and type(one) is float and float(value) == one:
            return True
    return False
