"""The commands for people, against a hub: tokens, joining, accepting, listing, detaching."""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from hub.meta import Obj
from tests.hubs import Api, InProcess
from tests.server.agents import Wish, accept, bootstrap, certified, has_condition, until
from tests.server.support import CLUSTERS, REQUESTS, anonymous, named
from tools.asking import EXIT_CONFIG, EXIT_REFUSED, EXIT_UNREACHABLE

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROOT = Path(__file__).parents[2]
WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks"
AGENTS = "/hublet/v1/agents/"
HELD = {
    "metadata": {"name": "w", "finalizers": ["example.com/held"]},
    "spec": {
        "workload": {
            "manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]
        }
    },
}


@dataclass(frozen=True, slots=True)
class Shown:
    """What a command printed, and how it ended."""

    exit_code: int
    stdout: str
    stderr: str


async def run(hub: InProcess, *words: str, env: dict[str, str] | None = None) -> Shown:
    """Run a command in a process of its own."""
    flags = ["--kubeconfig", str(hub.kubeconfig)] if env is None else []
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tools.hublet", *words, *flags),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(env or {})},
        cwd=ROOT,
    )
    out, err = await asyncio.wait_for(process.communicate(), 30)
    return Shown(process.returncode or 0, out.decode(), err.decode())


async def token_of(hub: InProcess, name: str) -> Api:
    """The identity that `join-command` makes for a cluster."""
    shown = await run(hub, "join-command", name, "-o", "kubeconfig")
    assert shown.exit_code == 0, shown.stdout
    config = yaml.safe_load(shown.stdout)
    return anonymous(hub, token=config["users"][0]["user"]["token"])


async def test_a_token_registers_clusters(hub: InProcess, name: str) -> None:
    shown = await run(hub, "get", "token", "-o", "json")
    facts = json.loads(shown.stdout)
    assert facts["hub-apiserver"] == hub.url
    api = anonymous(hub, token=facts["hub-token"])
    try:
        await api.create(CLUSTERS, named(name))
        await api.create(REQUESTS, Wish(name).as_obj())
    finally:
        await api.close()
    text = (await run(hub, "get", "token")).stdout
    assert text.startswith("token=")
    assert f"--hub-apiserver {hub.url} --wait --cluster-name <cluster_name>" in text


async def test_a_bootstrap_token_is_made_where_clusteradm_looks_for_it(
    hub: InProcess, name: str
) -> None:
    words = ("get", "token", "--bootstrap-token", "--expiration", "30m", "-o", "json")
    token = json.loads((await run(hub, *words)).stdout)["hub-token"]
    secrets = "/api/v1/namespaces/kube-system/secrets"
    found = (await hub.admin.get(f"{secrets}?labelSelector=app%3Dcluster-manager"))["items"]
    names = [each["metadata"]["name"] for each in found]
    assert f"bootstrap-token-{token.partition('.')[0]}" in names
    api = anonymous(hub, token=token)
    try:
        await api.create(CLUSTERS, named(name))
        asked = await api.create(REQUESTS, Wish(name).as_obj())
        assert asked["spec"]["username"].startswith("system:bootstrap:")
    finally:
        await api.close()


async def test_a_lifetime_is_checked(hub: InProcess) -> None:
    for given, says in (("9m", "less than the ten minutes"), ("soon", "must be like 60s")):
        shown = await run(hub, "get", "token", "--expiration", given)
        assert shown.exit_code == EXIT_CONFIG
        assert says in shown.stderr


async def test_a_clusters_own_account_brings_in_that_cluster_alone(
    hub: InProcess, name: str
) -> None:
    """Its certificate needs no person, again and again; nothing else is to be had with it."""
    api = await token_of(hub, name)
    try:
        cluster = await api.get(f"{CLUSTERS}/{name}")
        assert cluster["spec"]["hubAcceptsClient"]
        for _ in range(2):  # a cluster that is made anew asks again
            agent = await certified(hub, api, Wish(name))
            assert (await agent.call("GET", f"{CLUSTERS}/{name}")).status == 200
            await agent.close()
        other = await api.create(REQUESTS, Wish("other").as_obj())
        await asyncio.sleep(0)
        assert not (other.get("status") or {}).get("conditions")
        for path in (CLUSTERS, f"{CLUSTERS}/other", WORKS.format(name), "/api/v1/secrets"):
            assert (await api.call("GET", path)).status == 403, path
        assert (await api.call("POST", CLUSTERS, named("another"))).status == 403
    finally:
        await api.close()


async def test_joining_is_printed_for_clusteradm_and_for_helm(hub: InProcess, name: str) -> None:
    shown = await run(hub, "join-command", name)
    assert shown.stderr.startswith("warning: the hub's URL is a loopback address; other machines")
    text = shown.stdout
    assert text.startswith("clusteradm join --hub-token ey")
    assert text.rstrip().endswith(f"--hub-apiserver {hub.url} --wait --cluster-name {name}")
    values = yaml.safe_load((await run(hub, "join-command", name, "-o", "helm")).stdout)
    assert values["klusterlet"] == {"clusterName": name}
    inner = yaml.safe_load(values["bootstrapHubKubeConfig"])
    own = yaml.safe_load(hub.kubeconfig.read_text())
    assert inner["clusters"] == own["clusters"], "agents compare the server, its CA and its name"


async def test_a_cluster_may_wait_for_somebody_to_accept_it(hub: InProcess, name: str) -> None:
    assert (await run(hub, "join-command", name, "--no-accept")).exit_code == 0
    cluster = await hub.admin.get(f"{CLUSTERS}/{name}")
    assert cluster["spec"]["hubAcceptsClient"] is False


async def test_a_name_that_is_none_is_refused(hub: InProcess) -> None:
    shown = await run(hub, "join-command", "Not_A_Name")
    assert shown.exit_code == EXIT_CONFIG
    assert "must be a name as namespaces have" in shown.stderr


async def test_acceptance_approves_the_agent_and_accepts_the_cluster(
    hub: InProcess, name: str
) -> None:
    first = await bootstrap(hub)
    try:
        await first.create(CLUSTERS, named(name))
        asked = await first.create(REQUESTS, Wish(name).as_obj())
    finally:
        await first.close()
    shown = await run(hub, "accept", name)
    request = asked["metadata"]["name"]
    assert shown.stdout.splitlines() == [
        f"{name}: approved {request} of system:open-cluster-management:{name}:a1",
        f"{name}: accepted",
    ]
    approved = await hub.admin.get(f"{REQUESTS}/{request}")
    assert approved["status"]["conditions"][0]["reason"] == "HubletAccept"
    await until(hub, CLUSTERS, name, has_condition("HubAcceptedManagedCluster"))
    again = await run(hub, "accept", name, "nobody")
    assert again.exit_code == EXIT_REFUSED
    assert again.stdout == f"{name}: is accepted already\n"
    assert again.stderr == "error: nobody: there is no such ManagedCluster\n"


async def test_two_agents_of_one_name_need_a_person_who_looks(hub: InProcess, name: str) -> None:
    first = await bootstrap(hub)
    try:
        await first.create(CLUSTERS, named(name))
        for agent in ("a1", "b2"):
            common_name = f"system:open-cluster-management:{name}:{agent}"
            await first.create(REQUESTS, Wish(name, common_name=common_name).as_obj())
    finally:
        await first.close()
    refused = await run(hub, "accept", name)
    assert refused.exit_code == EXIT_REFUSED
    assert "several agents, or several keys of one, ask in its name: " in refused.stderr
    for agent in ("a1", "b2"):
        assert f" of system:open-cluster-management:{name}:{agent}" in refused.stderr
    assert (await hub.admin.get(f"{CLUSTERS}/{name}"))["spec"]["hubAcceptsClient"] is False
    shown = await run(hub, "accept", name, "--all-agents")
    assert shown.stdout.count("approved") == 2


async def test_one_agent_with_two_keys_needs_a_person_who_looks(hub: InProcess, name: str) -> None:
    """Whoever has the shared token can copy the name that the true agent asks for."""
    wish = Wish(name)
    first = await bootstrap(hub)
    try:
        await first.create(CLUSTERS, named(name))
        asked = await first.create(REQUESTS, wish.as_obj())
        copied = await first.create(REQUESTS, Wish(name).as_obj())
        refused = await run(hub, "accept", name)
        assert refused.exit_code == EXIT_REFUSED
        for request in (asked, copied):
            assert f"{request['metadata']['name']} of system:" in refused.stderr
        await hub.admin.call("DELETE", f"{REQUESTS}/{copied['metadata']['name']}")
        await first.create(REQUESTS, wish.as_obj())  # asked again by the same agent
    finally:
        await first.close()
    shown = await run(hub, "accept", name)
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.count("approved") == 2


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        (
            {
                "common_name": "system:open-cluster-management:victim:agent",
                "organizations": ["system:open-cluster-management:victim"],
            },
            "must be exactly system:open-cluster-management:{}",
        ),
        ({"common_name": "admin", "organizations": ["admins"]}, "organizations ['admins'] must be"),
        ({"common_name": "admin"}, "common name 'admin' must be"),
        (
            {"signer": "example.com/other"},
            "signer 'example.com/other' must be kubernetes.io/kube-apiserver-client",
        ),
        ({"dns_names": ["hub.example.com"]}, "subject alternative names are not for agents"),
    ],
)
async def test_acceptance_approves_no_other_identity(
    hub: InProcess, name: str, wish: Obj, says: str
) -> None:
    """The label is the free choice of whoever has the shared token."""
    first = await bootstrap(hub)
    try:
        await first.create(CLUSTERS, named(name))
        false = await first.create(REQUESTS, Wish(name, **wish).as_obj())
        true = await first.create(REQUESTS, Wish(name).as_obj())
    finally:
        await first.close()
    shown = await run(hub, "accept", name, "--all-agents")
    assert shown.exit_code == 0, shown.stderr
    assert f"{name}: skipped {false['metadata']['name']}: " in shown.stderr
    assert says.format(name) in shown.stderr
    assert f"approved {true['metadata']['name']} of " in shown.stdout
    assert shown.stdout.count("approved") == 1
    left = await hub.admin.get(f"{REQUESTS}/{false['metadata']['name']}")
    assert not (left.get("status") or {}).get("conditions")


async def test_acceptance_leaves_what_no_bootstrap_account_asks_for(
    hub: InProcess, name: str
) -> None:
    await hub.admin.create(CLUSTERS, named(name))
    await hub.admin.create(REQUESTS, Wish(name).as_obj())
    shown = await run(hub, "accept", name)
    assert "which is no bootstrap account" in shown.stderr
    assert shown.stdout == f"{name}: accepted\n"


async def test_the_fleet_is_listed(hub: InProcess, name: str) -> None:
    await hub.admin.create(CLUSTERS, named(name))
    await accept(hub, name)
    report = {
        "status": {
            "version": {"kubernetes": "v1.31.2"},
            "conditions": [
                *(await hub.admin.get(f"{CLUSTERS}/{name}"))["status"]["conditions"],
                *(
                    {"type": each, "status": "True", "reason": "R", "message": ""}
                    | {"lastTransitionTime": "2026-01-01T00:00:00Z"}
                    for each in ("ManagedClusterJoined", "ManagedClusterConditionAvailable")
                ),
            ],
        }
    }
    await hub.admin.patch(f"{CLUSTERS}/{name}/status", report)
    await hub.admin.create(WORKS.format(name), HELD)
    await hub.admin.create(CLUSTERS, named(f"{name}-new"))
    rows = {r["name"]: r for r in json.loads((await run(hub, "clusters", "-o", "json")).stdout)}
    heard = rows[name].pop("heard")
    assert heard.endswith("Z")
    assert rows[name] == {
        "name": name,
        "accepted": True,
        "joined": "True",
        "available": "True",
        "version": "v1.31.2",
        "works": 1,
        "addons": 0,
        "deleting": False,
    }
    assert rows[f"{name}-new"]["accepted"] is False
    assert rows[f"{name}-new"]["heard"] == ""
    lines = (await run(hub, "clusters")).stdout.splitlines()
    assert lines[0].split() == [
        "NAME", "ACCEPTED", "JOINED", "AVAILABLE", "HEARD", "VERSION", "WORKS", "ADD-ONS"
    ]  # fmt: skip
    (line,) = [line for line in lines if line.startswith(f"{name} ")]
    assert line.split()[1:4] + line.split()[-3:] == ["yes", "True", "True", "v1.31.2", "1", "0"]
    (line,) = [line for line in lines if line.startswith(f"{name}-new ")]
    assert line.split()[1:] == ["no", "-", "-", "-", "-", "0", "0"]
    assert lines[-1].endswith(" available")
    none = await run(hub, "clusters", "-l", "nobody=has-this")
    assert none.stdout.splitlines()[1:] == ["0 clusters, 0 available"]


async def test_a_cluster_is_detached_and_what_holds_it_is_told(hub: InProcess, name: str) -> None:
    await hub.admin.create(CLUSTERS, named(name))
    await accept(hub, name)
    await hub.admin.create(WORKS.format(name), HELD)
    held = await run(hub, "detach", name, "nobody", "--timeout", "1")
    assert held.exit_code == EXIT_REFUSED
    first, second = held.stderr.splitlines()[:2]
    assert first == (
        f"error: {name}: The resource manifestworks is remaining, the remaining count is 1, the"
        " finalizer pending count is 1"
    )
    assert second == "error: nobody: there is no such ManagedCluster"
    assert "--force gives it up" in held.stderr
    (line,) = [x for x in (await run(hub, "clusters")).stdout.splitlines() if f"{name} " in x]
    assert "Deleting" in line.split()
    told = (await run(hub, "why", name)).stdout.splitlines()[0]
    assert told.startswith("it is being deleted since ")
    assert "held by work w: wait for its agent" in told
    forced = await run(hub, "detach", name, "--force")
    assert forced.exit_code == 0, forced.stdout
    assert forced.stdout.splitlines() == [
        f"{name}: detached",
        f"{name}: Given up without their agent, so what they applied stays: manifestworks/w",
    ]
    assert (await hub.admin.call("GET", f"{CLUSTERS}/{name}")).status == 404


async def test_the_bootstrap_account_goes_with_its_cluster(hub: InProcess, name: str) -> None:
    api = await token_of(hub, name)
    try:
        shown = await run(hub, "detach", name)
        assert shown.stdout.splitlines() == [
            f"{name}: detached",
            f"{name}: its bootstrap account is removed, tokens of it are dead",
        ]
        assert (await api.call("GET", f"{CLUSTERS}/{name}")).status == 401
    finally:
        await api.close()
    for kind in ("clusterroles", "clusterrolebindings"):
        path = f"/apis/rbac.authorization.k8s.io/v1/{kind}"
        path += f"/open-cluster-management:bootstrap:{name}"
        assert (await hub.admin.call("GET", path)).status == 404


async def test_force_is_not_recommended_for_a_name_that_is_none(hub: InProcess) -> None:
    shown = await run(hub, "detach", "nobody")
    assert shown.exit_code == EXIT_REFUSED
    assert shown.stderr.splitlines()[1:] == ["hint: see hublet clusters"]


async def test_why_tells_what_the_hub_has_seen(hub: InProcess, name: str) -> None:
    api = await token_of(hub, name)
    agent = await certified(hub, api, Wish(name))
    await api.close()
    try:
        assert (await agent.call("GET", "/api/v1/secrets")).status == 403
        assert (await agent.call("GET", f"{CLUSTERS}/{name}")).status == 200
        refused = await agent.call("GET", f"/hublet/v1/agents/{name}")
        assert refused.status == 403, "an agent learns nothing of others"
    finally:
        await agent.close()
    told = json.loads((await run(hub, "why", name, "-o", "json")).stdout)
    (last,) = told["seen"]["last"].values()
    assert (last["request"], last["code"], last["agent"]) == ("get " + AGENTS + name, 403, "a1")
    assert [each["request"] for each in told["seen"]["refused"]] == [
        "list secrets",
        f"get {AGENTS}{name}",
    ]
    assert told["compared"]["server"] == hub.url
    text = (await run(hub, "why", name)).stdout
    assert text.startswith("the hub refuses it: get /hublet/v1/agents/")
    assert "certificate of a1 until 20" in text
    unknown = await run(hub, "why", "nobody")
    assert unknown.exit_code == EXIT_REFUSED
    assert unknown.stdout.startswith("the hub does not know it")


async def test_a_hub_that_is_not_there_is_told(hub: InProcess, tmp_path: Path) -> None:
    dead = tmp_path / "dead.kubeconfig"
    dead.write_text(hub.kubeconfig.read_text().replace(hub.url, "https://127.0.0.1:1"))
    shown = await run(hub, "clusters", env={"HUBLET_KUBECONFIG": str(dead)})
    assert shown.exit_code == EXIT_UNREACHABLE
    assert shown.stderr.startswith("error: https://127.0.0.1:1 does not answer: ")


async def test_where_the_kubeconfig_comes_from(hub: InProcess, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    both = {"HUBLET_KUBECONFIG": str(hub.kubeconfig), "KUBECONFIG": missing}
    assert (await run(hub, "clusters", env=both)).exit_code == 0
    shown = await run(hub, "clusters", env={"HUBLET_KUBECONFIG": "", "KUBECONFIG": missing})
    assert shown.exit_code == EXIT_CONFIG
    assert f"kubeconfig {missing} cannot be read" in shown.stderr
