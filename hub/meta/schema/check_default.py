"""Whether the defaults of a schema are values that the schema itself lets pass.

Mirrors apiextensions-apiserver's ``schema/defaulting/validation.go``: a default has no unknown
fields and is valid; one inside the metadata of an embedded resource makes valid metadata.

>>> from hub.meta.schema.structural import parse
>>> schema = parse({"properties": {"n": {"type": "integer", "default": "x"}}})
>>> default_causes(schema, "s")[0].field
's.properties[n].default'
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

from hub.meta import Obj
from hub.meta.errors import Cause
from hub.meta.schema.check_keywords import field_invalid
from hub.meta.schema.embedded import embedded_causes, resource_causes
from hub.meta.schema.explain import NOWHERE, value_causes
from hub.meta.schema.gotext import same
from hub.meta.schema.prune import IMPLICIT, prune
from hub.meta.schema.structural import Schema

_Around: TypeAlias = Callable[[Any], Obj]


def default_causes(schema: Schema, field: str) -> list[Cause]:
    """Return what is wrong with each default; `field` is where the schema stands."""
    root = replace(schema, traits=replace(schema.traits, is_embedded=True))
    return list(_walk(root, field, None))


def _walk(schema: Schema, path: str, around: _Around | None) -> Iterator[Cause]:
    """`around` makes the resource that a value inside its metadata belongs to."""
    if schema.traits.is_embedded:
        around = None
    if schema.default is not None:
        at = f"{path}.default"
        yield from _of_metadata(schema, at, around) if around else _of_value(schema, at)
    # defaults below additionalProperties are not followed, as in kube
    if schema.items is not None:
        yield from _walk(schema.items, f"{path}.items", _in_list(around) if around else None)
    for name, node in schema.properties.items():
        below: _Around | None = None
        if schema.traits.is_embedded and name in IMPLICIT:
            below = _in_object(_resource, name)
        elif around:
            below = _in_object(around, name)
        yield from _walk(node, f"{path}.properties[{name}]", below)


def _resource(obj: Obj) -> Obj:
    return {"apiVersion": "validation/v1", "kind": "Validation"} | obj


def _in_object(around: _Around, name: str) -> _Around:
    return lambda value: around({name: value})


def _in_list(around: _Around) -> _Around:
    return lambda value: around([value])


def _of_metadata(schema: Schema, at: str, around: _Around) -> list[Cause]:
    errors = resource_causes(around(schema.default), "")
    if errors:
        texts = ", ".join(f"{c.field}: {c.message}" for c in errors)
        shown = f"[{texts}]" if len(errors) > 1 else texts
        detail = f"must result in valid metadata: {shown}"
        return [field_invalid(at, schema.default, detail)]
    return _relocated(value_causes(schema.default, schema), at)


def _of_value(schema: Schema, at: str) -> list[Cause]:
    causes: list[Cause] = []
    pruned, unknown = prune(schema.default, schema, is_root=schema.traits.is_embedded)
    if unknown or not same(pruned, schema.default):
        causes.append(field_invalid(at, schema.default, "must not have unknown fields"))
    found = embedded_causes(schema.default, schema) or value_causes(schema.default, schema)
    return causes + _relocated(found, at)


def _relocated(causes: list[Cause], at: str) -> list[Cause]:
    return [replace(c, field=at if c.field == NOWHERE else f"{at}.{c.field}") for c in causes]
