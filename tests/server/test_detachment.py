"""How a cluster goes: add-ons, works, rights; and by force."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hub.meta import Obj
from tests.hubs import InProcess, running_hub
from tests.server.agents import (
    BOOTSTRAP_USER,
    has_condition,
    is_deleted,
    joined,
    until,
    until_event,
    work,
)
from tests.server.support import CLUSTERS, RBAC, named

pytestmark = pytest.mark.asyncio(loop_scope="module")
WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks"
ADDONS = "/apis/addon.open-cluster-management.io/{}/namespaces/{}/managedclusteraddons"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
CLUSTER_ROLE = "open-cluster-management:managedcluster:"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[InProcess]:
    data = tmp_path_factory.mktemp("hub") / "data"
    async with running_hub(data, auto_approve_users=(BOOTSTRAP_USER,)) as found:
        yield found


async def test_a_cluster_goes_add_ons_first_then_works_and_rights_last(
    hub: InProcess, name: str
) -> None:
    agent = await joined(hub, name)
    addons, works = ADDONS.format("v1alpha1", name), WORKS.format(name)
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    try:
        await hub.admin.create(addons, held)
        await hub.admin.create(works, work("w", finalizers=("example.com/work",)))
        now = (await hub.admin.get(works))["metadata"]["resourceVersion"]
        async with (
            hub.admin.watch(f"{works}?watch=1&resourceVersion={now}") as of_works,
            hub.admin.watch(f"{addons}?watch=1&resourceVersion={now}") as of_addons,
        ):
            deleted = await hub.admin.call("DELETE", f"{CLUSTERS}/{name}")
            assert deleted.obj()["metadata"]["deletionTimestamp"]
            ending = await until_event(of_addons, lambda e: e["type"] == "MODIFIED")
            assert ending["metadata"]["deletionTimestamp"]
            # the first pass ends with this binding: by then works would have been touched
            bindings = f"{RBAC}/namespaces/{name}/rolebindings"
            await until_gone(hub, f"{bindings}/{CLUSTER_ROLE}{name}:registration")
            present = await hub.admin.get(f"{works}/w")
            assert "deletionTimestamp" not in present["metadata"]
            await hub.admin.patch(f"{addons}/held", {"metadata": {"finalizers": None}})
            await until_event(of_addons, is_deleted)
            ending = await until_event(of_works, lambda e: e["type"] == "MODIFIED")
            assert ending["metadata"]["deletionTimestamp"]
            # the work agent can still finish, the registration agent is out
            assert (await agent.call("GET", f"{works}/w")).status == 200
            lease = f"{LEASES.format(name)}/managed-cluster-lease"
            assert (await agent.call("GET", lease)).status == 403
            await agent.patch(f"{works}/w", {"metadata": {"finalizers": None}})
            await until_event(of_works, is_deleted)
        await until_gone(hub, f"{CLUSTERS}/{name}")
        assert (await agent.call("GET", works)).status == 403
    finally:
        await agent.close()
    assert (await hub.admin.get(bindings))["items"] == []
    assert (await hub.admin.call("GET", f"{RBAC}/clusterroles/{CLUSTER_ROLE}{name}")).status == 404
    await hub.admin.get(f"/api/v1/namespaces/{name}")  # is kept


async def test_a_dead_cluster_is_detached_by_force_and_what_stays_is_told(
    hub: InProcess, name: str
) -> None:
    await (await joined(hub, name)).close()
    works, addons = WORKS.format(name), ADDONS.format("v1alpha1", name)
    for number in range(22):
        await hub.admin.create(works, work(f"w{number:02}", finalizers=("example.com/work",)))
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    await hub.admin.create(addons, held)
    await hub.admin.call("DELETE", f"{CLUSTERS}/{name}")
    waiting = await until(hub, CLUSTERS, name, has_condition("Deleting", "False"))
    (told,) = [c for c in waiting["status"]["conditions"] if c["type"] == "Deleting"]
    assert told["reason"] == "ResourceRemaining"
    assert told["message"] == (
        "The resource managedclusteraddons is remaining, the remaining count is 1, the finalizer"
        " pending count is 1"
    )
    force = {"metadata": {"annotations": {"hublet.io/force-detach": "true"}}}
    await hub.admin.patch(f"{CLUSTERS}/{name}", force)
    await until_gone(hub, f"{CLUSTERS}/{name}")
    assert (await hub.admin.get(works))["items"] == []
    query = f"fieldSelector=involvedObject.name%3D{name},reason%3DForcedDetach"
    (event,) = (await hub.admin.get(f"/api/v1/namespaces/default/events?{query}"))["items"]
    assert event["type"] == "Warning"
    listed = event["message"].partition(": ")[2]
    assert listed.startswith("managedclusteraddons/held, manifestworks/w00, manifestworks/w01")
    assert listed.endswith("manifestworks/w18 and 3 more")


async def until_gone(hub: InProcess, path: str) -> None:
    collection, _, name = path.rpartition("/")
    now = (await hub.admin.get(collection))["metadata"]["resourceVersion"]
    if (await hub.admin.call("GET", path)).status == 404:
        return
    query = f"watch=1&resourceVersion={now}&fieldSelector=metadata.name%3D{name}"
    async with hub.admin.watch(f"{collection}?{query}") as watch:
        await until_event(watch, is_deleted)


async def test_add_ons_go_in_the_order_of_their_cleanup_priority(hub: InProcess, name: str) -> None:
    await (await joined(hub, name)).close()
    addons = ADDONS.format("v1alpha1", name)
    for each, priority in (("first", None), ("second", "20"), ("third", "100")):
        meta: Obj = {"name": each, "finalizers": ["example.com/hold"]}
        if priority:
            meta["annotations"] = {"open-cluster-management.io/cleanup-priority": priority}
        await hub.admin.create(addons, {"metadata": meta})
    now = (await hub.admin.get(addons))["metadata"]["resourceVersion"]
    async with hub.admin.watch(f"{addons}?watch=1&resourceVersion={now}") as watch:
        await hub.admin.call("DELETE", f"{CLUSTERS}/{name}")
        for each in ("first", "second", "third"):
            marked = await watch.next()
            assert (marked["type"], marked["object"]["metadata"]["name"]) == ("MODIFIED", each)
            await hub.admin.patch(f"{addons}/{each}", {"metadata": {"finalizers": None}})
            gone = await watch.next()
            assert (gone["type"], gone["object"]["metadata"]["name"]) == ("DELETED", each)
    await until_gone(hub, f"{CLUSTERS}/{name}")


@pytest.mark.parametrize("unfit", ["a.b", "x" * 64])
async def test_a_clusters_name_is_fit_for_its_namespace(hub: InProcess, unfit: str) -> None:
    assert (await hub.admin.call("POST", CLUSTERS, named(unfit))).status == 422


@pytest.mark.parametrize("reserved", ["registration", "work", "managed-clusters"])
async def test_no_cluster_takes_the_name_of_a_shared_role_or_group(
    hub: InProcess, reserved: str
) -> None:
    answer = await hub.admin.call("POST", CLUSTERS, named(reserved))
    assert answer.status == 422
    assert "is reserved" in answer.obj()["message"]


async def test_a_cluster_that_was_never_accepted_goes_at_once(hub: InProcess, name: str) -> None:
    await hub.admin.create(CLUSTERS, named(name))
    await hub.admin.call("DELETE", f"{CLUSTERS}/{name}")
    assert (await hub.admin.call("GET", f"{CLUSTERS}/{name}")).status == 404
