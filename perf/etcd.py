"""The hub beside etcd, on the same work, the same objects and the same disk, in the same run.

    python -m perf.etcd --clusters 3000 --json figures.json

Needs Debian's `etcd-server` and `etcd-client` (see `perf.etcd_process`). What each figure includes:

- Writes: N clients, each with a connection of its own, each write of a 4 KB ManagedCluster answered
  only when durable, rounds of one second interleaved. `etcd` is a Put over gRPC without TLS, sent
  by a client of this process. `store` is the hub's store called in this process: client and store
  share it, and one interpreter lock. `API` is a status PUT through `hublet serve`: mutual TLS,
  HTTP/2, RBAC, validation, controllers. No process is pinned to a core.
- Restart: from starting the program until it answers, by the same poll every 2 ms; both hold the
  same objects, the hub has a bucket, nothing else runs, the files are in the page cache. etcd is a
  key-value store: the API server and the controllers that a hub also is are not in its figures.
- Memory: resident (and without file pages) 3 s after being ready; of the hub as it grew (free pages
  lie between its objects), and of the hub restored from its bucket, whose file is written anew.
- Snapshot: ``etcdctl snapshot save`` to a local file, and the hub's full segment (compressed,
  sealed) to a file bucket; seconds and bytes.
- Check: ``etcdctl check perf --load=xl`` (60 s of 1 KiB values from 1,000 clients in Go), and the
  store with as many writers and values of that size, drawn at random.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import uvloop

from hub.clock import SystemClock
from hub.store import Store, load_hub_key
from perf.etcd_process import find_program, version_of
from perf.etcd_state import Start, States, make_states
from perf.etcd_writes import CLIENTS, check_rounds, rate_of, write_rounds
from perf.fleet import cluster_documents
from perf.hub import cache_bytecode, make_site
from perf.machine import file_system, median, raise_descriptors, say, say_load

_DESCRIPTORS = 4096


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured: the hub's figure, etcd's, the first by the second, and its goal."""

    name: str
    hub: float
    etcd: float
    unit: str
    ratio: float
    goal: str = ""

    def line(self) -> str:
        """Return the figure as text."""
        digits = 0 if min(self.hub, self.etcd) >= 100 else 2
        values = f"{self.hub:>10.{digits}f} {self.etcd:>10.{digits}f} {self.unit:<4}"
        goal = f"  (goal {self.goal})" if self.goal else ""
        return f"{self.name:<34} {values} {self.ratio:>7.2f}{goal}"


class Comparison:
    """One run in a directory of its own."""

    def __init__(self, root: Path, arguments: argparse.Namespace) -> None:
        self._root, self._arguments = root, arguments
        self.figures: list[Figure] = []

    def _add(self, name: str, hub: float, etcd: float, unit: str, *, goal: str = "") -> None:
        figure = Figure(name, hub, etcd, unit, hub / etcd, goal)
        self.figures.append(figure)
        print(figure.line(), flush=True)

    async def run(self) -> None:
        """Do it, and print as it goes."""
        arguments = self._arguments
        states = await make_states(self._root, clusters=arguments.clusters, port=arguments.port)
        try:
            await states.load()
            say("objects", f"{states.objects}")
            print(f"{'':<34} {'hub':>10} {'etcd':>10} {'':<4} {'ratio':>7}")
            before, after = states.loaded["hub"], states.loaded["etcd"]
            self._add("memory after loading", before.rss_mib, after.rss_mib, "MiB")
            self._add("  without file pages", before.anon_mib, after.anon_mib, "MiB")
            await self._restarts(states, "as it grew")
            await states.restore()
            await self._restarts(states, "restored")
            await states.start_hub()
            await asyncio.to_thread(states.etcd.start)
            await self._snapshots(states)
            await self._writes(states)
            states.stop_hub()
            if arguments.check:
                found = await check_rounds(self._root, states.etcd, seconds=arguments.check)
                self._add("check perf, xl: 1 KiB writes", *found, "1/s")
        finally:
            states.kill_hub()
            states.etcd.stop()

    async def _restarts(self, states: States, of: str) -> None:
        starts = [
            (await states.restart_hub(), await states.restart_etcd())
            for _ in range(self._arguments.rounds)
        ]

        def add(name: str, unit: str, read: Callable[[Start], float], goal: str = "") -> None:
            hub, etcd = (median(read(each) for each in side) for side in zip(*starts, strict=True))
            self._add(name, hub, etcd, unit, goal=goal)

        add(f"restart to ready, {of}", "s", lambda found: found.seconds, "<= 0.20")
        add("  memory then", "MiB", lambda found: found.usage.rss_mib, "<= 0.25")
        add("  without file pages", "MiB", lambda found: found.usage.anon_mib)

    async def _snapshots(self, states: States) -> None:
        hub, etcd = states.hub_snapshot, await states.etcd_snapshot()
        self._add("snapshot, time", hub.seconds, etcd.seconds, "s")
        self._add("snapshot, size", hub.size / 2**20, etcd.size / 2**20, "MiB")

    async def _writes(self, states: States) -> None:
        clusters = self._arguments.clusters
        root = self._root / "alone"
        await asyncio.to_thread(root.mkdir)
        alone = await make_site(root, self._arguments.port + 1, clusters)
        key = load_hub_key(alone.key_file, outside=alone.data_dir)
        store = Store.open(alone.store_dir, hub_key=key, clock=SystemClock())
        try:
            rounds = await write_rounds(
                states.site,
                store,
                states.etcd,
                documents=cluster_documents(clusters, max(CLIENTS)),
                rounds=self._arguments.rounds * 2,
                seconds=self._arguments.seconds,
            )
        finally:
            await store.close()
        for clients in sorted({found.clients for found in rounds}):
            etcd = rate_of(rounds, clients, "etcd")
            for target in ("store", "API"):
                rate = rate_of(rounds, clients, target)
                self._add(f"writes, {clients} clients, {target}", rate, etcd, "1/s")


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clusters", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3, help="restarts; twice as many of writes")
    parser.add_argument("--seconds", type=float, default=1.5, help="of one round of writes")
    parser.add_argument(
        "--check", type=float, default=15, help="seconds for the store; 0: no check"
    )
    parser.add_argument("--port", type=int, default=17600)
    parser.add_argument("--dir", type=Path, help="a directory on the disk to measure")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    arguments = parser.parse_args()
    place = None if arguments.dir is None else arguments.dir.resolve()
    raise_descriptors(_DESCRIPTORS)
    versions = {name: version_of(find_program(name)) for name in ("etcd", "etcdctl")}
    say_load()
    with tempfile.TemporaryDirectory(prefix="hublet-perf-", dir=place) as root:
        cache_bytecode(Path(root))
        say("etcd, etcdctl", ", ".join(versions.values()))
        say("file system", file_system(Path(root)))
        comparison, began = Comparison(Path(root), arguments), time.monotonic()
        uvloop.run(comparison.run())
        say("took", f"{time.monotonic() - began:.0f} s")
    say_load()
    if arguments.json is not None:
        report = {
            "etcd": versions["etcd"],
            "clusters": arguments.clusters,
            "load": os.getloadavg(),
            "figures": [asdict(figure) for figure in comparison.figures],
        }
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
