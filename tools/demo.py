"""``hublet demo``: the main job, end to end, in under a minute.

A hub starts, simulated clusters join it, everything is shipped to an object store; then the hub is
killed, its directory deleted, the hub restored elsewhere and started again under the same URL; and
then it is moved, planned, to another directory and another prefix (`tools.demo_move`). The clusters
must go on with the certificates they had. Every statement at the end is compared by the demo
itself, with what it saw before. `run_demo` is the whole; tests call it too.
"""

import asyncio
import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from hub.clock import SystemClock
from hub.meta import Obj
from hub.store import STORE_DIRECTORY, Position, Store, load_hub_key
from snapshot.errors import SnapshotError
from snapshot.remote import open_remote
from tools.asking import run as ask
from tools.clusters import lines, read
from tools.demo_move import MovePlan, compare_move, end, move, moved_url
from tools.demo_result import (
    Before,
    DemoPlan,
    DemoResult,
    certificates_of,
    compare,
    position_text,
)
from tools.simulate.look import look, wait_shipped
from tools.simulate.process import HubProcess

SHIP_TIMEOUT_S = 20.0
SIMULATE_TIMEOUT_S = 60.0
_LEFT_OUT = ("join ", "latency ", "lease ", "deliver ", "rate ", "refused ")
"""How the lines of the simulator's summary begin that measure, for which a demo is too short."""
_ROWS_AFTER = 3
_SPEED = "12"
"""Leases of five seconds instead of a minute: a demo waits for every cluster to renew its own."""

Echo = Callable[[str], None]
T = TypeVar("T")


class DemoError(Exception):
    """A step did not work; the message says which, the log what the hub said."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log


def run_demo(plan: DemoPlan, echo: Echo) -> DemoResult:
    """Run every step. Raises `DemoError` when one cannot be done."""
    for url in (plan.object_store, moved_url(plan.object_store)):
        _refuse_used(url)
    result, address = DemoResult(), f"127.0.0.1:{_free_port()}"
    first = _hub(plan, plan.directory / "data", address)
    second = _hub(plan, plan.directory / "restored", address)
    try:
        before, killed_s = _live_and_die(plan, first, result, echo=echo)
        _come_back(plan, second, before, result, killed_s=killed_s, echo=echo)
        _move(plan, second, result, echo=echo)
    finally:
        first.kill()
        second.kill()
    return result


def _live_and_die(
    plan: DemoPlan, hub: HubProcess, result: DemoResult, *, echo: Echo
) -> tuple[Before, float]:
    """Start, join, ship, kill -9, delete; return what was there and when it was killed."""
    _timed(result, "start", lambda: _start(hub, echo))
    report = _timed(result, "join", lambda: _simulate(plan, hub, "first", echo=echo))
    result.reports.append(report)
    revision = _timed(
        result, "ship", lambda: asyncio.run(wait_shipped(hub.kubeconfig, SHIP_TIMEOUT_S))
    )
    echo(f"shipped up to revision {revision} to {plan.object_store}")
    sight = asyncio.run(look(hub.kubeconfig))
    rows = ask(hub.kubeconfig, read)
    echo("hublet clusters:")
    for line in lines(rows):
        echo(f"  | {line}")
    killed_s = time.monotonic()
    hub.kill()
    dead = _dead_position(plan, hub.data_dir)
    shutil.rmtree(hub.data_dir)
    echo(f"kill -9, and {hub.data_dir} deleted; it stood at {position_text(dead)}")
    return Before(sight, rows, dead, certificates_of(plan)), killed_s


def _come_back(
    plan: DemoPlan,
    hub: HubProcess,
    before: Before,
    result: DemoResult,
    *,
    killed_s: float,
    echo: Echo,
) -> None:
    """Restore, start, let the agents go on, compare."""
    restored = _timed(result, "restore", lambda: _restore(plan, hub.data_dir))
    echo(f"restored into {hub.data_dir}: {restored['objects']} objects")
    _timed(result, "start again", lambda: _start(hub, echo))
    result.seconds["kill to serving"] = time.monotonic() - killed_s
    report = _timed(result, "agents back", lambda: _simulate(plan, hub, "second", echo=echo))
    result.reports.append(report)
    after = asyncio.run(look(hub.kubeconfig))
    rows = ask(hub.kubeconfig, read)
    result.checks = compare(plan, before, restored, after=after, rows=rows, result=result)
    echo("hublet clusters, after all that:")
    for line in _changed(before.rows, rows):
        echo(f"  | {line}")


def _move(plan: DemoPlan, hub: HubProcess, result: DemoResult, *, echo: Echo) -> None:
    """Move the hub beneath its clusters, then stop it."""
    simulate = [sys.executable, "-m", "tools.hublet", "simulate", *_fleet_flags(plan, hub)]
    moving = MovePlan(plan, hub.kubeconfig, hub.address, simulate)
    try:
        found = _timed(result, "move", lambda: move(moving))
        echo(f"moved to {moving.data_dir} and {moving.object_store}:")
        for step, told in found.steps.items():
            if isinstance(told, dict) and "says" in told:
                echo(f"  | {told['at_seconds']:5.1f} s  {step}: {told['says']}")
        result.checks += compare_move(moving, found)
    finally:
        _timed(result, "stop", lambda: end(moving))


# -- steps


def _refuse_used(object_store: str) -> None:
    """Make sure that the demo's hub will be the prefix's first."""
    try:
        with contextlib.closing(open_remote(object_store)) as remote:
            found = next(iter(remote.list()), None)
    except SnapshotError as error:
        raise DemoError(f"{error}\nhint: {error.hint}".removesuffix("\nhint: ")) from error
    if found is not None:
        raise DemoError(
            f"{remote.url} holds {found.name}, and the demo begins with an empty prefix\n"
            "hint: name one that is empty with --object-store, or leave it out"
        )


def _hub(plan: DemoPlan, data_dir: Path, address: str) -> HubProcess:
    return HubProcess(
        data_dir=data_dir,
        key_file=plan.key_file,
        object_store=plan.object_store,
        address=address,
        log=plan.directory / f"{data_dir.name}.log",
    )


def _start(hub: HubProcess, echo: Echo) -> None:
    hub.start()
    try:
        asyncio.run(hub.wait_ready())
    except TimeoutError as error:
        raise DemoError(f"the hub did not start: {error}", hub.log_tail()) from error
    echo(f"hub serves https://{hub.address} from {hub.data_dir}")


def _simulate(plan: DemoPlan, hub: HubProcess, name: str, *, echo: Echo) -> Obj:
    """Run the simulator until all are available, and return its report."""
    report = plan.directory / f"{name}.json"
    words = [*_fleet_flags(plan, hub), "--duration", plan.steady, "--report", str(report)]
    command = [sys.executable, "-m", "tools.hublet", "simulate", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if not line.startswith(_LEFT_OUT):
            echo(f"  | {line}")
    if not report.exists():
        raise DemoError(f"the simulator made no report: {done.stderr.strip()}", hub.log_tail())
    result: Obj = json.loads(report.read_bytes())
    if done.returncode and result["passed"]:
        raise DemoError(f"the simulator failed: {done.stderr.strip()}", hub.log_tail())
    return result


def _fleet_flags(plan: DemoPlan, hub: HubProcess) -> list[str]:
    """Return what every run of the simulator is told."""
    options = {
        "--kubeconfig": str(hub.kubeconfig),
        "--clusters": str(plan.clusters),
        "--works": str(plan.works),
        "--addons": str(plan.addons),
        "--probes": "0",
        "--speed": _SPEED,
        "--state-dir": str(plan.state_dir),
        "--join-timeout": f"{SIMULATE_TIMEOUT_S:.0f}s",
    }
    return [word for pair in options.items() for word in pair]


def _restore(plan: DemoPlan, data_dir: Path) -> Obj:
    options = ["--from", plan.object_store, "--into", str(data_dir)]
    command = [sys.executable, "-m", "tools.restore", "restore", *options]
    command += ["--key-file", str(plan.key_file), "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DemoError(f"hub-restore failed: {done.stdout}{done.stderr}".strip())
    result: Obj = json.loads(done.stdout)
    return result


def _dead_position(plan: DemoPlan, data_dir: Path) -> Position:
    """Read the dead hub's own file: where it stood, checked against itself."""
    key = load_hub_key(plan.key_file, outside=data_dir)
    store = Store.open(
        data_dir / STORE_DIRECTORY, hub_key=key, clock=SystemClock(), can_create=False
    )
    try:
        return store.verify()
    finally:
        store.close_offline()


def _changed(before: list[Obj], after: list[Obj]) -> list[str]:
    """Return the table of the clusters that are told of otherwise than before, else its first."""
    told = [{**row, "heard": ""} for row in before]
    changed = [row for row in after if {**row, "heard": ""} not in told]
    *table, _ = lines(changed or after[:_ROWS_AFTER])
    left_out = len(after) - len(table) + 1
    if left_out:
        table.append(f"... and {left_out} more")
    return [*table, f"{len(after) - len(changed)} of {len(after)} as before, but for HEARD"]


def _timed(result: DemoResult, step: str, work: Callable[[], T]) -> T:
    began_s = time.monotonic()
    try:
        return work()
    finally:
        result.seconds[step] = time.monotonic() - began_s


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--clusters", type=click.IntRange(min=1), default=25, help="How many clusters.")
@click.option("--works", type=click.IntRange(min=0), default=1, help="ManifestWorks a cluster.")
@click.option("--addons", type=click.IntRange(min=0), default=1, help="Add-ons a cluster.")
@click.option(
    "--object-store",
    default="",
    show_default="a directory of its own",
    metavar="URL",
    help="Use this prefix and the one beside it, named -moved; both must be empty.",
)
@click.option("--keep", is_flag=True, help="Keep the directory at the end.")
def demo(*, clusters: int, works: int, addons: int, object_store: str, keep: bool) -> None:
    """Show the main job: join, ship, kill, delete, restore, go on, and move."""
    directory = Path(tempfile.mkdtemp(prefix="hublet-demo-"))
    plan = DemoPlan(
        directory=directory,
        object_store=object_store or f"file://{directory / 'bucket'}",
        clusters=clusters,
        works=works,
        addons=addons,
    )
    began_s = time.monotonic()
    try:
        result = run_demo(plan, click.echo)
    except DemoError as error:
        click.echo(f"error: {error}\n{error.log}".rstrip(), err=True)
        sys.exit(1)
    finally:
        if keep:
            click.echo(f"kept: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    _print_result(result, time.monotonic() - began_s)
    sys.exit(0 if result.is_passed else 1)


def _print_result(result: DemoResult, total_s: float) -> None:
    click.echo()
    for check in result.checks:
        click.echo(f"{'ok    ' if check.is_true else 'FAILED'}  {check.text}")
    times = ", ".join(f"{step} {spent_s:.2f} s" for step, spent_s in result.seconds.items())
    click.echo(f"times   {times}; {total_s:.1f} s in all")
