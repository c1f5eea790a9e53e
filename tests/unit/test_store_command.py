"""``hublet store``: what a person sees, and how it ends when something is wrong."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hub.store import Draft, Op, Store, Write, encode_index, encode_key, verify_store
from snapshot.target import occupied
from tests.unit.store.given import CLOCK, hub_key
from tools import failures, hublet

SECRET = encode_key("secrets", "one", "a")


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A closed store with one sealed object."""
    path = tmp_path / "data"
    store = Store.open(path / "store", hub_key=hub_key(path), clock=CLOCK)
    body = Draft(b'{"kind":"Secret","metadata":{"resourceVersion":"', b'"},"data":{"a":"eA=="}}')
    await store.commit(Write(Op.CREATE, SECRET, body, encode_index({}, {}), sealed=True))
    await store.close()
    return path


def run(*words: str) -> Result:
    return CliRunner().invoke(hublet.main, ["store", *words])


def test_a_store_is_verified(data: Path) -> None:
    done = run("verify", "--data-dir", str(data))
    assert done.exit_code == 0, done.output
    assert f"{data} is whole: hublet-store-2" in done.output
    assert "revision 1, 1 objects" in done.output
    assert "closed cleanly" in done.output
    facts = json.loads(run("verify", "--data-dir", str(data), "--json").output)
    assert (facts["position"]["revision"], facts["data_keys"]) == (1, [1])
    assert len(facts["position"]["state_hash"]) == 64


def test_a_store_is_verified_from_inside(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data)
    for place in (".", ""):
        done = run("verify", "--data-dir", place)
        assert done.exit_code == 0, done.output
        assert ". is whole: hublet-store-2" in done.output


@pytest.mark.parametrize("command", ["verify", "compact", "rotate-key"])
def test_the_root_is_no_data_directory(command: str) -> None:
    done = run(command, "--data-dir", "/")
    assert done.exit_code == failures.EXIT_STORE
    assert "hub key file /.key lies inside the data directory /" in done.stderr


def test_a_store_is_compacted(data: Path) -> None:
    facts = json.loads(run("compact", "--data-dir", str(data), "--json").output)
    assert facts["position"]["count"] == 1
    assert facts["after_bytes"] <= facts["before_bytes"]
    assert "1 objects at revision 1, checked" in run("compact", "--data-dir", str(data)).output


async def test_the_data_key_is_rotated(data: Path) -> None:
    done = await _aside("rotate-key", "--data-dir", str(data))
    assert "data key 2 seals from now on, 1 objects are under it" in done.output
    store = Store.open(data / "store", hub_key=hub_key(data), clock=CLOCK)
    found = store.get(SECRET)
    assert found is not None
    assert json.loads(store.read(found)) == {
        "kind": "Secret",
        "metadata": {"resourceVersion": "2"},
        "data": {"a": "eA=="},
    }
    await store.close()
    assert verify_store(data / "store", hub_key=hub_key(data)).data_keys == (1, 2)


async def _aside(*words: str) -> Result:
    """Run a command that has an event loop of its own."""
    return await asyncio.to_thread(run, *words)


@pytest.mark.parametrize("command", ["verify", "compact", "rotate-key"])
def test_what_cannot_be_is_told(command: str, data: Path, tmp_path: Path) -> None:
    done = run(command, "--data-dir", str(data), "--key-file", str(tmp_path / "no.key"))
    assert done.exit_code == failures.EXIT_STORE
    assert "no.key does not exist: put the key of this hub there" in done.stderr
    with occupied(data):
        done = run(command, "--data-dir", str(data))
    assert done.exit_code == failures.EXIT_STORE
    assert "in use by another hub process" in done.stderr
    (tmp_path / "empty").mkdir()
    key = str(tmp_path / "data.key")
    done = run(command, "--data-dir", str(tmp_path / "empty"), "--key-file", key)
    assert (done.exit_code, list((tmp_path / "empty").iterdir())) == (failures.EXIT_STORE, [])
    assert "empty has no store" in done.stderr
    assert "hint: name the data directory of a hub with --data-dir" in done.stderr
    done = run(command, "--data-dir", str(tmp_path / "missing"))
    assert done.exit_code == failures.EXIT_STORE
    assert f"error: {tmp_path / 'missing'} does not exist\n" in done.stderr
    assert not (tmp_path / "missing").exists()
    (tmp_path / "file").touch()
    done = run(command, "--data-dir", str(tmp_path / "file"), "--key-file", key)
    assert done.exit_code == failures.EXIT_STORE, done.output
