"""The simulator against a hub that refuses or is away: it says why, and does not go on for long."""

import asyncio
import datetime as dt
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from hub.auth.authority import create_authority
from hub.clock import SystemClock
from hub.http.client import Poller
from tests.hubs import running_hub
from tools.kubeconfig import Kubeconfig, read_kubeconfig
from tools.simulate.context import Context
from tools.simulate.fleet import Fleet, Plan
from tools.simulate.identity import IdentityStore
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
) -> Run:
    """Run a fleet of three on this loop."""
    plan = Plan(
        clusters=3,
        works=works,
        duration_s=0.1,
        join_timeout_s=join_s,
        concurrency=3,
        name_prefix=prefix,
        addons=addons,
    )
    poller, said, tally = Poller(), list[str](), Tally()
    began_s = time.monotonic()
    try:
        context = Context(
            route=Route(admin.host, admin.port, poller),
            ca_pem=admin.ca_pem,
            tally=tally,
            rng=random.Random(7),
            clock=SystemClock(),
            identities=identities or IdentityStore(None),
            authority=admin.cert_pem,
        )
        progress = Progress(lambda text: said.append(text.removesuffix("\n")))
        fleet = Fleet(plan, context, admin, stop=asyncio.Event(), progress=progress)
        outcome = await fleet.run()
    finally:
        poller.close()
    return Run(outcome, said, tally, time.monotonic() - began_s, context.identities)


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
