"""Memory of a hub with thousands of agents connected, and how fast one event reaches them all.

    python -m perf.watches --connections 3000 --clusters 0

Each connection has a client certificate of its own (mutual TLS, HTTP/2) and five watches open: its
ManagedCluster by name, its works, its add-ons and its Leases, and the ClusterManagementAddOns that
all of them watch. `--clusters` is how many clusters the hub holds: with 3,000 of them the pages of
the data file that it has read count as resident, too. The hub has one core, this process, which
opens all connections, the others.

Delay: from before one write to a ClusterManagementAddOn is sent until the last connection's watch
has decrypted its event here; so it holds the write's commit and what this process needs to read
all the events, in Python. Goals: 256 MiB, 250 ms on an otherwise idle core.
"""

import argparse
import asyncio
import os
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop

from hub.http.client import Client, ClientStream, Poller
from hub.meta import Obj
from hub.meta.codec.json import decode, encode
from perf.hub import Site, cache_bytecode, make_site, serving
from perf.machine import CpuMeter, raise_descriptors, say, say_load, spread, usage
from tools.simulate.look import read_metric
from tools.simulate.resource import JSON, MERGE_PATCH

_GROUP = "perf:watchers"
_RBAC = "rbac.authorization.k8s.io"
_OWNERS = "/apis/addon.open-cluster-management.io/v1alpha1/clustermanagementaddons"
_CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
_NAMESPACED = (
    "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks",
    "/apis/addon.open-cluster-management.io/v1alpha1/namespaces/{}/managedclusteraddons",
    "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
)
_NAME = "everyone"
_AT_ONCE = 64
_LIMIT_S = 30.0


async def _call(client: Client, method: str, target: str, body: Obj, type_: str = JSON) -> Obj:
    answer = await client.request(method, target, [("content-type", type_)], body=encode(body))
    if answer.status not in (200, 201):
        raise ValueError(f"{method} {target}: {answer.status} {answer.body[:300]!r}")
    return decode(answer.body)


async def _prepare(client: Client) -> str:
    """Let the group watch what its members watch, make what all watch; return its revision."""
    rules = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
    ]
    meta = {"name": _GROUP}
    role = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules}
    await _call(client, "POST", f"/apis/{_RBAC}/v1/clusterroles", role)
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": _GROUP},
        "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": _GROUP}],
    }
    await _call(client, "POST", f"/apis/{_RBAC}/v1/clusterrolebindings", binding)
    made = await _call(client, "POST", _OWNERS, {"metadata": {"name": _NAME}, "spec": {}})
    return str(made["metadata"]["resourceVersion"])


class Crowd:
    """All connections, and when each saw the last event."""

    def __init__(self, site: Site, stack: AsyncExitStack, revision: str) -> None:
        self._site, self._stack = site, stack
        self._query = f"?watch=true&allowWatchBookmarks=true&resourceVersion={revision}"
        self._query += "&timeoutSeconds=3000"
        self._streams: list[ClientStream] = []
        self._seen: set[int] = set()
        self._marker = b""
        self._all_seen = asyncio.Event()
        self._last_s = 0.0

    async def open(self, connections: int, poller: Poller) -> None:
        """Open all connections and watches, some at a time."""
        gate = asyncio.Semaphore(_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for number in range(connections):
                group.create_task(self._join(number, poller, gate))

    async def _join(self, number: int, poller: Poller, gate: asyncio.Semaphore) -> None:
        name = f"watcher-{number:05d}"
        own = [f"{_CLUSTERS}{self._query}&fieldSelector=metadata.name%3D{name}"]
        own += [f"{path.format(name)}{self._query}" for path in _NAMESPACED]
        async with gate:
            client = self._site.client(name, [_GROUP], poller=poller)
            await self._stack.enter_async_context(client)
            for target in own:
                await self._watch(client, target)
            self._streams.append(await self._watch(client, f"{_OWNERS}{self._query}"))

    async def _watch(self, client: Client, target: str) -> ClientStream:
        stream = await self._stack.enter_async_context(client.stream("GET", target))
        if stream.status != 200:
            raise ValueError(f"GET {target}: {stream.status} {(await stream.read())[:300]!r}")
        return stream

    async def read(self) -> None:
        """Read the watch that all have in common, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number, stream in enumerate(self._streams):
                group.create_task(self._follow(number, stream))

    async def _follow(self, number: int, stream: ClientStream) -> None:
        async for chunk in stream:
            if self._marker and self._marker in chunk:
                self._seen.add(number)
                if len(self._seen) == len(self._streams):
                    self._last_s = time.monotonic()
                    self._all_seen.set()
        raise ValueError(f"the hub ended the watch of connection {number}")

    async def broadcast(self, admin: Client, turn: int) -> tuple[float, float]:
        """Write once; return the seconds until the write was answered, and until all saw it."""
        self._marker, self._seen = f'"turn-{turn}"'.encode(), set()
        self._all_seen.clear()
        patch = {"metadata": {"annotations": {"perf": f"turn-{turn}"}}}
        began = time.monotonic()
        await _call(admin, "PATCH", f"{_OWNERS}/{_NAME}", patch, MERGE_PATCH)
        answered = time.monotonic()
        async with asyncio.timeout(_LIMIT_S):
            await self._all_seen.wait()
        return answered - began, self._last_s - began


async def measure(root: Path, arguments: argparse.Namespace) -> None:
    """Connect everyone, look at the memory, then broadcast."""
    site = await make_site(root, arguments.port, arguments.clusters)
    async with serving(site) as pid, AsyncExitStack() as stack:
        admin = await stack.enter_async_context(site.admin())
        poller = Poller()
        stack.callback(poller.close)
        crowd = Crowd(site, stack, await _prepare(admin))
        before, meter, began = usage(pid), CpuMeter(pid), time.monotonic()
        count = arguments.connections
        await crowd.open(count, poller)
        say("connections opened in", f"{time.monotonic() - began:.1f} s")
        say("  hub CPU a connection and its 5 watches", f"{meter.cpu_s() / count * 1e3:.2f} ms")
        await asyncio.sleep(arguments.rest)
        after = usage(pid)
        say("open watches, by the hub", f"{await read_metric(admin, 'hublet_watch_count'):.0f}")
        say("hub memory before", f"{before.rss_mib:.0f} MiB ({before.anon_mib:.0f} without files)")
        say("hub memory with all connected", f"{after.rss_mib:.0f} MiB ({after.anon_mib:.0f})")
        say("  a connection", f"{(after.anon_mib - before.anon_mib) / count * 1024:.1f} KiB")
        await _broadcasts(crowd, admin, pid, arguments)
        say("hub memory at the end", f"{usage(pid).rss_mib:.0f} MiB")


async def _broadcasts(crowd: Crowd, admin: Client, pid: int, arguments: argparse.Namespace) -> None:
    reading = asyncio.create_task(crowd.read())
    try:
        await crowd.broadcast(admin, 0)  # the first pays for what is made once
        hub, own = CpuMeter(pid), CpuMeter(os.getpid())
        found = []
        for turn in range(arguments.turns):
            found.append(await crowd.broadcast(admin, turn + 1))
            await asyncio.sleep(0.2)
    finally:
        reading.cancel()
    last = [seconds * 1000 for _, seconds in found]
    say("one event to all: min / median / max", f"{spread(last)} ms of {len(last)}")
    say("  the write answered", f"{spread([a * 1000 for a, _ in found])} ms")
    share = [meter.cpu_s() / len(found) * 1000 for meter in (hub, own)]
    say("  CPU of hub and of this process", f"{share[0]:.0f} and {share[1]:.0f} ms an event")


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--connections", type=int, default=3000)
    parser.add_argument("--clusters", type=int, default=0)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--rest", type=float, default=3, help="seconds before memory is looked at")
    parser.add_argument("--port", type=int, default=17600)
    arguments = parser.parse_args()
    raise_descriptors(arguments.connections + 500)
    say_load()
    with tempfile.TemporaryDirectory(prefix="hublet-perf-") as root:
        cache_bytecode(Path(root))
        uvloop.run(measure(Path(root), arguments))
    say_load()


if __name__ == "__main__":
    main()
