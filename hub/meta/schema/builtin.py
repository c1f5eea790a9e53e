"""The schemas of the built-in kinds, derived from the tables that decode their protobuf.

Owns what the tables do not say: descriptions, which lists are merged by a key, and which fields a
client must set. Metadata is left to `hub.meta.schema.openapi`, as for custom resources.

>>> builtin_schema("v1", "ConfigMap")["properties"]["immutable"]["type"]
'boolean'
>>> builtin_schema("v1", "Nothing")
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
    "rawjson": {"type": "object"},
    "strings": {"type": "array", "items": {"type": "string"}},
}

_MERGED_BY = {
    "ServiceAccount.secrets": "name",
    "ServiceAccount.imagePullSecrets": "name",
    "ObjectMeta.ownerReferences": "uid",
    "NamespaceStatus.conditions": "type",
}
"""Lists that a strategic merge patch merges, with the key of their items."""

_MAPS = {
    "ServiceAccount.secrets",
    "ObjectMeta.ownerReferences",
    "NamespaceStatus.conditions",
    "CsrStatus.conditions",
}
"""Lists whose items server-side apply tells apart by the same key (``type`` for conditions)."""

_SETS = {"ObjectMeta.finalizers"}
_PLAIN = {"NamespaceSpec.finalizers", "StatusDetails.causes"} | _MAPS | _SETS
"""Lists that are not atomic."""

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
    "TokenRequest": ("spec",),
    "TokenRequestSpec": ("audiences",),
    "TokenRequestStatus": ("expirationTimestamp",),
    "TokenReview": ("spec",),
    "SubjectAccessReview": ("spec",),
    "LocalSubjectAccessReview": ("spec",),
    "SelfSubjectAccessReview": ("spec",),
    "SelfSubjectRulesReview": ("spec",),
}


_ENDLESS = {"CustomResourceDefinition"}
"""Kinds with a table that refers to itself; their schema is the registry's."""


def builtin_schema(api_version: str, kind: str) -> Obj | None:
    """Return the schema of a built-in kind, None for a kind that has no table.

    Self-contained but for metadata, which is an empty object here.
    """
    message = None if kind in _ENDLESS else KINDS.get((api_version, kind))
    return None if message is None else message_schema(message, metadata={"type": "object"})


def message_schema(message: MessageSpec, *, metadata: Obj) -> Obj:
    """Return the schema of one message; `metadata` stands for every ObjectMeta and ListMeta."""
    properties = {f.name: _field(message, f, metadata) for f in message.fields}
    schema: Obj = {"type": "object", "properties": properties}
    description = describe(message.name)
    if description:
        schema = {"description": description, **schema}
    always = [f.name for f in message.fields if f.presence is Presence.ALWAYS]
    required = _in_order(message, [*always, *_REQUIRED.get(message.name, ())])
    if required:
        schema["required"] = required
    if message.name in _ATOMIC_OBJECTS:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def _in_order(message: MessageSpec, names: Iterable[str]) -> list[str]:
    wanted = set(names)
    return [f.name for f in message.fields if f.name in wanted]


def _field(message: MessageSpec, field: FieldSpec, metadata: Obj) -> Obj:
    if field.type in ("ObjectMeta", "ListMeta"):
        return metadata
    one = dict(_SCALARS.get(field.type) or message_schema(MESSAGES[field.type], metadata=metadata))
    path = f"{message.name}.{field.name}"
    description = describe(path)
    if field.shape is Shape.ONE:
        schema = {**one, "description": description or one.get("description", "")}
    elif field.shape is Shape.MAP:
        schema = {"description": description, "type": "object", "additionalProperties": one}
    else:
        schema = {"description": description, "type": "array", "items": one, **_list_traits(path)}
    return {k: v for k, v in schema.items() if v != ""}


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
