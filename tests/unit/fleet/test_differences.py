"""What a hub notes of what its agents show and it does not know."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from hub.fleet import differences as module
from hub.fleet.ahead import Ahead, Look, Lost
from hub.fleet.differences import Asked, Differences
from hub.fleet.kinds import MANAGED_CLUSTER, MANIFEST_WORK
from hub.fleet.registration import LEASE_NAME
from hub.fleet.returns import Returns
from hub.registry.builtin import LEASE
from hub.registry.engine import Engine
from hub.registry.hold import Hold
from hub.store import Revision
from tests.server.agents import work
from tests.unit.controllers.given import shown
from tests.unit.registry.given import VirtualClock, an_engine

WORK = "work.open-cluster-management.io"


def asked(cluster: str, name: str = "w", *, code: int = 404, verb: str = "patch") -> Asked:
    user = f"system:open-cluster-management:{cluster}:a1"
    return Asked(user, verb, WORK, "manifestworks", cluster, name, code)


@contextlib.asynccontextmanager
async def given(
    path: Path, *, is_restored: bool = True
) -> AsyncIterator[tuple[Engine, Differences, VirtualClock]]:
    clock = VirtualClock()
    async with an_engine(path, clock, namespaces=("c",)) as engine:
        await engine.create(MANAGED_CLUSTER, {"metadata": {"name": "c"}})
        hold = Hold(clock, grace_s=300)
        ahead = Ahead(hold, Lost(Revision(1), Revision(9)))
        found = Differences(engine, clock, hold=hold, ahead=ahead, is_restored=is_restored)
        user = "system:open-cluster-management:c:a1"
        ahead.refusal(Look(user, WORK, "manifestworks", "c", "5"))
        yield engine, found, clock


async def test_a_cluster_that_is_not_known_is_named_until_it_is(tmp_path: Path) -> None:
    async with given(tmp_path, is_restored=False) as (engine, found, clock):
        found.note(asked("late", code=200))
        assert found.summary().unknown_clusters == 0
        found.note(asked("late", code=403))
        clock.move(60)
        found.note(asked("late", code=404))
        (entry,) = found.unknown_clusters()
        assert entry["name"] == "late"
        assert (entry["firstSeen"][14:19], entry["lastSeen"][14:19]) == ("00:00", "01:00")
        assert found.of("late")["unknownSince"] == entry["firstSeen"]
        await engine.create(MANAGED_CLUSTER, {"metadata": {"name": "late"}})
        await shown()
        assert found.unknown_clusters() == []


async def test_a_work_that_only_an_agent_has_is_named_until_it_is_made(tmp_path: Path) -> None:
    async with given(tmp_path) as (engine, found, _):
        found.note(asked("c"))
        found.note(asked("c", code=409))
        found.note(asked("c", name="", verb="list"))
        summary = found.summary()
        assert summary.objects == ("manifestworks c/w",)
        assert summary.has_differences
        assert "1 objects that the hub does not know (manifestworks c/w)" in summary.message
        assert "1 agents have seen a later state" in summary.message
        await engine.create(MANIFEST_WORK, work("w"), namespace="c")
        await shown()
        assert found.summary().unknown_objects == 0


async def test_what_was_deleted_here_is_no_difference(tmp_path: Path) -> None:
    async with given(tmp_path) as (engine, found, _):
        await engine.create(MANIFEST_WORK, work("w"), namespace="c")
        await engine.delete(MANIFEST_WORK, "w", namespace="c")
        await shown()
        found.note(asked("c"))
        assert found.summary().unknown_objects == 0


async def test_without_a_restore_a_missing_work_is_no_difference(tmp_path: Path) -> None:
    async with given(tmp_path, is_restored=False) as (_, found, _):
        found.note(asked("c"))
        assert found.summary().unknown_objects == 0


async def test_only_so_many_are_kept(tmp_path: Path) -> None:
    async with given(tmp_path) as (_, found, _):
        for number in range(module.MOST_CLUSTERS + 5):
            found.note(asked(f"late-{number}", code=403))
        for number in range(module.MOST_OBJECTS + 5):
            found.note(asked("c", f"w{number}"))
        summary = found.summary()
        assert summary.unknown_clusters == module.MOST_CLUSTERS
        assert summary.unknown_objects == module.MOST_OBJECTS
        assert summary.unknown[-1] == f"late-{module.MOST_CLUSTERS + 4}"
        assert len(summary.objects) == 20
        assert "and 4980 more" in summary.message


async def test_the_clusters_that_renew_are_back_and_the_hub_stops_listening(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock, namespaces=("a", "b", "denied")) as engine:
        for name in ("a", "b", "denied"):
            await engine.create(MANAGED_CLUSTER, {"metadata": {"name": name}})
            lease = {"metadata": {"name": LEASE_NAME, "namespace": name}, "spec": {}}
            await engine.create(LEASE, lease, namespace=name)
        for name in ("a", "b"):
            await engine.modify(MANAGED_CLUSTER, name, accepted, subresource="status")
        hold = Hold(clock, grace_s=300)
        Returns(engine, hold).begin()
        await shown()
        assert hold.awaited == {"a", "b"}
        for name in ("denied", "a", "a"):
            await engine.modify(LEASE, LEASE_NAME, renewed, namespace=name)
        await shown()
        assert (hold.returned, hold.awaited) == (1, frozenset("b"))
        assert engine.watches._listeners[LEASE.id]
        await engine.delete(MANAGED_CLUSTER, "b")
        await shown()
        assert (hold.returned, hold.expected, hold.is_over) == (1, 1, True)
        assert engine.watches._listeners[LEASE.id] == []
        assert engine.watches._listeners[MANAGED_CLUSTER.id] == []


def accepted(obj: dict[str, object]) -> None:
    condition = {"type": "HubAcceptedManagedCluster", "status": "True"}
    obj["status"] = {"conditions": [condition]}


def renewed(obj: dict[str, object]) -> None:
    obj["spec"] = {"renewTime": "2026-01-01T00:00:01.000000Z"}
