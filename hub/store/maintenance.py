"""Looking after a store that no hub runs on: checking the file, reading it, making it small again.

Owns the offline operations. All hold the directory's lock and open the file read-only, so that
a check changes nothing, and a compaction puts a file in place that has been checked in full.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import lmdb

from hub.store import audit
from hub.store.api import Position, Revision
from hub.store.dictionary import Dictionaries
from hub.store.directory import DATA_FILE, DirectoryLock, check_pages, has_store, replacing
from hub.store.errors import Corrupt, InvariantError, MapFull, WriteFailed
from hub.store.export import FullExport, export_full
from hub.store.hubkey import DataKeys, HubKey, unwrap_data_keys
from hub.store.lmdb_env import (
    NAME_DATA_KEYS,
    NAME_DIR_ID,
    NAME_FORMAT,
    Environment,
    Txn,
    check_format,
    is_full,
    read_dictionaries,
    read_marks,
    read_name,
    read_position,
)
from hub.store.value import Codecs


@dataclass(frozen=True, slots=True)
class Report:
    """What a whole file holds, once it has been checked.

    The log has `log_entries` changes above revision `log_after`. `free_bytes` of the file are pages
    that nothing uses now; compaction gives them back.
    """

    format: str
    dir_id: str
    position: Position
    was_clean: bool
    """Whether the last hub on it closed it."""
    file_bytes: int
    free_bytes: int
    log_entries: int
    log_after: Revision
    volatile: int
    renewals: int
    data_keys: tuple[int, ...]
    """Their numbers; the last one seals."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """A file before and after."""

    before_bytes: int
    after_bytes: int
    position: Position


def verify_store(path: Path, *, hub_key: HubKey) -> Report:
    """Check the store of a directory page by page and value by value, and change nothing.

    Raises Corrupt (with the first contradiction), KeyMismatch, Locked, FileNotFoundError. Takes
    about 20 us an object.
    """
    with _locked(path):
        check_pages(path)
        return _check(path, path, hub_key)


def compact_store(path: Path, *, hub_key: HubKey) -> Compaction:
    """Rewrite the file without its free pages, and put it in place once it is checked.

    Needs room beside it for what it holds. Raises MapFull when there is none and WriteFailed when
    the volume fails (nothing has changed then), else as `verify_store`.
    """
    with _locked(path):
        check_pages(path)
        with replacing(path) as aside:
            _copy(path, aside)
            before, after = _check(path, path, hub_key), _check(aside, path, hub_key)
            if after.position != before.position:
                raise InvariantError(f"the copy is at {after.position}, not {before.position}")
        return Compaction(before.file_bytes, after.file_bytes, after.position)


@contextmanager
def read_store(path: Path, *, hub_key: HubKey) -> Iterator[FullExport]:
    """Give everything durable in the store of a directory, as it is; changes nothing.

    Raises Corrupt (also while the records are read), KeyMismatch, Locked, FileNotFoundError.
    """
    with _locked(path):
        check_pages(path)
        env = Environment(path, read_only=True)
        try:
            with env.read() as txn:
                check_format(txn, env)
                unwrap_data_keys(read_name(txn, env, NAME_DATA_KEYS), hub_key)
            with export_full(env) as export:
                yield export
        finally:
            env.close()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    if not has_store(path):
        raise FileNotFoundError(f"{path} has no store")
    lock = DirectoryLock(path)
    try:
        yield
    finally:
        lock.close()


def _copy(path: Path, aside: Path) -> None:
    env = Environment(path, read_only=True)
    try:
        env.env.copy(str(aside), compact=True)
    except lmdb.Error as error:
        if is_full(error, path):
            raise MapFull(
                f"nothing has changed: the new file does not fit beside the old one ({error}): "
                "free space on the volume, or move the directory to a larger one"
            ) from error
        raise WriteFailed(
            f"nothing has changed: the new file cannot be written ({error}): look after the volume "
            f"of {path}"
        ) from error
    finally:
        env.close()
    (aside / DATA_FILE).chmod(0o600)


def _check(path: Path, named: Path, hub_key: HubKey) -> Report:
    """Check the file of a directory; errors name the directory that it is for."""
    env = Environment(path, read_only=True)
    try:
        with env.read() as txn:
            check_format(txn, env)
            keys = unwrap_data_keys(read_name(txn, env, NAME_DATA_KEYS), hub_key)
            dictionaries = Dictionaries(read_dictionaries(txn, env))
        audit.verify(env, Codecs(dictionaries, keys, token=_no_token))
        return _report(env, keys)
    except Corrupt as error:
        raise Corrupt(f"{named}: {error}") from error
    finally:
        env.close()


def _report(env: Environment, keys: DataKeys) -> Report:
    file_bytes = (env.path / DATA_FILE).stat().st_size
    with env.read() as txn:
        marks = read_marks(txn, env)
        return Report(
            format=read_name(txn, env, NAME_FORMAT).decode(),
            dir_id=read_name(txn, env, NAME_DIR_ID).decode(),
            position=read_position(txn, env),
            was_clean=marks.clean is not None,
            file_bytes=file_bytes,
            free_bytes=file_bytes - _taken_bytes(txn, env),
            log_entries=txn.stat(env.log)["entries"],
            log_after=marks.log_after,
            volatile=txn.stat(env.volatile)["entries"],
            renewals=txn.stat(env.renewals)["entries"],
            data_keys=tuple(sorted(keys.keys)),
        )


def _taken_bytes(txn: Txn, env: Environment) -> int:
    """Return what the pages of all databases take, the two meta pages and the root included."""
    databases = (env.objects, env.log, env.meta, env.dicts, env.volatile, env.renewals)
    sizes = [env.env.stat(), *(txn.stat(db) for db in databases)]
    pages = sum(
        each["branch_pages"] + each["leaf_pages"] + each["overflow_pages"] for each in sizes
    )
    return (2 + pages) * sizes[0]["psize"]


def _no_token(_: int) -> bytes:
    raise InvariantError("nothing is sealed while a file is only read")
