"""Works that are complete, and the time they have left."""

from pathlib import Path

from hub.fleet.completed import REPLICA_SET_LABEL, CompletedWorks
from hub.fleet.conditions import set_condition
from hub.fleet.kinds import MANIFEST_WORK
from hub.meta import Obj
from hub.registry.engine import Engine
from hub.registry.hold import Hold
from tests.unit.registry.given import VirtualClock, an_engine


def work(*, ttl: int | None = 60, labels: dict[str, str] | None = None) -> Obj:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    option = {} if ttl is None else {"deleteOption": {"ttlSecondsAfterFinished": ttl}}
    return {
        "metadata": {"name": "w", "labels": labels or {}},
        "spec": {"workload": {"manifests": [manifest]}, **option},
    }


async def complete(engine: Engine, clock: VirtualClock, status: str = "True") -> None:
    def change(obj: Obj) -> None:
        set_condition(obj, "Complete", status, reason="R", message="", now=clock.now())

    await engine.modify(MANIFEST_WORK, "w", change, namespace="c", subresource="status")


async def test_a_complete_work_goes_when_its_time_is_over(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock, namespaces=("c",)) as engine:
        works = CompletedWorks(engine, clock, hold=Hold(clock))
        await engine.create(MANIFEST_WORK, work(), namespace="c")
        assert await works.reconcile("c/w") is None
        clock.move(100)
        await complete(engine, clock)
        assert list(works._queue._waiting) == ["c/w"]
        assert await works.reconcile("c/w") == 60
        clock.move(59)
        assert await works.reconcile("c/w") == 1
        clock.move(1)
        assert await works.reconcile("c/w") is None
        assert engine.find(MANIFEST_WORK, "w", "c") is None


async def test_a_work_that_is_not_complete_any_more_stays(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock, namespaces=("c",)) as engine:
        works = CompletedWorks(engine, clock, hold=Hold(clock))
        await engine.create(MANIFEST_WORK, work(ttl=0), namespace="c")
        await complete(engine, clock, "False")
        assert await works.reconcile("c/w") is None
        assert engine.find(MANIFEST_WORK, "w", "c") is not None


async def test_works_without_a_ttl_or_of_a_replica_set_stay(tmp_path: Path) -> None:
    clock = VirtualClock()
    for path, given in (
        (tmp_path / "a", work(ttl=None)),
        (tmp_path / "b", work(labels={REPLICA_SET_LABEL: "ns.name"})),
    ):
        path.mkdir()
        async with an_engine(path, clock, namespaces=("c",)) as engine:
            works = CompletedWorks(engine, clock, hold=Hold(clock))
            await engine.create(MANIFEST_WORK, given, namespace="c")
            await complete(engine, clock)
            clock.move(10_000)
            assert await works.reconcile("c/w") is None
            assert engine.find(MANIFEST_WORK, "w", "c") is not None


async def test_an_agent_whose_clock_is_ahead_keeps_no_work_for_longer(tmp_path: Path) -> None:
    clock, ahead = VirtualClock(), VirtualClock()
    ahead.move(10_000)
    async with an_engine(tmp_path, clock, namespaces=("c",)) as engine:
        works = CompletedWorks(engine, clock, hold=Hold(clock))
        await engine.create(MANIFEST_WORK, work(), namespace="c")
        await complete(engine, ahead)
        assert await works.reconcile("c/w") == 60


async def test_nothing_goes_while_a_restored_hub_is_held(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock, namespaces=("c",)) as engine:
        works = CompletedWorks(engine, clock, hold=Hold(clock, grace_s=300))
        await engine.create(MANIFEST_WORK, work(ttl=0), namespace="c")
        await complete(engine, clock)
        assert await works.reconcile("c/w") is None
        assert engine.find(MANIFEST_WORK, "w", "c") is not None
        clock.move(300)
        assert await works.reconcile("c/w") is None
        assert engine.find(MANIFEST_WORK, "w", "c") is None
