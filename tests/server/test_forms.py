"""The forms of an answer: Table, PartialObjectMetadata, plain; discovery in both shapes."""

import pytest

from hub.meta import Obj
from tests.hubs import InProcess, Watch
from tests.server.support import (
    CLUSTERS,
    PARTIAL,
    PARTIAL_LIST,
    TABLE,
    config_maps,
    named,
    raw_get,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def test_a_table_of_a_list_has_columns_and_rows_with_metadata(
    hub: InProcess, ns: str
) -> None:
    made = await hub.admin.create(config_maps(ns), named("a", data={"x": "1", "y": "2"}))
    answer = await hub.admin.call("GET", config_maps(ns), accept=f"{TABLE},application/json")
    found = answer.obj()
    assert answer.headers["content-type"] == "application/json"
    assert (found["kind"], found["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [(c["name"], c["type"], c["priority"]) for c in found["columnDefinitions"]] == [
        ("Name", "string", 0),
        ("Data", "string", 0),
        ("Age", "string", 0),
    ]
    row, _ = found["rows"]
    assert row["cells"][0] == "a"
    assert str(row["cells"][1]) == "2"
    assert row["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": made["metadata"],
    }


async def test_what_a_row_carries_is_the_clients_choice(hub: InProcess, ns: str) -> None:
    made = await hub.admin.create(config_maps(ns), named("a"))
    path = config_maps(ns)
    none = (await hub.admin.call("GET", f"{path}?includeObject=None", accept=TABLE)).obj()
    assert none["rows"][0].get("object") is None
    whole = (await hub.admin.call("GET", f"{path}/a?includeObject=Object", accept=TABLE)).obj()
    assert whole["rows"][0]["object"] == made
    bad = await hub.admin.call("GET", f"{path}?includeObject=Half", accept=TABLE)
    assert bad.status == 400


async def test_a_table_of_one_object_has_its_revision(hub: InProcess, ns: str) -> None:
    made = await hub.admin.create(config_maps(ns), named("a"))
    found = (await hub.admin.call("GET", f"{config_maps(ns)}/a", accept=TABLE)).obj()
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert len(found["rows"]) == 1


@pytest.mark.parametrize("is_empty", [True, False])
async def test_a_watch_names_the_columns_of_its_tables_once(
    hub: InProcess, ns: str, *, is_empty: bool
) -> None:
    if not is_empty:
        await hub.admin.create(config_maps(ns), named("a"))
    path = (
        f"{config_maps(ns)}?watch=1&fieldSelector=metadata.name!=kube-root-ca.crt"
        "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    )
    async with hub.admin._client.stream("GET", path, [("accept", TABLE)]) as stream:
        watch = Watch(stream.status, aiter(stream))
        seen = [await watch.next()]
        if not is_empty:
            seen.append(await watch.next())
        await hub.admin.create(config_maps(ns), named("b"))
        await hub.admin.call("DELETE", f"{config_maps(ns)}/b")
        seen += [await watch.next(), await watch.next()]
    types = ["BOOKMARK", "ADDED", "DELETED"]
    assert [event["type"] for event in seen] == (types if is_empty else ["ADDED", *types])
    first, *later = [event["object"] for event in seen]
    assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert [table["columnDefinitions"] for table in later] == [None] * len(later)
    assert all(len(table["rows"]) == 1 for table in [first, *later])


async def test_metadata_alone_is_served_for_gets_lists_and_watches(hub: InProcess, ns: str) -> None:
    made = await hub.admin.create(config_maps(ns), named("a", data={"x": "1"}))
    partial: Obj = {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": made["metadata"],
    }
    protobuf_first = f"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata,{PARTIAL}"
    one = await hub.admin.call("GET", f"{config_maps(ns)}/a", accept=protobuf_first)
    assert one.obj() == partial
    listed = (await hub.admin.call("GET", config_maps(ns), accept=PARTIAL_LIST)).obj()
    assert listed["kind"] == "PartialObjectMetadataList"
    assert listed["items"][0] == partial
    path = f"{config_maps(ns)}?watch=1"
    async with hub.admin._client.stream("GET", path, [("accept", PARTIAL)]) as stream:
        event = await Watch(stream.status, aiter(stream)).next()
    assert event == {"type": "ADDED", "object": partial}


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("*/*", 200),
        ("application/*", 200),
        ("application/vnd.kubernetes.protobuf, */*", 200),
        ("application/vnd.kubernetes.protobuf,application/json", 200),
        ("application/json;q=0.5", 200),
        ("application/vnd.kubernetes.protobuf", 406),
        ("text/html", 406),
        ("application/json;as=Table;v=v2;g=meta.k8s.io", 406),
        ("application/json;as=Table;v=v2;g=meta.k8s.io,application/json", 200),
    ],
)
async def test_clients_that_take_json_get_it(
    hub: InProcess, ns: str, accept: str, status: int
) -> None:
    answer = await hub.admin.call("GET", config_maps(ns), accept=accept)
    assert answer.status == status
    if status == 406:
        found = answer.obj()
        assert found["reason"] == "NotAcceptable"
        assert found["message"].startswith("only the following media types are accepted: ")


async def test_every_answer_carries_an_audit_id(hub: InProcess) -> None:
    own = await raw_get(hub, "/version", ("audit-id", "mine"))
    assert own.headers["audit-id"] == "mine"
    given = await raw_get(hub, "/api/v1/namespaces")
    assert len(given.headers["audit-id"]) == 36
    assert given.headers["cache-control"] == "no-cache, private"


# ------------------------------------------------------------------ discovery


async def test_groups_and_versions_are_listed(hub: InProcess) -> None:
    core = await hub.admin.get("/api")
    assert (core["kind"], core["versions"]) == ("APIVersions", ["v1"])
    groups = await hub.admin.get("/apis")
    assert groups["kind"] == "APIGroupList"
    found = {group["name"]: group for group in groups["groups"]}
    addon = found["addon.open-cluster-management.io"]
    assert [v["version"] for v in addon["versions"]] == ["v1beta1", "v1alpha1"]
    assert addon["preferredVersion"] == addon["versions"][0]
    one = await hub.admin.get("/apis/addon.open-cluster-management.io")
    assert (one["kind"], one["apiVersion"], one["versions"]) == (
        "APIGroup",
        "v1",
        addon["versions"],
    )
    for group in found.values():
        for version in group["versions"]:
            listed = await hub.admin.get(f"/apis/{version['groupVersion']}")
            assert (listed["kind"], listed["groupVersion"]) == (
                "APIResourceList",
                version["groupVersion"],
            )
            assert listed["resources"]


async def test_a_resource_is_described_with_its_subresources(hub: InProcess) -> None:
    listed = await hub.admin.get("/apis/cluster.open-cluster-management.io/v1")
    found = {resource["name"]: resource for resource in listed["resources"]}
    assert set(found) == {"managedclusters", "managedclusters/status"}
    assert found["managedclusters"]["verbs"] == [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ]
    assert found["managedclusters"]["shortNames"] == ["mcl", "mcls"]
    assert found["managedclusters"]["namespaced"] is False
    assert found["managedclusters/status"]["verbs"] == ["get", "patch", "update"]
    core = await hub.admin.get("/api/v1")
    (token,) = (r for r in core["resources"] if r["name"] == "serviceaccounts/token")
    assert (token["kind"], token["group"], token["version"]) == (
        "TokenRequest",
        "authentication.k8s.io",
        "v1",
    )


async def test_every_verb_that_discovery_promises_is_kept(hub: InProcess, ns: str) -> None:
    listed = [("/api/v1", await hub.admin.get("/api/v1"))]
    for group in (await hub.admin.get("/apis"))["groups"]:
        for version in group["versions"]:
            path = f"/apis/{version['groupVersion']}"
            listed.append((path, await hub.admin.get(path)))
    for base, resources in listed:
        for resource in resources["resources"]:
            if "/" in resource["name"] or "list" not in resource["verbs"]:
                continue
            middle = f"/namespaces/{ns}" if resource["namespaced"] else ""
            found = await hub.admin.get(f"{base}{middle}/{resource['name']}?limit=1")
            assert found["kind"] == f"{resource['kind']}List"


async def test_aggregated_discovery_is_one_document_with_an_etag(hub: InProcess) -> None:
    accept = f"{AGGREGATED},{AGGREGATED.replace('v2', 'v2beta1')},application/json"
    for path in ("/api", "/apis"):
        first = await raw_get(hub, path, ("accept", accept))
        assert first.headers["content-type"] == AGGREGATED
        found = first.obj()
        assert (found["kind"], found["apiVersion"]) == (
            "APIGroupDiscoveryList",
            "apidiscovery.k8s.io/v2",
        )
        etag = first.headers["etag"]
        assert etag.startswith('"')
        again = await raw_get(hub, path, ("accept", accept), ("if-none-match", etag))
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)
        other = await raw_get(hub, path, ("accept", accept), ("if-none-match", '"x"'))
        assert other.body == first.body
    beta = await raw_get(hub, "/apis", ("accept", AGGREGATED.replace("v=v2", "v=v2beta1")))
    assert beta.obj()["apiVersion"] == "apidiscovery.k8s.io/v2beta1"


async def test_both_discoveries_tell_the_same(hub: InProcess) -> None:
    groups = (await raw_get(hub, "/apis", ("accept", AGGREGATED))).obj()["items"]
    for group in groups:
        for version in group["versions"]:
            path = f"/apis/{group['metadata']['name']}/{version['version']}"
            plain = (await hub.admin.get(path))["resources"]
            whole = {r["name"]: r for r in plain}
            for resource in version["resources"]:
                assert whole[resource["resource"]]["verbs"] == resource["verbs"]
                assert resource["responseKind"]["kind"] == whole[resource["resource"]]["kind"]
                for sub in resource.get("subresources", []):
                    name = f"{resource['resource']}/{sub['subresource']}"
                    assert whole[name]["verbs"] == sub["verbs"]


async def test_add_ons_print_the_same_in_both_versions(hub: InProcess, ns: str) -> None:
    base = "/apis/addon.open-cluster-management.io"
    tail = f"namespaces/{ns}/managedclusteraddons"
    await hub.admin.create(f"{base}/v1alpha1/{tail}", named("work-manager"))
    rows = [
        (await hub.admin.call("GET", f"{base}/{version}/{tail}", accept=TABLE)).obj()["rows"]
        for version in ("v1alpha1", "v1beta1")
    ]
    assert rows[0][0]["cells"] == rows[1][0]["cells"]
    listed = await hub.admin.get(f"{base}/v1beta1/{tail}")
    assert listed["items"][0]["apiVersion"] == "addon.open-cluster-management.io/v1beta1"


async def test_a_cluster_scoped_path_with_a_namespace_is_not_served(hub: InProcess) -> None:
    path = CLUSTERS.replace("/managedclusters", "/namespaces/default/managedclusters")
    assert (await hub.admin.call("GET", path)).status == 404
