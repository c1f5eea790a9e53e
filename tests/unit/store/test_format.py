"""Files that an older version has written."""

from pathlib import Path

import pytest
import zstandard

from hub.store import Corrupt, HubKey, Revision, Store, load_hub_key, verify_store
from hub.store.directory import DATA_FILE
from hub.store.lmdb_env import FORMAT, NAME_FORMAT, OLDER_FORMATS, Environment
from tests.unit.store.given import CLOCK, create, key

GOLDEN = Path(__file__).parents[2] / "golden" / "store"
OLD = sorted(each.decode().rpartition("-")[2] for each in OLDER_FORMATS)


@pytest.fixture(params=OLD)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory whose file is of an older format; see tests/golden/store/README.md."""
    path = tmp_path / "data"
    path.mkdir(mode=0o700)
    golden = (GOLDEN / f"format-{request.param}.mdb.zst").read_bytes()
    (path / DATA_FILE).write_bytes(zstandard.decompress(golden))
    return path


def hub_key(path: Path) -> HubKey:
    number = read_format(path).rpartition(b"-")[2].decode()
    return load_hub_key(GOLDEN / f"format-{number}.hubkey")


def read_format(path: Path) -> bytes:
    env = Environment(path, read_only=True)
    try:
        with env.read() as txn:
            return txn.get(NAME_FORMAT, b"", db=env.meta)
    finally:
        env.close()


async def test_an_older_file_is_upgraded_when_it_is_opened(old: Path) -> None:
    secret = hub_key(old)
    store = Store.open(old, hub_key=secret, clock=CLOCK, map_bytes=1 << 30)
    assert (store.position.revision, store.position.count, store.revision) == (8, 4, 9)
    assert store.position.state_hash.hex()[:16] == "228124ab9f1fd2e3"
    texts = {
        name: store.read(entry)
        for name in ("plain", "sealed", "lease", "a" * 600)
        if (entry := store.get(key(name)))
    }
    assert texts == {
        "plain": b'{"rv":"1","text":"first"}',
        "sealed": b'{"rv":"3","text":"secret-2"}',
        "lease": b'{"rv":"9","text":"renewed"}',
        "a" * 600: b'{"rv":"8","text":"long"}',
    }
    assert [change.revision for change in store.changes(Revision(0), b"widgets")] == [
        1, 2, 3, 4, 6, 7, 8, 9
    ]  # fmt: skip
    assert store.meta_get("note") == b"kept"
    assert await store.commit(create(key("next"))) == (10,)
    assert store.verify().count == 5
    await store.close()
    assert read_format(old) == FORMAT


def test_an_older_file_is_verified_as_it_is(old: Path) -> None:
    before = read_format(old)
    report = verify_store(old, hub_key=hub_key(old))
    assert (report.format.encode(), report.position.count) == (before, 4)
    assert read_format(old) == before


def test_a_newer_file_is_refused_by_name(old: Path) -> None:
    secret = hub_key(old)
    env = Environment(old, map_bytes=1 << 30)
    with env.write() as txn:
        txn.put(NAME_FORMAT, b"hublet-store-99", db=env.meta)
    env.close()
    with pytest.raises(Corrupt, match=r"format b'hublet-store-99'.*use the version that wrote it"):
        Store.open(old, hub_key=secret, clock=CLOCK, map_bytes=1 << 30)
    assert read_format(old) == b"hublet-store-99"
