"""Detachment by force, when a write of it fails."""

from pathlib import Path

import pytest

from hub.fleet.detachment import FINALIZERS, FORCE, Detachment
from hub.fleet.kinds import MANAGED_CLUSTER, MANIFEST_WORK
from hub.meta import Obj
from hub.meta.errors import ApiError, unavailable
from hub.registry.event import EVENT
from hub.registry.kind import Kind
from tests.unit.registry.given import VirtualClock, an_engine

WORK: Obj = {
    "metadata": {"name": "w", "finalizers": ["example.com/work"]},
    "spec": {
        "workload": {
            "manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]
        }
    },
}


async def test_nothing_is_abandoned_before_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock, namespaces=("default", "c")) as engine:
        meta = {"name": "c", "finalizers": list(FINALIZERS), "annotations": {FORCE: "true"}}
        await engine.create(MANAGED_CLUSTER, {"metadata": meta})
        await engine.create(MANIFEST_WORK, WORK, namespace="c")
        await engine.delete(MANAGED_CLUSTER, "c")
        detachment = Detachment(engine, clock)
        create = engine.create

        async def failing(kind: Kind, obj: Obj, *, namespace: str = "") -> Obj:
            if kind is EVENT:
                raise unavailable("the disk is full")
            return await create(kind, obj, namespace=namespace)

        with monkeypatch.context() as patched:
            patched.setattr(engine, "create", failing)
            with pytest.raises(ApiError, match="the disk is full"):
                await detachment.advance("c", engine.get(MANAGED_CLUSTER, "c"))
        held = engine.get(MANIFEST_WORK, "w", "c")
        assert held["metadata"]["finalizers"] == ["example.com/work"]
        await detachment.advance("c", engine.get(MANAGED_CLUSTER, "c"))
        (event,) = engine.each(EVENT)
        assert event["message"].endswith("what they applied stays: manifestworks/w")
        assert engine.find(MANIFEST_WORK, "w", "c") is None
        assert engine.find(MANAGED_CLUSTER, "c") is None
