"""The contract of reading the past: a scan as it would have been at an earlier revision.

`PAST` lists the functions, as `store_suite.SUITE` does; test_store.py runs both.
"""

from collections.abc import Mapping

import pytest

from hub.store import Compacted, FutureRevision, Index, Revision, prefix
from tests.contract.store_suite import ALL, Check, Tested, names, one
from tests.unit.store.given import create, delete, document, draft, key, labels, update


async def the_past_is_as_it_was(store: Tested) -> None:
    first = await one(store, create(key("b"), "one", index=labels(env="dev")))
    await store.commit(create(key("d")), create(key("a", namespace="two")))
    then = store.revision
    second = await one(store, update(key("b"), "two", expect=first))
    await store.commit(create(key("a")), delete(key("d"), expect=_revision_of(store, "d")))
    await store.commit(delete(key("b"), expect=second), create(key("d"), "again"))
    now = store.scan(prefix("widgets", "one"))
    assert names(now) == ["a", "d"]
    past = store.scan_at(prefix("widgets", "one"), then)
    assert (names(past), past.revision, past.has_more) == (["b", "d"], then, False)
    assert store.read(past.entries[0]) == document(first, "one")
    assert past.entries[0].index == labels(env="dev")
    assert store.scan_at(prefix("widgets", "one"), store.revision).entries == now.entries
    assert store.scan_at(ALL, Revision(0)).entries == []


async def one_key_of_the_past_is_not_its_neighbours(store: Tested) -> None:
    first = await one(store, create(key("b"), "one"))
    await store.commit(create(key("bc")), create(key("d")))
    then = store.revision
    second = await one(store, update(key("b"), "two", expect=first))
    await store.commit(delete(key("d"), expect=_revision_of(store, "d")), create(key("a")))
    await store.commit(update(key("bc"), "two", expect=_revision_of(store, "bc")))
    found = {name: store.get_at(key(name), then) for name in ("a", "b", "bc", "d", "x")}
    assert {name for name, entry in found.items() if entry is None} == {"a", "x"}
    assert found["b"] is not None
    assert store.read(found["b"]) == document(first, "one")
    now = store.get_at(key("b"), store.revision)
    assert now is not None
    assert now.revision == second
    assert store.get_at(key("b"), Revision(first - 1)) is None
    with pytest.raises(FutureRevision):
        store.get_at(key("b"), Revision(store.revision + 1))
    await store.compact_log(second)
    with pytest.raises(Compacted):
        store.get_at(key("d"), then)


async def pages_of_the_past_go_on_whatever_is_written(store: Tested) -> None:
    await store.commit(*(create(key(f"n{n:02}")) for n in range(0, 20, 2)))
    then = store.revision
    found: list[str] = []
    after, remaining = None, []
    while True:
        page = store.scan_at(prefix("widgets"), then, after=after, limit=4)
        found += names(page)
        remaining.append(page.remaining)
        if not page.has_more:
            break
        after = page.entries[-1].key
        await store.commit(create(key(f"n{len(found) + 1:02}")))
        last = store.get(key("n18"))
        await store.commit(
            create(key("n18")) if last is None else delete(key("n18"), expect=last.revision),
            delete(after, expect=page.entries[-1].revision),
        )
    assert found == [f"n{n:02}" for n in range(0, 20, 2)]
    assert remaining == [6, 2, 0]


async def the_past_reaches_from_the_compacted_to_the_present(store: Tested) -> None:
    first = await one(store, create(key("a")))
    second = await one(store, create(key("b")))
    await store.commit(create(key("c")))
    await store.compact_log(second)
    assert names(store.scan_at(ALL, second)) == ["a", "b"]
    with pytest.raises(Compacted):
        store.scan_at(ALL, first)
    with pytest.raises(FutureRevision):
        store.scan_at(ALL, Revision(store.revision + 1))


async def renewals_and_volatile_objects_have_no_past(store: Tested) -> None:
    first = await one(store, create(key("lease"), "t0"))
    await store.commit(create(key("event"), volatile=True))
    then = store.revision
    second = store.renew(key("lease"), draft("t1"), Index(b""), expect=first)
    await store.commit(create(key("later"), volatile=True))
    page = store.scan_at(ALL, then)
    assert names(page) == ["event", "later", "lease"]
    assert store.read(page.entries[2]) == document(second, "t1")
    await store.commit(update(key("lease"), "t2", expect=second))
    assert store.read(store.scan_at(ALL, then).entries[2]) == document(first, "t0")


def _revision_of(store: Tested, name: str) -> Revision:
    stored = store.get(key(name))
    assert stored is not None
    return stored.revision


PAST: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        one_key_of_the_past_is_not_its_neighbours,
        pages_of_the_past_go_on_whatever_is_written,
        renewals_and_volatile_objects_have_no_past,
        the_past_is_as_it_was,
        the_past_reaches_from_the_compacted_to_the_present,
    )
}
