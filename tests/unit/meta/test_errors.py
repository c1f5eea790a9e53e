"""Status objects word for word as a kube-apiserver 1.36 answered real clients."""

import pytest

from hub.meta import Obj, errors
from hub.meta.causes import duplicate, forbidden_field, invalid_value, not_supported, required
from hub.meta.codec.json import encode
from hub.meta.errors import ApiError, Resource

CONFIG_MAPS = Resource("", "configmaps")
WORKS = Resource("work.open-cluster-management.io", "manifestworks")
CLUSTERS = Resource("cluster.open-cluster-management.io", "managedclusters")

RECORDED = [
    (
        errors.not_found(CONFIG_MAPS, "applied"),
        (
            rb'"message":"configmaps \"applied\" not found","reason":"NotFound",'
            b'"details":{"name":"applied","kind":"configmaps"},"code":404}'
        ),
    ),
    (
        errors.not_found(CLUSTERS, "mc1"),
        (
            rb'"message":"managedclusters.cluster.open-cluster-management.io \"mc1\" not found",'
            b'"reason":"NotFound","details":{"name":"mc1",'
            b'"group":"cluster.open-cluster-management.io","kind":"managedclusters"},"code":404}'
        ),
    ),
    (
        errors.forbidden(Resource("", "secrets"), "", 'User "u" cannot list resource "secrets"'),
        (
            rb'"message":"secrets is forbidden: User \"u\" cannot list resource \"secrets\"",'
            b'"reason":"Forbidden","details":{"kind":"secrets"},"code":403}'
        ),
    ),
    (
        errors.forbidden(CLUSTERS, "c", "no"),
        (
            b'"message":"managedclusters.cluster.open-cluster-management.io'
            rb' \"c\" is forbidden: no","reason":"Forbidden","details":{"name":"c",'
            b'"group":"cluster.open-cluster-management.io","kind":"managedclusters"},"code":403}'
        ),
    ),
    (
        errors.already_exists(CONFIG_MAPS, "a"),
        (
            rb'"message":"configmaps \"a\" already exists","reason":"AlreadyExists",'
            b'"details":{"name":"a","kind":"configmaps"},"code":409}'
        ),
    ),
    (
        errors.conflict(WORKS, "web"),
        (
            b'"message":"Operation cannot be fulfilled on'
            rb" manifestworks.work.open-cluster-management.io \"web\": the object has been"
            b" modified; please apply your changes to the latest version and try again"
            b'","reason":"Conflict","details":{"name":"web",'
            b'"group":"work.open-cluster-management.io","kind":"manifestworks"},"code":409}'
        ),
    ),
    (
        errors.unsupported_media_type(["application/json-patch+json", "application/json"]),
        (
            b'"message":"the body of the request was in an unknown format - accepted media types'
            b' include: application/json-patch+json, application/json",'
            b'"reason":"UnsupportedMediaType","code":415}'
        ),
    ),
    (
        errors.invalid(
            "demo.example.com",
            "Widget",
            "w2",
            [not_supported("spec.color", "pink", ["red", "green", "blue"])],
        ),
        (
            rb'"message":"Widget.demo.example.com \"w2\" is invalid: spec.color: Unsupported value:'
            rb' \"pink\": supported values: \"red\", \"green\", \"blue\"","reason":"Invalid",'
            b'"details":{"name":"w2","group":"demo.example.com","kind":"Widget","causes":['
            rb'{"reason":"FieldValueNotSupported","message":"Unsupported value: \"pink\": supported'
            rb' values: \"red\", \"green\", \"blue\"","field":"spec.color"}]},"code":422}'
        ),
    ),
    (
        errors.resource_version_too_large(99999999, 842),
        (
            b'"message":"Timeout: Too large resource version: 99999999, current: 842",'
            b'"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge",'
            b'"message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}'
        ),
    ),
]


@pytest.mark.parametrize(("error", "tail"), RECORDED, ids=lambda v: getattr(v, "reason", ""))
def test_a_status_reads_as_kube_apiserver_writes_it(error: ApiError, tail: bytes) -> None:
    head = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    assert encode(error.status()) == head + tail
    assert str(error) == error.message


def test_an_expired_list_brings_a_token_to_go_on_with() -> None:
    assert errors.expired("too old", continue_token="t").status()["metadata"] == {"continue": "t"}


def test_several_causes_stand_in_brackets() -> None:
    causes = [required("a", "why"), forbidden_field("b", "no"), duplicate("c[1]", "x")]
    error = errors.invalid("", "Thing", "t", causes)
    assert error.message == (
        'Thing "t" is invalid: [a: Required value: why, b: Forbidden: no,'
        ' c[1]: Duplicate value: "x"]'
    )


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (errors.bad_request("m"), 400, "BadRequest"),
        (errors.unauthorized(), 401, "Unauthorized"),
        (errors.path_not_found(), 404, "NotFound"),
        (errors.method_not_allowed(CLUSTERS, "patch"), 405, "MethodNotAllowed"),
        (errors.not_acceptable(["a", "b"]), 406, "NotAcceptable"),
        (errors.expired("m"), 410, "Expired"),
        (errors.too_large("m"), 413, "RequestEntityTooLarge"),
        (errors.internal_error("m"), 500, "InternalError"),
        (errors.unavailable("m"), 503, "ServiceUnavailable"),
        (errors.storage_full("m"), 507, "InsufficientStorage"),
    ],
)
def test_every_reason_has_its_code(error: ApiError, code: int, reason: str) -> None:
    status = error.status()
    assert (status["code"], status["reason"]) == (code, reason)


def test_a_bad_value_is_shown_as_json() -> None:
    shown: list[tuple[object, str]] = [
        ("é", '"é"'),
        (1, "1"),
        ([], "[]"),
        ({"a": None}, '{"a":null}'),
    ]
    for value, text in shown:
        assert invalid_value("f", value, "d").message == f"Invalid value: {text}: d"


def test_an_error_without_a_reason_writes_none() -> None:
    status: Obj = ApiError(code=418, reason="", message="m").status()
    assert "reason" not in status
