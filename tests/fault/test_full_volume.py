"""A hub whose volume fills up: it refuses writes, answers everything else, and needs no restart."""

import asyncio
import random
import re
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hub.meta import Obj
from tests.fault.volume import Volume, small_volume
from tests.hubs import Answer, Api, HubProcess

MAPS = "/api/v1/namespaces/default/configmaps"
FULL = re.compile(
    r"the store cannot take writes now: nothing was written, the volume or the map is full "
    r"\(mdb_\w+: [\w/ ]+\): free space, the store goes on by itself; reads go on"
)


def large(name: str) -> Obj:
    """Return an object of 200 kB that hardly compress."""
    return {
        "metadata": {"name": name},
        "data": {"text": random.Random(name).randbytes(100_000).hex()},
    }


async def write_until_refused(api: Api, prefix: str) -> tuple[set[str], Answer]:
    """Create large objects until one is not taken; return those that were, and the refusal."""
    taken: set[str] = set()
    for number in range(1_000):
        name = f"{prefix}-{number}"
        answer = await api.call("POST", MAPS, large(name))
        if answer.status != 201:
            return taken, answer
        taken.add(name)
    raise AssertionError("the volume never filled up")


def check_refusal(answer: Answer) -> None:
    found = answer.obj()
    assert FULL.fullmatch(found.pop("message")), answer.body
    assert found == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": "InsufficientStorage",
        "details": {"retryAfterSeconds": 5},
        "code": 507,
    }
    assert (answer.status, answer.headers["retry-after"]) == (507, "5")


async def names(api: Api) -> set[str]:
    items = (await api.get(MAPS))["items"]
    return {item["metadata"]["name"] for item in items}


async def check_readiness(api: Api) -> None:
    """A large write makes the hub not ready, until a small one finds room in pages set free."""
    for _ in range(5):
        check_refusal(await api.call("POST", MAPS, large("no-room")))
        ready = await api.call("GET", "/readyz")
        if ready.status == 500:
            break
    assert ready.status == 500
    lines = ready.body.decode().splitlines()
    (failed,) = (line for line in lines if line.startswith("[-]"))
    assert failed.startswith("[-]store failed: nothing was written, the volume or the map is full")
    assert lines[-1] == "readyz check failed"
    for path in ("/livez", "/healthz", "/readyz?exclude=store"):
        assert (await api.call("GET", path)).body == b"ok"


async def go_through_it(hub: HubProcess, volume: Volume, stack: AsyncExitStack) -> set[str]:
    """Fill the volume, look at what works, empty it; return the names of all that was written."""
    api = Api.from_kubeconfig(hub.kubeconfig)
    stack.push_async_callback(api.close)
    first = await api.create(MAPS, large("first"))
    since = f"?watch=1&resourceVersion={first['metadata']['resourceVersion']}"
    watch = await stack.enter_async_context(api.watch(MAPS + since))
    volume.fill(hub.pid)
    taken, refusal = await write_until_refused(api, "filling")
    check_refusal(refusal)
    await check_readiness(api)
    there = await names(api)
    assert there == taken | {"first", "kube-root-ca.crt"}
    assert await api.get(f"{MAPS}/first") == {"kind": "ConfigMap", "apiVersion": "v1", **first}
    late = await stack.enter_async_context(api.watch(f"{MAPS}?watch=1"))
    assert {(await late.next())["object"]["metadata"]["name"] for _ in there} == there
    volume.free(hub.pid)
    made = await api.create(MAPS, large("room-again"))
    assert (await api.call("GET", "/readyz")).body == b"ok"
    seen = [(await watch.next())["object"]["metadata"]["name"] for _ in range(len(taken) + 1)]
    assert set(seen[:-1]) == taken
    assert seen[-1] == "room-again"
    assert await late.next() == {"type": "ADDED", "object": made}
    assert await names(api) == there | {"room-again"}
    return await names(api)


@pytest.mark.timeout(180)
async def test_a_hub_on_a_full_volume_reads_on_and_writes_again_without_a_restart(
    tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    async with AsyncExitStack() as stack:
        volume = stack.enter_context(small_volume(tmp_path, data_file="data/store/data.mdb"))
        with capsys.disabled():
            print(f"[{volume.kind}]", end="")
        flags = ("--key-file", str(tmp_path / "key"), "--object-store", (tmp_path / "b").as_uri())
        hub = HubProcess(volume.path / "data", free_port, *flags)
        hub.log = tmp_path / "hub.log"
        stack.callback(hub.__exit__)
        await asyncio.to_thread(hub.start)
        async with AsyncExitStack() as clients:
            written = await go_through_it(hub, volume, clients)
        assert await asyncio.to_thread(hub.stop) == 0
        await asyncio.to_thread(hub.start)
        api = Api.from_kubeconfig(hub.kubeconfig)
        stack.push_async_callback(api.close)
        assert await names(api) == written
        assert await asyncio.to_thread(hub.stop) == 0
