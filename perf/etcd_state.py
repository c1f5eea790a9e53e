"""The same fleet in a hub and in an etcd: loading, restarts, memory, snapshots.

See `perf.etcd` for what the figures include.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from hub.clock import SystemClock
from hub.store import Store, load_hub_key
from perf.etcd_process import EtcdProcess
from perf.grpc import EtcdClient
from perf.hub import Site, make_site, start, wait_quiet, wait_ready
from perf.machine import Usage, usage
from tools.simulate.look import read_metric, wait_shipped

_REST_S = 3.0
_AT_ONCE = 100
_LOG_ENTRIES = 10_000
"""What is left of the log of a hub whose fleet was loaded more than an hour ago."""


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds from the program's start to its first answer, and its memory 3 s later."""

    seconds: float
    usage: Usage


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A whole snapshot."""

    seconds: float
    size: int


class States:
    """One fleet, twice."""

    def __init__(self, root: Path, site: Site, etcd: EtcdProcess) -> None:
        self._root, self.site, self.etcd = root, site, etcd
        self._bucket = f"file://{root}/bucket"
        self._hub = site.process(self._bucket)
        self.objects = 0
        self.hub_snapshot = Snapshot(0, 0)
        self.loaded: dict[str, Usage] = {}

    async def load(self) -> None:
        """Let the hub settle, then put what it has into etcd, key by key."""
        await self._settle()
        await asyncio.to_thread(self.etcd.start)
        await self._copy()
        self.loaded["etcd"] = usage(self.etcd.pid)
        self.etcd.stop()

    async def _settle(self) -> None:
        """Let the controllers add what is theirs, trim the log, and ship the first full."""
        alone = self.site.process()
        start(alone)
        try:
            await wait_ready(self.site, alone)
            await wait_quiet(self.site)
            self.loaded["hub"] = usage(alone.pid)
        finally:
            alone.stop()
        store = self._open()
        await store.compact_log(store.log_revision(keeping=_LOG_ENTRIES))
        self.objects = store.position.count
        await store.close()
        await self.start_hub()
        await wait_shipped(self._hub.kubeconfig, 120)
        async with self.site.admin() as client:
            spent = 'hublet_backup_duration_seconds_sum{{kind="full",phase="{}"}}'
            cut_s, put_s = [
                await read_metric(client, spent.format(phase)) for phase in ("cut", "put")
            ]
            self.hub_snapshot = Snapshot(
                cut_s + put_s,
                int(await read_metric(client, 'hublet_backup_last_bytes{kind="full"}')),
            )
        self.stop_hub()

    async def restore(self) -> None:
        """Restore the hub from its bucket, and go on with that one: its file is as if written anew.

        A file that grew has free pages between the objects, and the kernel maps whole stretches.
        """
        restored = replace(self.site, name="restored")
        command = [sys.executable, "-m", "tools.restore", "restore"]
        command += ["--from", self._bucket, "--into", str(restored.data_dir)]
        command += ["--key-file", str(restored.key_file)]
        await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
        self.site, self._hub = restored, restored.process(self._bucket)
        await self.start_hub()
        await wait_quiet(self.site)
        self.stop_hub()

    def _open(self) -> Store:
        key = load_hub_key(self.site.key_file, outside=self.site.data_dir)
        return Store.open(self.site.store_dir, hub_key=key, clock=SystemClock())

    async def _copy(self) -> None:
        store = self._open()
        client = await EtcdClient.connect("127.0.0.1", self.etcd.port)
        try:
            pairs = _pairs(store)
            while batch := list(islice(pairs, _AT_ONCE)):
                await asyncio.gather(*(client.put(key, value) for key, value in batch))
            key, value = next(_pairs(store))
            assert await client.get(key) == value, "etcd does not have what was put"
        finally:
            client.close()
            await store.close()

    async def restart_etcd(self) -> Start:
        """Start etcd alone, and stop it."""
        seconds = await asyncio.to_thread(self.etcd.start)
        await asyncio.sleep(_REST_S)
        found = Start(seconds, usage(self.etcd.pid))
        self.etcd.stop()
        return found

    async def restart_hub(self) -> Start:
        """Start the hub alone, and stop it."""
        seconds = await self.start_hub()
        await asyncio.sleep(_REST_S)
        found = Start(seconds, usage(self._hub.pid))
        self.stop_hub()
        return found

    async def start_hub(self) -> float:
        """Start the hub with its bucket; return the seconds until it was ready."""
        began = start(self._hub)
        return await wait_ready(self.site, self._hub) - began

    def stop_hub(self) -> None:
        """Stop the hub if it runs."""
        self._hub.stop()

    def kill_hub(self) -> None:
        """End the hub whatever it does; harmless when it does not run."""
        self._hub.kill()

    async def etcd_snapshot(self) -> Snapshot:
        """Have etcdctl save a snapshot of the running etcd."""
        path = self._root / "etcd.snapshot"
        said, seconds = await asyncio.to_thread(self.etcd.control, "snapshot", "save", str(path))
        if not path.exists():
            raise ValueError(f"etcdctl saved no snapshot: {said[-500:]}")
        size = path.stat().st_size
        path.unlink()
        return Snapshot(seconds, size)


def _pairs(store: Store) -> Iterator[tuple[bytes, bytes]]:
    """Yield every object as etcd would have it: a path, and the JSON in the clear."""
    after = None
    while True:
        page = store.scan(b"", after=after, limit=1000, is_counted=False)
        for entry in page.entries:
            yield b"/registry/" + entry.key.replace(b"\0", b"/"), store.read(entry)
        if not page.has_more:
            return
        after = page.entries[-1].key


async def make_states(root: Path, *, clusters: int, port: int) -> States:
    """Make a hub's directory with a fleet, and an empty etcd."""
    site = await make_site(root, port, clusters)
    return States(root, site, EtcdProcess(root / "etcd", port + 10))
