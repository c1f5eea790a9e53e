"""Objects of kinds that definitions describe: schema, versions, scale, selectors, generations."""

import copy
from pathlib import Path

import pytest
import pytest_asyncio
from click.testing import CliRunner

from hub.meta import Obj
from tests.hubs import MERGE, InProcess, running_hub
from tests.server.support import PROTOBUF, TABLE
from tests.server.widgets import (
    DEFINITIONS,
    define,
    schema_of,
    version_of,
    widget,
    widget_definition,
    widgets,
)
from tools.restore import cli

pytestmark = pytest.mark.asyncio(loop_scope="module")
UNCHECKED = (
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


@pytest.fixture
def definition(name: str) -> Obj:
    return widget_definition(f"{name}.example.com")


@pytest_asyncio.fixture(loop_scope="module")
async def defined(hub: InProcess, definition: Obj) -> Obj:
    return await define(hub.admin, definition)


@pytest.fixture
def base(defined: Obj, ns: str) -> str:
    return widgets(defined, ns)


def second_version(definition: Obj) -> Obj:
    """Add a version v2 that is not stored, with a field of its own."""
    version = copy.deepcopy(version_of(definition))
    version |= {"name": "v2", "storage": False}
    definition["spec"]["versions"].append(version)
    schema_of(definition, 1)["properties"]["note"] = {"type": "string", "default": "none"}
    return version


async def test_an_object_is_created_with_its_defaults(hub: InProcess, base: str) -> None:
    made = await hub.admin.create(base, widget("a", parts=[{"name": "x", "size": "20%"}]))
    assert made["spec"] == {
        "color": "red",
        "parts": [{"name": "x", "size": "20%"}],
        "replicas": 1,
    }
    assert made["metadata"]["generation"] == 1


async def test_columns_are_those_of_the_definition(hub: InProcess, base: str) -> None:
    await hub.admin.create(base, widget("a", replicas=2))
    table = (await hub.admin.call("GET", base, accept=TABLE)).obj()
    columns = [(c["name"], c["type"], c["priority"]) for c in table["columnDefinitions"]]
    assert columns == [
        ("Name", "string", 0),
        ("Replicas", "integer", 0),
        ("Color", "string", 1),
        ("Age", "date", 0),
    ]
    assert table["rows"][0]["cells"][:3] == ["a", 2, "red"]


async def test_what_the_schema_forbids_is_told_as_kubernetes_tells_it(
    hub: InProcess, base: str, defined: Obj
) -> None:
    answer = await hub.admin.call("POST", base, widget("w2", "pink"))
    unsupported = 'Unsupported value: "pink": supported values: "red", "green", "blue"'
    group = defined["spec"]["group"]
    assert answer.status == 422
    assert answer.obj()["message"] == (
        f'Widget.{group} "w2" is invalid: [spec.color: {unsupported}, <nil>: {UNCHECKED}]'
    )
    assert answer.obj()["details"]["causes"] == [
        {"reason": "FieldValueNotSupported", "message": unsupported, "field": "spec.color"},
        {"reason": "FieldValueInvalid", "message": UNCHECKED, "field": "<nil>"},
    ]
    many = await hub.admin.call("POST", base, widget("w3", replicas=11))
    assert many.obj()["message"].endswith(
        "spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10"
    )


async def test_unknown_fields_are_dropped_told_of_or_refused(hub: InProcess, base: str) -> None:
    strict = await hub.admin.call(
        "POST", f"{base}?fieldValidation=Strict", widget("a", colour="red")
    )
    assert strict.status == 400
    assert strict.obj()["message"] == (
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field'
        ' "spec.colour"'
    )
    warned = await hub.admin.call("POST", f"{base}?fieldValidation=Warn", widget("a", colour="red"))
    assert warned.status == 201
    assert warned.headers["warning"] == '299 - "unknown field \\"spec.colour\\""'
    assert "colour" not in warned.obj()["spec"]
    patched = await hub.admin.patch(f"{base}/a", {"spec": {"colour": "x", "color": "blue"}})
    assert patched["spec"] == {"color": "blue", "replicas": 1}


async def test_an_update_may_leave_an_old_fault_alone(
    hub: InProcess, definition: Obj, ns: str
) -> None:
    made = await define(hub.admin, definition)
    path = widgets(made, ns)
    await hub.admin.create(path, widget("a", replicas=9))
    schema_of(made)["properties"]["replicas"]["maximum"] = 5
    await hub.admin.patch(
        f"{DEFINITIONS}/{made['metadata']['name']}",
        {"spec": {"versions": made["spec"]["versions"]}},
    )
    labelled = await hub.admin.patch(f"{path}/a", {"metadata": {"labels": {"a": "b"}}})
    assert labelled["spec"]["replicas"] == 9
    worse = await hub.admin.call(
        "PATCH", f"{path}/a", {"spec": {"replicas": 8}}, content_type=MERGE
    )
    assert worse.status == 422


async def test_fields_that_a_definition_adds_appear_on_older_objects(
    hub: InProcess, defined: Obj, base: str
) -> None:
    made = await hub.admin.create(base, widget("a"))
    schema_of(defined)["properties"]["size"] = {"type": "integer", "default": 7}
    schema_of(defined)["properties"].pop("parts")
    schema_of(defined).pop("x-kubernetes-validations")
    await hub.admin.patch(
        f"{DEFINITIONS}/{defined['metadata']['name']}",
        {"spec": {"versions": defined["spec"]["versions"]}},
    )
    read = await hub.admin.get(f"{base}/a")
    assert read["spec"] == {"color": "red", "replicas": 1, "size": 7}
    assert read["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    listed = await hub.admin.get(base)
    assert listed["items"][0]["spec"]["size"] == 7
    async with hub.admin.watch(f"{base}?watch=1") as watch:
        assert (await watch.next())["object"]["spec"]["size"] == 7


async def test_status_is_written_through_its_subresource_only(hub: InProcess, base: str) -> None:
    made = await hub.admin.create(base, {**widget("a"), "status": {"replicas": 3}})
    assert "status" not in made
    path = f"{base}/a"
    state = await hub.admin.call(
        "PATCH",
        f"{path}/status",
        {"spec": {"color": "blue"}, "status": {"replicas": 3, "extra": 1}},
        content_type=MERGE,
    )
    assert state.obj()["status"] == {"replicas": 3}
    assert state.obj()["spec"]["color"] == "red"
    assert state.obj()["metadata"]["generation"] == 1
    changed = await hub.admin.patch(path, {"spec": {"color": "green"}})
    assert (changed["metadata"]["generation"], changed["status"]) == (2, {"replicas": 3})


async def test_without_a_status_subresource_every_change_counts(
    hub: InProcess, definition: Obj, ns: str
) -> None:
    version_of(definition).pop("subresources")
    made = await define(hub.admin, definition)
    path = widgets(made, ns)
    obj = await hub.admin.create(path, {**widget("a"), "status": {"replicas": 3}})
    assert (obj["status"], obj["metadata"]["generation"]) == ({"replicas": 3}, 1)
    state = await hub.admin.patch(f"{path}/a", {"status": {"replicas": 4}})
    assert (state["status"], state["metadata"]["generation"]) == ({"replicas": 4}, 2)
    meta = await hub.admin.patch(f"{path}/a", {"metadata": {"labels": {"a": "b"}}})
    assert meta["metadata"]["generation"] == 2
    for name in ("status", "scale"):
        assert (await hub.admin.call("GET", f"{path}/a/{name}")).status == 404


async def test_an_update_must_carry_a_resource_version(hub: InProcess, base: str) -> None:
    await hub.admin.create(base, widget("a"))
    answer = await hub.admin.call("PUT", f"{base}/a", widget("a", "green"))
    assert answer.status == 422
    assert (
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        in (answer.obj()["message"])
    )


async def test_scale_is_read_patched_and_replaced(hub: InProcess, base: str) -> None:
    made = await hub.admin.create(base, widget("a", replicas=2))
    path, meta = f"{base}/a/scale", made["metadata"]
    assert await hub.admin.get(path) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": "a",
            "namespace": meta["namespace"],
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
            "creationTimestamp": meta["creationTimestamp"],
        },
        "spec": {"replicas": 2},
        "status": {"replicas": 0},
    }
    patched = await hub.admin.patch(path, {"spec": {"replicas": 5}})
    assert patched["spec"] == {"replicas": 5}
    await hub.admin.patch(f"{base}/a/status", {"status": {"replicas": 4, "selector": "a=b"}})
    scale = await hub.admin.get(path)
    assert scale["status"] == {"replicas": 4, "selector": "a=b"}
    scale["spec"]["replicas"] = 0
    answer = await hub.admin.call("PUT", path, scale)
    assert (answer.status, answer.obj()["spec"]) == (200, {})
    stale = await hub.admin.call("PUT", path, scale)
    assert stale.status == 409
    found = await hub.admin.get(f"{base}/a")
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (0, 3)


async def test_a_scale_may_be_sent_as_protobuf(hub: InProcess, base: str) -> None:
    """As client-go's scale client sends it; the bytes are put together by hand."""
    made = await hub.admin.create(base, widget("a", replicas=2))
    path, meta = f"{base}/a/scale", made["metadata"]

    def text(number: int, value: str | bytes) -> bytes:
        data = value.encode() if isinstance(value, str) else value
        return bytes([number << 3 | 2, len(data)]) + data

    def body(*, version: str = "autoscaling/v1", replicas: int = 3, revision: str = "") -> bytes:
        types = text(1, version) + text(2, "Scale")
        named = text(1, "a") + text(3, meta["namespace"]) + text(5, meta["uid"]) + text(6, revision)
        spec, status = bytes([1 << 3, replicas]), bytes([1 << 3, 1]) + text(2, "a=b")
        scale = text(1, named) + text(2, spec) + text(3, status)
        return b"k8s\0" + text(1, types) + text(2, scale) + text(3, "") + text(4, "")

    revision = meta["resourceVersion"]
    answer = await hub.admin.call("PUT", path, body(revision=revision), content_type=PROTOBUF)
    assert (answer.status, answer.obj()["spec"]) == (200, {"replicas": 3})
    assert answer.obj()["status"] == {"replicas": 0}, "the status is not the sender's"
    assert (await hub.admin.get(f"{base}/a"))["spec"]["replicas"] == 3
    stale = await hub.admin.call("PUT", path, body(revision=revision), content_type=PROTOBUF)
    assert stale.status == 409
    none = await hub.admin.call("PUT", path, body(replicas=0), content_type=PROTOBUF)
    assert (none.status, none.obj()["spec"]) == (200, {})
    other = await hub.admin.call("PUT", path, body(version="apps/v1"), content_type=PROTOBUF)
    assert other.status == 400
    whole = await hub.admin.call("PUT", f"{base}/a", body(), content_type=PROTOBUF)
    assert whole.status == 415, "the object itself is JSON or YAML"


async def test_a_scale_that_cannot_be_is_refused(hub: InProcess, base: str, defined: Obj) -> None:
    await hub.admin.create(base, widget("a"))
    path = f"{base}/a/scale"
    above = await hub.admin.call("PATCH", path, {"spec": {"replicas": 11}}, content_type=MERGE)
    assert (above.status, above.obj()["message"]) == (
        422,
        (
            f'Widget.{defined["spec"]["group"]} "a" is invalid: spec.replicas: Invalid value: 11: '
            "spec.replicas in body should be less than or equal to 10"
        ),
    )
    below = await hub.admin.call("PATCH", path, {"spec": {"replicas": -1}}, content_type=MERGE)
    assert (below.status, below.obj()["message"]) == (
        422,
        (
            'Scale.autoscaling "a" is invalid: spec.replicas: Invalid value: -1: must be greater'
            " than or equal to 0"
        ),
    )
    odd = await hub.admin.call("PATCH", path, {"spec": {"replicas": "x"}}, content_type=MERGE)
    assert odd.status == 400
    assert (await hub.admin.call("GET", f"{base}/b/scale")).status == 404
    dry = await hub.admin.call(
        "PATCH", f"{path}?dryRun=All", {"spec": {"replicas": 3}}, content_type=MERGE
    )
    assert dry.obj()["spec"] == {"replicas": 3}
    assert (await hub.admin.get(path))["spec"] == {"replicas": 1}


async def test_selectable_fields_select_in_lists_and_watches(hub: InProcess, base: str) -> None:
    await hub.admin.create(base, widget("a", "red"))
    await hub.admin.create(base, widget("b", "green"))
    listed = await hub.admin.get(f"{base}?fieldSelector=spec.color%3Dgreen")
    assert [i["metadata"]["name"] for i in listed["items"]] == ["b"]
    async with hub.admin.watch(
        f"{base}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}"
        "&fieldSelector=spec.color%3Dgreen"
    ) as watch:
        await hub.admin.patch(f"{base}/a", {"spec": {"color": "green"}})
        await hub.admin.patch(f"{base}/b", {"spec": {"color": "blue"}})
        seen = [await watch.next() for _ in range(2)]
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in seen] == [
        ("ADDED", "a"),
        ("DELETED", "b"),
    ]
    unknown = await hub.admin.call("GET", f"{base}?fieldSelector=spec.replicas%3D1")
    assert (unknown.status, "field label not supported: spec.replicas" in str(unknown.body)) == (
        400,
        True,
    )


async def test_each_version_shows_the_same_objects_by_its_own_schema(
    hub: InProcess, definition: Obj, ns: str
) -> None:
    second_version(definition)
    made = await define(hub.admin, definition)
    first, second = widgets(made, ns), widgets(made, ns, "v2")
    await hub.admin.create(first, widget("a"))
    shown = await hub.admin.get(f"{second}/a")
    assert shown["apiVersion"] == f"{made['spec']['group']}/v2"
    assert shown["spec"] == {"color": "red", "replicas": 1, "note": "none"}
    made_there = await hub.admin.create(second, widget("b", note="x"))
    assert (made_there["apiVersion"].rpartition("/")[2], made_there["spec"]["note"]) == ("v2", "x")
    assert (await hub.admin.get(f"{first}/b"))["apiVersion"].endswith("/v1")
    items = (await hub.admin.get(second))["items"]
    assert {i["apiVersion"] for i in items} == {f"{made['spec']['group']}/v2"}
    group = await hub.admin.get(f"/apis/{made['spec']['group']}")
    assert group["preferredVersion"]["version"] == "v2"
    async with hub.admin.watch(f"{second}?watch=1") as watch:
        assert (await watch.next())["object"]["apiVersion"].endswith("/v2")


async def test_objects_outlive_a_change_of_the_stored_version(
    hub: InProcess, definition: Obj, ns: str
) -> None:
    second_version(definition)
    made = await define(hub.admin, definition)
    await hub.admin.create(widgets(made, ns), widget("a"))
    versions = made["spec"]["versions"]
    versions[0]["storage"], versions[1]["storage"] = False, True
    path = f"{DEFINITIONS}/{made['metadata']['name']}"
    changed = await hub.admin.patch(path, {"spec": {"versions": versions}})
    assert changed["status"]["storedVersions"] == ["v1", "v2"]
    assert (await hub.admin.get(f"{widgets(made, ns, 'v2')}/a"))["apiVersion"].endswith("/v2")
    assert (await hub.admin.get(f"{widgets(made, ns)}/a"))["apiVersion"].endswith("/v1")
    versions[0]["served"] = False
    await hub.admin.patch(path, {"spec": {"versions": versions}})
    assert (await hub.admin.call("GET", widgets(made, ns))).status == 404
    gone = await hub.admin.call(
        "PATCH", path, {"spec": {"versions": versions[1:]}}, content_type=MERGE
    )
    assert gone.status == 422
    assert 'storedVersions[0]: Invalid value: "v1": missing from spec.versions' in str(
        gone.obj()["message"]
    )


async def test_a_deprecated_version_warns(hub: InProcess, definition: Obj, ns: str) -> None:
    version_of(definition)["deprecated"] = True
    made = await define(hub.admin, definition)
    answer = await hub.admin.call("GET", widgets(made, ns))
    group = made["spec"]["group"]
    assert answer.headers["warning"] == f'299 - "{group}/v1 Widget is deprecated"'


async def test_custom_objects_know_no_strategic_merge_patch(hub: InProcess, base: str) -> None:
    await hub.admin.create(base, widget("a"))
    answer = await hub.admin.call(
        "PATCH", f"{base}/a", {}, content_type="application/strategic-merge-patch+json"
    )
    assert answer.status == 415


async def test_a_namespace_takes_its_custom_objects_with_it(
    hub: InProcess, base: str, ns: str
) -> None:
    await hub.admin.create(base, widget("a"))
    async with hub.admin.watch(f"{base}?watch=1") as watch:
        assert (await watch.next())["type"] == "ADDED"
        await hub.admin.call("DELETE", f"/api/v1/namespaces/{ns}")
        assert (await watch.next())["type"] == "DELETED"


async def test_dependents_of_a_custom_object_go_with_it(hub: InProcess, base: str, ns: str) -> None:
    owner = await hub.admin.create(base, widget("a"))
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": "Widget",
        "name": "a",
        "uid": owner["metadata"]["uid"],
    }
    child = widget("b")
    child["metadata"]["ownerReferences"] = [reference]
    await hub.admin.create(base, child)
    async with hub.admin.watch(f"{base}?watch=1&fieldSelector=metadata.name%3Db") as watch:
        assert (await watch.next())["type"] == "ADDED"
        await hub.admin.call("DELETE", f"{base}/a")
        assert (await watch.next())["type"] == "DELETED"


async def test_kinds_and_objects_are_there_after_a_restart(tmp_path: Path) -> None:
    definition = widget_definition()
    async with running_hub(tmp_path / "data") as hub:
        made = await define(hub.admin, definition)
        kept = await hub.admin.create(widgets(made, "default"), widget("a"))
    async with running_hub(tmp_path / "data") as hub:
        found = await hub.admin.get(f"{widgets(made, 'default')}/a")
        assert found == kept
        again = await hub.admin.get(f"{DEFINITIONS}/widgets.demo.example.com")
        assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        bad = await hub.admin.call("POST", widgets(made, "default"), widget("b", "pink"))
        assert bad.status == 422


async def test_kinds_and_objects_are_there_after_a_restore(tmp_path: Path) -> None:
    store, key = f"file://{tmp_path}/bucket", tmp_path / "hub.key"
    async with running_hub(tmp_path / "old", object_store=store, key_file=key) as hub:
        made = await define(hub.admin, widget_definition())
        kept = await hub.admin.create(widgets(made, "default"), widget("a"))
    flags = ["--from", store, "--key-file", str(key), "--into", str(tmp_path / "new")]
    done = CliRunner().invoke(cli, ["restore", *flags])
    assert done.exit_code == 0, done.output
    async with running_hub(tmp_path / "new", object_store=store, key_file=key) as hub:
        assert hub.start_kind == "restored"
        assert await hub.admin.get(f"{widgets(made, 'default')}/a") == kept
        found = await hub.admin.get(f"{DEFINITIONS}/widgets.demo.example.com")
        assert found["metadata"]["uid"] == made["metadata"]["uid"]
        scale = await hub.admin.patch(
            f"{widgets(made, 'default')}/a/scale", {"spec": {"replicas": 2}}
        )
        assert scale["spec"] == {"replicas": 2}
