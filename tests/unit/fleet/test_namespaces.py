"""The namespaces that a cluster's sets want on it."""

from pathlib import Path

from hub.fleet.admission import SET_LABEL
from hub.fleet.kinds import MANAGED_CLUSTER, MANAGED_CLUSTER_SET
from hub.fleet.namespaces import ManagedNamespaces
from hub.meta import Obj
from hub.registry.engine import Engine
from tests.unit.registry.given import VirtualClock, an_engine


def a_set(name: str, *wanted: str, selector: Obj | None = None) -> Obj:
    spec: Obj = {"managedNamespaces": [{"name": each} for each in wanted]}
    if selector is not None:
        spec["clusterSelector"] = {"selectorType": "LabelSelector", "labelSelector": selector}
    return {"metadata": {"name": name}, "spec": spec}


async def listed(engine: Engine, namespaces: ManagedNamespaces) -> list[str]:
    await namespaces.reconcile("c")
    status = engine.get(MANAGED_CLUSTER, "c").get("status") or {}
    return [f"{each['clusterSet']}/{each['name']}" for each in status.get("managedNamespaces", [])]


async def test_a_cluster_is_told_what_its_sets_want(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock()) as engine:
        namespaces = ManagedNamespaces(engine)
        labels = {SET_LABEL: "prod", "env": "x"}
        await engine.create(MANAGED_CLUSTER, {"metadata": {"name": "c", "labels": labels}})
        assert await listed(engine, namespaces) == []
        await engine.create(MANAGED_CLUSTER_SET, a_set("prod", "b", "a"))
        everywhere = a_set("all", "z", selector={"matchLabels": {"env": "x"}})
        await engine.create(MANAGED_CLUSTER_SET, everywhere)
        await engine.create(MANAGED_CLUSTER_SET, a_set("dev", "n"))
        assert await listed(engine, namespaces) == ["all/z", "prod/a", "prod/b"]

        def leave(obj: Obj) -> None:
            obj["metadata"]["labels"][SET_LABEL] = "dev"

        await engine.modify(MANAGED_CLUSTER, "c", leave)
        assert await listed(engine, namespaces) == ["all/z", "dev/n"]
        for name in ("all", "dev"):
            await engine.delete(MANAGED_CLUSTER_SET, name)
        assert await listed(engine, namespaces) == []
        assert "managedNamespaces" not in engine.get(MANAGED_CLUSTER, "c")["status"]


async def test_what_the_agent_reports_of_a_namespace_is_kept(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock()) as engine:
        namespaces = ManagedNamespaces(engine)
        labels = {SET_LABEL: "prod"}
        await engine.create(MANAGED_CLUSTER, {"metadata": {"name": "c", "labels": labels}})
        await engine.create(MANAGED_CLUSTER_SET, a_set("prod", "a"))
        await listed(engine, namespaces)
        condition = {"type": "NamespaceAvailable", "status": "True"}

        def report(obj: Obj) -> None:
            obj["status"]["managedNamespaces"][0]["conditions"] = [condition]

        await engine.modify(MANAGED_CLUSTER, "c", report, subresource="status")

        def more(obj: Obj) -> None:
            obj["spec"]["managedNamespaces"].append({"name": "b"})

        await engine.modify(MANAGED_CLUSTER_SET, "prod", more)
        assert "c" in namespaces._queue._waiting
        assert await listed(engine, namespaces) == ["prod/a", "prod/b"]
        first, second = engine.get(MANAGED_CLUSTER, "c")["status"]["managedNamespaces"]
        assert (first["conditions"], "conditions" in second) == ([condition], False)
        before = engine.get(MANAGED_CLUSTER, "c")
        await listed(engine, namespaces)
        assert engine.get(MANAGED_CLUSTER, "c") == before


async def test_a_set_that_wants_nothing_wakes_no_cluster(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock()) as engine:
        await engine.create(MANAGED_CLUSTER, {"metadata": {"name": "c"}})
        namespaces = ManagedNamespaces(engine)
        await engine.create(MANAGED_CLUSTER_SET, {"metadata": {"name": "quiet"}})
        await engine.delete(MANAGED_CLUSTER_SET, "quiet")
        assert not namespaces._queue._waiting
