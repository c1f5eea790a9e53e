"""``hublet simulate``: the flags, and the way from them to a run and its exit status."""

import asyncio
import contextlib
import random
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import click
import uvloop

from hub.clock import SystemClock
from hub.http.client import Poller
from hub.meta.codec import json
from hub.meta.names import label_name_errors
from tools.asking import asks_a_hub, find_identity
from tools.duration import duration
from tools.kubeconfig import Kubeconfig
from tools.simulate.context import Context
from tools.simulate.files import check_file, replace_file
from tools.simulate.fleet import Fleet, Plan
from tools.simulate.identity import IdentityStore
from tools.simulate.progress import progress_on
from tools.simulate.report import Outcome, render_report, render_summary
from tools.simulate.session import Route
from tools.simulate.tally import Tally

EXIT_FAILED, EXIT_CONFIG = 1, 2


@dataclass(frozen=True, slots=True)
class _Job:
    """What the flags ask for."""

    plan: Plan
    admin: Kubeconfig
    identities: IdentityStore
    tally: Tally


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@asks_a_hub
@click.option("--clusters", type=click.IntRange(min=1), required=True, help="How many clusters.")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Where identities last; clusters found there are not registered again.",
)
@click.option(
    "--duration",
    type=duration,
    default="60s",
    metavar="DURATION",
    help="How long all must stay available.",
)
@click.option("--works", type=click.IntRange(min=0), default=5, help="ManifestWorks a cluster.")
@click.option("--addons", type=click.IntRange(min=0), default=0, help="Add-ons a cluster.")
@click.option(
    "--speed",
    type=click.FloatRange(min=1, max=60),
    default=1,
    help="By how much leases are shorter: 60 s divided by this, in whole seconds.",
)
@click.option(
    "--probes",
    type=click.FloatRange(min=0),
    default=1,
    metavar="RATE",
    help="Works a second that come and go while all must stay available.",
)
@click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), default=None, help="JSON report."
)
@click.option("--name-prefix", default="sim-", help="The clusters' names begin like this.")
@click.option(
    "--concurrency", type=click.IntRange(min=1), default=50, help="Registrations at once."
)
@click.option(
    "--join-timeout",
    type=duration,
    default="10m",
    metavar="DURATION",
    help="When to give up on joining.",
)
@click.option("--allow-remote", is_flag=True, help="Accept a hub that is not on this machine.")
def simulate(
    *,
    kubeconfig: Path | None,
    clusters: int,
    state_dir: Path | None,
    duration: float,
    works: int,
    addons: int,
    speed: float,
    probes: float,
    report: Path | None,
    name_prefix: str,
    concurrency: int,
    join_timeout: float,
    allow_remote: bool,
) -> None:
    """Simulate OCM agents against a hub, on the real wire.

    Exits non-zero unless all clusters became available, stayed so for the duration, and no protocol
    error occurred.
    """
    plan = Plan(
        clusters=clusters,
        works=works,
        duration_s=duration,
        join_timeout_s=join_timeout,
        concurrency=concurrency,
        name_prefix=name_prefix,
        addons=addons,
        speed=speed,
        probes=probes,
    )
    if faults := label_name_errors(plan.names[-1]):
        _refuse(f"--name-prefix {name_prefix!r} makes names like {plan.names[-1]}: {faults[0]}")
    admin = find_identity(kubeconfig)
    with _refused("--state-dir", state_dir):
        identities = IdentityStore(state_dir)
    with _refused("--report", report):
        if report is not None:
            check_file(report)
    job = _Job(plan, admin, identities, Tally())
    if not (admin.is_loopback or allow_remote):
        _refuse(f"{admin.host} is not this machine; --allow-remote accepts it")
    if not (admin.ca_pem and admin.cert_pem):
        _refuse(f"{kubeconfig} has no certificate-authority, or no client-certificate")
    try:
        admin.context()
    except ValueError as error:
        _refuse(f"{kubeconfig}: {error}")
    figures = render_report(uvloop.run(_run(job)), job.tally)
    click.echo(render_summary(figures))
    with _refused("--report", report, code=EXIT_FAILED):
        if report is not None:
            replace_file(report, json.encode(figures) + b"\n")
    sys.exit(0 if figures["passed"] else EXIT_FAILED)


async def _run(job: _Job) -> Outcome:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    poller = Poller()
    try:
        context = Context(
            route=Route(job.admin.host, job.admin.port, poller),
            ca_pem=job.admin.ca_pem,
            tally=job.tally,
            rng=random.Random(),  # noqa: S311 - jitter and names, no secrets
            clock=SystemClock(),
            identities=job.identities,
            authority=job.admin.cert_pem,
        )
        progress = progress_on(sys.stdout)
        return await Fleet(job.plan, context, job.admin, stop=stop, progress=progress).run()
    finally:
        poller.close()


@contextlib.contextmanager
def _refused(flag: str, path: Path | None, *, code: int = EXIT_CONFIG) -> Iterator[None]:
    """End with the flag and its path when the system refuses what the block does there."""
    try:
        yield
    except OSError as error:
        _refuse(f"{flag} {path} cannot be written: {error.strerror}", code=code)


def _refuse(message: str, *, code: int = EXIT_CONFIG) -> NoReturn:
    click.echo(f"error: {message}", err=True)
    sys.exit(code)
