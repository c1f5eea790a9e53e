"""The LMDB environment: the engine's settings, the named databases and the small records in `meta`.

Owns the only handles to the engine. Settings are the defaults that lose nothing: sync on, metasync
on, no writemap (measured: `docs/store-format.md`). The map is large and sparse, so that the volume
is the limit and not the map.

Databases: `objects` (stored key -> value), `log` (u64 revision -> entry, `hub.store.log`), `meta`
(names below), `dicts` (u16 number -> dictionary), `volatile` (stored key -> value, Events) and
`renewals` (stored key -> value, the flushed Lease overlay).
"""

import errno
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import lmdb

from hub.store import state_hash
from hub.store.api import Position, Revision
from hub.store.directory import DATA_FILE
from hub.store.errors import Broken, Closed, Corrupt, MapFull, StoreError, WriteFailed
from hub.store.key import STORED_KEY_BYTES

if TYPE_CHECKING:
    Txn: TypeAlias = lmdb.Transaction[bytes]
    Database: TypeAlias = lmdb._Database  # noqa: SLF001  the engine's stubs name its handles so
else:
    Txn, Database = lmdb.Transaction, object  # at run time the engine's types take no parameters

FORMAT = b"hublet-store-2"
OLDER_FORMATS = frozenset({b"hublet-store-1"})
"""What is read as well, and becomes `FORMAT` when it is opened for writing."""
MAP_BYTES = 16 << 30
EXTRA_PREFIX = b"x/"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SCARCE_BYTES = 64 << 20
"""With less than this free, a write cut short is taken for one that found no room."""

_POSITION = struct.Struct(">Q32sQ")
_U64 = struct.Struct(">Q")
_U16 = struct.Struct(">H")

NAME_FORMAT = b"format"
NAME_POSITION = b"position"
NAME_CEILING = b"ceiling"
NAME_CLEAN = b"clean"
NAME_LOG_AFTER = b"log-after"
NAME_COMPACTED = b"compacted"
NAME_DATA_KEYS = b"data-keys"
NAME_DIR_ID = b"dir-id"
NAME_KEYED = b"keyed"


class Environment:
    """One open LMDB environment with its databases."""

    __slots__ = ("dicts", "env", "log", "meta", "objects", "path", "renewals", "volatile")

    def __init__(
        self,
        path: Path,
        *,
        map_bytes: int = MAP_BYTES,
        durable: bool = True,
        read_only: bool = False,
    ) -> None:
        """Open or create the environment in a directory.

        `durable=False` is for loading a new file only, with `sync` at its end; `read_only` leaves
        the directory as it is, for who holds its lock.
        """
        self.path = path
        try:
            self.env = lmdb.open(
                str(path),
                map_size=map_bytes,
                mode=0o600,
                max_dbs=8,
                sync=durable,
                metasync=durable,
                writemap=False,
                readahead=True,
                readonly=read_only,
                lock=not read_only,
            )
            create = not read_only
            self.objects = self.env.open_db(b"objects", create=create)
            self.log = self.env.open_db(b"log", create=create)
            self.meta = self.env.open_db(b"meta", create=create)
            self.dicts = self.env.open_db(b"dicts", create=create)
            self.volatile = self.env.open_db(b"volatile", create=create)
            self.renewals = self.env.open_db(b"renewals", create=create)
        except (
            lmdb.InvalidError,
            lmdb.VersionMismatchError,
            lmdb.CorruptedError,
            lmdb.NotFoundError,
        ) as error:
            raise Corrupt(f"{path / DATA_FILE} is not a store of hublet: {error}") from error
        except lmdb.Error as error:
            raise StoreError(f"{path / DATA_FILE} cannot be opened: {error}") from error

    def read(self) -> Txn:
        """Begin a read transaction; a context manager. Hold it for milliseconds only."""
        try:
            return self.env.begin()
        except lmdb.PanicError as error:
            raise Broken(_broken(self.path, error)) from error
        except lmdb.Error as error:
            raise Closed(f"the store is closed, or cannot be read: {error}") from error

    def begin(self) -> Txn:
        """Begin the write transaction; blocks while another thread has it."""
        return self.env.begin(write=True)

    @contextmanager
    def write(self) -> Iterator[Txn]:
        """Run a block in a write transaction and commit it; raises what `refused` returns."""
        try:
            with self.begin() as txn:
                yield txn
        except lmdb.Error as error:
            raise self.refused(error) from error

    def refused(self, error: lmdb.Error) -> MapFull | Broken:
        """Return what the store's callers are told of an error of the engine while writing."""
        if isinstance(error, lmdb.PanicError) or self._has_panicked():
            return Broken(_broken(self.path, error))
        if is_full(error, self.path):
            return MapFull(
                f"nothing was written, the volume or the map is full ({error}): free space, the "
                "store goes on by itself"
            )
        return WriteFailed(
            f"nothing was written, the volume of {self.path} fails ({error}): look after it, the "
            "store goes on by itself once it takes writes"
        )

    def _has_panicked(self) -> bool:
        """Whether the engine refuses everything from now on: its last page could not be written."""
        try:
            self.env.begin().abort()
        except lmdb.PanicError:
            return True
        except lmdb.Error:
            return False  # no reader to be had: that is no panic
        return False

    def sync(self) -> None:
        """Force everything to disk (after loading with `durable=False`)."""
        self.env.sync(True)

    def close(self) -> None:
        """Close the engine; no transaction may be open."""
        self.env.close()


@dataclass(frozen=True, slots=True)
class Marks:
    """The revisions a store remembers beside its position.

    `ceiling`: no revision above it has been handed out; `clean`: the last revision handed out, when
    the last close was clean, else None; `log_after`: the log holds every durable write above it;
    `compacted`: watches may not resume at or below it (never under `log_after`).
    """

    ceiling: Revision
    clean: Revision | None
    log_after: Revision
    compacted: Revision


def read_position(txn: Txn, env: Environment) -> Position:
    """Return the committed position, of the same instant as everything else in `txn`."""
    raw = _require(txn, env, NAME_POSITION)
    revision, state, count = _POSITION.unpack(raw)
    return Position(Revision(revision), state, count)


def write_position(txn: Txn, env: Environment, position: Position) -> None:
    """Record the position."""
    raw = _POSITION.pack(position.revision, position.state_hash, position.count)
    txn.put(NAME_POSITION, raw, db=env.meta)


def read_marks(txn: Txn, env: Environment) -> Marks:
    """Return the recorded marks."""
    clean = txn.get(NAME_CLEAN, db=env.meta)
    return Marks(
        ceiling=_revision(_require(txn, env, NAME_CEILING)),
        clean=None if clean is None else _revision(clean),
        log_after=_revision(_require(txn, env, NAME_LOG_AFTER)),
        compacted=_revision(_require(txn, env, NAME_COMPACTED)),
    )


def write_marks(txn: Txn, env: Environment, marks: Marks) -> None:
    """Record the marks."""
    write_mark(txn, env, NAME_CEILING, marks.ceiling)
    write_mark(txn, env, NAME_LOG_AFTER, marks.log_after)
    write_mark(txn, env, NAME_COMPACTED, marks.compacted)
    if marks.clean is None:
        txn.delete(NAME_CLEAN, db=env.meta)
    else:
        write_mark(txn, env, NAME_CLEAN, marks.clean)


def write_mark(txn: Txn, env: Environment, name: bytes, revision: Revision) -> None:
    """Record one revision under one of the names above."""
    txn.put(name, _U64.pack(revision), db=env.meta)


def read_dictionaries(txn: Txn, env: Environment) -> dict[int, bytes]:
    """Return the `dicts` database as number -> stored form."""
    with txn.cursor(env.dicts) as cursor:
        return {int(_U16.unpack(number)[0]): raw for number, raw in cursor}


def write_dictionaries(txn: Txn, env: Environment, dicts: Mapping[int, bytes]) -> None:
    """Record dictionaries."""
    for number, raw in dicts.items():
        txn.put(_U16.pack(number), raw, db=env.dicts)


def read_name(txn: Txn, env: Environment, name: bytes) -> bytes:
    """Return a record that every store has."""
    return _require(txn, env, name)


def extra_name(name: str) -> bytes:
    """Return where a caller's own small value `name` lies in `meta`; ValueError when too long."""
    encoded = EXTRA_PREFIX + name.encode()
    if len(encoded) > STORED_KEY_BYTES:
        raise ValueError(f"a name of {len(encoded)} bytes is too long, shorten {name[:40]!r}")
    return encoded


def read_keyed(txn: Txn, env: Environment) -> Revision:
    """Return where a delta may begin at the earliest: the ring has changed below it."""
    raw = txn.get(NAME_KEYED, db=env.meta)
    return Revision(0) if raw is None else _revision(raw)


def check_format(txn: Txn, env: Environment) -> None:
    """Raise Corrupt when the file is an LMDB file but not a store that this version reads."""
    found = txn.get(NAME_FORMAT, db=env.meta)
    if found != FORMAT and found not in OLDER_FORMATS:
        raise Corrupt(
            f"{env.path / DATA_FILE} has format {found!r}, this version reads {FORMAT!r}: "
            "use the version that wrote it, or restore with hub-restore"
        )


def is_full(error: lmdb.Error, path: Path) -> bool:
    """Whether an error of a write means that there is no room.

    LMDB takes a write that the volume cut short, as a full one does, for EIO. Never raises: a
    volume that fails may not even say how much room it has.
    """
    if isinstance(error, lmdb.MapFullError | lmdb.DiskError) or error.code in _FULL:
        return True
    if error.code != errno.EIO:
        return False
    try:
        volume = os.statvfs(path)
    except OSError:
        return False
    return volume.f_bavail * volume.f_frsize < _SCARCE_BYTES


def empty_position() -> Position:
    """Return where a new store stands."""
    return Position(Revision(0), state_hash.to_bytes(state_hash.EMPTY), 0)


def _require(txn: Txn, env: Environment, name: bytes) -> bytes:
    raw = txn.get(name, db=env.meta)
    if raw is None:
        raise Corrupt(f"{env.path / DATA_FILE} lacks its record {name!r}: restore with hub-restore")
    return raw


def _revision(raw: bytes) -> Revision:
    return Revision(int(_U64.unpack(raw)[0]))


def _broken(path: Path, error: lmdb.Error) -> str:
    return (
        f"{path / DATA_FILE} did not take the end of a commit ({error}): look after its volume, "
        "then start the hub again; the next start finds out whether the last writes are in the file"
    )
