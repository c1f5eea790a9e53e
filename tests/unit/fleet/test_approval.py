"""Which certificate requests are an agent's, exactly."""

import base64
from pathlib import Path

import pytest

from hub.auth.certificates import CsrInfo, parse_csr
from hub.auth.identity import create_identity
from hub.auth.rbac import Authorizer
from hub.auth.user import User
from hub.controllers.signer import Signer
from hub.fleet.approval import MANAGED_CLUSTERS, Approver, agent_subject_problem, is_agent_request
from hub.fleet.conditions import JOINED, set_condition
from hub.fleet.kinds import MANAGED_CLUSTER
from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.registry.call import Call
from hub.registry.engine import Change, Engine
from hub.registry.event import EVENT
from hub.registry.kind import Kind
from hub.registry.requests import CSR, has_condition
from tests.server.agents import MANAGED, PREFIX, Wish
from tests.unit.registry.given import VirtualClock, an_engine


def info(**flaw: object) -> CsrInfo:
    wish = Wish("c", **flaw)  # type: ignore[arg-type]  # a table of fields
    return parse_csr(base64.b64decode(wish.as_obj()["spec"]["request"]))


@pytest.mark.parametrize(
    "good",
    [
        {},
        {"organizations": [MANAGED, f"{PREFIX}c"]},
        {"organizations": [f"{PREFIX}c"]},
        {"common_name": f"{PREFIX}c:agent-1"},
    ],
)
def test_an_agents_subject_names_one_cluster(good: dict[str, object]) -> None:
    assert MANAGED == MANAGED_CLUSTERS
    assert agent_subject_problem(info(**good), "c") == ""


@pytest.mark.parametrize(
    ("flaw", "problem"),
    [
        ({"organizations": [f"{PREFIX}d", MANAGED]}, "organizations"),
        ({"organizations": [f"{PREFIX}c", f"{PREFIX}d", MANAGED]}, "organizations"),
        ({"organizations": [f"{PREFIX}c", "system:masters"]}, "organizations"),
        ({"organizations": [MANAGED]}, "organizations"),
        ({"organizations": []}, "organizations"),
        ({"common_name": f"{PREFIX}d:a"}, "another cluster"),
        ({"common_name": f"{PREFIX}c"}, "common name"),
        ({"common_name": f"{PREFIX}c:"}, "common name"),
        ({"common_name": f"{PREFIX}:a"}, "common name"),
        ({"common_name": f"{PREFIX}c:a:b"}, "common name"),
        ({"common_name": "c:a"}, "common name"),
        ({"common_name": f"x{PREFIX}c:a"}, "common name"),
        ({"dns_names": ["hub"]}, "alternative names"),
    ],
)
def test_any_other_subject_is_refused_with_its_reason(
    flaw: dict[str, object], problem: str
) -> None:
    assert problem in agent_subject_problem(info(**flaw), "c")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"labels": {}}, False),
        ({"labels": {"open-cluster-management.io/cluster-name": ""}}, False),
        (
            {
                "labels": {
                    "open-cluster-management.io/cluster-name": "c",
                    "open-cluster-management.io/addon-name": "x",
                }
            },
            False,
        ),
        ({"signer": "example.com/x"}, False),
    ],
)
def test_requests_of_add_ons_and_strangers_are_somebody_elses(
    change: dict[str, object], *, expected: bool
) -> None:
    request: Obj = Wish("c", **change).as_obj()  # type: ignore[arg-type]  # a table of fields
    assert is_agent_request(request) is expected


@pytest.mark.parametrize("decision", ["Approved", "Denied"])
def test_a_decided_request_is_left_alone(decision: str) -> None:
    request = {**Wish("c").as_obj(), "status": {"conditions": [{"type": decision}]}}
    assert not is_agent_request(request)


def request_named(name: str, wish: Wish) -> Obj:
    body = wish.as_obj()
    return {**body, "metadata": {"name": name, "labels": body["metadata"]["labels"]}}


class Swapping:
    """Before a write, makes another request of its name."""

    def __init__(self, engine: Engine, other: Wish) -> None:
        self._engine, self._other, self._modify = engine, other, engine.modify

    async def __call__(
        self, kind: Kind, name: str, change: Change, *, subresource: str = ""
    ) -> Obj:
        await self._engine.delete(CSR, name)
        await self._engine.create(CSR, request_named(name, self._other))
        return await self._modify(kind, name, change, subresource=subresource)


async def test_a_request_that_took_the_name_of_an_approved_one_is_not_approved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_engine(tmp_path, VirtualClock()) as engine:
        approver = Approver(engine, Authorizer(), bootstrap_users=("u",))
        await engine.create(CSR, request_named("r", Wish("c")), call=Call(User("u")))
        evil = Wish("c", common_name=f"{PREFIX}d:a", organizations=[f"{PREFIX}d"])
        monkeypatch.setattr(engine, "modify", Swapping(engine, evil))
        await approver.reconcile("r")
        assert not has_condition(engine.get(CSR, "r"), "Approved")


async def test_a_certificate_goes_to_the_request_it_was_signed_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock) as engine:
        authority = create_identity("https://hub", clock, names=["hub"]).client_ca
        approver = Approver(engine, Authorizer(), bootstrap_users=("u",))
        await engine.create(CSR, request_named("r", Wish("c")), call=Call(User("u")))
        await approver.reconcile("r")
        monkeypatch.setattr(engine, "modify", Swapping(engine, Wish("c")))
        await Signer(engine, authority, clock).reconcile("r")
        assert engine.get(CSR, "r")["status"] == {}


async def test_nobody_may_even_ask_for_a_certificate_in_system_masters(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock()) as engine:
        wish = Wish("c", common_name="root", organizations=["x", "system:masters"])
        with pytest.raises(ApiError) as refused:
            await engine.create(CSR, request_named("r", wish))
        assert refused.value.code == 403
        assert refused.value.message == (
            'certificatesigningrequests.certificates.k8s.io "r" is forbidden: use of '
            "kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
        )
        other = Wish("c", organizations=["system:masters"], signer="example.com/x")
        await engine.create(CSR, request_named("s", other))


SHARED = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap"


async def ask_as(engine: Engine, user: str, wish: Wish) -> bool:
    """Make a request, let the approver look at it; whether it was approved."""
    approver = Approver(engine, Authorizer(), bootstrap_users=(SHARED,))
    await engine.create(CSR, request_named("r", wish), call=Call(User(user)))
    await approver.reconcile("r")
    return has_condition(engine.get(CSR, "r"), "Approved")


async def a_cluster(engine: Engine, *, has_joined: bool) -> None:
    await engine.create(MANAGED_CLUSTER, {"metadata": {"name": "c"}})

    def join(obj: Obj) -> None:
        set_condition(obj, JOINED, "True", reason="R", message="", now=engine.clock.now())

    if has_joined:
        await engine.modify(MANAGED_CLUSTER, "c", join, subresource="status")


@pytest.mark.parametrize("has_joined", [False, True])
async def test_the_shared_account_gets_certificates_for_clusters_that_have_not_joined(
    tmp_path: Path, *, has_joined: bool
) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("default",)) as engine:
        await a_cluster(engine, has_joined=has_joined)
        assert await ask_as(engine, SHARED, Wish("c")) is not has_joined
        events = list(engine.each(EVENT, "default"))
        assert [event["reason"] for event in events] == ["ClusterNameInUse"] * has_joined
        if has_joined:
            assert events[0]["involvedObject"]["name"] == "r"
            assert "asks for a certificate of c, which has joined already" in events[0]["message"]


@pytest.mark.parametrize(
    ("user", "groups", "is_told"),
    [
        ("system:bootstrap:abcdef", (), True),
        (f"{PREFIX}d:a1", (f"{PREFIX}d",), True),
        (f"{PREFIX}c:a2", (f"{PREFIX}c",), False),
        ("system:serviceaccount:c:c-bootstrap-sa", (), False),
    ],
)
async def test_whoever_asks_in_the_name_of_a_cluster_that_has_joined_is_told_of(
    tmp_path: Path, user: str, groups: tuple[str, ...], *, is_told: bool
) -> None:
    """Also when nobody is listed, and a person decides about every request."""
    async with an_engine(tmp_path, VirtualClock(), namespaces=("default",)) as engine:
        await a_cluster(engine, has_joined=True)
        approver = Approver(engine, Authorizer(), bootstrap_users=())
        call = Call(User(user, groups))
        await engine.create(CSR, request_named("r", Wish("c")), call=call)
        await approver.reconcile("r")
        told = [event["reason"] for event in engine.each(EVENT, "default")]
        assert told == ["ClusterNameInUse"] * is_told


async def test_a_name_that_nobody_knows_yet_is_free(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock()) as engine:
        assert await ask_as(engine, SHARED, Wish("c"))


@pytest.mark.parametrize(
    ("user", "is_approved"),
    [
        ("system:serviceaccount:c:c-bootstrap-sa", True),
        ("system:serviceaccount:d:d-bootstrap-sa", False),
        ("system:serviceaccount:d:c-bootstrap-sa", False),
        ("system:serviceaccount:c:default", False),
        ("c-bootstrap-sa", False),
    ],
)
async def test_a_clusters_own_account_gets_certificates_even_when_it_has_joined(
    tmp_path: Path, user: str, *, is_approved: bool
) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("default",)) as engine:
        await a_cluster(engine, has_joined=True)
        assert await ask_as(engine, user, Wish("c")) is is_approved


async def test_a_clusters_own_account_gets_none_for_a_cluster_that_is_not_there(
    tmp_path: Path,
) -> None:
    async with an_engine(tmp_path, VirtualClock()) as engine:
        assert not await ask_as(engine, "system:serviceaccount:c:c-bootstrap-sa", Wish("c"))


async def test_a_clusters_own_account_gets_none_for_another_subject(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock()) as engine:
        await a_cluster(engine, has_joined=False)
        wish = Wish("c", common_name=f"{PREFIX}d:a")
        assert not await ask_as(engine, "system:serviceaccount:c:c-bootstrap-sa", wish)
