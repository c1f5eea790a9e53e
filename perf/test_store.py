"""What the store costs: one read, a scan, and durable writes of one, 32 and 256 writers at once.

The scratch directory is pytest's; on a tmpfs the writes' syncs cost nothing (--basetemp names
another place).
"""

import asyncio

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hub.fleet.kinds import MANAGED_CLUSTER, MANIFEST_WORK
from hub.meta.codec.json import decode
from hub.store import Page, Store, encode_key, prefix
from perf.conftest import CLUSTERS
from perf.drive import Document, StoreWriter
from perf.fleet import cluster_documents

_WORKS_A_CLUSTER = 12


def test_getting_and_reading_a_cluster(benchmark: BenchmarkFixture, store: Store) -> None:
    name = Document(cluster_documents(CLUSTERS, 1)[0]).name
    key = encode_key(MANAGED_CLUSTER.id, "", name)

    def read() -> bytes:
        stored = store.get(key)
        assert stored is not None
        return store.read(stored)

    assert decode(benchmark(read))["metadata"]["name"] == name


def test_scanning_the_works_without_reading_them(benchmark: BenchmarkFixture, store: Store) -> None:
    page: Page = benchmark(store.scan, prefix(MANIFEST_WORK.id, None))
    assert len(page.entries) == CLUSTERS * _WORKS_A_CLUSTER
    assert not page.has_more


def test_scanning_and_reading_the_clusters(benchmark: BenchmarkFixture, store: Store) -> None:
    def read() -> list[bytes]:
        return [store.read(each) for each in store.scan(prefix(MANAGED_CLUSTER.id, None)).entries]

    assert len({decode(each)["metadata"]["uid"] for each in benchmark(read)}) == CLUSTERS


@pytest.mark.parametrize("writers", [1, 32, 256])
def test_writing_durably_at_once(
    benchmark: BenchmarkFixture, store: Store, loop: asyncio.AbstractEventLoop, writers: int
) -> None:
    documents = [Document(each) for each in cluster_documents(CLUSTERS, writers)]
    steps = [StoreWriter(store, document) for document in documents]
    rounds, before = 0, store.position

    async def write() -> None:
        await asyncio.gather(*(step.write() for step in steps))

    def write_round() -> None:
        nonlocal rounds
        rounds += 1
        loop.run_until_complete(write())

    benchmark.pedantic(write_round, rounds=30, warmup_rounds=2)
    assert store.position.revision == before.revision + rounds * writers
    assert store.position.count == before.count
    stored = store.get(encode_key(MANAGED_CLUSTER.id, "", documents[-1].name))
    assert stored is not None
    turn = f", turn {rounds + 1}".encode()  # one more was taken for the index
    assert turn in store.read(stored)
