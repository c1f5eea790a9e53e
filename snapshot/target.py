"""The data directory: who holds it, and how a store that was built takes the place of another.

A data directory DIR holds its store in ``DIR/store``. Whoever works there (a hub for its life, a
restore, an offline command) holds a lock on DIR itself. A new store is built in ``DIR/store.new``,
with the local files that belong to it inside, and swapped in, because DIR may be a mount point:

1. the marker ``store.new/replaces`` is written: from here on the new store is in, whatever happens;
2. the old store's local files move into it, and it becomes ``DIR/store.old-TIME``;
3. ``store.new`` becomes ``store``;
4. its local files move out to DIR, and the marker goes.

Each step is one rename, synced, and may be done again. A crash before 1 leaves the old store as it
was; after it `finish_swap`, called under the lock by everyone who takes the directory, goes on with
the first step that is open. No start ever sees the files of one store beside the other.
"""

import datetime as dt
import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hub.clock import Clock
from hub.store import (
    STORE_DIRECTORY,
    Corrupt,
    DirectoryLock,
    Locked,
    has_old_store,
    has_store,
    is_unfinished,
    move_in,
    prepare,
)
from snapshot.errors import TargetBusy, TargetNotEmpty
from snapshot.local import CLAIM_FILE, STATE_FILE, load_claim, sync_directory

STAGE = "store.new"
OLD_PREFIX = "store.old-"
SPOOL = ".restore-spool"
_TRASH = "store.trash"
_MARKER = "replaces"
_LOCAL = (STATE_FILE, CLAIM_FILE)
_LOCAL_DRAFTS = tuple(f".{name}." for name in _LOCAL)
_KUBECONFIG = ("admin.kubeconfig", "admin.new")
_OURS = frozenset({STAGE, SPOOL, _TRASH, *_LOCAL, *_KUBECONFIG, "spool", "lost+found"})
"""What a directory without a store may hold and still be restored into; lost+found is ext4's."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where to build: a store in `store`, beside the local files that belong to it."""

    directory: Path
    store: Path
    spool: Path
    replaces: str
    """What the store that lies there now will be called, "" when there is none."""


@contextmanager
def occupied(directory: Path, *, can_create: bool = True, can_sweep: bool = True) -> Iterator[Path]:
    """Hold a data directory, brought into shape; yield where its store lies, or is to be made.

    Makes a missing directory with `can_create`, and removes it if it is left empty; what killed
    restores left goes with `can_sweep`. Raises Locked when another process holds the directory,
    Corrupt for a data file in it that cannot be told to be a hub's.
    """
    is_new = not directory.exists()
    if can_create:
        prepare(directory)
    lock = DirectoryLock(directory)
    try:
        finish_swap(directory)
        move_in(directory)
        if can_sweep:
            sweep(directory)
        yield directory / STORE_DIRECTORY
    finally:
        if is_new and directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()
        lock.close()


@contextmanager
def staged(target: Path, *, clock: Clock, is_held: bool = False) -> Iterator[Stage]:
    """Give the place to build a store in; when the block succeeds it is the store of `target`.

    The store that was there is kept as `Stage.replaces`. Any kept earlier goes, unless the one that
    was there was itself restored and never started: what a hub has run on outlives second thoughts.
    A block that fails leaves the directory as it was. `is_held`: the caller is within `occupied`.
    Raises `TargetNotEmpty` for what is no data directory and not empty either, `TargetBusy`.
    """
    _check_target(target)
    if is_held:
        with _staging(target, clock) as stage:
            yield stage
        return
    with _held(target), _staging(target, clock) as stage:
        yield stage


def check_target(target: Path) -> bool:
    """Return whether a restore into `target` would put a store aside; changes nothing.

    Raises `TargetNotEmpty` and `TargetBusy` as the restore would.
    """
    _check_target(target)
    if not target.is_dir():
        return False
    try:
        DirectoryLock(target).close()
    except Locked as error:
        raise _busy(target) from error
    return _is_hubs(target)


def finish_swap(directory: Path) -> None:
    """Do what is left of a swap that a crash cut short; the caller holds the directory."""
    stage, store = directory / STAGE, directory / STORE_DIRECTORY
    if (stage / _MARKER).exists():
        _put_aside(directory, (stage / _MARKER).read_text())
        stage.rename(store)
        sync_directory(directory)
    if (store / _MARKER).exists():
        _move_local(store, directory)
        (store / _MARKER).unlink()
        sync_directory(store)


def sweep(directory: Path) -> None:
    """Remove what a killed restore left; a store that is about to be swapped in is no such thing.

    The caller holds the directory.
    """
    for rest in (SPOOL, _TRASH, STAGE):
        if not (directory / rest / _MARKER).exists():
            _remove(directory / rest)


@contextmanager
def _held(target: Path) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(occupied(target))
        except Locked as error:
            raise _busy(target) from error
        except Corrupt as error:
            raise TargetNotEmpty(str(error), op="restore", object=str(target)) from error
        yield


def _busy(target: Path) -> TargetBusy:
    what = "a hub or another restore is at work on the directory"
    return TargetBusy(what, op="restore", object=str(target))


@contextmanager
def _staging(directory: Path, clock: Clock) -> Iterator[Stage]:
    replaces = _free_name(directory, clock.now()) if _has_old(directory) else ""
    stage = Stage(directory, directory / STAGE, directory / SPOOL, replaces)
    try:
        stage.spool.mkdir(mode=0o700)
        stage.store.mkdir(mode=0o700)
        yield stage
        _write_marker(stage.store, replaces)
        finish_swap(directory)
    finally:
        sweep(directory)
    if replaces and not _was_only_restored(directory / replaces):
        _discard_older(directory, replaces)


def _check_target(target: Path) -> None:
    """Raise `TargetNotEmpty` unless the target is new, a hub's, or holds nothing of others."""
    if not target.exists() and not target.is_symlink():
        return
    if not target.is_dir():
        raise TargetNotEmpty("it is not a directory", op="restore", object=str(target))
    if _is_hubs(target):
        return
    found = sorted(each.name for each in target.iterdir() if not _is_ours(each))
    if found:
        what = f"the directory is neither empty nor a hub's: it holds {found[0]}"
        raise TargetNotEmpty(what, op="restore", object=str(target))


def _is_hubs(directory: Path) -> bool:
    is_between = (directory / STAGE / _MARKER).exists()
    return is_between or has_store(directory / STORE_DIRECTORY) or has_old_store(directory)


def _is_ours(path: Path) -> bool:
    if path.name == STORE_DIRECTORY:
        return path.is_dir() and is_unfinished(path)
    return path.name in _OURS or path.name.startswith((OLD_PREFIX, *_LOCAL_DRAFTS))


def _has_old(directory: Path) -> bool:
    """Whether a store lies in a directory; rests of one that was never finished go."""
    store = directory / STORE_DIRECTORY
    if has_store(store):
        return True
    _remove(store)
    return False


def _free_name(directory: Path, now: dt.datetime) -> str:
    """Return a name for the store that is put aside; two restores may come within a second."""
    name = f"{OLD_PREFIX}{now:%Y%m%dT%H%M%SZ}"
    names = itertools.chain([name], (f"{name}-{count}" for count in itertools.count(2)))
    return next(each for each in names if not (directory / each).exists())


def _write_marker(stage: Path, replaces: str) -> None:
    """Decide for the new store, durably and at once."""
    written = stage / f"{_MARKER}.tmp"
    handle = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(replaces)
        file.flush()
        os.fsync(file.fileno())
    sync_directory(stage)
    written.rename(stage / _MARKER)
    sync_directory(stage)


def _put_aside(directory: Path, name: str) -> None:
    """Rename the old store, and with it what DIR says of it, so that it can be put back by hand."""
    store = directory / STORE_DIRECTORY
    if not name:  # there is none: what DIR says is of a store that somebody removed
        for each in _LOCAL:
            (directory / each).unlink(missing_ok=True)
    elif store.exists():
        _move_local(directory, store)
        store.rename(directory / name)
        sync_directory(directory)


def _move_local(source: Path, target: Path) -> None:
    for name in _LOCAL:
        if (source / name).exists():
            (source / name).replace(target / name)
    sync_directory(target)
    sync_directory(source)


def _was_only_restored(store: Path) -> bool:
    """Whether a store that is kept aside came from a restore and no hub was started on it."""
    claim = load_claim(store)
    return claim is not None and not claim.adopted


def _discard_older(directory: Path, newest: str) -> None:
    for each in sorted(directory.glob(f"{OLD_PREFIX}*")):
        if each.name != newest:
            each.rename(directory / _TRASH)  # half of a store must not look like one
            _remove(directory / _TRASH)


def _remove(directory: Path) -> None:
    if directory.exists():
        shutil.rmtree(directory)
