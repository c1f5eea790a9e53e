"""A fleet whose hub is restored to an older state: nothing is destroyed for what it lacks."""

import asyncio
import contextlib
import random
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from hub.backup.pace import PacePolicy
from hub.clock import SystemClock
from hub.http.client import Poller
from hub.meta import Obj
from snapshot.head import decode_head
from snapshot.layout import HEAD
from snapshot.remote import open_remote
from tests.hubs import Api, InProcess, running_hub
from tests.server.agents import BOOTSTRAP_USER, joined, work
from tests.server.support import CLUSTERS, cluster_access
from tools.kubeconfig import read_kubeconfig
from tools.restore import cli
from tools.simulate.context import Context
from tools.simulate.fleet import Fleet, Plan
from tools.simulate.honesty import OMITTED
from tools.simulate.identity import IdentityStore
from tools.simulate.progress import Progress
from tools.simulate.session import Route
from tools.simulate.tally import Tally

QUICK = PacePolicy(heartbeat_s=0.2, first_retry_s=0.1, last_retry_s=0.3)
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/managed-cluster-lease"
AGENTS = "/hublet/v1/agents"


@dataclass(slots=True)
class Simulated:
    """Three clusters with two works and an add-on each, all in order."""

    tally: Tally
    identities: IdentityStore

    def agent(self, hub: InProcess, cluster: str) -> Api:
        """The identity of a cluster's agent."""
        identity = self.identities.find(cluster)
        assert identity is not None
        server, ca = cluster_access(hub)
        cert, key = identity.cert_pem.encode(), identity.key_pem.encode()
        return Api.connect(server, ca=ca, cert=cert, key=key)


@dataclass(frozen=True, slots=True)
class Place:
    """Where hubs of one identity live, one after the other."""

    root: Path
    port: int

    def hub(
        self, name: str, bucket: str, *, restore_grace: float = 300.0
    ) -> contextlib.AbstractAsyncContextManager[InProcess]:
        return running_hub(
            self.root / name,
            port=self.port,
            object_store=(self.root / bucket).as_uri(),
            key_file=self.root / "hub.key",
            auto_approve_users=(BOOTSTRAP_USER,),
            pace=QUICK,
            restore_grace=restore_grace,
        )

    def restore(self, bucket: str, name: str) -> None:
        flags = ["--from", (self.root / bucket).as_uri()]
        flags += ["--key-file", str(self.root / "hub.key"), "--into", str(self.root / name)]
        done = CliRunner().invoke(cli, ["restore", *flags])
        assert done.exit_code == 0, done.output


@pytest.fixture
def place(tmp_path: Path, free_port: int) -> Place:
    return Place(tmp_path, free_port)


@contextlib.asynccontextmanager
async def a_fleet(hub: InProcess) -> AsyncIterator[Simulated]:
    """Agents that outlive the hub they joined."""
    admin, poller, stop = read_kubeconfig(hub.kubeconfig), Poller(), asyncio.Event()
    context = Context(
        route=Route(admin.host, admin.port, poller),
        ca_pem=admin.ca_pem,
        tally=Tally(),
        rng=random.Random(7),
        clock=SystemClock(),
        identities=IdentityStore(None),
        authority=admin.cert_pem,
    )
    plan = Plan(
        clusters=3,
        works=2,
        addons=1,
        duration_s=300.0,
        join_timeout_s=60.0,
        concurrency=3,
        name_prefix="sim-",
        speed=30.0,
    )
    fleet = Fleet(plan, context, admin, stop=stop, progress=Progress(lambda _: None))
    run = asyncio.ensure_future(fleet.run())
    try:
        await until(lambda: context.tally.before_steady is not None or run.done())
        yield Simulated(context.tally, context.identities)
    finally:
        stop.set()
        await run
        poller.close()


async def until(is_so: Callable[[], bool]) -> None:
    for _ in range(1200):
        if is_so():
            return
        await asyncio.sleep(0.05)
    pytest.fail("it never became so")


async def metric(api: Api, name: str) -> float:
    answer = await api.call("GET", "/metrics")
    lines = [line.rpartition(" ") for line in answer.body.decode().splitlines()]
    return next(float(value) for key, _, value in lines if key == name)


async def until_metric(api: Api, name: str, wanted: float) -> None:
    async with asyncio.timeout(60):
        while await metric(api, name) != wanted:
            pass


def works(cluster: str) -> str:
    return f"/apis/work.open-cluster-management.io/v1/namespaces/{cluster}/manifestworks"


async def names(hub: InProcess, cluster: str) -> list[str]:
    return [each["metadata"]["name"] for each in (await hub.admin.get(works(cluster)))["items"]]


async def until_applied(hub: InProcess, cluster: str, name: str) -> None:
    async with asyncio.timeout(30):
        while True:
            found = await hub.admin.get(f"{works(cluster)}/{name}")
            conditions = (found.get("status") or {}).get("conditions") or []
            generation = found["metadata"]["generation"]
            if any(
                (c["type"], c["status"], c.get("observedGeneration"))
                == ("Available", "True", generation)
                for c in conditions
            ):
                return


async def go_on(hub: InProcess) -> None:
    """Do what an older snapshot will not know: create, change and delete."""
    admin = hub.admin
    addons = "/apis/addon.open-cluster-management.io/v1alpha1/namespaces/{}/managedclusteraddons"
    await admin.create(works("sim-0000"), work("late"))
    await until_applied(hub, "sim-0000", "late")
    first = (await names(hub, "sim-0001"))[0]
    assert (await admin.call("DELETE", f"{works('sim-0001')}/{first}")).status == 200
    changed = (await names(hub, "sim-0002"))[0]
    manifests = [*work("x")["spec"]["workload"]["manifests"]]
    await admin.patch(
        f"{works('sim-0002')}/{changed}", {"spec": {"workload": {"manifests": manifests}}}
    )
    await until_applied(hub, "sim-0002", changed)
    await admin.create(addons.format("sim-0001"), {"metadata": {"name": "late"}, "spec": {}})
    deleted = (await admin.get(addons.format("sim-0002")))["items"][0]["metadata"]["name"]
    await admin.call("DELETE", f"{addons.format('sim-0002')}/{deleted}")
    async with asyncio.timeout(30):
        while first in await names(hub, "sim-0001"):
            pass


async def test_no_agent_starts_an_eviction_for_what_an_older_snapshot_lacks(place: Place) -> None:
    async with contextlib.AsyncExitStack() as hubs:
        hub = await hubs.enter_async_context(place.hub("one", "bucket"))
        async with a_fleet(hub) as fleet:
            tally = fleet.tally
            assert tally.protocol_error_samples == []
            await until_metric(hub.admin, "hublet_backup_lag_revisions", 0)
            shutil.copytree(place.root / "bucket", place.root / "old")
            await go_on(hub)
            late = await joined(hub, "late-cluster")
            asked = tally.csrs_created
            await hubs.aclose()
            shutil.rmtree(place.root / "one")
            place.restore("old", "two")
            async with place.hub("two", "old") as hub:
                assert hub.start_kind == "restored"
                assert "late" not in await names(hub, "sim-0000")
                await check_held(hub, fleet, late)
            async with place.hub("two", "old") as hub:
                assert hub.start_kind == "continue"
                await until_metric(hub.admin, "hublet_restore_clusters_ahead", 3)
                assert tally.evictions_begun == 0
                assert OMITTED not in tally.errors
            async with place.hub("two", "old", restore_grace=0.0) as hub:
                await until(lambda: tally.evictions_begun == 1)
                await hub.admin.create(works("sim-0000"), work("late"))
                await until(lambda: tally.evictions_ended == 1)
                await until_applied(hub, "sim-0000", "late")
            assert tally.csrs_created == asked
            assert tally.evicted == 0
            await late.close()


async def check_held(hub: InProcess, fleet: Simulated, late: Api) -> None:
    """The fleet comes back; who is ahead waits, and what is one-sided is told."""
    tally, admin = fleet.tally, hub.admin
    await until_metric(admin, "hublet_restore_clusters_reacquired", 3)
    assert await metric(admin, "hublet_restore_clusters_expected") == 3
    assert await metric(admin, 'hublet_restore_seconds{percent="100"}') > 0
    assert await metric(admin, "hublet_restore_held") == 0
    await until_metric(admin, "hublet_restore_clusters_ahead", 3)
    assert tally.unavailable["503"] > 0
    assert tally.evictions_begun == 0
    agent = fleet.agent(hub, "sim-0000")
    again = await agent.call("GET", works("sim-0000"))
    assert again.status == 503
    assert again.headers["retry-after"] == "10"
    status: Obj = {"status": {"conditions": []}}
    path = f"{works('sim-0000')}/late/status"
    merge = "application/merge-patch+json"
    assert (await agent.call("PATCH", path, status, content_type=merge)).status == 404
    await agent.close()
    assert (await late.call("GET", LEASES.format("late-cluster"))).status == 403
    assert await metric(admin, "hublet_restore_unknown_clusters") == 1
    assert await metric(admin, "hublet_restore_unknown_objects") == 1
    unknown = (await admin.get(f"{AGENTS}/"))["unknown"]
    assert [(each["name"], each["agent"]) for each in unknown] == [("late-cluster", "a1")]
    seen = await admin.get(f"{AGENTS}/sim-0000")
    assert (seen["isAhead"], seen["isHeld"]) == (True, True)
    assert [each["name"] for each in seen["unknownObjects"]] == ["manifestworks sim-0000/late"]
    assert (await admin.call("GET", f"{CLUSTERS}/late-cluster")).status == 404
    await until_told(hub, "AgentsAhead")


async def until_told(hub: InProcess, reason: str) -> None:
    """Watch until an Event about the Hub has this reason."""
    path = "/api/v1/namespaces/default/events?watch=1&fieldSelector=involvedObject.kind=Hub"
    async with hub.admin.watch(path) as watch, asyncio.timeout(30):
        while (await watch.next())["object"]["reason"] != reason:
            pass


async def test_a_restore_that_lost_nothing_keeps_nobody_waiting(place: Place) -> None:
    async with contextlib.AsyncExitStack() as hubs:
        hub = await hubs.enter_async_context(place.hub("one", "bucket"))
        async with a_fleet(hub) as fleet:
            await until_metric(hub.admin, "hublet_backup_lag_revisions", 0)
            shutil.copytree(place.root / "bucket", place.root / "new")
            await hubs.aclose()
            place.restore("new", "two")
            async with place.hub("two", "new") as hub:
                await until_metric(hub.admin, "hublet_restore_clusters_reacquired", 3)
                await until(lambda: len(fleet.tally.outages_s) == 3)
                assert await metric(hub.admin, "hublet_restore_clusters_ahead") == 0
            assert "503" not in fleet.tally.unavailable
            assert fleet.tally.evictions_begun == 0
            assert fleet.tally.protocol_error_samples == []


async def test_bookmarks_carry_no_revision_that_a_restore_would_not_bring_back(
    place: Place,
) -> None:
    """An agent that was shown nothing of what is not shipped has not seen it."""
    maps, bucket = "/api/v1/namespaces/default/configmaps", place.root / "bucket"
    async with place.hub("one", "bucket") as hub:
        await until_metric(hub.admin, "hublet_backup_lag_revisions", 0)
        bucket.rename(place.root / "away")
        bucket.write_text("a file where the directory was")
        shipped = head_revision(place.root / "away")
        made = await hub.admin.create(maps, {"metadata": {"name": "a"}})
        assert int(made["metadata"]["resourceVersion"]) > shipped
        path = f"{works('default')}?watch=1&allowWatchBookmarks=true&timeoutSeconds=1"
        async with hub.admin.watch(f"{path}&resourceVersion={shipped}") as watch:
            event = await watch.next()
        assert event["type"] == "BOOKMARK"
        assert int(event["object"]["metadata"]["resourceVersion"]) == shipped
        bucket.unlink()
        (place.root / "away").rename(bucket)


def head_revision(bucket: Path) -> int:
    remote = open_remote(bucket.as_uri())
    try:
        return decode_head(remote.get(HEAD).data).rev
    finally:
        remote.close()
