"""OpenAPI v3 over the wire: the index, documents kept by hash, conditional answers."""

from collections.abc import AsyncIterator

import pytest

from hub.meta import Obj
from tests.hubs import InProcess
from tests.server.widgets import define, widget_definition

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_every_served_version_has_a_document_at_the_address_in_the_index(
    hub: InProcess,
) -> None:
    paths = (await hub.admin.get("/openapi/v3"))["paths"]
    served = {"api/v1"}
    for group in (await hub.admin.get("/apis"))["groups"]:
        served |= {f"apis/{version['groupVersion']}" for version in group["versions"]}
    assert set(paths) == served
    for entry in paths.values():
        answer = await hub.admin.call("GET", entry["serverRelativeURL"])
        assert answer.status == 200
        assert answer.headers["cache-control"] == "public, immutable"
        assert answer.obj()["openapi"] == "3.0.0"


async def test_a_document_is_answered_with_304_to_who_has_it(hub: InProcess) -> None:
    first = await hub.admin.call("GET", "/openapi/v3/api/v1")
    assert first.headers["cache-control"] == "no-cache, private"
    knowing = hub.admin.with_headers(("if-none-match", first.headers["etag"]))
    again = await knowing.call("GET", "/openapi/v3/api/v1")
    assert (again.status, again.body) == (304, b"")
    assert "content-type" not in again.headers


async def test_every_patch_says_its_kind_and_that_fields_are_validated(hub: InProcess) -> None:
    # kubectl falls back to /openapi/v2, where there are no operations, and fails
    patches = [op async for op in _operations(hub, "patch")]
    assert patches
    for operation in patches:
        assert operation["x-kubernetes-group-version-kind"]["kind"]
        names = {p["name"] for p in operation["parameters"]}
        assert {"fieldValidation", "dryRun"} <= names


async def test_a_version_that_is_not_served_has_no_document(hub: InProcess) -> None:
    assert (await hub.admin.call("GET", "/openapi/v3/apis/apps/v1")).status == 404


async def _operations(hub: InProcess, method: str) -> AsyncIterator[Obj]:
    for entry in (await hub.admin.get("/openapi/v3"))["paths"].values():
        document = await hub.admin.get(entry["serverRelativeURL"])
        for item in document["paths"].values():
            if method in item:
                yield item[method]


async def test_the_old_document_is_there_in_both_forms(hub: InProcess) -> None:
    protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    plain = await hub.admin.call("GET", "/openapi/v2")
    packed = await hub.admin.call("GET", "/openapi/v2", accept=f"{protobuf},application/json")
    assert plain.obj()["swagger"] == "2.0"
    assert packed.headers["content-type"] == protobuf.replace("@", ".")
    assert packed.body.startswith(b"\n\x032.0")
    assert plain.headers["etag"] != packed.headers["etag"]  # a strong one is of the bytes
    knowing = hub.admin.with_headers(("if-none-match", packed.headers["etag"]))
    assert (await knowing.call("GET", "/openapi/v2")).status == 200
    assert (await knowing.call("GET", "/openapi/v2", accept=protobuf)).status == 304
    assert (await hub.admin.call("GET", "/openapi/v2", accept="text/html")).status == 406
    kinds = {
        (kind["group"], kind["version"], kind["kind"])
        for definition in plain.obj()["definitions"].values()
        for kind in definition.get("x-kubernetes-group-version-kind", ())
    }
    assert {
        ("", "v1", "Secret"),
        ("work.open-cluster-management.io", "v1", "ManifestWork"),
    } <= kinds


async def test_every_reference_in_the_old_document_leads_somewhere(hub: InProcess) -> None:
    definitions = (await hub.admin.get("/openapi/v2"))["definitions"]

    def references(schema: Obj) -> set[str]:
        found = {schema["$ref"]} if "$ref" in schema else set()
        below = [schema.get("items"), schema.get("additionalProperties")]
        for part in (*below, *(schema.get("properties") or {}).values()):
            found |= references(part) if part else set()
        return found

    wanted = {r for schema in definitions.values() for r in references(schema)}
    assert wanted
    assert {r.removeprefix("#/definitions/") for r in wanted} <= set(definitions)


async def test_the_old_document_follows_the_kinds(hub: InProcess) -> None:
    before = await hub.admin.call("GET", "/openapi/v2")
    definition = widget_definition("followed.example.com")
    await define(hub.admin, definition)
    after = await hub.admin.call("GET", "/openapi/v2")
    assert after.headers["etag"] != before.headers["etag"]
    assert "com.example.followed.v1.Widget" in after.obj()["definitions"]


async def test_go_reads_a_document_as_it_was_written(hub: InProcess) -> None:
    """Go drops empty lists and objects of these names: what it writes again would be another."""
    index = await hub.admin.get("/openapi/v3")
    seen = 0
    for path in index["paths"]:
        document = await hub.admin.get(f"/openapi/v3/{path}")
        for item in document["paths"].values():
            for name, operation in item.items():
                if name != "parameters":
                    seen += 1
                    assert operation.get("parameters", [1]), f"{path} {operation['operationId']}"
    assert seen > 250
