"""Reading: one object, a slice of many, and what has changed since a revision.

Owns the merge of the three places a key may live: `objects`, `volatile` and the overlay. Every read
is one short transaction: stored values are copied out and the transaction ends before anything is
decompressed. Called on the event loop's thread, so that the overlay holds still.
"""

import heapq
from collections.abc import Iterator
from functools import partial
from itertools import islice
from operator import attrgetter, itemgetter

from hub.store.api import Change, Key, Match, Op, Page, Revision, Stored
from hub.store.errors import Compacted, Corrupt, FutureRevision
from hub.store.key import HEAD_BYTES, stored_key
from hub.store.ledger import Shared
from hub.store.lmdb_env import (
    Database,
    Environment,
    Txn,
    read_marks,
)
from hub.store.log import Entry, decode_entry, encode_revision
from hub.store.value import Codecs, header_of, revision_of, stored


def get(shared: Shared, key: Key) -> Stored | None:
    """Return what lies at a key now."""
    env, in_file = shared.env, stored_key(key)
    with env.read() as txn:
        raw = txn.get(in_file, db=env.objects)
        if raw is None:
            raw = txn.get(in_file, db=env.volatile)
    if raw is None:
        return None
    renewed = shared.overlay.entries.get(key)
    if renewed is not None and renewed.revision > revision_of(raw):
        return renewed
    return stored(in_file, raw)


def scan(
    shared: Shared,
    prefix: bytes,
    *,
    after: Key | None,
    limit: int | None,
    match: Match | None,
    is_counted: bool,
) -> Page:
    """Return a slice of the entries under a prefix, see `Store.scan`."""
    revision = shared.sequence.shown
    entries: list[Stored] = []
    has_more = False
    remaining: int | None = None
    renewed = shared.overlay.entries
    with shared.env.read() as txn:
        for in_file, raw in _walk(txn, shared.env, prefix, after=after):
            entry = stored(in_file, raw)
            if not entry.key.startswith(prefix):
                continue
            if limit is not None and len(entries) >= limit:
                has_more = True
                break
            if renewed:
                newer = renewed.get(entry.key)
                if newer is not None and newer.revision > entry.revision:
                    entry = newer
            if match is None or match(entry.key, entry.index):
                entries.append(entry)
        if match is None and is_counted:
            remaining = 0
            if has_more:
                remaining = sum(
                    _count(txn, db, prefix, after=entries[-1].key if entries else after)
                    for db in (shared.env.objects, shared.env.volatile)
                )
    return Page(entries, revision, has_more, remaining)


def changes(shared: Shared, after: Revision, prefix: bytes, *, limit: int | None) -> list[Change]:
    """Return what has changed under a prefix since a revision, see `Store.changes`."""
    env, shown = shared.env, shared.sequence.shown
    if after > shared.sequence.last:
        raise FutureRevision(asked=after, current=shown)
    window = range(after + 1, shown + 1)
    with env.read() as txn:
        compacted = read_marks(txn, env).compacted
        if after < compacted:
            raise Compacted(asked=after, oldest=compacted)
        found = list(islice(_logged(shared, txn, prefix, window), limit))
        present = [*_volatile(shared, txn, prefix, window), *_renewed(shared, txn, prefix, window)]
    if present:
        found = sorted([*found, *present], key=attrgetter("revision"))[:limit]
    return found


def _walk(
    txn: Txn, env: Environment, prefix: bytes, *, after: Key | None
) -> Iterator[tuple[bytes, bytes]]:
    """Yield (stored key, value) of both databases in order of the stored key."""
    durable = _rows(txn, env.objects, prefix, after=after)
    passing = _rows(txn, env.volatile, prefix, after=after)
    first = next(passing, None)
    if first is None:
        return durable
    return heapq.merge(durable, _prepend(first, passing), key=itemgetter(0))


def _prepend(
    first: tuple[bytes, bytes], rest: Iterator[tuple[bytes, bytes]]
) -> Iterator[tuple[bytes, bytes]]:
    yield first
    yield from rest


def _rows(
    txn: Txn, db: Database, prefix: bytes, *, after: Key | None
) -> Iterator[tuple[bytes, bytes]]:
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


def _count(txn: Txn, db: Database, prefix: bytes, *, after: Key | None) -> int:
    head = prefix[:HEAD_BYTES]
    if len(prefix) > HEAD_BYTES:
        rows = _rows(txn, db, prefix, after=after)
        return sum(stored(*row).key.startswith(prefix) for row in rows)
    passed = None if after is None else stored_key(after)
    count = 0
    with txn.cursor(db) as cursor:
        if not cursor.set_range(max(head, passed or b"")):
            return 0
        for key in cursor.iternext(keys=True, values=False):
            if not key.startswith(head):
                break
            count += key != passed
    return count


def _logged(shared: Shared, txn: Txn, prefix: bytes, window: range) -> Iterator[Change]:
    for revision in shared.log_index.find(prefix, window):
        at = encode_revision(revision)
        raw = txn.get(at, db=shared.env.log)
        if raw is None:
            raise Corrupt(f"the log has no entry at {revision}, which its index knows")
        yield _logged_change(shared.codecs, decode_entry(at, raw))


def _logged_change(codecs: Codecs, entry: Entry) -> Change:
    value = codecs.decode(entry.key, entry.new)
    index = header_of(entry.new).index
    if not entry.previous:
        return Change(entry.op, entry.key, entry.revision, value, index, None, None)
    previous = partial(codecs.decode, entry.key, entry.previous)
    before = header_of(entry.previous).index
    return Change(entry.op, entry.key, entry.revision, value, index, before, previous)


def _volatile(shared: Shared, txn: Txn, prefix: bytes, window: range) -> Iterator[Change]:
    for in_file, raw in _rows(txn, shared.env.volatile, prefix, after=None):
        if revision_of(raw) not in window:
            continue
        entry = stored(in_file, raw)
        if entry.key.startswith(prefix):
            value = shared.codecs.decode(entry.key, raw)
            yield Change(Op.CREATE, entry.key, entry.revision, value, entry.index, None, None)


def _renewed(shared: Shared, txn: Txn, prefix: bytes, window: range) -> Iterator[Change]:
    for key, entry in shared.overlay.entries.items():
        if entry.revision not in window or not key.startswith(prefix):
            continue
        base = txn.get(stored_key(key), db=shared.env.objects)
        if base is not None and revision_of(base) < entry.revision:
            value = shared.codecs.decode(key, entry.raw)
            before = partial(shared.codecs.decode, key, base)
            index = header_of(base).index
            yield Change(Op.UPDATE, key, entry.revision, value, entry.index, index, before)
