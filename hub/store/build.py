"""Building a store's file at one go: a new, empty one, or one from the records of a snapshot.

The file is loaded aside in ``DIR/building``, appended in key order without syncs, then synced and
renamed into place: a directory has a complete data file or none. Nothing is trusted: the state hash
and the count are computed again from the records and must be those of the position.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import lmdb

from hub.store import state_hash
from hub.store.api import Position, Record, Revision
from hub.store.dictionary import BUILTIN, builtin_dictionary, encode_dictionary
from hub.store.directory import DirectoryLock, has_store, prepare, replacing
from hub.store.errors import Corrupt
from hub.store.hubkey import HubKey, new_data_keys, unwrap_data_keys, wrap_data_keys
from hub.store.key import stored_key
from hub.store.lmdb_env import (
    FORMAT,
    MAP_BYTES,
    NAME_DATA_KEYS,
    NAME_DIR_ID,
    NAME_FORMAT,
    Environment,
    Marks,
    Txn,
    empty_position,
    extra_name,
    write_dictionaries,
    write_marks,
    write_position,
)
from hub.store.value import header_of

_CHUNK, _CHUNK_BYTES = 5000, 8 << 20
"""Records in one transaction while loading, and their bytes: bound the memory of dirty pages."""


def build_store(
    path: Path,
    *,
    records: Iterable[Record],
    dicts: Mapping[int, bytes],
    wrapped_data_key: bytes,
    position: Position,
    hub_key: HubKey,
    dir_id: str,
    floor: Revision | None = None,
    meta: Mapping[str, bytes] | None = None,
    map_bytes: int = MAP_BYTES,
) -> Position:
    """Load a new store into a directory that has none.

    `records`: one a key, none deleted; fastest in order of `stored_key`. `floor`: the store goes on
    above it and watches resume only above it (default: the position's revision). `dir_id` names the
    new directory; `meta` are small values as `Store.meta_get` returns them. Raises KeyMismatch when
    the hub key does not open the data keys, Corrupt when the records do not make up the position
    (the directory is left without a data file), Locked when a hub runs there, FileExistsError when
    it has a store.
    """
    unwrap_data_keys(wrapped_data_key, hub_key)
    prepare(path)
    lock = DirectoryLock(path)
    try:
        if has_store(path):
            raise FileExistsError(
                f"{path} has a store already: move it away, or take another directory"
            )
        with _building(path, map_bytes=map_bytes) as env:
            with env.write() as txn:
                _write_meta(txn, env, position=position, floor=floor, dir_id=dir_id)
                txn.put(NAME_DATA_KEYS, wrapped_data_key, db=env.meta)
                write_dictionaries(txn, env, dicts)
                for name, value in (meta or {}).items():
                    txn.put(extra_name(name), value, db=env.meta)
            found = _load(env, records, position.revision)
            if found != position:
                raise Corrupt(
                    f"the records make up {found.count} objects, state {found.state_hash.hex()}, "
                    f"expected are {position.count} and {position.state_hash.hex()}: a segment is "
                    "missing or altered"
                )
    finally:
        lock.close()
    return position


def create_store(
    path: Path,
    *,
    hub_key: HubKey,
    token: Callable[[int], bytes],
    dir_id: str,
    map_bytes: int = MAP_BYTES,
) -> None:
    """Make an empty store with a fresh data key; the caller holds the directory's lock."""
    wrapped = wrap_data_keys(new_data_keys(token), hub_key, token=token)
    with _building(path, map_bytes=map_bytes) as env, env.write() as txn:
        _write_meta(txn, env, position=empty_position(), floor=None, dir_id=dir_id)
        txn.put(NAME_DATA_KEYS, wrapped, db=env.meta)
        write_dictionaries(txn, env, {BUILTIN: encode_dictionary(builtin_dictionary())})


@contextmanager
def _building(path: Path, *, map_bytes: int) -> Iterator[Environment]:
    """Yield an environment that becomes the directory's data file when the block succeeds."""
    with replacing(path) as aside:
        env = Environment(aside, map_bytes=map_bytes, durable=False)
        try:
            yield env
            env.sync()
        except lmdb.Error as error:
            raise env.refused(error) from error
        finally:
            env.close()


def _write_meta(
    txn: Txn,
    env: Environment,
    *,
    position: Position,
    floor: Revision | None,
    dir_id: str,
) -> None:
    start = Revision(max(position.revision, floor or 0))
    txn.put(NAME_FORMAT, FORMAT, db=env.meta)
    txn.put(NAME_DIR_ID, dir_id.encode(), db=env.meta)
    write_position(txn, env, position)
    write_marks(
        txn,
        env,
        Marks(ceiling=start, clean=start, log_after=position.revision, compacted=start),
    )


def _load(env: Environment, records: Iterable[Record], revision: Revision) -> Position:
    total, count, last = state_hash.EMPTY, 0, b""
    for chunk in _chunks(records):
        with env.write() as txn:
            for record in chunk:
                last = max(last, _put(txn, env, record, last=last, revision=revision))
                raw = record.raw or b""
                total = state_hash.add(total, state_hash.term(record.key, record.revision, raw))
        count += len(chunk)
    return Position(revision, state_hash.to_bytes(total), count)


def _chunks(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield records in bunches that are small in number and in bytes."""
    chunk: list[Record] = []
    size = 0
    for record in records:
        chunk.append(record)
        size += len(record.raw or b"")
        if len(chunk) >= _CHUNK or size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _put(
    txn: Txn,
    env: Environment,
    record: Record,
    *,
    last: bytes,
    revision: Revision,
) -> bytes:
    if record.raw is None:
        raise Corrupt(f"{record.key!r} is deleted at {record.revision}: a store holds what is left")
    header = header_of(record.raw)
    if header.revision != record.revision or record.revision > revision:
        raise Corrupt(f"{record.key!r} is said to be at {record.revision}, its value differs")
    in_file = stored_key(record.key)
    if (header.long_key or record.key) != record.key:
        raise Corrupt(f"the value of {record.key!r} belongs to {header.long_key!r}")
    is_next = in_file > last
    if not txn.put(in_file, record.raw, overwrite=False, append=is_next, db=env.objects):
        raise Corrupt(f"{record.key!r} comes twice")
    return in_file
