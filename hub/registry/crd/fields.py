"""The fields of a CustomResourceDefinition, and what becomes of those it does not have.

Owns facts of apiextensions.k8s.io/v1: names and types. A schema's own keywords are known by name
only; `hub.meta.schema.structural` reads their values.
"""

from collections.abc import Iterator

from hub.meta import Obj
from hub.meta.schema import metadata
from hub.registry.shape import Shape

SCHEMA_FIELD = "openAPIV3Schema"
_NAMES: dict[str, Shape] = {
    "plural": str,
    "singular": str,
    "shortNames": [str],
    "kind": str,
    "listKind": str,
    "categories": [str],
}
_SCALE: dict[str, Shape] = {
    "specReplicasPath": str,
    "statusReplicasPath": str,
    "labelSelectorPath": str,
}
_COLUMN: dict[str, Shape] = {
    "name": str,
    "type": str,
    "format": str,
    "description": str,
    "priority": int,
    "jsonPath": str,
}
_VERSION: dict[str, Shape] = {
    "name": str,
    "served": bool,
    "storage": bool,
    "deprecated": bool,
    "deprecationWarning": str,
    "schema": {SCHEMA_FIELD: dict},
    "subresources": {"status": dict, "scale": _SCALE},
    "additionalPrinterColumns": [_COLUMN],
    "selectableFields": [{"jsonPath": str}],
}
_SERVICE: dict[str, Shape] = {"namespace": str, "name": str, "path": str, "port": int}
_WEBHOOK: dict[str, Shape] = {
    "clientConfig": {"url": str, "caBundle": str, "service": _SERVICE},
    "conversionReviewVersions": [str],
}
_CONDITION: dict[str, Shape] = {
    "type": str,
    "status": str,
    "lastTransitionTime": str,
    "reason": str,
    "message": str,
    "observedGeneration": int,
}
FIELDS: dict[str, Shape] = {
    "spec": {
        "group": str,
        "names": _NAMES,
        "scope": str,
        "versions": [_VERSION],
        "conversion": {"strategy": str, "webhook": _WEBHOOK},
        "preserveUnknownFields": bool,
    },
    "status": {
        "conditions": [_CONDITION],
        "acceptedNames": _NAMES,
        "storedVersions": [str],
        "observedGeneration": int,
    },
}
_ROOT = frozenset({"apiVersion", "kind"})
_KEYWORDS = frozenset(
    {
        *("id", "$schema", "$ref", "description", "type", "format", "title", "default", "enum"),
        *("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "multipleOf", "pattern"),
        *("maxLength", "minLength", "maxItems", "minItems", "uniqueItems", "maxProperties"),
        *("minProperties", "required", "items", "allOf", "oneOf", "anyOf", "not", "properties"),
        *("additionalProperties", "patternProperties", "dependencies", "additionalItems"),
        *("definitions", "externalDocs", "example", "nullable", "x-kubernetes-list-type"),
        *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"),
        *("x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"),
        "x-kubernetes-validations",
    }
)
_SCHEMAS = ("items", "not", "additionalProperties", "additionalItems")
_SCHEMA_LISTS = ("allOf", "oneOf", "anyOf")
_SCHEMA_MAPS = ("properties", "patternProperties", "definitions")


def prune(obj: Obj) -> tuple[Obj, list[str]]:
    """Return a definition without the fields that there are none of, and their paths."""
    unknown: list[str] = []
    kept = {k: v for k, v in obj.items() if k in _ROOT}
    if "metadata" in obj:
        unknown += metadata.unknown(obj["metadata"], "metadata")
        kept["metadata"] = metadata.clean(obj["metadata"])
    rest = {k: v for k, v in obj.items() if k not in kept}
    kept |= _object(rest, FIELDS, "", unknown)
    return kept, unknown


def _object(obj: Obj, fields: dict[str, Shape], path: str, unknown: list[str]) -> Obj:
    kept: Obj = {}
    for name, value in obj.items():
        at = f"{path}.{name}" if path else name
        if name not in fields:
            unknown.append(at)
        elif name == SCHEMA_FIELD:
            kept[name] = _schema(value, at, unknown)
        else:
            kept[name] = _value(value, fields[name], at, unknown)
    return kept


def _value(value: object, shape: Shape, path: str, unknown: list[str]) -> object:
    if isinstance(shape, dict) and isinstance(value, dict):
        return _object(value, shape, path, unknown)
    if isinstance(shape, list) and isinstance(value, list):
        return [_value(v, shape[0], f"{path}[{at}]", unknown) for at, v in enumerate(value)]
    return value


def _schema(raw: object, path: str, unknown: list[str]) -> object:
    """Return a schema without unknown keywords; values of a wrong type are left to its reader."""
    if not isinstance(raw, dict):
        return raw
    unknown += [f"{path}.{key}" for key in raw if key not in _KEYWORDS]
    kept = {key: value for key, value in raw.items() if key in _KEYWORDS}
    for key, at, below in _nested(kept, path):
        kept[key] = _schema(below, at, unknown)
    for key in _SCHEMA_LISTS:
        if isinstance(kept.get(key), list):
            kept[key] = [_schema(v, f"{path}.{key}[{i}]", unknown) for i, v in enumerate(kept[key])]
    for key in _SCHEMA_MAPS:
        if isinstance(kept.get(key), dict):
            kept[key] = {
                name: _schema(v, f"{path}.{key}.{name}", unknown) for name, v in kept[key].items()
            }
    return kept


def _nested(kept: Obj, path: str) -> Iterator[tuple[str, str, Obj]]:
    for key in _SCHEMAS:
        if isinstance(kept.get(key), dict):
            yield key, f"{path}.{key}", kept[key]
