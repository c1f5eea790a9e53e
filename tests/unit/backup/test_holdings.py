"""What the bucket holds, as far as it is listed: from the catalog, and following HEAD."""

from msgspec import structs

from hub.backup.holdings import Holdings, holdings_of
from hub.backup.report import points_of
from hub.backup.wire import MOST_SNAPSHOTS, choose
from snapshot.catalog import Catalog
from snapshot.head import Fork, Head, SegmentRef
from snapshot.pins import Pin
from tests.unit.snapshot.support import HASH, full_ref, head, ref


def catalog(head_: Head, *dropped: SegmentRef) -> Catalog:
    found = sorted((*dropped, *head_.segments), key=lambda each: (each.seq, each.is_delta))
    return Catalog(head_, tuple(found), ())


def pin(seq: int) -> Pin:
    return Pin(name=f"at-{seq}", seq=seq, rev=seq * 10, time_ms=0, created="2026-05-04T00:00:00Z")


def delta(seq: int) -> SegmentRef:
    return ref(seq * 10 - 10, seq * 10, seq=seq)


def names(holdings: Holdings) -> set[str]:
    return {each.name for each in holdings.segments}


def test_what_head_dropped_is_held_as_long_as_a_manifest_names_it() -> None:
    now = head(full=full_ref(30, seq=3), tail=(delta(4),))
    old = full_ref(10)
    found = holdings_of(catalog(now, old, delta(2)), ())
    assert [each.seq for each in found.segments] == [1, 2, 3, 4]
    assert names(holdings_of(catalog(now), ())) == {each.name for each in now.segments}


def test_it_follows_head_and_keeps_what_head_drops() -> None:
    first = head(full=full_ref(10), tail=(delta(2), delta(3)))
    merged = ref(10, 30, seq=3, from_seq=1, level="d1")
    after = head(full=full_ref(10), tail=(merged,))
    found = Holdings().with_head(first).with_head(after)
    assert names(found) == {each.name for each in (*first.segments, merged)}


def test_head_knows_best_what_was_read_back() -> None:
    full = full_ref(10)
    verified = structs.replace(full, is_verified=True)
    found = Holdings((full,)).with_head(head(full=verified))
    assert found.segments == (verified,)
    dropped = found.with_head(head(full=full_ref(30, seq=3)))
    assert verified in dropped.segments


def test_a_pin_marks_the_segment_that_ends_at_its_position() -> None:
    now = head(full=full_ref(10), tail=(delta(2), delta(3)))
    found = holdings_of(catalog(now), [pin(2), pin(77)])
    assert found.pinned == {delta(2).name}
    pinned = [each.seq for each in points_of(found) if each.is_pinned]
    assert pinned == [2]
    assert found.with_head(now).pinned == found.pinned


def test_a_branch_that_was_left_behind_is_held_only_where_it_is_pinned() -> None:
    fork = Fork(epoch=1, seq=3, rev=30, chain=HASH, base_seq=1)
    after = ref(10, 40, seq=4, from_seq=1)
    now = head(full=full_ref(10), tail=(after,), fork=fork, branches=(fork,))
    left = (delta(2), delta(3))
    assert [each.seq for each in holdings_of(catalog(now, *left), ()).segments] == [1, 4]
    found = holdings_of(catalog(now, *left), [pin(3)])
    assert [each.seq for each in found.segments] == [1, 3, 4]


def test_of_very_many_it_keeps_what_is_listed_and_no_more() -> None:
    """A busy hub ships 86,400 deltas a day; what is chosen of them is the same."""
    days = [
        structs.replace(full_ref(seq * 10, seq=seq), from_seq=seq) for seq in range(1, 3000, 40)
    ]
    hours = [
        ref(seq * 10 - 100, seq * 10, seq=seq, from_seq=seq - 10, level="d1")
        for seq in range(11, 3000, 10)
    ]
    now = head(full=days[-1])
    every = catalog(now, *days[:-1], *hours, *(delta(seq) for seq in range(2, 3000)))
    pins = [pin(500), pin(41)]
    found = holdings_of(every, pins)
    assert len(found.segments) <= 4 * MOST_SNAPSHOTS
    whole = Holdings(every.segments, found.pinned)
    line = [each for each in points_of(whole) if each.seq <= now.seq or each.is_pinned]
    assert choose(points_of(found)) == choose(line)
    assert {each.seq for each in choose(points_of(found)) if each.is_pinned} == {500, 41}
