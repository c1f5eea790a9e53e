"""Walking the file: the rows under a prefix, in order of their stored keys, and how many they are.

Reads as it goes, inside the caller's transaction; nothing is decoded.
"""

import heapq
from collections.abc import Container, Iterable, Iterator
from operator import itemgetter

from hub.store.api import Key, Match, Stored
from hub.store.key import HEAD_BYTES, stored_key
from hub.store.lmdb_env import Database, Environment, Txn
from hub.store.value import stored


def walk(
    txn: Txn, env: Environment, prefix: bytes, *, after: Key | None
) -> Iterator[tuple[bytes, bytes]]:
    """Yield (stored key, value) of `objects` and `volatile`, merged.

    Of long prefixes only the head counts: look at the keys again.
    """
    durable = rows(txn, env.objects, prefix, after=after)
    passing = rows(txn, env.volatile, prefix, after=after)
    first = next(passing, None)
    if first is None:
        return durable
    return heapq.merge(durable, _prepend(first, passing), key=itemgetter(0))


def rows(
    txn: Txn, db: Database, prefix: bytes, *, after: Key | None
) -> Iterator[tuple[bytes, bytes]]:
    """Yield (stored key, value) of one database, see `walk`."""
    head = prefix[:HEAD_BYTES]
    passed = None if after is None else stored_key(after)
    with txn.cursor(db) as cursor:
        if not cursor.set_range(max(head, passed or b"")):
            return
        for row in cursor:
            if not row[0].startswith(head):
                return
            if row[0] != passed:
                yield row


def count(
    txn: Txn, db: Database, prefix: bytes, *, after: Key | None, skip: Container[bytes] = ()
) -> int:
    """Return how many rows of one database lie under a prefix, stored keys in `skip` left out."""
    head = prefix[:HEAD_BYTES]
    if len(prefix) > HEAD_BYTES:
        found = rows(txn, db, prefix, after=after)
        return sum(row[0] not in skip and stored(*row).key.startswith(prefix) for row in found)
    passed = None if after is None else stored_key(after)
    total = 0
    with txn.cursor(db) as cursor:
        if not cursor.set_range(max(head, passed or b"")):
            return 0
        for key in cursor.iternext(keys=True, values=False):
            if not key.startswith(head):
                break
            total += key != passed and key not in skip
    return total


def take(
    entries: Iterable[Stored], limit: int | None, match: Match | None
) -> tuple[list[Stored], bool]:
    """Return the first `limit` entries that match, and whether more follow (matching or not)."""
    taken: list[Stored] = []
    for entry in entries:
        if limit is not None and len(taken) >= limit:
            return taken, True
        if match is None or match(entry.key, entry.index):
            taken.append(entry)
    return taken, False


def _prepend(
    first: tuple[bytes, bytes], rest: Iterator[tuple[bytes, bytes]]
) -> Iterator[tuple[bytes, bytes]]:
    yield first
    yield from rest
