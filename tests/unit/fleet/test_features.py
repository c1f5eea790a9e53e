"""The feature labels of clusters."""

import datetime as dt
from pathlib import Path

from hub.fleet.conditions import AVAILABLE, set_condition
from hub.fleet.features import PREFIX, Features
from hub.fleet.kinds import MANAGED_CLUSTER, MANAGED_CLUSTER_ADDON
from hub.meta import Obj
from hub.registry.engine import Engine
from hub.registry.kind import Kind
from tests.unit.registry.given import VirtualClock, an_engine


async def report(engine: Engine, kind: Kind, name: str, type_: str, status: str) -> None:
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

    def change(obj: Obj) -> None:
        set_condition(obj, type_, status, reason="R", message="", now=now)

    namespace = "c" if kind is MANAGED_CLUSTER_ADDON else ""
    await engine.modify(kind, name, change, namespace=namespace, subresource="status")


async def labels(engine: Engine, features: Features) -> dict[str, str]:
    await features.reconcile("c")
    found: dict[str, str] = engine.get(MANAGED_CLUSTER, "c")["metadata"].get("labels") or {}
    return {key.removeprefix(PREFIX): value for key, value in found.items()}


async def test_labels_follow_the_add_ons(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("c",)) as engine:
        features = Features(engine)
        await engine.create(MANAGED_CLUSTER, {"metadata": {"name": "c", "labels": {"own": "x"}}})
        for name in ("work", "proxy", "search"):
            await engine.create(MANAGED_CLUSTER_ADDON, {"metadata": {"name": name}}, namespace="c")
        assert await labels(engine, features) == {"own": "x"}, "it has not reported yet"
        await report(engine, MANAGED_CLUSTER, "c", AVAILABLE, "True")
        await report(engine, MANAGED_CLUSTER_ADDON, "work", "Available", "True")
        await report(engine, MANAGED_CLUSTER_ADDON, "proxy", "Available", "False")
        expected = {"own": "x", "work": "available", "proxy": "unhealthy", "search": "unreachable"}
        assert await labels(engine, features) == expected
        await report(engine, MANAGED_CLUSTER_ADDON, "work", "Available", "Unknown")
        await engine.delete(MANAGED_CLUSTER_ADDON, "proxy", namespace="c")
        expected = {"own": "x", "work": "unreachable", "search": "unreachable"}
        assert await labels(engine, features) == expected
        before = engine.get(MANAGED_CLUSTER, "c")
        await labels(engine, features)
        assert engine.get(MANAGED_CLUSTER, "c") == before


async def test_an_add_on_whose_name_fits_no_label_does_not_stop_the_others(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("c",)) as engine:
        features = Features(engine)
        await engine.create(MANAGED_CLUSTER, {"metadata": {"name": "c"}})
        await report(engine, MANAGED_CLUSTER, "c", AVAILABLE, "True")
        longest = "x" * (63 - len("addon-"))
        for name in ("work", longest, f"{longest}x"):
            await engine.create(MANAGED_CLUSTER_ADDON, {"metadata": {"name": name}}, namespace="c")
        assert await labels(engine, features) == {"work": "unreachable", longest: "unreachable"}


async def test_a_label_that_somebody_sets_is_set_right(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("c",)) as engine:
        features = Features(engine)
        wrong = {f"{PREFIX}never": "available"}
        await engine.create(MANAGED_CLUSTER, {"metadata": {"name": "c", "labels": wrong}})
        await report(engine, MANAGED_CLUSTER, "c", AVAILABLE, "True")
        assert list(features._queue._waiting) == ["c"]
        assert await labels(engine, features) == {}


async def test_a_cluster_on_its_way_out_is_left_alone(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("c",)) as engine:
        features = Features(engine)
        meta = {"name": "c", "finalizers": ["example.com/hold"]}
        await engine.create(MANAGED_CLUSTER, {"metadata": meta})
        await report(engine, MANAGED_CLUSTER, "c", AVAILABLE, "True")
        await engine.create(MANAGED_CLUSTER_ADDON, {"metadata": {"name": "a"}}, namespace="c")
        await engine.delete(MANAGED_CLUSTER, "c")
        assert await labels(engine, features) == {}
