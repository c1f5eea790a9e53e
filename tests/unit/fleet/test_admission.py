"""What may be written into a ManagedCluster and a ManifestWork, beyond their shape."""

from pathlib import Path

import pytest

from hub.auth.rbac import Authorizer
from hub.auth.user import User
from hub.fleet.admission import SET_LABEL, install_admission, set_of
from hub.fleet.detachment import FORCE
from hub.fleet.kinds import MANAGED_CLUSTER, MANIFEST_WORK
from hub.fleet.sets import selector_of
from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.registry.builtin import NAMESPACE
from hub.registry.call import Call
from hub.registry.engine import Change
from tests.unit.registry.given import VirtualClock, an_engine


def rights(*rules: Obj) -> Authorizer:
    """An authorizer that gives the user ``u`` some rights."""
    found = Authorizer()
    role: Obj = {"metadata": {"name": "r"}, "rules": list(rules)}
    found.apply("ClusterRole", "", "r", role)
    binding: Obj = {
        "metadata": {"name": "b"},
        "roleRef": {"kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "User", "name": "u"}],
    }
    found.apply("ClusterRoleBinding", "", "b", binding)
    return found


def may_join(*names: str) -> Obj:
    return {
        "apiGroups": ["cluster.open-cluster-management.io"],
        "resources": ["managedclustersets/join"],
        "resourceNames": list(names),
        "verbs": ["create"],
    }


def may_accept(name: str) -> Obj:
    return {
        "apiGroups": ["register.open-cluster-management.io"],
        "resources": ["managedclusters/accept"],
        "resourceNames": [name],
        "verbs": ["update"],
    }


CALL = Call(User("u", ()))


def cluster(name: str = "c", *, in_set: str = "", **spec: object) -> Obj:
    labels = {SET_LABEL: in_set} if in_set else {}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


async def test_acceptance_is_a_right_of_its_own_for_each_cluster(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock()) as engine:
        install_admission(engine, rights(may_join("default"), may_accept("c")))
        accepted = cluster(hubAcceptsClient=True)
        await engine.create(MANAGED_CLUSTER, accepted, call=CALL)
        with pytest.raises(ApiError) as refused:
            await engine.create(MANAGED_CLUSTER, cluster("d", hubAcceptsClient=True), call=CALL)
        assert refused.value.code == 403
        await engine.create(MANAGED_CLUSTER, cluster("d"), call=CALL)

        def accept(obj: Obj) -> None:
            obj["spec"]["hubAcceptsClient"] = True

        with pytest.raises(ApiError):
            await engine.modify(MANAGED_CLUSTER, "d", accept, call=CALL)
        # what is accepted already may be written by anyone who may write
        await engine.modify(MANAGED_CLUSTER, "c", lambda o: o["spec"].update(x=1), call=CALL)


@pytest.mark.parametrize(
    ("joinable", "before", "after", "is_allowed"),
    [
        (("default",), "", "", True),
        ((), "", "", False),
        (("default",), "", "other", False),
        (("default", "other"), "", "other", True),
        (("default", "other"), "other", "", True),
        (("default", "other"), "other", "third", False),
        (("third",), "other", "third", False),
        (("other", "third"), "other", "third", True),
    ],
)
async def test_a_change_of_set_needs_the_right_on_both(
    tmp_path: Path, joinable: tuple[str, ...], before: str, after: str, *, is_allowed: bool
) -> None:
    async with an_engine(tmp_path, VirtualClock()) as engine:
        install_admission(engine, rights(*([may_join(*joinable)] if joinable else [])))

        def move(obj: Obj) -> None:
            obj["metadata"]["labels"][SET_LABEL] = after

        async def change() -> None:
            if before or after == "other":
                await engine.modify(MANAGED_CLUSTER, "c", move, call=CALL)
            else:
                await engine.create(MANAGED_CLUSTER, cluster(in_set=after), call=CALL)

        if before or after == "other":
            master = Call(User("m", ("system:masters",)))
            await engine.create(MANAGED_CLUSTER, cluster(in_set=before), call=master)
        if is_allowed:
            await change()
            assert set_of(engine.get(MANAGED_CLUSTER, "c")) == (after or "default")
            return
        with pytest.raises(ApiError, match="is not allowed to add or remove") as refused:
            await change()
        assert refused.value.code == 403


async def test_the_hub_stamps_taints_when_they_appear(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock) as engine:
        install_admission(engine, Authorizer())
        taint = {"key": "a", "effect": "NoSelect", "timeAdded": "2000-01-01T00:00:00Z"}
        made = await engine.create(MANAGED_CLUSTER, cluster(taints=[taint]))
        (first,) = made["spec"]["taints"]
        assert first["timeAdded"] == "2026-01-01T00:00:00Z"
        clock.move(60)

        def add(obj: Obj) -> None:
            # a client that does not repeat the time changes nothing
            obj["spec"]["taints"] = [
                {"key": "a", "effect": "NoSelect"},
                {"key": "b", "effect": "NoSelect"},
            ]

        both = await engine.modify(MANAGED_CLUSTER, "c", add)
        times = [t["timeAdded"] for t in both["spec"]["taints"]]
        assert times == ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"]
        assert both["metadata"]["generation"] == made["metadata"]["generation"] + 1
        clock.move(60)
        assert await engine.modify(MANAGED_CLUSTER, "c", add) == both


async def test_a_work_of_half_a_mebibyte_is_the_largest(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("c",)) as engine:
        install_admission(engine, Authorizer())

        def work(name: str, size: int) -> Obj:
            manifest: Obj = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "a"},
                "data": {"x": ""},
            }
            import json

            rest = size - len(json.dumps(manifest, separators=(",", ":")))
            manifest["data"]["x"] = "y" * rest
            return {"metadata": {"name": name}, "spec": {"workload": {"manifests": [manifest]}}}

        await engine.create(MANIFEST_WORK, work("fits", 500 * 1024), namespace="c")
        with pytest.raises(ApiError, match="exceed the limit") as refused:
            await engine.create(MANIFEST_WORK, work("too-large", 500 * 1024 + 1), namespace="c")
        assert refused.value.code == 400


@pytest.mark.parametrize(
    ("spec", "labels", "expected"),
    [
        ({}, {SET_LABEL: "s"}, True),
        ({}, {SET_LABEL: "t"}, False),
        ({"selectorType": "ExclusiveClusterSetLabel"}, {SET_LABEL: "s"}, True),
        ({"selectorType": "LabelSelector", "labelSelector": {}}, {}, True),
        (
            {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"a": "b"}}},
            {"a": "b"},
            True,
        ),
        (
            {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"a": "b"}}},
            {SET_LABEL: "s"},
            False,
        ),
    ],
)
def test_a_set_selects_by_its_label_or_by_its_selector(
    spec: Obj, labels: dict[str, str], *, expected: bool
) -> None:
    assert selector_of("s", {"spec": {"clusterSelector": spec}}).matches(labels) is expected


@pytest.mark.parametrize(
    ("url", "is_fit"),
    [
        ("https://api.example.com:6443", True),
        ("https://[fd00::1]:6443", True),
        ("http://api.example.com", False),
        ("https://", False),
        ("api.example.com:6443", False),
        ("https://[fd00", False),
        ("", False),
    ],
)
async def test_the_addresses_of_a_cluster_are_https(
    tmp_path: Path, url: str, *, is_fit: bool
) -> None:
    async with an_engine(tmp_path, VirtualClock()) as engine:
        install_admission(engine, Authorizer())
        given = cluster(managedClusterClientConfigs=[{"url": "https://a"}, {"url": url}])
        if is_fit:
            await engine.create(MANAGED_CLUSTER, given)
            return
        with pytest.raises(ApiError, match=r"managedClusterClientConfigs\[1\].url") as refused:
            await engine.create(MANAGED_CLUSTER, given)
        assert refused.value.code == 400


async def test_detachment_by_force_takes_the_right_of_acceptance(tmp_path: Path) -> None:
    """Every agent may update its own ManagedCluster, and a bootstrap identity all of them."""

    def mark(value: str | None) -> Change:
        def change(obj: Obj) -> None:
            annotations = {**(obj["metadata"].get("annotations") or {}), "other": "x", FORCE: value}
            obj["metadata"]["annotations"] = {k: v for k, v in annotations.items() if v}

        return change

    async with an_engine(tmp_path, VirtualClock()) as engine:
        install_admission(engine, rights(may_join("default"), may_accept("mine")))
        planted = cluster("c")
        planted["metadata"]["annotations"] = {FORCE: "true"}
        says = f'"u" is not allowed to set the annotation {FORCE}: this takes the right to update'
        with pytest.raises(ApiError, match=says) as refused:
            await engine.create(MANAGED_CLUSTER, planted, call=CALL)
        assert refused.value.code == 403
        for name in ("c", "mine"):
            await engine.create(MANAGED_CLUSTER, cluster(name), call=CALL)
        with pytest.raises(ApiError, match=says):
            await engine.modify(MANAGED_CLUSTER, "c", mark("true"), call=CALL)
        await engine.modify(MANAGED_CLUSTER, "mine", mark("true"), call=CALL)
        await engine.modify(MANAGED_CLUSTER, "c", mark("false"))
        with pytest.raises(ApiError, match=says):
            await engine.modify(MANAGED_CLUSTER, "c", mark("true"), call=CALL)
        for harmless in ("false", None):
            await engine.modify(MANAGED_CLUSTER, "c", mark(harmless), call=CALL)


async def test_a_cluster_whose_namespace_ends_is_not_accepted(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("c",)) as engine:
        install_admission(engine, Authorizer())
        await engine.create(MANAGED_CLUSTER, cluster())
        await engine.delete(NAMESPACE, "c")

        def accept(obj: Obj) -> None:
            obj["spec"]["hubAcceptsClient"] = True

        with pytest.raises(ApiError, match='cluster namespace "c" is terminating') as refused:
            await engine.modify(MANAGED_CLUSTER, "c", accept)
        assert refused.value.code == 403
