"""What a bootstrap token or an agent that means harm is answered, to the word."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from hub.controllers.surplus import KEPT
from hub.fleet.requestpace import BOOTSTRAP
from hub.meta import Obj
from tests.hubs import MERGE, Answer, Api, InProcess, running_hub
from tests.server.agents import (
    BOOTSTRAP_USER,
    CLUSTER_LABEL,
    PREFIX,
    Wish,
    bootstrap,
    certified,
    joined,
    until_event,
)
from tests.server.support import CLUSTERS, REQUESTS, anonymous, config_maps, named
from tests.server.test_people import token_of

pytestmark = pytest.mark.asyncio(loop_scope="module")
WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks"
ADDONS = "/apis/addon.open-cluster-management.io/v1alpha1/namespaces/{}/managedclusteraddons"
EVENTS = "/api/v1/namespaces/default/events"
SECRET = "what-only-b-may-know"
FLOOD = 10_000
AT_ONCE = 100
SHARED = {
    ("authentication.k8s.io", "selfsubjectreviews", "create"),
    ("authorization.k8s.io", "selfsubjectaccessreviews", "create"),
    ("authorization.k8s.io", "selfsubjectrulesreviews", "create"),
    *(
        ("certificates.k8s.io", "certificatesigningrequests", verb)
        for verb in ("create", "get", "list", "watch")
    ),
}
"""What every agent may do, in any hub of Open Cluster Management: ask who it is, and ask for
certificates. Requests hold no secrets, and agents look at their own with a label selector.
"""
METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
OF_ONE = {"get", "update", "patch", "delete"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[InProcess]:
    data = tmp_path_factory.mktemp("hub") / "data"
    async with running_hub(data, auto_approve_users=(BOOTSTRAP_USER,)) as found:
        yield found


# ------------------------------------------------------------------ certificates of others


async def report_joined(hub: InProcess, cluster: str) -> None:
    """What an agent writes once it has its certificate."""
    at = "2026-01-01T00:00:00Z"
    condition = {
        "type": "ManagedClusterJoined",
        "status": "True",
        "reason": "ManagedClusterJoined",
        "message": "Managed cluster joined",
        "lastTransitionTime": at,
    }
    found = await hub.admin.get(f"{CLUSTERS}/{cluster}")
    conditions = [*(found["status"].get("conditions") or []), condition]
    await hub.admin.patch(f"{CLUSTERS}/{cluster}/status", {"status": {"conditions": conditions}})


async def test_the_shared_token_gets_no_certificate_of_a_cluster_that_has_joined(
    hub: InProcess, name: str
) -> None:
    await (await joined(hub, name)).close()
    await report_joined(hub, name)
    thief = await bootstrap(hub)
    own = await token_of(hub, name)
    try:
        async with hub.admin.watch(f"{EVENTS}?watch=1") as events:
            asked = await thief.create(REQUESTS, Wish(name).as_obj())
            request = asked["metadata"]["name"]
            told = await until_event(
                events, lambda e: e["object"].get("involvedObject", {}).get("name") == request
            )
        assert (told["type"], told["reason"]) == ("Warning", "ClusterNameInUse")
        assert told["message"] == (
            f"{BOOTSTRAP_USER} asks for a certificate of {name}, which has joined already: "
            "approve it if that cluster was made anew, or give it a bootstrap account of its own"
        )
        # a request made after it is approved and signed, so it has had its turn
        await (await certified(hub, own, Wish(name))).close()
        assert not (await hub.admin.get(f"{REQUESTS}/{request}")).get("status")
    finally:
        await thief.close()
        await own.close()


async def test_nobody_asks_for_a_certificate_of_the_masters(hub: InProcess, name: str) -> None:
    agent = await joined(hub, name)
    first = await bootstrap(hub)
    wish = Wish(name, common_name="root", organizations=["system:masters"]).as_obj()
    wish["metadata"] = {"name": f"{name}-root", "labels": {CLUSTER_LABEL: name}}
    try:
        for api in (agent, first, hub.admin):
            answer = await api.call("POST", REQUESTS, wish)
            assert (answer.status, answer.obj()["reason"]) == (403, "Forbidden")
            assert answer.obj()["message"] == (
                "certificatesigningrequests.certificates.k8s.io "
                f'"{name}-root" is forbidden: use of kubernetes.io/kube-apiserver-client signer '
                "with system:masters group is not allowed"
            )
        assert (await hub.admin.call("GET", f"{REQUESTS}/{name}-root")).status == 404
    finally:
        await agent.close()
        await first.close()


async def test_a_flood_of_requests_is_cut_and_collected_and_concerns_nobody_else(
    hub: InProcess, name: str
) -> None:
    flooder = await bootstrap(hub)
    body = Wish(name, common_name=f"{PREFIX}{name}:a1", organizations=["nobody"]).as_obj()
    answers: Counter[int] = Counter()
    refusals: set[tuple[str, bytes]] = set()
    left = iter(range(FLOOD))
    neighbour = await token_of(hub, f"{name}-other")

    async def flood() -> None:
        for _ in left:
            answer = await flooder.call("POST", REQUESTS, body)
            answers[answer.status] += 1
            if answer.status == 429:
                refusals.add((answer.headers["retry-after"], answer.body))

    async def neighbours() -> None:
        agent = await certified(hub, neighbour, Wish(f"{name}-other"))
        assert (await agent.call("GET", f"{CLUSTERS}/{name}-other")).status == 200
        await (await certified(hub, agent, Wish(f"{name}-other"))).close()  # and it renews
        await agent.close()

    try:
        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(AT_ONCE):
                tasks.create_task(flood())
            tasks.create_task(neighbours())
        most = BOOTSTRAP.burst + BOOTSTRAP.a_second * (time.monotonic() - began) + 1
        assert set(answers) == {201, 429}
        assert answers.total() == FLOOD
        assert BOOTSTRAP.burst <= answers[201] <= most
        (retry_after, refused), *others = refusals
        assert (retry_after, others) == ("1", [])
        assert json.loads(refused) == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "too many requests, please try again later",
            "reason": "TooManyRequests",
            "details": {"retryAfterSeconds": 1},
            "code": 429,
        }
        await collected(hub, name)
    finally:
        await flooder.close()
        await neighbour.close()


async def collected(hub: InProcess, cluster: str) -> None:
    """Wait until the requests of a cluster are as few as are kept."""
    path = f"{REQUESTS}?labelSelector={CLUSTER_LABEL}%3D{cluster}"
    listed = await hub.admin.get(path)
    there = {item["metadata"]["name"] for item in listed["items"]}
    revision = listed["metadata"]["resourceVersion"]
    async with hub.admin.watch(f"{path}&watch=1&resourceVersion={revision}") as watch:
        while len(there) > KEPT:
            event = await watch.next()
            assert event["type"] == "DELETED"
            there.discard(event["object"]["metadata"]["name"])


# ------------------------------------------------------------------ agents among themselves


@dataclass(frozen=True, slots=True)
class Attempt:
    """One verb on one resource (``secrets``, ``managedclusters/status``) of another agent."""

    group: str
    resource: str
    verb: str
    path: str

    @property
    def needed(self) -> str:
        """What a refusal names."""
        return f'cannot {self.verb} resource "{self.resource}" in API group "{self.group}"'


async def attempts(hub: InProcess, victim: str, names: dict[str, str]) -> list[Attempt]:
    """Return every verb on every resource in discovery, in all ways that reach the victim."""
    groups = (await hub.admin.get("/apis"))["groups"]
    paths = [f"/apis/{each['groupVersion']}" for group in groups for each in group["versions"]]
    found: list[Attempt] = []
    for root in ("/api/v1", *paths):
        group = root.split("/")[2] if root.startswith("/apis/") else ""
        for resource in (await hub.admin.get(root))["resources"]:
            for verb in METHODS:
                ways = _ways(root, resource, verb, victim, names)
                found += [Attempt(group, resource["name"], verb, path) for path in ways]
    return found


def _ways(root: str, resource: Obj, verb: str, victim: str, names: dict[str, str]) -> Iterator[str]:
    plural, _, sub = resource["name"].partition("/")
    name = names.get(plural, victim)
    collection = f"{root}/namespaces/{victim}/{plural}" if resource["namespaced"] else ""
    collection = collection or f"{root}/{plural}"
    if sub:
        if verb in OF_ONE | {"create"}:
            yield f"{collection}/{name}/{sub}"
    elif verb in OF_ONE:
        yield f"{collection}/{name}"
    else:
        roots = {collection, f"{root}/{plural}"} if verb in ("list", "watch") else {collection}
        for path in sorted(roots):
            query = "watch=1&timeoutSeconds=1" if verb == "watch" else ""
            yield f"{path}?{query}"
            if verb != "create":
                yield f"{path}?{query}&fieldSelector=metadata.name%3D{name}"
                yield f"{path}?{query}&labelSelector={CLUSTER_LABEL}%3D{victim}"


async def occupied(hub: InProcess, cluster: str) -> dict[str, str]:
    """Give a cluster things of its own; return their names by resource."""
    data = {"data": {"key": SECRET}}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SECRET}}
    names: dict[str, str] = {"leases": "managed-cluster-lease"}
    for path, rest in (
        (WORKS.format(cluster), {"spec": {"workload": {"manifests": [manifest]}}}),
        (ADDONS.format(cluster), {"spec": {}}),
        (config_maps(cluster), data),
        (f"/api/v1/namespaces/{cluster}/secrets", {"stringData": {"key": SECRET}}),
        (f"/api/v1/namespaces/{cluster}/serviceaccounts", {}),
    ):
        made = named(f"{cluster}-x", **rest)
        made["metadata"]["annotations"] = {"note": SECRET}
        await hub.admin.create(path, made)
        names[path.rsplit("/", 1)[1]] = f"{cluster}-x"
    await hub.admin.patch(f"{CLUSTERS}/{cluster}", {"metadata": {"annotations": {"note": SECRET}}})
    return names


async def test_an_agent_gets_at_nothing_of_another_by_any_verb(hub: InProcess, name: str) -> None:
    """Reads, watches and writes of every kind there is, in its namespace and beyond."""
    victim = f"{name}-b"
    thief = await joined(hub, f"{name}-a")
    owner = await joined(hub, victim)
    user = f"{PREFIX}{name}-a:a1"
    try:
        names = await occupied(hub, victim)
        assert SECRET in (await owner.call("GET", WORKS.format(victim))).body.decode()
        tried = [
            each
            for each in await attempts(hub, victim, names)
            if (each.group, each.resource, each.verb) not in SHARED
        ]
        for each in tried:
            answer = await reach(thief, each)
            assert answer.status == 403, (each, answer.body)
            refused = answer.obj()
            assert refused["reason"] == "Forbidden"
            assert f'is forbidden: User "{user}" {each.needed}' in refused["message"], each
            assert SECRET not in answer.body.decode(), each
        kinds = {(each.group, each.resource) for each in tried}
        assert {each.verb for each in tried} == set(METHODS)
        assert {("", "secrets"), ("work.open-cluster-management.io", "manifestworks")} <= kinds
        assert len(kinds) >= 49, "all kinds and subresources"
    finally:
        await thief.close()
        await owner.close()


async def reach(api: Api, attempt: Attempt) -> Answer:
    method = METHODS[attempt.verb]
    body: Obj | None = None if method == "GET" else {}
    content_type = MERGE if method == "PATCH" else "application/json"
    return await api.call(method, attempt.path, body, content_type=content_type)


async def test_an_agent_asks_for_no_certificate_of_another(hub: InProcess, name: str) -> None:
    agent = await joined(hub, f"{name}-a")
    try:
        asked = await agent.create(REQUESTS, Wish(f"{name}-b").as_obj())
        await (await certified(hub, agent, Wish(f"{name}-a"))).close()  # a later one is approved
        path = f"{REQUESTS}/{asked['metadata']['name']}"
        assert not (await hub.admin.get(path)).get("status")
        for sub in ("approval", "status"):
            approved = {"status": {"conditions": [{"type": "Approved", "status": "True"}]}}
            answer = await agent.call("PATCH", f"{path}/{sub}", approved, content_type=MERGE)
            assert answer.status == 403
    finally:
        await agent.close()


@pytest.mark.parametrize(
    ("headers", "resource", "target"),
    [
        ((("impersonate-user", "{b}"),), "users", "{b}"),
        ((("impersonate-user", "{a}"), ("impersonate-group", "{g}")), "users", "{a}"),
        (
            (("impersonate-user", "admin"), ("impersonate-group", "system:masters")),
            "users",
            "admin",
        ),
    ],
)
async def test_an_agent_is_nobody_else(
    hub: InProcess, name: str, headers: tuple[tuple[str, str], ...], resource: str, target: str
) -> None:
    agent = await joined(hub, f"{name}-a")
    user, victim = f"{PREFIX}{name}-a:a1", f"{PREFIX}{name}-b:a1"
    known = {"a": user, "b": victim, "g": f"{PREFIX}{name}-b"}
    posing = agent.with_headers(*((header, value.format(**known)) for header, value in headers))
    try:
        for path in (f"{CLUSTERS}/{name}-a", WORKS.format(f"{name}-b"), "/api/v1/secrets"):
            answer = await posing.call("GET", path)
            assert answer.status == 403
            assert answer.obj()["message"] == (
                f'{resource} "{target.format(**known)}" is forbidden: User "{user}" cannot '
                f'impersonate resource "{resource}" in API group "" at the cluster scope'
            )
    finally:
        await agent.close()


async def test_a_token_of_another_hub_or_none_reaches_nothing(hub: InProcess, name: str) -> None:
    await (await joined(hub, name)).close()
    for token, status in (("made.up.token", 401), ("abcdef.0123456789abcdef", 401), ("", 403)):
        api = anonymous(hub, token=token)
        try:
            answer = await api.call("GET", WORKS.format(name))
            assert answer.status == status
        finally:
            await api.close()


# ------------------------------------------------------------------ names and sizes


@pytest.mark.parametrize(
    "reserved",
    [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
        "open-cluster-management",
        "open-cluster-management-agent",
        "open-cluster-management-agent-addon",
        "open-cluster-management-global-set",
        "open-cluster-management-hub",
    ],
)
async def test_no_cluster_is_named_like_a_system_namespace(hub: InProcess, reserved: str) -> None:
    why = "is reserved: the namespace of this name is the system's"
    first = await bootstrap(hub)
    try:
        for api in (hub.admin, first):
            answer = await api.call("POST", CLUSTERS, named(reserved))
            assert answer.status == 422
            assert answer.obj() == {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": 'ManagedCluster.cluster.open-cluster-management.io "'
                f'{reserved}" is invalid: metadata.name: Invalid value: "{reserved}": {why}',
                "reason": "Invalid",
                "details": {
                    "name": reserved,
                    "group": "cluster.open-cluster-management.io",
                    "kind": "ManagedCluster",
                    "causes": [
                        {
                            "reason": "FieldValueInvalid",
                            "message": f'Invalid value: "{reserved}": {why}',
                            "field": "metadata.name",
                        }
                    ],
                },
                "code": 422,
            }
    finally:
        await first.close()


async def test_a_cluster_may_be_named_nearly_so(hub: InProcess, name: str) -> None:
    for close in (f"kube-{name}", f"default-{name}", f"open-cluster-managements-{name}"):
        await hub.admin.create(CLUSTERS, named(close))


async def test_a_work_of_501_kibibytes_is_refused(hub: InProcess, name: str) -> None:
    await (await joined(hub, name)).close()
    manifest: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}}
    manifest["data"] = {"key": ""}
    rest = 501 * 1024 - len(json.dumps(manifest, separators=(",", ":")))
    manifest["data"]["key"] = "x" * rest
    body = named("w", spec={"workload": {"manifests": [manifest]}})
    answer = await hub.admin.call("POST", WORKS.format(name), body)
    assert answer.obj() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "spec.workload.manifests: 513024 bytes exceed the limit of 512000; split them "
        "over several ManifestWorks",
        "reason": "BadRequest",
        "code": 400,
    }
    assert answer.status == 400
    assert (await hub.admin.call("GET", f"{WORKS.format(name)}/w")).status == 404
