"""Acceptances that do not come to their end, and the denial after them."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from hub.auth.bootstrap_policy import CLUSTER_ROLE_PREFIX
from hub.fleet.conditions import ACCEPTED, condition_status
from hub.fleet.kinds import MANAGED_CLUSTER
from hub.fleet.registration import Registration
from hub.meta import Obj
from hub.meta.errors import ApiError, unavailable
from hub.registry.engine import Change, Engine
from hub.registry.hold import Hold
from hub.registry.kind import Kind
from hub.registry.rbac import CLUSTER_ROLE, ROLE_BINDING
from tests.unit.controllers.given import shown
from tests.unit.registry.given import VirtualClock, an_engine

NAME = "open-cluster-management:managedcluster:c"


async def accept(engine: Engine, *, is_accepted: bool) -> None:
    def change(obj: Obj) -> None:
        obj["spec"]["hubAcceptsClient"] = is_accepted

    await engine.modify(MANAGED_CLUSTER, "c", change)


@pytest.mark.parametrize("is_denied_before", [False, True])
async def test_a_cluster_denied_before_its_acceptance_was_told_loses_its_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_denied_before: bool
) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock) as engine:
        registration = Registration(engine, clock, auto_accept=False, hold=Hold(clock))
        await engine.create(MANAGED_CLUSTER, {"metadata": {"name": "c"}})
        if is_denied_before:
            for is_accepted in (True, False):
                await accept(engine, is_accepted=is_accepted)
                await registration.reconcile("c")
        await accept(engine, is_accepted=True)
        modify = engine.modify

        async def failing(
            kind: Kind, name: str, change: Change, *, namespace: str = "", subresource: str = ""
        ) -> Obj:
            if subresource == "status":
                raise unavailable("the disk is full")
            return await modify(kind, name, change, namespace=namespace, subresource=subresource)

        with monkeypatch.context() as patched:
            patched.setattr(engine, "modify", failing)
            with pytest.raises(ApiError, match="the disk is full"):
                await registration.reconcile("c")
        assert engine.find(ROLE_BINDING, f"{NAME}:registration", "c") is not None
        await accept(engine, is_accepted=False)
        await registration.reconcile("c")
        assert list(engine.each(ROLE_BINDING, "c")) == []
        (rule,) = engine.get(CLUSTER_ROLE, NAME)["rules"]
        assert rule["verbs"] == ["get", "list", "watch"]
        assert condition_status(engine.get(MANAGED_CLUSTER, "c"), ACCEPTED) == "False"
        before = engine.store.position
        await registration.reconcile("c")
        assert engine.store.position == before, "once is enough"


async def test_a_cluster_that_was_never_accepted_is_not_told_that_it_is_denied(
    tmp_path: Path,
) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock) as engine:
        registration = Registration(engine, clock, auto_accept=False, hold=Hold(clock))
        await engine.create(MANAGED_CLUSTER, {"metadata": {"name": "c"}})
        await registration.reconcile("c")
        assert condition_status(engine.get(MANAGED_CLUSTER, "c"), ACCEPTED) == ""
        assert engine.find(CLUSTER_ROLE, NAME) is None


@pytest.mark.parametrize("is_deleting", [False, True])
async def test_a_cluster_on_its_way_out_keeps_its_rights_while_a_restored_hub_is_held(
    tmp_path: Path, *, is_deleting: bool
) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock) as engine:
        before = Registration(engine, clock, auto_accept=False, hold=Hold(clock))
        await engine.create(MANAGED_CLUSTER, {"metadata": {"name": "c"}})
        await accept(engine, is_accepted=True)
        await before.reconcile("c")
        if is_deleting:
            await engine.delete(MANAGED_CLUSTER, "c")
        else:
            await accept(engine, is_accepted=False)
        await shown()
        hold = Hold(clock, grace_s=300)
        hold.expect(["c", "d"])
        held = Registration(engine, clock, auto_accept=False, hold=hold)
        task = asyncio.ensure_future(held.run())
        await until(lambda: bool(held._held))
        await held.reconcile("c")
        assert has_rights(engine)
        for cluster in ("c", "d"):
            hold.has_awaited(cluster)
        await until(lambda: not has_rights(engine))
        task.cancel()


async def test_a_cluster_that_is_deleted_after_a_restore_goes_at_once(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock) as engine:
        held = Registration(engine, clock, auto_accept=False, hold=Hold(clock, grace_s=300))
        task = asyncio.ensure_future(held.run())
        await engine.create(MANAGED_CLUSTER, {"metadata": {"name": "c"}})
        await accept(engine, is_accepted=True)
        await until(lambda: has_rights(engine))
        await engine.delete(MANAGED_CLUSTER, "c")
        await until(lambda: engine.find(MANAGED_CLUSTER, "c") is None)
        assert not has_rights(engine)
        task.cancel()


def has_rights(engine: Engine) -> bool:
    return engine.find(ROLE_BINDING, f"{CLUSTER_ROLE_PREFIX}c:registration", "c") is not None


async def until(is_so: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if is_so():
            return
        await asyncio.sleep(0)
    pytest.fail("it never became so")
