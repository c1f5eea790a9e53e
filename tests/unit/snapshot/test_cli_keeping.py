"""hub-restore copy, prune and doctor on small real prefixes."""

import datetime as dt
import os
from pathlib import Path

import pytest

from snapshot.remote import Remote, open_remote
from snapshot.ship import ship_full
from tests.unit.snapshot.cli import Command, key_file
from tests.unit.snapshot.hub import serve
from tests.unit.snapshot.support import OTHER_KEY
from tools.hubrestore.doctoring import file_system_of


@pytest.fixture
def run(tmp_path: Path) -> Command:
    return Command(tmp_path)


@pytest.fixture
async def prefix(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        for name in "abcde":
            await hub.put(name)
            hub.ship()
        hub.chain.release()


def age(bucket: Path, *, days: int) -> None:
    """Make every segment and manifest look so much older."""
    then = dt.datetime.now(dt.UTC).timestamp() - days * 86400
    for path in [*bucket.rglob("*.hs"), *bucket.rglob("manifest/*"), *bucket.rglob("trash/*")]:
        os.utime(path, (then, then))


@pytest.mark.usefixtures("prefix")
def test_a_copy_is_a_prefix_of_its_own_that_a_hub_may_start_on(
    tmp_path: Path, run: Command
) -> None:
    other = (tmp_path / "other").as_uri()
    assert "nothing has been changed" in run("copy", "--to-store", other, "--dry-run")
    assert not (tmp_path / "other").exists()
    assert "at revision 5 to" in run("copy", "--to-store", other)
    into = ("restore", "--into", str(tmp_path / "new"))
    result = run.bare(*into, "--from", other, "--key-file", run.key)
    assert result.exit_code == 0, result.output
    assert "at revision 5" in result.output
    assert run.json("copy", "--to-store", other)["copied"]["segments"] == 5


@pytest.mark.usefixtures("prefix")
def test_a_copy_can_end_at_a_point_and_not_in_itself(tmp_path: Path, run: Command) -> None:
    found = run.json("copy", "--to-store", (tmp_path / "other").as_uri(), "--to", "3")
    assert (found["copied"]["revision"], found["copied"]["segments"]) == (3, 3)
    assert run.json("copy", "--to-store", run.bucket, code=2)["error"]["kind"] == "UsageError"


async def test_a_copy_into_a_prefix_of_another_hub_is_refused(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    other = open_remote((tmp_path / "other").as_uri())
    for remote, name in ((bucket, "one"), (other, "two")):
        async with serve(tmp_path / name, remote, seed=name) as hub:
            await hub.put("a")
            hub.ship()
    error = run.json("copy", "--to-store", other.url, code=8)["error"]
    assert error["kind"] == "ForeignPrefix"


async def test_prune_shows_then_plans_then_deletes_what_is_old(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        for count in range(5):
            await hub.put(f"a{count}")
            hub.ship()
            ship_full(hub.store, hub.chain, hub.directory / "spool")
            hub.chain.commit_verified(hub.chain.head.full.name if hub.chain.head.full else "")
        hub.chain.release()
    assert run.json("prune")["names"] == []
    age(tmp_path / "bucket", days=2)
    shown = run.json("prune")
    assert shown["names"]
    assert not shown["confirmed"]
    assert "nothing has been changed: --confirm does it" in run("prune")
    objects = {each.name for each in bucket.list()}
    assert set(shown["names"]) <= objects
    planned = run.json("prune", "--confirm")
    assert (planned["cleaned"]["deleted"], planned["cleaned"]["failed"]) == (0, 0)
    assert run.json("prune")["waiting"] == shown["names"]
    assert {each.name for each in bucket.list()} >= objects
    age(tmp_path / "bucket", days=2)
    assert run.json("prune", "--confirm")["cleaned"]["deleted"] == len(shown["names"])
    assert not {each.name for each in bucket.list()} & set(shown["names"])
    assert "equal by state hash" in run("drill")


async def test_prune_leaves_a_prefix_alone_that_a_hub_writes(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a")
        hub.ship()
    assert "does it by itself, every hour" in run("prune")
    error = run.json("prune", "--confirm", code=8)["error"]
    assert error["kind"] == "Refused"
    assert "cleans up by itself" in error["hint"]


@pytest.mark.usefixtures("prefix")
def test_the_doctor_tries_bucket_volume_and_key(tmp_path: Path, run: Command) -> None:
    run("restore", "--into", str(tmp_path / "new"))
    found = run.json("doctor", "--into", str(tmp_path / "new"))
    grades = {each["name"]: each["grade"] for each in found["checks"]}
    assert grades["bucket"] == grades["permissions"] == grades["lock"] == grades["key"] == "ok"
    assert found["is_fit"]
    said = run("doctor", "--into", str(tmp_path / "new"))
    assert "fencing level 2" in said
    assert "nobody is at work on" in said
    assert sorted((tmp_path / "bucket" / "probe").rglob("*-*")) == []


@pytest.mark.usefixtures("prefix")
def test_the_doctor_names_a_key_that_others_can_read(tmp_path: Path, run: Command) -> None:
    Path(run.key).chmod(0o644)
    assert f"chmod 600 {run.key}" in run("doctor", "--into", str(tmp_path / "new"))


def test_the_doctor_ends_with_what_would_break_first(tmp_path: Path, run: Command) -> None:
    (tmp_path / "no-key").write_text("hello")
    run("doctor", "--into", str(tmp_path / "new"), "--key-file", str(tmp_path / "no-key"), code=7)
    away = "s3://b/p?endpoint=http://127.0.0.1:9&attempts=1"
    said = run("doctor", "--into", str(tmp_path / "new"), "--from", away, code=6)
    assert "fail  bucket" in said


@pytest.mark.parametrize(
    ("place", "kind"),
    [("/srv/a/b", "nfs4"), ("/srv/ab", "ext4"), ("/", "ext4"), ("/mnt/my disk/x", "fuse.sshfs")],
)
def test_the_type_of_a_volume_is_that_of_the_nearest_mount(
    tmp_path: Path, place: str, kind: str
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
        "30 22 0:44 / /srv/a rw shared:1 - nfs4 server:/a rw\n"
        "31 22 0:45 / /mnt/my\\040disk rw - fuse.sshfs x rw\n"
    )
    assert file_system_of(Path(place), mounts) == kind


def test_another_key_is_told_by_its_fingerprint(tmp_path: Path, run: Command) -> None:
    other = key_file(tmp_path / "other", OTHER_KEY)
    said = run("doctor", "--into", str(tmp_path / "new"), "--key-file", str(other))
    assert OTHER_KEY.fingerprint in said
