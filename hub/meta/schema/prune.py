"""Pruning: fields that a schema does not name are dropped, and told of when asked.

Mirrors apiextensions-apiserver's ``schema/pruning`` and, for metadata, ``schema/objectmeta``: below
``x-kubernetes-preserve-unknown-fields`` unknown fields stay, but what is named there is pruned
again; apiVersion, kind and metadata of the root and of embedded resources are not the schema's
business. Arguments are never changed: what stays as it is, is shared.

>>> from hub.meta.schema.structural import parse
>>> schema = parse({"type": "object", "properties": {"spec": {"type": "object"}}})
>>> obj = {"kind": "T", "metadata": {"name": "a"}, "spec": {"x": 1}}
>>> prune(obj, schema)
({'kind': 'T', 'metadata': {'name': 'a'}, 'spec': {}}, ['spec.x'])
"""

from collections.abc import Iterator
from typing import Any

from hub.meta import Obj
from hub.meta.schema import metadata
from hub.meta.schema.structural import Schema

TYPE_META = ("apiVersion", "kind")
_CONTAINERS = (dict, list)  # a tuple: a union is built anew each time
IMPLICIT = frozenset({*TYPE_META, "metadata"})


def prune(obj: Obj, schema: Schema, *, is_root: bool = True) -> tuple[Obj, list[str]]:
    """Return `obj` without unknown fields, and their paths as fieldValidation reports them.

    `is_root`: `obj` is a whole resource. The paths come in kube-apiserver's order: those of the
    metadata, the others, those of embedded metadata.
    """
    pruned: Obj = _value(obj, schema, is_embedded=is_root)
    if pruned is obj:
        return obj, []
    own = metadata.unknown(obj.get("metadata"), "metadata") if is_root else ()
    below = _unknown(obj, schema, "", is_embedded=is_root)
    return pruned, [*own, *sorted(below), *sorted(_unknown_metadata(obj, schema, ""))]


def _value(value: Any, schema: Schema | None, *, is_embedded: bool) -> Any:
    if isinstance(value, dict):
        return _object(value, schema, is_embedded=is_embedded)
    if isinstance(value, list):
        return _list(value, schema)
    return value


def _list(value: list[Any], schema: Schema | None) -> list[Any]:
    items = None if schema is None else schema.items
    if schema is not None and schema.traits.preserves_unknown:
        if items is None:
            return value
        items = items.lenient()
    is_embedded = items is not None and items.traits.is_embedded
    new = [_value(v, items, is_embedded=is_embedded) for v in value]
    return new if any(a is not b for a, b in zip(new, value, strict=True)) else value


def _object(value: Obj, schema: Schema | None, *, is_embedded: bool) -> Obj:
    if schema is None:
        return {} if value else value
    properties, additional = schema.properties, schema.additional
    preserves = schema.traits.preserves_unknown
    changed: Obj = {}
    dropped: set[str] = set()
    for key, old in value.items():
        if is_embedded and key in IMPLICIT:
            new = metadata.clean(old) if key == "metadata" else old
        elif (known := properties.get(key)) is not None:
            if not isinstance(old, _CONTAINERS):
                continue
            new = _value(old, known, is_embedded=known.traits.is_embedded)
        elif additional is not None:
            below = additional if isinstance(additional, Schema) else None
            embedded = below is not None and below.traits.is_embedded
            new = _value(old, below, is_embedded=embedded)
        elif preserves:
            continue
        else:
            dropped.add(key)
            continue
        if new is not old:
            changed[key] = new
    if not changed and not dropped:
        return value
    return {k: changed.get(k, v) for k, v in value.items() if k not in dropped}


def _unknown(value: Any, schema: Schema | None, path: str, *, is_embedded: bool) -> Iterator[str]:
    preserves = schema is not None and schema.traits.preserves_unknown
    if isinstance(value, list):
        items = schema.items if schema is not None else None
        if preserves:
            if items is None:
                return
            items = items.lenient()
        for index, item in enumerate(value):
            embedded = items is not None and items.traits.is_embedded
            yield from _unknown(item, items, f"{path}[{index}]", is_embedded=embedded)
    elif isinstance(value, dict):
        for key, item in value.items():
            at = f"{path}.{key}" if path else key
            if is_embedded and key in IMPLICIT:
                continue
            if schema is None or not (key in schema.properties or schema.additional is not None):
                if not preserves:
                    yield at
                continue
            below = schema.child(key)
            embedded = below is not None and below.traits.is_embedded
            yield from _unknown(item, below, at, is_embedded=embedded)


def _unknown_metadata(value: Any, schema: Schema, path: str) -> Iterator[str]:
    if isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            yield from _unknown_metadata(item, schema.items, f"{path}[{index}]")
    elif isinstance(value, dict):
        if schema.traits.is_embedded and path:
            yield from metadata.unknown(value.get("metadata"), f"{path}.metadata")
        for key, item in value.items():
            below = schema.child(key)
            if below is not None:
                shown = f".{key}" if key in schema.properties else f"[{key}]"
                yield from _unknown_metadata(item, below, (path + shown).removeprefix("."))
