"""Namespaces over the wire: what each has, how it goes, which never go."""

import base64
from pathlib import Path

import pytest
import yaml

from hub.meta import Obj
from tests.hubs import MERGE, InProcess, Watch, running_hub
from tests.server.support import (
    CLUSTERS,
    ROOT_CA,
    anonymous,
    cluster_access,
    config_maps,
    named,
    token_for,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
NAMESPACES = "/api/v1/namespaces"


async def conditions(watch: Watch) -> dict[str, tuple[str, str]]:
    """The next state with conditions: status and message by type."""
    while True:
        obj = (await watch.next())["object"]
        found = obj["status"].get("conditions")
        if found:
            return {c["type"]: (c["status"], c["message"]) for c in found}


async def test_a_namespace_has_an_account_and_the_ca_from_the_start(
    hub: InProcess, name: str
) -> None:
    await hub.admin.create(NAMESPACES, named(name))
    account = await hub.admin.get(f"{NAMESPACES}/{name}/serviceaccounts/default")
    token = await hub.admin.create(
        f"{NAMESPACES}/{name}/serviceaccounts/default/token", {"spec": {"expirationSeconds": 600}}
    )
    found = await hub.admin.get(f"{config_maps(name)}/{ROOT_CA}")
    server, ca = cluster_access(hub)
    assert found["data"] == {"ca.crt": ca.decode()}
    assert account["metadata"]["namespace"] == name
    client = anonymous(hub, token=token["status"]["token"])
    try:
        me = await client.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        assert me["status"]["userInfo"]["username"] == f"system:serviceaccount:{name}:default"
        assert server.startswith("https://")
    finally:
        await client.close()


@pytest.mark.parametrize("namespace", ["default", "kube-system", "kube-public"])
async def test_the_namespaces_of_every_hub_have_them_too_and_never_go(
    hub: InProcess, namespace: str
) -> None:
    await hub.admin.get(f"{NAMESPACES}/{namespace}/serviceaccounts/default")
    await hub.admin.get(f"{config_maps(namespace)}/{ROOT_CA}")
    answer = await hub.admin.call("DELETE", f"{NAMESPACES}/{namespace}")
    assert (answer.status, answer.obj()["reason"]) == (403, "Forbidden")
    assert answer.obj()["message"] == (
        f'namespaces "{namespace}" is forbidden: this namespace may not be deleted'
    )


async def test_what_is_deleted_comes_back(hub: InProcess, ns: str) -> None:
    for path, name in (
        (f"{NAMESPACES}/{ns}/serviceaccounts", "default"),
        (config_maps(ns), ROOT_CA),
    ):
        first = await hub.admin.get(f"{path}/{name}")
        start = first["metadata"]["resourceVersion"]
        async with hub.admin.watch(f"{path}?watch=1&resourceVersion={start}") as watch:
            await hub.admin.call("DELETE", f"{path}/{name}")
            kinds = [(await watch.next())["type"] for _ in range(2)]
        assert kinds == ["DELETED", "ADDED"]
        assert (await hub.admin.get(f"{path}/{name}"))["metadata"]["uid"] != first["metadata"][
            "uid"
        ]


async def test_a_changed_ca_is_set_right(hub: InProcess, ns: str) -> None:
    path = f"{config_maps(ns)}/{ROOT_CA}"
    right = (await hub.admin.get(path))["data"]
    query = f"{config_maps(ns)}?watch=1&fieldSelector=metadata.name%3D{ROOT_CA}"
    async with hub.admin.watch(query) as watch:
        await watch.next()
        await hub.admin.patch(path, {"data": {"ca.crt": "mine"}})
        states = [(await watch.next())["object"]["data"] for _ in range(2)]
    assert states == [{"ca.crt": "mine"}, right]


async def test_a_namespace_that_goes_says_what_is_left(hub: InProcess, name: str) -> None:
    await hub.admin.create(NAMESPACES, named(name))
    held = {"metadata": {"name": "a", "finalizers": ["example.com/x"]}}
    await hub.admin.create(config_maps(name), held)
    await hub.admin.create(config_maps(name), named("b"))
    query = f"{NAMESPACES}?watch=1&fieldSelector=metadata.name%3D{name}"
    async with hub.admin.watch(query) as watch:
        await watch.next()
        answer = await hub.admin.call("DELETE", f"{NAMESPACES}/{name}")
        assert (answer.status, answer.obj()["status"]) == (200, {"phase": "Terminating"})
        assert "deletionGracePeriodSeconds" not in answer.obj()["metadata"]
        assert (await watch.next())["object"] == answer.obj()
        found = await conditions(watch)
        left = "Some content in the namespace"
        assert found["NamespaceContentRemaining"] == (
            "True",
            "Some resources are remaining: configmaps. has 1 resource instances",
        )
        assert found["NamespaceFinalizersRemaining"] == (
            "True",
            f"{left} has finalizers remaining: example.com/x in 1 resource instances",
        )
        refused = await hub.admin.call("POST", config_maps(name), named("c"))
        assert refused.status == 403
        assert refused.obj()["details"]["causes"][0]["reason"] == "NamespaceTerminating"
        await hub.admin.patch(f"{config_maps(name)}/a", {"metadata": {"finalizers": None}})
        found = await conditions(watch)
        assert {status for status, _ in found.values()} == {"False"}
        assert (await watch.next())["type"] == "DELETED"
    assert (await hub.admin.call("GET", f"{NAMESPACES}/{name}")).status == 404


async def test_the_conditions_of_an_empty_namespace_are_those_of_kubernetes(
    hub: InProcess, name: str
) -> None:
    await hub.admin.create(NAMESPACES, named(name))
    query = f"{NAMESPACES}?watch=1&fieldSelector=metadata.name%3D{name}"
    async with hub.admin.watch(query) as watch:
        await watch.next()
        await hub.admin.call("DELETE", f"{NAMESPACES}/{name}")
        await watch.next()
        status = (await watch.next())["object"]["status"]
        last = await watch.next()
    assert status["phase"] == "Terminating"
    assert [(c["type"], c["status"], c["reason"], c["message"]) for c in status["conditions"]] == [
        (
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            "False",
            "ContentRemoved",
            "All content successfully removed",
        ),
        (
            "NamespaceFinalizersRemaining",
            "False",
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    ]
    assert last["type"] == "DELETED"
    assert last["object"]["status"] == status


async def test_a_namespace_goes_when_another_takes_its_finalizer_off(
    hub: InProcess, ns: str
) -> None:
    path = f"{NAMESPACES}/{ns}"
    found = await hub.admin.get(path)
    assert found["spec"] == {"finalizers": ["kubernetes"]}
    found["spec"]["finalizers"] = ["example.com/x"]
    answer = await hub.admin.call("PUT", f"{path}/finalize", found)
    assert (answer.status, answer.obj()["spec"]) == (200, {"finalizers": ["example.com/x"]})
    await hub.admin.call("DELETE", path)
    going = await hub.admin.get(path)
    stale = await hub.admin.call("PUT", f"{path}/finalize", found)
    assert stale.status == 409
    going["spec"] = {}
    last = await hub.admin.call("PUT", f"{path}/finalize", going)
    assert last.status == 200
    assert (await hub.admin.call("GET", path)).status == 404


async def test_a_token_of_an_account_that_came_back_is_not_that_of_the_one_that_went(
    hub: InProcess, ns: str
) -> None:
    token = await token_for(hub, ns, "robot")
    old = anonymous(hub, token=token)
    review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    await old.create(review, {})
    await hub.admin.call("DELETE", f"{NAMESPACES}/{ns}/serviceaccounts/robot")
    await hub.admin.create(f"{NAMESPACES}/{ns}/serviceaccounts", named("robot"))
    assert (await old.call("POST", review, {})).status == 401
    await old.close()


async def test_a_hub_started_again_under_the_same_ca_changes_nothing(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        await hub.admin.create(NAMESPACES, named("kept"))
        first = await hub.admin.get(f"{config_maps('kept')}/{ROOT_CA}")
    async with running_hub(tmp_path / "data") as hub:
        assert await hub.admin.get(f"{config_maps('kept')}/{ROOT_CA}") == first
        config = yaml.safe_load(hub.kubeconfig.read_text())
        ca = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"])
        assert first["data"]["ca.crt"] == ca.decode()


@pytest.mark.parametrize("metadata", [{}, {"name": None}, {"name": ""}])
async def test_a_namespace_without_a_name_is_invalid(hub: InProcess, metadata: Obj) -> None:
    answer = await hub.admin.call("POST", NAMESPACES, {"metadata": metadata})
    assert answer.status == 422
    assert "name or generateName is required" in answer.obj()["message"]


async def test_whoever_may_write_the_status_may_write_labels_and_annotations(
    hub: InProcess, name: str
) -> None:
    """As with every built-in kind; custom resources keep their metadata."""
    made = await hub.admin.create(NAMESPACES, named(name))
    condition = {"type": "Tested", "status": "True", "reason": "R", "message": "m"}
    patch: Obj = {
        "metadata": {"annotations": {"a": "b"}, "labels": {"c": "d"}},
        "spec": {"finalizers": []},
        "status": {"conditions": [condition]},
    }
    await hub.admin.patch(f"{NAMESPACES}/{name}/status", patch)
    found = await hub.admin.get(f"{NAMESPACES}/{name}")
    assert found["metadata"]["annotations"] == {"a": "b"}
    assert found["metadata"]["labels"] == {**made["metadata"]["labels"], "c": "d"}
    assert found["spec"] == made["spec"]
    assert found["status"]["conditions"][0]["type"] == "Tested"
    bad = {"metadata": {"labels": {"not a label": "x"}}}
    refused = await hub.admin.call("PATCH", f"{NAMESPACES}/{name}/status", bad, content_type=MERGE)
    assert refused.status == 422
    await hub.admin.create(CLUSTERS, named(name))
    await hub.admin.patch(f"{CLUSTERS}/{name}/status", patch)
    cluster = await hub.admin.get(f"{CLUSTERS}/{name}")
    assert "annotations" not in cluster["metadata"]
    assert "c" not in cluster["metadata"]["labels"]
