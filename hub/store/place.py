"""Where in a data directory the store lies, and how an older release's is brought there.

Owns the name: a data directory DIR has its store in ``DIR/store``, a directory of its own, since a
restore swaps it for another and DIR may be a mount point, which no rename can replace. Older
releases had the store's files in DIR itself; `move_in` takes them over under DIR's lock. The data
file moves last and by one rename, with its mark written ahead (a rename keeps the inode), so that a
crash leaves it whole at one place or the other, and the next open goes on from there.
"""

from pathlib import Path

from hub.store.directory import (
    DATA_FILE,
    MARK_FILE,
    MARK_PREFIX,
    discard_build,
    discard_lock_file,
    has_store,
    is_marked,
    prepare,
    read_mark,
    write_mark,
)
from hub.store.errors import Corrupt
from hub.store.hubkey import sync_directory

STORE_DIRECTORY = "store"


def has_old_store(directory: Path) -> bool:
    """Whether an older release's store lies directly in a data directory.

    Its mark tells it from another program's LMDB file.
    """
    return has_store(directory) and read_mark(directory).startswith(MARK_PREFIX)


def move_in(directory: Path) -> None:
    """Bring an older release's store to its place; the caller holds the data directory's lock.

    Raises Corrupt for a data file that cannot be told to be this hub's, and moves nothing then.
    """
    if has_store(directory):
        _check(directory)
        _move(directory, directory / STORE_DIRECTORY)
    if read_mark(directory).startswith(MARK_PREFIX):  # the rest, and the mark as the last of it
        discard_build(directory)
        discard_lock_file(directory)
        (directory / MARK_FILE).unlink()


def _check(directory: Path) -> None:
    file, place = directory / DATA_FILE, directory / STORE_DIRECTORY
    if has_store(place):
        raise Corrupt(
            f"{directory} holds two stores, {file} (where older releases had it) and "
            f"{place / DATA_FILE}: move the one that is not this hub's away"
        )
    if not has_old_store(directory):
        raise Corrupt(
            f"{file} lies where older releases had their store, and no mark of one is beside it: "
            f"if it is this hub's, move it to {place}, else take another directory"
        )


def _move(directory: Path, place: Path) -> None:
    prepare(place)
    if is_marked(directory):
        write_mark(place, of=directory / DATA_FILE)
    (directory / DATA_FILE).rename(place / DATA_FILE)
    sync_directory(place)
    sync_directory(directory)
