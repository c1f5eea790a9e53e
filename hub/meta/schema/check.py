"""Whether a schema may be served: the checks of a CustomResourceDefinition's openAPIV3Schema.

Owns the rules of structural schemas (apiextensions-apiserver's ``schema/{validation,complete}.go``)
and puts the others beside them: `hub.meta.schema.check_keywords` for each node by itself,
`hub.meta.schema.check_default` for defaults. Only CEL rules are not looked into.

>>> from hub.meta.schema.structural import parse
>>> bad = parse({"type": "object", "properties": {"a": {}}})
>>> print(*[f"{c.field}: {c.message}" for c in check_structural(bad, "schema")])
schema.properties[a].type: Required value: must not be empty for specified object fields
"""

import enum
from collections.abc import Iterator

from hub.meta.causes import forbidden_field, required
from hub.meta.errors import Cause
from hub.meta.schema.check_default import default_causes
from hub.meta.schema.check_keywords import field_invalid, keyword_causes
from hub.meta.schema.regex import PatternError, compile_go
from hub.meta.schema.structural import Rules, Schema


class _Level(enum.Enum):
    """Where a node stands; the value is what an empty type is told."""

    ROOT = "must not be empty at the root"
    ITEM = "must not be empty for specified array items"
    FIELD = "must not be empty for specified object fields"


_INT_OR_STRING = (Schema(type="integer"), Schema(type="string"))


def check_structural(schema: Schema, field: str, *, has_status: bool = False) -> list[Cause]:
    """Return why a schema cannot be served; empty = it can, but for its CEL rules.

    `field` is where the schema stands, such as ``spec.validation.openAPIV3Schema`` (as
    kube-apiserver names the schema that all versions share). `has_status`: the version has the
    status subresource.
    """
    causes: list[Cause] = []
    if not _has_unsupported(schema):
        causes = sorted(
            [*_invariants(schema, _Level.ROOT, field), *_incomplete(schema, schema, field, field)],
            key=lambda c: f"{c.field}: {c.message}",
        )
        causes = causes or default_causes(schema, field)
    return causes + keyword_causes(schema, field, has_status=has_status)


def _has_unsupported(schema: Schema) -> bool:
    nested = [node for _, node in schema.nested()]
    return bool(schema.unsupported) or any(map(_has_unsupported, [*schema.below(), *nested]))


def _invariants(schema: Schema, level: _Level, path: str) -> Iterator[Cause]:
    if schema.type == "array" and schema.items is None:
        yield required(f"{path}.items", "must be specified")
    if schema.items is not None:
        yield from _invariants(schema.items, _Level.ITEM, f"{path}.items")
    for name, node in schema.properties.items():
        yield from _invariants(node, _Level.FIELD, f"{path}.properties[{name}]")
    if schema.additional is not None and level is _Level.ROOT:
        yield forbidden_field(f"{path}.additionalProperties", "must not be used at the root")
    if schema.item_of_map is not None:
        at = f"{path}.additionalProperties"
        yield from _invariants(schema.item_of_map, _Level.FIELD, at)
    yield from _extensions(schema, path)
    yield from _values(schema, path)
    yield from _type(schema, level, path)
    yield from _meta(schema, level, path)


def _extensions(schema: Schema, path: str) -> Iterator[Cause]:
    traits = schema.traits
    for is_set, name in (
        (traits.preserves_unknown, "preserve-unknown-fields"),
        (traits.is_embedded, "embedded-resource"),
    ):
        if traits.is_int_or_string and is_set:
            detail = "must be false if x-kubernetes-int-or-string is true"
            yield field_invalid(f"{path}.x-kubernetes-{name}", value=True, detail=detail)
    if traits.is_embedded and schema.additional is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        yield forbidden_field(f"{path}.additionalProperties", detail)
    if traits.is_embedded and not traits.preserves_unknown and not schema.properties:
        yield required(
            f"{path}.properties",
            "must not be empty if x-kubernetes-embedded-resource is true without"
            " x-kubernetes-preserve-unknown-fields",
        )


def _type(schema: Schema, level: _Level, path: str) -> Iterator[Cause]:
    traits = schema.traits
    if traits.is_embedded and schema.type != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield _type_cause(schema, path, detail)
    elif not (schema.type or traits.is_int_or_string or traits.preserves_unknown):
        yield required(f"{path}.type", level.value)
    if level is _Level.ROOT and schema.type not in ("", "object"):
        yield field_invalid(f"{path}.type", schema.type, "must be object at the root")


def _type_cause(schema: Schema, path: str, detail: str) -> Cause:
    if not schema.type:
        return required(f"{path}.type", detail)
    return field_invalid(f"{path}.type", schema.type, detail)


def _meta(schema: Schema, level: _Level, path: str) -> Iterator[Cause]:
    is_resource = level is _Level.ROOT or schema.traits.is_embedded
    wanted = {"kind": "string", "apiVersion": "string", "metadata": "object"}
    for name, type_ in wanted.items():
        node = schema.properties.get(name)
        if is_resource and node is not None and node.type != type_:
            detail = f"must be {type_}"
            yield field_invalid(f"{path}.properties[{name}].type", node.type, detail)
    metadata = schema.properties.get("metadata")
    if level is _Level.ROOT and metadata is not None and not _is_plain_metadata(metadata):
        yield forbidden_field(
            f"{path}.properties[metadata]",
            "must not specify anything other than name and generateName, but metadata is"
            " implicitly specified",
        )


def _is_plain_metadata(schema: Schema) -> bool:
    if schema.properties.keys() - {"name", "generateName"}:
        return False
    ignored = Schema(
        type=schema.type,
        default=schema.default,
        properties=schema.properties,
        defaulted=schema.defaulted,
    )
    return schema == ignored


def _values(schema: Schema, path: str, *, skips_first_any_of: bool = True) -> Iterator[Cause]:
    """Check value validations; those that spell int-or-string out may name types."""
    is_any_of = schema.rules.any_of == _INT_OR_STRING and skips_first_any_of
    all_of = schema.rules.all_of
    is_all_of = bool(all_of) and all_of[0].rules.any_of == _INT_OR_STRING and skips_first_any_of
    for name, node in schema.nested():
        if is_any_of and name.startswith("anyOf"):
            continue
        may_skip = is_all_of and name == "allOf[0]"
        yield from _nested(node, f"{path}.{name}", skips_any_of=may_skip)
    try:
        compile_go(schema.rules.pattern)
    except PatternError as e:
        detail = f"must be a valid regular expression, but isn't: {e}"
        yield field_invalid(f"{path}.pattern", schema.rules.pattern, detail)


def _nested(schema: Schema, path: str, *, skips_any_of: bool = False) -> Iterator[Cause]:
    if skips_any_of:
        rest = Schema(rules=_without_any_of(schema.rules))
        yield from _values(rest, path, skips_first_any_of=False)
    else:
        yield from _values(schema, path, skips_first_any_of=False)
    if schema.items is not None:
        yield from _nested(schema.items, f"{path}.items")
    for name, node in schema.properties.items():
        yield from _nested(node, f"{path}.properties[{name}]")
    for name, is_set, detail in _forbidden(schema):
        if is_set:
            yield forbidden_field(f"{path}.{name}", f"must be {detail} to be structural")
    if "metadata" in schema.properties:
        at = f"{path}.properties[metadata]"
        yield forbidden_field(at, "must not be specified in a nested context")


def _without_any_of(rules: Rules) -> Rules:
    return Rules(pattern=rules.pattern, all_of=rules.all_of, one_of=rules.one_of, not_=rules.not_)


def _forbidden(schema: Schema) -> list[tuple[str, object, str]]:
    traits = schema.traits
    return [
        ("type", schema.type, "empty"),
        ("additionalProperties", schema.additional not in (None, False), "undefined"),
        ("default", schema.default is not None, "undefined"),
        ("title", schema.title, "empty"),
        ("description", schema.description, "empty"),
        ("nullable", schema.nullable, "false"),
        ("x-kubernetes-preserve-unknown-fields", traits.preserves_unknown, "false"),
        ("x-kubernetes-embedded-resource", traits.is_embedded, "false"),
        ("x-kubernetes-int-or-string", traits.is_int_or_string, "false"),
        ("x-kubernetes-list-map-keys", traits.list_keys, "empty"),
        ("x-kubernetes-list-type", traits.list_type is not None, "undefined"),
        ("x-kubernetes-map-type", traits.map_type is not None, "undefined"),
        ("x-kubernetes-validations", traits.cel, "empty"),
    ]


def _incomplete(values: Schema, schema: Schema | None, at: str, path: str) -> Iterator[Cause]:
    """Yield what is validated below a junctor without being there in the structure.

    `at` is the structural path, `path` that of the validation.
    """
    if schema is None:
        yield required(at, f"because it is defined in {path}")
        return
    for name, node in values.nested():
        yield from _incomplete_nested(node, schema, at, f"{path}.{name}")


def _incomplete_nested(
    values: Schema, schema: Schema | None, at: str, path: str
) -> Iterator[Cause]:
    yield from _incomplete(values, schema, at, path)
    if schema is None:
        return
    if values.items is not None:
        yield from _incomplete_nested(values.items, schema.items, f"{at}.items", f"{path}.items")
    for name, node in values.properties.items():
        below = schema.properties.get(name)
        there = f"{at}.properties[{name}]"
        yield from _incomplete_nested(node, below, there, f"{path}.properties[{name}]")
