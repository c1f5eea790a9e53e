"""``hublet demo``: the main job, end to end, in under a minute.

A hub starts, simulated clusters join it, everything is shipped to an object store; then the hub is
killed, its directory deleted, the hub restored elsewhere and started again. The clusters must go on
with the certificates they had. Every statement at the end is compared by the demo itself, with what
it saw before the kill. `run_demo` is the whole; tests call it too.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import click

from hub.clock import SystemClock
from hub.meta import Obj
from hub.store import Position, Store, load_hub_key
from snapshot.errors import SnapshotError
from snapshot.remote import open_remote
from tools.simulate.identity import IdentityStore
from tools.simulate.look import Sight, look, wait_shipped
from tools.simulate.process import HubProcess

SHIP_TIMEOUT_S = 20.0
SIMULATE_TIMEOUT_S = 60.0

Echo = Callable[[str], None]
T = TypeVar("T")


class DemoError(Exception):
    """A step did not work; the message says which, the log what the hub said."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPlan:
    """What to show, and where: `directory` must be empty, `object_store` too."""

    directory: Path
    object_store: str
    clusters: int = 10
    works: int = 1
    steady: str = "2s"
    """How long the clusters must stay available, before and after."""

    @property
    def key_file(self) -> Path:
        """Return where the hub key is: the one thing kept besides the object store."""
        return self.directory / "hub.key"

    @property
    def state_dir(self) -> Path:
        """Return where the simulated clusters keep their identities."""
        return self.directory / "agents"


@dataclass(frozen=True, slots=True)
class Check:
    """One statement of the demo, and whether it holds."""

    text: str
    is_true: bool


@dataclass(slots=True)
class DemoResult:
    """What the demo saw; `seconds` by step."""

    checks: list[Check] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    reports: list[Obj] = field(default_factory=list)

    @property
    def is_passed(self) -> bool:
        """Whether every statement holds."""
        return bool(self.checks) and all(check.is_true for check in self.checks)


@dataclass(frozen=True, slots=True)
class Before:
    """What was there before the kill."""

    sight: Sight
    dead: Position
    certificates: dict[str, str]


def run_demo(plan: DemoPlan, echo: Echo) -> DemoResult:
    """Run every step. Raises `DemoError` when one cannot be done."""
    _refuse_used(plan.object_store)
    result, address = DemoResult(), f"127.0.0.1:{_free_port()}"
    first = _hub(plan, plan.directory / "data", address)
    second = _hub(plan, plan.directory / "restored", address)
    try:
        before, killed_s = _live_and_die(plan, first, result, echo=echo)
        _come_back(plan, second, before, result, killed_s=killed_s, echo=echo)
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
    killed_s = time.monotonic()
    hub.kill()
    dead = _dead_position(plan, hub.data_dir)
    shutil.rmtree(hub.data_dir)
    echo(f"kill -9, and {hub.data_dir} deleted; it stood at {_position_text(dead)}")
    return Before(sight, dead, _certificates(plan)), killed_s


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
    result.checks = compare(plan, before, restored, after=after, result=result)
    _timed(result, "stop", hub.stop)


def compare(
    plan: DemoPlan, before: Before, restored: Obj, *, after: Sight, result: DemoResult
) -> list[Check]:
    """Return the statements of the demo."""
    first, second = result.reports
    new_csrs = len(after.csr_uids - before.sight.csr_uids)
    total = plan.clusters
    is_same_state = restored["state_hash"] == before.dead.state_hash.hex()
    return [
        Check(
            f"{first['clusters_available']}/{total} clusters joined,"
            f" {first['works_done']}/{total * plan.works} works applied",
            first["passed"] and first["clusters_available"] == total,
        ),
        Check(
            f"state equal by state_hash: {restored['state_hash'][:16]} at revision"
            f" {restored['revision']}, before {_position_text(before.dead)}",
            is_same_state and restored["revision"] == before.dead.revision,
        ),
        Check(
            f"{second['clusters_available']}/{total} clusters back and available,"
            f" {second['works_done']}/{total * plan.works} works applied",
            second["passed"] and second["clusters_available"] == total,
        ),
        Check(
            f"{new_csrs} new CSRs ({len(before.sight.csr_uids)} before, {len(after.csr_uids)}"
            f" after by uid; the agents made {second['csrs_created']})",
            len(before.sight.csr_uids) >= total
            and after.csr_uids == before.sight.csr_uids
            and second["csrs_created"] == 0,
        ),
        Check(
            f"{second['certificates_reused']}/{total} agents went on with the certificate they had",
            second["certificates_reused"] == total and _certificates(plan) == before.certificates,
        ),
        Check(
            "the same hub: same CA, same uids of clusters and works",
            after.ca_pem == before.sight.ca_pem and after.uids == before.sight.uids,
        ),
    ]


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
    options = {
        "--kubeconfig": str(hub.kubeconfig),
        "--clusters": str(plan.clusters),
        "--works": str(plan.works),
        "--state-dir": str(plan.state_dir),
        "--duration": plan.steady,
        "--join-timeout": f"{SIMULATE_TIMEOUT_S:.0f}s",
        "--report": str(report),
    }
    words = [word for pair in options.items() for word in pair]
    command = [sys.executable, "-m", "tools.hublet", "simulate", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        echo(f"  | {line}")
    if not report.exists():
        raise DemoError(f"the simulator made no report: {done.stderr.strip()}", hub.log_tail())
    result: Obj = json.loads(report.read_bytes())
    if done.returncode and result["passed"]:
        raise DemoError(f"the simulator failed: {done.stderr.strip()}", hub.log_tail())
    return result


def _restore(plan: DemoPlan, data_dir: Path) -> Obj:
    options = ["--object-store", plan.object_store, "--data-dir", str(data_dir)]
    command = [sys.executable, "-m", "tools.restore", "restore", *options]
    command += ["--key-file", str(plan.key_file), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DemoError(f"hub-restore failed: {done.stdout}{done.stderr}".strip())
    result: Obj = json.loads(done.stdout)
    return result


def _dead_position(plan: DemoPlan, data_dir: Path) -> Position:
    """Read the dead hub's own file: where it stood, checked against itself."""
    key = load_hub_key(plan.key_file, outside=data_dir)
    store = Store.open(data_dir, hub_key=key, clock=SystemClock(), can_create=False)
    try:
        return store.verify()
    finally:
        store.close_offline()


def _certificates(plan: DemoPlan) -> dict[str, str]:
    """Return the certificate of every simulated cluster, as its state directory has it."""
    names = [path.stem for path in plan.state_dir.glob("*.json")]
    found = [IdentityStore(plan.state_dir).find(name) for name in names]
    return {identity.cluster: identity.cert_pem for identity in found if identity}


def _timed(result: DemoResult, step: str, work: Callable[[], T]) -> T:
    began_s = time.monotonic()
    try:
        return work()
    finally:
        result.seconds[step] = time.monotonic() - began_s


def _position_text(position: Position) -> str:
    return f"{position.state_hash.hex()[:16]} at revision {position.revision}"


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--clusters", type=click.IntRange(min=1), default=10, help="How many clusters.")
@click.option("--works", type=click.IntRange(min=0), default=1, help="ManifestWorks a cluster.")
@click.option(
    "--object-store",
    default="",
    show_default="a directory of its own",
    metavar="URL",
    help="Use this prefix, which must be empty.",
)
@click.option("--keep", is_flag=True, help="Keep the directory at the end.")
def demo(*, clusters: int, works: int, object_store: str, keep: bool) -> None:
    """Show the main job: join, ship, kill, delete, restore, go on."""
    directory = Path(tempfile.mkdtemp(prefix="hublet-demo-"))
    plan = DemoPlan(
        directory=directory,
        object_store=object_store or f"file://{directory / 'bucket'}",
        clusters=clusters,
        works=works,
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
