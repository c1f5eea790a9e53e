"""The simulator against hubs that refuse, are away, or lie, and with one that does as it should."""

import asyncio
import dataclasses
import datetime as dt
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hub.auth.authority import create_authority
from hub.clock import SystemClock
from hub.fleet.kinds import MANIFEST_WORK
from hub.http import watching
from hub.http.client import Poller
from hub.http.entries import Entries
from hub.http.listing import select
from hub.meta import Obj
from hub.registry.engine import Engine
from hub.registry.kind import Kind
from hub.registry.options import ListOptions
from hub.registry.watch import Event, Watcher
from hub.store import Op
from tests.hubs import MERGE, Api, running_hub
from tools.kubeconfig import Kubeconfig, read_kubeconfig
from tools.simulate.context import Context
from tools.simulate.fleet import Fleet, Plan
from tools.simulate.honesty import MISSED, OMITTED
from tools.simulate.identity import IdentityStore
from tools.simulate.process import HubProcess
from tools.simulate.progress import Progress
from tools.simulate.report import Outcome
from tools.simulate.session import Route
from tools.simulate.tally import Tally


@dataclass(slots=True)
class Run:
    """What a run said and came to."""

    outcome: Outcome
    said: list[str]
    tally: Tally
    seconds: float
    identities: IdentityStore = field(repr=False)


async def simulate(
    admin: Kubeconfig,
    *,
    prefix: str = "sim-",
    works: int = 1,
    addons: int = 0,
    join_s: float = 60.0,
    identities: IdentityStore | None = None,
    ca_pem: bytes = b"",
    authority: bytes = b"",
    duration_s: float = 0.1,
    probes: float = 0.0,
    speed: float = 1.0,
    stop: asyncio.Event | None = None,
    tally: Tally | None = None,
) -> Run:
    """Run a fleet of three on this loop."""
    plan = Plan(
        clusters=3,
        works=works,
        duration_s=duration_s,
        join_timeout_s=join_s,
        concurrency=3,
        name_prefix=prefix,
        addons=addons,
        probes=probes,
        speed=speed,
    )
    poller, said, tally = Poller(), list[str](), tally or Tally()
    began_s = time.monotonic()
    try:
        context = Context(
            route=Route(admin.host, admin.port, poller),
            ca_pem=ca_pem or admin.ca_pem,
            tally=tally,
            rng=random.Random(7),
            clock=SystemClock(),
            identities=identities or IdentityStore(None),
            authority=authority or admin.cert_pem,
        )
        progress = Progress(lambda text: said.append(text.removesuffix("\n")))
        fleet = Fleet(plan, context, admin, stop=stop or asyncio.Event(), progress=progress)
        outcome = await fleet.run()
    finally:
        poller.close()
    return Run(outcome, said, tally, time.monotonic() - began_s, context.identities)


async def until(is_so: Callable[[], bool]) -> None:
    for _ in range(1000):
        if is_so():
            return
        await asyncio.sleep(0.05)
    pytest.fail("it never became so")


def another_ca() -> bytes:
    return create_authority("another", dt.datetime.now(dt.UTC)).cert_pem.encode()


async def test_a_refusal_that_stays_is_told_at_once_and_ends_the_run(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        run = await simulate(read_kubeconfig(hub.kubeconfig), prefix="Bad_")
    assert run.seconds < 20
    assert run.outcome.problem.startswith("the hub refuses, and will: create managedclusters: 422")
    assert run.said[-1] == f"error: {run.outcome.problem}"
    assert run.outcome.failures(run.tally)


async def test_a_hub_that_is_not_there_is_waited_for_no_longer_than_asked(free_port: int) -> None:
    pair = create_authority("nobody", dt.datetime.now(dt.UTC))
    cert, key = pair.cert_pem.encode(), pair.key_pem.encode()
    nobody = Kubeconfig("127.0.0.1", free_port, cert, cert, key)
    run = await simulate(nobody, join_s=1.0)
    assert run.seconds < 5
    assert run.outcome.problem.startswith("cannot list the clusters: cannot connect to 127.0.0.1")
    assert run.said == [f"waiting to {run.outcome.problem.removeprefix('cannot ')}"]


async def test_a_fleet_that_does_not_come_up_in_time_says_so(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        run = await simulate(read_kubeconfig(hub.kubeconfig), join_s=0.01, works=50)
    assert run.outcome.problem == "not all in order after 0.01 s" or "cannot" in run.outcome.problem
    assert run.seconds < 10


async def test_what_an_earlier_run_left_is_told_apart(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        admin = read_kubeconfig(hub.kubeconfig)
        first = await simulate(admin, works=3)
        again = await simulate(admin, works=2)
        known = await simulate(admin, works=2, identities=again.identities)
    assert not any(line.startswith("found") for line in first.said)
    assert again.said[0].startswith("found 3 of the 3 clusters on the hub already, and no identit")
    assert not any(line.startswith("found") for line in known.said)
    for run, more in ((first, 0), (again, 3), (known, 3)):
        assert run.outcome.failures(run.tally) == []
        assert run.outcome.works_done == 3 * run.outcome.works_each
        assert run.outcome.works_more == more
    assert "works 6/6 and 3 more" in again.said[-1]


# -- with a hub that does as it should

ADDONS = "/apis/addon.open-cluster-management.io/v1beta1"


async def test_add_ons_become_available_and_the_hub_labels_their_clusters(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        run = await simulate(read_kubeconfig(hub.kubeconfig), addons=2)
        clusters = (
            await hub.admin.call(
                "GET", "/apis/cluster.open-cluster-management.io/v1/managedclusters"
            )
        ).obj()["items"]
    assert run.outcome.failures(run.tally) == []
    assert run.outcome.addons_done == 6
    for cluster in clusters:
        labels = cluster["metadata"]["labels"]
        for name in ("metrics-agent", "policy-agent"):
            assert labels[f"feature.open-cluster-management.io/addon-{name}"] == "available"


async def test_shorter_leases_are_asked_for_in_the_spec_and_kept(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        admin = read_kubeconfig(hub.kubeconfig)
        first = await simulate(admin)
        run = await simulate(admin, identities=first.identities, speed=60.0, duration_s=2.5)
        cluster = await hub.admin.call(
            "GET", "/apis/cluster.open-cluster-management.io/v1/managedclusters/sim-0000"
        )
    assert run.outcome.failures(run.tally) == []
    assert cluster.obj()["spec"]["leaseDurationSeconds"] == 1
    assert run.tally.requests["update", "leases", "200"] >= 2 * 3


async def test_probes_come_and_go_and_are_timed(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        run = await simulate(read_kubeconfig(hub.kubeconfig), probes=10.0, duration_s=1.0)
        works = await hub.admin.call(
            "GET", "/apis/work.open-cluster-management.io/v1/manifestworks"
        )
    assert run.outcome.failures(run.tally) == []
    assert run.tally.probes_done == run.tally.probes_created > 0
    assert len(run.tally.deliveries_s) >= run.tally.probes_created
    assert len(works.obj()["items"]) == 3
    assert run.outcome.works_more == 0


async def manage_addons(admin: Api, stop: asyncio.Event) -> None:
    """Be the manager of the add-ons: ask for certificates, approve them, see that all get one."""
    csrs = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    client: Obj = {"registrations": [{"type": "kubeClient", "kubeClient": {"subject": {}}}]}
    done = 0
    while done < 3:
        done = 0
        for addon in (await admin.call("GET", f"{ADDONS}/managedclusteraddons")).obj()["items"]:
            path = "{ADDONS}/namespaces/{namespace}/managedclusteraddons/{name}/status".format(
                ADDONS=ADDONS, **addon["metadata"]
            )
            status = addon.get("status") or {}
            if not status.get("registrations"):
                await admin.call("PATCH", path, {"status": client}, content_type=MERGE)
            done += "ClusterCertificateRotated" in {c["type"] for c in status.get("conditions", ())}
        for csr in (await admin.call("GET", csrs)).obj()["items"]:
            is_addon = "open-cluster-management.io/addon-name" in csr["metadata"]["labels"]
            if is_addon and not csr.get("status"):
                approved = {"type": "Approved", "status": "True", "reason": "R", "message": "m"}
                csr["status"] = {"conditions": [approved]}
                path = f"{csrs}/{csr['metadata']['name']}/approval"
                assert (await admin.call("PUT", path, csr)).status == 200
    stop.set()


async def test_an_add_on_whose_manager_asks_gets_its_certificate(tmp_path: Path) -> None:
    stop = asyncio.Event()
    async with running_hub(tmp_path / "data") as hub, asyncio.TaskGroup() as group:
        group.create_task(manage_addons(hub.admin, stop))
        admin = read_kubeconfig(hub.kubeconfig)
        run = await simulate(admin, addons=1, duration_s=50.0, stop=stop)
    assert run.tally.addon_csrs_created == 3
    assert run.tally.protocol_error_samples == []


async def test_a_restart_of_the_hub_is_an_outage_of_every_agent_and_no_fault(
    tmp_path: Path, free_port: int
) -> None:
    hub = HubProcess(
        data_dir=tmp_path / "data",
        key_file=tmp_path / "key",
        object_store=(tmp_path / "bucket").as_uri(),
        address=f"127.0.0.1:{free_port}",
        log=tmp_path / "log",
    )
    tally, stop = Tally(), asyncio.Event()

    async def restart() -> None:
        await until(lambda: tally.before_steady is not None)
        hub.kill()
        hub.start()
        await until(lambda: len(tally.outages_s) == 3)
        stop.set()

    hub.start()
    try:
        await hub.wait_ready()
        async with asyncio.TaskGroup() as group:
            group.create_task(restart())
            admin = read_kubeconfig(hub.kubeconfig)
            await simulate(admin, addons=1, duration_s=50.0, tally=tally, stop=stop)
    finally:
        hub.kill()
    assert len(tally.outages_s) == 3
    assert min(tally.outages_s) > 0
    assert tally.protocol_error_samples == []


# -- with a hub that lies


async def test_a_watch_that_leaves_a_change_out_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer, left_out = Watcher.offer, set[str]()

    def lie(watcher: Watcher, event: Event) -> int:
        is_work = event.kind is MANIFEST_WORK and watcher.namespace == event.namespace
        if is_work and event.change.op is Op.UPDATE and event.namespace not in left_out:
            left_out.add(event.namespace)
            return 0
        return offer(watcher, event)

    monkeypatch.setattr(Watcher, "offer", lie)
    async with running_hub(tmp_path / "data") as hub:
        run = await simulate(read_kubeconfig(hub.kubeconfig), works=2, join_s=10.0)
    assert left_out
    assert run.tally.errors[MISSED] >= len(left_out)
    assert any("protocol errors" in failure for failure in run.outcome.failures(run.tally))


async def test_a_list_without_a_work_that_an_agent_holds_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lie(engine: Engine, kind: Kind, namespace: str, options: ListOptions) -> Entries:
        found = select(engine, kind, namespace, options)
        is_agent = kind is MANIFEST_WORK and namespace
        return dataclasses.replace(found, first=found.first[1:]) if is_agent else found

    async with running_hub(tmp_path / "data") as hub:
        admin = read_kubeconfig(hub.kubeconfig)
        first = await simulate(admin, works=2)
        assert first.outcome.failures(first.tally) == []
        monkeypatch.setattr(watching, "select", lie)
        run = await simulate(admin, works=2, identities=first.identities, join_s=3.0)
    assert run.tally.errors == {OMITTED: 3}
    assert "3 works were left out of a list" in " ".join(run.outcome.failures(run.tally))


async def test_a_client_certificate_of_another_ca_fails_the_run(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        run = await simulate(read_kubeconfig(hub.kubeconfig), authority=another_ca())
    assert run.tally.errors == {"client certificate": 3}
    assert run.outcome.failures(run.tally) == ["3 protocol errors"]


async def test_a_hub_whose_own_certificate_is_of_another_ca_fails_the_run(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        run = await simulate(read_kubeconfig(hub.kubeconfig), ca_pem=another_ca(), join_s=1.0)
    assert set(run.tally.errors) == {"serving certificate"}
    assert "3 of 3 clusters did not become available" in run.outcome.failures(run.tally)
