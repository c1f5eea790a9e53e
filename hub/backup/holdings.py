"""Which segments the bucket holds, as far as they are listed: what `HubSnapshot` shows.

Pure. The catalog names every segment of the retention, of a busy hub tens of thousands; this keeps
the newest of each sort, from which `hub.backup.wire.choose` chooses. It is read from the bucket now
and then, and follows HEAD in between: what HEAD drops goes into a manifest, so it stays restorable.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hub.backup.wire import MOST_SNAPSHOTS
from snapshot.catalog import Catalog
from snapshot.errors import IntegrityError
from snapshot.head import Head, SegmentRef
from snapshot.pins import Pin
from snapshot.points import find_path, line


@dataclass(frozen=True, slots=True)
class Holdings:
    """The newest fulls, merges, deltas and pinned segments, by position.

    `pinned`: the names of those that end at a position that is pinned.
    """

    segments: tuple[SegmentRef, ...] = ()
    pinned: frozenset[str] = frozenset()

    def with_head(self, head: Head) -> "Holdings":
        """Return them with what HEAD names now; it knows best what was read back."""
        return Holdings(_newest((*self.segments, *head.segments), self.pinned), self.pinned)


NOTHING_HELD = Holdings()


def holdings_of(catalog: Catalog, pins: Iterable[Pin]) -> Holdings:
    """Return what a catalog holds; of branches that a fork left behind only what is pinned."""
    pinned = frozenset(name for pin in pins for name in _end_of(catalog, pin.seq))
    past = list(line(catalog.head.seq, catalog.branches))
    listed = (
        ref
        for ref in catalog.segments
        if ref.name in pinned or any(ref.seq in stretch for stretch in past)
    )
    return Holdings(_newest(listed, pinned), pinned)


def _end_of(catalog: Catalog, seq: int) -> tuple[str, ...]:
    """Return the segment with which a restore to a position ends; none when it is lost."""
    try:
        return (find_path(catalog, seq)[-1].name,)
    except IntegrityError:
        return ()


def _newest(refs: Iterable[SegmentRef], pinned: frozenset[str]) -> tuple[SegmentRef, ...]:
    sorts: dict[str, list[SegmentRef]] = {}
    for ref in sorted({ref.name: ref for ref in refs}.values(), key=_place, reverse=True):
        kind = "pinned" if ref.name in pinned else "full" if not ref.is_delta else ref.level
        found = sorts.setdefault(kind, [])
        if len(found) < MOST_SNAPSHOTS:
            found.append(ref)
    return tuple(sorted((ref for found in sorts.values() for ref in found), key=_place))


def _place(ref: SegmentRef) -> tuple[int, int]:
    return ref.seq, ref.time_ms
