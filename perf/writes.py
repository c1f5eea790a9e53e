"""Durable writes a second through the whole API, with the hub on one core.

    python -m perf.writes --clients 64 --seconds 10

Each client is a cluster's agent with a certificate and a connection of its own (mutual TLS,
HTTP/2), and sends its next write when the last was answered; an answer comes after the commit's
fsync. Three kinds of write: a PUT of a ManagedCluster's status (4 KB), a merge patch of its
conditions as OCM's agents send it, and a Lease whose holder changes (protobuf, as client-go's
leader election; a mere renewal is kept in memory and would be no durable write). The hub has one
core of the machine, this process the others. The goal is 1,500 a second.
"""

import argparse
import asyncio
import os
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop

from hub.http.client import Client, Poller
from hub.meta import Obj
from hub.meta.codec.json import decode, encode
from hub.meta.protobuf import encode_envelope
from perf.drive import ApiWriter, Document, Rate, Writer, drive
from perf.fleet import cluster_documents
from perf.hub import Site, cache_bytecode, make_site, serving
from perf.machine import CpuMeter, file_system, median, say, say_load
from tools.simulate.clusterbody import JOINED, LEASE_NAME
from tools.simulate.resource import CLUSTERS, LEASES, MERGE_PATCH, PROTOBUF
from tools.simulate.resource import JSON as JSON_TYPE


class Patcher:
    """Patches the conditions of a ManagedCluster, at the revision and uid of the last answer."""

    def __init__(self, client: Client, document: Document) -> None:
        self._client, self._turn = client, 0
        self._target = CLUSTERS.path(name=document.name)
        self._obj: Obj | None = None

    async def write(self) -> None:
        """Send the next patch. Raises ValueError for an answer that is not 200."""
        if self._obj is None:
            self._obj = decode(await _ask(self._client, "GET", self._target))
        self._turn += 1
        meta, conditions = self._obj["metadata"], self._obj["status"]["conditions"]
        fresh = [dict(condition) for condition in conditions]
        joined = next(each for each in fresh if each["type"] == JOINED)
        joined["message"] = f"turn {self._turn}"
        patch = {
            "metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
            "status": {"conditions": fresh},
        }
        answer = await _ask(
            self._client, "PATCH", f"{self._target}/status", encode(patch), type_=MERGE_PATCH
        )
        self._obj = decode(answer)


class Holder:
    """Takes a Lease over, again and again."""

    def __init__(self, client: Client, document: Document) -> None:
        self._client, self._turn = client, 0
        self._target = LEASES.path(namespace=document.name, name=LEASE_NAME)
        self._lease: Obj | None = None

    async def write(self) -> None:
        """Send the Lease with the next holder. Raises ValueError for an answer that is not 200."""
        if self._lease is None:
            self._lease = decode(await _ask(self._client, "GET", self._target))
        self._turn += 1
        self._lease["spec"]["holderIdentity"] = f"holder-{self._turn}"
        body = encode_envelope(self._lease)
        answer = await _ask(self._client, "PUT", self._target, body, type_=PROTOBUF)
        self._lease = decode(answer)


KINDS: dict[str, type[ApiWriter | Patcher | Holder]] = {
    "status PUT": ApiWriter,
    "status patch": Patcher,
    "Lease holder": Holder,
}


async def _ask(
    client: Client, method: str, target: str, body: bytes = b"", *, type_: str = JSON_TYPE
) -> bytes:
    headers = [("accept", JSON_TYPE), ("content-type", type_)]
    answer = await client.request(method, target, headers, body=body)
    if answer.status != 200:
        raise ValueError(f"{method} {target}: {answer.status} {answer.body[:300]!r}")
    return answer.body


class Writes:
    """One run against one hub."""

    def __init__(self, site: Site, hub_pid: int, arguments: argparse.Namespace) -> None:
        self._site, self._pid, self._arguments = site, hub_pid, arguments

    async def run(self) -> None:
        """Write in every way, in turns."""
        arguments = self._arguments
        documents = [
            Document(each) for each in cluster_documents(arguments.clusters, arguments.clients)
        ]
        wanted = {name: kind for name, kind in KINDS.items() if arguments.only in name}
        found: dict[str, list[tuple[Rate, float, float]]] = {name: [] for name in wanted}
        async with AsyncExitStack() as stack:
            poller = Poller()
            stack.callback(poller.close)
            clients = [
                await stack.enter_async_context(self._site.agent(each.name, poller=poller))
                for each in documents
            ]
            pairs = list(zip(clients, documents, strict=True))
            for _ in range(arguments.rounds):
                for name, kind in wanted.items():
                    writers = [kind(client, document) for client, document in pairs]
                    found[name].append(await self._round(writers))
        for name, rounds in found.items():
            _report(name, rounds)

    async def _round(self, writers: Sequence[Writer]) -> tuple[Rate, float, float]:
        """Return the rate, and the cores that the hub and this process used."""
        await asyncio.gather(*(writer.write() for writer in writers))
        hub, own = CpuMeter(self._pid), CpuMeter(os.getpid())
        rate = await drive([writer.write for writer in writers], self._arguments.seconds)
        return rate, hub.share(), own.share()


def _report(name: str, rounds: list[tuple[Rate, float, float]]) -> None:
    each = " ".join(f"{rate.per_s:.0f}" for rate, _, _ in rounds)
    say(f"{name}: writes a second", f"{median(r.per_s for r, _, _ in rounds):.0f}  ({each})")
    p50, p99 = median(r.p50_ms for r, _, _ in rounds), median(r.p99_ms for r, _, _ in rounds)
    say("  answered in (50%, 99%)", f"{p50:.1f}, {p99:.1f} ms")
    hub, own = median(h for _, h, _ in rounds), median(o for _, _, o in rounds)
    say("  cores used: hub, clients", f"{hub:.2f}, {own:.2f}")
    cost = median(share / rate.per_s for rate, share, _ in rounds)
    say("  hub CPU a write", f"{cost * 1e6:.0f} us")


async def measure(root: Path, arguments: argparse.Namespace) -> None:
    """Make a hub with a fleet, give it a core, and write to it."""
    site = await make_site(root, arguments.port, arguments.clusters)
    async with serving(site) as pid:
        if arguments.pid_file is not None:
            arguments.pid_file.write_text(f"{pid}\n")
        await Writes(site, pid, arguments).run()


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="a part of the name of one kind of write")
    parser.add_argument("--port", type=int, default=17600)
    parser.add_argument("--dir", type=Path, help="a directory on the disk to measure")
    parser.add_argument(
        "--pid-file", type=Path, help="where to write the hub's pid, for a profiler"
    )
    arguments = parser.parse_args()
    place = None if arguments.dir is None else arguments.dir.resolve()
    say_load()
    with tempfile.TemporaryDirectory(prefix="hublet-perf-", dir=place) as root:
        cache_bytecode(Path(root))
        say("file system", file_system(Path(root)))
        uvloop.run(measure(Path(root), arguments))
    say_load()


if __name__ == "__main__":
    main()
