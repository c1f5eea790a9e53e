"""An etcd to measure against: found, started, asked for its health, ended.

Debian's `etcd-server` gives `etcd`, `etcd-client` gives `etcdctl`; HUBLET_ETCD and HUBLET_ETCDCTL
name others. Nothing is downloaded. Durability is etcd's default: every write is in its log, synced,
before it is answered.
"""

import json
import os
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

_FIX = (
    "hint: on Debian and Ubuntu: apt-get install etcd-server etcd-client; "
    "or name the programs with HUBLET_ETCD=/path/to/etcd and HUBLET_ETCDCTL=/path/to/etcdctl"
)
_READY_S, _STOP_S, _POLL_S = 300.0, 60.0, 0.002


def find_program(name: str) -> str:
    """Return the path of ``etcd`` or ``etcdctl``. Raises SystemExit with the fix."""
    variable = f"HUBLET_{name.upper()}"
    wanted = os.environ.get(variable, name)
    found = shutil.which(wanted)
    if found is None:
        where = f"{variable}={wanted} is no program" if variable in os.environ else "not on PATH"
        raise SystemExit(f"error: {name} is missing: {where}\n{_FIX}")
    return found


def version_of(program: str) -> str:
    """Return the version that a program says it has."""
    command = [program, "--version"] if program.endswith("etcd") else [program, "version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=_environment())
    return said.stdout.splitlines()[0].rpartition(" ")[2]


class EtcdProcess:
    """One etcd, alone in its cluster, on loopback without TLS; may be started again."""

    def __init__(self, directory: Path, port: int) -> None:
        self.port, self._directory = port, directory
        client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}"
        self._url = client
        self._command = [find_program("etcd"), "--name", "perf", "--data-dir", str(directory)]
        self._command += ["--listen-client-urls", client, "--advertise-client-urls", client]
        self._command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        self._command += [
            "--initial-cluster",
            f"perf={peer}",
            "--quota-backend-bytes",
            "8589934592",
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Return the process id; only while it runs."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> float:
        """Start it, block until ``/health`` says true, return the seconds. Raises TimeoutError."""
        began = time.monotonic()
        with self._directory.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        while not self.is_healthy():
            if time.monotonic() - began > _READY_S:
                raise TimeoutError(f"etcd is not healthy within {_READY_S} s")
            time.sleep(_POLL_S)
        return time.monotonic() - began

    def is_healthy(self) -> bool:
        """Whether it answers reads (``/health`` makes one through its consensus)."""
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"etcd has ended; see {self._directory.with_suffix('.log')}")
        try:
            with urllib.request.urlopen(f"{self._url}/health", timeout=_READY_S) as answer:
                return bool(json.load(answer).get("health") == "true")
        except (OSError, ValueError):
            return False

    def control(self, *arguments: str, timeout_s: float = 300) -> tuple[str, float]:
        """Run etcdctl; return what it printed and the seconds it took."""
        began = time.monotonic()
        command = [find_program("etcdctl"), "--endpoints", f"127.0.0.1:{self.port}", *arguments]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env=_environment(),
        )
        return done.stdout + done.stderr, time.monotonic() - began

    def stop(self) -> None:
        """Ask it to stop; kill it when it takes too long. Harmless when it does not run."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environment() -> dict[str, str]:
    return {**os.environ, "ETCDCTL_API": "3"}
