"""Which clusters are back, on a clock that tests move."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest_asyncio

from hub.fleet.conditions import ACCEPTED, set_condition
from hub.fleet.kinds import MANAGED_CLUSTER
from hub.fleet.registration import LEASE_NAME
from hub.fleet.returns import Returns
from hub.meta import Obj
from hub.meta.timestamp import format_micro_time
from hub.registry.builtin import LEASE
from hub.registry.engine import Engine
from tests.unit.registry.given import VirtualClock, an_engine

NAMES = [f"c{number}" for number in range(4)]


@dataclass(slots=True)
class Given:
    """Four accepted clusters and one that is not."""

    engine: Engine
    clock: VirtualClock
    returns: Returns

    async def add(self, name: str, *, is_accepted: bool = True) -> None:
        await self.engine.create(MANAGED_CLUSTER, {"metadata": {"name": name}})
        lease: Obj = {"metadata": {"name": LEASE_NAME, "namespace": name}, "spec": {}}
        await self.engine.create(LEASE, lease, namespace=name)

        def accept(obj: Obj) -> None:
            set_condition(obj, ACCEPTED, "True", reason="R", message="m", now=self.clock.now())

        if is_accepted:
            await self.engine.modify(MANAGED_CLUSTER, name, accept, subresource="status")

    async def renew(self, name: str, *, after_s: float = 1.0, lease: str = LEASE_NAME) -> None:
        self.clock.move(after_s)
        text = format_micro_time(self.clock.now())

        def change(obj: Obj) -> None:
            obj["spec"]["renewTime"] = text

        renewed = await self.engine.modify(LEASE, lease, change, namespace=name)
        for _ in range(1000):
            if self.engine.store.revision >= int(renewed["metadata"]["resourceVersion"]):
                return
            await asyncio.sleep(0)
        raise AssertionError("the renewal is never shown")


@pytest_asyncio.fixture
async def given(tmp_path: Path) -> AsyncIterator[Given]:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock, namespaces=[*NAMES, "new"]) as engine:
        found = Given(engine, clock, Returns(engine, clock))
        for name in NAMES:
            await found.add(name)
        await found.add("new", is_accepted=False)
        yield found


async def test_the_times_to_half_and_to_all_are_those_of_the_renewals(given: Given) -> None:
    given.returns.begin()
    seen = []
    for name in NAMES:
        await given.renew(name)
        seen.append((given.returns.returned, dict(given.returns.seconds_to)))
    assert seen == [
        (1, {}),
        (2, {50: 2.0}),
        (3, {50: 2.0}),
        (4, {50: 2.0, 95: 4.0, 100: 4.0}),
    ]


async def test_what_was_renewed_before_counting_began_is_no_return(given: Given) -> None:
    await given.renew("c0")
    given.returns.begin()
    assert (given.returns.expected, given.returns.returned) == (4, 0)


async def test_a_cluster_that_renews_often_returns_once(given: Given) -> None:
    given.returns.begin()
    await given.renew("c0")
    await given.renew("c0")
    assert given.returns.returned == 1


async def test_only_accepted_clusters_and_their_own_lease_count(given: Given) -> None:
    addon: Obj = {"metadata": {"name": "addon", "namespace": "c0"}, "spec": {}}
    await given.engine.create(LEASE, addon, namespace="c0")
    given.returns.begin()
    await given.renew("new")
    await given.renew("c0", lease="addon")
    assert (given.returns.expected, given.returns.returned) == (4, 0)


async def test_a_cluster_that_is_deleted_is_not_waited_for(given: Given) -> None:
    given.returns.begin()
    for name in NAMES[1:]:
        await given.renew(name)
    await given.engine.delete(MANAGED_CLUSTER, "c0")
    await asyncio.sleep(0)
    assert (given.returns.expected, given.returns.returned) == (3, 3)
    assert given.returns.seconds_to[100] == 3.0


async def test_with_no_clusters_nothing_is_timed(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock, namespaces=["c0"]) as engine:
        returns = Returns(engine, clock)
        returns.begin()
        given = Given(engine, clock, returns)
        await given.add("c0")
        await given.renew("c0")
        assert (returns.expected, returns.returned, returns.seconds_to) == (0, 0, {})
