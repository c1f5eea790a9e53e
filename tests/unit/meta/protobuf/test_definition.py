"""CustomResourceDefinitions as protobuf: schemas hold schemas, and some fields are one of two."""

import json
from pathlib import Path

import pytest

from hub.meta import Obj
from hub.meta.protobuf.decoder import MAX_DEPTH, Decoder
from hub.meta.protobuf.encoder import encode_message
from hub.meta.protobuf.tables import MESSAGES
from hub.meta.protobuf.wire import WireError, bytes_field

GOLDEN = Path(__file__).parents[3] / "golden" / "definitions"
SPEC = MESSAGES["CustomResourceDefinition"]
SCHEMA = MESSAGES["JSONSchemaProps"]


def there_and_back(schema: Obj) -> Obj:
    raw = encode_message(SCHEMA, schema)
    return Decoder(raw).decode(SCHEMA, 0, len(raw))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_a_known_definition_comes_back_as_it_was(path: Path) -> None:
    sent = json.loads(path.read_text())
    for key in ("apiVersion", "kind"):
        del sent[key]
    for version in sent["spec"]["versions"]:
        if not version["additionalPrinterColumns"]:
            del version["additionalPrinterColumns"]
    raw = encode_message(SPEC, sent)
    found = Decoder(raw).decode(SPEC, 0, len(raw))
    found.pop("status", None)
    found["metadata"].pop("creationTimestamp", None)
    assert found["spec"] == sent["spec"]
    assert found["metadata"]["name"] == sent["metadata"]["name"]


@pytest.mark.parametrize(
    "schema",
    [
        {"maximum": 0, "minimum": -1.5, "multipleOf": 3},
        {"default": False, "enum": [0, None, "a", {"b": []}]},
        {"items": {"type": "string"}},
        {"items": [{"type": "string"}, {"type": "integer"}]},
        {"additionalProperties": False},
        {"additionalProperties": True},
        {"additionalProperties": {"type": "object", "properties": {"a": {}}}},
        {"$ref": "#/a", "not": {"required": ["a"]}, "x-kubernetes-list-map-keys": ["a"]},
    ],
    ids=str,
)
def test_a_schema_comes_back_as_it_was(schema: Obj) -> None:
    assert there_and_back(schema) == schema


def test_schemas_nest_no_deeper_than_they_may() -> None:
    raw = b""
    for _ in range(MAX_DEPTH):
        raw = bytes_field(28, raw)
    with pytest.raises(WireError, match="messages deep"):
        Decoder(raw).decode(SCHEMA, 0, len(raw))
