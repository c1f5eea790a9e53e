"""Who is alive, on a clock that tests move: nothing here waits."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.fleet.conditions import (
    ACCEPTED,
    AVAILABLE,
    CLOCK_SYNCED,
    condition_status,
    find_condition,
    set_condition,
)
from hub.fleet.kinds import MANAGED_CLUSTER, MANAGED_CLUSTER_ADDON
from hub.fleet.leases import SKIP_CLOCK_CHECK, LeaseJudge
from hub.fleet.registration import LEASE_NAME
from hub.meta import Obj
from hub.meta.timestamp import format_micro_time, parse_time
from hub.registry.builtin import LEASE
from hub.registry.engine import Change, Engine
from hub.registry.kind import Kind
from tests.unit.registry.given import VirtualClock, an_engine


@dataclass(slots=True)
class Given:
    """An engine, its clock, a judge, and one cluster ``c``."""

    engine: Engine
    clock: VirtualClock
    judge: LeaseJudge

    async def condition(self, type_: str, status: str) -> None:
        def change(obj: Obj) -> None:
            set_condition(obj, type_, status, reason="R", message="m", now=self.clock.now())

        await self.engine.modify(MANAGED_CLUSTER, "c", change, subresource="status")

    async def renew(self, *, behind_s: float = 0) -> None:
        """What an agent does, its clock `behind_s` seconds late."""
        self.clock.move(-behind_s)
        text = format_micro_time(self.clock.now())
        self.clock.move(behind_s)

        def change(obj: Obj) -> None:
            obj["spec"]["renewTime"] = text

        renewed = await self.engine.modify(LEASE, LEASE_NAME, change, namespace="c")
        await self.shown(renewed)

    async def shown(self, obj: Obj) -> None:
        """Let the loop turn until a write has reached the listeners."""
        for _ in range(1000):
            if self.engine.store.revision >= int(obj["metadata"]["resourceVersion"]):
                return
            await asyncio.sleep(0)
        raise AssertionError("the write is never shown")

    async def spec(self, **fields: object) -> None:
        await self.engine.modify(MANAGED_CLUSTER, "c", lambda obj: obj["spec"].update(fields))

    def status(self, type_: str) -> str:
        return condition_status(self.engine.get(MANAGED_CLUSTER, "c"), type_)

    def is_queued(self) -> bool:
        return len(self.judge._queue) > 0

    async def judge_now(self) -> float | None:
        """What the queue would do."""
        while self.is_queued():
            key = await self.judge._queue.take()
            self.judge._queue.done(key)
        return await self.judge.reconcile("c")


@contextlib.asynccontextmanager
async def a_cluster(path: Path, *, is_available: bool = True) -> AsyncIterator[Given]:
    clock = VirtualClock()
    async with an_engine(path, clock, namespaces=("c",)) as engine:
        given = Given(engine, clock, LeaseJudge(engine, clock))
        await engine.create(MANAGED_CLUSTER, {"metadata": {"name": "c"}})
        labels = {CLUSTER_NAME_LABEL: "c"}
        lease = {
            "metadata": {"name": LEASE_NAME, "labels": labels},
            "spec": {"holderIdentity": LEASE_NAME, "renewTime": format_micro_time(clock.now())},
        }
        await engine.create(LEASE, lease, namespace="c")
        await given.judge_now()
        await given.condition(ACCEPTED, "True")
        if is_available:
            await given.condition(AVAILABLE, "True")
        yield given


async def test_silence_of_five_lease_durations_makes_a_cluster_unknown(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as given:
        assert await given.judge_now() == 300
        given.clock.move(299)
        assert await given.judge_now() == 1
        assert given.status(AVAILABLE) == "True"
        given.clock.move(1)
        await given.judge_now()
        found = find_condition(given.engine.get(MANAGED_CLUSTER, "c"), AVAILABLE)
        assert found is not None
        assert (found["status"], found["reason"]) == (
            "Unknown",
            "ManagedClusterLeaseUpdateStopped",
        )
        assert parse_time(found["lastTransitionTime"]) == given.clock.now()


async def test_the_add_ons_of_a_silent_cluster_become_unknown_with_it(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as given:
        await given.engine.create(MANAGED_CLUSTER_ADDON, {"metadata": {"name": "a"}}, namespace="c")
        given.clock.move(300)
        await given.judge_now()
        addon = given.engine.get(MANAGED_CLUSTER_ADDON, "a", "c")
        found = find_condition(addon, "Available")
        assert found is not None
        assert (found["status"], found["reason"]) == (
            "Unknown",
            "ManagedClusterLeaseUpdateStopped",
        )


async def test_an_add_on_deleted_meanwhile_does_not_save_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_cluster(tmp_path) as given:
        for name in ("a", "b", "c"):
            addon = {"metadata": {"name": name}}
            await given.engine.create(MANAGED_CLUSTER_ADDON, addon, namespace="c")
        given.clock.move(300)
        modify = given.engine.modify

        async def racing(
            kind: Kind, name: str, change: Change, *, namespace: str = "", subresource: str = ""
        ) -> Obj:
            if (kind, name) == (MANAGED_CLUSTER_ADDON, "b"):
                await given.engine.delete(MANAGED_CLUSTER_ADDON, "b", namespace="c")
            return await modify(kind, name, change, namespace=namespace, subresource=subresource)

        monkeypatch.setattr(given.engine, "modify", racing)
        await given.judge_now()
        for name in ("a", "c"):
            found = given.engine.get(MANAGED_CLUSTER_ADDON, name, "c")
            assert condition_status(found, "Available") == "Unknown"
        assert given.status(AVAILABLE) == "Unknown"


async def test_a_cluster_that_renews_while_its_add_ons_are_written_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_cluster(tmp_path) as given:
        for name in ("a", "b"):
            addon = {"metadata": {"name": name}}
            await given.engine.create(MANAGED_CLUSTER_ADDON, addon, namespace="c")
        given.clock.move(300)
        modify = given.engine.modify

        async def racing(
            kind: Kind, name: str, change: Change, *, namespace: str = "", subresource: str = ""
        ) -> Obj:
            if (kind, name) == (MANAGED_CLUSTER_ADDON, "b"):
                given.clock.move(1)
                await given.renew()
            return await modify(kind, name, change, namespace=namespace, subresource=subresource)

        monkeypatch.setattr(given.engine, "modify", racing)
        await given.judge_now()
        later = given.engine.get(MANAGED_CLUSTER_ADDON, "b", "c")
        assert condition_status(later, "Available") == ""
        assert given.status(AVAILABLE) == "True"


@pytest.mark.parametrize("seconds", [-1, -(10**30)])
async def test_a_lease_duration_below_zero_is_not_due_all_the_time(
    tmp_path: Path, seconds: int
) -> None:
    async with a_cluster(tmp_path) as given:
        await given.spec(leaseDurationSeconds=seconds)
        assert await given.judge_now() == 5
        given.clock.move(5)
        assert await given.judge_now() == 5
        assert given.status(AVAILABLE) == "Unknown"


async def test_a_lease_duration_beyond_all_bounds_is_a_week(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as given:
        await given.spec(leaseDurationSeconds=10**400)
        assert await given.judge_now() == 5 * 7 * 24 * 3600


async def test_every_renewal_begins_the_time_anew(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as given:
        for _ in range(10):
            given.clock.move(290)
            await given.renew()
            assert await given.judge_now() == 300
        assert given.status(AVAILABLE) == "True"


async def test_the_hubs_own_time_of_receipt_counts_and_not_the_agents(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as given:
        given.clock.move(200)
        await given.renew(behind_s=10_000)
        assert await given.judge_now() == 300
        assert given.status(AVAILABLE) == "True"
        given.clock.move(200)
        await given.renew(behind_s=-10_000)
        given.clock.move(300)
        await given.judge_now()
        assert given.status(AVAILABLE) == "Unknown"


async def test_the_lease_duration_of_the_cluster_decides(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as given:
        await given.judge_now()
        await given.spec(leaseDurationSeconds=10)
        assert given.is_queued()
        assert await given.judge_now() == 50
        given.clock.move(50)
        await given.judge_now()
        assert given.status(AVAILABLE) == "Unknown"


async def test_a_cluster_that_never_renews_is_judged_from_its_acceptance(tmp_path: Path) -> None:
    async with a_cluster(tmp_path, is_available=False) as given:
        # its Lease was there before: acceptance itself must wake the judge
        assert given.is_queued()
        assert await given.judge_now() == 300
        await given.condition(AVAILABLE, "True")
        assert given.is_queued()
        given.clock.move(300)
        await given.judge_now()
        assert given.status(AVAILABLE) == "Unknown"


async def test_a_cluster_accepted_again_gets_a_whole_grace_period(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as given:
        await given.condition(ACCEPTED, "False")
        given.clock.move(5000)
        assert await given.judge_now() is None
        assert given.status(AVAILABLE) == "True"
        await given.condition(ACCEPTED, "True")
        assert given.is_queued()
        assert await given.judge_now() == 300
        assert given.status(AVAILABLE) == "True"


async def test_an_unknown_cluster_is_left_to_its_agent(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as given:
        given.clock.move(300)
        assert await given.judge_now() == 300
        await given.renew()
        await given.condition(AVAILABLE, "True")
        given.clock.move(250)
        assert await given.judge_now() == 50
        assert given.status(AVAILABLE) == "True"


@pytest.mark.parametrize(("behind_s", "status"), [(299, "True"), (300, "False"), (-300, "False")])
async def test_a_clock_that_is_off_is_reported(
    tmp_path: Path, behind_s: float, status: str
) -> None:
    async with a_cluster(tmp_path) as given:
        await given.renew(behind_s=behind_s)
        await given.judge_now()
        found = find_condition(given.engine.get(MANAGED_CLUSTER, "c"), CLOCK_SYNCED)
        assert found is not None
        assert found["status"] == status
        assert found["reason"] == (
            "ManagedClusterClockSynced" if status == "True" else "ManagedClusterClockOutOfSync"
        )
        await given.renew()
        assert given.is_queued() is (status == "False")
        await given.judge_now()
        assert given.status(CLOCK_SYNCED) == "True"


async def test_the_check_of_clocks_can_be_turned_off(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as given:

        def skip(obj: Obj) -> None:
            obj["metadata"]["annotations"] = {SKIP_CLOCK_CHECK: "true"}

        await given.engine.modify(MANAGED_CLUSTER, "c", skip)
        await given.renew(behind_s=5000)
        await given.judge_now()
        assert given.status(CLOCK_SYNCED) == ""


async def test_a_clock_is_judged_by_the_first_renewal_and_not_by_the_hub(tmp_path: Path) -> None:
    async with a_cluster(tmp_path, is_available=False) as given:
        await given.judge_now()
        assert await given.judge.refresh_all() == 1
        await given.judge_now()
        assert given.status(CLOCK_SYNCED) == "", "only the hub has written yet"
        await given.renew(behind_s=5000)
        assert given.is_queued()
        await given.judge_now()
        assert given.status(CLOCK_SYNCED) == "False"


async def test_renewals_that_change_nothing_else_wake_nobody_and_are_not_logged(
    tmp_path: Path,
) -> None:
    async with a_cluster(tmp_path) as given:
        await given.renew(behind_s=1)
        await given.judge_now()
        before = given.engine.store.position
        for _ in range(5):
            given.clock.move(60)
            await given.renew()
        assert not given.is_queued()
        assert given.engine.store.position == before


async def test_a_start_refreshes_every_lease_and_gives_every_cluster_its_time(
    tmp_path: Path,
) -> None:
    async with a_cluster(tmp_path) as given:
        given.clock.move(100_000)
        judge = LeaseJudge(given.engine, given.clock)
        assert await judge.refresh_all() == 1
        lease = given.engine.get(LEASE, LEASE_NAME, "c")
        assert parse_time(lease["spec"]["renewTime"]) == given.clock.now()
        await given.shown(lease)
        assert await judge.reconcile("c") == 300
        assert given.status(AVAILABLE) == "True"


async def test_what_a_start_writes_tells_nothing_of_a_clock(tmp_path: Path) -> None:
    """An agent whose clock is off stays so until it renews by itself."""
    async with a_cluster(tmp_path) as given:
        await given.renew(behind_s=10_000)
        await given.judge_now()
        assert given.status(CLOCK_SYNCED) == "False"
        await given.judge.refresh_all()
        await given.shown(given.engine.get(LEASE, LEASE_NAME, "c"))
        await given.judge_now()
        assert given.status(CLOCK_SYNCED) == "False"
        given.clock.move(60)
        await given.renew()
        await given.judge_now()
        assert given.status(CLOCK_SYNCED) == "True"


async def test_a_time_that_is_no_time_is_refused_and_harmless(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as given:

        def change(obj: Obj) -> None:
            obj["spec"]["renewTime"] = "yesterday"

        with pytest.raises(Exception, match="must be RFC 3339"):
            await given.engine.modify(LEASE, LEASE_NAME, change, namespace="c")
        assert given.judge._skew_of({"spec": {"renewTime": "yesterday"}}) is None


async def test_a_cluster_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as given:
        await given.engine.delete(MANAGED_CLUSTER, "c")
        assert await given.judge_now() is None
        assert given.judge._heard_s == {}
