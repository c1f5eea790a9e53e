"""The audit: whether a store's file agrees with itself.

Owns the whole-file check behind `Store.verify`: the state hash and the count against the objects,
every value against its checksum or seal, and the log against both. The log is complete when each
entry's value before is the one the entry before it for that key left behind, and the last one left
what the objects hold.
"""

import lmdb

from hub.store import state_hash
from hub.store.api import Key, Op, Position, Revision
from hub.store.errors import Corrupt
from hub.store.key import stored_key
from hub.store.lmdb_env import (
    Database,
    Environment,
    Txn,
    read_marks,
    read_position,
)
from hub.store.log import entries
from hub.store.value import Codecs, revision_of, stored


def verify(env: Environment, codecs: Codecs) -> Position:
    """Check everything in one read transaction and return the position; raises Corrupt.

    Takes about 10 us an object; not for a busy event loop.
    """
    try:
        return _verify(env, codecs)
    except lmdb.Error as error:
        raise Corrupt(f"{env.path}: the engine finds the file damaged: {error}") from error


def _verify(env: Environment, codecs: Codecs) -> Position:
    with env.read() as txn:
        position, marks = read_position(txn, env), read_marks(txn, env)
        if marks.log_after > position.revision or marks.compacted < marks.log_after:
            raise Corrupt(
                f"the log begins after {marks.log_after}, the store is at {position.revision}"
            )
        last = _check_log(txn, env, codecs, after=marks.log_after)
        _check_objects(txn, env, codecs, position=position, log_after=marks.log_after, last=last)
        _check_values(txn, env.volatile, codecs)
        _check_values(txn, env.renewals, codecs)
        newest = max(last.values(), default=marks.log_after)
        if newest != position.revision:
            raise Corrupt(f"the log ends at {newest}, the store is at {position.revision}")
    return position


def _check_objects(
    txn: Txn,
    env: Environment,
    codecs: Codecs,
    *,
    position: Position,
    log_after: Revision,
    last: dict[Key, Revision],
) -> None:
    total, count = state_hash.EMPTY, 0
    with txn.cursor(env.objects) as cursor:
        for in_file, raw in cursor:
            entry = stored(in_file, raw)
            codecs.decode(entry.key, raw)
            if stored_key(entry.key) != in_file:
                raise Corrupt(f"the value at {in_file!r} belongs to {entry.key!r}")
            if entry.revision > log_after and last.get(entry.key) != entry.revision:
                raise Corrupt(f"{entry.key!r} is at {entry.revision}, the log does not say so")
            total = state_hash.add(total, state_hash.term(entry.key, entry.revision, raw))
            count += 1
    found = Position(position.revision, state_hash.to_bytes(total), count)
    if found != position:
        raise Corrupt(
            f"the objects sum up to {count} and {found.state_hash.hex()}, the record says "
            f"{position.count} and {position.state_hash.hex()}"
        )


def _check_log(
    txn: Txn, env: Environment, codecs: Codecs, *, after: Revision
) -> dict[Key, Revision]:
    """Check the chain of each key; return the last revision of each."""
    values: dict[Key, Revision | None] = {}
    last: dict[Key, Revision] = {}
    for entry in entries(txn, env, after=0):
        if entry.revision <= after:
            raise Corrupt(f"the log begins after {after} and has an entry at {entry.revision}")
        before = revision_of(entry.previous) if entry.previous else None
        is_known = entry.key in values
        if is_known and values[entry.key] != before:
            raise Corrupt(
                f"the log lacks a write to {entry.key!r} before {entry.revision}: it replaced "
                f"{before}, the entry before left {values[entry.key]}"
            )
        if not is_known and before is not None and before > after:
            raise Corrupt(f"the log lacks the write of {entry.key!r} at {before}")
        if (entry.op is Op.CREATE) is not (before is None) or revision_of(
            entry.new
        ) != entry.revision:
            raise Corrupt(f"the log entry at {entry.revision} contradicts itself")
        codecs.decode(entry.key, entry.new)
        values[entry.key] = None if entry.op is Op.DELETE else entry.revision
        last[entry.key] = entry.revision
    _check_ends(txn, env, values)
    return last


def _check_ends(txn: Txn, env: Environment, values: dict[Key, Revision | None]) -> None:
    for key, revision in values.items():
        raw = txn.get(stored_key(key), db=env.objects)
        found = None if raw is None else revision_of(raw)
        if found != revision:
            raise Corrupt(f"the log leaves {key!r} at {revision}, the objects have {found}")


def _check_values(txn: Txn, db: Database, codecs: Codecs) -> None:
    with txn.cursor(db) as cursor:
        for in_file, raw in cursor:
            codecs.decode(stored(in_file, raw).key, raw)
