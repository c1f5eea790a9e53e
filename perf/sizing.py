"""What a fleet costs: join N simulated clusters, kill the hub, restore it, and print the figures.

    python -m perf.sizing --clusters 1000 --works 5

Hub, simulator and restore are processes of their own, as an operator runs them; the figures are the
kernel's (CPU, resident memory) and the hub's own metrics. The load of the machine is printed with
them: compare ratios between runs of one session, never a single figure with another machine's.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hub.http.client import Client
from hub.http.tls import client_context
from perf.machine import say, say_load, usage
from tools.kubeconfig import read_kubeconfig
from tools.simulate.look import wait_shipped
from tools.simulate.process import HubProcess


async def metrics(kubeconfig: Path) -> dict[str, float]:
    """Return the hub's metrics, labels kept in the name."""
    admin = read_kubeconfig(kubeconfig)
    tls = client_context(admin.ca_pem, admin.cert_pem, admin.key_pem)
    async with Client(admin.host, admin.port, tls) as client:
        body = (await client.request("GET", "/metrics")).body.decode()
    pairs = (line.rsplit(" ", 1) for line in body.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def run(*command: str) -> float:
    """Run a tool to its end and return the seconds it took; its failure is ours."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", *command], check=True)
    return time.monotonic() - began


class Sizing:
    """One run in a directory of its own."""

    def __init__(self, root: Path, arguments: argparse.Namespace) -> None:
        self._root, self._arguments = root, arguments
        self._store = arguments.object_store or f"file://{root}/bucket"
        self._address = f"127.0.0.1:{arguments.port}"

    def _hub(self, name: str) -> HubProcess:
        return HubProcess(
            data_dir=self._root / name,
            key_file=self._root / "hub.key",
            object_store=self._store,
            address=self._address,
            log=self._root / "hub.log",
        )

    async def run(self) -> None:
        """Do it and print."""
        hub = self._hub("data")
        hub.start()
        await hub.wait_ready()
        empty = usage(hub.pid)
        report = self._simulate(hub, "join")
        joined = usage(hub.pid)
        clusters = self._arguments.clusters
        say("clusters, works each", f"{clusters}, {self._arguments.works}")
        say("joined (50%, 95%, 99%, 100%)", str(report["available_after_seconds"]))
        say(
            "hub CPU per cluster joined", f"{(joined.cpu_s - empty.cpu_s) / clusters * 1000:.0f} ms"
        )
        say("hub RSS (without file pages)", f"{joined.rss_mib:.0f} ({joined.anon_mib:.0f}) MiB")
        await self._steady(hub)
        await wait_shipped(hub.kubeconfig, 60)
        await self._sizes(hub)
        hub.kill()
        seconds = run("tools.restore", "restore", "--from", self._store, *self._into())
        say("hub-restore, process and all", f"{seconds:.2f} s")
        await self._again()

    def _simulate(self, hub: HubProcess, name: str, *flags: str) -> dict[str, object]:
        report = self._root / f"{name}.json"
        run(
            "tools.hublet",
            "simulate",
            "--kubeconfig",
            str(hub.kubeconfig),
            "--clusters",
            str(self._arguments.clusters),
            "--works",
            str(self._arguments.works),
            "--duration",
            self._arguments.duration,
            "--probes",
            "0",
            "--state-dir",
            str(self._root / "fleet"),
            "--report",
            str(report),
            *flags,
        )
        found: dict[str, object] = json.loads(report.read_bytes())
        return found

    async def _steady(self, hub: HubProcess) -> None:
        """Measure a hub with a quiet fleet (a second run on the identities of the first)."""
        before, began = usage(hub.pid), time.monotonic()
        report = self._simulate(hub, "steady")
        after, seconds = usage(hub.pid), time.monotonic() - began
        say(
            "whole fleet back, CSRs made",
            f"{report['available_after_seconds']}, {report['csrs_created']}",
        )
        say(
            "hub CPU over reconnect and steady",
            f"{(after.cpu_s - before.cpu_s) / seconds:.1%} of a core",
        )

    async def _sizes(self, hub: HubProcess) -> None:
        found = await metrics(hub.kubeconfig)
        say(
            "objects, log entries",
            f"{found['hublet_store_objects']:.0f}, {found['hublet_store_log_entries']:.0f}",
        )
        say("data file", f"{found['hublet_store_file_bytes'] / 2**20:.1f} MiB")
        for kind in ("full", "d0"):
            label = f'{{kind="{kind}"}}'
            count = found[f"hublet_backup_segments_total{label}"]
            if not count:
                continue
            size = found[f"hublet_backup_bytes_total{label}"] / count
            spent = (f'{{kind="{kind}",phase="{phase}"}}' for phase in ("cut", "put"))
            seconds = sum(found[f"hublet_backup_duration_seconds_sum{each}"] for each in spent)
            seconds /= count
            last = found[f"hublet_backup_last_bytes{label}"]
            each = f"{size / 1024:.1f} KiB in {seconds * 1000:.1f} ms"
            say(f"{kind}s: count, mean, last", f"{count:.0f}, {each}, {last / 1024:.1f} KiB")

    def _into(self) -> tuple[str, ...]:
        key = str(self._root / "hub.key")
        return ("--into", str(self._root / "restored"), "--key-file", key)

    async def _again(self) -> None:
        hub, began = self._hub("restored"), time.monotonic()
        hub.start()
        await hub.wait_ready()
        say("start to ready on the restored", f"{time.monotonic() - began:.2f} s")
        report = self._simulate(hub, "again")
        say(
            "whole fleet back, new CSRs",
            f"{report['available_after_seconds']}, {report['csrs_created']}",
        )
        say("hub RSS then", f"{usage(hub.pid).rss_mib:.0f} MiB")
        hub.stop()


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--works", type=int, default=5)
    parser.add_argument("--duration", default="60s")
    parser.add_argument("--port", type=int, default=17600)
    parser.add_argument("--object-store", default="")
    arguments = parser.parse_args()
    say_load()
    with tempfile.TemporaryDirectory(prefix="hublet-sizing-") as root:
        asyncio.run(Sizing(Path(root), arguments).run())
    say_load()


if __name__ == "__main__":
    main()
