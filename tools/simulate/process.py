"""A hub as a process of its own, started and ended as an operator would.

Owns the subprocess and its log. Used by the demo and by tests; it knows `hublet serve`'s flags and
nothing of the hub's inside.
"""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from tools.simulate.look import is_ready

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 15.0
_POLL_S = 0.05
_TAIL_LINES = 20


class HubProcess:
    """One ``hublet serve``; may be started again after its end."""

    def __init__(
        self, *, data_dir: Path, key_file: Path, object_store: str, address: str, log: Path
    ) -> None:
        self.data_dir, self.address = data_dir, address
        self._log = log
        self._command = [sys.executable, "-m", "tools.hublet", "serve"]
        self._command += ["--data-dir", str(data_dir), "--key-file", str(key_file)]
        self._command += ["--listen", address, "--object-store", object_store]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def kubeconfig(self) -> Path:
        """Return where the hub writes its admin kubeconfig."""
        return self.data_dir / "admin.kubeconfig"

    @property
    def pid(self) -> int:
        """Return the process id; only while it runs."""
        assert self._process is not None
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it does not run (any more)."""
        return self._process is None or self._process.poll() is not None

    def start(self) -> None:
        """Start it and return at once."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    async def wait_ready(self) -> None:
        """Wait until it says that it is ready. Raises TimeoutError, also when it has ended."""
        end_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < end_s:
            if self.has_ended:
                raise TimeoutError("the process has ended")
            if self.kubeconfig.exists() and await is_ready(self.kubeconfig):
                return
            await asyncio.sleep(_POLL_S)
        raise TimeoutError(f"not ready within {START_TIMEOUT_S} s")

    def kill(self) -> None:
        """Kill it with SIGKILL, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> int:
        """Ask it to stop and return its exit status; kill it when it takes too long."""
        assert self._process is not None
        self._process.terminate()
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.wait()

    def log_tail(self) -> str:
        """Return the last lines of what it wrote."""
        if not self._log.exists():
            return ""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
