"""The real kubectl where it follows: get -w, events --watch, wait."""

import asyncio
import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.cli import Kubectl
from tests.hubs import InProcess, running_hub
from tests.server.support import CLUSTERS, ROOT_CA

pytestmark = pytest.mark.asyncio(loop_scope="module")


def fresh(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def ns() -> str:
    return fresh("ns")


async def cluster(hub: InProcess, name: str) -> None:
    await hub.admin.create(CLUSTERS, {"metadata": {"name": name}})


async def read_until(process: asyncio.subprocess.Process, wanted: Callable[[str], bool]) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(20):
        while True:
            line = (await process.stdout.readline()).decode()
            assert line, "the watch ended"
            if wanted(line):
                return line


async def test_a_watch_shows_additions_changes_and_deletions_and_ends_with_the_hub(
    kubectl: Path, tmp_path: Path
) -> None:
    async with running_hub(tmp_path / "data") as hub:
        k = Kubectl(kubectl, hub.kubeconfig, tmp_path)
        await k.ok("create", "cm", "there", "-n", "default")
        process = await k.start(
            "get", "cm", "-w", "--output-watch-events", "-o", "json", "-n", "default"
        )
        seen: list[tuple[str, str]] = []

        def note(line: str) -> bool:
            found = json.loads(line)
            seen.append((found["type"], found["object"]["metadata"]["name"]))
            return True

        for _ in range(2):
            await read_until(process, note)
        await k.ok("create", "cm", "fresh", "-n", "default")
        await read_until(process, note)
        await k.ok("label", "cm", "fresh", "a=b", "-n", "default")
        await read_until(process, note)
        await k.ok("delete", "cm", "fresh", "-n", "default")
        await read_until(process, note)
        assert seen == [
            ("ADDED", ROOT_CA),
            ("ADDED", "there"),
            ("ADDED", "fresh"),
            ("MODIFIED", "fresh"),
            ("DELETED", "fresh"),
        ]
    async with asyncio.timeout(20):
        out, err = await process.communicate()
    assert (process.returncode, out, err) == (0, b"", b"")


async def test_a_watched_table_prints_its_head_once(k: Kubectl, ns: str) -> None:
    await k.ok("create", "namespace", ns)
    await k.ok("create", "cm", "c1", "-n", ns)
    process = await k.start("get", "cm", "-w", "-n", ns)
    lines = [await read_until(process, bool) for _ in range(3)]
    await k.ok("create", "cm", "c2", "--from-literal=a=b", "-n", ns)
    lines.append(await read_until(process, bool))
    await k.ok("delete", "cm", "c2", "-n", ns)
    lines.append(await read_until(process, bool))
    process.terminate()
    await process.communicate()
    assert [line.split()[0] for line in lines] == ["NAME", "c1", ROOT_CA, "c2", "c2"]
    assert [line.split()[1] for line in lines] == ["DATA", "0", "1", "1", "1"]


async def test_a_watch_may_leave_out_what_is_there(k: Kubectl, ns: str) -> None:
    await k.ok("create", "namespace", ns)
    process = await k.start("get", "cm", "--watch-only", "-o", "name", "-v=7", "-n", ns)
    assert process.stderr is not None
    async with asyncio.timeout(20):  # the client's log says when the watch is open
        while "watch=true" not in (await process.stderr.readline()).decode():
            pass
        while "200 OK" not in (await process.stderr.readline()).decode():
            pass
    await k.ok("create", "cm", "fresh", "-n", ns)
    assert await read_until(process, bool) == "configmap/fresh\n"
    process.terminate()
    assert (await process.communicate())[0] == b""


async def test_new_events_are_followed(k: Kubectl, hub: InProcess, ns: str) -> None:
    await k.ok("create", "namespace", ns)
    path = f"/api/v1/namespaces/{ns}/events"
    about = {"kind": "ConfigMap", "namespace": ns, "name": "c"}
    event = {"involvedObject": about, "reason": "Demo", "type": "Normal", "message": "m"}
    await hub.admin.create(path, {"metadata": {"name": "first"}, **event})
    process = await k.start("events", "--watch", "-n", ns)
    lines = [await read_until(process, bool) for _ in range(2)]
    await hub.admin.create(path, {"metadata": {"name": "second"}, **event, "reason": "Second"})
    lines.append(await read_until(process, bool))
    process.terminate()
    await process.communicate()
    assert [line.split()[-3] for line in lines[1:]] == ["Demo", "Second"]


async def test_wait_returns_when_an_object_is_created(k: Kubectl, ns: str) -> None:
    await k.ok("create", "namespace", ns)
    process = await k.start("wait", "--for=create", "cm/late", "-n", ns, "--timeout=20s")
    await k.ok("create", "cm", "late", "-n", ns)
    async with asyncio.timeout(20):
        out, _ = await process.communicate()
    assert (process.returncode, out) == (0, b"configmap/late condition met\n")


async def test_a_watch_of_one_object_shows_only_that(k: Kubectl, ns: str) -> None:
    await k.ok("create", "namespace", ns)
    for name in ("c1", "c2"):
        await k.ok("create", "cm", name, "-n", ns)
    process = await k.start("get", "cm", "c1", "-w", "-o", "name", "-n", ns)
    assert await read_until(process, bool) == "configmap/c1\n"
    await k.ok("label", "cm", "c2", "a=b", "-n", ns)
    await k.ok("label", "cm", "c1", "a=b", "-n", ns)
    assert await read_until(process, bool) == "configmap/c1\n"
    process.terminate()
    assert (await process.communicate())[0] == b""


async def test_wait_returns_when_a_condition_comes_true(k: Kubectl, hub: InProcess) -> None:
    name = fresh("mc")
    await cluster(hub, name)
    process = await k.start(
        "wait", "--for=condition=HubAcceptedManagedCluster", f"managedcluster/{name}",
        "--timeout=20s",
    )  # fmt: skip
    await k.ok(
        "patch", "managedcluster", name, "--type=merge", "-p", '{"spec":{"hubAcceptsClient":true}}'
    )
    async with asyncio.timeout(20):
        out, _ = await process.communicate()
    assert process.returncode == 0
    assert out.decode() == (
        f"managedcluster.cluster.open-cluster-management.io/{name} condition met\n"
    )


async def test_wait_gives_up_after_its_timeout(k: Kubectl, hub: InProcess) -> None:
    name = fresh("mc")
    await cluster(hub, name)
    late = await k.run("wait", "--for=condition=Never", f"managedcluster/{name}", "--timeout=1s")
    assert (late.code, late.err) == (
        1,
        f"error: timed out waiting for the condition on managedclusters/{name}\n",
    )
