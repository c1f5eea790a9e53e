"""Opening a store's file: create it when missing, check it, load what the threads share.

Owns the order in which a directory becomes usable: lock, file checks, format, hub key, audit of an
unmarked file, then one transaction that reserves revisions, so that none handed out before a crash
is handed out again. Nothing is written to the file before it has passed all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hub.store import audit, overlay
from hub.store.api import Position, Revision
from hub.store.build import create_store
from hub.store.dictionary import Dictionaries
from hub.store.directory import (
    DirectoryLock,
    check_file,
    discard_build,
    discard_lock_file,
    has_store,
    mark_file,
    prepare,
)
from hub.store.errors import KeyMismatch
from hub.store.hubkey import HubKey, unwrap_data_keys
from hub.store.ledger import CEILING_BLOCK, Shared
from hub.store.lmdb_env import (
    FORMAT,
    NAME_CEILING,
    NAME_CLEAN,
    NAME_DATA_KEYS,
    NAME_DIR_ID,
    NAME_FORMAT,
    Environment,
    Txn,
    check_format,
    read_dictionaries,
    read_marks,
    read_name,
    read_position,
    write_mark,
    write_marks,
)
from hub.store.log import decode_revision, key_of
from hub.store.logindex import LogIndex
from hub.store.sequence import Sequence
from hub.store.value import Codecs


@dataclass(frozen=True, slots=True)
class Opened:
    """An open file and where it stands."""

    shared: Shared
    lock: DirectoryLock
    position: Position
    ceiling: Revision
    dir_id: str
    was_clean: bool
    """Whether the last close was clean (or the store is new)."""


def open_file(
    path: Path,
    *,
    hub_key: HubKey,
    token: Callable[[int], bytes],
    dir_id: str,
    can_create: bool,
    map_bytes: int,
) -> Opened:
    """Open the store of a directory, or create it; a refusal leaves the store's file as it is."""
    if hub_key.path is not None and hub_key.path.resolve().is_relative_to(path.resolve()):
        raise KeyMismatch(
            f"hub key file {hub_key.path} lies inside the data directory {path}: move it out, for "
            f"example to {path}.key"
        )
    if not can_create and not has_store(path):
        raise FileNotFoundError(f"{path} has no store: restore one, or allow to create it")
    prepare(path)
    lock = DirectoryLock(path)
    try:
        if not has_store(path):
            create_store(path, hub_key=hub_key, token=token, dir_id=dir_id, map_bytes=map_bytes)
        is_marked = check_file(path)
        if not is_marked:
            _audit(path, hub_key=hub_key, token=token, map_bytes=map_bytes)
        discard_build(path)
        discard_lock_file(path)
        env = Environment(path, map_bytes=map_bytes)
        try:
            opened = _load(env, lock, hub_key=hub_key, token=token)
            mark_file(path)
        except BaseException:
            env.close()
            raise
    except BaseException:
        lock.close()
        raise
    return opened


def record_clean(shared: Shared) -> None:
    """Record a clean close: the next start goes on right above the last revision."""
    env = shared.env
    with env.write() as txn:
        write_mark(txn, env, NAME_CLEAN, shared.sequence.last)


def record_floor(shared: Shared, floor: Revision, *, is_compacted: bool) -> Revision:
    """Reserve revisions above a floor; return the new ceiling."""
    env = shared.env
    with env.write() as txn:
        marks = read_marks(txn, env)
        ceiling = Revision(max(marks.ceiling, floor + CEILING_BLOCK))
        compacted = Revision(max(marks.compacted, floor)) if is_compacted else marks.compacted
        write_marks(txn, env, replace(marks, ceiling=ceiling, compacted=compacted))
    return ceiling


def _audit(path: Path, *, hub_key: HubKey, token: Callable[[int], bytes], map_bytes: int) -> None:
    """Audit a file; read-only, as the engine would add its databases to another program's."""
    env = Environment(path, map_bytes=map_bytes, read_only=True)
    try:
        with env.read() as txn:
            codecs = _codecs(txn, env, hub_key=hub_key, token=token)
        audit.verify(env, codecs)
    finally:
        env.close()


def _codecs(
    txn: Txn, env: Environment, *, hub_key: HubKey, token: Callable[[int], bytes]
) -> Codecs:
    check_format(txn, env)
    keys = unwrap_data_keys(read_name(txn, env, NAME_DATA_KEYS), hub_key)
    return Codecs(Dictionaries(read_dictionaries(txn, env)), keys, token=token)


def _load(
    env: Environment, lock: DirectoryLock, *, hub_key: HubKey, token: Callable[[int], bytes]
) -> Opened:
    with env.read() as txn:
        codecs = _codecs(txn, env, hub_key=hub_key, token=token)
        position, marks = read_position(txn, env), read_marks(txn, env)
        dir_id = read_name(txn, env, NAME_DIR_ID).decode()
    start = marks.ceiling if marks.clean is None else marks.clean
    ceiling = Revision(max(start, marks.ceiling) + CEILING_BLOCK)
    with env.write() as txn:
        txn.put(NAME_FORMAT, FORMAT, db=env.meta)
        entries = overlay.load(txn, env)
        txn.delete(NAME_CLEAN, db=env.meta)
        write_mark(txn, env, NAME_CEILING, ceiling)
    shared = Shared(env, codecs, Sequence(start), entries, _index_log(env))
    return Opened(shared, lock, position, ceiling, dir_id, marks.clean is not None)


def _index_log(env: Environment) -> LogIndex:
    index = LogIndex()
    with env.read() as txn, txn.cursor(env.log) as cursor:
        for revision, raw in cursor:
            index.add(decode_revision(revision), key_of(raw))
    return index
