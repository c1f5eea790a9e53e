"""Memory of a full, a restore and a verification is bounded, however large the store is."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fault.peak_memory import STORE_BYTES, fill

ROOT = Path(__file__).resolve().parents[2]
MOST = STORE_BYTES // 3
"""Far below the store: a copy of it in memory, or half of one, would show."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("large")
    fill(made)
    return made


def grown(what: str, place: Path) -> int:
    """Do it in a process of its own and return by how much that grew."""
    command = [sys.executable, "-m", "tests.fault.peak_memory", what, str(place)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_a_full_a_verification_and_a_restore_take_a_part_of_what_the_store_does(
    place: Path,
) -> None:
    assert (place / "hub" / "store" / "data.mdb").stat().st_size > STORE_BYTES
    found = {what: grown(what, place) for what in ("full", "verify", "restore")}
    assert {what: size >> 20 for what, size in found.items() if size > MOST} == {}
