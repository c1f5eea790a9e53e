"""Namespaces on their way out, on a clock that tests move."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from hub.controllers.namespace import NamespaceController
from hub.controllers.nscondition import Remains, update_conditions
from hub.meta import Obj
from hub.meta.errors import Resource
from hub.registry.builtin import CONFIG_MAP, LEASE, NAMESPACE
from hub.registry.engine import Engine
from hub.registry.hold import Hold
from tests.unit.controllers.given import config_map, deletion_of, names, settle
from tests.unit.registry.given import CATALOG, VirtualClock, VirtualLoop, an_engine

QUIET = [
    ("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions"),
    ("NamespaceDeletionContentFailure", "False", "ContentDeleted"),
    ("NamespaceContentRemaining", "False", "ContentRemoved"),
    ("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers"),
]


@dataclass(slots=True)
class Given:
    engine: Engine
    clock: VirtualClock
    controller: NamespaceController

    async def free(self, name: str) -> None:
        def change(obj: Obj) -> None:
            obj["metadata"]["finalizers"] = []

        await self.engine.modify(CONFIG_MAP, name, change, namespace="a")

    def conditions(self) -> list[tuple[str, str, str]]:
        found = self.engine.get(NAMESPACE, "a")["status"]["conditions"]
        return [(c["type"], c["status"], c["reason"]) for c in found]

    def message(self, type_: str) -> str:
        found = self.engine.get(NAMESPACE, "a")["status"]["conditions"]
        return str(next(c["message"] for c in found if c["type"] == type_))


@contextlib.asynccontextmanager
async def a_namespace(path: Path) -> AsyncIterator[Given]:
    clock = VirtualClock()
    async with an_engine(path, clock, namespaces=("a", "b")) as engine:
        yield Given(engine, clock, NamespaceController(engine, CATALOG, hold=Hold(clock)))


async def test_the_contents_go_and_then_the_namespace(tmp_path: Path) -> None:
    async with a_namespace(tmp_path) as given:
        for n in range(150):
            await config_map(given.engine, f"c{n}")
        await given.engine.create(LEASE, {"metadata": {"name": "l"}}, namespace="a")
        await config_map(given.engine, "x", namespace="b")
        await given.engine.delete(NAMESPACE, "a")
        assert await settle(given.controller) == {}
        assert given.engine.find(NAMESPACE, "a") is None
        assert names(given.engine, "a") == []
        assert names(given.engine, "b") == ["x"]


async def test_what_is_held_is_told_and_waited_for(tmp_path: Path) -> None:
    async with a_namespace(tmp_path) as given:
        await config_map(given.engine, "x", finalizers=("example.com/x", "example.com/y"))
        await config_map(given.engine, "y", finalizers=("example.com/x",))
        await config_map(given.engine, "z")
        await given.engine.delete(NAMESPACE, "a")
        assert await settle(given.controller) == {"a": 15.0}
        assert names(given.engine) == ["x", "y"]
        assert given.conditions() == [
            *QUIET[:3],
            ("NamespaceContentRemaining", "True", "SomeResourcesRemain"),
            ("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain"),
        ]
        assert given.message("NamespaceContentRemaining") == (
            "Some resources are remaining: configmaps. has 2 resource instances"
        )
        assert given.message("NamespaceFinalizersRemaining") == (
            "Some content in the namespace has finalizers remaining: example.com/x in 2 resource "
            "instances, example.com/y in 1 resource instances"
        )
        await given.free("x")
        await settle(given.controller)
        assert "configmaps. has 1 " in given.message("NamespaceContentRemaining")
        await given.free("y")
        await settle(given.controller)
        assert given.engine.find(NAMESPACE, "a") is None


async def test_finalizers_of_propagation_do_not_hold_the_contents(tmp_path: Path) -> None:
    async with a_namespace(tmp_path) as given:
        owner = await config_map(given.engine, "x", finalizers=("orphan",))
        await config_map(given.engine, "y", owner, finalizers=("foregroundDeletion",))
        await given.engine.delete(NAMESPACE, "a")
        await settle(given.controller)
        assert given.engine.find(NAMESPACE, "a") is None


async def test_only_its_own_finalizer_is_taken_off(tmp_path: Path) -> None:
    async with a_namespace(tmp_path) as given:

        def hold(obj: Obj) -> None:
            obj["spec"]["finalizers"].append("example.com/x")

        await given.engine.modify(NAMESPACE, "a", hold, subresource="finalize")
        await config_map(given.engine, "x")
        await given.engine.delete(NAMESPACE, "a")
        await settle(given.controller)
        found = given.engine.get(NAMESPACE, "a")
        assert found["spec"] == {"finalizers": ["example.com/x"]}
        assert names(given.engine) == []
        assert given.conditions() == QUIET
        before = found["metadata"]["resourceVersion"]
        assert await given.controller.reconcile("a") is None
        assert given.engine.get(NAMESPACE, "a")["metadata"]["resourceVersion"] == before


def test_after_a_restore_a_namespace_that_was_going_waits(tmp_path: Path) -> None:
    async def test() -> None:
        async with a_namespace(tmp_path) as given:
            await given.engine.delete(NAMESPACE, "a")
            hold = Hold(given.clock, grace_s=300)
            fresh = NamespaceController(given.engine, CATALOG, hold=hold)
            task = asyncio.ensure_future(fresh.run())
            gone = deletion_of(given.engine, NAMESPACE)
            await asyncio.sleep(299)
            assert given.engine.find(NAMESPACE, "a") is not None
            await gone.wait()
            assert given.engine.find(NAMESPACE, "a") is None
            task.cancel()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(test())


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    clock = VirtualClock()
    namespace: Obj = {"status": {"phase": "Terminating"}}

    def times(remains: Remains) -> dict[str, str]:
        update_conditions(namespace, remains, clock.now())
        conditions = namespace["status"]["conditions"]
        return {c["type"]: c["lastTransitionTime"][11:19] for c in conditions}

    some = Remains(objects=Counter({Resource("", "configmaps"): 2}))
    assert set(times(some).values()) == {"00:00:00"}
    clock.move(60)
    fewer = Remains(objects=Counter({Resource("g", "things"): 1}), errors=["b", "a"])
    found = times(fewer)
    assert found["NamespaceContentRemaining"] == "00:00:00"
    assert found["NamespaceDeletionContentFailure"] == "00:01:00"
    messages = [c["message"] for c in namespace["status"]["conditions"]]
    assert "Failed to delete all resource types, 2 remaining: a, b" in messages
    assert "Some resources are remaining: things.g has 1 resource instances" in messages
    clock.move(60)
    assert times(Remains())["NamespaceContentRemaining"] == "00:02:00"
    assert [c["type"] for c in namespace["status"]["conditions"]] == [q[0] for q in QUIET]


def test_conditions_of_others_are_left_alone() -> None:
    other = {"type": "Mine", "status": "True"}
    namespace: Obj = {"status": {"conditions": [other]}}
    update_conditions(namespace, Remains(), VirtualClock().now())
    assert namespace["status"]["conditions"][0] == other
    assert len(namespace["status"]["conditions"]) == 6
