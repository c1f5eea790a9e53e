"""What the collector takes and what it leaves, on a real store without a running hub."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hub.controllers.garbage import GarbageCollector
from hub.fleet.kinds import MANAGED_CLUSTER
from hub.meta import Obj
from hub.registry.builtin import CONFIG_MAP, NAMESPACE
from hub.registry.call import Deleted
from hub.registry.deletion import Policy
from hub.registry.engine import Engine
from hub.registry.event import EVENT
from hub.registry.hold import Hold
from hub.registry.objects import is_deleting
from hub.registry.rbac import CLUSTER_ROLE
from tests.unit.controllers.given import (
    config_map,
    deletion_of,
    names,
    owned_by,
    run_for,
    settle,
    shown,
)
from tests.unit.registry.given import CATALOG, VirtualClock, VirtualLoop, an_engine


@dataclass(slots=True)
class Given:
    engine: Engine
    clock: VirtualClock
    collector: GarbageCollector

    async def make(self, name: str, *owners: Obj, blocks: bool = False) -> Obj:
        return await config_map(self.engine, name, *owners, blocks=blocks)

    async def delete(self, name: str, policy: Policy = "") -> Deleted:
        return await self.engine.delete(CONFIG_MAP, name, namespace="a", policy=policy)

    async def left(self) -> str:
        """The one-letter names that are left once the collector has come to rest."""
        await settle(self.collector)
        return "".join(names(self.engine))

    def get(self, name: str) -> Obj:
        return self.engine.get(CONFIG_MAP, name, "a")

    async def own(self, name: str, *owners: Obj, blocks: bool = False) -> None:
        def change(obj: Obj) -> None:
            obj["metadata"]["ownerReferences"] = owned_by(*owners, blocks=blocks)

        await self.engine.modify(CONFIG_MAP, name, change, namespace="a")


@contextlib.asynccontextmanager
async def a_collector(path: Path) -> AsyncIterator[Given]:
    clock = VirtualClock()
    async with an_engine(path, clock, namespaces=("a", "b", "default")) as engine:
        yield Given(engine, clock, GarbageCollector(engine, CATALOG, clock, hold=Hold(clock)))


async def test_dependents_follow_their_owner_down_a_chain(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        top = await given.make("a")
        middle = await given.make("b", top)
        await given.make("c", middle)
        await given.make("d")
        assert await given.left() == "abcd"
        assert (await given.delete("a")).is_gone
        assert await given.left() == "d"
        assert len(given.collector) == 0


async def test_an_object_goes_with_its_last_owner_and_forgets_the_others(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        one, two = await given.make("a"), await given.make("b")
        await given.make("c", one, two)
        await given.delete("a")
        assert await given.left() == "bc"
        assert given.get("c")["metadata"]["ownerReferences"] == owned_by(two)
        await given.delete("b")
        assert await given.left() == ""


async def test_an_owner_of_the_same_name_but_another_uid_does_not_count(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        owner = await given.make("a")
        await given.make("b", owner)
        await given.delete("a")
        await given.make("a")
        assert await given.left() == "a"


async def test_an_object_made_with_an_absent_owner_goes(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        owner = await given.make("a")
        await given.delete("a")
        await given.make("b", owner)
        await given.make("c")
        assert await given.left() == "c"
        await given.own("c", owner)
        assert await given.left() == ""


async def test_an_owner_in_another_namespace_is_absent_and_that_is_told(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        owner = await config_map(given.engine, "x", namespace="b")
        made = await given.make("a", owner)
        assert await given.left() == ""
        assert names(given.engine, "b") == ["x"]
        (event,) = given.engine.each(EVENT, "a")
        uid = owner["metadata"]["uid"]
        assert (event["type"], event["reason"]) == ("Warning", "OwnerRefInvalidNamespace")
        assert event["message"] == (
            f"ownerRef [v1/ConfigMap, namespace: a, name: x, uid: {uid}] "
            'does not exist in namespace "a"'
        )
        assert event["involvedObject"]["uid"] == made["metadata"]["uid"]


async def test_a_cluster_scoped_owner_is_found_from_any_namespace(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        owner = await given.engine.create(MANAGED_CLUSTER, {"metadata": {"name": "c"}})
        await given.make("a", owner)
        await config_map(given.engine, "x", owner, namespace="b")
        assert await given.left() == "a"
        await given.engine.delete(MANAGED_CLUSTER, "c")
        assert await given.left() == ""
        assert names(given.engine, "b") == []


async def test_a_cluster_scoped_object_is_never_judged_by_an_owner_inside_a_namespace(
    tmp_path: Path,
) -> None:
    async with a_collector(tmp_path) as given:
        owner = await given.make("a")
        meta = {"name": "r", "ownerReferences": owned_by(owner)}
        await given.engine.create(CLUSTER_ROLE, {"metadata": meta})
        await given.delete("a")
        for _ in range(2):
            given.collector._queue.add("clusterroles.rbac.authorization.k8s.io\0\0r")
            await settle(given.collector)
        assert given.engine.find(CLUSTER_ROLE, "r") is not None
        assert [e["reason"] for e in given.engine.each(EVENT)] == ["OwnerRefInvalidNamespace"]


async def test_an_owner_of_an_unknown_kind_is_never_taken_for_absent(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        gone = await given.make("a")
        await given.delete("a")
        strange = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": gone["metadata"]}
        await given.make("b", strange)
        await given.make("c", strange, gone)
        again = await settle(given.collector)
        assert names(given.engine) == ["b", "c"]
        assert set(again.values()) == {600.0}


async def test_in_the_background_the_owner_goes_at_once(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        owner = await given.make("a")
        await given.make("b", owner, blocks=True)
        assert (await given.delete("a", "Background")).is_gone
        assert names(given.engine) == ["b"]
        assert await given.left() == ""


async def test_in_the_foreground_the_owner_waits_for_what_blocks_it(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        owner = await given.make("a")
        await config_map(given.engine, "b", owner, blocks=True, finalizers=("example.com/x",))
        await config_map(given.engine, "c", owner, finalizers=("example.com/x",))
        deleted = await given.delete("a", "Foreground")
        assert not deleted.is_gone
        assert deleted.obj["metadata"]["finalizers"] == ["foregroundDeletion"]
        assert await given.left() == "abc"
        assert all(is_deleting(given.get(name)) for name in "abc")
        await free(given, "b")
        assert await given.left() == "c"
        await free(given, "c")
        assert await given.left() == ""


async def free(given: Given, name: str) -> None:
    def change(obj: Obj) -> None:
        found = obj["metadata"]["finalizers"]
        obj["metadata"]["finalizers"] = [f for f in found if f != "example.com/x"]

    await given.engine.modify(CONFIG_MAP, name, change, namespace="a")


async def test_a_foreground_deletion_goes_down_the_whole_tree(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        top = await given.make("a")
        middle = await given.make("b", top, blocks=True)
        await config_map(given.engine, "c", middle, blocks=True, finalizers=("example.com/x",))
        await given.delete("a", "Foreground")
        assert await given.left() == "abc"
        assert given.get("b")["metadata"]["finalizers"] == ["foregroundDeletion"]
        await free(given, "c")
        assert await given.left() == ""


async def test_a_dependent_that_stops_blocking_lets_its_owner_go(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        owner = await given.make("a")
        await config_map(given.engine, "b", owner, blocks=True, finalizers=("example.com/x",))
        await given.delete("a", "Foreground")
        assert await given.left() == "ab"
        await given.own("b", owner, blocks=False)
        assert await given.left() == "b"


async def test_a_dependent_with_another_owner_leaves_the_one_that_waits(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        one, two = await given.make("a"), await given.make("b")
        await given.make("c", one, two, blocks=True)
        await given.delete("a", "Foreground")
        assert await given.left() == "bc"
        assert [r["name"] for r in given.get("c")["metadata"]["ownerReferences"]] == ["b"]


async def test_orphans_lose_their_owner_and_stay(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        one, two = await given.make("a"), await given.make("b")
        await given.make("c", one)
        await given.make("d", one, two)
        deleted = await given.delete("a", "Orphan")
        assert deleted.obj["metadata"]["finalizers"] == ["orphan"]
        assert await given.left() == "bcd"
        assert "ownerReferences" not in given.get("c")["metadata"]
        assert given.get("d")["metadata"]["ownerReferences"] == owned_by(two)


async def test_a_finalizer_in_the_object_is_its_default_policy(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        owner = await config_map(given.engine, "a", finalizers=("orphan",))
        await given.make("b", owner)
        await given.delete("a")
        assert await given.left() == "b"


async def test_a_later_deletion_overrides_the_policy_of_an_earlier(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        owner = await given.make("a")
        await config_map(given.engine, "b", owner, blocks=True, finalizers=("example.com/x",))
        await given.delete("a", "Foreground")
        again = await given.delete("a", "Foreground")
        assert not again.is_gone
        assert (await given.delete("a", "Orphan")).obj["metadata"]["finalizers"] == ["orphan"]
        assert (await given.delete("a", "Background")).is_gone


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
async def test_a_circle_of_owners_ends(tmp_path: Path, policy: Policy) -> None:
    async with a_collector(tmp_path) as given:
        one = await given.make("a")
        two = await given.make("b", one, blocks=True)
        three = await given.make("c", two, blocks=True)
        await given.own("a", three, blocks=True)
        assert await given.left() == "abc"
        await given.delete("a", policy)
        assert await given.left() == ("bc" if policy == "Orphan" else "")


async def test_the_object_that_was_judged_is_the_one_that_goes(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        owner = await given.make("a")
        await given.make("b", owner)
        await settle(given.collector)
        await given.delete("a")
        await shown()
        judged = given.get("b")
        await given.own("b")  # it is let go between the judgement and the deletion
        with pytest.raises(Exception, match="modified"):
            await given.collector._collect(CONFIG_MAP, judged, "Background")
        assert await given.left() == "b"


async def test_what_happened_before_the_start_is_made_up_for(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        owner = await given.make("a")
        await given.make("b", owner)
        orphaning, going = await given.make("c"), await given.make("e")
        await given.make("d", orphaning)
        await config_map(given.engine, "f", going, blocks=True)
        await given.delete("a")
        await given.delete("c", "Orphan")
        await given.delete("e", "Foreground")
        fresh = GarbageCollector(given.engine, CATALOG, given.clock, hold=Hold(given.clock))
        await run_for(fresh.run, lambda: names(given.engine) == ["d"])
        assert "ownerReferences" not in given.get("d")["metadata"]


def test_a_restored_hub_deletes_nothing_while_it_is_held(tmp_path: Path) -> None:
    async def test() -> None:
        async with a_collector(tmp_path) as given:
            owner = await given.make("a")
            await given.make("b", owner)
            await given.delete("a")
            await shown()
            loop = asyncio.get_running_loop()
            began = loop.time()
            hold = Hold(given.clock, grace_s=300)
            fresh = GarbageCollector(given.engine, CATALOG, given.clock, hold=hold)
            task = asyncio.ensure_future(fresh.run())
            collected = deletion_of(given.engine, CONFIG_MAP)
            await asyncio.sleep(299)
            assert names(given.engine) == ["b"]
            await collected.wait()
            assert names(given.engine) == []
            assert loop.time() - began >= 300
            task.cancel()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(test())


async def test_only_owned_objects_are_remembered(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        owner = await given.make("a")
        for name in "bcd":
            await given.make(name)
        await given.make("e", owner)
        await shown()
        assert len(given.collector) == 1
        await given.own("e")
        await shown()
        assert len(given.collector) == 0


async def test_random_forests_lose_exactly_what_has_no_owner_left(tmp_path: Path) -> None:
    draw = random.Random(7)
    for round_ in range(5):
        path = tmp_path / str(round_)
        path.mkdir()
        async with a_collector(path) as given:
            made: list[Obj] = []
            owners: dict[str, set[str]] = {}
            for name in "abcdefghijklmnop":
                chosen = draw.sample(made, min(len(made), draw.choice((0, 1, 1, 2))))
                blocks = draw.random() < 0.5
                made.append(await given.make(name, *chosen, blocks=blocks))
                owners[name] = {str(o["metadata"]["name"]) for o in chosen}
            roots = [name for name, above in owners.items() if not above]
            doomed = set(draw.sample(roots, max(1, len(roots) // 2)))
            for name in doomed:
                await given.delete(name, draw.choice(("Background", "Foreground")))
            for name, above in owners.items():  # in order of creation: owners come first
                if above and above <= doomed:
                    doomed.add(name)
            kept = "".join(sorted(set(owners) - doomed))
            assert await given.left() == kept
            for name in kept:
                found = given.get(name)["metadata"].get("ownerReferences") or ()
                assert {r["name"] for r in found} == owners[name] - doomed


async def test_a_namespace_deleted_in_the_foreground_is_released(tmp_path: Path) -> None:
    async with a_collector(tmp_path) as given:
        await given.engine.delete(NAMESPACE, "b", policy="Foreground")
        await settle(given.collector)
        found = given.engine.get(NAMESPACE, "b")
        assert "finalizers" not in found["metadata"]
        assert is_deleting(found)  # its own finalizer is the namespace controller's
