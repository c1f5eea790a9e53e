"""The chain over a real S3 server: ship, restore, verify, and two hubs on one prefix."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hub.clock import SystemClock
from hub.store import create_hub_key
from snapshot.errors import Fenced, StartRefused
from snapshot.remote import FencingLevel, Remote, open_remote, probe
from snapshot.restore import restore
from snapshot.verify import verify
from tests.seaweed import Seaweed, seaweed
from tests.unit.snapshot.hub import serve
from tests.unit.snapshot.support import KEY, StillClock
from tools.restore import cli


@pytest.fixture(scope="module")
def s3_server() -> Iterator[Seaweed]:
    with seaweed() as server:
        yield server


@pytest.fixture
def url(s3_server: Seaweed, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in s3_server.environ.items():
        monkeypatch.setenv(name, value)
    return s3_server.url(f"hubs/{secrets.token_hex(6)}")


@pytest.fixture
def remote(url: str) -> Iterator[Remote]:
    remote = open_remote(url, environ={})
    yield remote
    remote.close()


async def test_a_hub_comes_back_from_a_bucket(tmp_path: Path, remote: Remote, url: str) -> None:
    async with serve(tmp_path / "old", remote) as hub:
        await hub.put(*(f"a{n}" for n in range(50)), "secret-1")
        hub.ship()
        await hub.put("b")
        await hub.drop("a7")
        hub.ship()
        before, state_hash = hub.contents(), hub.store.position.state_hash.hex()
    assert verify(remote, KEY, clock=StillClock(), scratch=tmp_path, deep=True).objects == 51
    create_hub_key(tmp_path / "new.key", token=lambda _: KEY.secret)
    result = CliRunner().invoke(cli, ["restore", "--from", url, "--into", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    async with serve(tmp_path / "new", remote, seed="2") as hub:
        assert hub.contents() == before
        assert hub.store.position.state_hash.hex() == state_hash


async def test_the_verbs_of_hub_restore_work_on_a_bucket(
    tmp_path: Path, remote: Remote, url: str
) -> None:
    async with serve(tmp_path / "old", remote) as hub:
        await hub.put("a", "b")
        hub.ship()
        await hub.put("c")
    create_hub_key(tmp_path / "k", token=lambda _: KEY.secret)
    key = ("--key-file", str(tmp_path / "k"))

    def run(verb: str, *args: str) -> str:
        result = CliRunner().invoke(cli, [verb, "--from", url, *args])
        assert result.exit_code == 0, result.output
        return result.output

    assert "fencing level 2" in run("doctor", *key, "--into", str(tmp_path / "none"))
    assert "1 segment of " in run("list", *key)
    assert "it opens e00000001/full/" in run("keycheck", *key)
    assert "pods: 1 only left" in run("diff", *key, "--dir", str(tmp_path / "old"))
    run("pin", "one", *key)
    run("unpin", "one")
    assert "0 objects of 0.0 KiB may go" in run("prune", *key)
    assert "released under epoch 2" in run("takeover", *key, "--i-have-stopped-the-old-hub")
    assert "planned; 0 deleted" in run("prune", *key, "--confirm")
    assert "at revision 2 to" in run("copy", *key, "--to-store", (tmp_path / "copy").as_uri())
    run("adopt", *key, "--into", str(tmp_path / "old"))


def test_the_probe_finds_a_real_server_whole(remote: Remote) -> None:
    remote.put_if_absent("HEAD", b"1")
    found = probe(remote, SystemClock())
    assert (found.fencing_level, found.missing) == (FencingLevel.ENFORCED, ())
    assert [entry.name for entry in remote.list()] == ["HEAD"]


async def test_of_two_hubs_on_one_bucket_the_second_to_write_is_refused(
    tmp_path: Path, remote: Remote
) -> None:
    async with serve(tmp_path / "one", remote) as one:
        await one.put("a")
        one.ship()
        with pytest.raises(StartRefused, match="another directory"):
            async with serve(tmp_path / "two", remote, seed="2"):
                pass
        restore(remote, KEY, tmp_path / "three", clock=StillClock("r"))
        async with serve(tmp_path / "three", remote, seed="3") as three:
            await one.put("late")
            with pytest.raises(Fenced, match="has taken this prefix"):
                one.ship()
            await three.put("b")
            assert three.ship() is not None
    assert verify(remote, KEY, clock=StillClock(), scratch=tmp_path, deep=True).objects == 2
