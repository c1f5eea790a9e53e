from collections.abc import Iterator

from hub.meta.protobuf.schema import MessageSpec
from hub.meta.protobuf.tables import MESSAGES
from hub.registry.crd.fields import FIELDS, SCHEMA_FIELD, prune
from hub.registry.shape import Shape


def test_a_definition_of_known_fields_stays_as_it_is() -> None:
    obj = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "a.b.c"},
        "spec": {
            "group": "b.c",
            "versions": [
                {
                    "name": "v1",
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"odd name": {"x-kubernetes-int-or-string": True}},
                            "anyOf": [{"required": ["x"]}],
                        }
                    },
                    "subresources": {"status": {"anything": 1}},
                }
            ],
        },
    }
    assert prune(obj) == (obj, [])


def test_unknown_fields_are_named_by_their_paths() -> None:
    schema = {
        "typ": "object",
        "properties": {"a": {"x": 1}},
        "items": {"y": 1},
        "oneOf": [{"z": 1}],
    }
    obj = {
        "more": 1,
        "metadata": {"odd": 1},
        "spec": {"versions": [{"schema": {"openAPIV3Schema": schema}, "serve": True}]},
        "status": {"conditions": [{"why": "x"}]},
    }
    pruned, unknown = prune(obj)
    at = "spec.versions[0].schema.openAPIV3Schema"
    assert unknown == [
        "metadata.odd",
        "more",
        f"{at}.typ",
        f"{at}.items.y",
        f"{at}.oneOf[0].z",
        f"{at}.properties.a.x",
        "spec.versions[0].serve",
        "status.conditions[0].why",
    ]
    kept = pruned["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert kept == {"properties": {"a": {}}, "items": {}, "oneOf": [{}]}


def test_values_of_a_wrong_type_are_left_for_others_to_find() -> None:
    obj = {"spec": {"versions": {"a": 1}, "names": []}}
    assert prune(obj) == (obj, [])


def test_the_fields_are_those_of_the_message_table() -> None:
    message = MESSAGES["CustomResourceDefinition"]
    assert set(_paths(FIELDS)) == set(_told(message)) - {"metadata"}


def _paths(shape: Shape, path: str = "") -> Iterator[str]:
    inner = shape[0] if isinstance(shape, list) else shape
    for name, below in inner.items() if isinstance(inner, dict) else ():
        yield f"{path}{name}"
        yield from _paths(below, f"{path}{name}.")


def _told(message: MessageSpec, path: str = "") -> Iterator[str]:
    for field in message.fields:
        yield f"{path}{field.name}"
        if field.type in MESSAGES and field.name not in ("metadata", SCHEMA_FIELD):
            yield from _told(MESSAGES[field.type], f"{path}{field.name}.")
