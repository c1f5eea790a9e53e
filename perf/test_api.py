"""What lists cost through a whole hub: TLS, HTTP/2, RBAC, decoding, encoding; client included."""

import asyncio
from dataclasses import dataclass

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hub.http.client import Client, Response
from hub.meta.codec.json import decode
from perf.conftest import CLUSTERS
from tools.simulate.resource import CLUSTERS as CLUSTER
from tools.simulate.resource import JSON, WORKS

_TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io"
_METADATA = f"{JSON};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_WORKS_A_CLUSTER = 12


@dataclass(frozen=True, slots=True)
class _List:
    """What is asked for, and what the answer must hold."""

    path: str
    accept: str
    field: str
    count: int


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(_List(CLUSTER.path(), JSON, "items", CLUSTERS), id="clusters"),
        pytest.param(_List(CLUSTER.path(), _TABLE, "rows", CLUSTERS), id="clusters as Table"),
        pytest.param(
            _List(CLUSTER.path(), _METADATA, "items", CLUSTERS), id="clusters, metadata only"
        ),
        pytest.param(_List(WORKS.path(), JSON, "items", CLUSTERS * _WORKS_A_CLUSTER), id="works"),
        pytest.param(
            _List(f"{WORKS.path()}?limit=500", JSON, "items", 500), id="works, a page of 500"
        ),
    ],
)
def test_listing(
    benchmark: BenchmarkFixture,
    admin: Client,
    loop: asyncio.AbstractEventLoop,
    wanted: _List,
) -> None:
    accept = [("accept", wanted.accept)]

    def ask() -> Response:
        return loop.run_until_complete(admin.request("GET", wanted.path, accept))

    answer = benchmark.pedantic(ask, rounds=10, warmup_rounds=1)
    assert answer.status == 200, answer.body[:300]
    found = decode(answer.body)[wanted.field]
    names = {
        (meta.get("namespace"), meta["name"])
        for meta in ((each.get("object") or each)["metadata"] for each in found)
    }
    assert len(found) == len(names) == wanted.count
