"""Acceptances that do not come to their end, and the denial after them."""

from pathlib import Path

import pytest

from hub.fleet.conditions import ACCEPTED, condition_status
from hub.fleet.kinds import MANAGED_CLUSTER
from hub.fleet.registration import Registration
from hub.meta import Obj
from hub.meta.errors import ApiError, unavailable
from hub.registry.engine import Change, Engine
from hub.registry.hold import Hold
from hub.registry.kind import Kind
from hub.registry.rbac import CLUSTER_ROLE, ROLE_BINDING
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
