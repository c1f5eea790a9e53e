"""Files of a run: whole or not at all, and found out early."""

import os
from pathlib import Path

import pytest

from tools.simulate.files import check_directory, check_file, replace_file


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(b"old")
    (tmp_path / "report.json.new").write_bytes(b"the rest of a crash")
    with path.open("rb") as reader:
        replace_file(path, b"new", mode=0o600)
        assert reader.read() == b"old", "who reads the old one reads it to its end"
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["report.json"]


def test_a_failed_write_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(_: int) -> None:
        raise OSError(28, "no space")

    path = tmp_path / "report.json"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="no space"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    replace_file(tmp_path / "link", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


def test_a_device_stays_a_device() -> None:
    check_file(Path("/dev/null"))
    replace_file(Path("/dev/null"), b"new")
    assert Path("/dev/null").is_char_device()


def test_checking_leaves_nothing_behind(tmp_path: Path) -> None:
    check_directory(tmp_path)
    check_file(tmp_path / "report.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["nowhere/x", "/proc/x"])
def test_what_cannot_be_written_is_found_out(tmp_path: Path, place: str) -> None:
    with pytest.raises(OSError, match="No such file"):
        check_file(tmp_path / place)
