"""Bindings of sets: who may bind, and whether the set is there."""

from pathlib import Path

import pytest

from hub.auth.rbac import Authorizer
from hub.auth.user import User
from hub.fleet.admission import install_admission
from hub.fleet.bindings import BOUND, Bindings
from hub.fleet.conditions import find_condition
from hub.fleet.kinds import MANAGED_CLUSTER_SET, MANAGED_CLUSTER_SET_BINDING
from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.registry.call import Call
from hub.registry.engine import Engine
from tests.unit.fleet.test_admission import CALL, rights
from tests.unit.registry.given import VirtualClock, an_engine


def binding(name: str = "prod", wanted: str = "prod") -> Obj:
    return {"metadata": {"name": name}, "spec": {"clusterSet": wanted}}


def may_bind(name: str) -> Obj:
    return {
        "apiGroups": ["cluster.open-cluster-management.io"],
        "resources": ["managedclustersets/bind"],
        "resourceNames": [name],
        "verbs": ["create"],
    }


async def test_to_bind_a_set_is_a_right_of_its_own(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("a",)) as engine:
        install_admission(engine, rights(may_bind("prod")))
        kind = MANAGED_CLUSTER_SET_BINDING
        await engine.create(kind, binding(), namespace="a", call=CALL)
        with pytest.raises(ApiError, match='not allowed to bind cluster set "dev"') as refused:
            await engine.create(kind, binding("dev", "dev"), namespace="a", call=CALL)
        assert refused.value.code == 403
        assert refused.value.message.startswith(
            'managedclustersets/bind.cluster.open-cluster-management.io "dev" is forbidden'
        )


async def test_a_binding_has_the_name_of_its_set(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("a",)) as engine:
        install_admission(engine, Authorizer())
        call = Call(User("m", ("system:masters",)))
        with pytest.raises(ApiError, match=r"metadata\.name: must be 'prod'") as refused:
            await engine.create(
                MANAGED_CLUSTER_SET_BINDING, binding("other"), namespace="a", call=call
            )
        assert refused.value.code == 400


async def test_a_binding_is_checked_by_its_schema_first(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("a",)) as engine:
        install_admission(engine, Authorizer())
        with pytest.raises(ApiError, match="should be at least 1 chars long") as refused:
            await engine.create(MANAGED_CLUSTER_SET_BINDING, binding(wanted=""), namespace="a")
        assert refused.value.code == 422


async def bound(engine: Engine, bindings: Bindings) -> tuple[str, str]:
    await bindings.reconcile("a/prod")
    found = find_condition(engine.get(MANAGED_CLUSTER_SET_BINDING, "prod", "a"), BOUND) or {}
    return found["status"], found["reason"]


async def test_a_binding_tells_whether_its_set_is_there(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock, namespaces=("a",)) as engine:
        bindings = Bindings(engine, clock)
        await engine.create(MANAGED_CLUSTER_SET_BINDING, binding(), namespace="a")
        assert await bound(engine, bindings) == ("False", "ClusterSetNotFound")
        await engine.create(MANAGED_CLUSTER_SET, {"metadata": {"name": "prod"}})
        assert "a/prod" in bindings._queue._waiting
        assert await bound(engine, bindings) == ("True", "ClusterSetBound")
        before = engine.get(MANAGED_CLUSTER_SET_BINDING, "prod", "a")
        assert await bound(engine, bindings) == ("True", "ClusterSetBound")
        assert engine.get(MANAGED_CLUSTER_SET_BINDING, "prod", "a") == before
        await engine.delete(MANAGED_CLUSTER_SET, "prod")
        assert await bound(engine, bindings) == ("False", "ClusterSetNotFound")
        await engine.delete(MANAGED_CLUSTER_SET_BINDING, "prod", namespace="a")
        assert await bindings.reconcile("a/prod") is None
