"""Reading: one object, a slice of many, and what has changed since a revision.

Owns the merge of the three places a key may live: `objects`, `volatile` and the overlay. Every read
is one short transaction: stored values are copied out and the transaction ends before anything is
decompressed. Called on the event loop's thread, so that the overlay holds still.
"""

import heapq
from collections.abc import Container, Iterator
from functools import partial
from itertools import islice
from operator import attrgetter

from hub.store.api import Change, Key, Match, Op, Page, Revision, Stored
from hub.store.errors import Compacted, Corrupt, FutureRevision
from hub.store.key import stored_key
from hub.store.ledger import Shared
from hub.store.lmdb_env import Txn, read_marks
from hub.store.log import Entry, decode_entry, encode_revision
from hub.store.past import Undo
from hub.store.rows import count, rows, take, walk
from hub.store.value import Codecs, header_of, revision_of, stored


def get(shared: Shared, key: Key) -> Stored | None:
    """Return what lies at a key now."""
    with shared.env.read() as txn:
        return _get(shared, txn, key)


def get_at(shared: Shared, key: Key, revision: Revision) -> Stored | None:
    """Return what lay at a key at a revision, see `Store.get_at`."""
    shown = shared.sequence.shown
    if revision > shown:
        raise FutureRevision(asked=revision, current=shown)
    with shared.env.read() as txn:
        present = _get(shared, txn, key)
        if present is not None and present.revision <= revision:
            return present
        _check_reach(shared, txn, revision)
        undo, in_file = Undo(shared, txn, key, revision), stored_key(key)
        return undo.at(in_file) if in_file in undo.keys else present


def _get(shared: Shared, txn: Txn, key: Key) -> Stored | None:
    env, in_file = shared.env, stored_key(key)
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
    revision, env = shared.sequence.shown, shared.env
    remaining: int | None = None
    with env.read() as txn:
        entries, has_more = take(_present(shared, txn, prefix, after=after), limit, match)
        if match is None and is_counted:
            remaining = 0
            if has_more:
                last = entries[-1].key if entries else after
                remaining = sum(
                    count(txn, db, prefix, after=last) for db in (env.objects, env.volatile)
                )
    return Page(entries, revision, has_more, remaining)


def scan_at(
    shared: Shared,
    prefix: bytes,
    revision: Revision,
    *,
    after: Key | None,
    limit: int | None,
    match: Match | None,
    is_counted: bool,
) -> Page:
    """Return a slice of the entries that were under a prefix, see `Store.scan_at`."""
    env, shown = shared.env, shared.sequence.shown
    if revision > shown:
        raise FutureRevision(asked=revision, current=shown)
    remaining: int | None = None
    with env.read() as txn:
        _check_reach(shared, txn, revision)
        undo = Undo(shared, txn, prefix, revision)
        present = _present(shared, txn, prefix, after=after, skip=undo.keys)
        past: Iterator[Stored] = present
        if undo.keys:
            gone = undo.entries(after)
            past = heapq.merge(present, gone, key=lambda entry: stored_key(entry.key))
        entries, has_more = take(past, limit, match)
        if match is None and is_counted:
            remaining = 0
            if has_more:
                last = entries[-1].key if entries else after
                remaining = undo.count(last) + sum(
                    count(txn, db, prefix, after=last, skip=undo.keys)
                    for db in (env.objects, env.volatile)
                )
    return Page(entries, revision, has_more, remaining)


def changes(shared: Shared, after: Revision, prefix: bytes, *, limit: int | None) -> list[Change]:
    """Return what has changed under a prefix since a revision, see `Store.changes`."""
    env, shown = shared.env, shared.sequence.shown
    if after > shared.sequence.last:
        raise FutureRevision(asked=after, current=shown)
    window = range(after + 1, shown + 1)
    with env.read() as txn:
        _check_reach(shared, txn, after)
        found = list(islice(_logged(shared, txn, prefix, window), limit))
        present = [*_volatile(shared, txn, prefix, window), *_renewed(shared, txn, prefix, window)]
    if present:
        found = sorted([*found, *present], key=attrgetter("revision"))[:limit]
    return found


def _check_reach(shared: Shared, txn: Txn, revision: Revision) -> None:
    """Raise Compacted when the log does not reach back to a revision."""
    compacted = read_marks(txn, shared.env).compacted
    if revision < compacted:
        raise Compacted(asked=revision, oldest=compacted)


def _present(
    shared: Shared,
    txn: Txn,
    prefix: bytes,
    *,
    after: Key | None,
    skip: Container[bytes] = (),
) -> Iterator[Stored]:
    """Yield what is there now, renewals included, but for the stored keys in `skip`."""
    renewed = shared.overlay.entries
    for in_file, raw in walk(txn, shared.env, prefix, after=after):
        if in_file in skip:
            continue
        entry = stored(in_file, raw)
        if not entry.key.startswith(prefix):
            continue
        if renewed:
            newer = renewed.get(entry.key)
            if newer is not None and newer.revision > entry.revision:
                entry = newer
        yield entry


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
    for in_file, raw in rows(txn, shared.env.volatile, prefix, after=None):
        if revision_of(raw) not in window:
            continue
        entry = stored(in_file, raw)
        if entry.key.startswith(prefix):
            value = shared.codecs.decode(entry.key, raw)
            yield Change(
                Op.CREATE,
                entry.key,
                entry.revision,
                value,
                entry.index,
                None,
                None,
                is_logged=False,
            )


def _renewed(shared: Shared, txn: Txn, prefix: bytes, window: range) -> Iterator[Change]:
    for entry in shared.overlay.under(prefix):
        if entry.revision not in window:
            continue
        key = entry.key
        base = txn.get(stored_key(key), db=shared.env.objects)
        if base is not None and revision_of(base) < entry.revision:
            value = shared.codecs.decode(key, entry.raw)
            before = partial(shared.codecs.decode, key, base)
            index = header_of(base).index
            yield Change(
                Op.UPDATE,
                key,
                entry.revision,
                value,
                entry.index,
                index,
                before,
                is_logged=False,
            )
