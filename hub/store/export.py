"""Exports: the whole state, or what has changed since a revision, as stored.

Owns what the snapshot layer reads. An export is one read transaction: position (with the state
hash), dictionaries, keys and contents are of the same instant. It may be used from any thread. The
transaction is held until the records are read to the end or the export is closed; while it is held
the file cannot reuse pages (measured: 11-25 KB a write), so spool the records to a local file,
never to a network.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import lmdb

from hub.store.api import Key, Op, Position, Record, Revision
from hub.store.errors import Closed, Compacted, FutureRevision
from hub.store.lmdb_env import (
    NAME_DATA_KEYS,
    Environment,
    Txn,
    read_dictionaries,
    read_keyed,
    read_marks,
    read_name,
    read_position,
)
from hub.store.log import decode_entry, encode_revision, entries
from hub.store.value import full_key, revision_of


@dataclass(frozen=True, slots=True)
class DeltaExport:
    """What changed in (`after`, `position.revision`]: the last write to each key, by revision.

    A record without `raw` is a deletion, perhaps of a key the receiver never had.
    """

    after: Revision
    position: Position
    records: list[Record]


@dataclass(frozen=True, slots=True)
class FullExport:
    """Every durable object in order of its stored key; a context manager, or close it.

    `dicts` and `wrapped_data_key` are as stored: what `build_store` needs beside the records.
    """

    position: Position
    dicts: Mapping[int, bytes]
    wrapped_data_key: bytes
    records: Iterator[Record]
    _txn: Txn
    _env: Environment

    def delta(self, after: Revision) -> DeltaExport:
        """Return what changed since `after` up to this very state; raises as `export_delta`."""
        return _delta(self._txn, self._env, after)

    def close(self) -> None:
        """End the transaction; harmless when it has ended."""
        self._txn.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def export_full(env: Environment) -> FullExport:
    """Begin an export of everything."""
    txn = env.read()
    return FullExport(
        read_position(txn, env),
        read_dictionaries(txn, env),
        read_name(txn, env, NAME_DATA_KEYS),
        _records(txn, env),
        txn,
        env,
    )


def export_delta(env: Environment, after: Revision) -> DeltaExport:
    """Return what changed since `after`; raises Compacted or FutureRevision.

    Compacted too when a data key has been added since: a delta brings no keys along.
    """
    with env.read() as txn:
        return _delta(txn, env, after)


def _delta(txn: Txn, env: Environment, after: Revision) -> DeltaExport:
    position, log_after = read_position(txn, env), read_marks(txn, env).log_after
    oldest = max(log_after, read_keyed(txn, env))
    if after < oldest:
        raise Compacted(asked=after, oldest=oldest)
    if after > position.revision:
        raise FutureRevision(asked=after, current=position.revision)
    last: dict[Key, Revision] = {}
    for entry in entries(txn, env, after=after):
        last[entry.key] = entry.revision
    return DeltaExport(after, position, _changed(txn, env, sorted(last.values())))


def _changed(txn: Txn, env: Environment, revisions: list[Revision]) -> list[Record]:
    records = []
    for revision in revisions:
        at = encode_revision(revision)
        entry = decode_entry(at, txn.get(at, b"", db=env.log))
        raw = None if entry.op is Op.DELETE else entry.new
        records.append(Record(entry.key, revision, raw))
    return records


def _records(txn: Txn, env: Environment) -> Iterator[Record]:
    try:
        with txn.cursor(env.objects) as cursor:
            for in_file, raw in cursor:
                yield Record(full_key(in_file, raw), revision_of(raw), raw)
    except lmdb.Error as error:
        raise Closed(f"the store was closed under an export: {error}") from error
    finally:
        txn.abort()
