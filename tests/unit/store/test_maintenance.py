"""Checking and compacting a store that no hub runs on."""

import errno
import os
import re
import shutil
import stat
from pathlib import Path

import lmdb
import pytest

from hub.store import (
    Corrupt,
    KeyMismatch,
    Locked,
    MapFull,
    Revision,
    Store,
    WriteFailed,
    compact_store,
    verify_store,
)
from hub.store.directory import BUILD_DIRECTORY, DATA_FILE, LOCK_FILE
from hub.store.hubkey import HubKey
from hub.store.lmdb_env import NAME_POSITION, Environment
from tests.unit.store.given import (
    create,
    delete,
    draft,
    hub_key,
    key,
    kill,
    labels,
    noise,
    open_store,
)

LEASE = key("lease", resource="leases")


async def fill(store: Store) -> None:
    """Leave free pages, a log, Events and a renewal."""
    await store.commit(*(create(key(f"n{n:03}"), noise(2000), sealed=n > 200) for n in range(300)))
    await store.commit(*(delete(key(f"n{n:03}"), expect=n + 1) for n in range(250)))
    await store.compact_log(Revision(400))
    (revision,) = await store.commit(create(LEASE, "held", index=labels(env="prod")))
    await store.commit(create(key("e", resource="events"), volatile=True))
    store.renew(LEASE, draft("renewed"), labels(env="prod"), expect=revision)


@pytest.fixture
async def closed(tmp_path: Path) -> Path:
    store = open_store(tmp_path / "data")
    await fill(store)
    await store.close()
    return tmp_path / "data"


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}


async def test_a_whole_store_is_reported_and_not_touched(closed: Path) -> None:
    before = files(closed)
    report = verify_store(closed, hub_key=hub_key(closed))
    assert files(closed) == before
    store = open_store(closed)
    assert report.position == store.position
    assert (report.dir_id, report.format) == (store.dir_id, "hublet-store-2")
    assert report.was_clean
    assert (report.position.count, report.volatile, report.renewals) == (51, 1, 1)
    assert (report.log_after, report.log_entries) == (400, 151)
    assert report.data_keys == (1,)
    assert 0 < report.free_bytes < report.file_bytes == (closed / DATA_FILE).stat().st_size
    await store.close()


async def test_a_killed_store_stays_one(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    await fill(store)
    kill(store)
    (tmp_path / "data" / LOCK_FILE).unlink()
    before = files(tmp_path / "data")
    report = verify_store(tmp_path / "data", hub_key=hub_key(tmp_path / "data"))
    assert (report.was_clean, report.renewals) == (False, 0)
    assert files(tmp_path / "data") == before


def test_a_compacted_store_is_smaller_and_the_same(closed: Path) -> None:
    secret = hub_key(closed)
    before = verify_store(closed, hub_key=secret)
    done = compact_store(closed, hub_key=secret)
    after = verify_store(closed, hub_key=secret)
    assert done.position == before.position == after.position
    assert (done.before_bytes, done.after_bytes) == (before.file_bytes, after.file_bytes)
    assert after.file_bytes <= before.file_bytes - before.free_bytes + 8 * 4096
    assert (after.log_entries, after.log_after) == (before.log_entries, before.log_after)
    assert (after.volatile, after.renewals) == (before.volatile, before.renewals)
    assert stat.S_IMODE((closed / DATA_FILE).stat().st_mode) == 0o600
    assert not (closed / BUILD_DIRECTORY).exists()


async def test_a_compacted_store_goes_on(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last = verify_store(closed, hub_key=hub_key(closed)).position.revision
    compact_store(closed, hub_key=hub_key(closed))
    monkeypatch.setattr("hub.store.opening.audit.verify", _never)  # it has its mark
    store = open_store(closed)
    (revision,) = await store.commit(create(key("next")))
    assert revision > last
    lease = store.get(LEASE)
    assert lease is not None
    assert b"renewed" in store.read(lease)
    await store.close()


def test_what_a_hub_runs_on_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "data"
    store = open_store(path)
    with pytest.raises(Locked, match="in use by another hub process"):
        verify_store(path, hub_key=hub_key(path))
    with pytest.raises(Locked, match="in use by another hub process"):
        compact_store(path, hub_key=hub_key(path))
    store.close_offline()


def test_where_there_is_no_store_none_is_made(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(FileNotFoundError, match="has no store"):
        compact_store(tmp_path / "data", hub_key=hub_key(tmp_path / "data"))
    assert list((tmp_path / "data").iterdir()) == []


def test_another_hubs_key_reads_nothing(closed: Path) -> None:
    before = files(closed)
    for operation in (verify_store, compact_store):
        with pytest.raises(KeyMismatch, match="fingerprint"):
            operation(closed, hub_key=HubKey(bytes(32)))
    assert files(closed) == before


def test_a_damaged_page_is_found_in_a_file_that_has_its_mark(closed: Path) -> None:
    content = bytearray((closed / DATA_FILE).read_bytes())
    for found in re.finditer(b"widgets\0one\0n299", bytes(content)):
        at = found.start() // 4096 * 4096
        content[at : at + 4096] = b"\xff" * 4096
    (closed / DATA_FILE).write_bytes(content)
    for operation in (verify_store, compact_store):
        with pytest.raises(Corrupt, match="torn"):
            operation(closed, hub_key=hub_key(closed))
    assert (closed / DATA_FILE).read_bytes() == content


def test_a_state_that_does_not_add_up_is_not_compacted(closed: Path) -> None:
    env = Environment(closed, map_bytes=1 << 30)
    with env.write() as txn:
        position = bytearray(txn.get(NAME_POSITION, b"", db=env.meta))
        position[8] ^= 1
        txn.put(NAME_POSITION, bytes(position), db=env.meta)
    env.close()
    before = files(closed)[DATA_FILE]
    with pytest.raises(Corrupt, match="the record says"):
        compact_store(closed, hub_key=hub_key(closed))
    assert files(closed)[DATA_FILE] == before
    assert not (closed / BUILD_DIRECTORY).exists()


def engine_error(code: int) -> lmdb.Error:
    error = lmdb.Error(f"mdb_env_copy2: {os.strerror(code)}")
    error.code = code  # type: ignore[misc]  # as the engine sets it
    return error


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (lmdb.DiskError("mdb_env_copy2: No space left"), MapFull, "free space on the volume"),
        (engine_error(errno.EDQUOT), MapFull, "free space on the volume"),
        (engine_error(errno.EIO), WriteFailed, "Input/output error.*look after the volume"),
        (engine_error(errno.EACCES), WriteFailed, "Permission denied.*look after the volume"),
    ],
)
def test_a_copy_that_fails_changes_nothing_and_says_why(
    closed: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: lmdb.Error,
    expected: type[MapFull],
    message: str,
) -> None:
    class Failing:
        def __init__(self, env: lmdb.Environment) -> None:
            self._env = env

        def copy(self, path: str, *, compact: bool) -> None:
            assert compact
            (Path(path) / DATA_FILE).write_bytes(b"half")
            raise error

        def __getattr__(self, name: str) -> object:
            return getattr(self._env, name)

    before = files(closed)
    plain = Environment.__init__

    def opening(self: Environment, path: Path, *, read_only: bool = False) -> None:
        plain(self, path, read_only=read_only)
        self.env = Failing(self.env)  # type: ignore[assignment]  # stands in for a failing volume

    monkeypatch.setattr(Environment, "__init__", opening)
    monkeypatch.setattr("hub.store.lmdb_env._SCARCE_BYTES", 0)  # however full this machine is
    with pytest.raises(MapFull, match=message) as caught:
        compact_store(closed, hub_key=hub_key(closed))
    assert type(caught.value) is expected
    assert files(closed) == before
    assert not (closed / BUILD_DIRECTORY).exists()


def test_a_copy_is_checked_without_being_taken_for_the_original(
    closed: Path, tmp_path: Path
) -> None:
    shutil.copytree(closed, tmp_path / "copy")
    secret = hub_key(closed)
    original = verify_store(closed, hub_key=secret)
    assert verify_store(tmp_path / "copy", hub_key=secret) == original


def _never(*_: object) -> None:
    raise AssertionError("a marked file is not audited at opening")
