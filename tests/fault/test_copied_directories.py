"""Real hubs on copied, older, torn, foreign, empty and moved directories: what the arbiter does.

What a copy gets is decided against the original: nothing that happens to a copy by itself may end a
hub that runs.
"""

import asyncio
import subprocess
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from hub.backup.pace import PacePolicy
from hub.clock import SystemClock
from hub.store import load_hub_key
from snapshot.arbiter import Takeover
from snapshot.chain import Chain
from snapshot.errors import Fenced, ForeignPrefix, NothingToRestore, StartRefused
from snapshot.head import Head, decode_head
from snapshot.layout import HEAD
from snapshot.local import CLAIM_FILE, claim_on, save_claim
from snapshot.remote import open_remote
from snapshot.target import OLD_PREFIX
from tests.fault.test_refused_starts import serve
from tests.hubs import Api, HubProcess, InProcess, running_hub

QUICK = PacePolicy(heartbeat_s=0.2, first_retry_s=0.1, last_retry_s=0.3)
MAPS = "/api/v1/namespaces/default/configmaps"


@dataclass(frozen=True, slots=True)
class Scene:
    """Directories, one key, and prefixes beside them."""

    path: Path

    @property
    def key(self) -> Path:
        return self.path / "hub.key"

    def url(self, prefix: str = "bucket") -> str:
        return (self.path / prefix).as_uri()

    def hub(
        self, name: str, *, prefix: str = "bucket", place: str = "", **bootstrap: str
    ) -> AbstractAsyncContextManager[InProcess]:
        """Run a hub; `bootstrap` as in the block of the file, `to` for `snapshot.to`."""
        return running_hub(
            self.path / name,
            object_store=self.url(prefix) if prefix else "",
            key_file=self.key,
            pace=QUICK,
            place=place,
            bootstrap_source=bootstrap.get("source", "Auto"),
            bootstrap_snapshot_url=bootstrap.get("url", ""),
            bootstrap_snapshot_to=bootstrap.get("to", "latest"),
            bootstrap_takeover=bootstrap.get("takeover", "Claimed"),
        )

    def flags(self, *more: str) -> tuple[str, ...]:
        return ("--object-store", self.url(), "--key-file", str(self.key), *more)

    def copy(self, source: str, target: str) -> Path:
        """Copy a directory as people do."""
        command = ["cp", "-a", str(self.path / source), str(self.path / target)]
        subprocess.run(command, check=True, capture_output=True)
        return self.path / target

    def head(self, prefix: str = "bucket") -> Head:
        return decode_head((self.path / prefix / HEAD).read_bytes())

    def kept(self, name: str) -> list[Path]:
        """The stores that were put aside."""
        return list((self.path / name).glob(f"{OLD_PREFIX}*"))

    def adopt(self, name: str) -> None:
        """Leave the claim of `hub-restore adopt`."""
        remote, clock = open_remote(self.url()), SystemClock()
        head = Chain(remote, load_hub_key(self.key), clock=clock).read_head()
        assert head is not None
        claim = claim_on(head, None, object_store=remote.url, clock=clock, adopted=True)
        save_claim(self.path / name, claim)
        remote.close()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def make(api: Api, *names: str) -> None:
    for name in names:
        await api.create(MAPS, {"metadata": {"name": name}})


async def uids(api: Api) -> dict[str, str]:
    """The uids of what a test made, by name."""
    items = (await api.get(MAPS))["items"]
    return {
        each["metadata"]["name"]: each["metadata"]["uid"]
        for each in items
        if each["metadata"]["name"].startswith("t-")
    }


def authority(hub: InProcess) -> str:
    """The CA that agents know the hub by."""
    config = yaml.safe_load(hub.kubeconfig.read_text())
    found = config["clusters"][0]["cluster"]["certificate-authority-data"]
    assert isinstance(found, str)
    return found


async def shipped(scene: Scene, api: Api) -> Head:
    """Wait until everything is in the bucket; return HEAD."""
    async with asyncio.timeout(20):
        while True:
            page = (await api.call("GET", "/metrics")).body.decode().splitlines()
            lag = next(line for line in page if line.startswith("hublet_backup_lag_revisions "))
            if float(lag.split()[1]) == 0:
                return scene.head()


async def goes_on(scene: Scene, hub: InProcess, name: str) -> None:
    """Check that a hub still writes its prefix."""
    before = scene.head()
    await make(hub.admin, name)
    after = await shipped(scene, hub.admin)
    assert (after.epoch, after.writer) == (before.epoch, before.writer)
    assert after.rev > before.rev


async def refused(scene: Scene, name: str, says: str, **settings: str) -> StartRefused:
    """Check that a start is refused, writes nothing to the bucket, and keeps what was there."""
    before = scene.head()
    with pytest.raises(StartRefused, match=says) as caught:
        async with scene.hub(name, **settings):
            pass
    assert caught.value.hint
    assert caught.value.exit_code == 8
    after = scene.head()
    assert (after.epoch, after.writer) == (before.epoch, before.writer)
    assert scene.kept(name) == []
    return caught.value


async def killed(scene: Scene, name: str, port: int, *names: str) -> dict[str, str]:
    """Leave the directory and prefix of a hub that was killed; return what it had."""
    with HubProcess(scene.path / name, port, *scene.flags()) as process:
        api = Api.from_kubeconfig(process.kubeconfig)
        try:
            await make(api, *names)
            await shipped(scene, api)
            return await uids(api)
        finally:
            await api.close()


def damage(directory: Path) -> None:
    """Make the store's file one that nobody wrote."""
    (directory / "store" / "data.mdb").write_bytes(b"SQLite format 3\0" + bytes(100_000))


# ------------------------------------------------------------------------ copies of one hub


async def test_a_clean_copy_of_a_stopped_hub_goes_on_and_its_original_no_more(
    scene: Scene,
) -> None:
    async with scene.hub("data") as hub:
        await make(hub.admin, "t-1", "t-2")
        there, known = await uids(hub.admin), authority(hub)
    scene.copy("data", "copy")
    await refused(scene, "copy", "is a copy of the one that wrote", takeover="Never")
    async with scene.hub("copy") as copy:
        assert copy.start_kind == "adopted"
        assert (await uids(copy.admin), authority(copy)) == (there, known)
        await make(copy.admin, "t-3")
    await refused(scene, "data", "a copy of this directory has gone on in its place")
    async with scene.hub("copy", takeover="Never") as copy:
        assert copy.start_kind == "continue"


async def test_a_copy_made_while_the_hub_runs_takes_nothing_from_it(scene: Scene) -> None:
    async with scene.hub("data") as hub:
        await make(hub.admin, "t-1")
        await shipped(scene, hub.admin)
        scene.copy("data", "copy")
        for takeover in ("Never", "IfReleased", "Claimed"):
            error = await refused(scene, "copy", "copy", takeover=takeover)
            assert "start the" in error.hint
        await goes_on(scene, hub, "t-2")
        error = await refused(scene, "copy", "it is an older copy of itself")
        assert "start the newer directory" in error.hint


async def test_a_copy_of_a_running_hub_takes_over_by_force_and_fences_it(scene: Scene) -> None:
    async with scene.hub("data") as hub:
        await make(hub.admin, "t-1")
        await shipped(scene, hub.admin)
        there = await uids(hub.admin)
        scene.copy("data", "copy")
        async with scene.hub("copy", takeover="Force") as copy:
            assert await uids(copy.admin) == there
            assert isinstance(await hub.end(), Fenced)
    await refused(scene, "data", "took the prefix from this directory")


@pytest.mark.timeout(120)
async def test_copies_made_while_the_hub_writes_are_torn_or_copies_and_never_fence_it(
    scene: Scene,
) -> None:
    async with scene.hub("data") as hub:
        await make(hub.admin, "t-0")
        await shipped(scene, hub.admin)
        is_over = False

        async def write() -> None:
            number = 0
            while not is_over:
                number += 1
                await hub.admin.patch(f"{MAPS}/t-0", {"data": {"x": str(number) * 2000}})

        writing = asyncio.ensure_future(write())
        for number in range(5):
            await asyncio.to_thread(scene.copy, "data", f"copy-{number}")
        is_over = True
        await writing
        await shipped(scene, hub.admin)
        for number in range(5):
            await refused(scene, f"copy-{number}", "the store cannot be used|copy")
        await goes_on(scene, hub, "t-1")


@pytest.mark.timeout(120)
async def test_a_torn_copy_is_restored_from_the_bucket_once_the_original_has_stopped(
    scene: Scene,
) -> None:
    """The first half of the file from before some writes, the second from after them."""
    async with scene.hub("data") as hub:
        file = scene.path / "data" / "store" / "data.mdb"
        await fill(hub.admin, is_new=True)
        first = file.read_bytes()
        first = first[: len(first) // 2]
        for _ in range(2):
            await fill(hub.admin, is_new=False)
        await shipped(scene, hub.admin)
        copy = scene.copy("data", "copy")
        (copy / "store" / "data.mdb").write_bytes(first + file.read_bytes()[len(first) :])
        for source in ("Auto", "Volume", "Snapshot"):
            error = await refused(scene, "copy", "cannot be used: .* is torn", source=source)
            assert "hub-restore restore" in error.hint
        await goes_on(scene, hub, "t-late")
        there, known = await uids(hub.admin), authority(hub)
    await refused(scene, "copy", "cannot be used: .* is torn", source="Volume")
    async with scene.hub("copy") as copied:
        assert copied.start_kind == "restored"
        assert (await uids(copied.admin), authority(copied)) == (there, known)
    assert len(scene.kept("copy")) == 1
    assert (scene.kept("copy")[0] / "data.mdb").exists()


async def fill(api: Api, *, is_new: bool) -> None:
    """Write objects of 20 kB, more than what is read in one go."""
    for number in range(150):
        name, text = f"t-{number}", f"{number} {is_new}".ljust(20_000, ".")
        if is_new:
            await api.create(MAPS, {"metadata": {"name": name}, "data": {"text": text}})
        else:
            await api.patch(f"{MAPS}/{name}", {"data": {"text": text}})


async def test_an_older_copy_catches_up_from_the_bucket_where_it_may(scene: Scene) -> None:
    async with scene.hub("data") as hub:
        await make(hub.admin, "t-1")
        await shipped(scene, hub.admin)
        scene.copy("data", "older")
        await make(hub.admin, "t-2")
        there = await uids(hub.admin)
    await refused(scene, "older", "it is an older copy of itself", takeover="Never")
    async with scene.hub("older") as older:
        assert older.start_kind == "restored"
        assert await uids(older.admin) == there
    assert len(scene.kept("older")) == 1


async def test_a_copy_from_before_the_last_restart_of_its_original_is_refused(
    scene: Scene,
) -> None:
    async with scene.hub("data") as hub:
        await make(hub.admin, "t-1")
    scene.copy("data", "older")
    async with scene.hub("data") as hub:
        await make(hub.admin, "t-2")
        await refused(scene, "older", "a copy of this directory has gone on in its place")
        await goes_on(scene, hub, "t-3")
        there = await uids(hub.admin)
    await refused(scene, "older", "a copy of this directory has gone on in its place")
    async with scene.hub("older", takeover="Force") as older:
        assert await uids(older.admin) == there
    assert len(scene.kept("older")) == 1


async def test_a_clone_of_the_volume_on_another_cluster_is_told_by_its_place(
    scene: Scene, free_port: int
) -> None:
    """One directory under two places: a clone of the block device has the same inodes."""
    async with scene.hub("data", place="cluster-a") as hub:
        await make(hub.admin, "t-1")
    there = await killed_at(scene, "cluster-a", free_port)
    error = await refused(scene, "data", "is a copy of the one that wrote", place="cluster-b")
    assert "hub-restore adopt" in error.hint
    async with scene.hub("data", place="cluster-a") as hub:
        assert hub.start_kind == "continue"
    async with scene.hub("data", place="cluster-b") as hub:  # released now
        assert hub.start_kind == "adopted"
        assert await uids(hub.admin) == there
    async with scene.hub("data", place="cluster-b") as hub:
        assert hub.start_kind == "continue"


async def killed_at(scene: Scene, place: str, port: int) -> dict[str, str]:
    """Start the hub in "data" at a place, kill it, and return what it had."""
    flags = scene.flags("--place", place)
    with HubProcess(scene.path / "data", port, *flags) as process:
        api = Api.from_kubeconfig(process.kubeconfig)
        try:
            await shipped(scene, api)
            return await uids(api)
        finally:
            await api.close()


async def test_an_adopted_copy_goes_on_from_where_a_killed_hub_was(
    scene: Scene, free_port: int
) -> None:
    there = await killed(scene, "data", free_port, "t-1")
    scene.copy("data", "copy")
    await refused(scene, "copy", "is a copy of the one that wrote")
    scene.adopt("copy")
    async with scene.hub("copy") as copy:
        assert copy.start_kind == "adopted"
        assert await uids(copy.admin) == there
    assert not (scene.path / "copy" / CLAIM_FILE).exists()
    await refused(scene, "data", "a copy of this directory has gone on in its place")


# ------------------------------------------------------------------------ another hub


@pytest.mark.parametrize("takeover", [str(each) for each in Takeover])
async def test_a_directory_of_another_hub_is_refused_whatever_is_allowed(
    scene: Scene, takeover: str
) -> None:
    async with scene.hub("other", prefix="elsewhere") as other:
        await make(other.admin, "t-other")
    async with scene.hub("unshipped", prefix="") as unshipped:
        await make(unshipped.admin, "t-unshipped")
    async with scene.hub("data") as hub:
        await make(hub.admin, "t-1")
    scene.copy("other", "copy")
    for name in ("copy", "unshipped"):
        await refused(scene, name, "the prefix belongs to hub", takeover=takeover)
    async with scene.hub("unshipped", prefix="") as unshipped:
        assert set(await uids(unshipped.admin)) == {"t-unshipped"}


# ------------------------------------------------------------------------ damage


async def test_a_damaged_store_of_a_killed_hub_is_restored_from_its_own_prefix(
    scene: Scene, free_port: int
) -> None:
    """Its own session stands in HEAD: nobody is asked for leave."""
    there = await killed(scene, "data", free_port, "t-1")
    damage(scene.path / "data")
    for source in ("Volume", "Empty"):
        await refused(scene, "data", "the store cannot be used", source=source)
    async with scene.hub("data", takeover="Never") as hub:
        assert hub.start_kind == "restored"
        assert await uids(hub.admin) == there
    (kept,) = scene.kept("data")
    assert (kept / "data.mdb").read_bytes().startswith(b"SQLite")
    async with scene.hub("data", takeover="Never") as hub:
        assert hub.start_kind == "continue"


async def test_a_damaged_copy_waits_for_a_release(scene: Scene) -> None:
    async with scene.hub("data") as hub:
        await make(hub.admin, "t-1")
        await shipped(scene, hub.admin)
        damage(scene.copy("data", "copy"))
        await refused(scene, "copy", "the store cannot be used")
        await goes_on(scene, hub, "t-2")
        there = await uids(hub.admin)
    async with scene.hub("copy") as copy:
        assert await uids(copy.admin) == there
    assert len(scene.kept("copy")) == 1


# ------------------------------------------------------------------------ an empty directory


async def test_an_empty_directory_becomes_the_hub_that_has_stopped(scene: Scene) -> None:
    async with scene.hub("data") as hub:
        await make(hub.admin, "t-1", "t-2")
        there, known = await uids(hub.admin), authority(hub)
    for settings in ({"takeover": "Never"}, {"source": "Empty"}, {"source": "Volume"}):
        await refused(scene, "new", "empty|holds no store", **settings)
        assert not (scene.path / "new").exists()
    async with scene.hub("new") as new:
        assert new.start_kind == "restored"
        assert (await uids(new.admin), authority(new)) == (there, known)
        assert await shipped(scene, new.admin)
    await refused(scene, "data", "another directory wrote this prefix last")


async def test_an_empty_directory_takes_a_hub_that_has_not_stopped_by_force_only(
    scene: Scene, free_port: int
) -> None:
    old = HubProcess(scene.path / "data", free_port, *scene.flags())
    with old:
        api = Api.from_kubeconfig(old.kubeconfig)
        try:
            await make(api, "t-1")
            await shipped(scene, api)
            there = await uids(api)
            error = await refused(scene, "new", "which has not released it")
            assert "hub-restore takeover" in error.hint
            assert "--bootstrap-takeover Force" in error.hint
            async with scene.hub("new", takeover="Force") as new:
                assert await uids(new.admin) == there
                await api.call("POST", MAPS, {"metadata": {"name": "t-late"}})
                assert await asyncio.to_thread(old.wait) == 75
        finally:
            await api.close()
    code, said = await asyncio.to_thread(serve, scene.path / "data", *scene.flags())
    assert code == 8
    assert "took the prefix from this directory" in said
    assert "keep this directory, it may hold unshipped changes" in said


async def test_a_volume_that_is_not_mounted_makes_no_hub(scene: Scene) -> None:
    for prefix in ("bucket", ""):
        with pytest.raises(StartRefused, match="holds no store") as caught:
            async with scene.hub("data", prefix=prefix, source="Volume"):
                pass
        assert "mount the hub's volume" in caught.value.hint
    assert not scene.key.exists()
    assert not (scene.path / "data").exists()


# ------------------------------------------------------------------------ fenced


async def fenced(scene: Scene) -> dict[str, str]:
    """Leave a fenced hub in "data", with a change of its own; return what its successor has."""
    async with scene.hub("data") as old:
        await make(old.admin, "t-1")
        await shipped(scene, old.admin)
        async with scene.hub("new", takeover="Force") as new:
            assert isinstance(await old.end(), Fenced)
            await make(new.admin, "t-2")
            await shipped(scene, new.admin)
            return await uids(new.admin)


@pytest.mark.parametrize("source", ["Auto", "Volume", "Snapshot"])
async def test_a_fenced_directory_does_not_start_by_itself(scene: Scene, source: str) -> None:
    await fenced(scene)
    for takeover in ("Never", "IfReleased", "Claimed"):
        says = "took the prefix from this directory"
        error = await refused(scene, "data", says, source=source, takeover=takeover)
        assert "hub-restore adopt" in error.hint


@pytest.mark.parametrize("way", ["adopt", "force"])
async def test_a_fenced_directory_goes_on_from_the_bucket_when_it_is_told_to(
    scene: Scene, way: str
) -> None:
    there = await fenced(scene)
    if way == "adopt":
        scene.adopt("data")
    async with scene.hub("data", takeover="Force" if way == "force" else "Claimed") as hub:
        assert hub.start_kind == "restored"
        assert await uids(hub.admin) == there
        await make(hub.admin, "t-3")
    assert len(scene.kept("data")) == 1
    await refused(scene, "new", "another directory wrote this prefix last")


# ------------------------------------------------------------------------ a move


async def test_an_empty_directory_moves_a_hub_here_and_ends_it_there(scene: Scene) -> None:
    async with scene.hub("data") as hub:
        await make(hub.admin, "t-1")
        there, known = await uids(hub.admin), authority(hub)
    move = {"prefix": "new", "source": "Snapshot", "url": scene.url()}
    with pytest.raises(StartRefused, match="has not released the prefix"):
        async with scene.hub("moved", takeover="Never", **move):
            pass
    assert scene.head().moved == ""
    for kind in ("restored", "continue"):  # the settings stay as they are
        async with scene.hub("moved", **move) as moved:
            assert moved.start_kind == kind
            assert (await uids(moved.admin), authority(moved)) == (there, known)
    assert scene.head().moved == scene.url("new")
    error = await refused(scene, "data", "has been moved to " + scene.url("new"))
    assert "start it there" in error.hint


async def test_a_hub_that_is_moved_by_force_while_it_runs_is_fenced(scene: Scene) -> None:
    async with scene.hub("data") as hub:
        await make(hub.admin, "t-1")
        await shipped(scene, hub.admin)
        move = {"prefix": "new", "source": "Snapshot", "url": scene.url()}
        with pytest.raises(StartRefused, match="has not released the prefix"):
            async with scene.hub("moved", **move):
                pass
        await goes_on(scene, hub, "t-2")
        there = await uids(hub.admin)
        async with scene.hub("moved", takeover="Force", **move) as moved:
            assert await uids(moved.admin) == there
            error = await hub.end()
            assert isinstance(error, Fenced)
            assert f"whoever moved this hub to {scene.url('new')}" in str(error)
    await refused(scene, "data", "has been moved to")


async def test_a_hub_is_moved_to_how_it_was(scene: Scene) -> None:
    async with scene.hub("data") as hub:
        await make(hub.admin, "t-1")
        past = (await shipped(scene, hub.admin)).rev
        there = await uids(hub.admin)
        await make(hub.admin, "t-2")
    move = {"prefix": "new", "source": "Snapshot", "url": scene.url()}
    with pytest.raises(NothingToRestore):
        async with scene.hub("moved", to="1", **move):
            pass
    assert scene.head().moved == ""  # a point that is not there ends nothing
    async with scene.hub("moved", to=str(past), **move) as moved:
        assert await uids(moved.admin) == there
        await make(moved.admin, "t-3")
    async with scene.hub("moved", to=str(past), **move) as moved:
        assert set(await uids(moved.admin)) == {"t-1", "t-3"}


async def test_a_hub_is_not_moved_into_what_another_left(scene: Scene) -> None:
    async with scene.hub("data") as hub:
        await make(hub.admin, "t-1")
    async with scene.hub("other", prefix="new"):
        pass
    (scene.path / "new" / HEAD).unlink()
    move = {"prefix": "new", "source": "Snapshot", "url": scene.url()}
    with pytest.raises(ForeignPrefix, match="was written by another hub"):
        async with scene.hub("moved", **move):
            pass
    assert scene.head().moved == ""
    async with scene.hub("data") as hub:
        assert hub.start_kind == "continue"


async def test_an_empty_directory_becomes_the_hub_as_it_was(scene: Scene) -> None:
    async with scene.hub("data") as hub:
        await make(hub.admin, "t-1")
        past = (await shipped(scene, hub.admin)).rev
        there = await uids(hub.admin)
        await make(hub.admin, "t-2")
    async with scene.hub("new", source="Snapshot", to=str(past)) as new:
        assert await uids(new.admin) == there
    assert [each.base_seq < each.seq for each in scene.head().branches] == [True]
