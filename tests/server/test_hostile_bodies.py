"""Bodies that are no object, too large or too deep: the exact answer, and the hub goes on."""

import asyncio
import contextlib
import re

import pytest

from hub.meta import Obj
from hub.meta.codec.json import decode
from hub.meta.protobuf.wire import bytes_field
from tests.hubs import MERGE, Answer, InProcess
from tests.server.support import (
    CLUSTERS,
    PROTOBUF,
    anonymous,
    config_maps,
    dial,
    named,
    over_http1,
)
from tests.server.widgets import DEFINITIONS

pytestmark = pytest.mark.asyncio(loop_scope="module")
JSON, YAML, JSON_PATCH = "application/json", "application/yaml", "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
DEEP = 100_000
BAD_JSON = "couldn't get version/kind; json parse error: "
NO_PROTOBUF = "provided data does not appear to be a protobuf message"
BAD_YAML = "error converting YAML to JSON: yaml: "
TEN_MIB = b'{"data":{"x":"%b"}}' % (b"y" * (10 << 20))
TOO_LARGE: Obj = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "Request entity too large: limit is 3145728",
    "reason": "RequestEntityTooLarge",
    "code": 413,
}


def check_is_400(answer: Answer, message: str) -> None:
    assert (answer.status, answer.headers["content-type"]) == (400, JSON)
    assert answer.obj() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "BadRequest",
        "code": 400,
    }


# ---------------------------------------------------------------- no object


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        (b"not json", JSON, f"{BAD_JSON}JSON is malformed: invalid character (byte 4)"),
        (b"", JSON, f"{BAD_JSON}Input data was truncated"),
        (b'{"kind":', JSON, f"{BAD_JSON}Input data was truncated"),
        (b"{} {}", JSON, f"{BAD_JSON}JSON is malformed: trailing characters (byte 4)"),
        (b"\x00\x01\xff", JSON, f"{BAD_JSON}JSON is malformed: invalid character (byte 0)"),
        (b'"text"', JSON, f"{BAD_JSON}the body must be an object, not string"),
        (b"null", JSON, f"{BAD_JSON}the body must be an object, not null"),
        (b"just text", YAML, f"{BAD_YAML}the body must be an object, not string"),
        (b"a: b: c", YAML, f"{BAD_YAML}line 1: mapping values are not allowed in this context"),
        (
            b'{"kind":"ConfigMap"}',
            PROTOBUF,
            f"{NO_PROTOBUF}, expected prefix [107 56 115 0]",
        ),
        (
            b"k8s\x00\xff\xff",
            PROTOBUF,
            "unable to decode the protobuf body: unexpected end of data at byte 4",
        ),
    ],
)
async def test_a_body_that_is_no_object_is_400(
    hub: InProcess, ns: str, body: bytes, content_type: str, message: str
) -> None:
    answer = await hub.admin.call("POST", config_maps(ns), body, content_type=content_type)
    check_is_400(answer, message)


# ---------------------------------------------------------------- too deep


def nested_schemas(depth: int) -> bytes:
    """Return a definition as protobuf, its schema `depth` times the `not` of another."""
    schema = b""
    for _ in range(depth):
        schema = bytes_field(28, schema)
    version = bytes_field(1, b"v1") + bytes_field(4, bytes_field(1, schema))
    types = bytes_field(1, b"apiextensions.k8s.io/v1") + bytes_field(2, b"CustomResourceDefinition")
    return (
        b"k8s\x00" + bytes_field(1, types) + bytes_field(2, bytes_field(2, bytes_field(7, version)))
    )


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        (b"[" * DEEP, JSON, f"{BAD_JSON}exceeded max depth"),
        (b'{"a":' * DEEP + b"1" + b"}" * DEEP, JSON, f"{BAD_JSON}exceeded max depth"),
        (b'{"data":' * 251 + b"1" + b"}" * 251, JSON, f"{BAD_JSON}exceeded max depth"),
        (b"{a: " * 300 + b"1" + b"}" * 300, YAML, f"{BAD_YAML}line 1: exceeded max depth"),
        (b"[" * DEEP, YAML, f"{BAD_YAML}line 1: exceeded maximum nesting depth"),
        (b"- " * DEEP, YAML, f"{BAD_YAML}line 1: exceeded max depth"),
        (
            b"".join(b" " * n + b"a:\n" for n in range(1500)),
            YAML,
            f"{BAD_YAML}line 251: exceeded max depth",
        ),
    ],
)
async def test_a_body_that_is_too_deep_is_400(
    hub: InProcess, ns: str, body: bytes, content_type: str, message: str
) -> None:
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    for path in (config_maps(ns), CLUSTERS, review):
        answer = await hub.admin.call("POST", path, body, content_type=content_type)
        check_is_400(answer, message)


@pytest.mark.parametrize("depth", [100, DEEP])
async def test_a_definition_whose_schemas_nest_too_deep_in_protobuf_is_400(
    hub: InProcess, depth: int
) -> None:
    body = nested_schemas(depth)
    answer = await hub.admin.call("POST", DEFINITIONS, body, content_type=PROTOBUF)
    assert (answer.status, answer.obj()["reason"]) == (400, "BadRequest")
    assert re.fullmatch(
        r"unable to decode the protobuf body: more than 100 messages deep at byte \d+ in "
        r"spec\.versions\.schema\.openAPIV3Schema(\.not)+",
        answer.obj()["message"],
    )


@pytest.mark.parametrize("content_type", [MERGE, STRATEGIC, JSON_PATCH])
async def test_a_patch_that_is_too_deep_is_400_and_changes_nothing(
    hub: InProcess, ns: str, content_type: str
) -> None:
    made = await hub.admin.create(config_maps(ns), named("a"))
    deep = b'{"a":' * DEEP + b"1" + b"}" * DEEP
    body = b'[{"op":"add","path":"/data","value":%b}]' % deep
    path = f"{config_maps(ns)}/a"
    answer = await hub.admin.call(
        "PATCH", path, body if content_type == JSON_PATCH else deep, content_type=content_type
    )
    assert (answer.status, answer.obj()["reason"]) == (400, "BadRequest")
    assert answer.obj()["message"].endswith("exceeded max depth")
    assert (await hub.admin.get(path))["metadata"] == made["metadata"]


async def test_options_that_are_too_deep_are_400_and_delete_nothing(
    hub: InProcess, ns: str
) -> None:
    await hub.admin.create(config_maps(ns), named("a"))
    for path in (config_maps(ns), f"{config_maps(ns)}/a"):
        answer = await hub.admin.call("DELETE", path, b'{"preconditions":' * DEEP)
        assert (answer.status, answer.obj()["reason"]) == (400, "BadRequest")
    await hub.admin.get(f"{config_maps(ns)}/a")


async def test_what_is_as_deep_as_it_may_be_is_stored_and_comes_back(
    hub: InProcess, name: str
) -> None:
    manifest: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    deepest: Obj = {}
    for _ in range(240):
        deepest = {"a": deepest}
    manifest["extra"] = deepest
    path = f"/apis/work.open-cluster-management.io/v1/namespaces/{name}/manifestworks"
    await hub.admin.create("/api/v1/namespaces", named(name))
    work = named("deep", spec={"workload": {"manifests": [manifest]}})
    assert (await hub.admin.create(path, work))["spec"] == work["spec"]
    found = (await hub.admin.get(path))["items"][0]
    assert found["spec"] == work["spec"]
    patched = await hub.admin.patch(f"{path}/deep", {"metadata": {"labels": {"x": "y"}}})
    assert patched["spec"] == work["spec"]


# ---------------------------------------------------------------- too large


async def test_a_body_of_ten_mebibytes_is_413_and_its_http2_connection_goes_on(
    hub: InProcess, ns: str
) -> None:
    before = await connections(hub)
    for _ in range(3):
        answer = await hub.admin.call("POST", config_maps(ns), TEN_MIB)
        assert (answer.status, answer.obj()) == (413, TOO_LARGE)
        await hub.admin.get(config_maps(ns))
    assert await connections(hub) == before


async def connections(hub: InProcess) -> str:
    page = (await hub.admin.call("GET", "/metrics")).body.decode()
    found = re.search(r"^hublet_connections_total (.*)$", page, re.MULTILINE)
    assert found is not None
    return found[1]


async def test_a_body_of_ten_mebibytes_is_413_over_http1_however_it_is_framed(
    hub: InProcess, ns: str
) -> None:
    """A client that sends first and reads later still reads the answer, and then the end."""
    head = f"POST {config_maps(ns)} HTTP/1.1\r\nhost: x\r\ncontent-type: {JSON}\r\n"
    whole = f"{head}content-length: {len(TEN_MIB)}\r\n\r\n".encode() + TEN_MIB
    pieces = [TEN_MIB[at : at + 65_536] for at in range(0, len(TEN_MIB), 65_536)]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    chunked = f"{head}transfer-encoding: chunked\r\n\r\n".encode() + chunks + b"0\r\n\r\n"
    for data in (whole, chunked):
        answer = await asyncio.to_thread(ask_as_admin, hub, data)
        first, _, body = answer.partition(b"\r\n\r\n")
        lines = first.decode().split("\r\n")
        assert lines[0] == "HTTP/1.1 413 Request Entity Too Large"
        assert "connection: close" in lines
        assert f"content-length: {len(body)}" in lines
        assert decode(body) == TOO_LARGE
    api = over_http1(hub)
    try:
        assert (await api.call("GET", config_maps(ns))).status == 200
    finally:
        await api.close()


def ask_as_admin(hub: InProcess, data: bytes) -> bytes:
    """Send all of `data` over HTTP/1.1, as far as the hub takes it, then read to the end."""
    with dial(hub) as sock:
        with contextlib.suppress(OSError):  # it has said its last word, which can still be read
            sock.sendall(data)
        answer = b""
        while piece := sock.recv(65_536):
            answer += piece
        return answer


async def test_a_client_that_waits_for_100_continue_need_not_send_what_is_too_large(
    hub: InProcess, ns: str
) -> None:
    data = (
        f"POST {config_maps(ns)} HTTP/1.1\r\nhost: x\r\ncontent-type: {JSON}\r\n"
        f"content-length: {len(TEN_MIB)}\r\nexpect: 100-continue\r\n\r\n"
    ).encode()
    answer = await asyncio.to_thread(ask_as_admin, hub, data)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert decode(answer.partition(b"\r\n\r\n")[2]) == TOO_LARGE


async def test_who_is_not_known_is_told_so_first(hub: InProcess, ns: str) -> None:
    for api, code in ((anonymous(hub), 403), (anonymous(hub, token="no.such.token"), 401)):
        try:
            answer = await api.call("POST", config_maps(ns), TEN_MIB)
            assert answer.status == code
        finally:
            await api.close()


@pytest.mark.parametrize("size", [(3 << 20) + 1, 3 << 20])
async def test_the_limit_is_three_mebibytes_exactly(hub: InProcess, ns: str, size: int) -> None:
    frame = b'{"metadata":{"name":"a"},"x":"%b"}'
    body = frame % (b"y" * (size - len(frame) + 2))
    assert len(body) == size
    answer = await hub.admin.call("POST", config_maps(ns), body)
    if size > 3 << 20:
        assert (answer.status, answer.obj()) == (413, TOO_LARGE)
    else:
        assert answer.status == 201


# ---------------------------------------------------------------- a bad credential


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_bad_token_is_401(hub: InProcess, ns: str, method: str) -> None:
    nobody = anonymous(hub, token="eyJhbGciOiJSUzI1NiJ9.e30.bm8")
    try:
        body = named("a") if method == "POST" else None
        answer = await nobody.call(method, config_maps(ns), body)
    finally:
        await nobody.close()
    assert (answer.status, answer.headers["www-authenticate"]) == (401, 'Bearer realm="hublet"')
    assert answer.obj() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }
