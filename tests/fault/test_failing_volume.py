"""A volume that fails in other ways than being full, told by what the engine's own writes meet.

LMDB writes a commit's pages through one descriptor and its end, the meta page, through another that
was opened with O_DSYNC. A test puts something else behind one of them.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hub.store import Broken, MapFull, StoreError, WriteFailed
from hub.store.directory import DATA_FILE
from tests.hubs import InProcess, running_hub
from tests.server.support import config_maps, named
from tests.unit.store.given import create, key, open_store

MAPS = config_maps("default")


def descriptor(directory: Path, *, is_meta: bool) -> int:
    """Return the engine's descriptor for the pages of a data file, or for its meta page."""
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the walk's own descriptor
            if link.readlink() == directory / DATA_FILE:
                info = Path(f"/proc/self/fdinfo/{link.name}").read_text()
                told = re.search(r"flags:\s+([0-7]+)", info)
                assert told is not None
                if bool(int(told[1], 8) & os.O_DSYNC) is is_meta:
                    return int(link.name)
    raise AssertionError("the engine has no such descriptor")


@contextlib.contextmanager
def replaced(directory: Path, device: str, *, is_meta: bool = False) -> Iterator[None]:
    """Have a device in place of the data file, for pages or for the meta page."""
    number = descriptor(directory, is_meta=is_meta)
    kept = os.dup(number)
    other = os.open(device, os.O_RDONLY if device == "/dev/null" else os.O_RDWR)
    try:
        os.dup2(other, number)
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)
        os.close(other)


async def outcome(directory: Path, device: str, *, is_meta: bool = False) -> StoreError:
    """Return how a write ends with a device behind a descriptor, and leave the store closed."""
    store = open_store(directory)
    await store.commit(create(key("a")))
    error: StoreError | None = None
    with replaced(directory, device, is_meta=is_meta):
        try:
            await store.commit(create(key("b")))
        except StoreError as refused:
            error = refused
    assert error is not None
    assert store.trouble == str(error)
    assert store.is_broken is isinstance(error, Broken)
    if isinstance(error, MapFull):
        assert store.get(key("a")) is not None
        await store.commit(create(key("b")))
        assert store.trouble == ""
        await store.close()
    else:
        for attempt in (store.flush(), store.close()):
            with pytest.raises(Broken):
                await attempt
    return error


async def test_pages_that_find_no_room_are_a_full_volume(tmp_path: Path) -> None:
    error = await outcome(tmp_path / "data", "/dev/full")
    assert type(error) is MapFull
    assert "(mdb_txn_commit: No space left on device): free space" in str(error)


async def test_pages_refused_for_another_reason_are_a_failing_volume(tmp_path: Path) -> None:
    error = await outcome(tmp_path / "data", "/dev/null")
    assert type(error) is WriteFailed
    assert str(error) == (
        f"nothing was written, the volume of {tmp_path / 'data'} fails (mdb_txn_commit: Bad file "
        "descriptor): look after it, the store goes on by itself once it takes writes"
    )


async def test_a_commit_whose_end_is_refused_breaks_the_store_until_it_is_opened_again(
    tmp_path: Path,
) -> None:
    error = await outcome(tmp_path / "data", "/dev/full", is_meta=True)
    assert type(error) is Broken
    assert str(error) == (
        f"{tmp_path / 'data' / DATA_FILE} did not take the end of a commit (mdb_txn_commit: No "
        "space left on device): look after its volume, then start the hub again; the next start "
        "finds out whether the last writes are in the file"
    )
    store = open_store(tmp_path / "data")
    assert store.get(key("a")) is not None
    store.verify()
    await store.commit(create(key("c")))
    await store.close()


async def test_a_hub_whose_volume_fails_answers_503_reads_on_and_recovers(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        await hub.admin.create(MAPS, named("a"))
        async with hub.admin.watch(f"{MAPS}?watch=1") as watch:
            with replaced(tmp_path / "data" / "store", "/dev/null"):
                await check_refusal(hub)
            await hub.admin.create(MAPS, named("b"))
            assert (await hub.admin.call("GET", "/readyz")).body == b"ok"
            while (await watch.next())["object"]["metadata"]["name"] != "b":
                pass


async def check_refusal(hub: InProcess) -> None:
    refused = await hub.admin.call("POST", MAPS, named("b"))
    text = (
        f"nothing was written, the volume of {hub.data_dir}/store fails (mdb_txn_commit: Bad file "
        "descriptor): look after it, the store goes on by itself once it takes writes"
    )
    assert (refused.status, refused.headers["retry-after"]) == (503, "5")
    assert refused.obj() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"the store cannot take writes now: {text}; reads go on",
        "reason": "ServiceUnavailable",
        "details": {"retryAfterSeconds": 5},
        "code": 503,
    }
    ready = await hub.admin.call("GET", "/readyz/store")
    assert (ready.status, ready.body.decode()) == (
        500,
        f"[-]store failed: {text}\nreadyz check failed\n",
    )
    assert (await hub.admin.get(f"{MAPS}/a"))["metadata"]["name"] == "a"


async def test_a_hub_that_cannot_tell_its_last_state_says_so_and_ends(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        await hub.admin.create(MAPS, named("a"))
        with replaced(tmp_path / "data" / "store", "/dev/full", is_meta=True):
            refused = await hub.admin.call("POST", MAPS, named("b"))
            error = await hub.end()
    assert isinstance(error, Broken)
    assert (refused.status, refused.headers["retry-after"]) == (503, "5")
    assert refused.obj()["reason"] == "ServiceUnavailable"
    # one of the hub's own first writes may have met it before
    assert re.fullmatch(
        r"the store cannot (take writes|be used) now: \S+/data\.mdb did not take the end of a "
        r"commit \(mdb_txn_(commit: No space left on device|begin: MDB_PANIC: .*)\): look after "
        "its volume, then start the hub again; the next start finds out whether the last writes "
        "are in the file",
        refused.obj()["message"],
    )
    async with running_hub(tmp_path / "data") as hub:
        assert (await hub.admin.get(f"{MAPS}/a"))["metadata"]["name"] == "a"
        await hub.admin.create(MAPS, named("c"))
