"""The real kubectl 1.35 where it reads OpenAPI first: create -f, apply, diff, replace, explain."""

import uuid

import pytest
import yaml

from hub.meta import Obj
from tests.clients.cli import Kubectl

pytestmark = pytest.mark.asyncio(loop_scope="module")


def documents(name: str, color: str) -> str:
    config_map: Obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"color": color},
    }
    cluster: Obj = {
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": {"color": color}},
        "spec": {"hubAcceptsClient": False},
    }
    return yaml.safe_dump_all([config_map, cluster])


async def test_apply_creates_changes_and_leaves_alone(k: Kubectl) -> None:
    name = f"t-{uuid.uuid4().hex[:8]}"
    made = await k.ok("apply", "-f", "-", stdin=documents(name, "red"))
    assert made.out.splitlines() == [
        f"configmap/{name} created",
        f"managedcluster.cluster.open-cluster-management.io/{name} created",
    ]
    again = await k.ok("apply", "-f", "-", stdin=documents(name, "red"))
    assert again.out.count("unchanged") == 2
    changed = await k.ok("apply", "-f", "-", stdin=documents(name, "blue"))
    assert changed.out.count("configured") == 2
    found = (await k.ok("get", "cm", name, "-o", "json")).obj()
    assert found["data"] == {"color": "blue"}


async def test_diff_shows_what_apply_would_change_and_changes_nothing(k: Kubectl) -> None:
    name = f"t-{uuid.uuid4().hex[:8]}"
    await k.ok("apply", "-f", "-", stdin=documents(name, "red"))
    found = await k.run("diff", "-f", "-", stdin=documents(name, "blue"))
    assert found.code == 1, found
    assert "-  color: red" in found.out
    assert "+  color: blue" in found.out
    kept = (await k.ok("get", "cm", name, "-o", "json")).obj()
    assert kept["data"] == {"color": "red"}


async def test_create_and_replace_from_a_file_need_no_flag(k: Kubectl) -> None:
    name = f"t-{uuid.uuid4().hex[:8]}"
    await k.ok("create", "-f", "-", stdin=documents(name, "red"))
    await k.ok("replace", "-f", "-", stdin=documents(name, "green"))
    found = (await k.ok("get", "managedcluster", name, "-o", "json")).obj()
    assert found["metadata"]["labels"]["color"] == "green"
    gone = await k.ok("delete", "-f", "-", stdin=documents(name, "green"))
    assert gone.out.count("deleted") == 2


async def test_explain_knows_built_in_and_fleet_kinds(k: Kubectl) -> None:
    spec = await k.ok("explain", "managedcluster.spec")
    assert "hubAcceptsClient\t<boolean>" in spec.out
    data = await k.ok("explain", "cm.data")
    assert "FIELD: data <map[string]string>" in data.out
    every = await k.ok("explain", "manifestwork", "--recursive")
    assert "manifests" in every.out
