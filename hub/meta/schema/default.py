"""Defaults: fields that are absent get them; nulls that may not be go or get them.

Mirrors apiextensions-apiserver's ``schema/defaulting``. The same is done when an object is written
and when it is read, so that objects stored before a default existed show it. Arguments are never
changed: an object that lacks nothing comes back itself.

>>> from hub.meta.schema.structural import parse
>>> schema = parse({"properties": {"n": {"type": "integer", "default": 3}, "s": {}}})
>>> default({"n": None, "s": None}, schema)
{'n': 3}
"""

from typing import Any

from hub.meta import Obj
from hub.meta.schema.structural import Schema

_CONTAINERS = (dict, list)  # a tuple: a union is built anew each time


def default(obj: Obj, schema: Schema) -> Obj:
    """Return `obj` with the defaults of `schema`, and without nulls where none may be.

    A null stays where the schema says ``nullable``, where there is no schema, and in lists.
    """
    found: Obj = _object(obj, schema, drops_nulls=True)
    return found


def _value(value: Any, schema: Schema | None, *, drops_nulls: bool) -> Any:
    if schema is None:
        return value
    if isinstance(value, dict):
        return _object(value, schema, drops_nulls=drops_nulls)
    if isinstance(value, list) and schema.items is not None:
        items = schema.items
        new = [_item(v, items, drops_nulls=drops_nulls) for v in value]
        return new if any(a is not b for a, b in zip(new, value, strict=True)) else value
    return value


def _item(value: Any, schema: Schema, *, drops_nulls: bool) -> Any:
    if value is None and not schema.nullable:
        return _fresh(schema)
    return _value(value, schema, drops_nulls=drops_nulls)


def _object(value: Obj, schema: Schema, *, drops_nulls: bool) -> Obj:
    changed: Obj = {}
    dropped: set[str] = set()
    for key, old in value.items():
        below = schema.child(key)
        if below is None:
            continue
        if old is not None:
            if not isinstance(old, _CONTAINERS):
                continue
            new = _value(old, below, drops_nulls=drops_nulls)
        elif below.nullable:
            continue
        elif below.default is None and drops_nulls:
            dropped.add(key)
            continue
        else:
            new = _fresh(below)
        if new is not old:
            changed[key] = new
    for key in schema.defaulted:
        if key not in value:
            changed[key] = _fresh(schema.properties[key])
    if not changed and not dropped:
        return value
    kept = {k: changed.pop(k, v) for k, v in value.items() if k not in dropped}
    return kept | changed


def _fresh(schema: Schema) -> Any:
    """Return a copy of a default, with the defaults of what is in it."""
    return _value(_copy(schema.default), schema, drops_nulls=False)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _copy(v) for k, v in value.items()}
    return [_copy(v) for v in value] if isinstance(value, list) else value
