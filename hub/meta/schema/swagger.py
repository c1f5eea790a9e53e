"""``/openapi/v2``: the schemas of the v3 documents in one document, as JSON or as protobuf.

kubectl asks for it where a manifest is a List, of a kind that nobody serves, or to be explained in
the old form; without an answer it fails. It holds what clients check fields by: types, names,
references and the kind's own; as JSON bounds and patterns, too. Operations are in ``/openapi/v3``
only. Mirrors apiextensions-apiserver's ``controller/openapi/v2``: where any value may stand,
nothing is said, as clients would refuse what the server takes.

>>> definition({"type": "object", "properties": {"a": {"type": "string", "nullable": True}}})
{'type': 'object', 'properties': {'a': {}}}
"""

from collections.abc import Iterable, Iterator, Mapping

from hub.meta import Obj
from hub.meta.codec import json
from hub.meta.protobuf.wire import bytes_field

_V3, _V2 = "#/components/schemas/", "#/definitions/"
_BUILT_IN = "io.k8s."
_KIND = "x-kubernetes-group-version-kind"
_KEPT = (
    *("title", "description", "format", "type", "default", "enum", "required", "pattern"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)
# field numbers of openapi.v2.Schema in github.com/google/gnostic-models
_REF, _FORMAT, _DESCRIPTION, _DEFAULT, _REQUIRED, _ENUM = 1, 2, 4, 5, 19, 20
_ADDITIONAL, _TYPE, _ITEMS, _PROPERTIES, _EXTENSION = 21, 22, 23, 25, 31


def swagger(documents: Iterable[Obj], release: str) -> Obj:
    """Return the v2 document with the schemas of all v3 `documents`."""
    definitions: dict[str, Obj] = {}
    for document in documents:
        for name, schema in document["components"]["schemas"].items():
            found = definition(schema)
            if name.startswith(_BUILT_IN):
                found.pop("required", None)  # the server fills in some of what its answers have
            before = definitions.setdefault(name, found)
            kinds = before.get(_KIND) or []
            # DeleteOptions are of every group and version
            kinds += [kind for kind in found.get(_KIND) or () if kind not in kinds]
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": release},
        "paths": {},
        "definitions": dict(sorted(definitions.items())),
    }


def definition(schema: Obj) -> Obj:
    """Return a v3 schema as a definition of v2."""
    reference = schema.get("$ref") or next(
        (part["$ref"] for part in schema.get("allOf") or () if "$ref" in part), None
    )
    if reference is not None:
        told = {key: schema[key] for key in ("description",) if key in schema}
        return {"$ref": reference.replace(_V3, _V2), **told}
    found = {key: schema[key] for key in _KEPT if key in schema}
    found |= {key: value for key, value in schema.items() if key.startswith("x-kubernetes-")}
    if isinstance(found.get(_KIND), list):
        found[_KIND] = list(found[_KIND])
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("nullable")
    if schema.get("x-kubernetes-int-or-string") or schema.get("nullable"):
        found.pop("type", None)
    if not is_open:
        found |= _below(schema)
    if found.get("type") == "array" and "items" not in found:
        del found["type"]  # clients refuse the whole document for a list of nothing
    return found


def _below(schema: Obj) -> Obj:
    found: Obj = {}
    if isinstance(schema.get("items"), dict):
        found["items"] = definition(schema["items"])
    if schema.get("properties"):
        found["properties"] = {k: definition(v) for k, v in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), dict):
        found["additionalProperties"] = definition(schema["additionalProperties"])
    return found


def encode_swagger(document: Obj) -> bytes:
    """Return a document of `swagger` as gnostic's message ``openapi.v2.Document``."""
    info = document["info"]
    pieces = [
        bytes_field(1, document["swagger"].encode()),
        bytes_field(
            2, bytes_field(1, info["title"].encode()) + bytes_field(2, info["version"].encode())
        ),
        bytes_field(8, b""),
        bytes_field(9, _named_schemas(document["definitions"])),
    ]
    return b"".join(pieces)


def _named_schemas(schemas: Mapping[str, Obj]) -> bytes:
    return b"".join(
        bytes_field(1, bytes_field(1, name.encode()) + bytes_field(2, _schema(schema)))
        for name, schema in schemas.items()
    )


def _schema(schema: Obj) -> bytes:
    return b"".join(_schema_fields(schema))


def _schema_fields(schema: Obj) -> Iterator[bytes]:
    for key, number in (("$ref", _REF), ("format", _FORMAT), ("description", _DESCRIPTION)):
        if schema.get(key):
            yield bytes_field(number, schema[key].encode())
    if "default" in schema:
        yield bytes_field(_DEFAULT, _any(schema["default"]))
    for name in schema.get("required") or ():
        yield bytes_field(_REQUIRED, name.encode())
    for value in schema.get("enum") or ():
        yield bytes_field(_ENUM, _any(value))
    if "additionalProperties" in schema:
        yield bytes_field(_ADDITIONAL, bytes_field(1, _schema(schema["additionalProperties"])))
    if "type" in schema:
        yield bytes_field(_TYPE, bytes_field(1, schema["type"].encode()))
    if "items" in schema:
        yield bytes_field(_ITEMS, bytes_field(1, _schema(schema["items"])))
    if schema.get("properties"):
        yield bytes_field(_PROPERTIES, _named_schemas(schema["properties"]))
    for key, value in schema.items():
        if key.startswith("x-"):
            named = bytes_field(1, key.encode()) + bytes_field(2, _any(value))
            yield bytes_field(_EXTENSION, named)


def _any(value: object) -> bytes:
    """Return gnostic's Any, which holds YAML; JSON is YAML."""
    return bytes_field(2, json.encode(value) + b"\n")
