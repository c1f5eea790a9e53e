"""A volume that fills up and is emptied again, in a process of its own."""

import subprocess
import sys
from pathlib import Path


def test_a_full_disk_loses_nothing_and_recovers_without_restart(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fault.full_disk", str(tmp_path / "data")]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=False, timeout=50
    )
    assert done.returncode == 0, done.stderr
