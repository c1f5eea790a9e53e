"""Lists that are sets or maps: what may not stand in them twice.

Mirrors apiextensions-apiserver's ``schema/listtype``.

>>> from hub.meta.schema.structural import parse
>>> traits = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}
>>> schema = parse({"properties": {"l": {"items": {"type": "object"}, **traits}}})
>>> list_causes({"l": [{"n": 1}, {"n": 1}]}, schema)[0].message
'Duplicate value: {"n":1}'
"""

from collections.abc import Callable, Iterator
from typing import Any

from hub.meta import Obj
from hub.meta.errors import Cause
from hub.meta.schema.gotext import identity, show
from hub.meta.schema.structural import Schema


def list_causes(obj: Obj, schema: Schema) -> list[Cause]:
    """Return the duplicates in every set and map of an object."""
    return list(_causes(obj, schema, ""))


def check(schema: Schema) -> Callable[[list[Any]], bool] | None:
    """Return the predicate of one list, None when its type asks for nothing."""
    if schema.traits.list_type == "set":
        return has_no_duplicates
    if schema.traits.list_type == "map":
        keys = schema.traits.list_keys
        return lambda value: _is_map(value, keys) or not any(_map_causes(value, keys, ""))
    return None


def _is_map(value: list[Any], keys: tuple[str, ...]) -> bool:
    """Whether a list is a map for sure: all items are objects with keys of text, none twice."""
    seen = set()
    for item in value:
        if type(item) is not dict:
            return False
        found = tuple(map(item.get, keys))
        for part in found:
            if type(part) is not str:
                return False
        seen.add(found)
    return len(seen) == len(value)


def has_no_duplicates(value: list[Any]) -> bool:
    """Whether no two items are equal."""
    return len(value) < 2 or len({identity(item) for item in value}) == len(value)


def _causes(value: Any, schema: Schema, path: str) -> Iterator[Cause]:
    if isinstance(value, dict):
        for key, item in value.items():
            below = schema.child(key)
            if below is not None:
                shown = f".{key}" if key in schema.properties else f"[{key}]"
                yield from _causes(item, below, (path + shown).removeprefix("."))
    elif isinstance(value, list):
        if schema.traits.list_type == "set":
            yield from _duplicates(value, value, path)
        elif schema.traits.list_type == "map":
            yield from _map_causes(value, schema.traits.list_keys, path)
        if schema.items is not None:
            for index, item in enumerate(value):
                yield from _causes(item, schema.items, f"{path}[{index}]")


def _map_causes(value: list[Any], keys: tuple[str, ...], path: str) -> Iterator[Cause]:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            text = f"Invalid value: {show(item)}: must be an object for an array of list-type map"
            yield Cause("FieldValueInvalid", text, f"{path}[{index}]")
            return
    if len(value) < 2:
        return
    if len(keys) == 1:
        (key,) = keys
        found = [item.get(key, _ABSENT) if item else _ABSENT for item in value]
        shown = [{} if k is _ABSENT else {key: k} for k in found]
        yield from _duplicates(found, shown, path)
    else:
        several = [{k: item[k] for k in keys if k in item} if item else {} for item in value]
        yield from _duplicates(several, several, path)


_ABSENT = object()


def _duplicates(items: list[Any], shown: list[Any], path: str) -> Iterator[Cause]:
    """Yield a cause for the second of each group of equal items, not for later ones."""
    seen: dict[Any, int] = {}
    for index, item in enumerate(items):
        key = identity(item)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            text = f"Duplicate value: {show(shown[index])}"
            yield Cause("FieldValueDuplicate", text, f"{path}[{index}]")
