"""Where a directory is: what no copy of its files keeps."""

import errno
import fcntl
import shutil
from pathlib import Path

import pytest

from snapshot.local import place_of


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "d"
    (made / "store").mkdir(parents=True)
    (made / "store" / "data.mdb").write_bytes(b"x")
    return made


def test_a_directory_stays_where_it_is_whatever_is_written_there(directory: Path) -> None:
    before = place_of(directory)
    (directory / "store" / "data.mdb").write_bytes(b"other")
    (directory / "snapshot-state.json").write_bytes(b"{}")
    assert place_of(directory) == before
    assert before.count("/") == 2
    assert before.endswith("/")


def test_a_directory_that_was_renamed_is_the_same(directory: Path) -> None:
    before = place_of(directory)
    assert place_of(directory.rename(directory.with_name("moved"))) == before


def test_a_copy_is_elsewhere(directory: Path) -> None:
    copy = directory.with_name("copy")
    shutil.copytree(directory, copy)
    assert place_of(copy) != place_of(directory)


def test_a_store_that_was_copied_into_the_directory_is_elsewhere(directory: Path) -> None:
    before = place_of(directory)
    shutil.copytree(directory / "store", directory / "store.copy")
    (directory / "store").rename(directory / "store.away")
    (directory / "store.copy").rename(directory / "store")
    assert place_of(directory) != before


def test_the_name_of_the_volume_tells_clones_apart(directory: Path) -> None:
    assert place_of(directory, name="pvc-1") == f"{place_of(directory)}pvc-1"


def test_a_directory_without_a_store_has_a_place_too(tmp_path: Path) -> None:
    assert place_of(tmp_path).count("/") == 1
    assert place_of(tmp_path / "none") == ""


@pytest.mark.parametrize("code", [errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS])
def test_a_file_system_without_generations_has_inodes(
    directory: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object) -> bytes:
        raise OSError(code, "no")

    monkeypatch.setattr(fcntl, "ioctl", refuse)
    inodes = [each.stat().st_ino for each in (directory, directory / "store")]
    assert place_of(directory) == "".join(f"{inode}:0/" for inode in inodes)


def test_any_other_failure_is_not_hidden(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(fcntl, "ioctl", refuse)
    with pytest.raises(OSError, match="no"):
        place_of(directory)
