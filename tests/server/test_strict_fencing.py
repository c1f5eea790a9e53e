"""Strict fencing: a hub that has not heard of its bucket for a while writes nothing for clients."""

import asyncio
import secrets
from pathlib import Path

import pytest

from hub.backup.pace import PacePolicy
from tests.hubs import Answer, Api, running_hub
from tests.seaweed import seaweed
from tests.server.support import config_maps

QUICK = PacePolicy(heartbeat_s=0.2, first_retry_s=0.1, last_retry_s=0.3)
MAPS = config_maps("default")
SAYS = "the object store has not answered for"


async def until(api: Api, status: int) -> Answer:
    """Write until the answer has a status."""
    async with asyncio.timeout(30):
        while True:
            body = {"metadata": {"name": f"m-{secrets.token_hex(8)}"}}
            answer = await api.call("POST", MAPS, body)
            if answer.status == status:
                return answer


async def goes_through_a_silence(api: Api) -> None:
    """Check what a hub does in it, once it is there."""
    refused = (await until(api, 503)).obj()
    assert refused["reason"] == "ServiceUnavailable"
    assert SAYS in refused["message"]
    for method, path in (("PATCH", f"{MAPS}/kept"), ("DELETE", f"{MAPS}/kept")):
        assert (await api.call(method, path, {})).status == 503
    assert (await api.get(f"{MAPS}/kept"))["metadata"]["name"] == "kept"
    async with api.watch(f"{MAPS}?watch=1") as watch:
        assert (await watch.next())["type"] == "ADDED"


async def test_a_bucket_that_is_away_stops_writes_and_not_reads(tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    async with running_hub(
        tmp_path / "data", object_store=bucket.as_uri(), pace=QUICK, strict_fencing=1
    ) as hub:
        await hub.admin.create(MAPS, {"metadata": {"name": "kept"}})
        bucket.rename(tmp_path / "away")
        bucket.write_text("a file where the directory was")
        await goes_through_a_silence(hub.admin)
        bucket.unlink()
        (tmp_path / "away").rename(bucket)
        await until(hub.admin, 201)


async def test_a_bucket_that_hangs_stops_writes_before_its_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The round that ships hangs for a minute; what is refused does not wait for its end."""
    with seaweed() as server:
        for name, value in server.environ.items():
            monkeypatch.setenv(name, value)
        url = f"{server.url('hubs/strict')}&timeout=60&attempts=1"
        async with running_hub(
            tmp_path / "data", object_store=url, pace=QUICK, strict_fencing=1
        ) as hub:
            await hub.admin.create(MAPS, {"metadata": {"name": "kept"}})
            server.freeze()
            try:
                await goes_through_a_silence(hub.admin)
            finally:
                server.thaw()
            await until(hub.admin, 201)


async def test_without_it_a_hub_writes_on(tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    async with running_hub(tmp_path / "data", object_store=bucket.as_uri(), pace=QUICK) as hub:
        bucket.rename(tmp_path / "away")
        bucket.write_text("a file where the directory was")
        failures = 0.0
        async with asyncio.timeout(20):
            while failures < 5:
                await until(hub.admin, 201)
                failures = await failed(hub.admin)
        bucket.unlink()
        (tmp_path / "away").rename(bucket)


async def failed(api: Api) -> float:
    """How many rounds of shipping have failed."""
    lines = (await api.call("GET", "/metrics")).body.decode().splitlines()
    found = [each for each in lines if each.startswith("hublet_backup_failures_total{")]
    return sum(float(each.rsplit(" ", 1)[1]) for each in found)
