"""Exports, and stores built from them."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hub.store import (
    Closed,
    Compacted,
    Corrupt,
    FutureRevision,
    KeyMismatch,
    Locked,
    Position,
    Record,
    Revision,
    Store,
    build_store,
    create_hub_key,
    stored_key,
)
from hub.store.export import FullExport
from tests.unit.store.given import (
    CLOCK,
    create,
    delete,
    draft,
    hub_key,
    key,
    labels,
    noise,
    open_store,
    update,
)

Spoil = Callable[[list[Record]], list[Record]]


async def populated(path: Path, *, objects: int = 60) -> Store:
    store = open_store(path)
    await store.commit(
        *(
            create(key(f"n{n:03}"), noise(n * 20), index=labels(n=str(n)), sealed=n % 3 == 0)
            for n in range(objects)
        ),
        create(key("long" * 200), "long"),
        create(key("longer" * 200), "longer", sealed=True),
    )
    return store


def build(
    path: Path, source: Path, full: FullExport, records: list[Record], *, floor: int | None = None
) -> Position:
    return build_store(
        path,
        records=records,
        dicts=full.dicts,
        wrapped_data_key=full.wrapped_data_key,
        position=full.position,
        hub_key=hub_key(source),
        dir_id="built",
        floor=None if floor is None else Revision(floor),
        meta={"claim": b"once"},
        map_bytes=1 << 30,
    )


def documents(store: Store) -> list[tuple[bytes, int, bytes]]:
    entries = store.scan(b"").entries
    return [(entry.key, entry.revision, store.read(entry)) for entry in entries]


async def test_a_store_built_from_an_export_is_the_same(tmp_path: Path) -> None:
    source = await populated(tmp_path / "a")
    with source.export_full() as full:
        records = list(full.records)
    assert full.position == source.position
    assert [stored_key(record.key) for record in records] == sorted(
        stored_key(record.key) for record in records
    )
    assert build(tmp_path / "b", tmp_path / "a", full, records, floor=1000) == source.position
    built = Store.open(tmp_path / "b", hub_key=hub_key(tmp_path / "a"), clock=CLOCK)
    assert built.verify() == source.position == built.position
    assert documents(built) == documents(source)
    assert (built.revision, built.compacted, built.dir_id) == (1000, 1000, "built")
    assert built.meta_get("claim") == b"once"
    assert built.export_delta(built.position.revision).records == []
    (revision,) = await built.commit(create(key("new")))
    assert revision == 1001
    assert [record.key for record in built.export_delta(full.position.revision).records] == [
        key("new")
    ]
    built.verify()
    await built.close()
    await source.close()


async def test_a_full_and_its_deltas_make_up_the_state(tmp_path: Path) -> None:
    source = await populated(tmp_path / "a")
    with source.export_full() as full:
        state = {record.key: record for record in full.records}
    at = full.position
    for turn in range(4):
        (entry, other) = source.scan(b"", limit=2).entries
        await source.commit(
            update(entry.key, f"turn {turn}", expect=entry.revision),
            delete(other.key, expect=other.revision),
            create(key(f"new{turn}"), "new"),
        )
        delta = source.export_delta(at.revision)
        assert [record.revision for record in delta.records] == sorted(
            record.revision for record in delta.records
        )
        for record in delta.records:
            state[record.key] = record
            if record.raw is None:
                del state[record.key]
        at = delta.position
        assert at == source.position
    records = sorted(state.values(), key=lambda record: stored_key(record.key))
    now = replace(full, position=at)
    build(tmp_path / "b", tmp_path / "a", now, records)
    built = Store.open(tmp_path / "b", hub_key=hub_key(tmp_path / "a"), clock=CLOCK)
    assert documents(built) == documents(source)
    await built.close()
    await source.close()


async def test_a_delta_has_each_key_once_with_its_last_state(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    (first,) = await store.commit(create(key("a"), "one"))
    (second,) = await store.commit(update(key("a"), "two", expect=first))
    (third, _) = await store.commit(create(key("b")), create(key("c")))
    (gone,) = await store.commit(delete(key("b"), expect=third))
    delta = store.export_delta(Revision(0))
    assert (delta.after, delta.position) == (0, store.position)
    assert [(record.key, record.revision) for record in delta.records] == [
        (key("a"), second),
        (key("c"), 4),
        (key("b"), gone),
    ]
    assert [record.raw is None for record in delta.records] == [False, False, True]
    assert [record.key for record in store.export_delta(second).records] == [key("c"), key("b")]
    await store.close()


async def test_a_delta_from_before_the_log_or_after_now_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a")
    await store.commit(create(key("a")), create(key("b")))
    await store.compact_log(Revision(1))
    with pytest.raises(Compacted):
        store.export_delta(Revision(0))
    assert len(store.export_delta(Revision(1)).records) == 1
    with pytest.raises(FutureRevision):
        store.export_delta(Revision(3))
    await store.close()


async def test_an_export_in_a_thread_is_of_one_instant(tmp_path: Path) -> None:
    store = await populated(tmp_path / "a")
    begun, go_on = threading.Event(), threading.Event()

    def export() -> tuple[Position, list[Record]]:
        with store.export_full() as full:
            begun.set()
            assert go_on.wait(30)
            return full.position, list(full.records)

    exporting = asyncio.create_task(asyncio.to_thread(export))
    await asyncio.to_thread(begun.wait, 30)
    before = store.position
    for entry in store.scan(b"").entries:
        await store.commit(update(entry.key, "changed", expect=entry.revision))
    go_on.set()
    position, records = await exporting
    assert position == before != store.position
    assert max(record.revision for record in records) == before.revision
    assert len(records) == before.count
    await store.close()


async def test_closing_an_export_early_ends_its_transaction(tmp_path: Path) -> None:
    store = await populated(tmp_path / "a")
    full = store.export_full()
    assert next(full.records).raw
    full.close()
    full.close()
    untouched = store.export_full()
    untouched.close()
    assert store._shared.env.env.reader_check() == 0
    await store.close()


async def test_an_export_of_a_closed_store_says_so(tmp_path: Path) -> None:
    store = await populated(tmp_path / "a")
    full = store.export_full()
    assert next(full.records).raw
    await store.close()
    with pytest.raises(Closed):
        list(full.records)
    full.close()
    with pytest.raises(Closed):
        store.export_full()
    with pytest.raises(Closed):
        store.get(key("n000"))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda records: records[:-1],
        lambda records: [*records, records[0]],
        lambda records: [*records[1:], replace(records[0], raw=None)],
        lambda records: [*records[1:], replace(records[0], revision=Revision(999))],
        lambda records: [*records[1:], replace(records[0], key=key("other"))],
        lambda records: [replace(records[0], raw=records[1].raw), *records[1:]],
    ],
    ids=["missing", "twice", "deleted", "revision", "key", "value"],
)
async def test_records_that_do_not_make_up_the_position_are_refused(
    tmp_path: Path, spoil: Spoil
) -> None:
    source = await populated(tmp_path / "a")
    with source.export_full() as full:
        records = list(full.records)
    await source.close()
    with pytest.raises(Corrupt):
        build(tmp_path / "b", tmp_path / "a", full, spoil(records))
    assert list((tmp_path / "b").iterdir()) == []
    build(tmp_path / "b", tmp_path / "a", full, records)


async def test_records_out_of_order_are_taken_too(tmp_path: Path) -> None:
    source = await populated(tmp_path / "a")
    with source.export_full() as full:
        records = list(full.records)
    await source.close()
    build(tmp_path / "b", tmp_path / "a", full, records[::-1])
    built = Store.open(tmp_path / "b", hub_key=hub_key(tmp_path / "a"), clock=CLOCK)
    built.verify()
    await built.close()


async def test_a_directory_with_a_store_is_not_built_over(tmp_path: Path) -> None:
    source = await populated(tmp_path / "a")
    with source.export_full() as full:
        records = list(full.records)
    with pytest.raises(Locked):
        build(tmp_path / "a", tmp_path / "a", full, records)
    await source.close()
    with pytest.raises(FileExistsError, match="move it away"):
        build(tmp_path / "a", tmp_path / "a", full, records)


async def test_another_hubs_key_builds_nothing(tmp_path: Path) -> None:
    source = await populated(tmp_path / "a")
    with source.export_full() as full:
        records = list(full.records)
    await source.close()
    create_hub_key(tmp_path / "c.key", token=CLOCK.token)
    with pytest.raises(KeyMismatch):
        build(tmp_path / "b", tmp_path / "c", full, records)
    assert not (tmp_path / "b").exists()


async def test_files_beside_the_store_are_left_alone(tmp_path: Path) -> None:
    source = await populated(tmp_path / "a")
    with source.export_full() as full:
        records = list(full.records)
    await source.close()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "admin.kubeconfig").write_text("kept")
    build(tmp_path / "b", tmp_path / "a", full, records)
    assert (tmp_path / "b" / "admin.kubeconfig").read_text() == "kept"


async def test_an_empty_state_builds_too(tmp_path: Path) -> None:
    source = open_store(tmp_path / "a")
    with source.export_full() as full:
        assert list(full.records) == []
    build(tmp_path / "b", tmp_path / "a", full, [])
    built = Store.open(tmp_path / "b", hub_key=hub_key(tmp_path / "a"), clock=CLOCK)
    (revision,) = await built.commit(create(key("a")))
    built.renew(key("a"), draft("r"), create(key("a")).index, expect=revision)
    built.verify()
    await built.close()
    await source.close()
