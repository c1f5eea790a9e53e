"""`hublet serve` on a directory that must not be opened: what it says, its code, and no traces."""

import asyncio
import errno
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hub.clock import SystemClock
from hub.registry.keeping import IDENTITY
from hub.store import Draft, Op, Store, Write, create_hub_key, load_hub_key
from tests.hubs import ROOT, Api, HubProcess, running_hub
from tests.server.support import config_maps

MAPS = config_maps("default")
RESTORE = "restore the hub with hub-restore, or start on another data directory"


def serve(directory: Path, *flags: str, limit_bytes: int = 0) -> tuple[int, str]:
    """Run a hub that cannot start; return its exit code and what it said."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))

    command = [sys.executable, "-m", "tools.hublet", "serve", "--data-dir", str(directory)]
    done = subprocess.run(
        [*command, "--listen", "127.0.0.1:0", *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        preexec_fn=limit if limit_bytes else None,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr.rstrip()


async def made(directory: Path) -> None:
    """Leave a hub's directory and key."""
    async with running_hub(directory) as hub:
        await hub.admin.create(MAPS, {"metadata": {"name": "a"}})


def content(directory: Path) -> dict[str, bytes]:
    """Return the files of a stopped hub by name."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


async def test_a_second_process_on_one_directory_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running_hub(data) as hub:
        code, said = await asyncio.to_thread(serve, data)
        assert (code, said) == (
            11,
            (
                f"error: {data} is in use by another hub process: stop that one, or use another "
                "directory"
            ),
        )
        await hub.admin.create(MAPS, {"metadata": {"name": "a"}})
        assert (await hub.admin.call("GET", "/readyz")).body == b"ok"


async def test_a_wrong_key_file_is_refused_and_the_right_one_still_opens(tmp_path: Path) -> None:
    data, other = tmp_path / "data", tmp_path / "other.key"
    await made(data)
    before = content(data / "store")
    wrong = create_hub_key(other, token=os.urandom).fingerprint
    right = load_hub_key(tmp_path / "data.key").fingerprint
    assert serve(data, "--key-file", str(other)) == (
        11,
        (
            f"error: the hub key in {other} has fingerprint {wrong}, the data was sealed under "
            f"{right}: use the key file of the hub that wrote it"
        ),
    )
    assert content(data / "store")["data.mdb"] == before["data.mdb"]
    async with running_hub(data) as hub:
        await hub.admin.get(f"{MAPS}/a")


async def test_no_key_file_is_refused_and_none_is_made(tmp_path: Path) -> None:
    data, key = tmp_path / "data", tmp_path / "data.key"
    await made(data)
    key.rename(tmp_path / "kept")
    assert serve(data) == (
        11,
        (
            f"error: hub key file {key} does not exist: put the key of this hub there (it was "
            "written when the hub was created), or name its place"
        ),
    )
    assert not key.exists()
    key.write_text("hublet-key-1:short\n")
    assert serve(data) == (
        11,
        (
            f"error: {key} is not a hub key: one line, hublet-key-1: and 32 bytes in base64, is "
            "expected; put the key of this hub there"
        ),
    )


async def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    await made(data)
    (data / "store" / "data.mdb").write_bytes(b"SQLite format 3\0" + bytes(100_000))
    assert serve(data) == (
        11,
        f"error: {data}/store/data.mdb is not a store of hublet (no LMDB 0.9 file): {RESTORE}",
    )


def test_a_file_as_the_directory_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("mine")
    code, said = serve(data)
    assert (code, said) == (
        1,
        (
            f"error: data-dir: {data} is a file, not a directory\nhint: name another place with "
            "--data-dir"
        ),
    )
    assert content(tmp_path) == {"data": b"mine"}


def test_a_key_that_cannot_be_written_leaves_neither_key_nor_directory(tmp_path: Path) -> None:
    code, said = serve(tmp_path / "data", limit_bytes=8)
    assert (code, said) == (1, f"error: {os.strerror(errno.EFBIG)}")
    assert list(tmp_path.iterdir()) == []
    code, said = serve(tmp_path / "data", "--key-file", "/proc/none/key")
    assert code == 1
    assert said.startswith("error: key-file: /proc/none: No such file or directory\nhint: ")
    assert list(tmp_path.iterdir()) == []


async def write_much(api: Api, *, is_new: bool) -> None:
    """Write 300 objects of 20 kB, which is more than what a copy takes with one read."""
    for number in range(300):
        name = f"n-{number}"
        body = {"metadata": {"name": name}, "data": {"text": os.urandom(10_000).hex()}}
        if is_new:
            await api.create(MAPS, body)
        else:
            await api.patch(f"{MAPS}/{name}", {"data": body["data"]})


@pytest.mark.timeout(120)
async def test_a_torn_copy_of_a_running_hubs_file_is_refused(
    tmp_path: Path, free_port: int
) -> None:
    """A copy that took its first part before, its second after other writes."""
    running, copy = tmp_path / "running", tmp_path / "copy"
    with HubProcess(running, free_port) as hub:
        api = Api.from_kubeconfig(hub.kubeconfig)
        try:
            await write_much(api, is_new=True)
            (copy / "store").mkdir(0o700, parents=True)
            shutil.copy(tmp_path / "running.key", tmp_path / "copy.key")
            with (running / "store" / "data.mdb").open("rb") as source:
                first = source.read((running / "store" / "data.mdb").stat().st_size // 2)
                for _ in range(2):
                    await write_much(api, is_new=False)
                (copy / "store" / "data.mdb").write_bytes(first + source.read())
            before = (copy / "store" / "data.mdb").read_bytes()
            code, said = await asyncio.to_thread(serve, copy)
            told = re.fullmatch(
                rf"error: {re.escape(str(copy))}/store/data\.mdb is torn, as a copy of a running "
                rf"hub's file is \(\d+ problems, first: .+\): {RESTORE}",
                said,
            )
            assert (code, bool(told)) == (11, True), said
            assert (copy / "store" / "data.mdb").read_bytes() == before
            await api.get(f"{MAPS}/n-0")
        finally:
            await api.close()
        assert hub.stop() == 0


async def test_a_store_that_has_lost_its_identity_is_refused_and_gets_no_other(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    await made(data)
    store = Store.open(
        data / "store", hub_key=load_hub_key(tmp_path / "data.key"), clock=SystemClock()
    )
    kept = store.get(IDENTITY)
    assert kept is not None
    gone = Write(Op.DELETE, IDENTITY, Draft(b"{}", b""), kept.index, kept.revision)
    await store.commit(gone)
    count = store.position.count
    await store.close()
    assert await asyncio.to_thread(serve, data) == (
        11,
        (
            f"error: the store holds {count} objects and no identity of a hub: restore it with "
            "hub-restore, or start on another data directory"
        ),
    )
