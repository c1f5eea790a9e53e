"""From a bootstrap token to an agent with rights, and back out again, by hand over the wire."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hub.meta import Obj
from tests.hubs import MERGE, Api, InProcess, running_hub
from tests.server.agents import (
    BOOTSTRAP_USER,
    CLUSTER_LABEL,
    MANAGED,
    PREFIX,
    Wish,
    accept,
    bootstrap,
    certified,
    has_condition,
    joined,
    manifest,
    until,
    until_event,
    work,
)
from tests.server.support import CLUSTERS, RBAC, REQUESTS, SETS, config_maps, named

pytestmark = pytest.mark.asyncio(loop_scope="module")
WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks"
ADDONS = "/apis/addon.open-cluster-management.io/{}/namespaces/{}/managedclusteraddons"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
SET_LABEL = "cluster.open-cluster-management.io/clusterset"
CLUSTER_ROLE = "open-cluster-management:managedcluster:"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[InProcess]:
    data = tmp_path_factory.mktemp("hub") / "data"
    async with running_hub(data, auto_approve_users=(BOOTSTRAP_USER,)) as found:
        yield found


def is_approved(request: Obj) -> bool:
    conditions = (request.get("status") or {}).get("conditions") or []
    return any(c["type"] == "Approved" for c in conditions)


# ------------------------------------------------------------------ certificate requests


@pytest.mark.parametrize(
    "flaw",
    [
        {"common_name": f"{PREFIX}other:a1"},
        {"common_name": f"{PREFIX}{{}}"},
        {"common_name": f"{PREFIX}{{}}:"},
        {"common_name": f"{PREFIX}{{}}:a1:more"},
        {"common_name": "system:admin"},
        {"organizations": [f"{PREFIX}other"]},
        {"organizations": [MANAGED]},
        {"organizations": [f"{PREFIX}{{}}", "system:nodes"]},
        {"organizations": []},
        {"dns_names": ["hub.example"]},
        {"labels": {}},
        {"labels": {CLUSTER_LABEL: "other"}},
        {"labels": {CLUSTER_LABEL: "{}", "open-cluster-management.io/addon-name": "x"}},
        {"signer": "example.com/signer"},
    ],
)
async def test_a_request_that_is_not_exactly_an_agents_waits_for_a_person(
    hub: InProcess, name: str, flaw: dict[str, object]
) -> None:
    wish = Wish(name, **{k: _filled(v, name) for k, v in flaw.items()})  # type: ignore[arg-type]  # a table of fields
    first = await bootstrap(hub)
    try:
        bad = await first.create(REQUESTS, wish.as_obj())
        # requests are looked at in order: once this one is signed, the other has been judged
        await (await certified(hub, first, Wish(name))).close()
    finally:
        await first.close()
    assert not is_approved(await hub.admin.get(f"{REQUESTS}/{bad['metadata']['name']}"))


def _filled(value: object, name: str) -> object:
    if isinstance(value, str):
        return value.replace("{}", name)
    if isinstance(value, list):
        return [_filled(v, name) for v in value]
    if isinstance(value, dict):
        return {k: _filled(v, name) for k, v in value.items()}
    return value


async def test_the_server_writes_who_asked_and_nobody_changes_it(hub: InProcess, name: str) -> None:
    wish = Wish(name).as_obj()
    wish["spec"] |= {"username": "system:admin", "groups": ["system:masters"]}
    first = await bootstrap(hub)
    try:
        made = await first.create(REQUESTS, wish)
    finally:
        await first.close()
    assert made["metadata"]["name"].startswith(f"{name}-")
    assert made["spec"]["username"] == BOOTSTRAP_USER
    assert "system:serviceaccounts:open-cluster-management" in made["spec"]["groups"]
    path = f"{REQUESTS}/{made['metadata']['name']}"
    patched = await hub.admin.patch(path, {"spec": {"username": "x", "signerName": "a/b"}})
    assert patched["spec"] == made["spec"]


async def test_a_user_who_is_not_listed_waits_for_a_person(hub: InProcess, name: str) -> None:
    by_admin = await hub.admin.create(REQUESTS, Wish(name).as_obj())
    first = await bootstrap(hub)
    try:
        await (await certified(hub, first, Wish(name))).close()
    finally:
        await first.close()
    assert not is_approved(await hub.admin.get(f"{REQUESTS}/{by_admin['metadata']['name']}"))


async def test_an_approval_needs_the_right_on_the_signer(hub: InProcess, name: str) -> None:
    agent = await joined(hub, name)
    try:
        made = await agent.create(REQUESTS, Wish("another").as_obj())
        path = f"{REQUESTS}/{made['metadata']['name']}"
        body = {"status": {"conditions": [{"type": "Approved", "status": "True"}]}}
        for sub in ("approval", "status"):
            answer = await agent.call("PATCH", f"{path}/{sub}", body, content_type=MERGE)
            assert answer.status == 403
    finally:
        await agent.close()


async def test_a_renewal_is_for_the_very_identity_that_asks(hub: InProcess, name: str) -> None:
    agent = await joined(hub, name)
    try:
        foreign = await agent.create(REQUESTS, Wish(f"{name}-other").as_obj())
        sibling = Wish(name, common_name=f"{PREFIX}{name}:a2")
        other_agent = await agent.create(REQUESTS, sibling.as_obj())
        renewed = await certified(hub, agent, Wish(name))
        try:
            found = await renewed.get(f"{CLUSTERS}/{name}")
            assert found["metadata"]["name"] == name
        finally:
            await renewed.close()
        for request in (foreign, other_agent):
            path = f"{REQUESTS}/{request['metadata']['name']}"
            assert not is_approved(await hub.admin.get(path))
    finally:
        await agent.close()


async def test_a_long_cluster_name_is_no_obstacle(hub: InProcess, name: str) -> None:
    long = f"{name}-with-a-name-of-sixty-three-characters-as-long-as-it-may-be"[:63]
    agent = await joined(hub, long.rstrip("-"))
    try:
        assert await agent.get(f"{CLUSTERS}/{long.rstrip('-')}")
    finally:
        await agent.close()


# ------------------------------------------------------------------ acceptance


async def test_registration_itself_gives_no_rights(hub: InProcess, name: str) -> None:
    first = await bootstrap(hub)
    try:
        info = await first.get("/api/v1/namespaces/kube-public/configmaps/cluster-info")
        assert hub.url in info["data"]["kubeconfig"]
        await first.create(CLUSTERS, named(name))
        agent = await certified(hub, first, Wish(name))
        assert (await agent.call("GET", f"{CLUSTERS}/{name}")).status == 403
        await agent.close()
    finally:
        await first.close()


async def test_whoever_registers_can_not_accept(hub: InProcess, name: str) -> None:
    first = await bootstrap(hub)
    try:
        accepted = named(name, spec={"hubAcceptsClient": True})
        answer = await first.call("POST", CLUSTERS, accepted)
        assert answer.status == 403
        assert answer.obj()["message"] == (
            f'managedclusters.cluster.open-cluster-management.io "{name}" is forbidden: user '
            f'"{BOOTSTRAP_USER}" is not allowed to accept ManagedCluster'
        )
        made = await first.create(CLUSTERS, named(name))
        assert made["metadata"]["labels"] == {SET_LABEL: "default"}
        # the taint controller has had its turn: no conflict comes in between
        await until(hub, CLUSTERS, name, lambda e: bool(e["object"]["spec"].get("taints")))
        current = await first.get(f"{CLUSTERS}/{name}")
        body = {**current, "spec": {**current["spec"], "hubAcceptsClient": True}}
        assert (await first.call("PUT", f"{CLUSTERS}/{name}", body)).status == 403
    finally:
        await first.close()


async def test_a_set_is_joined_and_left_with_the_right_to_it_only(
    hub: InProcess, name: str
) -> None:
    """Bootstrap identities have it for every set, as upstream; an operator may narrow that."""
    first = await bootstrap(hub)
    try:
        chosen = named(name)
        chosen["metadata"]["labels"] = {SET_LABEL: "production"}
        assert (await first.create(CLUSTERS, chosen))["metadata"]["labels"] == {
            SET_LABEL: "production"
        }
    finally:
        await first.close()
    group = "cluster.open-cluster-management.io"
    rules = [
        {"apiGroups": [group], "resources": ["managedclusters"], "verbs": ["*"]},
        {
            "apiGroups": [group],
            "resources": ["managedclustersets/join"],
            "resourceNames": ["default"],
            "verbs": ["create"],
        },
    ]
    await hub.admin.create(f"{RBAC}/clusterroles", named(name, rules=rules))
    role = {"kind": "ClusterRole", "name": name}
    bound = named(name, roleRef=role, subjects=[{"kind": "User", "name": name}])
    await hub.admin.create(f"{RBAC}/clusterrolebindings", bound)
    narrow = hub.admin.acting_as(name)
    other = named(f"{name}-2")
    other["metadata"]["labels"] = {SET_LABEL: "production"}
    assert (await narrow.call("POST", CLUSTERS, other)).status == 403
    await narrow.create(CLUSTERS, named(f"{name}-2"))
    for cluster, wanted in ((f"{name}-2", "production"), (name, "default")):
        label = {"metadata": {"labels": {SET_LABEL: wanted}}}
        answer = await narrow.call("PATCH", f"{CLUSTERS}/{cluster}", label, content_type=MERGE)
        assert answer.status == 403, answer.body


async def test_acceptance_prepares_everything_an_agent_needs(hub: InProcess, name: str) -> None:
    agent = await joined(hub, name)
    await agent.close()
    cluster = await hub.admin.get(f"{CLUSTERS}/{name}")
    assert set(cluster["metadata"]["finalizers"]) == {
        "cluster.open-cluster-management.io/resource-cleanup",
        "cluster.open-cluster-management.io/api-resource-cleanup",
    }
    (condition,) = (
        c for c in cluster["status"]["conditions"] if c["type"] == "HubAcceptedManagedCluster"
    )
    assert condition["reason"] == "HubClusterAdminAccepted"
    namespace = await hub.admin.get(f"/api/v1/namespaces/{name}")
    assert namespace["metadata"]["labels"][CLUSTER_LABEL] == name
    lease = await hub.admin.get(f"{LEASES.format(name)}/managed-cluster-lease")
    assert lease["metadata"]["labels"] == {CLUSTER_LABEL: name}
    assert lease["spec"]["holderIdentity"] == "managed-cluster-lease"
    assert lease["spec"]["renewTime"].endswith("Z")
    role = await hub.admin.get(f"{RBAC}/clusterroles/{CLUSTER_ROLE}{name}")
    assert role["metadata"]["labels"] == {CLUSTER_LABEL: name}
    binding = await hub.admin.get(f"{RBAC}/clusterrolebindings/{CLUSTER_ROLE}{name}")
    groups = {f"system:open-cluster-management:{name}", f"open-cluster-management:{name}"}
    assert {subject["name"] for subject in binding["subjects"]} == groups
    bindings = f"{RBAC}/namespaces/{name}/rolebindings/{CLUSTER_ROLE}{name}"
    registration = await hub.admin.get(f"{bindings}:registration")
    assert registration["roleRef"]["name"] == f"{CLUSTER_ROLE}registration"
    works = await hub.admin.get(f"{bindings}:work")
    assert works["metadata"]["finalizers"] == [
        "cluster.open-cluster-management.io/manifest-work-cleanup"
    ]


async def test_an_agent_may_do_its_work_and_nothing_beside_it(hub: InProcess, name: str) -> None:
    agent = await joined(hub, name)
    try:
        own = f"{CLUSTERS}?fieldSelector=metadata.name%3D{name}"
        assert len((await agent.get(own))["items"]) == 1
        async with agent.watch(f"{own}&watch=1") as watch:
            assert (await watch.next())["object"]["metadata"]["name"] == name
        status = {"status": {"version": {"kubernetes": "v1.36.2"}}}
        await agent.patch(f"{CLUSTERS}/{name}/status", status)
        lease = await agent.get(f"{LEASES.format(name)}/managed-cluster-lease")
        lease["spec"]["renewTime"] = "2026-01-01T00:00:00.000000Z"
        put = await agent.call("PUT", f"{LEASES.format(name)}/managed-cluster-lease", lease)
        assert put.status == 200
        await hub.admin.create(WORKS.format(name), work("w"))
        assert len((await agent.get(WORKS.format(name)))["items"]) == 1
        await agent.patch(f"{WORKS.format(name)}/w/status", {"status": {"conditions": []}})
        refused = [
            ("GET", CLUSTERS),
            ("GET", f"{CLUSTERS}?watch=1"),
            ("GET", f"{CLUSTERS}?fieldSelector=metadata.name%3Dother"),
            ("GET", WORKS.format("default")),
            ("GET", "/apis/work.open-cluster-management.io/v1/manifestworks"),
            ("GET", f"/api/v1/namespaces/{name}/secrets"),
            ("GET", f"{LEASES.format('default')}/managed-cluster-lease"),
            ("DELETE", f"{CLUSTERS}/{name}"),
            ("DELETE", f"{WORKS.format(name)}/w"),
            ("POST", WORKS.format(name)),
        ]
        for method, path in refused:
            body: Obj | None = {} if method == "POST" else None
            assert (await agent.call(method, path, body)).status == 403, path
        accepts = {"spec": {"hubAcceptsClient": True}, "metadata": {"labels": {"x": "y"}}}
        patched = await agent.call("PATCH", f"{CLUSTERS}/{name}", accepts, content_type=MERGE)
        assert patched.status == 403
    finally:
        await agent.close()


async def test_nobody_is_denied_by_another_cluster_or_by_a_bootstrap_identity(
    hub: InProcess, name: str
) -> None:
    agent, first = await joined(hub, name), await bootstrap(hub)
    try:
        for identity in (agent, first):
            current = await identity.get(f"{CLUSTERS}/{name}")
            body = {**current, "spec": {**current["spec"], "hubAcceptsClient": False}}
            refused = await identity.call("PUT", f"{CLUSTERS}/{name}", body)
            assert refused.status == 403
            assert "is not allowed to deny ManagedCluster" in refused.obj()["message"]
        assert (await agent.call("GET", WORKS.format(name))).status == 200
    finally:
        await agent.close()
        await first.close()


async def test_denial_cuts_the_rights_and_acceptance_brings_them_back(
    hub: InProcess, name: str
) -> None:
    agent = await joined(hub, name)
    try:
        await hub.admin.patch(f"{CLUSTERS}/{name}", {"spec": {"hubAcceptsClient": False}})
        denied = has_condition("HubAcceptedManagedCluster", "False")
        cluster = await until(hub, CLUSTERS, name, denied)
        (condition,) = (
            c for c in cluster["status"]["conditions"] if c["type"] == "HubAcceptedManagedCluster"
        )
        assert condition["reason"] == "HubClusterAdminDenied"
        assert (await agent.call("GET", f"{CLUSTERS}/{name}")).status == 200
        lease = f"{LEASES.format(name)}/managed-cluster-lease"
        for method, path in (
            ("GET", lease),
            ("GET", WORKS.format(name)),
            ("PATCH", f"{CLUSTERS}/{name}/status"),
            ("POST", REQUESTS),
        ):
            body: Obj | None = {} if method != "GET" else None
            answer = await agent.call(method, path, body, content_type=MERGE)
            assert answer.status == 403, path
        await accept(hub, name)
        assert (await agent.call("GET", lease)).status == 200
    finally:
        await agent.close()


# ------------------------------------------------------------------ sets


async def test_a_built_in_set_keeps_its_selector_unless_told_otherwise(hub: InProcess) -> None:
    edited = {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"a": "b"}}}
    path = f"{SETS}/global"
    spec = {"clusterSelector": edited}
    now = (await hub.admin.patch(path, {"spec": spec}))["metadata"]["resourceVersion"]
    query = f"{SETS}?watch=1&resourceVersion={now}&fieldSelector=metadata.name%3Dglobal"
    async with hub.admin.watch(query) as watch:
        back = await until_event(watch, lambda e: e["object"]["spec"] != spec)
    assert back["spec"]["clusterSelector"] == {"selectorType": "LabelSelector", "labelSelector": {}}
    off = {"cluster.open-cluster-management.io/autoupdate": "false"}
    await hub.admin.patch(path, {"metadata": {"annotations": off}, "spec": spec})
    await until(hub, SETS, "global", has_condition("ClusterSetEmpty", "True"))
    assert (await hub.admin.get(path))["spec"] == spec
    await hub.admin.patch(path, {"metadata": {"annotations": None}})
    await until(hub, SETS, "global", lambda e: e["object"]["spec"] != spec)


async def test_the_built_in_sets_come_back_and_count(hub: InProcess, name: str) -> None:
    for each, selector in (
        ("default", {"selectorType": "ExclusiveClusterSetLabel"}),
        ("global", {"selectorType": "LabelSelector", "labelSelector": {}}),
    ):
        found = await hub.admin.get(f"{SETS}/{each}")
        assert found["spec"]["clusterSelector"] == selector
        uid = found["metadata"]["uid"]
        await hub.admin.call("DELETE", f"{SETS}/{each}")

        def is_another(event: Obj, old: str = uid) -> bool:
            return bool(event["type"] == "ADDED" and event["object"]["metadata"]["uid"] != old)

        await until(hub, SETS, each, is_another)
    label = {"cluster.open-cluster-management.io/clusterset": name}
    await hub.admin.create(SETS, named(name))
    await until(hub, SETS, name, has_condition("ClusterSetEmpty", "True"))
    await hub.admin.create(CLUSTERS, {"metadata": {"name": name, "labels": label}})
    filled = await until(hub, SETS, name, has_condition("ClusterSetEmpty", "False"))
    (condition,) = filled["status"]["conditions"]
    assert (condition["reason"], condition["message"]) == (
        "ClustersSelected",
        "1 ManagedClusters selected",
    )
    await hub.admin.call("DELETE", f"{CLUSTERS}/{name}")
    await until(hub, SETS, name, has_condition("ClusterSetEmpty", "True"))


# ------------------------------------------------------------------ works and add-ons


@pytest.mark.parametrize(
    ("manifests", "problem"),
    [
        ([], "must hold at least one manifest"),
        ([{"kind": "ConfigMap", "metadata": {"name": "a"}}], "needs apiVersion and kind"),
        ([{"apiVersion": "v1", "kind": "ConfigMap"}], "metadata.name: must be given"),
        ([manifest(metadata={"generateName": "a-"})], "generateName is not supported"),
        ([manifest(), manifest("b"), manifest()], "the same object stands in the work twice"),
        ([manifest(data={"x": "y" * 520_000})], "bytes exceed the limit of 512000"),
    ],
)
async def test_a_work_that_no_agent_could_apply_is_400(
    hub: InProcess, ns: str, manifests: list[Obj], problem: str
) -> None:
    body = {"metadata": {"name": "w"}, "spec": {"workload": {"manifests": manifests}}}
    answer = await hub.admin.call("POST", WORKS.format(ns), body)
    assert (answer.status, answer.obj()["reason"]) == (400, "BadRequest")
    assert problem in answer.obj()["message"]
    await hub.admin.create(WORKS.format(ns), work("w"))
    patched = await hub.admin.call(
        "PATCH", f"{WORKS.format(ns)}/w", {"spec": body["spec"]}, content_type=MERGE
    )
    assert patched.status == 400


async def test_an_add_on_is_one_object_in_two_versions(hub: InProcess, ns: str) -> None:
    old, new = (ADDONS.format(version, ns) for version in ("v1alpha1", "v1beta1"))
    made = await hub.admin.create(new, named("work-manager"))
    namespace_annotation = "addon.open-cluster-management.io/v1alpha1-install-namespace"
    default_namespace = "open-cluster-management-agent-addon"
    assert made["metadata"]["annotations"] == {namespace_annotation: default_namespace}
    assert "installNamespace" not in made["spec"]
    stored = await hub.admin.get(f"{old}/work-manager")
    assert stored["spec"]["installNamespace"] == default_namespace
    assert "annotations" not in stored["metadata"]
    registrations = [
        {
            "type": "kubeClient",
            "kubeClient": {"subject": {"user": "u", "groups": ["g"]}, "driver": "csr"},
        },
        {
            "type": "customSigner",
            "customSigner": {"signerName": "example.com/s", "subject": {"user": "v"}},
        },
    ]
    patched = await hub.admin.patch(
        f"{new}/work-manager/status", {"status": {"registrations": registrations}}
    )
    assert patched["status"]["registrations"] == registrations
    shown = await hub.admin.get(f"{old}/work-manager")
    assert shown["status"]["registrations"] == [
        {
            "signerName": "kubernetes.io/kube-apiserver-client",
            "subject": {"user": "u", "groups": ["g"]},
        },
        {"signerName": "example.com/s", "subject": {"user": "v"}},
    ]
    assert shown["status"]["kubeClientDriver"] == "csr"
    condition = {
        "type": "Available",
        "status": "True",
        "reason": "R",
        "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    await hub.admin.patch(f"{old}/work-manager/status", {"status": {"conditions": [condition]}})
    after = await hub.admin.get(f"{new}/work-manager")
    assert after["status"]["conditions"] == [condition]
    assert after["status"]["registrations"] == registrations
    async with hub.admin.watch(f"{new}?watch=1") as watch:
        event = await watch.next()
        assert event["object"]["apiVersion"] == "addon.open-cluster-management.io/v1beta1"
    moved = {"metadata": {"annotations": {namespace_annotation: "elsewhere"}}}
    await hub.admin.patch(f"{new}/work-manager", moved)
    assert (await hub.admin.get(f"{old}/work-manager"))["spec"]["installNamespace"] == "elsewhere"


async def test_an_agent_reports_its_own_add_ons_only(hub: InProcess, name: str) -> None:
    agent: Api = await joined(hub, name)
    try:
        await hub.admin.create(ADDONS.format("v1alpha1", name), named("a"))
        await agent.patch(
            f"{ADDONS.format('v1beta1', name)}/a/status", {"status": {"conditions": []}}
        )
        other = await agent.call("GET", ADDONS.format("v1beta1", "default"))
        assert other.status == 403
        assert (await agent.call("GET", config_maps(name))).status == 403
    finally:
        await agent.close()
