"""A closed loop: N clients, each sends its next write when the last one was answered.

    rate = await drive([client.write for client in clients], seconds=3)

Nothing is counted that was not answered, and an answer that is not a success raises.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from hub.fleet.kinds import MANAGED_CLUSTER
from hub.http.client import Client
from hub.meta.codec.json import decode, draft
from hub.registry.objects import index_of
from hub.store import Draft, Index, Key, Op, Revision, Store, Write, encode_key
from perf.grpc import EtcdClient
from perf.machine import percentile

Step: TypeAlias = Callable[[], Awaitable[None]]
_MARK = b"Managed cluster joined"
_REVISION = b'"resourceVersion":"'
_CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"


@dataclass(frozen=True, slots=True)
class Rate:
    """What a loop did: writes a second, and how long one took, in milliseconds."""

    per_s: float
    p50_ms: float
    p99_ms: float


async def drive(steps: Sequence[Step], seconds: float) -> Rate:
    """Repeat every step beside the others for `seconds`; its first failure ends all."""
    took: list[float] = []
    began = time.monotonic()
    end = began + seconds

    async def repeat(step: Step) -> None:
        now = time.monotonic()
        while now < end:
            await step()
            done = time.monotonic()
            took.append(done - now)
            now = done

    try:
        async with asyncio.TaskGroup() as group:
            for step in steps:
                group.create_task(repeat(step))
    except BaseExceptionGroup as failures:  # the others only follow the first
        raise failures.exceptions[0] from None
    elapsed = time.monotonic() - began
    p50, p99 = percentile(took, 0.5), percentile(took, 0.99)
    return Rate(len(took) / elapsed, p50 * 1000, p99 * 1000)


class Writer(Protocol):
    """Someone who writes one ManagedCluster again and again."""

    async def write(self) -> None:
        """Write the next state, durably."""
        ...


class Document:
    """A ManagedCluster whose status says something new each time."""

    __slots__ = ("_head", "_tail", "_turn", "name")

    def __init__(self, document: bytes) -> None:
        self._head, mark, self._tail = document.partition(_MARK)
        assert mark, "the sample has no condition to change"
        self.name: str = decode(document)["metadata"]["name"]
        self._turn = 0

    def next(self) -> bytes:
        """Return the next state."""
        self._turn += 1
        return b"%b%b, turn %d%b" % (self._head, _MARK, self._turn, self._tail)


class StoreWriter:
    """Writes to the store itself: group commit, log, state hash and fsync, in this process."""

    def __init__(self, store: Store, document: Document) -> None:
        self._store, self._document = store, document
        self._key: Key = encode_key(MANAGED_CLUSTER.id, "", document.name)
        self._index: Index = index_of(MANAGED_CLUSTER, decode(document.next()))
        stored = store.get(self._key)
        self._revision: Revision | None = stored.revision if stored else None

    async def write(self) -> None:
        """Commit an update of the last revision (the first time perhaps a creation)."""
        head, tail = draft_of(self._document.next())
        is_there = self._revision is not None
        write = Write(
            op=Op.UPDATE if is_there else Op.CREATE,
            key=self._key,
            draft=Draft(head, tail),
            index=self._index,
            expect=self._revision,
        )
        self._revision = (await self._store.commit(write))[0]


def draft_of(document: bytes) -> tuple[bytes, bytes]:
    """Split a document around the digits of its resourceVersion, without decoding it."""
    at = document.find(_REVISION)
    if at < 0:
        return draft(decode(document))
    at += len(_REVISION)
    return document[:at], document[document.index(b'"', at) :]


class EtcdWriter:
    """Writes the same bytes to etcd with a plain Put.

    Cheaper than what kube-apiserver asks of it, a transaction that compares the revision.
    """

    def __init__(self, client: EtcdClient, document: Document) -> None:
        self._client, self._document = client, document
        self._key = f"/registry/managedclusters/{document.name}".encode()

    async def write(self) -> None:
        """Put the next state."""
        await self._client.put(self._key, self._document.next())


class ApiWriter:
    """PUTs a ManagedCluster's status through the whole API, at the revision of the last answer."""

    def __init__(self, client: Client, document: Document) -> None:
        self._client, self._document = client, document
        self._target = f"{_CLUSTERS}/{document.name}"
        self._revision = b""

    async def write(self) -> None:
        """Send the next status. Raises ValueError for an answer that is not 200."""
        if not self._revision:
            await self._read()
        head, tail = draft_of(self._document.next())
        body = head + self._revision + tail
        headers = [("content-type", "application/json"), ("accept", "application/json")]
        answer = await self._client.request("PUT", f"{self._target}/status", headers, body=body)
        self._revision = _revision_of(answer.status, answer.body)

    async def _read(self) -> None:
        answer = await self._client.request("GET", self._target)
        self._revision = _revision_of(answer.status, answer.body)


def _revision_of(status: int, body: bytes) -> bytes:
    if status != 200:
        raise ValueError(f"{status}: {body[:300]!r}")
    at = body.index(_REVISION) + len(_REVISION)
    return body[at : body.index(b'"', at)]
