"""Certificate requests that are too many, and tokens past their time, over the wire."""

import datetime as dt

import pytest

from hub.auth.bootstrap_token import BootstrapToken
from hub.controllers.surplus import THRESHOLD
from tests.hubs import InProcess
from tests.server.agents import CLUSTER_LABEL, Wish
from tests.server.support import REQUESTS

pytestmark = pytest.mark.asyncio(loop_scope="module")
SECRETS = "/api/v1/namespaces/kube-system/secrets"


async def test_an_agent_never_sees_as_many_requests_as_would_stop_it(
    hub: InProcess, name: str
) -> None:
    path = f"{REQUESTS}?watch=1&labelSelector={CLUSTER_LABEL}%3D{name}"
    wish = Wish(name)
    async with hub.admin.watch(path) as watch:
        there: list[str] = []
        made, last = 0, ""
        while made < 25:
            last = (await hub.admin.create(REQUESTS, wish.as_obj()))["metadata"]["name"]
            made += 1
            while last not in there or len(there) > 6:
                event = await watch.next()
                found = event["object"]["metadata"]["name"]
                if event["type"] == "ADDED":
                    there.append(found)
                elif event["type"] == "DELETED":
                    there.remove(found)
                assert len(there) < THRESHOLD
        assert last in there


async def test_a_bootstrap_token_past_its_time_is_deleted(hub: InProcess) -> None:
    past = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=1)
    fresh = BootstrapToken("fresh0", "0123456789abcdef")
    stale = BootstrapToken("stale0", "0123456789abcdef")
    await hub.admin.create(SECRETS, fresh.as_secret(expiration=past + dt.timedelta(hours=1)))
    async with hub.admin.watch(f"{SECRETS}?watch=1") as watch:
        await hub.admin.create(SECRETS, stale.as_secret(expiration=past))
        while True:
            event = await watch.next()
            if event["type"] == "DELETED":
                assert event["object"]["metadata"]["name"] == "bootstrap-token-stale0"
                break
    await hub.admin.get(f"{SECRETS}/bootstrap-token-fresh0")
