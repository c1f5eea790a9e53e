"""The store's directory: who may use it, and whether what lies in it may be opened.

Owns the lock (flock on the directory itself, so that a second process is refused and nothing stale
can remain), the checks a data file passes before the engine may read it, and the mark that tells a
copy from the original.

- A file that is no LMDB 0.9 file is refused: it is not ours.
- A file cut short, or one whose *mark* does not fit, is walked page by page (`lmdb.verify`, pure
  Python) before the engine maps it; a torn copy of a live file is refused there or, when only its
  contents are wrong, by the audit, which the caller runs on every unmarked file.
- The mark (``data.mark``: inode of the file and of the directory) is written once a file has
  passed. A crash leaves it in place, since LMDB's own commits cannot tear; a file copied by cp,
  rsync or a restore tool has another inode; a volume snapshot, which is atomic, keeps it.
"""

import fcntl
import os
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lmdb.verify

from hub.store.errors import Corrupt, Locked
from hub.store.hubkey import sync_directory, sync_file

DATA_FILE = "data.mdb"
LOCK_FILE = "lock.mdb"
MARK_FILE = "data.mark"
BUILD_DIRECTORY = "building"
MARK_PREFIX = "hublet-mark-"

_MARK_DRAFT = "data.tmp"
_MAGIC = 0xBEEFC0DE
_FORMAT = 1
_META_BYTES = 152
_MAGIC_AT = 16
_PAGE_SIZE_AT = 40
_LAST_PAGE_AT = 136
_RESTORE = "restore the hub with hub-restore, or start on another data directory"


class DirectoryLock:
    """An exclusive lock on a directory, held until closed or until the process ends."""

    __slots__ = ("_handle",)

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._handle)
            raise Locked(
                f"{path} is in use by another hub process: stop that one, or use another directory"
            ) from error

    def close(self) -> None:
        """Give the directory free; closing twice is harmless."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def has_store(path: Path) -> bool:
    """Whether a data file lies in the directory."""
    return (path / DATA_FILE).exists()


def is_unfinished(path: Path) -> bool:
    """Whether a directory holds nothing but what a crash left of making a store."""
    rests = {LOCK_FILE, MARK_FILE, _MARK_DRAFT, BUILD_DIRECTORY}
    return {each.name for each in path.iterdir()} <= rests


def prepare(path: Path) -> None:
    """Make the directory, mode 0700, when it is missing."""
    if not path.is_dir():
        path.mkdir(mode=0o700, parents=True)
        sync_directory(path.parent)


def check_file(path: Path) -> bool:
    """Check the data file before the engine opens it; return whether it still carries our mark.

    Raises Corrupt for a foreign or torn file.
    """
    file = path / DATA_FILE
    last_page, page_bytes = _read_meta(file)
    is_short = file.stat().st_size < (last_page + 1) * page_bytes
    has_passed = is_marked(path)
    if is_short or not has_passed:
        _walk(file)
    return has_passed


def is_marked(path: Path) -> bool:
    """Whether the data file of a directory carries our mark: it is the one that has passed."""
    return read_mark(path) == _mark(path / DATA_FILE, path)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield an empty directory; the data file made in it becomes the one of `path`, durably.

    Nothing of the present file is touched when the block fails.
    """
    aside = path / BUILD_DIRECTORY
    discard_build(path)
    aside.mkdir(mode=0o700)
    try:
        yield aside
        made = aside / DATA_FILE
        sync_file(made)
        made.rename(path / DATA_FILE)
    finally:
        discard_build(path)
    discard_lock_file(path)
    mark_file(path)
    sync_directory(path)


def mark_file(path: Path) -> None:
    """Record that the data file has passed its checks."""
    if not is_marked(path):
        write_mark(path, of=path / DATA_FILE)


def write_mark(path: Path, *, of: Path) -> None:
    """Write the mark of a directory for a file in it, or one about to be renamed into it."""
    mark = path / MARK_FILE
    temporary = path / _MARK_DRAFT
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(_mark(of, path))
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(mark)
    sync_directory(path)


def read_mark(path: Path) -> str:
    """Read the mark of a directory, "" when it has none."""
    try:
        return (path / MARK_FILE).read_text("ascii", errors="replace")
    except FileNotFoundError:
        return ""


def check_pages(path: Path) -> None:
    """Walk the data file page by page, marked or not. Raises Corrupt for a foreign or torn file."""
    file = path / DATA_FILE
    _read_meta(file)
    _walk(file)


def discard_lock_file(path: Path) -> None:
    """Remove the engine's reader table; ours to do while we hold the directory's lock."""
    (path / LOCK_FILE).unlink(missing_ok=True)


def discard_build(path: Path) -> None:
    """Remove what a crash left of `replacing`; ours to do while we hold the directory's lock."""
    shutil.rmtree(path / BUILD_DIRECTORY, ignore_errors=True)


def _read_meta(file: Path) -> tuple[int, int]:
    """Return (last page, bytes a page) of the newer meta page."""
    with file.open("rb") as handle:
        first = handle.read(_META_BYTES)
        if len(first) < _META_BYTES:
            raise Corrupt(f"{file} is cut short to {file.stat().st_size} bytes: {_RESTORE}")
        _check_magic(file, first)
        (page_bytes,) = struct.unpack_from("=I", first, _PAGE_SIZE_AT)
        handle.seek(page_bytes)
        second = handle.read(_META_BYTES)
    if len(second) < _META_BYTES:
        raise Corrupt(f"{file} is cut short to {file.stat().st_size} bytes: {_RESTORE}")
    _check_magic(file, second)
    metas = [struct.unpack_from("=QQ", each, _LAST_PAGE_AT) for each in (first, second)]
    last_page, _ = max(metas, key=lambda meta: int(meta[1]))
    return last_page, page_bytes


def _check_magic(file: Path, meta: bytes) -> None:
    magic, version = struct.unpack_from("=II", meta, _MAGIC_AT)
    if (magic, version) != (_MAGIC, _FORMAT):
        raise Corrupt(f"{file} is not a store of hublet (no LMDB 0.9 file): {_RESTORE}")


def _walk(file: Path) -> None:
    try:
        problems = lmdb.verify.verify(str(file))  # type: ignore[no-untyped-call]  # shipped untyped
    except lmdb.verify.VerifyError as error:
        raise Corrupt(f"{file} cannot be read: {error}: {_RESTORE}") from error
    if problems:
        raise Corrupt(
            f"{file} is torn, as a copy of a running hub's file is ({len(problems)} problems, "
            f"first: {problems[0]}): {_RESTORE}"
        )


def _mark(file: Path, directory: Path) -> str:
    return f"{MARK_PREFIX}1 {file.stat().st_ino} {directory.stat().st_ino}\n"
