"""What may be written into works and replica sets of works, and who may have them run as whom."""

from pathlib import Path

import pytest

from hub.auth.rbac import Authorizer
from hub.fleet.admission import install_admission
from hub.fleet.kinds import MANIFEST_WORK, MANIFEST_WORK_REPLICA_SET
from hub.meta import Obj
from hub.meta.errors import ApiError
from tests.unit.fleet.test_admission import CALL, rights
from tests.unit.registry.given import VirtualClock, an_engine

MANIFEST: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


def work(name: str = "w", *, account: Obj | None = None, **spec: object) -> Obj:
    found: Obj = {"workload": {"manifests": [MANIFEST]}, **spec}
    if account is not None:
        found["executor"] = {"subject": {"type": "ServiceAccount", "serviceAccount": account}}
    return {"metadata": {"name": name}, "spec": found}


def may_execute(name: str) -> Obj:
    return {
        "apiGroups": ["work.open-cluster-management.io"],
        "resources": ["manifestworks"],
        "resourceNames": [name],
        "verbs": ["execute-as"],
    }


ROBOT = {"namespace": "tools", "name": "robot"}


async def test_to_have_a_work_executed_as_somebody_is_a_right_of_its_own(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("c",)) as engine:
        install_admission(engine, rights(may_execute("system:serviceaccount:tools:robot")))
        made = work(account=ROBOT)
        await engine.create(MANIFEST_WORK, made, namespace="c", call=CALL)
        other = work("x", account={"namespace": "tools", "name": "root"})
        with pytest.raises(ApiError, match="executed as the ServiceAccount tools/root") as refused:
            await engine.create(MANIFEST_WORK, other, namespace="c", call=CALL)
        assert refused.value.code == 400
        await engine.create(MANIFEST_WORK, work("plain"), namespace="c", call=CALL)

        def take(obj: Obj) -> None:
            obj["spec"]["executor"]["subject"]["serviceAccount"]["name"] = "root"

        with pytest.raises(ApiError, match="tools/root"):
            await engine.modify(MANIFEST_WORK, "w", take, namespace="c", call=CALL)


async def test_an_executor_that_stays_is_not_asked_for_again(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("c",)) as engine:
        await engine.create(MANIFEST_WORK, work(account=ROBOT), namespace="c")
        install_admission(engine, Authorizer())

        def label(obj: Obj) -> None:
            obj["metadata"]["labels"] = {"a": "b"}

        await engine.modify(MANIFEST_WORK, "w", label, namespace="c", call=CALL)


async def test_an_executor_needs_an_account(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("c",)) as engine:
        install_admission(engine, Authorizer())
        bare = work(executor={"subject": {"type": "ServiceAccount"}})
        with pytest.raises(ApiError, match="serviceAccount: must be given") as refused:
            await engine.create(MANIFEST_WORK, bare, namespace="c", call=CALL)
        assert refused.value.code == 400


async def test_a_name_that_an_agent_could_not_keep_is_refused(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("c",)) as engine:
        await engine.create(MANIFEST_WORK, work("w" * 188), namespace="c")
        with pytest.raises(ApiError, match="must be no more than 188 characters") as refused:
            await engine.create(MANIFEST_WORK, work("w" * 189), namespace="c")
        assert refused.value.code == 422


def replica_set(name: str, *manifests: Obj) -> Obj:
    template = {"workload": {"manifests": list(manifests)}}
    spec = {"manifestWorkTemplate": template, "placementRefs": [{"name": "p"}]}
    return {"metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("name", "manifests", "says"),
    [
        ("fits", (MANIFEST,), ""),
        ("r" * 61, (MANIFEST,), ""),
        ("r" * 62, (MANIFEST,), "metadata.name: namespace and name make the label"),
        ("none", (), "spec.manifestWorkTemplate.workload.manifests: must hold at least one"),
        ("twice", (MANIFEST, MANIFEST), "the same object stands in the work twice"),
    ],
)
async def test_a_replica_set_is_looked_at_like_the_works_it_makes(
    tmp_path: Path, name: str, manifests: tuple[Obj, ...], says: str
) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("c",)) as engine:
        install_admission(engine, Authorizer())
        kind, given = MANIFEST_WORK_REPLICA_SET, replica_set(name, *manifests)
        if not says:
            await engine.create(kind, given, namespace="c")
            return
        with pytest.raises(ApiError, match=says) as refused:
            await engine.create(kind, given, namespace="c")
        assert refused.value.code == 400
