"""A hub and its prefix: who may write it, what happens when another does, and when it is away."""

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from hub.backup.pace import PacePolicy
from hub.clock import SystemClock
from hub.http.client import ConnectionLost
from hub.store import create_hub_key, load_hub_key
from snapshot.errors import Fenced, HeadGone, StartRefused
from snapshot.head import Head, decode_head
from snapshot.layout import HEAD
from snapshot.local import STATE_FILE
from snapshot.remote import Remote, open_remote
from snapshot.verify import verify
from tests.hubs import Api, HubProcess, InProcess, Watch, running_hub
from tests.seaweed import Seaweed, seaweed
from tools.restore import cli

ROOT = Path(__file__).resolve().parents[2]
QUICK = PacePolicy(heartbeat_s=0.2, first_retry_s=0.1, last_retry_s=0.3)
MAPS = "/api/v1/namespaces/default/configmaps"
CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"


@dataclass(frozen=True, slots=True)
class Bucket:
    """A prefix of its own, which can be taken away and given back."""

    url: str
    directory: Path
    server: Seaweed | None = None

    def take_away(self) -> None:
        if self.server is not None:
            self.server.freeze()
            return
        self.directory.rename(self.directory.with_suffix(".away"))
        self.directory.write_text("a file where the directory was")

    def give_back(self) -> None:
        if self.server is not None:
            self.server.thaw()
            return
        self.directory.unlink()
        self.directory.with_suffix(".away").rename(self.directory)

    def open(self) -> Remote:
        return open_remote(self.url)

    def head(self) -> Head:
        remote = self.open()
        try:
            return decode_head(remote.get(HEAD).data)
        finally:
            remote.close()


@pytest.fixture(scope="module")
def s3_server() -> Iterator[Seaweed]:
    with seaweed() as server:
        yield server
        server.thaw()  # whatever a failed test has left


@pytest.fixture
def file_bucket(tmp_path: Path) -> Bucket:
    directory = tmp_path / "bucket"
    return Bucket(directory.as_uri(), directory)


@pytest.fixture(params=["file", "s3"])
def bucket(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Bucket:
    if request.param == "file":
        directory = tmp_path / "bucket"
        return Bucket(directory.as_uri(), directory)
    server: Seaweed = request.getfixturevalue("s3_server")
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    url = f"{server.url(f'hubs/{secrets.token_hex(6)}')}&timeout=1&attempts=1"
    return Bucket(url, tmp_path, server)


def key_of(tmp_path: Path) -> Path:
    return tmp_path / "hub.key"


def restore(tmp_path: Path, bucket: Bucket, name: str) -> Path:
    target = tmp_path / name
    flags = ["--from", bucket.url, "--key-file", str(key_of(tmp_path))]
    done = CliRunner().invoke(cli, ["restore", *flags, "--into", str(target)])
    assert done.exit_code == 0, done.output
    return target


def hub_on(
    tmp_path: Path,
    bucket: Bucket,
    name: str = "data",
    *,
    pace: PacePolicy | None = None,
    port: int = 0,
    url: str = "",
) -> contextlib.AbstractAsyncContextManager[InProcess]:
    return running_hub(
        tmp_path / name,
        port=port,
        url=url,
        object_store=bucket.url,
        key_file=key_of(tmp_path),
        pace=pace,
    )


async def metric(api: Api, name: str) -> float:
    """Return a metric, summed over its labels."""
    answer = await api.call("GET", "/metrics")
    lines = [line.split() for line in answer.body.decode().splitlines()]
    found = [float(words[-1]) for words in lines if words[0].partition("{")[0] == name]
    assert found, name
    return sum(found)


async def until_metric(api: Api, name: str, is_met: Callable[[float], bool]) -> float:
    async with asyncio.timeout(20):
        while not is_met(value := await metric(api, name)):
            pass
    return value


async def shipped(api: Api) -> None:
    await until_metric(api, "hublet_backup_lag_revisions", lambda value: value == 0)


async def uids(api: Api, *collections: str) -> dict[str, tuple[str, str]]:
    """Uid and resourceVersion of what a test made, by path."""
    return {
        f"{collection}/{meta['name']}": (meta["uid"], meta["resourceVersion"])
        for collection in collections
        for item in (await api.get(collection))["items"]
        if (meta := item["metadata"])["name"].startswith("t-")
    }


async def make(api: Api, *names: str, collection: str = MAPS) -> None:
    for name in names:
        await api.create(collection, {"metadata": {"name": name}})


async def drain(watch: Watch) -> None:
    """Read a watch to its end, whichever way the hub ends it."""
    with contextlib.suppress(ConnectionLost, StopAsyncIteration):
        while True:
            await watch.next()


def check_prefix(tmp_path: Path, bucket: Bucket) -> Head:
    """Rebuild the state from the prefix and compare it with HEAD's promise."""
    remote = bucket.open()
    try:
        key = load_hub_key(key_of(tmp_path))
        done = verify(remote, key, clock=SystemClock(), scratch=tmp_path, deep=True)
    finally:
        remote.close()
    head = bucket.head()
    assert (done.revision, done.objects) == (head.rev, head.objects)
    return head


# ------------------------------------------------------------------------ two hubs


async def test_a_restored_hub_takes_over_from_one_that_still_runs(
    tmp_path: Path, bucket: Bucket
) -> None:
    async with hub_on(tmp_path, bucket, "old", pace=QUICK) as old:
        await make(old.admin, "t-1", "t-2")
        await make(old.admin, "t-c", collection=CLUSTERS)
        await shipped(old.admin)
        async with old.admin.watch(f"{MAPS}?watch=1") as watch:
            assert (await watch.next())["type"] == "ADDED"
            with pytest.raises(StartRefused, match="the data directory is empty"):
                async with hub_on(tmp_path, bucket, "second"):
                    pass
            restore(tmp_path, bucket, "new")
            async with hub_on(tmp_path, bucket, "new") as new:
                assert new.start_kind == "restored"
                error = await old.end()  # by its heartbeat: it has nothing to write
                assert isinstance(error, Fenced)
                assert error.exit_code == 5
                await drain(watch)
                with pytest.raises(ConnectionLost):
                    await old.admin.get(MAPS)
                assert set(await uids(new.admin, MAPS, CLUSTERS)) == {
                    f"{MAPS}/t-1",
                    f"{MAPS}/t-2",
                    f"{CLUSTERS}/t-c",
                }
                await make(new.admin, "t-3")
                await shipped(new.admin)
    head = check_prefix(tmp_path, bucket)
    assert (head.epoch, head.released) == (2, True)
    with pytest.raises(StartRefused, match="took the prefix from this directory") as caught:
        async with hub_on(tmp_path, bucket, "old"):
            pass
    assert "hub-restore restore" in caught.value.hint


async def test_a_hub_whose_prefix_was_taken_ends_with_75_at_its_next_write(
    tmp_path: Path, file_bucket: Bucket, free_port: int
) -> None:
    """It is stopped while another takes over, as a machine that hangs, and goes on afterwards."""
    flags = ("--object-store", file_bucket.url, "--key-file", str(key_of(tmp_path)))
    with HubProcess(tmp_path / "old", free_port, *flags) as old:
        api = Api.from_kubeconfig(old.kubeconfig)
        try:
            await make(api, "t-1")
            await shipped(api)
            assert old._process is not None
            old._process.send_signal(signal.SIGSTOP)
            restore(tmp_path, file_bucket, "new")
            async with hub_on(tmp_path, file_bucket, "new") as new:
                old._process.send_signal(signal.SIGCONT)
                await make(api, "t-late")
                assert await asyncio.to_thread(old.wait) == 75
                said = old.log.read_text()
                assert "has taken this prefix" in said
                assert "hint: this hub has stopped; keep its directory, and restore" in said
                assert set(await uids(new.admin, MAPS)) == {f"{MAPS}/t-1"}
        finally:
            await api.close()
    again = serve(tmp_path / "old", *flags)
    assert again.returncode == 8
    assert "took the prefix from this directory" in again.stderr
    assert "keep this directory, it may hold unshipped changes" in again.stderr


async def test_a_hub_whose_head_was_deleted_stops(tmp_path: Path, file_bucket: Bucket) -> None:
    async with hub_on(tmp_path, file_bucket, pace=QUICK) as hub:
        await shipped(hub.admin)
        (file_bucket.directory / HEAD).unlink()
        error = await hub.end()
        assert isinstance(error, HeadGone)
        assert "put HEAD back" in error.hint


# ------------------------------------------------------------------------ an outage


async def test_a_bucket_that_goes_away_and_comes_back_misses_nothing(
    tmp_path: Path, bucket: Bucket
) -> None:
    async with hub_on(tmp_path, bucket, pace=QUICK) as hub:
        await make(hub.admin, *(f"t-{number}" for number in range(10)))
        await shipped(hub.admin)
        bucket.take_away()
        await make(hub.admin, "t-c", collection=CLUSTERS)
        await hub.admin.patch(f"{MAPS}/t-1", {"data": {"x": "1"}})
        assert (await hub.admin.call("DELETE", f"{MAPS}/t-2")).status == 200
        lag = await metric(hub.admin, "hublet_backup_lag_revisions")
        await until_metric(hub.admin, "hublet_backup_failures_total", lambda count: count >= 2)
        await make(hub.admin, "t-10", "t-11")
        assert await metric(hub.admin, "hublet_backup_lag_revisions") > lag > 0
        assert (await hub.admin.call("GET", "/readyz")).body == b"ok"
        bucket.give_back()
        await shipped(hub.admin)
        there = await uids(hub.admin, MAPS, CLUSTERS)
    head = check_prefix(tmp_path, bucket)
    assert (head.epoch, head.released) == (1, True)
    restore(tmp_path, bucket, "new")
    async with hub_on(tmp_path, bucket, "new") as hub:
        back = await uids(hub.admin, MAPS, CLUSTERS)
        assert f"{MAPS}/t-2" not in back
        assert set(back) == set(there)
        assert {path: uid for path, (uid, _) in back.items()} == {
            path: uid for path, (uid, _) in there.items()
        }
        maps = [path for path in there if path.startswith(MAPS)]
        assert [back[path] for path in maps] == [there[path] for path in maps]
        assert len(maps) == 11


async def test_what_a_stop_could_not_ship_is_shipped_by_the_next_start(
    tmp_path: Path, file_bucket: Bucket
) -> None:
    async with hub_on(tmp_path, file_bucket, pace=QUICK) as hub:
        await make(hub.admin, "t-1")
        await shipped(hub.admin)
        before = file_bucket.head()
        file_bucket.take_away()
        await make(hub.admin, "t-2")
        assert hub.start_kind == "empty"
    file_bucket.give_back()
    assert file_bucket.head() == before
    assert not before.released
    async with hub_on(tmp_path, file_bucket) as hub:  # with a heartbeat of 30 s
        assert hub.start_kind == "continue"
        async with asyncio.timeout(10):
            await shipped(hub.admin)
        assert await metric(hub.admin, "hublet_backup_failures_total") == 0
        assert set(await uids(hub.admin, MAPS)) == {f"{MAPS}/t-1", f"{MAPS}/t-2"}
    head = check_prefix(tmp_path, file_bucket)
    assert (head.epoch, head.released) == (2, True)


async def test_a_start_that_cannot_listen_takes_nothing_from_the_hub_that_serves(
    tmp_path: Path, file_bucket: Bucket
) -> None:
    async with hub_on(tmp_path, file_bucket, "old", pace=QUICK) as old:
        await make(old.admin, "t-1")
        await shipped(old.admin)
        restore(tmp_path, file_bucket, "copy")
        port = int(old.url.rpartition(":")[2])
        with pytest.raises(OSError, match=f"listen: 127.0.0.1:{port} cannot be taken"):
            async with running_hub(
                tmp_path / "copy",
                port=port,
                object_store=file_bucket.url,
                key_file=key_of(tmp_path),
            ):
                pass
        await make(old.admin, "t-2")
        await shipped(old.admin)
    assert (tmp_path / "copy" / "restore-claim.json").exists()
    head = check_prefix(tmp_path, file_bucket)
    assert (head.epoch, head.released) == (1, True)


async def test_what_has_a_prefix_does_not_run_without_it_unless_told_to(
    tmp_path: Path, stopped: Bucket
) -> None:
    key = key_of(tmp_path)
    restore(tmp_path, stopped, "restored")
    for name, what in (("data", "has shipped up to revision"), ("restored", "was restored from")):
        done = serve(tmp_path / name, "--key-file", str(key))
        assert done.returncode == 8, done.stderr
        assert f"the data directory {what}" in done.stderr
        assert "--detach" in done.stderr
        async with running_hub(tmp_path / name, key_file=key, detach=True) as hub:
            assert (await hub.admin.get(f"{MAPS}/t-1"))["metadata"]["name"] == "t-1"


async def test_a_restored_hub_announces_the_url_it_was_given_before(
    tmp_path: Path, file_bucket: Bucket, free_port: int
) -> None:
    url, other = f"https://localhost:{free_port}", f"https://127.0.0.1:{free_port}"
    async with hub_on(tmp_path, file_bucket, port=free_port, url=url) as hub:
        assert hub.warnings == ()
        await shipped(hub.admin)
    restore(tmp_path, file_bucket, "new")
    async with hub_on(tmp_path, file_bucket, "new", port=free_port) as hub:
        assert hub.url == url
        info = await hub.admin.get("/api/v1/namespaces/kube-public/configmaps/cluster-info")
        assert url in info["data"]["kubeconfig"]
    async with hub_on(tmp_path, file_bucket, "new", port=free_port, url=other) as hub:
        assert any(url in warning and other in warning for warning in hub.warnings)


# ------------------------------------------------------------------------ refused starts


def serve(data_dir: Path, *flags: str) -> "subprocess.CompletedProcess[str]":
    """Run `hublet serve` that is expected to refuse."""
    command = [sys.executable, "-m", "tools.hublet", "serve", "--data-dir", str(data_dir)]
    return subprocess.run(
        [*command, "--listen", "127.0.0.1:0", *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
        env={name: value for name, value in os.environ.items() if not name.startswith("HUBLET")},
    )


@pytest.fixture
async def stopped(tmp_path: Path, file_bucket: Bucket) -> Bucket:
    """A prefix that a hub in `data` has written and released."""
    async with hub_on(tmp_path, file_bucket) as hub:
        await make(hub.admin, "t-1")
        await shipped(hub.admin)
    return file_bucket


def refuse(
    data_dir: Path,
    bucket: Bucket,
    key: Path,
    *flags: str,
    code: int,
    says: Sequence[str],
) -> None:
    """Expect a refusal that leaves prefix and key file as they are."""
    head, has_key = (bucket.directory / HEAD).read_bytes(), key.exists()
    done = serve(data_dir, "--object-store", bucket.url, "--key-file", str(key), *flags)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr
    for words in says:
        assert words in done.stderr
    assert (bucket.directory / HEAD).read_bytes() == head
    assert key.exists() is has_key


def test_a_start_needs_the_bucket(tmp_path: Path, stopped: Bucket) -> None:
    stopped.take_away()
    done = serve(
        tmp_path / "data", "--object-store", stopped.url, "--key-file", str(key_of(tmp_path))
    )
    assert done.returncode == 6
    assert "hint: check that the object store is up" in done.stderr


async def test_an_empty_directory_is_restored_from_a_released_prefix(
    tmp_path: Path, stopped: Bucket
) -> None:
    before = stopped.head()
    async with hub_on(tmp_path, stopped, "empty") as hub:
        assert hub.start_kind == "restored"
        assert set(await uids(hub.admin, MAPS)) == {f"{MAPS}/t-1"}
        await shipped(hub.admin)
    head = check_prefix(tmp_path, stopped)
    assert (before.epoch, head.epoch, head.released) == (1, 2, True)
    says = ["another directory wrote this prefix last", "hub-restore restore"]
    refuse(tmp_path / "data", stopped, key_of(tmp_path), code=8, says=says)


async def test_an_empty_directory_takes_nothing_from_a_hub_that_has_not_released(
    tmp_path: Path, file_bucket: Bucket
) -> None:
    async with hub_on(tmp_path, file_bucket) as hub:
        await make(hub.admin, "t-1")
        await shipped(hub.admin)
        says = [
            "the data directory is empty, and the prefix holds hub",
            "which has not released it",
            "hint: stop that hub in good order",
        ]
        key = key_of(tmp_path)
        await asyncio.to_thread(refuse, tmp_path / "empty", file_bucket, key, code=8, says=says)
        await make(hub.admin, "t-2")
    assert not (tmp_path / "empty").exists()


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--bootstrap-takeover", "Never"), "and the prefix holds hub"),
        (("--bootstrap-source", "Empty"), "bootstrap source Empty restores nothing"),
        (("--bootstrap-source", "Volume"), "holds no store"),
    ],
)
def test_an_empty_directory_is_not_restored_unless_it_may(
    tmp_path: Path, stopped: Bucket, flags: tuple[str, str], says: str
) -> None:
    key = key_of(tmp_path)
    refuse(tmp_path / "empty", stopped, key, *flags, code=8, says=[says, "hint: "])
    assert not (tmp_path / "empty").exists()


def test_no_new_key_is_made_for_a_prefix_in_use(tmp_path: Path, stopped: Bucket) -> None:
    says = ["there is no key file", "give the hub its key with --key-file"]
    refuse(tmp_path / "empty", stopped, tmp_path / "no.key", code=8, says=says)
    kept = (stopped.directory / HEAD).rename(tmp_path / "HEAD")
    done = serve(
        tmp_path / "empty", "--object-store", stopped.url, "--key-file", str(tmp_path / "no.key")
    )
    assert done.returncode == 8, done.stderr
    assert not (tmp_path / "no.key").exists()
    kept.rename(stopped.directory / HEAD)


def test_another_hubs_key_is_refused(tmp_path: Path, stopped: Bucket) -> None:
    other = create_hub_key(tmp_path / "other.key", token=os.urandom).path
    assert other is not None
    says = ["this prefix is sealed under the key", "give the hub's own key with --key-file"]
    refuse(tmp_path / "empty", stopped, other, code=7, says=says)
    says = ["the data was sealed under", "use the key file of the hub that wrote it"]
    refuse(tmp_path / "data", stopped, other, code=11, says=says)


def test_a_directory_without_its_key_is_refused(tmp_path: Path, stopped: Bucket) -> None:
    says = ["no.key does not exist: put the key of this hub there"]
    refuse(tmp_path / "data", stopped, tmp_path / "no.key", code=11, says=says)


async def test_a_claim_from_before_the_hub_went_on_is_refused(
    tmp_path: Path, stopped: Bucket
) -> None:
    restore(tmp_path, stopped, "restored")
    async with hub_on(tmp_path, stopped) as hub:
        await make(hub.admin, "t-2")
        await shipped(hub.admin)
    says = ["the prefix has moved on since this directory was restored", "restore again"]
    refuse(tmp_path / "restored", stopped, key_of(tmp_path), code=8, says=says)


async def test_a_restore_replaces_the_store_of_a_hub_that_has_stopped_and_of_no_other(
    tmp_path: Path, stopped: Bucket
) -> None:
    data, key = tmp_path / "data", str(key_of(tmp_path))
    flags = ["--from", stopped.url, "--key-file", key, "--into", str(data)]
    async with hub_on(tmp_path, stopped) as hub:
        refused = await asyncio.to_thread(CliRunner().invoke, cli, ["restore", *flags])
        assert refused.exit_code == 9
        assert "a hub or another restore is at work on the directory" in refused.stderr
        await make(hub.admin, "t-2")
        await shipped(hub.admin)
    done = CliRunner().invoke(cli, ["restore", *flags])
    kept = next(data.glob("store.old-*"))
    assert f"the store that was there is kept as {kept}\n" in done.stdout
    async with hub_on(tmp_path, stopped) as hub:
        assert hub.start_kind == "restored"
        assert set(await uids(hub.admin, MAPS)) == {f"{MAPS}/t-1", f"{MAPS}/t-2"}


async def test_a_directory_of_an_older_release_is_taken_over(
    tmp_path: Path, stopped: Bucket
) -> None:
    data = tmp_path / "data"
    for each in (data / "store").iterdir():
        each.rename(data / each.name)
    (data / "store").rmdir()
    state = json.loads((data / STATE_FILE).read_text())
    state.pop("place")  # which an older release did not write
    state.pop("fenced_by")
    (data / STATE_FILE).write_text(json.dumps(state))
    async with hub_on(tmp_path, stopped) as hub:
        assert hub.start_kind == "continue"
        assert set(await uids(hub.admin, MAPS)) == {f"{MAPS}/t-1"}
    assert (data / "store" / "data.mdb").exists()
    assert not (data / "data.mdb").exists()


async def test_of_a_directory_and_its_copy_the_first_to_start_goes_on(
    tmp_path: Path, stopped: Bucket
) -> None:
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    async with hub_on(tmp_path, stopped, "copy") as hub:
        assert hub.start_kind == "adopted"
        assert set(await uids(hub.admin, MAPS)) == {f"{MAPS}/t-1"}
        await make(hub.admin, "t-2")
    says = ["a copy of this directory has gone on in its place", "hub-restore restore"]
    refuse(tmp_path / "data", stopped, key_of(tmp_path), code=8, says=says)


async def test_a_prefix_of_another_hub_under_the_same_key_is_refused(
    tmp_path: Path, stopped: Bucket
) -> None:
    mine = Bucket((tmp_path / "mine").as_uri(), tmp_path / "mine")
    async with hub_on(tmp_path, mine, "me") as hub:
        await shipped(hub.admin)
    says = ["the prefix belongs to hub", "every hub has a prefix of its own"]
    refuse(tmp_path / "me", stopped, key_of(tmp_path), code=8, says=says)


async def test_a_directory_in_use_is_refused(tmp_path: Path, file_bucket: Bucket) -> None:
    async with hub_on(tmp_path, file_bucket) as hub:
        await shipped(hub.admin)
        refuse_in_use = asyncio.to_thread(
            serve, tmp_path / "data", "--detach", "--key-file", str(key_of(tmp_path))
        )
        done = await refuse_in_use
        assert done.returncode == 11
        assert "is in use by another hub process" in done.stderr
        await make(hub.admin, "t-1")
