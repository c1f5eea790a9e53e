"""Merging: a full and the deltas after it become the records of one state.

Owns last-wins by key. The full streams through; what the deltas say is held in memory, which the
shipping policy bounds.

>>> from hub.store import Key, Revision
>>> full = [Record(Key(b"a"), Revision(1), b"1"), Record(Key(b"c"), Revision(2), b"2")]
>>> delta = [Record(Key(b"b"), Revision(3), b"3"), Record(Key(b"a"), Revision(4), None)]
>>> [(record.key, record.raw) for record in merge(full, [delta])]
[(b'b', b'3'), (b'c', b'2')]
"""

from collections.abc import Iterable, Iterator

from hub.store import Record, stored_key


def merge(full: Iterable[Record], deltas: Iterable[Iterable[Record]]) -> Iterator[Record]:
    """Yield what is left after the deltas, in order of stored key.

    `full` is in that order, the deltas are oldest first.
    """
    changed = last_writes(deltas)
    pending = iter(sorted(changed))
    at = next(pending, None)
    for record in full:
        key = stored_key(record.key)
        while at is not None and at < key:
            if changed[at].raw is not None:
                yield changed[at]
            at = next(pending, None)
        if key not in changed:
            yield record
    while at is not None:
        if changed[at].raw is not None:
            yield changed[at]
        at = next(pending, None)


def last_writes(deltas: Iterable[Iterable[Record]]) -> dict[bytes, Record]:
    """Return the last write to each key by its stored key, deletions too; oldest delta first."""
    return {stored_key(record.key): record for delta in deltas for record in delta}
