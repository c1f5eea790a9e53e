"""hub-restore: what it prints, where, and with which exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest
from click.testing import CliRunner, Result

from hub.store import HubKey, create_hub_key, has_store
from snapshot.chain import Chain
from snapshot.header import Kind
from snapshot.remote import Remote
from tests.unit.snapshot.hub import serve
from tests.unit.snapshot.support import KEY, OTHER_KEY, next_segment, record, take
from tools.restore import cli

ROOT = Path(__file__).resolve().parents[3]


class Run(Protocol):
    """Runs the command with arguments and environment variables."""

    def __call__(self, *args: str, **environ: str) -> Result: ...


def key_file(path: Path, key: HubKey) -> Path:
    create_hub_key(path, token=lambda _: key.secret)
    return path


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run hub-restore against the bucket, in an environment of its own."""

    def run(*args: str, **environ: str) -> Result:
        url = (tmp_path / "bucket").as_uri()
        return CliRunner().invoke(cli, [*args], env={"HUBLET_OBJECT_STORE": url, **environ})

    return run


@pytest.fixture
async def prefix(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a", "b")
        hub.ship()
        await hub.put("c")
        hub.ship()


@pytest.mark.usefixtures("prefix")
def test_restore_says_what_it_did_and_what_comes_next(tmp_path: Path, run: Run) -> None:
    key = key_file(tmp_path / "k", KEY)
    result = run("restore", "--into", str(tmp_path / "new"), "--key-file", str(key))
    assert result.exit_code == 0, result.output
    assert "restored hub" in result.stdout
    assert "at revision 3" in result.stdout
    assert f"hublet serve --data-dir {tmp_path / 'new'} --key-file {key}" in result.stdout
    assert has_store(tmp_path / "new" / "store")


@pytest.mark.usefixtures("prefix")
def test_the_key_beside_the_directory_is_found_and_all_can_come_from_the_environment(
    tmp_path: Path, run: Run
) -> None:
    key_file(tmp_path / "new.key", KEY)
    result = run("restore", "-o", "json", HUBLET_DATA_DIR=str(tmp_path / "new"))
    figures = json.loads(result.stdout)
    assert (figures["revision"], figures["objects"], figures["segments"]) == (3, 3, 2)
    assert figures["seconds"]["total"] >= 0
    assert len(figures["state_hash"]) == 64


@pytest.mark.usefixtures("prefix")
def test_list_needs_no_key(tmp_path: Path, run: Run) -> None:
    result = run("list")
    assert result.exit_code == 0
    assert "epoch 1 (in use by process" in result.stdout
    listed = result.stdout.splitlines()[2:]
    assert [line.split()[0] for line in listed] == ["KIND", "delta", "full", "2", "this"]
    assert "its history needs the hub key" in listed[-1]
    head = json.loads(run("list", "-o", "json").stdout)["head"]
    assert (head["rev"], len(head["tail"]), head["key"]) == (3, 1, KEY.fingerprint)


@pytest.mark.usefixtures("prefix")
def test_verify_says_how_far_it_looked(tmp_path: Path, run: Run) -> None:
    key = str(key_file(tmp_path / "k", KEY))
    assert "hashes, seals and chain are whole" in run("verify", "--key-file", key).stdout
    assert "equal by state hash" in run("verify", "--deep", "--key-file", key).stdout
    assert json.loads(run("verify", "-o", "json", "--deep", "--key-file", key).stdout)["is_deep"]


@pytest.mark.usefixtures("prefix")
def test_a_missing_key_is_named_with_the_one_that_is_needed(tmp_path: Path, run: Run) -> None:
    result = run("restore", "--into", str(tmp_path / "new"))
    assert result.exit_code == 7
    assert result.stdout == ""
    assert "new.key does not exist" in result.stderr
    assert KEY.fingerprint in result.stderr
    assert "\nhint: " in result.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("prefix")
@pytest.mark.parametrize("damaged", [False, True])
def test_a_wrong_key_is_named_before_anything_is_downloaded(
    tmp_path: Path, run: Run, damaged: bool
) -> None:
    if damaged:  # were anything downloaded, this would be the error
        for segment in (tmp_path / "bucket").rglob("*.hs"):
            segment.unlink()
    key = key_file(tmp_path / "k", OTHER_KEY)
    result = run("restore", "--into", str(tmp_path / "new"), "--key-file", str(key))
    assert result.exit_code == 7
    assert f"sealed under the key {KEY.fingerprint}" in result.stderr
    assert f"hint: {key} is not its key; check the URL, the prefix may belong" in result.stderr


@pytest.mark.usefixtures("prefix")
def test_a_file_that_is_no_key_is_named(tmp_path: Path, run: Run) -> None:
    (tmp_path / "k").write_text("ssh-ed25519 AAAA\n")
    result = run("verify", "--key-file", str(tmp_path / "k"))
    assert result.exit_code == 7
    assert "is not a hub key" in result.stderr


@pytest.mark.usefixtures("prefix")
def test_errors_have_their_exit_codes(tmp_path: Path, run: Run) -> None:
    key = str(key_file(tmp_path / "k", KEY))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    into = ("restore", "--key-file", key, "--into")
    assert run(*into, str(tmp_path / "full")).exit_code == 9
    assert run("list", HUBLET_OBJECT_STORE=(tmp_path / "none").as_uri()).exit_code == 3
    assert run("list", HUBLET_OBJECT_STORE="ftp://x").exit_code == 2
    assert (
        run("list", HUBLET_OBJECT_STORE="s3://b/p?endpoint=http://127.0.0.1:9&attempts=1").exit_code
        == 6
    )
    assert run("nonsense").exit_code == 2
    next((tmp_path / "bucket").rglob("d0/*.hs")).unlink()
    assert run(*into, str(tmp_path / "new")).exit_code == 4
    (tmp_path / "bucket" / "HEAD").write_bytes(b'{"format": 3}')
    assert run("list").exit_code == 10


@pytest.mark.usefixtures("prefix")
@pytest.mark.parametrize("target", ["bucket", "bucket/new", "bucket/e00000001/new", "."])
def test_nothing_is_restored_into_the_object_store_itself(
    tmp_path: Path, run: Run, target: str
) -> None:
    bucket = tmp_path / "bucket"
    before = sorted(bucket.rglob("*"))
    key = str(key_file(tmp_path / "k", KEY))
    into = ("restore", "--key-file", key, "--into", str(tmp_path / target))
    result = run(*into, HUBLET_OBJECT_STORE=bucket.as_uri())
    assert result.exit_code == 9
    assert "lie inside each other" in result.stderr
    assert "hint: name a directory outside the object store" in result.stderr
    assert sorted(bucket.rglob("*")) == before


@pytest.mark.usefixtures("prefix")
def test_with_json_an_error_is_one_object_too(tmp_path: Path, run: Run) -> None:
    result = run("restore", "-o", "json", "--into", str(tmp_path / "new"))
    error = json.loads(result.stdout)["error"]
    assert (error["kind"], error["exit_code"], result.exit_code) == ("KeyMissing", 7, 7)
    assert error["hint"]
    assert result.stderr == ""


def test_a_prefix_without_a_full_lists_as_such(tmp_path: Path, chain: Chain, run: Run) -> None:
    take(chain)
    assert "nothing to restore" in run("list").stdout
    segment = next_segment(chain, tmp_path / "s", kind=Kind.FULL, records=[record("a", 1)])
    chain.commit_segment(segment, reserved_rev=0)
    chain.release()
    assert "released by" in run("list").stdout


@pytest.mark.usefixtures("prefix")
def test_a_disk_error_is_an_error_and_no_traceback(tmp_path: Path, run: Run) -> None:
    key = str(key_file(tmp_path / "k", KEY))
    (tmp_path / "file").touch()
    result = run("restore", "--key-file", key, "--into", str(tmp_path / "file" / "new"))
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        f"error: restore: into: {tmp_path / 'file'} is a file, not a directory",
        "hint: name another place with --into",
    ]


@pytest.mark.usefixtures("prefix")
def test_a_target_that_cannot_be_made_is_named_with_its_flag(tmp_path: Path, run: Run) -> None:
    key = str(key_file(tmp_path / "k", KEY))
    result = run("restore", "--key-file", key, "--into", "/proc/x")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: restore: into: /proc/x: ")
    assert "or name another with --into" in result.stderr


@pytest.mark.usefixtures("prefix")
def test_a_key_file_that_cannot_be_read_is_named_with_its_flag(tmp_path: Path, run: Run) -> None:
    result = run("verify", "--key-file", str(tmp_path))
    assert result.exit_code == 7
    assert f"hub key file {tmp_path} cannot be read: Is a directory" in result.stderr
    assert "--key-file" in result.stderr
    assert "Errno" not in result.stderr


@pytest.mark.usefixtures("prefix")
def test_a_reader_that_has_seen_enough_ends_it_quietly(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    url = (tmp_path / "bucket").as_uri()
    command = [sys.executable, "-m", "tools.restore", "list", "--from", url]
    with os.fdopen(write, "wb") as out:
        done = subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.PIPE, check=False)
    assert done.stderr == b""


def test_the_commands_explain_themselves(run: Run) -> None:
    for command in ([], ["restore"], ["list"], ["verify"]):
        for flag in ("--help", "-h"):
            result = run(*command, flag)
            assert result.exit_code == 0
            assert "Usage:" in result.stdout


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_the_help_names_the_variable_of_every_option_that_has_one(name: str, run: Run) -> None:
    said = " ".join(run(name, "--help").stdout.split())
    named = [each for each in cli.commands[name].params if each.envvar]
    assert len(named) >= 5
    for option in named:
        assert f"[env var: {option.envvar}" in said
