"""For real: a hub is stopped in its tracks, another takes its prefix, and the first wakes up."""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hub.http.client import ConnectionLost
from tests.hubs import Api, HubProcess, running_hub
from tests.seaweed import seaweed
from tests.server.test_backup import (
    MAPS,
    Bucket,
    check_prefix,
    key_of,
    make,
    restore,
    serve,
    shipped,
    uids,
)

LATE = {"metadata": {"name": "t-late"}}


@pytest.fixture(params=["file", "s3"])
def bucket(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bucket]:
    if request.param == "file":
        yield Bucket((tmp_path / "bucket").as_uri(), tmp_path / "bucket")
        return
    with seaweed() as server:
        for name, value in server.environ.items():
            monkeypatch.setenv(name, value)
        yield Bucket(server.url(f"hubs/{secrets.token_hex(6)}"), tmp_path, server)


def another_port(taken: int) -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    return port if port != taken else another_port(taken)


async def ask_until_it_ends(api: Api) -> list[int]:
    """Write and read until nobody answers; return what was answered, in order."""
    statuses: list[int] = []
    with contextlib.suppress(ConnectionLost, OSError):
        statuses.append((await api.call("POST", MAPS, LATE)).status)
        while True:
            statuses.append((await api.call("GET", f"{MAPS}/t-1")).status)
    return statuses


@pytest.mark.timeout(120)
async def test_a_hub_that_wakes_up_after_another_took_over_never_commits_again(
    tmp_path: Path, bucket: Bucket, free_port: int
) -> None:
    """What is promised of a write sent to the old hub before it has found out:

    it may be acknowledged, as every write that does not ask to be durable (the hub finds out with
    its next segment, or with its heartbeat after 30 s at most); it is never in the bucket; and the
    old hub's directory keeps it.
    """
    flags = ("--object-store", bucket.url, "--key-file", str(key_of(tmp_path)))
    old_dir, new_dir = tmp_path / "old", tmp_path / "new"
    with contextlib.ExitStack() as hubs:
        old = hubs.enter_context(HubProcess(old_dir, free_port, *flags))
        async with contextlib.aclosing(_Closing(old)) as old_api:
            await make(old_api.api, "t-1")
            await shipped(old_api.api)
            os.kill(old.pid, signal.SIGSTOP)
            restore(tmp_path, bucket, "new")
            new = hubs.enter_context(HubProcess(new_dir, another_port(free_port), *flags))
            async with contextlib.aclosing(_Closing(new)) as new_api:
                await make(new_api.api, "t-2")
                await shipped(new_api.api)
                taken = bucket.head()
                assert (taken.epoch, taken.writer.pid) == (2, new.pid)
                os.kill(old.pid, signal.SIGCONT)
                statuses = await ask_until_it_ends(old_api.api)
                assert await asyncio.to_thread(old.wait) == 75
                assert f"process {new.pid} on" in old.log.read_text()
                head = bucket.head()
                assert (head.epoch, head.writer) == (2, taken.writer)
                await make(new_api.api, "t-3")
                await shipped(new_api.api)
                assert bucket.head().seq > taken.seq
                expected = {f"{MAPS}/t-1", f"{MAPS}/t-2", f"{MAPS}/t-3"}
                assert set(await uids(new_api.api, MAPS)) == expected
                check_answers(statuses)
                refused = await asyncio.to_thread(serve, old_dir, *flags)
                assert refused.returncode == 8, refused.stderr
                assert f"process {new.pid} on" in refused.stderr
                assert bucket.head().writer == taken.writer
        os.kill(new.pid, signal.SIGTERM)
        assert await asyncio.to_thread(new.wait, 60) == 0
    head = check_prefix(tmp_path, bucket)
    assert (head.epoch, head.writer, head.released) == (2, taken.writer, True)
    restore(tmp_path, bucket, "check")
    kept = {"t-1", "t-late"} if statuses[:1] == [201] else {"t-1"}
    assert await names_in(old_dir, tmp_path) >= kept
    assert await names_in(tmp_path / "check", tmp_path) == {"t-1", "t-2", "t-3"}


def check_answers(statuses: list[int]) -> None:
    """From the moment it finds out it answers 503 to everything, and nothing else again."""
    assert set(statuses) <= {200, 201, 503}
    refused = [status == 503 for status in statuses]
    assert refused == sorted(refused), statuses


async def names_in(data_dir: Path, tmp_path: Path) -> set[str]:
    """Return the test's objects in a directory, run apart from its prefix."""
    async with running_hub(data_dir, key_file=key_of(tmp_path), detach=True) as hub:
        return {path.rpartition("/")[2] for path in await uids(hub.admin, MAPS)}


class _Closing:
    """The administrator's way to a hub process, closed with `aclose`."""

    def __init__(self, hub: HubProcess) -> None:
        self.api = Api.from_kubeconfig(hub.kubeconfig)

    async def aclose(self) -> None:
        await self.api.close()
