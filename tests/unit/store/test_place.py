"""The store of an older release, directly in the data directory, is moved to its place."""

import os
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from hub.store import STORE_DIRECTORY, Corrupt, Store, has_old_store, has_store, move_in
from hub.store.directory import BUILD_DIRECTORY, LOCK_FILE, MARK_FILE, is_marked, mark_file
from tests.unit.store.given import CLOCK, create, hub_key, key, open_store

P = ParamSpec("P")
T = TypeVar("T")
SEAMS = ("rename", "unlink", "rmdir", "mkdir", "fsync")


@pytest.fixture
async def old(tmp_path: Path) -> Path:
    """A store as older releases left it, with a crash's rests."""
    store = open_store(tmp_path / "data")
    await store.commit(create(key("a")))
    await store.close()
    (tmp_path / "data" / BUILD_DIRECTORY).mkdir()
    (tmp_path / "data" / LOCK_FILE).touch()
    (tmp_path / "data" / "snapshot-state.json").write_text("kept")
    return tmp_path / "data"


def check_moved(directory: Path, beside: Path) -> None:
    """The store is at its place and needs no audit, and nothing of it is left behind."""
    place = directory / STORE_DIRECTORY
    left = sorted(each.name for each in directory.iterdir())
    assert left == ["snapshot-state.json", STORE_DIRECTORY]
    assert is_marked(place)
    store = Store.open(
        place, hub_key=hub_key(beside), clock=CLOCK, can_create=False, map_bytes=1 << 30
    )
    assert store.verify().count == 1
    store.close_offline()


def test_an_older_releases_store_is_moved_with_its_mark(old: Path) -> None:
    assert has_old_store(old)
    move_in(old)
    assert not has_old_store(old)
    check_moved(old, old)
    move_in(old)
    check_moved(old, old)


class _Dead(BaseException):
    """The process is gone."""


def dying(change: Callable[P, T], left: list[None]) -> Callable[P, T]:
    """Return a change that works so many times, and then is refused like all that follow."""

    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        if not left:
            raise _Dead
        left.pop()
        return change(*args, **kwargs)

    return wrapped


def test_a_crash_while_moving_leaves_the_store_at_one_of_both_places(
    old: Path, tmp_path: Path
) -> None:
    places = []
    for steps in count():
        copy = tmp_path / f"copy-{steps}"
        shutil.copytree(old, copy)
        mark_file(copy)
        left: list[None] = [None] * steps
        with pytest.MonkeyPatch.context() as patch:
            for name in SEAMS:
                patch.setattr(os, name, dying(getattr(os, name), left))
            try:
                move_in(copy)
            except _Dead:
                is_whole = False
            else:
                is_whole = True
        places.append((has_store(copy), has_store(copy / STORE_DIRECTORY)))
        move_in(copy)
        check_moved(copy, old)
        if is_whole:
            break
    assert set(places) == {(True, False), (False, True)}
    assert places == sorted(places, reverse=True)
    assert len(places) > 8


def test_a_copy_is_still_told_from_the_original_after_the_move(old: Path, tmp_path: Path) -> None:
    shutil.copytree(old, tmp_path / "copy")
    move_in(tmp_path / "copy")
    assert not is_marked(tmp_path / "copy" / STORE_DIRECTORY)


def test_a_file_without_a_mark_is_not_moved(old: Path) -> None:
    (old / MARK_FILE).unlink()
    assert not has_old_store(old)
    with pytest.raises(Corrupt, match="no mark of one is beside it"):
        move_in(old)
    assert has_store(old)
    assert not has_store(old / STORE_DIRECTORY)


def test_two_stores_are_refused(old: Path) -> None:
    shutil.copytree(old, old / STORE_DIRECTORY)
    with pytest.raises(Corrupt, match="holds two stores"):
        move_in(old)
    assert has_store(old)
