"""Who may use a directory, and which files are opened."""

import shutil
import stat
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

from hub.store import Corrupt, KeyMismatch, Locked, Store, create_hub_key
from hub.store.directory import (
    BUILD_DIRECTORY,
    DATA_FILE,
    LOCK_FILE,
    MARK_FILE,
    DirectoryLock,
)
from hub.store.lmdb_env import Environment
from tests.unit.store.given import CLOCK, create, hub_key, key, kill, noise, open_store


@pytest.fixture
async def closed(tmp_path: Path) -> Path:
    """A directory with a store of some objects, closed."""
    store = open_store(tmp_path / "data")
    await store.commit(*(create(key(f"n{n}"), noise(900), sealed=n % 2 == 0) for n in range(100)))
    await store.close()
    return tmp_path / "data"


def open_offline(path: Path, beside: Path) -> Store:
    return Store.open(path, hub_key=hub_key(beside), clock=CLOCK, map_bytes=1 << 30)


def test_a_new_store_is_private_and_empty(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    assert (store.position.count, store.position.state_hash) == (0, b"\0" * 32)
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    for file in (tmp_path / "data").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    store.close_offline()


def test_a_store_is_not_created_unless_allowed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="restore one"):
        Store.open(
            tmp_path / "data", hub_key=hub_key(tmp_path / "data"), clock=CLOCK, can_create=False
        )


def test_a_second_opening_in_this_process_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    with pytest.raises(Locked, match="in use by another hub process"):
        open_store(tmp_path / "data")
    store.close_offline()
    open_store(tmp_path / "data").close_offline()


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    program = (
        "import sys, pathlib\n"
        "from hub.store.directory import DirectoryLock\n"
        "from hub.store.errors import Locked\n"
        "try: DirectoryLock(pathlib.Path(sys.argv[1]))\n"
        "except Locked: sys.exit(42)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "data")], check=False, timeout=30
    )
    assert done.returncode == 42
    store.close_offline()


def test_a_stale_reader_table_is_discarded(closed: Path) -> None:
    (closed / LOCK_FILE).write_bytes(b"stale" * 1000)
    store = open_offline(closed, closed)
    assert store.verify().count == 100
    store.close_offline()


def test_the_directory_id_is_kept(tmp_path: Path) -> None:
    store = Store.open(
        tmp_path / "data", hub_key=hub_key(tmp_path / "data"), clock=CLOCK, dir_id="mine"
    )
    assert (store.dir_id, store.was_clean) == ("mine", True)
    store.close_offline()
    store = open_store(tmp_path / "data")
    assert store.dir_id == "mine"
    store.close_offline()


@pytest.mark.parametrize("size", [0, 100, 4096, 4200])
def test_a_file_cut_to_its_first_pages_is_refused(closed: Path, size: int) -> None:
    with (closed / DATA_FILE).open("r+b") as file:
        file.truncate(size)
    with pytest.raises(Corrupt, match="hub-restore"):
        open_offline(closed, closed)


def test_a_torn_file_is_refused(closed: Path) -> None:
    with (closed / DATA_FILE).open("r+b") as file:
        file.truncate((closed / DATA_FILE).stat().st_size // 2)
    with pytest.raises(Corrupt, match="torn"):
        open_offline(closed, closed)


def test_a_foreign_file_is_refused(closed: Path) -> None:
    (closed / DATA_FILE).write_bytes(b"SQLite format 3\0" * 1000)
    with pytest.raises(Corrupt, match="not a store of hublet"):
        open_offline(closed, closed)
    DirectoryLock(closed).close()


def test_another_programs_lmdb_file_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with lmdb.open(str(data)) as env, env.begin(write=True) as txn:
        txn.put(b"key", b"value")
    before = (data / DATA_FILE).read_bytes()
    with pytest.raises(Corrupt, match="is not a store of hublet"):
        open_store(data)
    assert (data / DATA_FILE).read_bytes() == before


def test_another_hubs_key_is_refused(closed: Path, tmp_path: Path) -> None:
    other = create_hub_key(tmp_path / "other.key", token=CLOCK.token)
    with pytest.raises(KeyMismatch, match="use the key file of the hub that wrote it"):
        Store.open(closed, hub_key=other, clock=CLOCK)
    open_offline(closed, closed).close_offline()


def test_a_hub_key_inside_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    inside = create_hub_key(tmp_path / "data" / "key", token=CLOCK.token)
    with pytest.raises(KeyMismatch, match="move it out"):
        Store.open(tmp_path / "data", hub_key=inside, clock=CLOCK)


def test_a_whole_copy_is_checked_and_opened(closed: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(closed, copy)
    store = open_offline(copy, closed)
    assert store.verify().count == 100
    mark = (copy / MARK_FILE).read_text()
    store.close_offline()
    assert mark != (closed / MARK_FILE).read_text()


def test_a_copy_with_a_changed_value_is_refused(closed: Path, tmp_path: Path) -> None:
    store = open_offline(closed, closed)
    copy = tmp_path / "copy"
    store._shared.env.env.copy(str(_made(copy)))
    store.close_offline()
    raw = (copy / DATA_FILE).read_bytes()
    at = raw.rindex(b"\x28\xb5\x2f\xfd") + 200
    (copy / DATA_FILE).write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
    with pytest.raises(Corrupt):
        open_offline(copy, closed)


def test_a_copy_that_contradicts_itself_is_refused_and_not_touched(
    closed: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(closed, copy)
    env = Environment(copy, map_bytes=1 << 30)
    with env.write() as txn:
        txn.delete(key("n1"), db=env.objects)
    env.close()
    before = files(copy)
    for _ in range(2):
        with pytest.raises(Corrupt, match="have None"):
            open_offline(copy, closed)
        assert files(copy) == before


def test_a_crash_leaves_the_mark_and_skips_the_walk(
    closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill(open_offline(closed, closed))
    monkeypatch.setattr("hub.store.audit.verify", lambda *_: pytest.fail("walked"))
    store = open_offline(closed, closed)
    assert not store.was_clean
    store.close_offline()


def test_what_a_crash_left_of_creating_is_cleared(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "building").mkdir(parents=True)
    (data / "building" / DATA_FILE).write_bytes(b"half")
    store = open_store(data)
    assert not (data / "building").exists()
    store.close_offline()


def test_what_a_crash_left_of_compacting_is_cleared(closed: Path) -> None:
    (closed / BUILD_DIRECTORY).mkdir()
    (closed / BUILD_DIRECTORY / DATA_FILE).write_bytes(b"half")
    open_offline(closed, closed).close_offline()
    assert not (closed / BUILD_DIRECTORY).exists()


def files(path: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in path.iterdir()}


def _made(path: Path) -> Path:
    path.mkdir()
    return path
