"""The audit log of a hub, as its operator reads it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from hub.meta import Obj
from hub.meta.timestamp import parse_time
from tests.hubs import Api, InProcess, running_hub
from tests.server.support import anonymous, config_maps, named, over_http1, token_for

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[InProcess]:
    place = tmp_path_factory.mktemp("hub")
    async with running_hub(place / "data", audit_log=str(place / "audit.log")) as found:
        yield found


def log_of(hub: InProcess) -> Path:
    return hub.data_dir.parent / "audit.log"


def events(hub: InProcess) -> list[Obj]:
    """The complete lines so far."""
    log = log_of(hub)
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    return [json.loads(line) for line in lines]


async def recorded(hub: InProcess, is_wanted: Callable[[Obj], bool], count: int = 1) -> list[Obj]:
    """Wait until the log has so many records; the writer is a thread of its own."""
    async with asyncio.timeout(10):
        while True:
            found = [event for event in events(hub) if is_wanted(event)]
            if len(found) >= count:
                return found
            await hub.admin.get("/version")


async def of_id(hub: InProcess, audit_id: str, count: int = 1) -> list[Obj]:
    return await recorded(hub, lambda event: event["auditID"] == audit_id, count)


def tagged(api: Api, audit_id: str) -> Api:
    return api.with_headers(("audit-id", audit_id))


async def test_a_request_leaves_one_record(hub: InProcess, ns: str, name: str) -> None:
    api = tagged(hub.admin, name).with_headers(("user-agent", "tester/1"))
    answer = await api.call("POST", config_maps(ns) + "?dryRun=All", named(name, data={"a": "b"}))
    assert answer.headers["audit-id"] == name
    (event,) = await of_id(hub, name)
    received, stage = (
        parse_time(event.pop(field)) for field in ("requestReceivedTimestamp", "stageTimestamp")
    )
    assert received <= stage
    user = event.pop("user")
    assert user["username"] == "admin"
    assert user["groups"] == ["system:masters", "system:authenticated"]
    assert event == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": name,
        "stage": "ResponseComplete",
        "requestURI": f"{config_maps(ns)}?dryRun=All",
        "verb": "create",
        "sourceIPs": ["127.0.0.1"],
        "userAgent": "tester/1",
        "objectRef": {
            "resource": "configmaps",
            "namespace": ns,
            "name": name,
            "apiVersion": "v1",
        },
        "responseStatus": {"metadata": {}, "code": 201},
        "annotations": {
            "authorization.k8s.io/decision": "allow",
            "authorization.k8s.io/reason": "",
        },
    }


async def test_every_request_has_an_id_even_without_asking(hub: InProcess, ns: str) -> None:
    answers = [await hub.admin.call("GET", config_maps(ns)) for _ in range(2)]
    ids = {answer.headers["audit-id"] for answer in answers}
    assert len(ids) == 2
    for each in ids:
        (event,) = await of_id(hub, each)
        assert event["verb"] == "list"


@pytest.mark.parametrize("http", ["1.1", "2"])
async def test_a_watch_leaves_a_record_at_its_start_and_its_end(
    hub: InProcess, ns: str, name: str, http: str
) -> None:
    base = over_http1(hub) if http == "1.1" else hub.admin
    try:
        api = tagged(base, name)
        async with api.watch(f"{config_maps(ns)}?watch=1&timeoutSeconds=100") as watch:
            await hub.admin.create(config_maps(ns), named(name))
            await watch.next()
            (started,) = await of_id(hub, name)
            assert (started["stage"], started["verb"]) == ("ResponseStarted", "watch")
        _, ended = await of_id(hub, name, 2)
        assert ended["stage"] == "ResponseComplete"
        assert ended["responseStatus"] == {"metadata": {}, "code": 200}
        assert ended["requestReceivedTimestamp"] == started["requestReceivedTimestamp"]
    finally:
        if http == "1.1":
            await base.close()


async def test_a_watch_that_is_refused_leaves_one(hub: InProcess, ns: str, name: str) -> None:
    api = tagged(hub.admin.acting_as("nobody"), name)
    assert (await api.call("GET", f"{config_maps(ns)}?watch=1")).status == 403
    (event,) = await of_id(hub, name)
    assert event["stage"] == "ResponseComplete"


async def test_a_refusal_says_why(hub: InProcess, ns: str, name: str) -> None:
    api = tagged(hub.admin.acting_as("bob", "g"), name)
    answer = await api.call("DELETE", f"{config_maps(ns)}/x")
    (event,) = await of_id(hub, name)
    assert event["user"]["username"] == "admin"
    assert event["impersonatedUser"] == {"username": "bob", "groups": ["g", "system:authenticated"]}
    assert event["objectRef"]["name"] == "x"
    assert event["annotations"]["authorization.k8s.io/decision"] == "forbid"
    wanted = {**answer.obj()}
    for field in ("kind", "apiVersion"):
        del wanted[field]
    assert event["responseStatus"] == wanted
    missing = f"{name}-missing"
    await tagged(hub.admin, missing).call("GET", f"{config_maps(ns)}/x")
    (event,) = await of_id(hub, missing)
    assert event["responseStatus"]["reason"] == "NotFound"


async def test_who_is_not_known_is_recorded_without_a_user(hub: InProcess, name: str) -> None:
    api = anonymous(hub, token="a.b.c")
    try:
        await tagged(api, name).call("GET", "/api/v1/namespaces")
    finally:
        await api.close()
    (event,) = await of_id(hub, name)
    assert event["user"] == {}
    assert event["responseStatus"] == {
        "metadata": {},
        "message": "Authentication failed, attempted: bearer",
        "code": 401,
    }
    assert (event["verb"], event["objectRef"]["resource"]) == ("list", "namespaces")
    assert "a.b.c" not in log_of(hub).read_text()


async def test_anonymous_and_paths_are_recorded_too(hub: InProcess, name: str) -> None:
    api = anonymous(hub)
    try:
        await tagged(api, name).call("GET", "/readyz?verbose")
    finally:
        await api.close()
    (event,) = await of_id(hub, name)
    assert event["user"] == {
        "username": "system:anonymous",
        "groups": ["system:unauthenticated"],
    }
    assert (event["verb"], event["requestURI"]) == ("get", "/readyz?verbose")
    assert "objectRef" not in event
    reason = event["annotations"]["authorization.k8s.io/reason"]
    assert "system:public-info-viewer" in reason


async def test_no_secret_is_in_the_log(hub: InProcess, ns: str, name: str) -> None:
    secret = named(name, stringData={"password": "correct horse"})
    await hub.admin.create(f"/api/v1/namespaces/{ns}/secrets", secret)
    token = await token_for(hub, ns, "robot")
    review = "/apis/authentication.k8s.io/v1/tokenreviews"
    await tagged(hub.admin, name).create(review, {"spec": {"token": token}})
    (event,) = await of_id(hub, name)
    assert event["objectRef"] == {
        "resource": "tokenreviews",
        "apiGroup": "authentication.k8s.io",
        "apiVersion": "v1",
    }
    text = log_of(hub).read_text()
    assert "correct horse" not in text
    assert "Y29ycmVjdCBob3JzZQ" not in text
    assert token.split(".")[2] not in text


async def test_proxies_are_listed_before_the_peer(hub: InProcess, name: str) -> None:
    headers = (("x-forwarded-for", "10.0.0.1, junk, 2001:db8::1"), ("x-real-ip", "10.0.0.2"))
    await tagged(hub.admin, name).with_headers(*headers).get("/api/v1/namespaces")
    (event,) = await of_id(hub, name)
    assert event["sourceIPs"] == ["10.0.0.1", "2001:db8::1", "10.0.0.2", "127.0.0.1"]


async def test_a_name_that_the_hub_has_made_up_is_recorded(
    hub: InProcess, ns: str, name: str
) -> None:
    body: Obj = {"metadata": {"generateName": "x-"}}
    made = await tagged(hub.admin, name).create(config_maps(ns), body)
    (event,) = await of_id(hub, name)
    assert event["objectRef"]["name"] == made["metadata"]["name"]


async def test_the_file_is_for_its_owner_and_may_be_moved_away(
    hub: InProcess, ns: str, name: str
) -> None:
    log = log_of(hub)
    assert log.stat().st_mode & 0o777 == 0o600
    log.rename(log.with_suffix(".1"))
    await tagged(hub.admin, name).get(config_maps(ns))
    await of_id(hub, name)
    assert f'"auditID":"{name}"' not in log.with_suffix(".1").read_text()


async def test_a_stop_writes_what_waits(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    async with running_hub(tmp_path / "data", audit_log=str(log)) as hub:
        watching = hub.admin.watch("/api/v1/namespaces?watch=1")
        watch = await watching.__aenter__()
        await watch.next()
        for _ in range(50):
            await hub.admin.get("/api/v1/namespaces")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert sum(line["verb"] == "list" for line in lines) == 50
    stages = [line["stage"] for line in lines if line["verb"] == "watch"]
    assert stages == ["ResponseStarted", "ResponseComplete"]


async def test_without_a_target_there_is_no_log(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        answer = await tagged(hub.admin, "mine").call("GET", "/api/v1/namespaces")
        assert answer.headers["audit-id"] == "mine"
        page = (await hub.admin.call("GET", "/metrics")).body.decode()
        assert "hublet_audit_records_total 0.0" in page


async def test_a_log_that_cannot_be_opened_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"nosuch/audit\.log"):
        async with running_hub(tmp_path / "data", audit_log=str(tmp_path / "nosuch" / "audit.log")):
            pass
