"""Who is who, and who may: authentication, RBAC, reviews, tokens."""

import datetime as dt
import json

import jwt
import pytest

from hub.meta import Obj
from hub.meta.protobuf import encode_envelope
from tests.hubs import Api, InProcess
from tests.server.support import (
    CLUSTERS,
    PROTOBUF,
    RBAC,
    anonymous,
    config_maps,
    named,
    token_for,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
SELF_REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
SELF_ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


async def grant(hub: InProcess, name: str, subject: Obj, *rules: Obj) -> None:
    await hub.admin.create(f"{RBAC}/clusterroles", named(name, rules=list(rules)))
    body = named(name, roleRef={"kind": "ClusterRole", "name": name}, subjects=[subject])
    await hub.admin.create(f"{RBAC}/clusterrolebindings", body)


def account(ns: str, name: str) -> Obj:
    return {"kind": "ServiceAccount", "namespace": ns, "name": name}


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/version/"])
async def test_anyone_may_ask_whether_the_hub_is_well(hub: InProcess, path: str) -> None:
    api = anonymous(hub)
    try:
        answer = await api.call("GET", path)
        assert answer.status == 200
        if path.startswith("/version"):
            assert answer.obj()["major"] == "1"
        else:
            assert answer.body == b"ok"
    finally:
        await api.close()


async def test_checks_are_named_when_asked(hub: InProcess) -> None:
    found = await hub.admin.call("GET", "/readyz?verbose")
    assert found.body.startswith(b"[+]ping ok\n[+]serving ok\n")
    assert found.body.endswith(b" ok\nreadyz check passed\n")
    without = await hub.admin.call("GET", "/readyz?verbose&exclude=serving")
    assert without.body == found.body.replace(b"[+]serving ok\n", b"")
    assert (await hub.admin.call("GET", "/readyz/nosuch")).status == 404


async def test_anonymous_may_do_nothing_else(hub: InProcess, ns: str) -> None:
    api = anonymous(hub)
    try:
        answer = await api.call("GET", config_maps(ns))
        assert answer.status == 403
        assert answer.obj() == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": (
                'configmaps is forbidden: User "system:anonymous" cannot list resource '
                f'"configmaps" in API group "" in the namespace "{ns}"'
            ),
            "reason": "Forbidden",
            "details": {"kind": "configmaps"},
            "code": 403,
        }
        path = await api.call("GET", "/metrics")
        assert path.obj()["message"] == (
            'forbidden: User "system:anonymous" cannot get path "/metrics"'
        )
    finally:
        await api.close()


@pytest.mark.parametrize(
    "token", ["nonsense", "a.b.c", "abcdef.0123456789abcdef", "eyJhbGciOiJub25lIn0.e30."]
)
async def test_a_token_that_proves_nothing_is_401(hub: InProcess, token: str) -> None:
    api = anonymous(hub, token=token)
    try:
        answer = await api.call("GET", "/version")
        assert answer.status == 401
        assert answer.obj() == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Unauthorized",
            "reason": "Unauthorized",
            "code": 401,
        }
    finally:
        await api.close()


@pytest.mark.parametrize(
    ("method", "path", "text"),
    [
        (
            "GET",
            f"{CLUSTERS}/c1",
            (
                'managedclusters.cluster.open-cluster-management.io "c1" is forbidden: User '
                '"{user}" cannot get resource "managedclusters" in API group '
                '"cluster.open-cluster-management.io" at the cluster scope'
            ),
        ),
        (
            "PUT",
            f"{CLUSTERS}/c1/status",
            (
                'managedclusters.cluster.open-cluster-management.io "c1" is forbidden: User '
                '"{user}" cannot update resource "managedclusters/status" in API group '
                '"cluster.open-cluster-management.io" at the cluster scope'
            ),
        ),
        (
            "GET",
            f"{CLUSTERS}?watch=1&fieldSelector=metadata.name%3Dc1",
            (
                'managedclusters.cluster.open-cluster-management.io "c1" is forbidden: User '
                '"{user}" cannot watch resource "managedclusters" in API group '
                '"cluster.open-cluster-management.io" at the cluster scope'
            ),
        ),
        (
            "POST",
            "/api/v1/namespaces/default/secrets",
            (
                'secrets is forbidden: User "{user}" cannot create resource "secrets" in API group '
                '"" in the namespace "default"'
            ),
        ),
    ],
)
async def test_a_refusal_says_who_may_not_do_what(
    hub: InProcess, ns: str, method: str, path: str, text: str
) -> None:
    api = anonymous(hub, token=await token_for(hub, ns, "robot"))
    try:
        answer = await api.call(method, path, {} if method != "GET" else None)
        assert answer.status == 403
        user = f"system:serviceaccount:{ns}:robot"
        assert answer.obj()["message"] == text.format(user=user)
    finally:
        await api.close()


async def test_a_right_on_one_name_allows_lists_and_watches_that_name_it(
    hub: InProcess, ns: str
) -> None:
    own, other = f"{ns}-own", f"{ns}-other"
    for name in (own, other):
        await hub.admin.create(CLUSTERS, named(name))
    rule = {
        "apiGroups": ["cluster.open-cluster-management.io"],
        "resources": ["managedclusters"],
        "resourceNames": [own],
        "verbs": ["get", "list", "watch"],
    }
    await grant(hub, ns, account(ns, "robot"), rule)
    api = anonymous(hub, token=await token_for(hub, ns, "robot"))
    try:
        listed = await api.get(f"{CLUSTERS}?fieldSelector=metadata.name%3D{own}")
        assert [item["metadata"]["name"] for item in listed["items"]] == [own]
        for path in (
            CLUSTERS,
            f"{CLUSTERS}?fieldSelector=metadata.name%3D{other}",
            f"{CLUSTERS}?fieldSelector=metadata.name!%3D{other}",
            f"{CLUSTERS}?fieldSelector=metadata.name%3D{other}&fieldSelector=metadata.name%3D{own}",
            f"{CLUSTERS}/{other}",
            f"{CLUSTERS}?watch=1",
        ):
            assert (await api.call("GET", path)).status == 403, path
        watched = CLUSTERS.replace("/v1/", "/v1/watch/") + f"/{own}"
        for path in (f"{CLUSTERS}?watch=1&fieldSelector=metadata.name%3D{own}", watched):
            async with api.watch(path) as watch:
                assert (await watch.next())["object"]["metadata"]["name"] == own
                await hub.admin.patch(
                    f"{CLUSTERS}/{other}", {"metadata": {"labels": {"x": path[-3:]}}}
                )
                mark = {"metadata": {"labels": {"mark": f"m{len(path)}"}}}
                await hub.admin.patch(f"{CLUSTERS}/{own}", mark)
                while True:
                    event = await watch.next()
                    assert event["object"]["metadata"]["name"] == own
                    if event["object"]["metadata"]["labels"].get("mark") == f"m{len(path)}":
                        break
        twice = f"fieldSelector=metadata.name%3D{own},metadata.name%3D{other}"
        assert (await api.call("GET", f"{CLUSTERS}?{twice}")).status == 403
    finally:
        await api.close()


async def test_acting_as_another_is_a_right_of_its_own(hub: InProcess, ns: str) -> None:
    token = await token_for(hub, ns, "robot")
    rule = {
        "apiGroups": [""],
        "resources": ["users", "groups"],
        "resourceNames": ["ann", "people"],
        "verbs": ["impersonate"],
    }
    await grant(hub, ns, account(ns, "robot"), rule)
    api = anonymous(hub, token=token)

    async def who(**named: str) -> tuple[int, Obj]:
        headers = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
        headers += [(f"impersonate-{k.replace('_', '-')}", v) for k, v in named.items()]
        answer = await api._client.request("POST", SELF_REVIEW, headers, body=b"{}", timeout_s=20)
        found = json.loads(answer.body)
        assert isinstance(found, dict)
        return answer.status, found

    try:
        status, found = await who(user="ann", group="people")
        assert status == 201
        assert found["status"]["userInfo"] == {
            "username": "ann",
            "groups": ["people", "system:authenticated"],
        }
        for named, resource in (
            ({"user": "bob"}, "users"),
            ({"user": "ann", "group": "system:masters"}, "groups"),
            ({"user": "ann", "uid": "7"}, "uids"),
            ({"user": f"system:serviceaccount:{ns}:other"}, "serviceaccounts"),
            ({"user": "ann", "extra_scopes": "x"}, "userextras/scopes"),
        ):
            status, found = await who(**named)
            assert (status, found["reason"]) == (403, "Forbidden"), named
            assert f'cannot impersonate resource "{resource}"' in found["message"]
        assert (await who(group="people"))[0] == 400
    finally:
        await api.close()


async def test_rights_follow_their_objects_at_once(hub: InProcess, ns: str) -> None:
    api = anonymous(hub, token=await token_for(hub, ns, "robot"))
    path = config_maps(ns)
    try:
        assert (await api.call("GET", path)).status == 403
        rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
        await grant(hub, ns, account(ns, "robot"), rule)
        assert (await api.call("GET", path)).status == 200
        await hub.admin.call("DELETE", f"{RBAC}/clusterrolebindings/{ns}")
        assert (await api.call("GET", path)).status == 403
    finally:
        await api.close()


async def test_a_token_says_who_it_is_for_and_dies_with_its_account(
    hub: InProcess, ns: str
) -> None:
    token = await token_for(hub, ns, "robot")
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["sub"] == f"system:serviceaccount:{ns}:robot"
    assert claims["exp"] - claims["iat"] == 600
    keys = (await hub.admin.get("/openid/v1/jwks"))["keys"]
    header = jwt.get_unverified_header(token)
    (key,) = (k for k in keys if k["kid"] == header["kid"])
    public = jwt.PyJWK(key)
    jwt.decode(token, public, algorithms=[header["alg"]], audience=claims["aud"])
    about = await hub.admin.get("/.well-known/openid-configuration")
    assert about["issuer"] == claims["iss"]
    api = anonymous(hub, token=token)
    try:
        who = (await api.create(SELF_REVIEW, {}))["status"]["userInfo"]
        assert who["username"] == f"system:serviceaccount:{ns}:robot"
        assert set(who["groups"]) == {
            "system:serviceaccounts",
            f"system:serviceaccounts:{ns}",
            "system:authenticated",
        }
        await hub.admin.call("DELETE", f"/api/v1/namespaces/{ns}/serviceaccounts/robot")
        assert (await api.call("POST", SELF_REVIEW, {})).status == 401
    finally:
        await api.close()


async def test_a_token_request_is_checked(hub: InProcess, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}/serviceaccounts"
    await hub.admin.create(path, named("robot"))
    for spec, status in (
        ({"expirationSeconds": 599}, 422),
        ({"expirationSeconds": 0}, 422),
        ({"expirationSeconds": None}, 201),
        ({"expirationSeconds": "x"}, 400),
        ({"audiences": "x"}, 400),
        ({"boundObjectRef": "x"}, 400),
    ):
        answer = await hub.admin.call("POST", f"{path}/robot/token", {"spec": spec})
        assert answer.status == status, answer.body
    assert (await hub.admin.call("POST", f"{path}/nobody/token", {})).status == 404
    body = encode_envelope(
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600, "audiences": []},
        }
    )
    made = await hub.admin.call("POST", f"{path}/robot/token", body, content_type=PROTOBUF)
    found = made.obj()
    assert (made.status, found["kind"]) == (201, "TokenRequest")
    account = await hub.admin.get(f"{path}/robot")
    assert found["metadata"]["uid"] == account["metadata"]["uid"]
    expiry = dt.datetime.fromisoformat(found["status"]["expirationTimestamp"])
    created = dt.datetime.fromisoformat(found["metadata"]["creationTimestamp"])
    assert (expiry - created).total_seconds() == 3600


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (
            {"spec": {"expirationSeconds": 599}},
            422,
            (
                'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid'
                " value: 599: may not specify a duration less than 10 minutes"
            ),
        ),
        (
            {"metadata": {"name": "x"}},
            422,
            (
                'TokenRequest.authentication.k8s.io "robot" is invalid: metadata.name: Invalid'
                ' value: "x": must match the service account name if specified'
            ),
        ),
        (
            {"metadata": {"namespace": "x"}},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        ({"spec": {"boundObjectRef": {"kind": "Pod", "name": "x"}}}, 404, 'pods "x" not found'),
        ({"spec": {"boundObjectRef": {"kind": "Node", "name": "x"}}}, 404, 'nodes "x" not found'),
        (
            {"spec": {"boundObjectRef": {"kind": "Secret", "name": "x"}}},
            404,
            'secrets "x" not found',
        ),
        (
            {"spec": {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}}},
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        ({"spec": {"boundObjectRef": {}}}, 400, "cannot bind token to object of type /, Kind="),
        (
            {"spec": {"boundObjectRef": {"kind": "Secret", "name": "s", "uid": "abc"}}},
            409,
            (
                'Operation cannot be fulfilled on Secret "s": the UID in the bound object'
                " reference (abc) does not match the UID in record. The object might have been"
                " deleted and then recreated"
            ),
        ),
    ],
)
async def test_a_token_request_is_refused_with_the_words_of_a_real_server(
    hub: InProcess, ns: str, body: Obj, status: int, message: str
) -> None:
    await hub.admin.create(f"/api/v1/namespaces/{ns}/secrets", named("s"))
    path = f"/api/v1/namespaces/{ns}/serviceaccounts"
    await hub.admin.create(path, named("robot"))
    refused = await hub.admin.call("POST", f"{path}/robot/token", body)
    assert (refused.status, refused.obj()["message"]) == (status, message)


async def test_a_token_bound_to_a_secret_dies_with_it(hub: InProcess, ns: str) -> None:
    secrets, accounts = (f"/api/v1/namespaces/{ns}/{p}" for p in ("secrets", "serviceaccounts"))
    secret = await hub.admin.create(secrets, named("s"))
    await hub.admin.create(accounts, named("robot"))
    ref = {"kind": "Secret", "apiVersion": "v1", "name": "s"}
    made = await hub.admin.create(f"{accounts}/robot/token", {"spec": {"boundObjectRef": ref}})
    assert made["spec"]["boundObjectRef"] == ref
    token = made["status"]["token"]
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["kubernetes.io"]["secret"] == {"name": "s", "uid": secret["metadata"]["uid"]}
    api = anonymous(hub, token=token)
    try:
        await api.create(SELF_REVIEW, {})
        await hub.admin.call("DELETE", f"{secrets}/s")
        await hub.admin.create(secrets, named("s"))  # another one of the same name is no substitute
        assert (await api.call("POST", SELF_REVIEW, {})).status == 401
    finally:
        await api.close()


async def test_reviews_take_protobuf(hub: InProcess) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    made = await hub.admin.call("POST", SELF_REVIEW, encode_envelope(review), content_type=PROTOBUF)
    assert (made.status, made.obj()["kind"]) == (201, "SelfSubjectReview")
    assert "system:masters" in made.obj()["status"]["userInfo"]["groups"]
    asked = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "secrets", "name": "x"}},
    }
    made = await hub.admin.call("POST", SELF_ACCESS, encode_envelope(asked), content_type=PROTOBUF)
    found = made.obj()
    assert found["status"]["allowed"] is True
    assert found["spec"]["resourceAttributes"] == asked["spec"]["resourceAttributes"]  # type: ignore[index]  # a literal above


async def ask(api: Api, path: str, spec: Obj) -> Obj:
    status = (await api.create(path, {"spec": spec}))["status"]
    assert isinstance(status, dict)
    return status


async def test_access_reviews_answer_as_requests_would_be(hub: InProcess, ns: str) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    await grant(hub, ns, {"kind": "Group", "name": f"{ns}-people"}, rule)
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    listing = {"verb": "list", "resource": "configmaps", "namespace": ns}
    member = {"user": "ann", "groups": [f"{ns}-people"], "resourceAttributes": listing}
    assert (await ask(hub.admin, path, member))["allowed"] is True
    other = {"user": "ann", "resourceAttributes": listing}
    assert (await ask(hub.admin, path, other))["allowed"] is False
    plain = {"user": "ann", "nonResourceAttributes": {"verb": "get", "path": "/metrics"}}
    assert (await ask(hub.admin, path, plain))["allowed"] is False
    for spec in ({}, {"resourceAttributes": listing}, {**member, **plain}, {"user": "a"}):
        answer = await hub.admin.call("POST", path, {"spec": spec})
        assert answer.status in (400, 422), (spec, answer.body)
    rules = await hub.admin.create(
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": ns}}
    )
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in (
        rules["status"]["resourceRules"]
    )


async def test_a_bootstrap_token_names_its_groups(hub: InProcess) -> None:
    secret = {
        "metadata": {"name": "bootstrap-token-abcdef"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": "abcdef",
            "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:managedcluster",
        },
    }
    await hub.admin.create("/api/v1/namespaces/kube-system/secrets", secret)
    api = anonymous(hub, token="abcdef.0123456789abcdef")
    try:
        who = (await api.create(SELF_REVIEW, {}))["status"]["userInfo"]
        assert who["username"] == "system:bootstrap:abcdef"
        assert "system:bootstrappers:managedcluster" in who["groups"]
    finally:
        await api.close()
        await hub.admin.call(
            "DELETE", "/api/v1/namespaces/kube-system/secrets/bootstrap-token-abcdef"
        )


async def test_the_body_of_a_review_must_be_one(hub: InProcess) -> None:
    answer = await hub.admin.call("POST", SELF_REVIEW, json.dumps({"kind": "Secret"}).encode())
    assert answer.status == 400
