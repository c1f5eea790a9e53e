"""What a version of a CustomResourceDefinition may say beside its schema.

Owns scale paths, printer columns and selectable fields. Pure; the messages are those of
apiextensions-apiserver's ``validation.go``.
"""

from collections.abc import Iterator, Sequence

from hub.meta import Obj
from hub.meta.causes import duplicate, invalid_value, not_supported, required
from hub.meta.errors import Cause
from hub.meta.jsonpath import JsonPath
from hub.meta.schema.structural import Schema
from hub.registry.crd.paths import simple_path

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = (*("byte", "date", "date-time", "double", "float", "int32", "int64", "password"),)
_MAX_SELECTABLE = 8
_SELECTABLE_TYPES = ("boolean", "integer", "string")


def scale_causes(scale: Obj, at: str) -> Iterator[Cause]:
    """Yield what is wrong with the paths of a scale subresource."""
    for key, places, is_required in (
        ("specReplicasPath", (".spec.",), True),
        ("statusReplicasPath", (".status.",), True),
        ("labelSelectorPath", (".spec.", ".status."), False),
    ):
        path = scale.get(key)
        if not path:
            if is_required or path is not None:
                yield required(f"{at}.{key}")
            continue
        try:
            simple_path(path)
        except ValueError as problem:
            yield invalid_value(f"{at}.{key}", path, str(problem))
            continue
        if not path.startswith(places):
            wanted = " or ".join(place.rstrip(".") for place in places)
            either = "either " if len(places) > 1 else ""
            yield invalid_value(
                f"{at}.{key}", path, f"should be a json path under {either}{wanted}"
            )


def column_causes(column: Obj, at: str) -> Iterator[Cause]:
    """Yield what is wrong with a printer column."""
    if not column.get("name"):
        yield required(f"{at}.name")
    type_ = column.get("type") or ""
    if not type_:
        yield required(f"{at}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
    elif type_ not in _COLUMN_TYPES:
        detail = f"must be one of {','.join(_COLUMN_TYPES)}"
        yield invalid_value(f"{at}.type", type_, detail)
    format_ = column.get("format") or ""
    if format_ and format_ not in _COLUMN_FORMATS:
        yield not_supported(f"{at}.format", format_, _COLUMN_FORMATS)
    path = column.get("jsonPath") or ""
    if not path:
        yield required(f"{at}.JSONPath")
        return
    try:
        JsonPath.parse(path)
    except ValueError as problem:
        yield invalid_value(f"{at}.JSONPath", path, str(problem))


def selectable_causes(fields: Sequence[Obj], schema: Schema, at: str) -> Iterator[Cause]:
    """Yield what is wrong with selectable fields."""
    if len(fields) > _MAX_SELECTABLE:
        text = f"Too many: {len(fields)}: must have at most {_MAX_SELECTABLE} items"
        yield Cause("FieldValueTooMany", text, at)
    seen: set[str] = set()
    for index, field in enumerate(fields):
        here, path = f"{at}[{index}].jsonPath", str(field.get("jsonPath") or "")
        if path in seen:
            yield duplicate(here, path)
        seen.add(path)
        yield from _selectable(path, schema, here)


def _selectable(path: str, schema: Schema, at: str) -> Iterator[Cause]:
    if not path:
        yield required(at)
        return
    try:
        names = simple_path(path)
    except ValueError as problem:
        yield invalid_value(at, path, f"is an invalid path: {problem}")
        return
    if names and names[0] == "metadata":
        yield invalid_value(at, path, "must not point to fields in metadata")
        return
    node: Schema | None = schema
    for name in names:
        node = None if node is None else node.properties.get(name)
    if node is None:
        yield invalid_value(at, path, "is an invalid path: does not refer to a valid field")
    elif node.type not in _SELECTABLE_TYPES:
        text = (
            "must point to a field of type string, boolean or integer. Enum string fields and"
            " strings with formats are allowed."
        )
        yield invalid_value(at, path, text)
