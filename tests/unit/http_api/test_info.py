"""What a request line means: a table after k8s.io/apiserver's requestinfo."""

import pytest

from hub.http.info import parse_request
from hub.meta.errors import ApiError


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        # verb, group, version, namespace, resource, subresource, name
        ("GET", "/api/v1/namespaces", ("list", "", "v1", "", "namespaces", "", "")),
        ("GET", "/api/v1/namespaces/a", ("get", "", "v1", "a", "namespaces", "", "a")),
        (
            "PUT",
            "/api/v1/namespaces/a/status",
            ("update", "", "v1", "a", "namespaces", "status", "a"),
        ),
        (
            "PUT",
            "/api/v1/namespaces/a/finalize",
            ("update", "", "v1", "a", "namespaces", "finalize", "a"),
        ),
        ("GET", "/api/v1/namespaces/a/pods", ("list", "", "v1", "a", "pods", "", "")),
        ("GET", "/api/v1/namespaces/a/pods/", ("list", "", "v1", "a", "pods", "", "")),
        ("HEAD", "/api/v1/namespaces/a/pods/p", ("get", "", "v1", "a", "pods", "", "p")),
        ("POST", "/api/v1/namespaces/a/pods", ("create", "", "v1", "a", "pods", "", "")),
        ("DELETE", "/api/v1/namespaces/a/pods/p", ("delete", "", "v1", "a", "pods", "", "p")),
        (
            "DELETE",
            "/api/v1/namespaces/a/pods",
            ("deletecollection", "", "v1", "a", "pods", "", ""),
        ),
        (
            "PATCH",
            "/api/v1/namespaces/a/pods/p/status",
            ("patch", "", "v1", "a", "pods", "status", "p"),
        ),
        ("GET", "/apis/g.io/v1/things/t", ("get", "g.io", "v1", "", "things", "", "t")),
        ("GET", "/apis/g.io/v1/things?watch=1", ("watch", "g.io", "v1", "", "things", "", "")),
        ("GET", "/apis/g.io/v1/things?watch", ("watch", "g.io", "v1", "", "things", "", "")),
        ("GET", "/apis/g.io/v1/things?watch=false", ("list", "g.io", "v1", "", "things", "", "")),
        ("GET", "/apis/g.io/v1/things/t?watch=1", ("get", "g.io", "v1", "", "things", "", "t")),
        ("GET", "/apis/g.io/v1/watch/things", ("watch", "g.io", "v1", "", "things", "", "")),
        ("GET", "/apis/g.io/v1/watch/things/t", ("watch", "g.io", "v1", "", "things", "", "t")),
        (
            "GET",
            "/api/v1/watch/namespaces/a/pods/p",
            ("watch", "", "v1", "a", "pods", "", "p"),
        ),
        ("GET", "/api/v1/watch/namespaces/a", ("watch", "", "v1", "a", "namespaces", "", "a")),
        ("POST", "/api/v1/watch/pods", ("create", "", "v1", "", "watch", "", "pods")),
        ("GET", "/apis/g.io/v1/things/a%3Ab", ("get", "g.io", "v1", "", "things", "", "a:b")),
        ("GET", "/apis/g.io/v1/things/a%2Fb", ("get", "g.io", "v1", "", "things", "b", "a")),
    ],
)
def test_a_resource_path_is_taken_apart(
    method: str, target: str, expected: tuple[str, ...]
) -> None:
    info = parse_request(method, target)
    assert info.is_resource
    found = (info.verb, info.group, info.version, info.namespace, info.resource)
    assert (*found, info.subresource, info.name) == expected


@pytest.mark.parametrize(
    "target", ["/", "/api", "/api/v1", "/apis", "/apis/g.io", "/apis/g.io/v1", "/version", "//x"]
)
def test_anything_else_is_no_resource(target: str) -> None:
    info = parse_request("GET", target)
    assert not info.is_resource
    assert info.attributes().path == target
    assert info.attributes().verb == "get"


@pytest.mark.parametrize("target", ["*", "", "https://hub/api", "api/v1"])
def test_a_target_that_is_no_path_is_400(target: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_request("GET", target)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("/api/v1/pods?fieldSelector=metadata.name%3Dp", "p"),
        ("/api/v1/pods?watch=1&fieldSelector=metadata.name%3D%3Dp", "p"),
        ("/api/v1/pods?fieldSelector=metadata.name!%3Dp", ""),
        ("/api/v1/pods?fieldSelector=metadata.namespace%3Dp", ""),
        ("/api/v1/pods?fieldSelector=nonsense", ""),
        ("/api/v1/pods?fieldSelector=metadata.name%3Da&fieldSelector=metadata.name%3Db", "a"),
        ("/api/v1/pods/q?fieldSelector=metadata.name%3Dp", "q"),
        ("/api/v1/watch/pods/q?fieldSelector=metadata.name%3Dp", "q"),
    ],
)
def test_what_is_authorised_is_the_name_that_is_served(target: str, name: str) -> None:
    assert parse_request("GET", target).attributes().name == name


def test_of_a_repeated_parameter_the_first_counts_everywhere() -> None:
    info = parse_request("GET", "/api/v1/pods?limit=1&limit=2&labelSelector=a%3Db&x=")
    assert info.query == {"limit": "1", "labelSelector": "a=b", "x": ""}
