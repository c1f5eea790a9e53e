"""Compressed answers: large ones, when asked for, whole after decompression; watches never."""

import gzip
import json

import pytest

from tests.hubs import Answer, InProcess
from tests.server.support import TABLE, config_maps, named, over_http1, raw_get

pytestmark = pytest.mark.asyncio(loop_scope="module")
ASKED = ("accept-encoding", "gzip")


async def fill(hub: InProcess, ns: str, count: int, size: int) -> None:
    for position in range(count):
        body = named(f"big-{position:02}", data={"x": f"{position % 10}" * size})
        await hub.admin.create(config_maps(ns), body)


def plain(answer: Answer) -> bytes:
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["vary"] == "Accept-Encoding"
    return gzip.decompress(answer.body)


@pytest.mark.parametrize("accept", ["application/json", TABLE])
async def test_a_large_list_is_compressed_in_slices(hub: InProcess, ns: str, accept: str) -> None:
    await fill(hub, ns, 12, 100_000)
    query = f"{config_maps(ns)}?includeObject=Object"
    asked = await raw_get(hub, query, ("accept", accept), ASKED)
    whole = await raw_get(hub, query, ("accept", accept))
    assert json.loads(plain(asked)) == json.loads(whole.body)
    assert "content-encoding" not in whole.headers
    assert "vary" not in whole.headers
    assert len(whole.body) > 1_200_000 > 100 * len(asked.body)
    assert "content-length" not in asked.headers


async def test_one_large_object_is_compressed(hub: InProcess, ns: str) -> None:
    await fill(hub, ns, 1, 200_000)
    path = f"{config_maps(ns)}/big-00"
    asked = await raw_get(hub, path, ("accept-encoding", "deflate, gzip;q=0.8"))
    assert int(asked.headers["content-length"]) == len(asked.body)
    assert json.loads(plain(asked)) == await hub.admin.get(path)


async def test_http1_is_compressed_alike(hub: InProcess, ns: str) -> None:
    await fill(hub, ns, 6, 100_000)
    client = over_http1(hub)
    try:
        answer = await client._client.request("GET", config_maps(ns), [ASKED], timeout_s=20)
    finally:
        await client.close()
    found = json.loads(plain(Answer(answer.status, answer.headers, answer.body)))
    assert found == await hub.admin.get(config_maps(ns))


@pytest.mark.parametrize("coding", ["gzip;q=0", "deflate", "identity", ""])
async def test_who_does_not_ask_gets_it_plain(hub: InProcess, ns: str, coding: str) -> None:
    await fill(hub, ns, 1, 200_000)
    answer = await raw_get(hub, f"{config_maps(ns)}/big-00", ("accept-encoding", coding))
    assert "content-encoding" not in answer.headers
    assert len(answer.obj()["data"]["x"]) == 200_000


async def test_a_small_answer_stays_plain(hub: InProcess, ns: str) -> None:
    await fill(hub, ns, 1, 100_000)
    answer = await raw_get(hub, config_maps(ns), ASKED)
    assert "content-encoding" not in answer.headers


async def test_a_watch_is_never_compressed(hub: InProcess, ns: str) -> None:
    await fill(hub, ns, 6, 100_000)
    async with hub.admin._client.stream("GET", f"{config_maps(ns)}?watch=1", [ASKED]) as stream:
        assert "content-encoding" not in stream.headers
        first = await anext(aiter(stream))
    assert first.startswith(b'{"type":"ADDED"')
