"""A kind made from its schema: field types, columns, defaults, pruning and validation.

Owns what follows from `hub.fleet.schema` alone; rules that no schema can state are in the kinds'
own strategies. The field types of a view hold before conversion, everything else in the stored
version.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

from hub.fleet.schema import Column, columns_of, schema_of
from hub.fleet.schema.node import Node
from hub.meta import Obj
from hub.meta.errors import Cause
from hub.meta.schema.default import default
from hub.meta.schema.prune import prune
from hub.meta.schema.structural import parse
from hub.meta.schema.validate import Validator
from hub.registry.kind import View, same
from hub.registry.printing import Printer, age_printer, name_printer, path_printer
from hub.registry.shape import MapOf, Shape
from hub.registry.strategy import Strategy

_AGE_PATH = ".metadata.creationTimestamp"
_ENVELOPE = ("apiVersion", "kind", "metadata")
_SIMPLE: dict[str, type] = {"string": str, "integer": int, "boolean": bool}


def shape_of(schema: Node) -> dict[str, Shape]:
    """Return the types of the fields of a whole resource.

    >>> from hub.fleet.schema.node import array, obj, root, text
    >>> shape_of(root("", {"spec": obj("", {"names": array("", text())})}))
    {'spec': {'names': [<class 'str'>]}}
    """
    fields = schema["properties"]
    shapes = {name: _shape(fields[name]) for name in fields if name not in _ENVELOPE}
    return {name: shape for name, shape in shapes.items() if shape is not None}


def _shape(node: Node) -> "Shape | None":
    """Return the shape of a node, None when there is more than one type for it."""
    kind = node.get("type", "")
    if kind == "object":
        return _object_shape(node)
    if kind == "array":
        item = _shape(node["items"])
        return list if item is None else [item]
    return _SIMPLE.get(kind)


def _object_shape(node: Node) -> Shape:
    values = node.get("additionalProperties")
    if values is not None:
        simple = _SIMPLE.get(values.get("type", ""))
        return dict if simple is None else MapOf(simple)
    shapes = {name: _shape(below) for name, below in node.get("properties", {}).items()}
    return {name: shape for name, shape in shapes.items() if shape is not None} or dict


def view_of(
    group: str,
    version: str,
    kind: str,
    *,
    to_storage: Callable[[Obj], Obj] = same,
    from_storage: Callable[[Obj], Obj] = same,
) -> View:
    """Return a version of one of OCM's kinds as its schema and columns have it."""
    return replace(
        view_from(
            group, version, schema_of(group, version, kind), columns_of(group, version, kind)
        ),
        to_storage=to_storage,
        from_storage=from_storage,
    )


def view_from(group: str, version: str, schema: Node, columns: Sequence[Column]) -> View:
    """Return a version of a kind as a schema and columns have it."""
    return View(
        group,
        version,
        printers=_printers(columns),
        shape=shape_of(schema),
        prune=_pruner(schema),
    )


def _pruner(schema: Node) -> Callable[[Obj], tuple[Obj, list[str]]]:
    parsed = functools.cache(lambda: parse(schema))
    return lambda obj: prune(obj, parsed())


def _printers(columns: Sequence[Column]) -> tuple[Printer, ...]:
    if not columns:
        return name_printer(), age_printer("date")
    printers = [
        age_printer("date")
        if column.path == _AGE_PATH
        else path_printer(column.name, column.path, type_=column.type_, priority=column.priority)
        for column in columns
    ]
    return name_printer(), *printers


def converted_to(api_version: str) -> Callable[[Obj], Obj]:
    """Return a conversion between versions that have the same fields."""
    return lambda obj: {**obj, "apiVersion": api_version}


class SchemaStrategy(Strategy):
    """The rules of a kind that has none but those of its schema.

    Unknown fields are dropped and defaults filled whenever an object is written.
    """

    def __init__(self, schema: Node) -> None:
        self._schema = parse(schema)
        self._validator = Validator(self._schema)

    def default(self, obj: Obj) -> None:
        """Drop what the schema does not know, and fill its defaults."""
        # metadata is the engine's business
        known, _ = prune({k: v for k, v in obj.items() if k != "metadata"}, self._schema)
        for key in obj.keys() - known.keys() - {"metadata"}:
            del obj[key]
        obj.update(default(known, self._schema))

    def validate(self, obj: Obj) -> list[Cause]:
        """Return what the schema does not allow."""
        return self._validator.validate(obj)
