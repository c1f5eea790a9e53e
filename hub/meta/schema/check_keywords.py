"""What each node of a CRD's schema may say, whatever stands around it.

Mirrors ``ValidateCustomResourceDefinitionOpenAPISchema`` of apiextensions-apiserver's
``apis/apiextensions/validation/validation.go``, without the CEL expressions.

>>> from hub.meta.schema.structural import parse
>>> [c.field for c in keyword_causes(parse({"type": "thing", "uniqueItems": True}), "s")]
['s.type', 's.uniqueItems']
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hub.meta.causes import forbidden_field, required
from hub.meta.errors import Cause
from hub.meta.schema.gotext import quote, show
from hub.meta.schema.structural import Schema, Traits

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_META = ("metadata", "kind", "apiVersion")
_LIST_TYPES = ("atomic", "set", "map")
_MAP_TYPES = ("atomic", "granular")
_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")
_ROOT_KEYWORDS = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength "
    "MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties "
    "ExternalDocs Example XPreserveUnknownFields XValidations"
)
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


@dataclass(frozen=True, slots=True)
class _Place:
    """What is forbidden by where a node stands."""

    is_root: bool = False
    is_inside_meta: bool = False
    no_defaults: str = ""


def keyword_causes(schema: Schema, field: str, *, has_status: bool = False) -> list[Cause]:
    """Return the faults of a schema and of every node in it."""
    causes: list[Cause] = []
    if has_status and schema.type not in ("", "object"):
        detail = (
            'only "object" is allowed as the type at the root of the schema if the status'
            " subresource is enabled"
        )
        causes.append(field_invalid(f"{field}.type", schema.type, detail))
    elif has_status and not _is_plain_root(schema):
        detail = (
            f"only [{_ROOT_KEYWORDS}] fields are allowed at the root of the schema if the status"
            " subresource is enabled"
        )
        # kube prints the whole schema as its Go type
        causes.append(field_invalid(field, {"type": schema.type}, detail))
    if schema.nullable:
        causes.append(forbidden_field(f"{field}.nullable", "nullable cannot be true at the root"))
    return [*causes, *_node(schema, field, _Place(is_root=True))]


def _is_plain_root(schema: Schema) -> bool:
    """Whether the rules of the status can be told from those of the rest."""
    rules, traits = schema.rules, schema.traits
    is_plain = not any(True for _ in schema.nested())
    return (
        is_plain
        and not (rules.enum or schema.nullable)
        and schema.default is None
        and schema.additional is None
        and rules.max_properties is None
        and rules.min_properties is None
        and traits == Traits(preserves_unknown=traits.preserves_unknown, cel=traits.cel)
    )


def field_invalid(field: str, value: Any, detail: str) -> Cause:
    """Return a cause: the value at `field` breaks the rule that `detail` states."""
    return Cause("FieldValueInvalid", f"Invalid value: {show(value)}: {detail}", field)


def _unknown(field: str, value: str, allowed: tuple[str, ...]) -> Cause:
    known = ", ".join(map(quote, allowed))
    text = f"Unsupported value: {quote(value)}: supported values: {known}"
    return Cause("FieldValueNotSupported", text, field)


def _node(schema: Schema, path: str, place: _Place) -> Iterator[Cause]:
    yield from _standard(schema, path, place)
    if schema.rules.unique_items:
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden_field(f"{path}.uniqueItems", detail)
    if schema.properties and schema.additional not in (None, True):
        detail = "additionalProperties and properties are mutual exclusive"
        yield forbidden_field(f"{path}.additionalProperties", detail)
    yield from _below(schema, path, replace(place, is_root=False), is_root=place.is_root)
    yield from _map_type(schema, path)
    yield from _list_type(schema, path)
    yield from _list_keys(schema, path)
    yield from _map_items(schema, path)
    for index, rule in enumerate(schema.traits.cel):
        yield from _rule(rule, schema, f"{path}.x-kubernetes-validations[{index}]")


def _below(schema: Schema, path: str, place: _Place, *, is_root: bool) -> Iterator[Cause]:
    if schema.item_of_map is not None:
        inside = place
        if place.is_inside_meta:
            reason = "inside additionalProperties applying to object metadata"
            inside = replace(place, no_defaults=reason)
        yield from _node(schema.item_of_map, f"{path}.additionalProperties", inside)
    for name, node in schema.properties.items():
        inside = place
        if (is_root or schema.traits.is_embedded) and name in _META:
            inside = replace(place, is_inside_meta=True)
            if is_root:
                inside = replace(inside, no_defaults=f"in top-level {name}")
        yield from _node(node, f"{path}.properties[{name}]", inside)
    for name, node in schema.nested():
        yield from _node(node, f"{path}.{name}", place)
    if schema.items is not None:
        yield from _node(schema.items, f"{path}.items", place)


def _standard(schema: Schema, path: str, place: _Place) -> Iterator[Cause]:
    if schema.type and schema.type not in _TYPES:
        yield _unknown(f"{path}.type", schema.type, _TYPES)
    if schema.default is not None and place.no_defaults:
        yield forbidden_field(f"{path}.default", f"must not be set {place.no_defaults}")
    for name in schema.unsupported:
        if name == "items":
            yield forbidden_field(f"{path}.items", "items must be a schema object and not an array")
        elif name == "$schema":
            detail = "OpenAPIV3Schema 'schema' is not supported"
            yield field_invalid(path.partition(".properties[")[0], "", detail)
        elif name.startswith("x-"):
            yield field_invalid(f"{path}.{name}", value=False, detail="must be true or undefined")
        else:
            yield forbidden_field(f"{path}.{name}", f"{name} is not supported")
    if schema.type == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        yield forbidden_field(f"{path}.type", detail)
    if place.is_inside_meta and schema.traits.is_embedded:
        at = f"{path}.x-kubernetes-embedded-resource"
        yield forbidden_field(at, "must not be used inside of resource meta")


def _map_type(schema: Schema, path: str) -> Iterator[Cause]:
    map_type = schema.traits.map_type
    if map_type is None:
        return
    if schema.type != "object":
        yield _type(schema, path, "must be object if x-kubernetes-map-type is specified")
    if map_type not in _MAP_TYPES:
        yield _unknown(f"{path}.x-kubernetes-map-type", map_type, _MAP_TYPES)


def _type(schema: Schema, path: str, detail: str) -> Cause:
    if not schema.type:
        return required(f"{path}.type", detail)
    return field_invalid(f"{path}.type", schema.type, detail)


def _list_type(schema: Schema, path: str) -> Iterator[Cause]:
    list_type, items = schema.traits.list_type, schema.items
    if list_type is None:
        return
    if schema.type != "array":
        yield _type(schema, path, "must be array if x-kubernetes-list-type is specified")
    elif list_type == "set" and items is not None:
        detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
        below = items.traits
        if items.type == "array" and below.list_type not in (None, "atomic"):
            yield field_invalid(f"{path}.items.x-kubernetes-list-type", below.list_type, detail)
        if items.type == "object" and below.map_type != "atomic":
            # kube prints the list type here, which an object has not
            yield field_invalid(f"{path}.items.x-kubernetes-map-type", below.list_type, detail)
    if list_type not in _LIST_TYPES:
        yield _unknown(f"{path}.x-kubernetes-list-type", list_type, _LIST_TYPES)


def _list_keys(schema: Schema, path: str) -> Iterator[Cause]:
    list_type, keys = schema.traits.list_type, schema.traits.list_keys
    if keys and list_type != "map":
        at = f"{path}.x-kubernetes-list-type"
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield required(at, detail) if list_type is None else field_invalid(at, list_type, detail)
    if list_type != "map":
        return
    items, at = schema.items, f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield required(at, "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        detail = "must have a schema if x-kubernetes-list-type is map"
        yield required(f"{path}.items", detail)
        return
    if items.type != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield field_invalid(f"{path}.items.type", items.type, detail)
        return
    for index, key in enumerate(keys):
        node = items.properties.get(key)
        if node is None:
            yield field_invalid(at, list(keys), "entries must all be names of item properties")
        elif node.type in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield field_invalid(f"{path}.items.properties[{key}].type", items.type, detail)
        if key in keys[:index]:
            yield field_invalid(at, list(keys), "must not contain duplicate entries")


def _map_items(schema: Schema, path: str) -> Iterator[Cause]:
    """Items of sets and maps are never null, and the keys of maps are always there."""
    items, list_type = schema.items, schema.traits.list_type
    if items is None or list_type not in ("set", "map"):
        return
    if items.nullable:
        detail = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        yield forbidden_field(f"{path}.items.nullable", detail)
    if list_type == "set":
        return
    for key in schema.traits.list_keys:
        node = items.properties.get(key)
        if node is None:
            continue
        at = f"{path}.items.properties[{key}]"
        reason = "this property is in x-kubernetes-list-map-keys, so it"
        if key not in items.rules.required and node.default is None:
            yield required(
                f"{at}.default", f"{reason} must have a default or be a required property"
            )
        if node.nullable:
            yield forbidden_field(f"{at}.nullable", f"{reason} cannot be nullable")


def _rule(rule: dict[str, Any], schema: Schema, path: str) -> Iterator[Cause]:
    """Check what surrounds a CEL expression; the expression itself is a later step's business."""
    text, message = str(rule.get("rule") or ""), str(rule.get("message") or "")
    expression, at = str(rule.get("messageExpression") or ""), str(rule.get("fieldPath") or "")
    if not text.strip():
        yield required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield field_invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _has_newline(message.strip()):
        yield field_invalid(f"{path}.message", message, "must not contain line breaks")
    elif _has_newline(text.strip()) and not message.strip():
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")
    if expression and not expression.strip():
        detail = "messageExpression must be non-empty if specified"
        yield required(f"{path}.messageExpression", detail)
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        yield _unknown(f"{path}.reason", str(reason), _REASONS)
    if at and not at.strip():
        yield field_invalid(f"{path}.fieldPath", at, "must be non-empty if specified")
    if _has_newline(at):
        yield field_invalid(f"{path}.fieldPath", at, "must not contain line breaks")
    if at and not _leads_somewhere(at, schema):
        yield field_invalid(f"{path}.fieldPath", at, "must be a valid path")


def _leads_somewhere(path: str, schema: Schema) -> bool:
    """Whether ``.a['b']`` names fields of a schema all the way."""
    node: Schema | None = schema
    position = 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None or node is None:
            return False
        name = step[1] if step[1] is not None else step[2].replace("\\'", "'")
        node = node.properties.get(name) if node.properties else node.item_of_map
        position = step.end()
    return node is not None


def _has_newline(text: str) -> bool:
    return "\n" in text or "\r" in text
