"""What kubectl looks for in /openapi/v3 is there."""

import json
from collections.abc import Iterator

import pytest

from hub.meta import Obj
from hub.meta.protobuf.tables import KINDS
from hub.meta.schema.builtin import builtin_schema, endless_schemas
from hub.meta.schema.openapi import (
    KindDoc,
    SubDoc,
    content_hash,
    document_path,
    group_version_document,
    index,
    published_schema,
)
from tests.unit.meta.schema.golden import GOLDEN

_ALL = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_GROUP = "work.open-cluster-management.io"
_COMPONENTS = "#/components/schemas/"
_META = f"{_COMPONENTS}io.k8s.apimachinery.pkg.apis.meta.v1"


def _work() -> Obj:
    schemas = json.loads((GOLDEN / "crds.json").read_text(encoding="utf-8"))
    status = SubDoc("status", ("get", "patch", "update"))
    raw = schemas[f"manifestworks.{_GROUP}/v1"]
    kind = KindDoc("ManifestWork", "manifestworks", True, _ALL, raw, (status,))
    return group_version_document(_GROUP, "v1", [kind], release="v1.35.0")


def _core() -> Obj:
    token = SubDoc("token", ("create",), "authentication.k8s.io", "v1", "TokenRequest")
    accounts = KindDoc(
        "ServiceAccount",
        "serviceaccounts",
        True,
        _ALL,
        builtin_schema("v1", "ServiceAccount"),
        (token,),
        is_custom=False,
    )
    raw = builtin_schema("v1", "Namespace")
    spaces = KindDoc("Namespace", "namespaces", False, _ALL, raw, is_custom=False)
    return group_version_document("", "v1", [accounts, spaces])


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for below in value.values():
            yield from _references(below)
    elif isinstance(value, list):
        for below in value:
            yield from _references(below)


def test_a_patch_says_what_it_takes() -> None:
    path = f"/apis/{_GROUP}/v1/namespaces/{{namespace}}/manifestworks/{{name}}"
    patch = _work()["paths"][path]["patch"]
    names = {p["name"] for p in patch["parameters"] if p["in"] == "query"}
    assert names == {"dryRun", "fieldManager", "fieldValidation", "force"}
    kind = {"group": _GROUP, "version": "v1", "kind": "ManifestWork"}
    assert patch["x-kubernetes-group-version-kind"] == kind
    assert sorted(patch["requestBody"]["content"]) == [
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
    ]
    assert patch["operationId"] == ("patchWorkOpenClusterManagementIoV1NamespacedManifestWork")


def test_only_built_in_kinds_take_strategic_patches() -> None:
    patch = _core()["paths"]["/api/v1/namespaces/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
    assert patch["operationId"] == "patchCoreV1Namespace"


def test_there_is_a_path_for_every_way_to_reach_an_object() -> None:
    base = f"/apis/{_GROUP}/v1"
    inside = f"{base}/namespaces/{{namespace}}/manifestworks"
    paths = _work()["paths"]
    assert {path: sorted(set(item) - {"parameters"}) for path, item in paths.items()} == {
        f"{base}/manifestworks": ["get"],
        inside: ["delete", "get", "post"],
        f"{inside}/{{name}}": ["delete", "get", "patch", "put"],
        f"{inside}/{{name}}/status": ["get", "patch", "put"],
    }
    names = [p["name"] for p in paths[f"{inside}/{{name}}"]["parameters"]]
    assert names == ["name", "namespace", "pretty"]


def test_a_subresource_of_another_kind_is_described_as_that_kind() -> None:
    document = _core()
    path = "/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    post = document["paths"][path]["post"]
    assert post["x-kubernetes-group-version-kind"]["kind"] == "TokenRequest"
    wanted = "#/components/schemas/io.k8s.api.authentication.v1.TokenRequest"
    assert wanted in set(_references(post))


@pytest.mark.parametrize("document", [_work(), _core()])
def test_every_reference_leads_somewhere(document: Obj) -> None:
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(_references(document)) <= known


def test_a_kind_and_its_list_are_found_by_group_version_and_kind() -> None:
    schemas = _work()["components"]["schemas"]
    name = "io.open-cluster-management.work.v1.ManifestWork"
    gvk = {"group": _GROUP, "kind": "ManifestWork", "version": "v1"}
    assert schemas[name]["x-kubernetes-group-version-kind"] == [gvk]
    assert schemas[f"{name}List"]["properties"]["items"]["items"] == {
        "$ref": f"#/components/schemas/{name}"
    }
    assert schemas[name]["properties"]["metadata"]["allOf"] == [{"$ref": f"{_META}.ObjectMeta"}]


def test_embedded_resources_have_a_type_and_int_or_string_is_told() -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "required": ["spec"]}
    number: Obj = {"x-kubernetes-int-or-string": True}
    limited: Obj = {"x-kubernetes-int-or-string": True, "anyOf": [{"minimum": 1}]}
    raw: Obj = {"properties": {"e": embedded, "n": number, "m": limited}}
    found = published_schema(raw)["properties"]
    assert found["e"]["required"] == ["spec", "kind", "apiVersion"]
    assert set(found["e"]["properties"]) == {"apiVersion", "kind", "metadata"}
    assert found["n"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert found["m"]["allOf"] == [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]
    assert number == {"x-kubernetes-int-or-string": True}


def test_a_kind_of_which_nothing_is_known_is_an_object() -> None:
    assert published_schema(None) == {"type": "object"}


def test_a_schema_of_schemas_stands_in_a_component_of_its_own() -> None:
    group, version = "apiextensions.k8s.io", "v1"
    kind = "CustomResourceDefinition"
    document = group_version_document(
        group,
        version,
        [
            KindDoc(
                kind,
                "customresourcedefinitions",
                False,
                _ALL,
                builtin_schema(f"{group}/{version}", kind),
                is_custom=False,
                parts=endless_schemas(f"{group}/{version}", kind),
            )
        ],
    )
    schemas = document["components"]["schemas"]
    unknown = {r for r in _references(document) if r.removeprefix(_COMPONENTS) not in schemas}
    assert unknown == set()
    package = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
    below = schemas[f"{package}.JSONSchemaProps"]["properties"]["not"]["allOf"]
    assert below == [{"$ref": f"{_COMPONENTS}{package}.JSONSchemaProps"}]
    assert list(_undescribed(schemas[f"{package}.JSONSchemaProps"], "JSONSchemaProps")) == []


@pytest.mark.parametrize(("api_version", "kind"), sorted(KINDS))
def test_every_built_in_kind_and_field_is_described(api_version: str, kind: str) -> None:
    schema = builtin_schema(api_version, kind)
    assert schema is not None
    assert schema["description"]
    assert list(_undescribed(schema, kind)) == []


def _undescribed(schema: Obj, path: str) -> Iterator[str]:
    for name, below in schema.get("properties", {}).items():
        if name != "metadata" and not below.get("description"):
            yield f"{path}.{name}"
        yield from _undescribed(below, f"{path}.{name}")
        yield from _undescribed(below.get("items", {}), f"{path}.{name}")


def test_lists_that_are_merged_say_by_what() -> None:
    schema = builtin_schema("v1", "ServiceAccount")
    assert schema is not None
    secrets = schema["properties"]["secrets"]
    assert secrets["x-kubernetes-patch-merge-key"] == "name"
    assert secrets["x-kubernetes-patch-strategy"] == "merge"
    assert secrets["x-kubernetes-list-map-keys"] == ["name"]
    assert builtin_schema("v1", "Pod") is None


def test_the_index_carries_the_hash_of_each_document() -> None:
    path = document_path("", "v1")
    digest = content_hash(b"{}")
    assert len(digest) == 128
    url = f"/openapi/v3/api/v1?hash={digest}"
    assert index({path: digest}) == {"paths": {"api/v1": {"serverRelativeURL": url}}}
    assert document_path(_GROUP, "v1") == f"apis/{_GROUP}/v1"
