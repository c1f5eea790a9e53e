"""A list reads on as it goes, and shows one revision whatever is written meanwhile."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from hub.http import entries
from hub.http.entries import FIRST, HELD_BYTES, MOST, begin, next_count, shorten
from hub.meta.errors import ApiError
from hub.store import Key, Revision, Store, Stored, prefix
from tests.unit.store.given import create, delete, key, labels, noise, open_store, update

UNDER = prefix("widgets", None)


async def filled(directory: Path, count: int = 300) -> Store:
    store = open_store(directory)
    await asyncio.gather(*(store.commit(create(key(f"n{n:04}"))) for n in range(count)))
    return store


def shown(found: Iterable[Stored]) -> list[tuple[Key, Revision]]:
    return [(entry.key, entry.revision) for entry in found]


async def change_everything(store: Store) -> None:
    """Delete, update and create, in front of and behind any place in the list."""
    for n, entry in enumerate(store.scan(UNDER).entries):
        if n % 3 == 0:
            await store.commit(delete(entry.key, expect=entry.revision))
        elif n % 3 == 1:
            await store.commit(update(entry.key, noise(5_000), expect=entry.revision))
        await store.commit(create(key(f"n{n:04}x")))


@pytest.mark.parametrize("at", [0, 1, FIRST - 1, FIRST, 100])
async def test_what_is_written_while_a_list_is_read_does_not_show(tmp_path: Path, at: int) -> None:
    store = await filled(tmp_path / "data")
    expected = shown(store.scan(UNDER).entries)
    reading = iter(begin(store, UNDER, None))
    seen = [next(reading) for _ in range(at)]
    await change_everything(store)
    assert shown([*seen, *reading]) == expected
    assert shown(begin(store, UNDER, None)) == shown(store.scan(UNDER).entries) != expected
    await store.close()


async def test_a_page_that_was_let_go_is_read_again_to_its_end_and_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await filled(tmp_path / "data")
    monkeypatch.setattr(entries, "HELD_BYTES", 1_000)
    page = store.scan_at(UNDER, store.revision, limit=137)
    expected = shown(page.entries)
    found = shorten(store, UNDER, None, page)
    assert len(found.first) < 40
    await change_everything(store)
    assert shown(found) == expected
    assert shown(found) == expected  # as often as is asked
    await store.close()


async def test_a_page_of_volatile_objects_ends_at_its_last_key_whatever_comes_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path / "data")
    for n in range(100):
        await store.commit(create(key(f"n{n:04}"), volatile=True))
    monkeypatch.setattr(entries, "HELD_BYTES", 1_000)
    page = store.scan_at(UNDER, store.revision, limit=80)
    found = shorten(store, UNDER, None, page)
    assert found.has_more
    for n in range(40, 70):
        await store.commit(create(key(f"n{n:04}x"), volatile=True))
    assert shown(found)[-1] == (page.entries[-1].key, page.entries[-1].revision)
    for entry in page.entries[30:60]:
        await store.commit(delete(entry.key, expect=entry.revision, volatile=True))
    assert shown(found)[-1][0] == page.entries[-1].key
    last = page.entries[-1]
    await store.commit(delete(last.key, expect=last.revision, volatile=True))
    assert max(found, key=lambda entry: entry.key).key < last.key
    await store.close()


async def test_a_short_list_and_an_empty_one_are_read_at_once(tmp_path: Path) -> None:
    store = await filled(tmp_path / "data", FIRST)
    assert not begin(store, UNDER, None).has_more
    assert len(shown(begin(store, UNDER, None))) == FIRST
    assert shown(begin(store, prefix("gadgets", None), None)) == []
    await store.close()


async def test_a_selection_is_read_on_too(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    for n in range(60):
        index = labels(color="red" if n % 4 == 0 else "blue")
        await store.commit(create(key(f"n{n:04}"), index=index))

    def is_red(_: Key, index: bytes) -> bool:
        return b"red" in index

    found = shown(begin(store, UNDER, is_red))
    assert [at for at, _ in found] == [key(f"n{n:04}") for n in range(0, 60, 4)]
    await store.close()


async def test_large_entries_are_held_few_at_a_time(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    for n in range(FIRST + 20):
        await store.commit(create(key(f"n{n:04}"), noise(400_000)))
    held: list[int] = []
    scan_at = store.scan_at

    class Counted:
        @staticmethod
        def scan_at(*args: object, **options: object) -> object:
            page = scan_at(*args, **options)  # type: ignore[arg-type]  # handed on as they came
            held.append(sum(len(entry.raw) for entry in page.entries))
            return page

    found = begin(store, UNDER, None)
    counted = entries.Entries(Counted(), UNDER, found.revision, None, found.first, has_more=True)  # type: ignore[arg-type]  # it counts
    assert len(shown(counted)) == FIRST + 20
    assert max(held) <= HELD_BYTES
    await store.close()


async def test_a_list_that_takes_longer_than_the_log_reaches_is_410(tmp_path: Path) -> None:
    store = await filled(tmp_path / "data")
    reading = iter(begin(store, UNDER, None))
    next(reading)
    await change_everything(store)
    await store.compact_log(store.revision)
    with pytest.raises(ApiError) as refused:
        list(reading)
    assert (refused.value.code, refused.value.reason) == (410, "Expired")
    await store.close()


def test_as_much_is_read_next_as_fits() -> None:
    assert next_count(10, 10 * HELD_BYTES) == 1
    assert next_count(10, HELD_BYTES) == 10
    assert next_count(10, 10) == MOST
    assert next_count(0, 0) == FIRST
