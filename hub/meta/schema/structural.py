"""An OpenAPI v3 schema of a custom resource, parsed once into frozen nodes.

Owns the shape (k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1 JSONSchemaProps); what a
schema must look like to be served is `hub.meta.schema.check`'s business, what values must look
like `hub.meta.schema.validate`'s. A node below ``allOf``, ``anyOf``, ``oneOf`` and ``not`` has the
same type as any other: that most of its parts are forbidden there is one of the checks.

>>> node = parse({"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}})
>>> node.properties["n"].rules.maximum
9
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from hub.meta import Obj
from hub.meta.codec.json import kind_of
from hub.meta.errors import ApiError, bad_request

Number: TypeAlias = int | float


@dataclass(frozen=True, slots=True)
class Rules:
    """What a schema asks of values; as many fields as the API has keywords."""

    format: str = ""
    maximum: Number | None = None
    exclusive_maximum: bool = False
    minimum: Number | None = None
    exclusive_minimum: bool = False
    max_length: int | None = None
    min_length: int | None = None
    pattern: str = ""
    max_items: int | None = None
    min_items: int | None = None
    unique_items: bool = False
    multiple_of: Number | None = None
    enum: tuple[Any, ...] = ()
    max_properties: int | None = None
    min_properties: int | None = None
    required: tuple[str, ...] = ()
    all_of: tuple["Schema", ...] = ()
    any_of: tuple["Schema", ...] = ()
    one_of: tuple["Schema", ...] = ()
    not_: "Schema | None" = None


@dataclass(frozen=True, slots=True)
class Traits:
    """The ``x-kubernetes-*`` extensions; `cel` keeps x-kubernetes-validations as they stand."""

    is_int_or_string: bool = False
    preserves_unknown: bool = False
    is_embedded: bool = False
    list_type: str | None = None
    list_keys: tuple[str, ...] = ()
    map_type: str | None = None
    cel: tuple[Obj, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """One node.

    `default` is None without a default (a null default is none, as in kube). `additional` is what
    additionalProperties says: a schema, a bool, or None when it is absent. `unsupported` names
    keywords that JSON Schema has and custom resources must not use, `defaulted` the properties that
    have a default.
    """

    type: str = ""
    nullable: bool = False
    default: Any = None
    title: str = ""
    description: str = ""
    properties: Mapping[str, "Schema"] = field(default_factory=dict)
    additional: "Schema | bool | None" = None
    items: "Schema | None" = None
    rules: Rules = Rules()
    traits: Traits = Traits()
    unsupported: tuple[str, ...] = ()
    defaulted: tuple[str, ...] = ()

    @property
    def item_of_map(self) -> "Schema | None":
        """Return the schema of the values of a map, None when they have none."""
        return self.additional if isinstance(self.additional, Schema) else None

    def lenient(self) -> "Schema":
        """Return this node, but with unknown fields preserved."""
        return replace(self, traits=replace(self.traits, preserves_unknown=True))

    @property
    def types(self) -> tuple[str, ...]:
        """Return the type names that a value may have; none = any."""
        if self.traits.is_int_or_string:
            return ("integer", "string")
        return (self.type,) if self.type else ()

    def child(self, key: str) -> "Schema | None":
        """Return the schema that the value at `key` of an object has."""
        return self.properties.get(key) or self.item_of_map

    def below(self) -> Iterator["Schema"]:
        """Yield the structural nodes right below this one."""
        yield from self.properties.values()
        if self.items is not None:
            yield self.items
        if self.item_of_map is not None:
            yield self.item_of_map

    def nested(self) -> Iterator[tuple[str, "Schema"]]:
        """Yield what stands in allOf, anyOf, oneOf and not, with its path below this node."""
        rules = self.rules
        for name, nodes in (
            ("anyOf", rules.any_of),
            ("allOf", rules.all_of),
            ("oneOf", rules.one_of),
        ):
            for index, node in enumerate(nodes):
                yield f"{name}[{index}]", node
        if rules.not_ is not None:
            yield "not", rules.not_

    def walk(self) -> Iterator["Schema"]:
        """Yield this node and all structural ones below."""
        yield self
        for node in self.below():
            yield from node.walk()

    @property
    def has_cel(self) -> bool:
        """Whether there are x-kubernetes-validations anywhere in the structure."""
        return any(node.traits.cel for node in self.walk())


EMPTY = Schema()

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_UNSUPPORTED = (
    "id",
    "$schema",
    "$ref",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
)


def parse(raw: Obj) -> Schema:
    """Return the node of an ``openAPIV3Schema``.

    :raises ApiError: 400 for a keyword whose value is of a wrong type, worded as Go's decoder does
    """
    return _node(raw, "spec.versions.schema.openAPIV3Schema")


def _node(raw: Any, path: str) -> Schema:
    if not isinstance(raw, dict):
        raise _misfit(raw, path, "JSONSchemaProps")
    read = _Reader(raw, path)
    items = raw.get("items")
    unsupported = [key for key in _UNSUPPORTED if raw.get(key)]
    if raw.get("additionalItems") is False:
        unsupported.append("additionalItems")
    if raw.get(_PRESERVE) is False:
        unsupported.append(_PRESERVE)
    if isinstance(items, list):
        unsupported.append("items")
        items = None
    properties = read.nodes_by_name("properties")
    return Schema(
        type=read.text("type"),
        nullable=read.flag("nullable"),
        default=raw.get("default"),
        title=read.text("title"),
        description=read.text("description"),
        properties=properties,
        additional=read.node_or_flag("additionalProperties"),
        items=read.node(items, "items"),
        rules=_rules(read),
        traits=_traits(read),
        unsupported=tuple(unsupported),
        defaulted=tuple(name for name, node in properties.items() if node.default is not None),
    )


def _rules(read: "_Reader") -> Rules:
    return Rules(
        format=read.text("format"),
        maximum=read.number("maximum"),
        exclusive_maximum=read.flag("exclusiveMaximum"),
        minimum=read.number("minimum"),
        exclusive_minimum=read.flag("exclusiveMinimum"),
        max_length=read.integer("maxLength"),
        min_length=read.integer("minLength"),
        pattern=read.text("pattern"),
        max_items=read.integer("maxItems"),
        min_items=read.integer("minItems"),
        unique_items=read.flag("uniqueItems"),
        multiple_of=read.number("multipleOf"),
        enum=tuple(read.list_of("enum", object)),
        max_properties=read.integer("maxProperties"),
        min_properties=read.integer("minProperties"),
        required=tuple(read.list_of("required", str)),
        all_of=read.nodes("allOf"),
        any_of=read.nodes("anyOf"),
        one_of=read.nodes("oneOf"),
        not_=read.node(read.raw.get("not"), "not"),
    )


def _traits(read: "_Reader") -> Traits:
    list_type = read.optional("x-kubernetes-list-type", str, "string")
    map_type = read.optional("x-kubernetes-map-type", str, "string")
    return Traits(
        is_int_or_string=read.flag("x-kubernetes-int-or-string"),
        preserves_unknown=read.flag(_PRESERVE),
        is_embedded=read.flag("x-kubernetes-embedded-resource"),
        list_type=list_type,
        list_keys=tuple(read.list_of("x-kubernetes-list-map-keys", str)),
        map_type=map_type,
        cel=tuple(read.list_of("x-kubernetes-validations", dict)),
    )


class _Reader:
    """Reads the keywords of one schema, refusing values of a wrong type."""

    def __init__(self, raw: Obj, path: str) -> None:
        self.raw, self.path = raw, path

    def optional(self, key: str, wanted: type | tuple[type, ...], go_type: str) -> Any:
        value = self.raw.get(key)
        if value is None:
            return None
        is_bool = isinstance(value, bool) and wanted is not bool
        if is_bool or not isinstance(value, wanted):
            raise _misfit(value, f"{self.path}.{key}", go_type)
        return value

    def text(self, key: str) -> str:
        return str(self.optional(key, str, "string") or "")

    def flag(self, key: str) -> bool:
        return bool(self.optional(key, bool, "bool"))

    def number(self, key: str) -> Number | None:
        found: Number | None = self.optional(key, (int, float), "float64")
        return found

    def integer(self, key: str) -> int | None:
        found: int | None = self.optional(key, int, "int64")
        return found

    def list_of(self, key: str, wanted: type) -> list[Any]:
        found: list[Any] = self.optional(key, list, "[]") or []
        for item in found:
            if not isinstance(item, wanted):
                raise _misfit(item, f"{self.path}.{key}", wanted.__name__)
        return found

    def node(self, raw: Any, key: str) -> Schema | None:
        return None if raw is None else _node(raw, f"{self.path}.{key}")

    def node_or_flag(self, key: str) -> Schema | bool | None:
        raw = self.raw.get(key)
        return raw if isinstance(raw, bool) else self.node(raw, key)

    def nodes(self, key: str) -> tuple[Schema, ...]:
        return tuple(_node(raw, f"{self.path}.{key}") for raw in self.list_of(key, object))

    def nodes_by_name(self, key: str) -> dict[str, Schema]:
        found = self.optional(key, dict, "map[string]JSONSchemaProps") or {}
        return {name: _node(raw, f"{self.path}.{key}") for name, raw in found.items()}


def _misfit(value: Any, path: str, go_type: str) -> ApiError:
    return bad_request(
        f"json: cannot unmarshal {kind_of(value)} into Go struct field JSONSchemaProps.{path} "
        f"of type {go_type}"
    )
