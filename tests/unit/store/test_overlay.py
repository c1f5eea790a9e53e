"""Renewals: in memory, flushed, loaded, lost and outlived."""

import asyncio
from pathlib import Path

import lmdb
import pytest

from hub.store import (
    Change,
    Closed,
    Conflict,
    Index,
    MapFull,
    Op,
    Revision,
    Store,
    Stored,
    encode_key,
)
from hub.store import ledger as ledger_module
from hub.store.job import FlushJob
from hub.store.ledger import CEILING_BLOCK
from hub.store.overlay import Overlay
from tests.unit.store.given import create, delete, document, draft, key, kill, open_store, update

LEASE = key("lease")
NOTHING = Index(b"")


async def renewed(store: Store, *, times: int = 3) -> Revision:
    """Create the Lease and renew it; return its revision."""
    (revision,) = await store.commit(create(LEASE, "t0", sealed=True))
    for n in range(times):
        revision = store.renew(LEASE, draft(f"t{n + 1}"), NOTHING, expect=revision)
    return revision


def text_of(store: Store) -> bytes:
    stored = store.get(LEASE)
    assert stored is not None
    return store.read(stored)


async def test_a_clean_close_keeps_renewals(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    revision = await renewed(store)
    await store.close()
    store = open_store(tmp_path / "data")
    assert text_of(store) == document(revision, "t3")
    assert store.revision == revision
    await store.close()


async def test_a_flush_keeps_renewals_over_a_crash(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    revision = await renewed(store)
    await store.flush()
    lost = store.renew(LEASE, draft("t4"), NOTHING, expect=revision)
    kill(store)
    store = open_store(tmp_path / "data")
    assert text_of(store) == document(revision, "t3")
    assert store.revision > lost
    store.verify()
    again = store.renew(LEASE, draft("t5"), NOTHING, expect=revision)
    assert again > lost
    await store.close()


async def test_the_timer_flushes(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data", flush_s=0.01)
    revision = await renewed(store)
    async with asyncio.timeout(5):
        while _flushed_rows(store) == 0:
            await store.meta_put({"turn": b"the loop"})
    kill(store)
    store = open_store(tmp_path / "data")
    assert text_of(store) == document(revision, "t3")
    await store.close()


async def test_a_durable_write_outlives_an_older_renewal(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    revision = await renewed(store)
    await store.flush()
    assert (_flushed_rows(store), store.stats().renewals) == (1, 1)
    (durable,) = await store.commit(update(LEASE, "holder", expect=revision))
    assert (_flushed_rows(store), store.stats().renewals) == (0, 0)
    kill(store)
    store = open_store(tmp_path / "data")
    assert text_of(store) == document(durable, "holder")
    assert _flushed_rows(store) == 0
    await store.close()


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_a_stale_row_is_dropped_at_opening(tmp_path: Path, is_deleted: bool) -> None:
    store = open_store(tmp_path / "data")
    revision = await renewed(store)
    rows = store._shared.overlay.take_dirty()
    (durable,) = await store.commit(
        delete(LEASE, expect=revision) if is_deleted else update(LEASE, "holder", expect=revision)
    )
    with store._shared.env.write() as txn:
        txn.put(rows[0][0], rows[0][1], db=store._shared.env.renewals)
    kill(store)
    store = open_store(tmp_path / "data")
    stored = store.get(LEASE)
    assert (stored and stored.revision) == (None if is_deleted else durable)
    assert (_flushed_rows(store), store.stats().renewals) == (0, 0)
    await store.close()


async def test_a_failed_flush_is_made_up_for_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path / "data")
    revision = await renewed(store)

    def fails(*_: object) -> None:
        raise lmdb.DiskError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(FlushJob, "apply", fails)
        with pytest.raises(MapFull, match="no space left"):
            await store.flush()
    await store.flush()
    kill(store)
    store = open_store(tmp_path / "data")
    assert text_of(store) == document(revision, "t3")
    await store.close()


async def test_a_close_that_cannot_flush_says_so_and_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path / "data")
    await renewed(store)

    def fails(*_: object) -> None:
        raise lmdb.DiskError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(FlushJob, "apply", fails)
        with pytest.raises(MapFull):
            await store.close()
    store = open_store(tmp_path / "data")
    assert text_of(store) == document(1, "t0")
    assert not store.was_clean
    await store.close()


async def test_a_renewal_waits_for_no_durable_write_of_its_key(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    revision = await renewed(store)
    writing = asyncio.ensure_future(store.commit(update(LEASE, "holder", expect=revision)))
    await asyncio.sleep(0)
    with pytest.raises(Conflict):
        store.renew(LEASE, draft("t9"), NOTHING, expect=revision)
    (durable,) = await writing
    store.renew(LEASE, draft("t9"), NOTHING, expect=durable)
    await store.close()


async def test_a_refused_durable_write_thaws_the_renewal(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    revision = await renewed(store)
    with pytest.raises(Conflict):
        await store.commit(update(LEASE, "holder", expect=1))
    store.renew(LEASE, draft("t9"), NOTHING, expect=revision)
    await store.close()


async def test_renewals_stay_outside_log_hash_and_exports(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    (revision,) = await store.commit(create(LEASE, "t0"))
    before = store.position
    store.renew(LEASE, draft("t1"), NOTHING, expect=revision)
    await store.flush()
    assert store.position == before == store.verify()
    assert store.export_delta(Revision(0)).records[0].revision == revision
    with store.export_full() as full:
        assert [record.revision for record in full.records] == [revision]
    await store.close()


async def test_renewals_never_pass_the_revisions_reserved_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "CEILING_BLOCK", 40)
    monkeypatch.setattr("hub.store.store.CEILING_BLOCK", 40)
    monkeypatch.setattr("hub.store.opening.CEILING_BLOCK", 40)
    store = open_store(tmp_path / "data")
    revision = await renewed(store, times=0)
    while store._shared.sequence.last < store._ceiling:
        revision = store.renew(LEASE, draft("t"), NOTHING, expect=revision)
    with pytest.raises(MapFull, match="reserved"):
        store.renew(LEASE, draft("t"), NOTHING, expect=revision)
    assert revision == store._ceiling <= 80
    await store.meta_put({"a": b"turn for the extension"})
    for _ in range(200):
        revision = store.renew(LEASE, draft("t"), NOTHING, expect=revision)
        if revision % 10 == 0:
            await store.meta_put({"a": b"turn"})
    kill(store)
    store = open_store(tmp_path / "data")
    assert store.revision >= revision
    await store.close()


async def test_a_crash_goes_on_above_the_reserved_block(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    await store.commit(create(LEASE))
    kill(store)
    store = open_store(tmp_path / "data")
    assert store.revision == CEILING_BLOCK
    assert store.position.revision == 1
    (second,) = await store.commit(update(LEASE, "x", expect=1))
    assert second == CEILING_BLOCK + 1
    assert [change.revision for change in store.changes(Revision(1), b"")] == [second]
    await store.close()


async def test_a_closed_store_takes_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    await store.commit(create(LEASE))
    await store.close()
    await store.close()
    with pytest.raises(Closed):
        await store.commit(create(key("b")))
    with pytest.raises(Closed):
        store.renew(LEASE, draft(), NOTHING, expect=Revision(1))


async def test_closing_finishes_what_is_queued(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    seen: list[Change] = []
    store.subscribe(seen.extend)
    writing = [asyncio.ensure_future(store.commit(create(key(f"n{n}")))) for n in range(700)]
    await asyncio.sleep(0)
    await store.close()
    assert all(task.done() for task in writing)
    assert len(seen) == 700
    assert {change.op for change in seen} == {Op.CREATE}


def _flushed_rows(store: Store) -> int:
    with store._shared.env.read() as txn:
        return txn.stat(store._shared.env.renewals)["entries"]


def test_the_entries_under_a_prefix_are_those_a_look_at_all_would_find() -> None:
    overlay = Overlay()
    keys = [
        encode_key(resource, space, name)
        for resource in ("leases", "leasesx")
        for space in ("", "a", "ab")
        for name in ("l", "lx")
    ]
    for at, each in enumerate(keys):
        overlay.put(Stored(each, Revision(at + 1), NOTHING, b""))
        overlay.put(Stored(each, Revision(at + 100), NOTHING, b""))
    for dropped in (keys[3], keys[4], keys[5], keys[5]):
        overlay.drop(dropped)
    prefixes = {each[:end] for each in keys for end in range(len(each) + 1)}
    for prefix in prefixes:
        expected = {each for each in overlay.entries if each.startswith(prefix)}
        found = [entry.key for entry in overlay.under(prefix)]
        assert (set(found), len(found)) == (expected, len(expected))
    assert len(overlay.entries) == len(keys) - 3
