"""Durable writes a second: etcd, the hub's store, and the hub's whole API, in turns.

See `perf.etcd` for what each of the three includes.
"""

import asyncio
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from hub.clock import SystemClock
from hub.http.client import Poller
from hub.store import Draft, Op, Store, Write, create_hub_key, encode_index, encode_key
from perf.drive import ApiWriter, Document, EtcdWriter, Rate, StoreWriter, Writer, drive
from perf.etcd_process import EtcdProcess
from perf.grpc import EtcdClient
from perf.hub import Site
from perf.machine import median

CLIENTS = (1, 32, 256)
TARGETS = ("store", "API", "etcd")
_CHECK_CLIENTS, _CHECK_BYTES = 1000, 1024


@dataclass(frozen=True, slots=True)
class Round:
    """The rates of the three, taken one after the other."""

    clients: int
    rates: dict[str, Rate]


async def write_rounds(
    site: Site,
    store: Store,
    etcd: EtcdProcess,
    *,
    documents: Sequence[bytes],
    rounds: int,
    seconds: float,
) -> list[Round]:
    """Let N clients write to each in turns; `documents` are in all three already."""
    found = []
    for clients in CLIENTS:
        async with AsyncExitStack() as stack:
            writers = await _writers(stack, site, store, etcd, documents=documents[:clients])
            for each in writers.values():  # connections, TLS and caches are not what is measured
                await asyncio.gather(*(writer.write() for writer in each))
            for _ in range(rounds):
                rates = {
                    target: await drive([writer.write for writer in writers[target]], seconds)
                    for target in TARGETS
                }
                found.append(Round(clients, rates))
    return found


async def _writers(
    stack: AsyncExitStack,
    site: Site,
    store: Store,
    etcd: EtcdProcess,
    *,
    documents: Sequence[bytes],
) -> dict[str, list[Writer]]:
    poller = Poller()
    stack.callback(poller.close)
    made: dict[str, list[Writer]] = {target: [] for target in TARGETS}
    for document in documents:
        made["store"].append(StoreWriter(store, Document(document)))
        own = Document(document)
        client = await stack.enter_async_context(site.agent(own.name, poller=poller))
        made["API"].append(ApiWriter(client, own))
        peer = await EtcdClient.connect("127.0.0.1", etcd.port)
        stack.callback(peer.close)
        made["etcd"].append(EtcdWriter(peer, Document(document)))
    return made


def rate_of(rounds: Sequence[Round], clients: int, target: str) -> float:
    """Return the median writes a second of the rounds with so many clients."""
    return median(r.rates[target].per_s for r in rounds if r.clients == clients)


async def check_rounds(root: Path, etcd: EtcdProcess, *, seconds: float) -> tuple[float, float]:
    """Return writes a second of the store, and what ``etcdctl check perf`` says of etcd's."""
    said, _ = await asyncio.to_thread(etcd.control, "check", "perf", "--load=xl")
    found = re.search(r"[Tt]hroughput (?:is|too low:) *(\d+) writes/s", said)
    if found is None:
        raise ValueError(f"etcdctl check perf says no throughput: {said[-500:]}")
    return await _check_store(root, seconds), float(found[1])


async def _check_store(root: Path, seconds: float) -> float:
    clock = SystemClock()
    key = create_hub_key(root / "check.key", token=clock.token)
    store = Store.open(root / "check", hub_key=key, clock=clock)
    try:
        steps = [_Creator(store, number).write for number in range(_CHECK_CLIENTS)]
        return (await drive(steps, seconds)).per_s
    finally:
        await store.close()


class _Creator:
    """Creates objects of the size that etcdctl writes, ever new ones."""

    def __init__(self, store: Store, number: int) -> None:
        self._store, self._number = store, number
        self._names: Iterator[int] = iter(range(1_000_000))
        noise = random.Random(number).randbytes(_CHECK_BYTES // 2)
        self._draft = Draft(
            b'{"metadata":{"resourceVersion":"', b'"},"v":"%b"}' % noise.hex().encode()
        )
        self._index = encode_index({}, {})

    async def write(self) -> None:
        name = f"{self._number}-{next(self._names)}"
        key = encode_key("checks", "", name)
        await self._store.commit(Write(Op.CREATE, key, self._draft, self._index))
