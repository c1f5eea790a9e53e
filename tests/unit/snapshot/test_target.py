"""Restoring in place: the old store or the new one, whole, wherever a restore stops."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hub.store import STORE_DIRECTORY, Locked, Store, has_store
from snapshot import local
from snapshot.errors import SnapshotError, TargetBusy, TargetNotEmpty
from snapshot.local import LocalState
from snapshot.remote import Remote
from snapshot.restore import restore
from snapshot.target import OLD_PREFIX, SPOOL, STAGE, finish_swap, occupied, staged
from tests.unit.snapshot.hub import serve
from tests.unit.snapshot.support import KEY, StillClock, contents

ROOT = Path(__file__).resolve().parents[3]
EARLIER = f"{OLD_PREFIX}20000101T000000Z"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a start finds in a data directory."""

    contents: dict[bytes, bytes]
    dir_id: str
    state: LocalState | None
    has_claim: bool


def start(directory: Path) -> Seen:
    """Open a data directory as a hub does, check its store, and close it."""
    with occupied(directory) as place:
        seen = look(place, directory)
        left = {each.name for each in directory.iterdir()}
        assert left.isdisjoint({SPOOL, STAGE, "store.trash", "data.mdb", "data.mark"})
        assert not (place / "replaces").exists()
    return seen


def look(place: Path, directory: Path) -> Seen:
    """Read a store, and what a directory says of it."""
    store = Store.open(place, hub_key=KEY, clock=StillClock("o"), can_create=False)
    try:
        store.verify()
        state, claim = local.load_state(directory), local.load_claim(directory)
        found = {bytes(key): value for key, value in contents(store).items()}
        return Seen(found, store.dir_id, state, claim is not None)
    finally:
        store.close_offline()


@pytest.fixture
async def new(tmp_path: Path, bucket: Remote) -> dict[bytes, bytes]:
    """What a restore from the bucket brings."""
    async with serve(tmp_path / "shipper", bucket) as hub:
        await hub.put("a", "b", "secret-1")
        hub.ship()
        await hub.put("c")
        hub.ship()
        return hub.contents()


@pytest.fixture
async def old(tmp_path: Path, clean_bucket: Remote) -> Path:
    """A data directory with another hub's store."""
    async with serve(tmp_path / "template", clean_bucket, seed="old") as hub:
        await hub.put("mine")
        hub.ship()
    (tmp_path / "template" / "admin.kubeconfig").write_text("x")
    (tmp_path / "template" / "audit.log").write_text("x")
    return tmp_path / "template"


@pytest.fixture
def clean_bucket(tmp_path: Path) -> Remote:
    from snapshot.remote import open_remote

    return open_remote((tmp_path / "other-bucket").as_uri())


def in_old_layout(directory: Path) -> None:
    """Turn a data directory into one of a release that had the store directly in it."""
    for each in (directory / STORE_DIRECTORY).iterdir():
        each.rename(directory / each.name)
    (directory / STORE_DIRECTORY).rmdir()


def with_an_earlier(directory: Path) -> None:
    shutil.copytree(directory / STORE_DIRECTORY, directory / EARLIER)


def with_rests(directory: Path) -> None:
    """Leave what killed restores and a killed first start leave."""
    for name in (SPOOL, STAGE, "store.trash"):
        (directory / name).mkdir()
        (directory / name / "rest").touch()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("shape", [with_an_earlier, in_old_layout, with_rests])
def test_a_restore_that_stops_anywhere_leaves_the_old_store_or_the_new_one(
    tmp_path: Path, old: Path, new: dict[bytes, bytes], shape: Callable[[Path], None]
) -> None:
    before = look(old / STORE_DIRECTORY, old)
    shape(old)
    is_new = []
    for directory in rounds(tmp_path, old):
        seen = start(directory)
        is_new.append(seen != before)
        if is_new[-1]:
            check_new(seen, new)
            check_kept(directory, before, has_earlier=shape is with_an_earlier)
    first = is_new.index(True)
    assert first > 0, "the old one is left for some time"
    assert all(is_new[first:])
    assert len(is_new) - first > 10, "many steps come after the decision"


def test_a_first_restore_that_stops_anywhere_leaves_nothing_or_the_new_store(
    tmp_path: Path, bucket: Remote, new: dict[bytes, bytes]
) -> None:
    is_there = []
    for directory in rounds(tmp_path, tmp_path / "missing"):
        with occupied(directory) as place:
            is_there.append(has_store(place))
        if is_there[-1]:
            check_new(start(directory), new)
        else:
            restore(bucket, KEY, directory, clock=StillClock("s"))
            check_new(start(directory), new)
    first = is_there.index(True)
    assert 0 < first < len(is_there) - 1
    assert all(is_there[first:])


def rounds(tmp_path: Path, template: Path) -> list[Path]:
    """Restore again and again, stopping after each step in turn; return the directories."""
    command = [sys.executable, "-m", "tests.unit.snapshot.dying_restore"]
    places = [(tmp_path / "bucket").as_uri(), str(template), str(tmp_path / "rounds")]
    subprocess.run([*command, *places], cwd=ROOT, check=True, timeout=100)
    numbers = sorted(int(each.name) for each in (tmp_path / "rounds").iterdir())
    return [tmp_path / "rounds" / str(number) / "data" for number in numbers]


def check_new(seen: Seen, expected: dict[bytes, bytes]) -> None:
    assert seen.contents == expected
    assert seen.has_claim
    assert seen.state is not None
    assert (seen.state.dir_id, seen.state.sessions) == (seen.dir_id, ())


def check_kept(directory: Path, before: Seen, *, has_earlier: bool) -> None:
    """The store that was replaced is whole, with its local files; an earlier one too, or gone."""
    kept = {each.name for each in directory.iterdir() if each.name.startswith(OLD_PREFIX)}
    if EARLIER in kept:
        assert has_earlier
        assert look(directory / EARLIER, directory).contents == before.contents
    (replaced,) = kept - {EARLIER}
    assert look(directory / replaced, directory / replaced) == before


def test_a_store_is_replaced_and_kept_until_the_next_restore(
    tmp_path: Path, bucket: Remote, old: Path, new: dict[bytes, bytes]
) -> None:
    before = start(old)
    first = restore(bucket, KEY, old, clock=StillClock("r"))
    assert first.replaced.startswith(OLD_PREFIX)
    check_new(start(old), new)
    check_kept(old, before, has_earlier=False)
    (old / local.CLAIM_FILE).unlink()  # as a hub does that has started on it
    second = restore(bucket, KEY, old, clock=StillClock("s"))
    assert kept_in(old) == {second.replaced}
    assert second.replaced != first.replaced, "though the clock stood still"
    assert local.load_state(old / second.replaced) is not None
    assert (old / "audit.log").exists()


def test_second_thoughts_about_a_restore_do_not_cost_the_store_that_a_hub_ran_on(
    tmp_path: Path, bucket: Remote, old: Path, new: dict[bytes, bytes]
) -> None:
    before = start(old)
    first = restore(bucket, KEY, old, clock=StillClock("r"))
    second = restore(bucket, KEY, old, clock=StillClock("s"))
    assert kept_in(old) == {first.replaced, second.replaced}
    assert look(old / first.replaced, old / first.replaced) == before
    assert local.load_claim(old / second.replaced) is not None


def kept_in(directory: Path) -> set[str]:
    return {each.name for each in directory.iterdir() if each.name.startswith(OLD_PREFIX)}


def test_a_kept_store_can_be_put_back_by_hand(
    tmp_path: Path, bucket: Remote, old: Path, new: dict[bytes, bytes]
) -> None:
    before = start(old)
    done = restore(bucket, KEY, old, clock=StillClock("r"))
    (old / STORE_DIRECTORY).rename(old / "away")
    (old / done.replaced).rename(old / STORE_DIRECTORY)
    (old / local.CLAIM_FILE).unlink()
    (old / STORE_DIRECTORY / local.STATE_FILE).replace(old / local.STATE_FILE)
    assert start(old) == before


def test_without_a_store_to_keep_no_earlier_one_is_removed(
    tmp_path: Path, bucket: Remote, old: Path, new: dict[bytes, bytes]
) -> None:
    (old / STORE_DIRECTORY).rename(old / EARLIER)
    (old / "audit.log").unlink()
    (old / STORE_DIRECTORY / "building").mkdir(parents=True)
    local.spend_claim(old)
    assert restore(bucket, KEY, old, clock=StillClock("r")).replaced == ""
    check_new(start(old), new)
    assert has_store(old / EARLIER)


def test_a_claim_of_a_store_that_is_gone_does_not_become_the_new_ones(
    tmp_path: Path, bucket: Remote, old: Path, new: dict[bytes, bytes]
) -> None:
    restore(bucket, KEY, old, clock=StillClock("r"))
    shutil.rmtree(old / STORE_DIRECTORY)
    (old / "audit.log").unlink()
    with staged(old, clock=StillClock("s")) as stage:
        shutil.copytree(tmp_path / "shipper" / STORE_DIRECTORY, stage.store, dirs_exist_ok=True)
    seen = start(old)
    assert (seen.has_claim, seen.state) == (False, None)


def test_a_failed_restore_leaves_everything_as_it_was(
    tmp_path: Path, bucket: Remote, old: Path, new: dict[bytes, bytes]
) -> None:
    before, names = start(old), sorted(each.name for each in old.iterdir())
    next((tmp_path / "bucket").rglob("*.hs")).unlink()
    with pytest.raises(SnapshotError):
        restore(bucket, KEY, old, clock=StillClock("r"))
    assert (start(old), sorted(each.name for each in old.iterdir())) == (before, names)


def test_a_swap_that_the_volume_refuses_half_way_is_finished_by_the_next_start(
    tmp_path: Path,
    bucket: Remote,
    old: Path,
    new: dict[bytes, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, rename = start(old), os.rename

    def refuse(source: Path, target: Path) -> None:
        if Path(target).name == STORE_DIRECTORY:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(target))
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        with pytest.raises(OSError, match="Input/output error"):
            restore(bucket, KEY, old, clock=StillClock("r"))
    check_new(start(old), new)
    check_kept(old, before, has_earlier=False)


def test_a_running_hubs_directory_is_refused(
    tmp_path: Path, bucket: Remote, old: Path, new: dict[bytes, bytes]
) -> None:
    with occupied(old), pytest.raises(TargetBusy) as refused:
        restore(bucket, KEY, old, clock=StillClock("r"))
    assert refused.value.exit_code == 9
    assert "stop the hub" in refused.value.hint


def test_nobody_takes_a_directory_that_is_being_restored(tmp_path: Path, old: Path) -> None:
    with (
        staged(old, clock=StillClock()),
        pytest.raises(Locked, match=f"{old} is in use by another hub process"),
        occupied(old),
    ):
        pass


def test_who_holds_a_directory_may_restore_into_it(
    tmp_path: Path, old: Path, new: dict[bytes, bytes]
) -> None:
    with occupied(old):
        with staged(old, clock=StillClock(), is_held=True) as stage:
            source = tmp_path / "shipper" / STORE_DIRECTORY
            shutil.copytree(source, stage.store, dirs_exist_ok=True)
        with pytest.raises(Locked), occupied(old):
            pass
    assert start(old).contents == new


def test_a_directory_that_nothing_was_put_into_is_not_left(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), staged(tmp_path / "new", clock=StillClock()):
        raise ZeroDivisionError
    with occupied(tmp_path / "new"):
        assert (tmp_path / "new").is_dir()
    assert list(tmp_path.iterdir()) == []


def test_another_programs_lmdb_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "data.mdb").write_bytes(b"theirs")
    with pytest.raises(TargetNotEmpty), staged(tmp_path / "data", clock=StillClock()):
        pass
    assert (tmp_path / "data" / "data.mdb").read_bytes() == b"theirs"


def test_two_stores_in_one_directory_are_not_chosen_between(tmp_path: Path, old: Path) -> None:
    shutil.copy(old / STORE_DIRECTORY / "data.mdb", old / "data.mdb")
    with (
        pytest.raises(TargetNotEmpty, match="holds two stores"),
        staged(old, clock=StillClock()),
    ):
        pass
    assert has_store(old)


def test_finishing_a_swap_where_none_was_begun_changes_nothing(old: Path) -> None:
    before = {each: each.stat().st_mtime_ns for each in old.rglob("*")}
    finish_swap(old)
    assert {each: each.stat().st_mtime_ns for each in old.rglob("*")} == before
