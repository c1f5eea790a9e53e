"""A stop in order: watches end cleanly, what is under way is answered, all within ten seconds."""

import asyncio
import contextlib
import time
from pathlib import Path

import pytest

from hub.store import Store, Write, decode_key
from tests.hubs import Answer, Api, HubProcess, Watch, running_hub
from tests.server.support import config_maps, named

CONNECTIONS, WATCHES = 10, 50


async def read_to_the_end(watch: Watch) -> int:
    """Return how many events came before the stream ended; a cut stream raises."""
    count = 0
    with contextlib.suppress(StopAsyncIteration):
        while True:
            await watch.next(timeout_s=30)
            count += 1
    return count


@pytest.mark.timeout(120)
async def test_a_hub_with_500_watches_stops_cleanly_within_ten_seconds(
    tmp_path: Path, free_port: int
) -> None:
    hub = HubProcess(tmp_path / "data", free_port)
    async with contextlib.AsyncExitStack() as stack:
        await asyncio.to_thread(hub.start)
        stack.callback(hub.__exit__)
        apis = [Api.from_kubeconfig(hub.kubeconfig) for _ in range(CONNECTIONS)]
        for api in apis:
            stack.push_async_callback(api.close)
        path = config_maps("default")
        made = await apis[0].create(path, named("first"))
        query = f"{path}?watch=1&resourceVersion={made['metadata']['resourceVersion']}"
        watches = [
            await stack.enter_async_context(api.watch(query))
            for api in apis
            for _ in range(WATCHES)
        ]
        await apis[0].create(path, named("second"))
        reading = [asyncio.ensure_future(read_to_the_end(watch)) for watch in watches]
        future = f"{path}?resourceVersion=999999999"
        under_way: list[asyncio.Future[Answer]] = [
            asyncio.ensure_future(api.call("GET", future)) for api in apis
        ]
        await apis[0].get("/version")  # whatever was asked before has reached the hub
        began = time.monotonic()
        code = await asyncio.to_thread(hub.stop)
        assert (code, time.monotonic() - began < 10) == (0, True)
        assert await asyncio.gather(*reading) == [1] * CONNECTIONS * WATCHES
        answers = await asyncio.gather(*under_way)
        assert {answer.status for answer in answers} == {504}
        assert {answer.obj()["reason"] for answer in answers} == {"Timeout"}


async def test_a_write_that_is_under_way_is_done_and_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, is_held, is_free = Store.commit, asyncio.Event(), asyncio.Event()

    async def slow(self: Store, *writes: Write, **rest: object) -> object:
        if any(decode_key(write.key)[2] == "late" for write in writes):
            is_held.set()
            await is_free.wait()
        return await commit(self, *writes, **rest)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(Store, "commit", slow)
    async with running_hub(tmp_path / "data") as hub:
        api = Api.from_kubeconfig(hub.kubeconfig)
        asking = asyncio.ensure_future(api.call("POST", config_maps("default"), named("late")))
        await is_held.wait()
        asyncio.get_running_loop().call_later(0.2, is_free.set)  # the stop has begun by then
    answer = await asking
    await api.close()
    assert answer.status == 201
    monkeypatch.undo()
    async with running_hub(tmp_path / "data") as hub:
        found = await hub.admin.get(f"{config_maps('default')}/late")
        assert found["metadata"]["uid"] == answer.obj()["metadata"]["uid"]
