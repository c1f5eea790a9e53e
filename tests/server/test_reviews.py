"""The reviews that ask about rights and tokens, and what anonymous may not ask.

The texts are those of a real kube-apiserver for the same requests.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hub.meta import Obj
from hub.meta.protobuf import encode_envelope
from tests.hubs import Answer, Api, InProcess
from tests.server.support import PROTOBUF, RBAC, anonymous, named, token_for

pytestmark = pytest.mark.asyncio(loop_scope="module")
ACCESS = "/apis/authorization.k8s.io/v1"
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


async def review(
    api: Api, kind: str, spec: Obj, *, namespace: str = "", meta: Obj | None = None
) -> Answer:
    where = f"/namespaces/{namespace}" if namespace else ""
    body = {"kind": kind, "apiVersion": "authorization.k8s.io/v1", "spec": spec}
    if meta is not None:
        body["metadata"] = meta
    return await api.call("POST", f"{ACCESS}{where}/{kind.lower()}s", body)


ANY = "SubjectAccessReview"
OWN = "SelfSubjectAccessReview"
LOCAL = "LocalSubjectAccessReview"
NEITHER = (
    "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or "
    "resourceAttributes must be specified"
)
NOBODY = 'spec.user: Invalid value: "": at least one of user or group must be specified'
GET = {"verb": "get", "resource": "pods"}
PATH = {"path": "/", "verb": "get"}


@pytest.mark.parametrize(
    ("kind", "spec", "meta", "text"),
    [
        (ANY, {}, None, f"[{NEITHER}, {NOBODY}]"),
        (OWN, {}, None, NEITHER),
        (ANY, {"resourceAttributes": GET}, None, NOBODY),
        (
            ANY,
            {"user": "a", "resourceAttributes": GET, "nonResourceAttributes": PATH},
            None,
            (
                'spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: cannot be '
                "specified in combination with resourceAttributes"
            ),
        ),
        (
            OWN,
            {"resourceAttributes": GET},
            {"name": "x"},
            'metadata: Invalid value: {"name":"x"}: must be empty',
        ),
        (
            ANY,
            {"user": "a", "resourceAttributes": {**GET, "fieldSelector": {}}},
            None,
            (
                "spec.resourceAttributes.fieldSelector.requirements: Required value: when "
                "spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector "
                "is required"
            ),
        ),
    ],
)
async def test_a_review_that_asks_nothing_is_422(
    hub: InProcess, kind: str, spec: Obj, meta: Obj | None, text: str
) -> None:
    answer = await review(hub.admin, kind, spec, meta=meta)
    assert answer.status == 422, answer.body
    assert answer.obj()["message"] == f'.authorization.k8s.io "" is invalid: {text}'


async def test_a_local_review_asks_within_its_namespace(hub: InProcess, ns: str) -> None:
    asked = {"user": "bob", "resourceAttributes": {**GET, "namespace": ns}}
    answer = await review(hub.admin, LOCAL, asked, namespace=ns)
    assert answer.status == 201
    assert answer.obj()["metadata"] == {"namespace": ns}
    assert answer.obj()["status"] == {"allowed": False}
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    await hub.admin.create(f"{RBAC}/namespaces/{ns}/roles", named("r", rules=[pods]))
    bound = named(
        "b", roleRef={"kind": "Role", "name": "r"}, subjects=[{"kind": "User", "name": "bob"}]
    )
    await hub.admin.create(f"{RBAC}/namespaces/{ns}/rolebindings", bound)
    body = {"kind": LOCAL, "apiVersion": "authorization.k8s.io/v1", "spec": asked}
    path = f"{ACCESS}/namespaces/{ns}/localsubjectaccessreviews"
    allowed = await hub.admin.call("POST", path, encode_envelope(body), content_type=PROTOBUF)
    assert allowed.obj()["status"] == {
        "allowed": True,
        "reason": f'RBAC: allowed by RoleBinding "b/{ns}" of Role "r" to User "bob"',
    }
    for spec, text in (
        (
            {"user": "bob", "resourceAttributes": {**GET, "namespace": "default"}},
            (
                'spec.resourceAttributes.namespace: Invalid value: "default": must match '
                "metadata.namespace"
            ),
        ),
        (
            {"user": "bob", "nonResourceAttributes": PATH},
            (
                'spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: disallowed '
                "on this kind of request"
            ),
        ),
    ):
        answer = await review(hub.admin, LOCAL, spec, namespace=ns)
        assert answer.status == 422, answer.body
        assert answer.obj()["message"] == f'.authorization.k8s.io "" is invalid: {text}'
    assert (await review(hub.admin, LOCAL, asked)).status == 404
    elsewhere = await review(hub.admin, LOCAL, asked, namespace=ns, meta={"namespace": "default"})
    assert elsewhere.status == 400


async def test_rules_are_reviewed_in_a_namespace(hub: InProcess) -> None:
    answer = await review(hub.admin, "SelfSubjectRulesReview", {})
    assert (answer.status, answer.obj()["message"]) == (400, "no namespace on request")
    answer = await review(hub.admin, "SelfSubjectRulesReview", {"namespace": "default"})
    assert (answer.status, answer.obj()["spec"]) == (201, {}), "the API server empties it, too"
    assert answer.obj()["status"]["resourceRules"]


@pytest_asyncio.fixture(loop_scope="module")
async def token(hub: InProcess, ns: str) -> AsyncIterator[str]:
    yield await token_for(hub, ns, "robot")


async def review_token(hub: InProcess, spec: Obj) -> Obj:
    made = await hub.admin.create(TOKEN_REVIEWS, {"spec": spec})
    assert made["spec"] == spec
    status = made["status"]
    assert isinstance(status, dict)
    return status


async def test_a_token_review_says_whose_token_it_is(hub: InProcess, ns: str, token: str) -> None:
    found = await review_token(hub, {"token": token})
    account = await hub.admin.get(f"/api/v1/namespaces/{ns}/serviceaccounts/robot")
    extra = found["user"].pop("extra")
    assert list(extra) == ["authentication.kubernetes.io/credential-id"]
    assert found["user"] == {
        "username": f"system:serviceaccount:{ns}:robot",
        "uid": account["metadata"]["uid"],
        "groups": [
            "system:serviceaccounts",
            f"system:serviceaccounts:{ns}",
            "system:authenticated",
        ],
    }
    assert found["authenticated"] is True
    (issuer,) = found["audiences"]
    assert await review_token(hub, {"token": token, "audiences": ["foo"]}) == {
        "user": {},
        "error": (
            f'[invalid bearer token, token audiences ["{issuer}"] is invalid for the target '
            'audiences ["foo"]]'
        ),
    }
    again = await review_token(hub, {"token": token, "audiences": ["foo", issuer]})
    assert again["audiences"] == [issuer]
    await hub.admin.call("DELETE", f"/api/v1/namespaces/{ns}/serviceaccounts/robot")
    assert (await review_token(hub, {"token": token}))["user"] == {}


@pytest.mark.parametrize("junk", ["x", "a.b.c", "abcdef.0123456789abcdef", "e30.e30."])
async def test_a_token_review_of_junk_says_no_more_than_that(hub: InProcess, junk: str) -> None:
    assert await review_token(hub, {"token": junk}) == {"user": {}, "error": "invalid bearer token"}


async def test_a_token_review_needs_a_token_and_a_right(hub: InProcess, token: str) -> None:
    empty = await hub.admin.call("POST", TOKEN_REVIEWS, {"spec": {}})
    assert (empty.status, empty.obj()["message"]) == (
        400,
        "token is required for TokenReview in authentication",
    )
    api = anonymous(hub, token=token)
    try:
        assert (await api.call("POST", TOKEN_REVIEWS, {"spec": {"token": token}})).status == 403
    finally:
        await api.close()


async def test_anonymous_may_not_discover(hub: InProcess) -> None:
    api = anonymous(hub)
    try:
        for path in ("/api", "/apis", "/api/v1", "/openapi/v3", "/openid/v1/jwks", "/"):
            assert (await api.call("GET", path)).status == 403, path
    finally:
        await api.close()
