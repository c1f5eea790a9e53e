"""Acting as somebody else, over the wire and with kubectl."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from hub.meta import Obj
from tests.clients.cli import Kubectl
from tests.hubs import Api, InProcess
from tests.server.support import (
    RBAC,
    REQUESTS,
    anonymous,
    config_maps,
    named,
    over_http1,
    token_for,
)
from tests.unit.auth.support import make_csr

pytestmark = pytest.mark.asyncio(loop_scope="module")
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def who(api: Api) -> Obj:
    found = (await api.create(REVIEWS, {}))["status"]["userInfo"]
    assert isinstance(found, dict)
    return found


@pytest_asyncio.fixture(loop_scope="module")
async def robot(hub: InProcess, ns: str) -> AsyncIterator[Api]:
    """A ServiceAccount without any right of its own."""
    api = anonymous(hub, token=await token_for(hub, ns, "robot"))
    yield api
    await api.close()


async def allow(hub: InProcess, ns: str, *rules: Obj) -> None:
    """Give the robot rules, cluster-wide."""
    await hub.admin.create(f"{RBAC}/clusterroles", named(ns, rules=list(rules)))
    subject = {"kind": "ServiceAccount", "namespace": ns, "name": "robot"}
    body = named(ns, roleRef={"kind": "ClusterRole", "name": ns}, subjects=[subject])
    await hub.admin.create(f"{RBAC}/clusterrolebindings", body)


def may(resources: str, *names: str, group: str = "") -> Obj:
    rule: Obj = {"verbs": ["impersonate"], "apiGroups": [group], "resources": [resources]}
    return rule | ({"resourceNames": list(names)} if names else {})


async def test_nothing_of_the_requester_remains(hub: InProcess) -> None:
    assert await who(hub.admin.acting_as("bob")) == {
        "username": "bob",
        "groups": ["system:authenticated"],
    }


@pytest.mark.parametrize("http", ["1.1", "2"])
async def test_groups_uid_and_extras_come_as_sent(hub: InProcess, http: str) -> None:
    extra = (
        ("impersonate-uid", "7"),
        ("Impersonate-Extra-Foo.bar%2FX", "v"),
        ("impersonate-extra-foo.bar%2fx", "w"),
    )
    api = over_http1(hub) if http == "1.1" else hub.admin
    try:
        found = await who(api.acting_as("bob", "g1, g2", "g3", extra=extra))
    finally:
        if http == "1.1":
            await api.close()
    assert found == {
        "username": "bob",
        "uid": "7",
        "groups": ["g1, g2", "g3", "system:authenticated"],
        "extra": {"foo.bar/x": ["v", "w"]},
    }


async def test_names_may_be_in_any_script(hub: InProcess) -> None:
    as_sent = "žofie".encode().decode("latin-1")
    assert (await who(hub.admin.acting_as(as_sent)))["username"] == "žofie"


async def test_a_service_account_brings_its_groups_unless_others_are_named(hub: InProcess) -> None:
    name = "system:serviceaccount:default:x"
    assert await who(hub.admin.acting_as(name)) == {
        "username": name,
        "groups": [
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated",
        ],
    }
    assert (await who(hub.admin.acting_as(name, "a")))["groups"] == ["a", "system:authenticated"]
    no_account = "system:serviceaccount:Default:x"
    assert (await who(hub.admin.acting_as(no_account)))["groups"] == ["system:authenticated"]


async def test_who_acts_as_anonymous_or_unauthenticated_has_their_rights(hub: InProcess) -> None:
    for api in (
        hub.admin.acting_as("system:anonymous"),
        hub.admin.acting_as("bob", "system:unauthenticated"),
    ):
        assert (await api.call("GET", "/version")).status == 200
        assert (await api.call("POST", REVIEWS, {})).status == 403


async def test_the_rights_are_those_of_the_impersonated_user(hub: InProcess, ns: str) -> None:
    await hub.admin.create(
        f"{RBAC}/clusterroles",
        named(ns, rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]),
    )
    body = named(
        ns,
        roleRef={"kind": "ClusterRole", "name": ns},
        subjects=[{"kind": "Group", "name": f"{ns}-people"}],
    )
    await hub.admin.create(f"{RBAC}/namespaces/{ns}/rolebindings", body)
    assert (
        await hub.admin.acting_as("bob", f"{ns}-people").call("GET", config_maps(ns))
    ).status == 200
    refused = await hub.admin.acting_as("bob").call("GET", config_maps(ns))
    assert refused.obj()["message"] == (
        'configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" '
        f'in the namespace "{ns}"'
    )
    masters = hub.admin.acting_as("bob", "system:masters")
    assert (await masters.call("GET", config_maps(ns))).status == 200


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        (
            (("impersonate-group", "dev"), ("impersonate-group", "dev2")),
            "requested [{Group  dev    } {Group  dev2    }] without impersonating a user",
        ),
        (
            (("impersonate-uid", "7"), ("impersonate-extra-foo.bar%2fx", "v")),
            (
                "requested [{UserExtra  v  authentication.k8s.io/v1  foo.bar/x} "
                "{UID  7  authentication.k8s.io/v1  }] without impersonating a user"
            ),
        ),
        (
            (("impersonate-user", ""), ("impersonate-group", "dev")),
            "requested [{Group  dev    }] without impersonating a user",
        ),
    ],
)
async def test_a_group_without_a_user_is_400(
    hub: InProcess, headers: tuple[tuple[str, str], ...], text: str
) -> None:
    answer = await hub.admin.with_headers(*headers).call("GET", "/api/v1/namespaces")
    assert answer.status == 400
    assert answer.obj()["message"] == text


async def test_each_part_needs_a_right_of_its_own(hub: InProcess, ns: str, robot: Api) -> None:
    me = f'User "system:serviceaccount:{ns}:robot"'

    async def refusal(api: Api) -> Obj:
        answer = await api.call("POST", REVIEWS, {})
        assert answer.status == 403, answer.body
        return answer.obj()

    core, other = 'in API group "" at the cluster scope', "authentication.k8s.io"
    found = await refusal(robot.acting_as("bob"))
    assert found["message"] == (
        f'users "bob" is forbidden: {me} cannot impersonate resource "users" {core}'
    )
    assert found["details"] == {"name": "bob", "kind": "users"}
    found = await refusal(robot.acting_as("system:serviceaccount:default:x"))
    assert found["message"] == (
        f'serviceaccounts "x" is forbidden: {me} cannot impersonate resource "serviceaccounts" '
        'in API group "" in the namespace "default"'
    )
    await allow(hub, ns, may("users", "bob"), may("groups", "g1"))
    assert (await who(robot.acting_as("bob", "g1")))["groups"] == ["g1", "system:authenticated"]
    found = await refusal(robot.acting_as("bob", "g1", "g2"))
    assert found["message"] == (
        f'groups "g2" is forbidden: {me} cannot impersonate resource "groups" {core}'
    )
    assert (await refusal(robot.acting_as("bob", "system:masters")))["details"]["kind"] == "groups"
    found = await refusal(robot.acting_as("bob", extra=[("impersonate-uid", "7")]))
    assert found["message"] == (
        f'uids.{other} "7" is forbidden: {me} cannot impersonate resource "uids" '
        f'in API group "{other}" at the cluster scope'
    )
    found = await refusal(robot.acting_as("bob", extra=[("impersonate-extra-team%2fX", "red")]))
    assert found["message"] == (
        f'userextras.{other} "red" is forbidden: {me} cannot impersonate resource '
        f'"userextras/team/x" in API group "{other}" at the cluster scope'
    )
    await hub.admin.call("DELETE", f"{RBAC}/clusterroles/{ns}")
    await hub.admin.call("DELETE", f"{RBAC}/clusterrolebindings/{ns}")
    await allow(
        hub,
        ns,
        may("users"),
        may("userextras/team/x", "red", group=other),
        may("uids", group=other),
    )
    extra = [("impersonate-extra-team%2fX", "red"), ("impersonate-uid", "7")]
    assert await who(robot.acting_as("eve", extra=extra)) == {
        "username": "eve",
        "uid": "7",
        "groups": ["system:authenticated"],
        "extra": {"team/x": ["red"]},
    }
    assert (await refusal(robot.acting_as("eve", "g1")))["details"]["kind"] == "groups"


async def test_nobody_gains_rights_by_acting_twice(hub: InProcess, ns: str, robot: Api) -> None:
    """The right to act as one user is not the right to act as those that this one may act as."""
    await allow(hub, ns, may("users", "middle"))
    rule = may("users", "top")
    await hub.admin.create(f"{RBAC}/clusterroles", named(f"{ns}-2", rules=[rule]))
    body = named(
        f"{ns}-2",
        roleRef={"kind": "ClusterRole", "name": f"{ns}-2"},
        subjects=[{"kind": "User", "name": "middle"}],
    )
    await hub.admin.create(f"{RBAC}/clusterrolebindings", body)
    both = robot.with_headers(("impersonate-user", "middle"), ("impersonate-user", "top"))
    assert (await who(both))["username"] == "middle"
    assert (await robot.acting_as("top").call("POST", REVIEWS, {})).status == 403


async def test_a_certificate_request_is_that_of_the_impersonated_user(
    hub: InProcess, name: str
) -> None:
    pem, _ = make_csr("bob")
    spec = {
        "request": base64.b64encode(pem).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    api = hub.admin.acting_as("bob", "system:masters", extra=[("impersonate-extra-Why", "test")])
    made = await api.create(REQUESTS, named(name, spec=spec))
    assert {field: made["spec"].get(field) for field in ("username", "groups", "uid", "extra")} == {
        "username": "bob",
        "groups": ["system:masters", "system:authenticated"],
        "uid": None,
        "extra": {"why": ["test"]},
    }


async def test_kubectl_acts_as_users_groups_and_accounts(
    hub: InProcess, ns: str, kubectl: Path, tmp_path: Path
) -> None:
    tool = Kubectl(kubectl, hub.kubeconfig, tmp_path)
    identity = ("--as", "bob", "--as-group", "a,b", "--as-group", "c", "--as-uid", "7")
    found = await tool.ok("auth", "whoami", "-o", "json", *identity)
    assert found.obj()["status"]["userInfo"] == {
        "username": "bob",
        "uid": "7",
        "groups": ["a,b", "c", "system:authenticated"],
    }
    account = f"system:serviceaccount:{ns}:robot"
    refused = await tool.run("get", "configmaps", "-n", ns, "--as", account)
    assert refused.code == 1
    assert refused.err == (
        "Error from server (Forbidden): configmaps is forbidden: User "
        f'"{account}" cannot list resource "configmaps" in API group "" in the namespace "{ns}"\n'
    )
    may_not = await tool.run("auth", "can-i", "list", "configmaps", "--as", account)
    assert (may_not.code, may_not.out) == (1, "no\n")
    await tool.ok("get", "configmaps", "-n", ns, "--as", "x", "--as-group", "system:masters")
