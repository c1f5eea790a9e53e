"""A full map: nothing is lost, reading goes on, and writing too once there is space again."""

import asyncio
from pathlib import Path

import pytest

from hub.store import Change, MapFull, Revision, Store
from tests.unit.store.given import create, delete, key, kill, noise, open_store, update

MAPS = [400_000, 1_000_000, 3_000_000]


async def fill(store: Store) -> list[Revision]:
    """Create objects until the store is full; return the revisions that were acknowledged."""
    revisions: list[Revision] = []
    try:
        for n in range(100_000):
            revisions += await store.commit(create(key(f"n{n:05}"), noise(3000)))
    except MapFull as error:
        assert "free space" in str(error)  # noqa: PT017  the loop's end is the point
        return revisions
    pytest.fail("the map never filled up")


@pytest.mark.parametrize("map_bytes", MAPS)
async def test_a_full_store_keeps_what_it_acknowledged(tmp_path: Path, map_bytes: int) -> None:
    store = open_store(tmp_path / "data", map_bytes=map_bytes)
    seen: list[Change] = []
    store.subscribe(seen.extend)
    revisions = await fill(store)
    assert store.verify() == store.position
    assert [entry.revision for entry in store.scan(b"").entries] == revisions
    assert [change.revision for change in seen] == revisions
    assert store.read(store.scan(b"", limit=1).entries[0])
    kill(store)
    store = open_store(tmp_path / "data", map_bytes=map_bytes)
    assert [entry.revision for entry in store.scan(b"").entries] == revisions
    assert store.verify().count == len(revisions)
    await store.close()


async def test_a_full_store_goes_on_when_there_is_space_again(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data", map_bytes=2_000_000)
    seen: list[Change] = []
    store.subscribe(seen.extend)
    revisions = await fill(store)
    await store.compact_log(store.revision)
    (late,) = await store.commit(create(key("late")))
    assert late > revisions[-1]
    assert seen[-1].revision == late == store.revision
    store.verify()
    await store.close()


async def test_a_failed_batch_blocks_nobody_behind_it(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data", map_bytes=1_000_000)
    (first,) = await store.commit(create(key("a")))
    seen: list[Change] = []
    store.subscribe(seen.extend)
    outcomes = await asyncio.gather(
        *(store.commit(create(key(f"n{n}"), noise(20_000))) for n in range(100)),
        return_exceptions=True,
    )
    assert any(isinstance(outcome, MapFull) for outcome in outcomes)
    (last,) = await store.commit(update(key("a"), "small", expect=first))
    assert seen[-1].revision == last == store.revision
    written = [outcome[0] for outcome in outcomes if isinstance(outcome, tuple)]
    assert [change.revision for change in seen] == sorted([*written, last])
    await store.commit(delete(key("a"), expect=last))
    store.verify()
    await store.close()
