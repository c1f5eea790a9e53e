"""No room where a snapshot goes: beside the store, in a file bucket, in the target of a restore.

On a file system of its own that is really full; where nothing may be mounted there is none.
"""

import hashlib
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hub.backup.pace import PacePolicy
from hub.clock import SystemClock
from hub.meta import Obj
from hub.store import load_hub_key
from snapshot.errors import SnapshotError
from snapshot.head import decode_head
from snapshot.layout import HEAD
from snapshot.remote import open_remote
from snapshot.restore import restore
from snapshot.target import SPOOL, STAGE
from snapshot.verify import verify
from tests.fault.volume import Mounted, small_volume
from tests.hubs import Api, InProcess, running_hub
from tests.server.support import config_maps, named
from tests.server.test_backup import key_of, metric, shipped
from tools.refusals import explain_os_error
from tools.restore import cli

MAPS = config_maps("default")
QUICK = PacePolicy(heartbeat_s=0.2, first_retry_s=0.05, last_retry_s=0.1)
DURABLE = ("hublet-durable", "true")
HUBS = "/apis/hublet.io/v1alpha1/hubs"
FAILURES = 'hublet_backup_failures_total{operation="ship",reason="%s"}'


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Mounted]:
    with small_volume(tmp_path, data_file="") as found:
        if not isinstance(found, Mounted):
            pytest.skip(f"no file system of its own to fill: {found.kind}")
        yield found


def large(name: str) -> Obj:
    """Return an object of 200 kB that hardly compress."""
    text = random.Random(name).randbytes(100_000).hex()
    return {"metadata": {"name": name}, "data": {"text": text}}


def in_bucket(tmp_path: Path, bucket: Path, name: str) -> Path:
    """Check the whole chain, and build a directory from it."""
    key, clock, remote = load_hub_key(key_of(tmp_path)), SystemClock(), open_remote(bucket.as_uri())
    assert not verify(remote, key, clock=clock, scratch=tmp_path, deep=True).damaged
    restore(remote, key, tmp_path / name, clock=clock)
    return tmp_path / name


async def names_in(tmp_path: Path, directory: Path) -> set[str]:
    """Return the test's objects in a directory, run apart from its prefix."""
    async with running_hub(directory, key_file=key_of(tmp_path), detach=True) as hub:
        return await names(hub.admin)


async def names(api: Api) -> set[str]:
    found = {item["metadata"]["name"] for item in (await api.get(MAPS))["items"]}
    return found - {"kube-root-ca.crt"}


async def alarm(hub: InProcess) -> str:
    """Return what the Hub object says about its shipping, "" when that is healthy."""
    (found,) = (await hub.admin.get(HUBS))["items"]
    by_type = {each["type"]: each for each in found["status"]["conditions"]}
    healthy = by_type["BackupHealthy"]
    return "" if healthy["status"] == "True" else f"{healthy['reason']}: {healthy['message']}"


async def until_alarm(hub: InProcess, is_met: Callable[[str], bool]) -> str:
    while not is_met(told := await alarm(hub)):
        pass
    return told


async def failures(hub: InProcess, reason: str) -> float:
    """Return how many attempts to ship failed for a reason."""
    lines = (await hub.admin.call("GET", "/metrics")).body.decode().splitlines()
    (line,) = (line for line in lines if line.startswith(FAILURES % reason))
    return float(line.split()[-1])


async def serve_without_room(hub: InProcess, reason: str, place: Path) -> set[str]:
    """Read and write while nothing can be shipped; return the names of what was written.

    Failures are counted under `reason`, and the alarm names the place that is full.
    """
    durably = hub.admin.with_headers(DURABLE)
    late = await durably.call("POST", f"{MAPS}?timeout=500ms", named("late"))
    assert late.status == 504, late.body
    assert "is not in the bucket yet" in late.obj()["message"]
    while await failures(hub, reason) < 2:
        pass
    assert await metric(hub.admin, "hublet_backup_lag_revisions") > 0
    told = await until_alarm(hub, lambda told: told.startswith("NotShipping: "))
    assert "No space left on device" in told
    assert str(place) in told
    await hub.admin.create(MAPS, named("plain"))
    assert (await hub.admin.call("GET", "/readyz")).body == b"ok"
    return {"late", "plain"}


async def recover(hub: InProcess) -> None:
    """Find everything shipped and no alarm, without a restart."""
    durably = hub.admin.with_headers(DURABLE)
    assert (await durably.call("POST", MAPS, named("room"))).headers[DURABLE[0]] == "true"
    await shipped(hub.admin)
    assert await until_alarm(hub, lambda told: not told) == ""


async def test_a_hub_without_room_for_segments_serves_on_and_ships_once_there_is_some(
    tmp_path: Path, volume: Mounted
) -> None:
    """Store and spool on one full volume: small writes find room in pages that were set free."""
    bucket = tmp_path / "bucket"
    async with running_hub(
        volume.path / "data",
        object_store=bucket.as_uri(),
        key_file=key_of(tmp_path),
        pace=QUICK,
    ) as hub:
        durably = hub.admin.with_headers(DURABLE)
        for name in ("large-1", "large-2", "first"):
            await durably.create(MAPS, large(name))
        for name in ("large-1", "large-2"):
            assert (await durably.call("DELETE", f"{MAPS}/{name}")).status == 200
        for name in ("a", "b", "c"):
            await durably.create(MAPS, named(name))
        volume.fill(os.getpid())
        made = {"first", "a", "b", "c"} | await serve_without_room(hub, "disk", hub.data_dir)
        kept = await names_in(tmp_path, in_bucket(tmp_path, bucket, "while-full"))
        assert kept == {"first", "a", "b", "c"}
        volume.free(os.getpid())
        await recover(hub)
        assert await names(hub.admin) == made | {"room"}
        assert list((volume.path / "data" / "spool").iterdir()) == []
        assert await names_in(tmp_path, in_bucket(tmp_path, bucket, "after")) == made | {"room"}


async def test_a_full_file_bucket_holds_no_half_object_and_loses_no_durable_write(
    tmp_path: Path, volume: Mounted
) -> None:
    bucket = volume.path / "bucket"
    async with running_hub(
        tmp_path / "data", object_store=bucket.as_uri(), key_file=key_of(tmp_path), pace=QUICK
    ) as hub:
        durably = hub.admin.with_headers(DURABLE)
        for name in ("first", "second"):
            await durably.create(MAPS, large(name))
        volume.fill(os.getpid())
        made = {"first", "second"} | await serve_without_room(hub, "unavailable", bucket)
        kept = await names_in(tmp_path, in_bucket(tmp_path, bucket, "while-full"))
        assert {"first", "second"} <= kept <= made
        volume.free(os.getpid())
        await recover(hub)
        assert await names(hub.admin) == made | {"room"}
        assert list((bucket / ".tmp").iterdir()) == []
        assert await names_in(tmp_path, in_bucket(tmp_path, bucket, "after")) == made | {"room"}


class FillAt:
    """A progress that fills the volume when a phase begins, all but `room` bytes."""

    def __init__(self, volume: Mounted, phase: str, room: int) -> None:
        self._volume, self._phase, self._room = volume, phase, room

    def phase(self, name: str, total: int) -> None:
        if name == self._phase:
            self._volume.fill(os.getpid(), room=self._room)

    def advance(self, units: int) -> None:
        """Nothing to do."""


def contents(directory: Path) -> dict[str, str]:
    """Return the hash of every file under a directory."""
    return {
        path.relative_to(directory).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


async def a_bucket(tmp_path: Path) -> Path:
    bucket = tmp_path / "bucket"
    async with running_hub(
        tmp_path / "data", object_store=bucket.as_uri(), key_file=key_of(tmp_path), pace=QUICK
    ) as hub:
        durably = hub.admin.with_headers(DURABLE)
        for number in range(8):
            await durably.create(MAPS, large(f"t-{number}"))
    return bucket


def explained(error: Exception, target: Path) -> tuple[str, str]:
    """Return what a command line says of it, and the hint."""
    if isinstance(error, SnapshotError):
        return str(error), error.hint
    assert isinstance(error, OSError)
    return explain_os_error(error, {"into": target})


@pytest.mark.parametrize(
    ("full_at", "room", "is_new"),
    [
        ("start", 0, True),
        ("start", 0, False),
        ("start", 100_000, False),
        ("fetch", 0, True),
        ("fetch", 300_000, False),
        ("build", 0, False),
        ("build", 300_000, False),
        ("build", 300_000, True),
    ],
)
async def test_a_restore_without_room_leaves_the_target_as_it_was_and_succeeds_with_room(
    tmp_path: Path, volume: Mounted, full_at: str, room: int, is_new: bool
) -> None:
    remote, target = open_remote((await a_bucket(tmp_path)).as_uri()), volume.path / "target"
    key, clock = load_hub_key(key_of(tmp_path)), SystemClock()
    if not is_new:
        restore(remote, key, target, clock=clock)
    before = contents(volume.path)
    if full_at == "start":
        volume.fill(os.getpid(), room=room)
    with pytest.raises((SnapshotError, OSError)) as caught:
        restore(remote, key, target, clock=clock, progress=FillAt(volume, full_at, room))
    said, hint = explained(caught.value, target)
    assert "free" in hint
    is_early = full_at == "start" and room
    full = "(No space left on device|the volume is full)"
    assert re.search("0 MiB are free, about" if is_early else full, said), said
    assert not (target / STAGE).exists()
    assert not (target / SPOOL).exists()
    volume.free(os.getpid())
    assert contents(volume.path) == before
    done = restore(remote, key, target, clock=clock)
    assert bool(done.replaced) is not is_new
    head = decode_head(remote.get(HEAD).data)
    assert (done.revision, done.state_hash) == (head.rev, head.state_hash)


async def test_the_command_line_says_that_the_volume_of_a_restore_is_full(
    tmp_path: Path, volume: Mounted
) -> None:
    bucket = await a_bucket(tmp_path)
    flags = ["--from", bucket.as_uri(), "--key-file", str(key_of(tmp_path))]
    command = ["restore", *flags, "--into", str(volume.path / "target")]
    for room, said in ((0, "No space left on device"), (100_000, "0 MiB are free, about 2 MiB")):
        volume.fill(os.getpid(), room=room)
        done = CliRunner().invoke(cli, command)
        assert done.exit_code == 1
        assert said in done.output
        assert re.search(r"hint: free (some )?space on", done.output), done.output
        volume.free(os.getpid())
    assert CliRunner().invoke(cli, command).exit_code == 0
