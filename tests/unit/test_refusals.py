"""What the operating system refuses is told by flag: `hublet serve` itself, and each rule."""

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tools import failures
from tools.refusals import explain_os_error

ROOT = Path(__file__).resolve().parents[2]


def serve(tmp_path: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a hub that cannot start."""
    given = {"data-dir": str(tmp_path / "data"), "listen": "127.0.0.1:0", **settings}
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    command = [sys.executable, "-m", "tools.hublet", "serve", *words]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=30
    )


def test_a_data_directory_that_is_a_file_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    refused = serve(tmp_path)
    assert refused.returncode == failures.EXIT_OS
    assert refused.stderr.splitlines()[-2:] == [
        f"error: data-dir: {tmp_path / 'data'} is a file, not a directory",
        "hint: name another place with --data-dir",
    ]


def test_a_data_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    refused = serve(tmp_path, **{"data-dir": "/proc/x", "key-file": str(tmp_path / "k")})
    assert refused.returncode == failures.EXIT_OS
    assert "error: data-dir: /proc/x: No such file or directory" in refused.stderr
    assert "--data-dir" in refused.stderr.splitlines()[-1]


def test_a_key_file_that_is_a_directory_is_called_so(tmp_path: Path) -> None:
    refused = serve(tmp_path, **{"key-file": str(tmp_path)})
    assert refused.returncode == failures.EXIT_OS
    assert f"error: key-file: {tmp_path} is a directory, not a file" in refused.stderr
    assert "hint: name another place with --key-file" in refused.stderr


def test_an_audit_log_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    refused = serve(tmp_path, **{"audit-log": "/proc/x"})
    assert refused.returncode == failures.EXIT_OS
    assert "error: audit-log: /proc/x: " in refused.stderr


def test_a_host_that_cannot_be_resolved_is_named(tmp_path: Path) -> None:
    # a name that no resolver asks a network for
    refused = serve(tmp_path, listen="no host:0")
    assert refused.returncode == failures.EXIT_OS
    said = "error: listen: the host of no host:0 cannot be resolved: "
    assert said in refused.stderr
    assert "--listen ADDRESS:PORT" in refused.stderr


def denied(path: Path, number: int = errno.EACCES) -> OSError:
    return OSError(number, os.strerror(number), str(path))


@pytest.mark.parametrize(
    ("refused", "setting"),
    [
        ("hub", "data-dir"),
        ("hub/store/data.mdb", "data-dir"),
        ("hub.key", "key-file"),
        ("keys/a/k", "audit-log"),
        ("keys/a", "audit-log"),
    ],
)
def test_a_path_is_traced_to_its_setting(tmp_path: Path, refused: str, setting: str) -> None:
    places = {
        "data-dir": tmp_path / "hub",
        "key-file": tmp_path / "hub.key",
        "audit-log": tmp_path / "keys" / "a" / "k",
    }
    what, hint = explain_os_error(denied(tmp_path / refused), places)
    assert what == f"{setting}: {tmp_path / refused}: Permission denied"
    assert f"--{setting}" in hint


def test_a_full_volume_asks_for_space(tmp_path: Path) -> None:
    error = denied(tmp_path / "hub" / "data.mdb", errno.ENOSPC)
    assert explain_os_error(error, {"data-dir": tmp_path / "hub"})[1] == (
        "free some space on that volume"
    )


def test_the_root_as_a_place_has_no_name_and_is_told_of() -> None:
    error = OSError(errno.EACCES, os.strerror(errno.EACCES), "/data.mdb")
    what, _ = explain_os_error(error, {"data-dir": Path("/")})
    assert what == "data-dir: /data.mdb: Permission denied"


def test_what_is_of_no_setting_is_told_as_it_is(tmp_path: Path) -> None:
    what, hint = explain_os_error(denied(Path("/elsewhere/x")), {"data-dir": tmp_path})
    assert (what, hint) == ("[Errno 13] Permission denied: '/elsewhere/x'", "")
    assert explain_os_error(OSError(98, "listen: it is taken"), {}) == ("listen: it is taken", "")


def test_a_lookup_behind_another_error_is_found() -> None:
    error = OSError(-2, "cannot be taken")
    error.__cause__ = socket.gaierror(-2, "Name or service not known")
    what, _ = explain_os_error(error, {}, address="nohost:1")
    assert what == "listen: the host of nohost:1 cannot be resolved: Name or service not known"
