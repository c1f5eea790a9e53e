"""What users of such hubs have run into, and what a hub of ours does then.

`tests/unit/test_pain_points.py` lists the reports; these are the tests that have no other place.
"""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from cryptography import x509

from hub.meta import Obj
from tests.hubs import MERGE, Api, InProcess, running_hub
from tests.server.agents import (
    BOOTSTRAP_USER,
    Wish,
    bootstrap,
    certified,
    has_condition,
    is_deleted,
    joined,
    until,
    until_event,
)
from tests.server.support import CLUSTERS, RBAC, REQUESTS, cluster_access, named

WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/managed-cluster-lease"
CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
ROLE = "open-cluster-management:managedcluster:"
ACCEPTED = "HubAcceptedManagedCluster"
MANY_WORKS = 120
MANY_CLUSTERS = 100


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[InProcess]:
    data = tmp_path_factory.mktemp("hub") / "data"
    async with running_hub(data, auto_approve_users=(BOOTSTRAP_USER,)) as found:
        yield found


async def delete(hub: InProcess, cluster: str) -> None:
    """Delete a cluster and wait until it is gone."""
    path = f"{CLUSTERS}?watch=1&fieldSelector=metadata.name%3D{cluster}"
    async with hub.admin.watch(path) as watch:
        assert (await hub.admin.call("DELETE", f"{CLUSTERS}/{cluster}")).status == 200
        await until_event(watch, is_deleted)


async def make(hub: InProcess, cluster: str) -> Obj:
    """Create a cluster that is accepted, and wait until the hub is ready for its agent."""
    await hub.admin.create(CLUSTERS, named(cluster, spec={"hubAcceptsClient": True}))
    return await until(hub, CLUSTERS, cluster, has_condition(ACCEPTED))


async def renew(agent: Api, cluster: str) -> None:
    """One round of the agent's lease loop: read, then write with a new time."""
    lease = await agent.get(LEASE.format(cluster))
    assert lease["spec"]["renewTime"], "without it agents of several hubs crash"
    lease["spec"]["renewTime"] = "2026-01-01T00:00:00.000000Z"
    assert (await agent.call("PUT", LEASE.format(cluster), lease)).status == 200


@pytest.mark.asyncio(loop_scope="module")
async def test_a_cluster_made_again_goes_on_with_its_certificate_and_its_lease(
    hub: InProcess, name: str
) -> None:
    agent = await joined(hub, name)
    try:
        before = await hub.admin.get(f"{CLUSTERS}/{name}")
        await renew(agent, name)
        requests = len((await hub.admin.get(REQUESTS))["items"])
        for _ in range(2):
            await delete(hub, name)
            assert (await agent.call("GET", f"{CLUSTERS}/{name}")).status == 403
            after = await make(hub, name)
            assert after["metadata"]["uid"] != before["metadata"]["uid"]
            assert (await agent.get(f"{CLUSTERS}/{name}"))["spec"]["hubAcceptsClient"]
            assert (await agent.get(WORKS.format(name)))["items"] == []
            await renew(agent, name)
        assert len((await hub.admin.get(REQUESTS))["items"]) == requests, "no new certificate"
    finally:
        await agent.close()


@pytest.mark.asyncio(loop_scope="module")
async def test_a_hundred_clusters_made_again_are_ready_for_their_agents(
    hub: InProcess, name: str
) -> None:
    clusters = [f"{name}-{number}" for number in range(MANY_CLUSTERS)]
    old = {c["metadata"]["uid"] for c in await asyncio.gather(*(make(hub, c) for c in clusters))}
    await asyncio.gather(*(delete(hub, each) for each in clusters))
    new = await asyncio.gather(*(make(hub, each) for each in clusters))
    assert len(old | {cluster["metadata"]["uid"] for cluster in new}) == 2 * MANY_CLUSTERS
    for each in clusters:
        assert (await hub.admin.get(LEASE.format(each)))["spec"]["renewTime"]
        namespace = await hub.admin.get(f"/api/v1/namespaces/{each}")
        assert namespace["status"]["phase"] == "Active"
        await hub.admin.get(f"{RBAC}/clusterrolebindings/{ROLE}{each}")
        for part in ("registration", "work"):
            await hub.admin.get(f"{RBAC}/namespaces/{each}/rolebindings/{ROLE}{each}:{part}")


@pytest.mark.asyncio(loop_scope="module")
async def test_the_ca_that_clusters_are_given_is_a_ca_and_never_the_leaf(hub: InProcess) -> None:
    """So a serving certificate that is renewed cuts nobody off."""
    told = yaml.safe_load((await hub.admin.get(CLUSTER_INFO))["data"]["kubeconfig"])
    given = base64.b64decode(told["clusters"][0]["cluster"]["certificate-authority-data"])
    assert given == cluster_access(hub)[1]
    for certificate in x509.load_pem_x509_certificates(given):
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
        assert constraints.value.ca
        years = (certificate.not_valid_after_utc - certificate.not_valid_before_utc).days / 365
        assert years > 9


@pytest.mark.asyncio(loop_scope="module")
async def test_an_agent_alone_on_more_than_a_hundred_works_meets_no_conflict(
    hub: InProcess, name: str
) -> None:
    """The hub writes no field that an agent writes, so the revision an agent knows is the last."""
    agent = await joined(hub, name)
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    spec = {"workload": {"manifests": [manifest]}}
    path = WORKS.format(name)

    async def handle(number: int) -> None:
        made = await hub.admin.create(path, named(f"w-{number}", spec=spec))
        own, meta = f"{path}/w-{number}", made["metadata"]
        for sub, body in (
            ("", {"metadata": {"finalizers": ["example.com/held"]}}),
            ("/status", {"status": {"conditions": [condition("Applied")]}}),
            ("/status", {"status": {"conditions": [condition("Applied"), condition("Available")]}}),
        ):
            known = {name: meta[name] for name in ("uid", "resourceVersion")}
            patch = {**body, "metadata": {**body.get("metadata", {}), **known}}
            answer = await agent.call("PATCH", f"{own}{sub}", patch, content_type=MERGE)
            assert answer.status == 200, answer.body
            meta = answer.obj()["metadata"]
        stale = {"metadata": {"resourceVersion": "1"}, "status": {}}
        answer = await agent.call("PATCH", f"{own}/status", stale, content_type=MERGE)
        assert (answer.status, answer.obj()["reason"]) == (409, "Conflict")

    try:
        await asyncio.gather(*(handle(number) for number in range(MANY_WORKS)))
        works = (await agent.get(path))["items"]
        assert len(works) == MANY_WORKS
        assert all(len(work["status"]["conditions"]) == 2 for work in works)
    finally:
        await agent.close()


def condition(type_: str) -> Obj:
    at = "2026-01-01T00:00:00Z"
    return {"type": type_, "status": "True", "reason": "R", "message": "", "lastTransitionTime": at}


async def test_certificates_of_agents_stay_good_when_the_hub_starts_again(tmp_path: Path) -> None:
    wish = Wish("c")
    async with running_hub(tmp_path / "data", auto_approve_users=(BOOTSTRAP_USER,)) as first:
        await make(first, "c")
        api = await bootstrap(first)
        await (await certified(first, api, wish)).close()
        await api.close()
        (request,) = (await first.admin.get(REQUESTS))["items"]
        ca = cluster_access(first)[1]
    certificate = base64.b64decode(request["status"]["certificate"])
    async with running_hub(tmp_path / "data") as second:
        server, same_ca = cluster_access(second)
        assert same_ca == ca
        agent = Api.connect(server, ca=ca, cert=certificate, key=wish.key_pem())
        try:
            await renew(agent, "c")
        finally:
            await agent.close()
