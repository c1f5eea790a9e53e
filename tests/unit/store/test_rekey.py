"""Rotating the data key: what is sealed under which key, and what a delta may leave out."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from hub.store import (
    Change,
    Compacted,
    Draft,
    KeyMismatch,
    Op,
    Record,
    Store,
    StoreError,
    build_store,
)
from hub.store.hubkey import MOST_DATA_KEYS, DataKeys, add_data_key
from hub.store.lmdb_env import NAME_DATA_KEYS
from hub.store.rekey import used
from hub.store.value import data_key_of
from tests.unit.store.given import (
    CLOCK,
    EMPTY,
    create,
    document,
    draft,
    hub_key,
    key,
    kill,
    open_store,
    update,
)

SEALED, PLAIN = key("sealed"), key("plain")


def same(stored: bytes) -> Draft:
    """Take a document of `given.draft` apart again."""
    text = stored.decode().split('"text":"')[1].removesuffix('"}')
    return draft(text)


def key_at(store: Store, name: str = "sealed") -> int:
    found = store.get(key(name))
    assert found is not None
    return data_key_of(found.raw)


async def test_new_values_are_sealed_under_the_new_key_and_old_ones_open(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    await store.commit(create(SEALED, "old", sealed=True), create(PLAIN))
    assert await store.rotate_data_key(hub_key(tmp_path / "data")) == 2
    await store.commit(create(key("new"), "new", sealed=True))
    assert (key_at(store), key_at(store, "plain"), key_at(store, "new")) == (1, 0, 2)
    found = store.get(SEALED)
    assert found is not None
    assert store.read(found) == document(1, "old")
    assert store.verify() == store.position
    await store.close()


async def test_resealing_changes_the_revision_and_nothing_else(tmp_path: Path) -> None:
    store, seen = open_store(tmp_path / "data"), list[Change]()
    await store.commit(
        *(create(key(f"n{n:03}"), f"t{n}", sealed=n % 2 == 0) for n in range(450)),
    )
    await store.rotate_data_key(hub_key(tmp_path / "data"))
    store.subscribe(seen.extend)
    assert await store.reseal(same) == 225
    assert {change.op for change in seen} == {Op.UPDATE}
    entries = store.scan(b"").entries
    for n, entry in enumerate(entries):
        assert store.read(entry) == document(entry.revision, f"t{n}")
        assert data_key_of(entry.raw) == (2 if n % 2 == 0 else 0)
        assert (entry.revision > 450) is (n % 2 == 0)
    assert await store.reseal(same) == 0
    await store.close()


async def test_two_who_reseal_do_each_object_once(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    names = [key(f"n{n}") for n in range(3)]
    await store.commit(*(create(each, "old", sealed=True) for each in names))
    await store.rotate_data_key(hub_key(tmp_path / "data"))

    done = await asyncio.gather(store.reseal(same), store.reseal(same))
    assert sum(done) == 3
    assert {key_at(store, f"n{n}") for n in range(3)} == {2}
    await store.close()


async def test_the_new_key_outlives_a_kill(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    await store.commit(create(SEALED, "old", sealed=True))
    await store.rotate_data_key(hub_key(tmp_path / "data"))
    (revision,) = await store.commit(update(SEALED, "new", expect=1, sealed=True))
    kill(store)
    store = open_store(tmp_path / "data")
    found = store.get(SEALED)
    assert found is not None
    assert store.read(found) == document(revision, "new")
    (revision,) = await store.commit(update(SEALED, "newer", expect=revision, sealed=True))
    assert key_at(store) == 2
    await store.close()


async def test_a_key_is_dropped_once_neither_objects_nor_log_need_it(tmp_path: Path) -> None:
    store, secret = open_store(tmp_path / "data"), hub_key(tmp_path / "data")
    await store.commit(create(SEALED, "old", sealed=True))
    env = store._shared.env
    assert [await store.rotate_data_key(secret) for _ in range(2)] == [2, 3]
    assert set(store._shared.codecs.keys.keys) == {1, 2, 3}
    await store.reseal(same)
    assert used(env) == {1, 3}
    assert await store.rotate_data_key(secret) == 4
    assert set(store._shared.codecs.keys.keys) == {1, 3, 4}
    await store.compact_log(store.revision)
    assert used(env) == {3}
    assert await store.rotate_data_key(secret) == 5
    assert set(store._shared.codecs.keys.keys) == {3, 4, 5}
    await store.close()


async def test_resealing_leaves_volatile_objects_under_their_key(tmp_path: Path) -> None:
    store, secret = open_store(tmp_path / "data"), hub_key(tmp_path / "data")
    event = key("event", resource="events")
    (at,) = await store.commit(create(event, "seen", sealed=True, volatile=True))
    await store.commit(create(SEALED, "old", sealed=True))
    await store.rotate_data_key(secret)
    assert await store.reseal(same) == 1
    await store.compact_log(store.revision)
    await store.rotate_data_key(secret)
    assert set(store._shared.codecs.keys.keys) == {1, 2, 3}
    found = store.get(event)
    assert found is not None
    assert (found.revision, store.read(found)) == (at, document(at, "seen"))
    await store.close()


async def test_a_key_that_only_a_renewal_in_memory_needs_is_kept(tmp_path: Path) -> None:
    store, secret = open_store(tmp_path / "data"), hub_key(tmp_path / "data")
    (first,) = await store.commit(create(SEALED, "held", sealed=True))
    await store.rotate_data_key(secret)
    renewed = store.renew(SEALED, draft("renewed"), EMPTY, expect=first)
    for _ in range(2):
        await store.rotate_data_key(secret)
    assert set(store._shared.codecs.keys.keys) == {1, 2, 3, 4}
    await store.close()
    store = open_store(tmp_path / "data")
    found = store.get(SEALED)
    assert found is not None
    assert store.read(found) == document(renewed, "renewed")
    assert store.verify().count == 1
    await store.close()


async def test_a_delta_from_before_a_rotation_is_refused(tmp_path: Path) -> None:
    """It could hold values under a key that the full before it does not bring along."""
    store = open_store(tmp_path / "data")
    (first,) = await store.commit(create(SEALED, "old", sealed=True))
    await store.rotate_data_key(hub_key(tmp_path / "data"))
    with pytest.raises(Compacted):
        store.export_delta(first)
    (second,) = await store.commit(update(SEALED, "new", expect=first, sealed=True))
    with pytest.raises(Compacted):
        store.export_delta(first)
    await store.commit(update(SEALED, "newer", expect=second, sealed=True))
    assert len(store.export_delta(second).records) == 1
    assert store.changes(first, b"")[0].revision == second
    await store.close()


async def test_a_full_after_a_rotation_brings_the_keys_along(tmp_path: Path) -> None:
    store, secret = open_store(tmp_path / "data"), hub_key(tmp_path / "data")
    await store.commit(create(SEALED, "old", sealed=True))
    await store.rotate_data_key(secret)
    await store.commit(create(key("new"), "new", sealed=True))
    with store.export_full() as full:
        records: list[Record] = list(full.records)
        build_store(
            tmp_path / "copy",
            records=records,
            dicts=full.dicts,
            wrapped_data_key=full.wrapped_data_key,
            position=full.position,
            hub_key=secret,
            dir_id="copy",
        )
    await store.close()
    copy = Store.open(tmp_path / "copy", hub_key=secret, clock=CLOCK)
    assert copy.verify().count == 2
    await copy.commit(create(key("third"), sealed=True))
    assert key_at(copy, "third") == 2
    await copy.close()


async def test_another_hub_key_rotates_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    env = store._shared.env
    with env.read() as txn:
        before = txn.get(NAME_DATA_KEYS, db=env.meta)
    with pytest.raises(KeyMismatch):
        await store.rotate_data_key(replace(hub_key(tmp_path / "data"), secret=bytes(32)))
    with env.read() as txn:
        assert txn.get(NAME_DATA_KEYS, db=env.meta) == before
    await store.close()


def test_the_numbers_of_data_keys_are_used_up_one_day() -> None:
    ring = DataKeys({MOST_DATA_KEYS: bytes(32)})
    with pytest.raises(StoreError, match="there are no more numbers"):
        add_data_key(ring, bytes, keep={MOST_DATA_KEYS})
