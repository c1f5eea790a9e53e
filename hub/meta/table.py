"""Tables and partial objects: what ``kubectl get`` and metadata informers ask for.

Owns the wire form of ``meta.k8s.io/v1`` Table and PartialObjectMetadata, and how a value becomes a
cell. Which columns a kind has is the registry's business. Mirrors apiextensions'
``registry/customresource/tableconvertor`` and apimachinery's ``pkg/api/meta/table``. Now is passed
in.
"""

import datetime as dt
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hub.meta import Obj
from hub.meta.codec import json
from hub.meta.jsonpath import JsonPath
from hub.meta.timestamp import human_duration, parse_time

_VERSION = "meta.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `type` is an OpenAPI type or ``date``, `priority` above 0 needs ``-o wide``."""

    name: str
    type: str
    format: str
    description: str
    priority: int = 0

    def as_obj(self) -> Obj:
        """Return the wire form."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def render_table(
    columns: Sequence[Column] | None,
    rows: Iterable[tuple[Sequence[object], Obj]],
    *,
    include: str = "Metadata",
    metadata: Obj,
) -> Obj:
    """Return a Table with a row for each (cells, object).

    `columns` None: the definitions are left out, as in all but the first event of a watch.
    `include` is the query's ``includeObject``: ``None``, ``Metadata`` or ``Object``. `metadata`:
    the list's (resourceVersion, continue, remainingItemCount).
    """
    return {
        "kind": "Table",
        "apiVersion": _VERSION,
        "metadata": metadata,
        "columnDefinitions": None if columns is None else [c.as_obj() for c in columns],
        "rows": [{"cells": list(cells), "object": _included(obj, include)} for cells, obj in rows],
    }


def partial_object_metadata(obj: Obj) -> Obj:
    """Return the object reduced to its metadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": _VERSION,
        "metadata": obj.get("metadata") or {},
    }


def age(obj: Obj, now: dt.datetime) -> str:
    """Return how long ago the object was created, as kubectl prints it."""
    return since((obj.get("metadata") or {}).get("creationTimestamp"), now)


def since(text: object, now: dt.datetime) -> str:
    """Return the age of the time `text`; ``<unknown>`` for none, ``<invalid>`` for no time."""
    if not text:
        return "<unknown>"
    try:
        return human_duration((now - parse_time(str(text))).total_seconds())
    except ValueError:
        return "<invalid>"


def cell_at(obj: Obj, path: str, type_: str, now: dt.datetime) -> object:
    """Return the cell of a printer column: the first value at the JSON path, as `type_` prints it.

    None where there is no value or one of another type. Raises ValueError for a path that cannot be
    understood.
    """
    found = _parsed(path).find(obj)
    if not found or found[0] is None:
        return None
    return _cell(found[0], type_, now)


@functools.lru_cache(maxsize=512)  # a pure function of a text that stands in the kinds' tables
def _parsed(path: str) -> JsonPath:
    return JsonPath.parse(path)


def _cell(value: object, type_: str, now: dt.datetime) -> object:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if type_ == "string":
        return _text(value)
    if type_ == "integer":
        return int(value) if isinstance(value, (int, float)) and is_number else None
    if type_ == "number":
        return value if is_number else None
    if type_ == "boolean":
        return value if isinstance(value, bool) else None
    if type_ == "date":
        return since(value, now) if isinstance(value, str) else None
    return None


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))  # Go prints 1.0 as 1
    return json.encode(value).decode()


def _included(obj: Obj, include: str) -> Obj | None:
    if include == "Object":
        return obj
    return partial_object_metadata(obj) if include == "Metadata" else None
