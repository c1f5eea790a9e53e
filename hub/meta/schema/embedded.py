"""Resources inside resources (``x-kubernetes-embedded-resource``): their type and metadata.

Mirrors apiextensions-apiserver's ``schema/objectmeta/validation.go`` and apimachinery's
``api/validation/objectmeta.go``: apiVersion and kind must be there, metadata may be left out.

>>> [c.field for c in resource_causes({"kind": "ConfigMap"}, "spec.manifest")]
['spec.manifest.apiVersion']
"""

import re
from collections.abc import Iterator
from typing import Any

from hub.meta import Obj, objectmeta
from hub.meta.errors import ApiError, Cause
from hub.meta.names import (
    annotation_causes,
    label_causes,
    label_key_errors,
    namespace_errors,
    path_segment_errors,
)
from hub.meta.schema.gotext import show
from hub.meta.schema.structural import Schema

_KIND = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
_KIND_RULE = (
    "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case "
    "alphanumeric characters or '-', start with an alphabetic character, and end with an "
    "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_KIND_LENGTH_RULE = "may have mixed case, but should otherwise match: must be no more than 63 bytes"

_SURE_KIND = re.compile("[A-Za-z][A-Za-z0-9]{0,62}")
_SURE_VERSION = re.compile("(?:[a-z0-9.-]+/)?[a-z0-9]+")
_SURE_NAME = re.compile("[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_SURE_VALUE = re.compile("(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_SURE_KEY = re.compile(
    "(?:[a-z0-9]+(?:[-.][a-z0-9]+)*/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_SURE_KEY_LENGTH = 253


def is_sure(obj: Obj) -> bool:
    """Whether a resource is an ordinary one that certainly is valid; most are.

    >>> is_sure({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})
    True
    """
    api_version, kind, metadata = obj.get("apiVersion"), obj.get("kind"), obj.get("metadata")
    if not (type(api_version) is type(kind) is str and type(metadata) is dict):
        return False
    if not (_SURE_VERSION.fullmatch(api_version) and _SURE_KIND.fullmatch(kind)):
        return False
    for key, value in metadata.items():
        if key in ("name", "namespace"):
            if type(value) is not str or not _SURE_NAME.fullmatch(value):
                return False
        elif key != "labels" or type(value) is not dict or not _are_sure(value):
            return False
    return True


def _are_sure(labels: Obj) -> bool:
    for key, value in labels.items():
        if len(key) > _SURE_KEY_LENGTH or not _SURE_KEY.fullmatch(key):
            return False
        if type(value) is not str or not _SURE_VALUE.fullmatch(value):
            return False
    return True


def embedded_causes(obj: Obj, schema: Schema) -> list[Cause]:
    """Return what is wrong with every resource embedded in an object."""
    return list(_causes(obj, schema, ""))


def resource_causes(obj: Obj, path: str) -> list[Cause]:
    """Return what is wrong with the type and the metadata of one resource at `path`."""
    prefix = f"{path}." if path else ""
    causes = [
        Cause("FieldValueRequired", "Required value", f"{prefix}{key}")
        for key in ("apiVersion", "kind")
        if key not in obj
    ]
    if "apiVersion" in obj:
        causes += _api_version_causes(obj["apiVersion"], f"{prefix}apiVersion")
    if "kind" in obj:
        causes += _kind_causes(obj["kind"], f"{prefix}kind")
    if "metadata" in obj:
        causes += _metadata_causes(obj["metadata"], f"{prefix}metadata")
    return causes


def _causes(value: Any, schema: Schema, path: str) -> Iterator[Cause]:
    if isinstance(value, dict):
        if schema.traits.is_embedded and not is_sure(value):
            yield from resource_causes(value, path)
        for key, item in value.items():
            below = schema.child(key)
            if below is not None:
                shown = f".{key}" if key in schema.properties else f"[{key}]"
                yield from _causes(item, below, (path + shown).removeprefix("."))
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            yield from _causes(item, schema.items, f"{path}[{index}]")


def _api_version_causes(value: Any, path: str) -> list[Cause]:
    if not isinstance(value, str):
        return [_invalid(path, value, "must be a string")]
    if not value:
        return [_invalid(path, value, "must not be empty")]
    if value.count("/") > 1:
        return [_invalid(path, value, f"unexpected GroupVersion string: {value}")]
    return []


def _kind_causes(value: Any, path: str) -> list[Cause]:
    if not isinstance(value, str):
        return [_invalid(path, value, "must be a string")]
    if not value:
        return [_invalid(path, value, "must not be empty")]
    if len(value.encode()) > 63:
        return [_invalid(path, value, _KIND_LENGTH_RULE)]
    return [] if _KIND.fullmatch(value.lower()) else [_invalid(path, value, _KIND_RULE)]


def _metadata_causes(value: Any, path: str) -> list[Cause]:
    if value is None:
        return []
    try:
        objectmeta.check_types({"metadata": value})
    except ApiError as e:
        return [_invalid(path, value, e.message.replace("ObjectMeta.metadata.", "ObjectMeta."))]
    causes: list[Cause] = []
    for key, is_prefix in (("generateName", True), ("name", False)):
        errors = path_segment_errors(value.get(key) or "", prefix=is_prefix)
        causes += [_invalid(f"{path}.{key}", value[key], e) for e in errors]
    if namespace := value.get("namespace"):
        causes += [_invalid(f"{path}.namespace", namespace, e) for e in namespace_errors(namespace)]
    causes += label_causes(value.get("labels") or {}, f"{path}.labels")
    causes += annotation_causes(value.get("annotations") or {}, f"{path}.annotations")
    for owner in value.get("ownerReferences") or ():  # apimachinery leaves the index out
        causes += _owner_causes(owner, f"{path}.ownerReferences")
    for finalizer in value.get("finalizers") or ():
        causes += [
            _invalid(f"{path}.finalizers", finalizer, e) for e in label_key_errors(finalizer)
        ]
    return causes


def _owner_causes(owner: Obj, path: str) -> list[Cause]:
    rules = {
        "apiVersion": "version must not be empty",
        "kind": "must not be empty",
        "name": "must not be empty",
        "uid": "must not be empty",
    }
    return [_invalid(f"{path}.{k}", "", rule) for k, rule in rules.items() if not owner.get(k)]


def _invalid(path: str, value: Any, detail: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {show(value)}: {detail}", path)
