"""The demo's second part: the hub moves, planned, while its clusters are connected.

``hub-restore migrate`` does the move, to another directory and another prefix, under the same URL;
the simulated clusters run beside it and are asked afterwards what they noticed.
"""

import asyncio
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from hub.meta import Obj
from snapshot.head import Head, decode_head
from snapshot.layout import HEAD
from snapshot.remote import open_remote
from tools.demo_result import Check, DemoPlan, certificates_of
from tools.simulate.look import Sight, look

_END_TIMEOUT_S = 30.0
_CONNECT_S = 20.0


def moved_url(object_store: str) -> str:
    """Return the prefix beside that of the demo's hub.

    >>> moved_url("s3://bucket/hubs/demo?region=x")
    's3://bucket/hubs/demo-moved?region=x'
    """
    parts = urlsplit(object_store)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/') or '/hub'}-moved"))


@dataclass(slots=True)
class Moved:
    """What the move told, and what was there before and after it."""

    before: Sight
    certificates: dict[str, str]
    exit_status: int = 0
    steps: Obj = field(default_factory=dict)
    after: Sight | None = None
    heads: tuple[Head, ...] = ()
    """Of the prefix left and of the one moved to."""
    report: Obj = field(default_factory=dict)
    """The simulator's, over the whole move."""


@dataclass(frozen=True, slots=True)
class MovePlan:
    """Where the hub moves: `kubeconfig` is the old hub's, `address` stays."""

    demo: DemoPlan
    kubeconfig: Path
    address: str
    simulate: list[str]
    """The simulator's command without its duration and report."""

    @property
    def data_dir(self) -> Path:
        """Return the new hub's directory."""
        return self.demo.directory / "moved"

    @property
    def object_store(self) -> str:
        """Return the prefix it moves to."""
        return moved_url(self.demo.object_store)


def move(plan: MovePlan) -> Moved:
    """Move the hub beneath its clusters; the new hub runs afterwards until `end` stops it."""
    found = Moved(asyncio.run(look(plan.kubeconfig)), certificates_of(plan.demo))
    report = plan.demo.directory / "moving.json"
    with _fleet(plan, report):
        done = subprocess.run(_command(plan), capture_output=True, text=True, check=False)
        found.exit_status = done.returncode
        found.steps = json.loads(done.stdout or "{}").get("steps", {"error": done.stdout})
        if not done.returncode:
            found.after = asyncio.run(look(plan.data_dir / "admin.kubeconfig"))
    if report.exists():
        found.report = json.loads(report.read_bytes())
    found.heads = tuple(_heads(plan))
    return found


def end(plan: MovePlan) -> None:
    """Stop the new hub, if one runs."""
    heads = list(_heads(plan))
    if len(heads) < 2 or heads[1].released:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(heads[1].writer.pid, signal.SIGTERM)
    until_s = time.monotonic() + _END_TIMEOUT_S
    while time.monotonic() < until_s and not list(_heads(plan))[1].released:
        time.sleep(0.05)


def compare_move(plan: MovePlan, found: Moved) -> list[Check]:
    """Return the statements about the move."""
    total = plan.demo.clusters
    clusters = found.steps.get("clusters", {}).get("says", found.steps.get("error", "no answer"))
    left = found.heads[0].moved if found.heads else ""
    after, evictions = found.after, found.report.get("evictions", {})
    return [
        Check(f"migrate: {clusters}", found.exit_status == 0),
        Check(
            "the prefix left behind says where the hub went, and lets nobody start there",
            bool(left) and len(found.heads) == 2,
        ),
        Check(
            f"{total} clusters noticed a gap and nothing else: 0 new CSRs, "
            f"{evictions.get('begun')} works evicted",
            after is not None
            and after.csr_uids == found.before.csr_uids
            and found.report.get("csrs_created") == 0
            and evictions.get("begun") == 0
            and certificates_of(plan.demo) == found.certificates,
        ),
        Check(
            "the same hub in another directory and another prefix: same CA, same uids",
            after is not None
            and after.ca_pem == found.before.ca_pem
            and after.uids == found.before.uids,
        ),
    ]


def _command(plan: MovePlan) -> list[str]:
    serve = [
        *(sys.executable, "-m", "tools.hublet", "serve"),
        *("--data-dir", str(plan.data_dir), "--key-file", str(plan.demo.key_file)),
        *("--listen", plan.address, "--object-store", plan.object_store),
    ]
    return [
        *(sys.executable, "-m", "tools.restore", "migrate", "-o", "json"),
        *("--from", plan.demo.object_store, "--to-store", plan.object_store),
        *("--key-file", str(plan.demo.key_file), "--into", str(plan.data_dir)),
        *("--kubeconfig", str(plan.kubeconfig), "--clusters-timeout", "60"),
        *("--start", shlex.join(serve)),
    ]


@contextmanager
def _fleet(plan: MovePlan, report: Path) -> Iterator[None]:
    """Keep the clusters connected for the length of the block, and have them report."""
    command = [*plan.simulate, "--duration", "10m", "--report", str(report)]
    with (plan.demo.directory / "moving.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_connected(plan, process)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_connected(plan: MovePlan, process: "subprocess.Popen[bytes]") -> None:
    """Wait until the simulator says that all is in order, or has ended."""
    log, until_s = plan.demo.directory / "moving.log", time.monotonic() + _CONNECT_S
    while time.monotonic() < until_s and process.poll() is None:
        if b"all in order" in log.read_bytes():
            return
        time.sleep(0.05)


def _heads(plan: MovePlan) -> Iterator[Head]:
    for url in (plan.demo.object_store, plan.object_store):
        with contextlib.closing(open_remote(url)) as remote:
            if any(entry.name == HEAD for entry in remote.list(HEAD)):
                yield decode_head(remote.get(HEAD).data)
