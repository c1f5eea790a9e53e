"""A directory as an object store: ``file:///dir``.

Owns the mapping of object names to files and the same conditional semantics a bucket gives:
create-only is link(2) to a name, compare-and-swap is a rename under a flock that every process
using the directory takes. Every file is fsync'd before it gets its name, and every directory after.
The etag is the hash of the content.

Keeps its own files under names beginning with a dot, which no object has: ``.lock`` and ``.tmp/``.
A writer holds a flock on its temporary file, so whatever lies there unlocked is the rest of a crash
and is swept on open. Reading makes no directory: a mistyped URL is an empty prefix, not a new one.
"""

import contextlib
import datetime as dt
import errno
import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from snapshot.errors import (
    ObjectExists,
    ObjectMissing,
    PreconditionFailed,
    RemoteDenied,
    RemoteError,
    RemoteUnavailable,
)
from snapshot.remote.api import Blob, Entry, Source, check_name, new_file

_CHUNK = 1 << 20


class FileRemote:
    """`Remote` on a directory of a local file system (flock and link must work: not NFS)."""

    def __init__(self, root: Path) -> None:
        self._root = root
        if root.exists() and not root.is_dir():
            hint = "check that the object store is up: file:// needs a directory there"
            what = "it is a file, not a directory"
            raise RemoteUnavailable(what, op="open", object=self.url, hint=hint)
        self._seen: tuple[int, int] | None = None
        with self._errors("open", ""):
            self._sweep()

    @property
    def url(self) -> str:
        """Return the directory as a URL."""
        return self._root.as_uri()

    def get(self, name: str) -> Blob:
        """Read an object whole."""
        with self._errors("get", name):
            data = self._path(name).read_bytes()
        return Blob(data, _etag(data))

    def get_to_file(self, name: str, path: Path) -> int:
        """Copy an object into a new file."""
        with (
            self._errors("get", name),
            self._path(name).open("rb") as source,
            new_file(path) as target,
        ):
            shutil.copyfileobj(source, target, _CHUNK)
            return target.tell()

    def put_if_absent(self, name: str, source: Source) -> str:
        """Write under a temporary name, then link the object's own: exactly one link succeeds."""
        with self._errors("put", name), self._spooled(source) as (spooled, etag):
            path = self._path(name)
            _make_dirs(path.parent)
            os.link(spooled, path)
            _fsync_dir(path.parent)
            return etag

    def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
        """Compare and rename under the directory's lock."""
        with (
            self._errors("put", name),
            self._spooled(source) as (spooled, new_etag),
            self._lock(),
        ):
            path = self._path(name)
            if _etag(path.read_bytes()) != etag:
                raise PreconditionFailed("another object is there", op="put", object=name)
            spooled.replace(path)
            _fsync_dir(path.parent)
            return new_etag

    def head(self, name: str) -> Entry:
        """Stat an object."""
        with self._errors("head", name):
            return _entry(name, self._path(name).stat())

    def list(self, under: str = "") -> Iterator[Entry]:
        """Walk the directory, leaving out our own files."""
        with self._errors("list", under):
            names = sorted(name for name in self._names() if name.startswith(under))
        for name in names:
            with contextlib.suppress(ObjectMissing):  # deleted since the walk
                yield self.head(name)

    def delete(self, name: str) -> None:
        """Unlink under the lock, so that no compare-and-swap loses its object half-way."""
        with (
            self._errors("delete", name),
            self._lock(),
            contextlib.suppress(FileNotFoundError),
        ):
            path = self._path(name)
            path.unlink()
            _fsync_dir(path.parent)

    def close(self) -> None:
        """Nothing is held between calls."""

    @contextlib.contextmanager
    def _errors(self, op: str, name: str) -> Iterator[None]:
        """Translate errors; refuse a directory that has gone, or has become another one."""
        place = f"{self.url}/{name}" if name else self.url
        with _errors(op, place):
            self._check_root(op, place)
            yield
            self._seen = self._seen or _identity(self._root)

    def _check_root(self, op: str, place: str) -> None:
        """Tell a mount that is lost from objects that were deleted: nothing is made anew there."""
        seen, now = self._seen, _identity(self._root)
        if seen is not None and now != seen:
            raise RemoteUnavailable(
                "the directory is gone, or another one is there now",
                op=op,
                object=place,
                hint="mount the object store's file system again, or put the directory back",
            )
        self._seen = now or seen

    def _path(self, name: str) -> Path:
        return self._root / check_name(name)

    def _names(self) -> Iterator[str]:
        for folder, folders, files in os.walk(self._root):
            folders[:] = [each for each in folders if not each.startswith(".")]
            base = Path(folder).relative_to(self._root)
            yield from ((base / each).as_posix() for each in files if not each.startswith("."))

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        with (self._root / ".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def _spooled(self, source: Source) -> Iterator[tuple[Path, str]]:
        """Give the content as a synced temporary file on the same file system, and its etag."""
        spooled = self._root / ".tmp" / secrets.token_hex(12)
        _make_dirs(spooled.parent)
        try:
            with self._lock():
                file = spooled.open("xb")
                fcntl.flock(file, fcntl.LOCK_EX)  # before any sweeper can see it unlocked
            with file:
                digest = hashlib.blake2b(digest_size=16)
                for chunk in _chunks(source):
                    file.write(chunk)
                    digest.update(chunk)
                file.flush()
                os.fsync(file.fileno())
                yield spooled, digest.hexdigest()
        finally:
            spooled.unlink(missing_ok=True)

    def _sweep(self) -> None:
        rests = self._root / ".tmp"
        if not rests.is_dir() or not any(rests.iterdir()):
            return
        with self._lock():
            for rest in rests.iterdir():
                with contextlib.suppress(FileNotFoundError, BlockingIOError), rest.open("rb") as f:
                    fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    rest.unlink()


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a directory from another one at its place; None: there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _etag(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _chunks(source: Source) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    with source.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _entry(name: str, stat: os.stat_result) -> Entry:
    return Entry(name, stat.st_size, dt.datetime.fromtimestamp(stat.st_mtime, dt.UTC))


def _make_dirs(path: Path) -> None:
    """Like mkdir -p, with the parent of every new directory synced."""
    if path.is_dir():
        return
    _make_dirs(path.parent)
    try:
        path.mkdir(exist_ok=True)
    except FileNotFoundError as error:  # the parent is there: no file system for directories
        raise RemoteDenied(
            f"no directory can be made there: {error.strerror}",
            op="make",
            object=path.as_uri(),
            hint="name a directory on a local disk: file:///dir",
        ) from error
    _fsync_dir(path.parent)


def _fsync_dir(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def _errors(op: str, name: str) -> Iterator[None]:
    """Translate the file system's errors into the contract's."""
    try:
        yield
    except RemoteError:
        raise
    except FileExistsError as error:
        raise _exists(error, op, name) from error
    except FileNotFoundError as error:
        raise ObjectMissing("no such object", op=op, object=name) from error
    except PermissionError as error:
        hint = "check the owner and mode of the directory"
        raise RemoteDenied(str(error), op=op, object=name, hint=hint) from error
    except OSError as error:
        hint = "free some space" if error.errno in {errno.ENOSPC, errno.EDQUOT} else ""
        raise RemoteUnavailable(str(error), op=op, object=name, hint=hint) from error


def _exists(error: FileExistsError, op: str, name: str) -> RemoteError:
    """Tell an object in the way from a local file in the way of `get_to_file`."""
    if op == "get":
        return RemoteError(f"a file is in the way: {error.filename}", op=op, object=name)
    return ObjectExists("the object exists", op=op, object=name)
