"""The contract of the store, as functions taking the store under test.

Every store given is empty and runs on the test's event loop. `SUITE` lists the functions;
test_store.py runs each against the LMDB store and the in-memory model.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import pytest

from hub.store import (
    Change,
    Compacted,
    Conflict,
    Draft,
    Exists,
    FutureRevision,
    Index,
    Key,
    Listener,
    Match,
    NotFound,
    Op,
    Page,
    Revision,
    Stored,
    Write,
    decode_index,
    decode_key,
    prefix,
)
from tests.unit.store.given import create, delete, document, draft, key, labels, update


class Tested(Protocol):
    """What the suite needs of a store."""

    @property
    def revision(self) -> Revision: ...
    async def commit(
        self, *writes: Write, meta: dict[str, bytes | None] | None = None
    ) -> tuple[Revision, ...]: ...
    def renew(self, key: Key, draft: Draft, index: Index, *, expect: Revision) -> Revision: ...
    def subscribe(self, listener: Listener) -> Callable[[], None]: ...
    def get(self, key: Key) -> Stored | None: ...
    def read(self, stored: Stored) -> bytes: ...
    def scan(
        self,
        prefix: bytes,
        *,
        after: Key | None = None,
        limit: int | None = None,
        match: Match | None = None,
        is_counted: bool = True,
    ) -> Page: ...
    def scan_at(
        self,
        prefix: bytes,
        revision: Revision,
        *,
        after: Key | None = None,
        limit: int | None = None,
        match: Match | None = None,
        is_counted: bool = True,
    ) -> Page: ...
    def get_at(self, key: Key, revision: Revision) -> Stored | None: ...
    def changes(
        self, after: Revision, prefix: bytes, *, limit: int | None = None
    ) -> list[Change]: ...
    async def compact_log(self, keep_after: Revision) -> None: ...


Check = Callable[[Tested], Awaitable[None]]
ALL = b""


async def one(store: Tested, write: Write) -> Revision:
    (revision,) = await store.commit(write)
    return revision


def shown(changes: list[Change]) -> list[tuple[Op, str, int, bytes]]:
    return [
        (change.op, decode_key(change.key)[2], change.revision, change.value) for change in changes
    ]


def names(page: Page) -> list[str]:
    return [decode_key(entry.key)[2] for entry in page.entries]


async def a_created_object_reads_back_with_its_revision(store: Tested) -> None:
    revision = await one(store, create(key("a"), "hello", index=labels(env="prod"), sealed=True))
    stored = store.get(key("a"))
    assert stored is not None
    assert (stored.key, stored.revision) == (key("a"), revision)
    assert store.read(stored) == document(revision, "hello")
    assert decode_index(stored.index) == ({"env": "prod"}, {})
    assert store.revision == revision


async def a_key_that_was_never_written_has_nothing(store: Tested) -> None:
    assert store.get(key("a")) is None
    assert store.scan(ALL).entries == []


async def create_refuses_a_taken_key(store: Tested) -> None:
    first = await one(store, create(key("a"), "first"))
    with pytest.raises(Exists):
        await store.commit(create(key("a"), "second"))
    stored = store.get(key("a"))
    assert stored is not None
    assert store.read(stored) == document(first, "first")


async def update_needs_the_expected_revision(store: Tested) -> None:
    first = await one(store, create(key("a")))
    second = await one(store, update(key("a"), "new", expect=first))
    with pytest.raises(Conflict) as caught:
        await store.commit(update(key("a"), "late", expect=first))
    assert (caught.value.expected, caught.value.actual) == (first, second)
    assert second > first


async def update_and_delete_of_nothing_are_refused(store: Tested) -> None:
    for write in (update(key("a"), "x", expect=1), delete(key("a"), expect=1)):
        with pytest.raises(NotFound):
            await store.commit(write)


async def a_deleted_object_is_gone_and_its_key_free(store: Tested) -> None:
    first = await one(store, create(key("a")))
    with pytest.raises(Conflict):
        await store.commit(delete(key("a"), expect=first + 7))
    gone = await one(store, delete(key("a"), expect=first))
    assert store.get(key("a")) is None
    assert await one(store, create(key("a"))) > gone > first


async def a_commit_is_all_or_nothing(store: Tested) -> None:
    first, _ = await store.commit(create(key("a"), "old"), create(key("z")))
    with pytest.raises(Exists):
        await store.commit(
            create(key("b")), update(key("a"), "new", expect=first), create(key("z"))
        )
    assert names(store.scan(ALL)) == ["a", "z"]
    stored = store.get(key("a"))
    assert stored is not None
    assert store.read(stored) == document(first, "old")


async def the_revisions_of_a_commit_follow_the_order_of_its_writes(store: Tested) -> None:
    revisions = await store.commit(*(create(key(name)) for name in "cab"))
    assert list(revisions) == sorted(set(revisions))
    assert [_revision(store, name) for name in "cab"] == list(revisions)


async def a_commit_may_write_a_key_once(store: Tested) -> None:
    with pytest.raises(ValueError, match=r"once|twice"):
        await store.commit(create(key("a")), delete(key("a"), expect=1))


async def one_refused_commit_leaves_its_neighbours_alone(store: Tested) -> None:
    first = await one(store, create(key("a")))
    outcomes = await asyncio.gather(
        store.commit(create(key("b"))),
        store.commit(create(key("a"))),
        store.commit(update(key("a"), "new", expect=first)),
        store.commit(update(key("a"), "late", expect=first)),
        store.commit(create(key("c"))),
        return_exceptions=True,
    )
    kinds = [type(outcome) for outcome in outcomes]
    assert kinds == [tuple, Exists, tuple, Conflict, tuple]
    assert names(store.scan(ALL)) == ["a", "b", "c"]


async def concurrent_writers_of_one_key_have_one_winner(store: Tested) -> None:
    first = await one(store, create(key("a")))
    outcomes = await asyncio.gather(
        *(store.commit(update(key("a"), str(n), expect=first)) for n in range(20)),
        return_exceptions=True,
    )
    winners = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, tuple)]
    assert len(winners) == 1
    stored = store.get(key("a"))
    assert stored is not None
    assert store.read(stored) == document(stored.revision, str(winners[0]))


async def subscribers_see_every_change_once_in_order(store: Tested) -> None:
    seen: list[Change] = []
    store.subscribe(seen.extend)
    await asyncio.gather(*(store.commit(create(key(f"n{n}"))) for n in range(50)))
    revisions = [change.revision for change in seen]
    assert revisions == sorted(set(revisions))
    assert {decode_key(change.key)[2] for change in seen} == {f"n{n}" for n in range(50)}
    assert store.revision == revisions[-1]


async def a_change_carries_the_state_before_it(store: Tested) -> None:
    seen: list[Change] = []
    store.subscribe(seen.extend)
    first = await one(store, create(key("a"), "one", index=labels(env="dev")))
    second = await one(store, update(key("a"), "two", expect=first, index=labels(env="prod")))
    third = await one(store, delete(key("a"), expect=second, text="last"))
    assert shown(seen) == [
        (Op.CREATE, "a", first, document(first, "one")),
        (Op.UPDATE, "a", second, document(second, "two")),
        (Op.DELETE, "a", third, document(third, "last")),
    ]
    assert [change.previous_index for change in seen] == [
        None,
        labels(env="dev"),
        labels(env="prod"),
    ]
    before = [change.previous() if change.previous else None for change in seen]
    assert before == [None, document(first, "one"), document(second, "two")]


async def what_was_acknowledged_has_been_shown(store: Tested) -> None:
    seen: list[int] = []
    store.subscribe(lambda changes: seen.extend(change.revision for change in changes))
    for name in "abc":
        revision = await one(store, create(key(name)))
        assert seen[-1] == revision == store.revision


async def a_listener_that_unsubscribed_hears_nothing_more(store: Tested) -> None:
    seen: list[Change] = []
    unsubscribe = store.subscribe(seen.extend)
    await store.commit(create(key("a")))
    unsubscribe()
    await store.commit(create(key("b")))
    assert [decode_key(change.key)[2] for change in seen] == ["a"]


async def a_scan_goes_in_order_of_namespace_and_name(store: Tested) -> None:
    for namespace, name in (("b", "a"), ("a", "z"), ("", "root"), ("a", "b"), ("a-b", "a")):
        await store.commit(create(key(name, namespace=namespace)))
    await store.commit(create(key("a", resource="widgets.example.com")))
    found = [decode_key(entry.key)[1:] for entry in store.scan(prefix("widgets")).entries]
    assert found == [("", "root"), ("a", "b"), ("a", "z"), ("a-b", "a"), ("b", "a")]
    assert names(store.scan(prefix("widgets", "a"))) == ["b", "z"]
    assert names(store.scan(prefix("widgets", ""))) == ["root"]


async def pages_cover_a_prefix_without_gap_or_overlap(store: Tested) -> None:
    await store.commit(*(create(key(f"n{n:02}")) for n in range(23)))
    await store.commit(create(key("x", namespace="two")), create(key("x", resource="other")))
    found: list[str] = []
    after, remaining = None, []
    while True:
        page = store.scan(prefix("widgets", "one"), after=after, limit=5)
        found += names(page)
        remaining.append(page.remaining)
        if not page.has_more:
            break
        after = page.entries[-1].key
    assert found == [f"n{n:02}" for n in range(23)]
    assert remaining == [18, 13, 8, 3, 0]


async def a_page_that_ends_the_prefix_says_so(store: Tested) -> None:
    await store.commit(create(key("a")), create(key("b")))
    page = store.scan(ALL, limit=2)
    assert (page.has_more, page.remaining) == (False, 0)
    assert store.scan(ALL, after=key("b")).entries == []
    assert names(store.scan(ALL, after=key("aa"))) == ["b"]


async def a_match_sees_labels_and_picks(store: Tested) -> None:
    await store.commit(
        create(key("a"), index=labels(env="prod")),
        create(key("b")),
        create(key("c"), index=labels(env="prod")),
        create(key("d"), index=labels(env="dev")),
    )

    def is_prod(_: Key, index: Index) -> bool:
        return decode_index(index)[0].get("env") == "prod"

    page = store.scan(ALL, match=is_prod)
    assert (names(page), page.has_more, page.remaining) == (["a", "c"], False, None)
    first = store.scan(ALL, match=is_prod, limit=1)
    assert (names(first), first.has_more) == (["a"], True)


async def volatile_objects_are_read_like_others(store: Tested) -> None:
    seen: list[Change] = []
    store.subscribe(seen.extend)
    first = await one(store, create(key("b"), "event", volatile=True))
    await store.commit(create(key("a")), create(key("c")))
    assert names(store.scan(ALL)) == ["a", "b", "c"]
    assert names(store.scan(ALL, after=key("a"), limit=1)) == ["b"]
    assert store.scan(ALL, limit=1).remaining == 2
    second = await one(store, update(key("b"), "again", expect=first, volatile=True))
    stored = store.get(key("b"))
    assert stored is not None
    assert store.read(stored) == document(second, "again")
    with pytest.raises(Exists):
        await store.commit(create(key("b")))
    await store.commit(delete(key("b"), expect=second, volatile=True))
    assert names(store.scan(ALL)) == ["a", "c"]
    assert [change.op for change in seen if change.key == key("b")] == [
        Op.CREATE,
        Op.UPDATE,
        Op.DELETE,
    ]


async def the_volatile_flag_must_be_the_objects(store: Tested) -> None:
    first = await one(store, create(key("a")))
    with pytest.raises(ValueError, match="volatile"):
        await store.commit(update(key("a"), "x", expect=first, volatile=True))


async def changes_replay_what_subscribers_saw(store: Tested) -> None:
    seen: list[Change] = []
    store.subscribe(seen.extend)
    first = await one(store, create(key("a"), "one", index=labels(env="dev")))
    second = await one(store, update(key("a"), "two", expect=first))
    await store.commit(create(key("b"), "b"), delete(key("a"), expect=second))
    assert shown(store.changes(Revision(0), ALL)) == shown(seen)
    assert shown(store.changes(first, ALL)) == shown(seen[1:])
    replayed = store.changes(first, ALL)[0]
    assert replayed.previous_index == labels(env="dev")
    assert replayed.previous is not None
    assert replayed.previous() == document(first, "one")


async def changes_keep_to_their_prefix_and_limit(store: Tested) -> None:
    await store.commit(*(create(key(name, namespace=ns)) for ns in ("one", "two") for name in "ab"))
    assert len(store.changes(Revision(0), prefix("widgets"))) == 4
    two = store.changes(Revision(0), prefix("widgets", "two"))
    assert [decode_key(change.key)[1] for change in two] == ["two", "two"]
    first = store.changes(Revision(0), prefix("widgets"), limit=3)
    rest = store.changes(first[-1].revision, prefix("widgets"), limit=3)
    assert [len(first), len(rest)] == [3, 1]
    assert store.changes(Revision(0), prefix("gadgets")) == []


async def changes_since_now_are_none_and_since_later_an_error(store: Tested) -> None:
    await store.commit(create(key("a")))
    assert store.changes(store.revision, ALL) == []
    with pytest.raises(FutureRevision):
        store.changes(Revision(store.revision + 1), ALL)


async def volatile_changes_are_what_is_there_now(store: Tested) -> None:
    first = await one(store, create(key("e"), "one", volatile=True))
    second = await one(store, update(key("e"), "two", expect=first, volatile=True))
    third = await one(store, create(key("a")))
    assert [(change.revision, change.op) for change in store.changes(Revision(0), ALL)] == [
        (second, Op.CREATE),
        (third, Op.CREATE),
    ]
    assert [change.revision for change in store.changes(second, ALL)] == [third]


async def a_renewal_is_readable_at_once(store: Tested) -> None:
    first = await one(store, create(key("lease"), "t0", index=labels(a="b"), sealed=True))
    second = store.renew(key("lease"), draft("t1"), labels(a="b"), expect=first)
    stored = store.get(key("lease"))
    assert stored is not None
    assert (stored.revision, store.read(stored)) == (second, document(second, "t1"))
    (scanned,) = store.scan(ALL).entries
    assert scanned == stored


async def a_renewal_is_shown_in_its_place(store: Tested) -> None:
    seen: list[Change] = []
    first = await one(store, create(key("lease"), "t0"))
    store.subscribe(seen.extend)
    writing = [asyncio.ensure_future(store.commit(create(key(f"n{n}")))) for n in range(20)]
    await asyncio.sleep(0)
    current = first
    for n in range(20):
        current = store.renew(key("lease"), draft(f"t{n}"), Index(b""), expect=current)
    await asyncio.gather(*writing)
    await asyncio.sleep(0)
    revisions = [change.revision for change in seen]
    assert revisions == sorted(revisions)
    assert len(set(revisions)) == 40
    renewals = [change for change in seen if change.key == key("lease")]
    assert [change.previous_index for change in renewals] == [b""] * 20
    assert renewals[-1].value == document(current, "t19")
    assert renewals[0].previous is not None
    assert renewals[0].previous() == document(first, "t0")


async def a_renewal_needs_the_expected_revision_and_index(store: Tested) -> None:
    with pytest.raises(NotFound):
        store.renew(key("lease"), draft(), Index(b""), expect=Revision(1))
    first = await one(store, create(key("lease")))
    second = store.renew(key("lease"), draft("t1"), Index(b""), expect=first)
    with pytest.raises(Conflict):
        store.renew(key("lease"), draft("t2"), Index(b""), expect=first)
    with pytest.raises(ValueError, match=r"index|labels"):
        store.renew(key("lease"), draft("t2"), labels(new="label"), expect=second)


async def a_change_says_whether_the_log_has_it(store: Tested) -> None:
    seen: list[Change] = []
    store.subscribe(seen.extend)
    first = await one(store, create(key("lease"), "t0"))
    store.renew(key("lease"), draft("t1"), Index(b""), expect=first)
    await store.commit(create(key("event"), volatile=True))
    assert [change.is_logged for change in seen] == [True, False, False]
    replayed = store.changes(Revision(0), ALL)
    assert [change.is_logged for change in replayed] == [True, False, False]


async def a_durable_write_follows_a_renewal(store: Tested) -> None:
    seen: list[Change] = []
    first = await one(store, create(key("lease"), "t0"))
    store.subscribe(seen.extend)
    second = store.renew(key("lease"), draft("t1"), Index(b""), expect=first)
    with pytest.raises(Conflict):
        await store.commit(update(key("lease"), "stale", expect=first))
    third = await one(store, update(key("lease"), "t2", expect=second))
    stored = store.get(key("lease"))
    assert stored is not None
    assert (stored.revision, store.read(stored)) == (third, document(third, "t2"))
    assert seen[-1].previous is not None
    assert seen[-1].previous() == document(second, "t1")
    fourth = store.renew(key("lease"), draft("t3"), Index(b""), expect=third)
    await store.commit(delete(key("lease"), expect=fourth))
    assert store.get(key("lease")) is None
    assert store.scan(ALL).entries == []


async def renewals_are_in_changes_once_with_their_last_state(store: Tested) -> None:
    first = await one(store, create(key("lease"), "t0"))
    second = store.renew(key("lease"), draft("t1"), Index(b""), expect=first)
    third = store.renew(key("lease"), draft("t2"), Index(b""), expect=second)
    fourth = await one(store, create(key("z")))
    assert shown(store.changes(first, ALL)) == [
        (Op.UPDATE, "lease", third, document(third, "t2")),
        (Op.CREATE, "z", fourth, document(fourth)),
    ]


async def a_page_and_what_follows_make_up_the_state(store: Tested) -> None:
    seen: list[Change] = []
    starts: list[tuple[Page, int]] = []
    store.subscribe(seen.extend)

    async def live(name: str) -> None:
        first = await one(store, create(key(name)))
        starts.append((store.scan(ALL), len(seen)))
        second = await one(store, update(key(name), "new", expect=first))
        if int(name) % 3 == 0:
            await store.commit(delete(key(name), expect=second))

    await asyncio.gather(*(live(str(n)) for n in range(60)))
    final = {entry.key: entry.revision for entry in store.scan(ALL).entries}
    assert len(starts) == 60
    for page, at in starts:
        assert at == 0 or seen[at - 1].revision <= page.revision
        state = {entry.key: entry.revision for entry in page.entries}
        for change in seen[at:]:
            assert change.revision > page.revision
            state[change.key] = change.revision
            if change.op is Op.DELETE:
                del state[change.key]
        assert state == final


async def keys_beyond_the_engines_limit_work_like_others(store: Tested) -> None:
    long = "x" * 600
    keys = [key(long + tail) for tail in ("b", "a", "")] + [key("w"), key("y")]
    await store.commit(*(create(each, decode_key(each)[2][-1]) for each in keys))
    page = store.scan(prefix("widgets"))
    assert {entry.key for entry in page.entries} == set(keys)
    assert names(page)[0] == "w"
    assert names(page)[-1] == "y"
    found: list[Key] = []
    after = None
    while (slice_ := store.scan(prefix("widgets"), after=after, limit=1)).entries:
        found.append(slice_.entries[0].key)
        after = found[-1]
    assert found == [entry.key for entry in page.entries]
    assert names(store.scan(prefix("widgets", "one") + long.encode() + b"a")) == [long + "a"]
    revision = _revision(store, long + "a")
    await store.commit(delete(keys[1], expect=revision))
    assert {change.key for change in store.changes(Revision(0), ALL)} == set(keys)
    assert store.get(keys[1]) is None


async def compaction_is_an_error_for_watches_from_before(store: Tested) -> None:
    first = await one(store, create(key("a")))
    second = await one(store, create(key("b")))
    await store.compact_log(first)
    with pytest.raises(Compacted):
        store.changes(Revision(first - 1), ALL)
    assert [change.revision for change in store.changes(first, ALL)] == [second]


def _revision(store: Tested, name: str) -> Revision:
    stored = store.get(key(name))
    assert stored is not None
    return stored.revision


SUITE: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        a_change_carries_the_state_before_it,
        a_commit_is_all_or_nothing,
        a_commit_may_write_a_key_once,
        a_created_object_reads_back_with_its_revision,
        a_deleted_object_is_gone_and_its_key_free,
        a_change_says_whether_the_log_has_it,
        a_durable_write_follows_a_renewal,
        a_key_that_was_never_written_has_nothing,
        a_listener_that_unsubscribed_hears_nothing_more,
        a_match_sees_labels_and_picks,
        a_page_and_what_follows_make_up_the_state,
        a_page_that_ends_the_prefix_says_so,
        a_renewal_is_readable_at_once,
        a_renewal_is_shown_in_its_place,
        a_renewal_needs_the_expected_revision_and_index,
        a_scan_goes_in_order_of_namespace_and_name,
        changes_keep_to_their_prefix_and_limit,
        changes_replay_what_subscribers_saw,
        changes_since_now_are_none_and_since_later_an_error,
        compaction_is_an_error_for_watches_from_before,
        concurrent_writers_of_one_key_have_one_winner,
        create_refuses_a_taken_key,
        keys_beyond_the_engines_limit_work_like_others,
        one_refused_commit_leaves_its_neighbours_alone,
        pages_cover_a_prefix_without_gap_or_overlap,
        renewals_are_in_changes_once_with_their_last_state,
        subscribers_see_every_change_once_in_order,
        the_revisions_of_a_commit_follow_the_order_of_its_writes,
        the_volatile_flag_must_be_the_objects,
        update_and_delete_of_nothing_are_refused,
        update_needs_the_expected_revision,
        volatile_changes_are_what_is_there_now,
        volatile_objects_are_read_like_others,
        what_was_acknowledged_has_been_shown,
    )
}
