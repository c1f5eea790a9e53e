"""What bounds a request: its timeout, how many there may be, and a hub that is not ready."""

import asyncio
from pathlib import Path

import pytest

from hub.backup.runner import Backup
from hub.http import app
from hub.store import MapFull, Store
from hub.store.job import CommitJob
from tests.hubs import InProcess, running_hub
from tests.server.support import anonymous, config_maps, named, token_for

pytestmark = pytest.mark.asyncio(loop_scope="module")
FUTURE = "resourceVersion=999999999"
LATE = "Timeout: request did not complete within requested timeout - context deadline exceeded"


@pytest.mark.parametrize("asked", ["50ms", "0.05s", "0m0.05s"])
async def test_a_request_that_takes_longer_than_its_timeout_is_504(
    hub: InProcess, ns: str, asked: str
) -> None:
    answer = await hub.admin.call("GET", f"{config_maps(ns)}?{FUTURE}&timeout={asked}")
    assert (answer.status, answer.obj()) == (
        504,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": LATE,
            "reason": "Timeout",
            "details": {},
            "code": 504,
        },
    )


async def test_a_write_that_times_out_may_be_done_yet(
    hub: InProcess, ns: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, is_free = Store.commit, asyncio.Event()

    async def slow(self: Store, *writes: object, **rest: object) -> object:
        await asyncio.shield(is_free.wait())
        return await commit(self, *writes, **rest)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(Store, "commit", slow)
    path = f"{config_maps(ns)}?timeout=50ms"
    answer = await hub.admin.call("POST", path, named(name))
    assert (answer.status, answer.obj()["reason"]) == (504, "Timeout")
    monkeypatch.undo()
    is_free.set()
    assert (await hub.admin.call("POST", config_maps(ns), named(name))).status in (201, 409)


@pytest.mark.parametrize("asked", ["32s", "1m", "10h", "0", "-5s", ""])
async def test_a_timeout_that_is_long_or_none_changes_nothing(
    hub: InProcess, ns: str, asked: str
) -> None:
    answer = await hub.admin.call("GET", f"{config_maps(ns)}?timeout={asked}")
    assert answer.status == 200


@pytest.mark.parametrize("asked", ["5", "s", "1d", "1s2", "x", "1" * 100 + "s"])
async def test_a_timeout_that_is_no_duration_is_400(hub: InProcess, ns: str, asked: str) -> None:
    answer = await hub.admin.call("GET", f"{config_maps(ns)}?timeout={asked}")
    assert (answer.status, answer.obj()["reason"]) == (400, "BadRequest")
    assert answer.obj()["message"] == (
        f'invalid timeout specified in the request URL - time: invalid duration "{asked[:64]}"'
    )


async def test_a_timeout_is_read_where_nothing_takes_long(hub: InProcess) -> None:
    answer = await hub.admin.call("GET", "/version?timeout=invalid")
    assert answer.status == 400
    assert "invalid timeout specified in the request URL" in answer.obj()["message"]
    assert (await hub.admin.call("GET", "/version?timeout=3m")).status == 200


async def test_a_watch_takes_no_timeout(hub: InProcess, ns: str) -> None:
    async with hub.admin.watch(f"{config_maps(ns)}?watch=1&timeout=1ms") as watch:
        await asyncio.sleep(0.05)
        await hub.admin.create(config_maps(ns), named("late"))
        names = set()
        while "late" not in names:
            names.add((await watch.next())["object"]["metadata"]["name"])


async def test_more_requests_than_the_hub_takes_are_429_and_told_when_to_come_again(
    hub: InProcess, ns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await token_for(hub, ns, "robot")
    api = anonymous(hub, token=token)
    monkeypatch.setattr(app, "MAX_UNDER_WAY", 1)
    waiting = asyncio.ensure_future(hub.admin.call("GET", f"{config_maps(ns)}?{FUTURE}&timeout=1s"))
    review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    try:
        for _ in range(200):
            answer = await api.call("POST", review, {})
            if answer.status == 429:
                break
        found = answer.obj()
        assert (answer.status, found["reason"]) == (429, "TooManyRequests")
        assert answer.headers["retry-after"] == "1"
        assert found["details"] == {"retryAfterSeconds": 1}
        assert (await api.call("GET", "/version")).status == 200
        assert (await hub.admin.call("GET", config_maps(ns))).status == 200
        waiting.cancel()
        await asyncio.wait([waiting])
        monkeypatch.undo()
        assert (await api.call("POST", review, {})).status == 201
    finally:
        waiting.cancel()
        await api.close()


async def test_readiness_has_named_checks(hub: InProcess) -> None:
    answer = await hub.admin.call("GET", "/readyz?verbose")
    assert answer.body.decode().splitlines() == [
        "[+]ping ok",
        "[+]serving ok",
        "[+]backup ok",
        "[+]store ok",
        "[+]controllers ok",
        "readyz check passed",
    ]
    for name in ("ping", "serving", "backup", "store", "controllers"):
        one = await hub.admin.call("GET", f"/readyz/{name}")
        assert (one.status, one.body) == (200, b"ok")
    assert (await hub.admin.call("GET", "/readyz/etcd")).status == 404


async def test_a_hub_that_must_not_answer_says_503_and_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons = [""]
    monkeypatch.setattr(Backup, "refusal", lambda _self: reasons[0])
    async with running_hub(tmp_path / "data") as hub:
        reasons[0] = "another hub has the prefix"
        refused = await hub.admin.call("GET", config_maps("default"))
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert refused.obj()["reason"] == "ServiceUnavailable"
        ready = await hub.admin.call("GET", "/readyz")
        assert ready.status == 500
        assert "[-]backup failed: another hub has the prefix" in ready.body.decode()
        assert (await hub.admin.call("GET", "/livez")).status == 200
        reasons[0] = ""
        assert (await hub.admin.call("GET", "/readyz")).body == b"ok"


async def test_a_store_that_takes_no_writes_is_not_ready(
    hub: InProcess, ns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: CommitJob, _ledger: object) -> None:
        raise MapFull("nothing was written")

    monkeypatch.setattr(CommitJob, "apply", refuse)
    refused = await hub.admin.call("POST", config_maps(ns), named("a"))
    assert (refused.status, refused.headers["retry-after"]) == (507, "5")
    ready = await hub.admin.call("GET", "/readyz/store")
    assert ready.status == 500
    assert b"[-]store failed: nothing was written" in ready.body
    assert (await hub.admin.call("GET", "/readyz?exclude=store")).status == 200
    assert (await hub.admin.call("GET", config_maps(ns))).status == 200
    monkeypatch.undo()
    await hub.admin.create(config_maps(ns), named("a"))
    assert (await hub.admin.call("GET", "/readyz/store")).status == 200
