"""The real kubectl 1.35 changing objects: its three types of patches, edit, apply, label, tokens.

Expected texts are those of the recorded tour with a real kube-apiserver.
"""

import base64
import json
import uuid
from pathlib import Path

import pytest
import yaml

from hub.meta import Obj
from tests.clients.cli import Kubectl
from tests.hubs import InProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"


def fresh(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def ns() -> str:
    return fresh("ns")


async def config_map(k: Kubectl, ns: str) -> None:
    await k.ok("create", "namespace", ns)
    await k.ok("create", "cm", "c1", "--from-literal=hello=world", "--from-literal=n=1", "-n", ns)


async def read(k: Kubectl, *what: str) -> Obj:
    return (await k.ok("get", *what, "-o", "json")).obj()


# ------------------------------------------------------------------ patch


async def test_a_configmap_is_patched_in_three_ways(k: Kubectl, ns: str) -> None:
    await config_map(k, ns)
    steps = {
        "merge": '{"data":{"hello":"merged","n":null}}',
        "json": '[{"op":"test","path":"/data/hello","value":"merged"},'
        '{"op":"add","path":"/data/j","value":"x"}]',
        "strategic": '{"metadata":{"labels":{"s":"1"}},"data":{"s":"t"}}',
    }
    for kind, patch in steps.items():
        found = await k.ok("patch", "cm", "c1", f"--type={kind}", "-p", patch, "-n", ns)
        assert found.out == "configmap/c1 patched\n"
    found = await k.ok("patch", "cm", "c1", "-p", steps["strategic"], "-n", ns)
    assert found.out == "configmap/c1 patched (no change)\n"
    obj = await read(k, "cm", "c1", "-n", ns)
    assert obj["data"] == {"hello": "merged", "j": "x", "s": "t"}
    assert obj["metadata"]["labels"] == {"s": "1"}


async def test_a_failed_test_is_reported_as_by_a_real_server(k: Kubectl, ns: str) -> None:
    await config_map(k, ns)
    patch = '[{"op":"test","path":"/data/hello","value":"nope"}]'
    refused = await k.run("patch", "cm", "c1", "--type=json", "-p", patch, "-n", ns)
    assert (refused.code, refused.err) == (
        1,
        "The request is invalid: the server rejected our request due to an error in our request\n",
    )


async def test_a_service_account_is_patched_by_default_strategically(k: Kubectl, ns: str) -> None:
    await k.ok("create", "namespace", ns)
    await k.ok("create", "sa", "robot", "-n", ns)
    for name in ("s1", "s2"):
        patch = {"imagePullSecrets": [{"name": f"p-{name}"}], "secrets": [{"name": name}]}
        found = await k.ok("patch", "serviceaccount", "robot", "-p", json.dumps(patch), "-n", ns)
        assert found.out == "serviceaccount/robot patched\n"
    obj = await read(k, "sa", "robot", "-n", ns)
    assert obj["secrets"] == [{"name": "s2"}, {"name": "s1"}]
    assert obj["imagePullSecrets"] == [{"name": "p-s2"}]


async def test_a_cluster_takes_merge_and_json_patches_and_no_strategic_one(
    k: Kubectl, hub: InProcess
) -> None:
    name = fresh("mc")
    await hub.admin.create(CLUSTERS, {"metadata": {"name": name}})
    patched = f"managedcluster.cluster.open-cluster-management.io/{name} patched\n"
    for kind, patch in (
        ("merge", '{"spec":{"leaseDurationSeconds":90}}'),
        ("json", '[{"op":"replace","path":"/spec/leaseDurationSeconds","value":92}]'),
    ):
        found = await k.ok("patch", "managedcluster", name, f"--type={kind}", "-p", patch)
        assert found.out == patched
    patch = '{"spec":{"leaseDurationSeconds":91}}'
    refused = await k.run("patch", "managedcluster", name, "--type=strategic", "-p", patch)
    assert refused.code == 1
    assert refused.err == (
        "error: application/strategic-merge-patch+json is not supported by "
        "cluster.open-cluster-management.io/v1, Kind=ManagedCluster: the body of the request was "
        "in an unknown format - accepted media types include: application/json-patch+json, "
        "application/merge-patch+json, application/apply-patch+yaml\n"
    )
    assert (await read(k, "managedcluster", name))["spec"]["leaseDurationSeconds"] == 92
    status = (
        '[{"op":"add","path":"/status","value":{"version":{"kubernetes":"v1.36.2"}}},'
        '{"op":"remove","path":"/spec/leaseDurationSeconds"}]'
    )
    through = ("--subresource=status", "--type=json", "-p", status)
    await k.ok("patch", "managedcluster", name, *through)
    obj = await read(k, "managedcluster", name)
    assert obj["status"]["version"] == {"kubernetes": "v1.36.2"}
    assert obj["spec"]["leaseDurationSeconds"] == 92


async def test_a_patch_is_rehearsed_by_a_server_dry_run(k: Kubectl, ns: str) -> None:
    await config_map(k, ns)
    for kind, patch in (
        ("strategic", '{"data":{"n":"2"}}'),
        ("json", '[{"op":"replace","path":"/data/n","value":"2"}]'),
    ):
        dry = ("--dry-run=server", f"--type={kind}", "-p", patch, "-n", ns, "-o", "json")
        assert (await k.ok("patch", "cm", "c1", *dry)).obj()["data"]["n"] == "2"
    assert (await read(k, "cm", "c1", "-n", ns))["data"]["n"] == "1"


async def test_a_stale_revision_in_a_patch_is_a_conflict(k: Kubectl, ns: str) -> None:
    await config_map(k, ns)
    old = (await read(k, "cm", "c1", "-n", ns))["metadata"]["resourceVersion"]
    await k.ok("label", "cm", "c1", "a=b", "-n", ns)
    patch = json.dumps({"metadata": {"resourceVersion": old}, "data": {"n": "2"}})
    refused = await k.run("patch", "cm", "c1", "-p", patch, "-n", ns)
    assert refused.code == 1
    assert refused.err == (
        'Error from server (Conflict): Operation cannot be fulfilled on configmaps "c1": the '
        "object has been modified; please apply your changes to the latest version and try again\n"
    )


async def test_finalizers_are_taken_off_by_json_patch(k: Kubectl, ns: str) -> None:
    await config_map(k, ns)
    held = '{"metadata":{"finalizers":["example.com/a","example.com/b"]}}'
    await k.ok("patch", "cm", "c1", "-p", held, "-n", ns)
    await k.ok("delete", "cm", "c1", "-n", ns, "--wait=false")
    free = '[{"op":"remove","path":"/metadata/finalizers"}]'
    await k.ok("patch", "cm", "c1", "--type=json", "-p", free, "-n", ns)
    gone = await k.run("get", "cm", "c1", "-n", ns)
    assert gone.err == 'Error from server (NotFound): configmaps "c1" not found\n'


# ------------------------------------------------------------------ edit, apply, diff


async def test_an_edited_object_is_patched(
    kubectl: Path, hub: InProcess, ns: str, tmp_path: Path
) -> None:
    k = Kubectl(kubectl, hub.kubeconfig, tmp_path, "sed -i s/world/edited/")
    await config_map(k, ns)
    found = await k.ok("edit", "cm", "c1", "-n", ns)
    assert found.out == "configmap/c1 edited\n"
    assert (await read(k, "cm", "c1", "-n", ns))["data"] == {"hello": "edited", "n": "1"}
    again = await k.ok("edit", "cm", "c1", "-n", ns)
    assert "no changes made" in again.err
    name = fresh("mc")
    await hub.admin.create(CLUSTERS, {"metadata": {"name": name, "labels": {"a": "world"}}})
    found = await k.ok("edit", "managedcluster", name)
    assert found.out == f"managedcluster.cluster.open-cluster-management.io/{name} edited\n"
    assert (await read(k, "managedcluster", name))["metadata"]["labels"]["a"] == "edited"


async def test_a_changed_manifest_is_applied_by_patch(k: Kubectl, ns: str) -> None:
    await k.ok("create", "namespace", ns)
    manifest: Obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "applied", "namespace": ns, "finalizers": ["example.com/a"]},
        "data": {"hello": "world", "drop": "me", "keep": "yes"},
    }

    async def apply() -> str:
        command = ("apply", "-f", "-")
        return (await k.ok(*command, stdin=yaml.safe_dump(manifest))).out

    assert await apply() == "configmap/applied created\n"
    assert await apply() == "configmap/applied unchanged\n"
    other = '[{"op":"add","path":"/data/other","value":"x"}]'
    await k.ok("patch", "cm", "applied", "--type=json", "-p", other, "-n", ns)
    manifest["data"] = {"hello": "moon", "keep": "yes", "added": "new"}
    manifest["metadata"]["finalizers"] = ["example.com/b"]
    assert await apply() == "configmap/applied configured\n"
    found = await read(k, "cm", "applied", "-n", ns)
    assert found["data"] == {"hello": "moon", "keep": "yes", "added": "new", "other": "x"}
    assert found["metadata"]["finalizers"] == ["example.com/b"]
    manifest["metadata"].pop("finalizers")
    assert await apply() == "configmap/applied configured\n"
    assert "finalizers" not in (await read(k, "cm", "applied", "-n", ns))["metadata"]


async def test_an_applied_account_keeps_the_secrets_of_others(k: Kubectl, ns: str) -> None:
    await k.ok("create", "namespace", ns)
    manifest: Obj = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "robot", "namespace": ns},
        "secrets": [{"name": "a"}, {"name": "b"}],
    }
    for names, expected in ((["a", "b"], ["a", "b"]), (["c", "a"], ["foreign", "c", "a"])):
        manifest["secrets"] = [{"name": name} for name in names]
        await k.ok("apply", "-f", "-", stdin=yaml.safe_dump(manifest))
        found = await read(k, "sa", "robot", "-n", ns)
        assert [s["name"] for s in found["secrets"]] == expected
        await k.ok("patch", "sa", "robot", "-p", '{"secrets":[{"name":"foreign"}]}', "-n", ns)


# ------------------------------------------------------------------ label, annotate, token


async def test_labels_are_kept_from_being_overwritten(k: Kubectl, ns: str) -> None:
    await config_map(k, ns)
    await k.ok("label", "cm", "c1", "color=red", "-n", ns)
    refused = await k.run("label", "cm", "c1", "color=blue", "-n", ns)
    assert (refused.code, refused.err) == (
        1,
        "error: 'color' already has a value (red), and --overwrite is false\n",
    )
    await k.ok("label", "cm", "--all", "all=yes", "-n", ns)
    pinned = (await read(k, "cm", "c1", "-n", ns))["metadata"]["resourceVersion"]
    await k.ok("annotate", "cm", "c1", "note=x", f"--resource-version={pinned}", "-n", ns)
    late = await k.run("annotate", "cm", "c1", "more=x", f"--resource-version={pinned}", "-n", ns)
    assert "the object has been modified" in late.err
    meta = (await read(k, "cm", "c1", "-n", ns))["metadata"]
    assert meta["labels"] == {"color": "red", "all": "yes"}
    assert meta["annotations"] == {"note": "x"}


async def test_a_cluster_is_labelled_and_annotated(k: Kubectl, hub: InProcess) -> None:
    name = fresh("mc")
    await hub.admin.create(CLUSTERS, {"metadata": {"name": name}})
    full = f"managedcluster.cluster.open-cluster-management.io/{name}"
    assert (await k.ok("label", "managedcluster", name, "team=blue")).out == f"{full} labeled\n"
    annotated = await k.ok("annotate", "managedcluster", name, "note=x", "--overwrite")
    assert annotated.out == f"{full} annotated\n"
    meta = (await read(k, "managedcluster", name))["metadata"]
    assert (meta["labels"]["team"], meta["annotations"]["note"]) == ("blue", "x")


async def test_a_token_is_made_for_an_audience(k: Kubectl, ns: str) -> None:
    await k.ok("create", "namespace", ns)
    await k.ok("create", "sa", "robot", "-n", ns)
    wanted = ("--duration=1h", "--audience=https://kubernetes.default.svc", "-n", ns)
    token = (await k.ok("create", "token", "robot", *wanted)).out.strip()
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["aud"] == ["https://kubernetes.default.svc"]
    assert claims["sub"] == f"system:serviceaccount:{ns}:robot"
    assert claims["exp"] - claims["iat"] == 3600
    missing = await k.run("create", "token", "nobody", "-n", ns)
    assert 'serviceaccounts "nobody" not found' in missing.err
