"""What ``/openapi/v3`` publishes: one document a group and version, and the index of them.

Owns the documents as objects; caching bytes and answering conditional requests is the HTTP layer's
business. Mirrors apiextensions-apiserver's ``controller/openapi/builder`` for custom resources and
names built-in components as kube-apiserver does.

>>> component_name("cluster.open-cluster-management.io", "v1", "ManagedCluster")
'io.open-cluster-management.cluster.v1.ManagedCluster'
>>> component_name("", "v1", "Secret")
'io.k8s.api.core.v1.Secret'
>>> component_name("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition'
>>> index({"api/v1": "AB"})
{'paths': {'api/v1': {'serverRelativeURL': '/openapi/v3/api/v1?hash=AB'}}}
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hub.meta import Obj
from hub.meta.protobuf.tables import KINDS, MESSAGES
from hub.meta.schema.builtin import message_schema
from hub.meta.schema.operations import META, Target, collection_item, object_item

_BUILTIN_GROUPS = {version.rpartition("/")[0] for version, _ in KINDS}
_REF = "#/components/schemas/"
_SHARED = (
    *("ObjectMeta", "ListMeta", "OwnerReference", "ManagedFieldsEntry", "DeleteOptions"),
    *("Preconditions", "Status", "StatusDetails", "StatusCause"),
)
_API_VERSION: Obj = {"type": "string", "description": "The group and version of the object"}
_KIND: Obj = {"type": "string", "description": "The kind of the object"}
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


@dataclass(frozen=True, slots=True)
class SubDoc:
    """A subresource; without a kind of its own it has that of the resource.

    `is_told`: its operations name its own kind; those of a custom kind's Scale name the resource's.
    """

    name: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""
    kind: str = ""
    is_told: bool = True


@dataclass(frozen=True, slots=True)
class KindDoc:
    """What is published of a kind in one version.

    `schema` is a CRD's openAPIV3Schema or what `hub.meta.schema.builtin.builtin_schema` gives; None
    = an object of which nothing is said. `is_custom` kinds know no strategic merge patch.
    `selectable` are the fields of field selectors, without the leading dot.
    """

    kind: str
    plural: str
    is_namespaced: bool
    verbs: tuple[str, ...]
    schema: Obj | None = None
    subresources: tuple[SubDoc, ...] = ()
    is_custom: bool = True
    list_kind: str = ""
    selectable: tuple[str, ...] = ()
    parts: Mapping[str, Obj] = field(default_factory=dict)
    """Components that `schema` refers to, by name."""


def document_path(group: str, version: str) -> str:
    """Return where the document of a group and version stands, below ``/openapi/v3/``."""
    return f"apis/{group}/{version}" if group else f"api/{version}"


def content_hash(body: bytes) -> str:
    """Return the hash that the index gives for a document's bytes, and its ETag."""
    return hashlib.sha512(body).hexdigest().upper()


def index(hashes: Mapping[str, str]) -> Obj:
    """Return the answer of ``/openapi/v3``: where each document is; `hashes` by document path."""
    paths = {
        path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
        for path, digest in sorted(hashes.items())
    }
    return {"paths": paths}


def component_name(group: str, version: str, kind: str) -> str:
    """Return the name of a kind's schema in a document."""
    if group == "apiextensions.k8s.io":
        return f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}"
    if group in _BUILTIN_GROUPS:
        return f"io.k8s.api.{group.partition('.')[0] or 'core'}.{version}.{kind}"
    return f"{'.'.join(reversed(group.split('.')))}.{version}.{kind}"


def group_version_document(
    group: str, version: str, kinds: Sequence[KindDoc], *, release: str = ""
) -> Obj:
    """Return the document of a group and version; `release` is the server's version."""
    schemas: Obj = dict(_shared_schemas(group, version))
    paths: Obj = {}
    for kind in kinds:
        schemas |= {**_kind_schemas(group, version, kind), **kind.parts}
        for sub in kind.subresources:
            if sub.kind:
                name = component_name(sub.group, sub.version, sub.kind)
                schemas.setdefault(name, _foreign_schema(sub))
        paths |= {path: item for path, item in _paths(group, version, kind) if item is not None}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": release or "unversioned"},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def published_schema(raw: Obj | None) -> Obj:
    """Return a kind's schema as it is published: types and metadata said, int-or-string told."""
    if raw is None:
        return {"type": "object"}
    schema = _published(raw)
    given = schema.get("properties") or {}
    return schema | {"properties": given | _type_meta()}


def _published(raw: Any) -> Obj:
    schema: Obj = dict(raw)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        schema["properties"] = {name: _published(below) for name, below in properties.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            schema[key] = _published(schema[key])
    if schema.get("x-kubernetes-embedded-resource"):
        schema["properties"] = (schema.get("properties") or {}) | _type_meta()
        required = list(schema.get("required") or ())
        schema["required"] = [*required, *(k for k in ("kind", "apiVersion") if k not in required)]
    if schema.get("x-kubernetes-int-or-string"):
        _tell_int_or_string(schema)
    return schema


def _tell_int_or_string(schema: Obj) -> None:
    first = (schema.get("allOf") or [{}])[0]
    if schema.get("anyOf") == _INT_OR_STRING or first.get("anyOf") == _INT_OR_STRING:
        return
    if schema.get("anyOf"):
        schema["allOf"] = [{"anyOf": _INT_OR_STRING}, *(schema.get("allOf") or ())]
    else:
        schema["anyOf"] = _INT_OR_STRING


def _type_meta() -> Obj:
    metadata = {"description": "What every object has", "allOf": [_ref("ObjectMeta")]}
    return {"apiVersion": _API_VERSION, "kind": _KIND, "metadata": metadata}


def _ref(message: str) -> Obj:
    return {"$ref": f"{_REF}{META}.{message}"}


def _shared_schemas(group: str, version: str) -> Iterator[tuple[str, Obj]]:
    for name in _SHARED:
        schema = message_schema(MESSAGES[name], metadata={"allOf": [_ref("ListMeta")]})
        if name in ("DeleteOptions", "Status"):
            types = {"apiVersion": _API_VERSION, "kind": _KIND}
            gvk_group, gvk_version = (group, version) if name == "DeleteOptions" else ("", "v1")
            schema["properties"] |= types
            schema |= _gvk(gvk_group, gvk_version, name)
        yield f"{META}.{name}", schema
    yield f"{META}.Patch", {"type": "object", "description": "A patch, in the form its type says"}


def _gvk(group: str, version: str, kind: str) -> Obj:
    gvk = {"group": group, "kind": kind, "version": version}
    return {"x-kubernetes-group-version-kind": [gvk]}


def _kind_schemas(group: str, version: str, kind: KindDoc) -> Obj:
    name = component_name(group, version, kind.kind)
    list_kind = kind.list_kind or f"{kind.kind}List"
    selectable = [{"fieldPath": path} for path in kind.selectable]
    extra: Obj = {"x-kubernetes-selectable-fields": selectable} if selectable else {}
    found: Obj = {name: published_schema(kind.schema) | _gvk(group, version, kind.kind) | extra}
    if "list" in kind.verbs:
        items = {"type": "array", "items": {"$ref": _REF + name}, "description": "The objects"}
        metadata = {"description": "What every list has", "allOf": [_ref("ListMeta")]}
        found[component_name(group, version, list_kind)] = {
            "description": f"A list of {kind.kind} objects",
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": _API_VERSION,
                "items": items,
                "kind": _KIND,
                "metadata": metadata,
            },
            **_gvk(group, version, list_kind),
            **extra,
        }
    return found


def _foreign_schema(sub: SubDoc) -> Obj:
    api_version = f"{sub.group}/{sub.version}" if sub.group else sub.version
    message = KINDS.get((api_version, sub.kind))
    raw = None if message is None else message_schema(message, metadata={})
    return published_schema(raw) | _gvk(sub.group, sub.version, sub.kind)


def _paths(group: str, version: str, kind: KindDoc) -> Iterator[tuple[str, Obj | None]]:
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    base = f"{root}/namespaces/{{namespace}}" if kind.is_namespaced else root
    target = Target(
        group=group,
        version=version,
        kind=kind.kind,
        component=component_name(group, version, kind.kind),
        list_component=component_name(group, version, kind.list_kind or f"{kind.kind}List"),
        is_namespaced=kind.is_namespaced,
        is_custom=kind.is_custom,
    )
    if kind.is_namespaced:
        yield f"{root}/{kind.plural}", collection_item(target, kind.verbs, across=True)
    yield f"{base}/{kind.plural}", collection_item(target, kind.verbs)
    yield f"{base}/{kind.plural}/{{name}}", object_item(target, kind.verbs)
    for sub in kind.subresources:
        yield f"{base}/{kind.plural}/{{name}}/{sub.name}", _sub_item(target, sub)


def _sub_item(target: Target, sub: SubDoc) -> Obj | None:
    below = replace(target, suffix=sub.name[:1].upper() + sub.name[1:])
    item = object_item(below, sub.verbs)
    if item is None or not sub.kind:
        return item
    component = component_name(sub.group, sub.version, sub.kind)
    return _renamed(item, target.component, component, sub)


def _renamed(item: Obj, old: str, new: str, sub: SubDoc) -> Obj:
    """Return a path item whose objects are of another kind than the resource."""
    gvk = {"group": sub.group, "version": sub.version, "kind": sub.kind}

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                k: gvk if k == "x-kubernetes-group-version-kind" and sub.is_told else walk(v)
                for k, v in value.items()
            }
        if isinstance(value, list):
            return [walk(v) for v in value]
        return f"{_REF}{new}" if value == f"{_REF}{old}" else value

    renamed: Obj = walk(item)
    return renamed
