"""JSON values as Go prints them, since clients and people match those texts.

Owns Go's forms: ``%q`` of a text, `encoding/json` of any value (keys sorted, ``<>&`` escaped),
``%v`` and ``%T``; and equality that tells 1 from 1.0 and from true, as Go's types do.
"""

import json
import unicodedata
from decimal import Decimal
from typing import Any

_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    '"': '\\"',
    "\\": "\\\\",
}
_HTML = str.maketrans(
    {
        "<": "\\u003c",
        ">": "\\u003e",
        "&": "\\u0026",
        "\u2028": "\\u2028",
        "\u2029": "\\u2029",
    }
)
_TYPES = {
    str: "string",
    int: "int64",
    float: "float64",
    bool: "bool",
    type(None): "<nil>",
    dict: "map[string]interface {}",
    list: "[]interface {}",
}
_INT64 = range(-(2**63), 2**63)


def quote(text: str) -> str:
    r"""Return `text` as ``%q`` does: quoted, what does not print escaped.

    >>> print(quote('a"b\n\x01é\u200b'))
    "a\"b\n\x01é\u200b"
    """
    return '"' + "".join(_escaped(c) for c in text) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    code = ord(char)
    if char == " " or (code >= 0xA1 and unicodedata.category(char)[0] in "LMNPS"):
        return char
    if 0x21 <= code < 0x7F:
        return char
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float) -> str:
    """Return a number as ``%v`` does: whole numbers in digits, floats in the shortest form.

    >>> [number(n) for n in (1000000, 3.0, 0.5, 1e6, 1e-5)]
    ['1000000', '3', '0.5', '1e+06', '1e-05']
    """
    if isinstance(value, int) and value in _INT64:
        return str(value)
    return _float(float(value), smallest=1e-4, beyond=1e6)


def _float(value: float, *, smallest: float, beyond: float) -> str:
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if not isinstance(exponent, int):  # JSON has no NaN; Go says so in its own words
        return repr(value)
    text = "".join(map(str, digits))
    if value == 0 or smallest <= abs(value) < beyond:
        return f"{Decimal((sign, digits, exponent)):f}"
    power = len(text) - 1 + exponent
    mantissa = f"{text[0]}.{text[1:]}" if text[1:] else text
    return f"{'-' * sign}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def marshal(value: Any) -> str:
    r"""Return `value` as Go's ``json.Marshal`` does.

    >>> marshal({"b": 1.0, "a": ["<x>", None]})
    '{"a":["\\u003cx\\u003e",null],"b":1}'
    """
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).translate(_HTML)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int) and value in _INT64:
        return str(value)
    if isinstance(value, int | float):
        return _float(float(value), smallest=1e-6, beyond=1e21)
    if isinstance(value, dict):
        pairs = sorted(value.items())
        return "{" + ",".join(f"{marshal(str(k))}:{marshal(v)}" for k, v in pairs) + "}"
    return "[" + ",".join(marshal(v) for v in value) + "]"


def printed(value: Any) -> str:
    """Return `value` as ``%v`` does.

    >>> printed({"b": [1, "x", None], "a": True})
    'map[a:true b:[1 x <nil>]]'
    """
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, dict):
        return f"map[{' '.join(f'{k}:{printed(v)}' for k, v in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(printed, value))}]"
    return str(value)


def type_name(value: Any) -> str:
    """Return the type of `value` as ``%T`` does.

    >>> [type_name(v) for v in ("x", 3, 0.5, True, None, {}, [])]
    ['string', 'int64', 'float64', 'bool', '<nil>', 'map[string]interface {}', '[]interface {}']
    """
    return _TYPES[type(value)]


def show(value: Any) -> str:
    """Return `value` as a field error prints the bad value.

    >>> [show(v) for v in ("x", 3, True, None, {"a": 1})]
    ['"x"', '3', 'true', 'null', '{"a":1}']
    """
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(value)
    return marshal(value)


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal and of the same types all the way down.

    >>> same({"a": [1]}, {"a": [1]}), same(1, 1.0), same(1, True)
    (True, False, False)
    """
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return len(a) == len(b) and all(k in b and same(v, b[k]) for k, v in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def identity(value: Any) -> tuple[str, Any]:
    """Return what tells a value from others in a set: its kind and itself, or its JSON text."""
    if isinstance(value, dict | list):
        return "json", marshal(value)
    return type(value).__name__, value
