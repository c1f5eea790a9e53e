"""The schemas of the built-in kinds, derived from the tables that decode their protobuf.

Owns what the tables do not say: descriptions, which lists are merged by a key, and which fields a
client must set. Metadata is left to `hub.meta.schema.openapi`, as for custom resources.

>>> builtin_schema("v1", "ConfigMap")["properties"]["immutable"]["type"]
'boolean'
>>> builtin_schema("v1", "Nothing")

A message that contains itself stands in a component of its own, which `ENDLESS` names.
"""

from collections.abc import Iterable

from hub.meta import Obj
from hub.meta.protobuf.schema import FieldSpec, MessageSpec, Presence, Shape
from hub.meta.protobuf.tables import KINDS, MESSAGES
from hub.meta.schema.builtin_text import describe

_SCALARS: dict[str, Obj] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "double": {"type": "number", "format": "double"},
    "rawjson": {},
    "strings": {"type": "array", "items": {"type": "string"}},
}
_APIEXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
ENDLESS = {"JSONSchemaProps": f"{_APIEXTENSIONS}.JSONSchemaProps"}
"""Messages that contain themselves, with the names of their components."""

_MERGED_BY = {
    "ServiceAccount.secrets": "name",
    "ObjectMeta.ownerReferences": "uid",
    "NamespaceStatus.conditions": "type",
    "JSONSchemaProps.x-kubernetes-validations": "rule",
}
"""Lists that a strategic merge patch merges, with the key of their items."""

_MAPS = {
    "ServiceAccount.secrets",
    "ObjectMeta.ownerReferences",
    "NamespaceStatus.conditions",
    "CsrStatus.conditions",
    "CrdStatus.conditions",
    "JSONSchemaProps.x-kubernetes-validations",
}
"""Lists whose items server-side apply tells apart by the same key (``type`` for conditions)."""

_SETS = {"ObjectMeta.finalizers"}
_PLAIN = _MAPS | _SETS
"""Lists that are not atomic."""

_OBJECTS = {"ManagedFieldsEntry.fieldsV1"}
"""Raw JSON that is always an object."""

_ATOMIC_OBJECTS = {
    *("ObjectReference", "LocalObjectReference", "OwnerReference", "RoleRef", "Subject"),
    "LabelSelector",
}

_REQUIRED = {
    "Event": ("metadata", "involvedObject"),
    "events.Event": ("eventTime",),
    "CertificateSigningRequest": ("spec",),
    "RoleBinding": ("roleRef",),
    "ClusterRoleBinding": ("roleRef",),
    "PolicyRule": ("verbs",),
    "events.EventSeries": ("lastObservedTime",),
    "TokenReview": ("spec",),
    "TokenReviewSpec": ("token",),
    "SubjectAccessReview": ("spec",),
    "LocalSubjectAccessReview": ("spec",),
    "SelfSubjectAccessReview": ("spec",),
    "SelfSubjectRulesReview": ("spec",),
    "RulesStatus": ("resourceRules", "nonResourceRules"),
    "ResourceRule": ("verbs",),
    "NonResourceRule": ("verbs",),
    "CustomResourceDefinition": ("spec",),
    "CrdSpec": ("names", "versions"),
    "CrdWebhook": ("conversionReviewVersions",),
}
"""Fields that must be set, beside those that are always printed."""

_OPTIONAL = {
    *("Event.reportingComponent", "Event.reportingInstance"),
    *("RoleRef.apiGroup", "TokenRequestStatus.token"),
}
"""Fields that are always printed and need not be set."""


def builtin_schema(api_version: str, kind: str) -> Obj | None:
    """Return the schema of a built-in kind, None for a kind that has no table.

    Self-contained but for metadata, which is an empty object here, and for `ENDLESS`.
    """
    message = KINDS.get((api_version, kind))
    return None if message is None else message_schema(message, metadata={"type": "object"})


def endless_schemas(api_version: str, kind: str) -> dict[str, Obj]:
    """Return the components that a built-in kind's schema refers to."""
    if kind != "CustomResourceDefinition" or (api_version, kind) not in KINDS:
        return {}
    return {name: message_schema(MESSAGES[m], metadata={}) for m, name in ENDLESS.items()}


def message_schema(message: MessageSpec, *, metadata: Obj) -> Obj:
    """Return the schema of one message; `metadata` stands for every ObjectMeta and ListMeta."""
    properties = {f.name: _field(message, f, metadata) for f in message.fields}
    schema: Obj = {"type": "object"}
    if properties:
        schema["properties"] = properties
    description = describe(message.name)
    if description:
        schema = {"description": description, **schema}
    always = [
        f.name
        for f in message.fields
        if f.presence is Presence.ALWAYS and f"{message.name}.{f.name}" not in _OPTIONAL
    ]
    required = _in_order(message, [*always, *_REQUIRED.get(message.name, ())])
    if required:
        schema["required"] = required
    if message.name in _ATOMIC_OBJECTS:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


_EITHER = "JSONSchemaPropsOr"
"""Messages that are one of two things in JSON, and so of no type."""


def _in_order(message: MessageSpec, names: Iterable[str]) -> list[str]:
    wanted = set(names)
    return [f.name for f in message.fields if f.name in wanted]


def _field(message: MessageSpec, field: FieldSpec, metadata: Obj) -> Obj:
    if field.type in ("ObjectMeta", "ListMeta"):
        return metadata
    path = f"{message.name}.{field.name}"
    one = {"type": "object"} if path in _OBJECTS else _one(field.type, metadata)
    description = describe(path)
    if field.shape is Shape.ONE:
        schema = {**one, "description": description or one.get("description", "")}
    elif field.shape is Shape.MAP:
        schema = {"description": description, "type": "object", "additionalProperties": one}
    else:
        schema = {"description": description, "type": "array", "items": one, **_list_traits(path)}
    return {k: v for k, v in schema.items() if v != ""}


def _one(type_: str, metadata: Obj) -> Obj:
    """Return the schema of one value of a type: of a message's or of a scalar's."""
    if type_ in ENDLESS:
        return {"allOf": [{"$ref": f"#/components/schemas/{ENDLESS[type_]}"}]}
    if type_.startswith(_EITHER):
        return {"description": describe(type_)}
    if type_ in _SCALARS:
        return dict(_SCALARS[type_])
    return message_schema(MESSAGES[type_], metadata=metadata)


def _list_traits(path: str) -> Obj:
    traits: Obj = {}
    if path in _MAPS:
        key = _MERGED_BY.get(path, "type")
        traits |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
    elif path in _SETS:
        traits |= {"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"}
    elif path not in _PLAIN:
        traits["x-kubernetes-list-type"] = "atomic"
    if path in _MERGED_BY:
        traits["x-kubernetes-patch-strategy"] = "merge"
        traits["x-kubernetes-patch-merge-key"] = _MERGED_BY[path]
    return traits
