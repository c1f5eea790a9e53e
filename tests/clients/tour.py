"""A tour of kubectl's commands, and what each printed: data for test_kubectl_tour.py.

`python -m tests.clients.tour VERSION KUBECONFIG` records it anew from the server named, which must
not have the tour's objects. What depends on the clock, on chance or on the server's address is
masked, and columns are parted by two blanks.
"""

import asyncio
import base64
import datetime as dt
import json
import re
import shlex
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.clients.cli import Kubectl
from tests.clients.tour_manifests import FILES, MANIFESTS
from tests.kubectl import locate

GOLDEN = Path(__file__).parent.parent / "golden" / "kubectl"
STEPS = [
    line
    for line in Path(__file__).with_name("tour.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
EDITOR = "sed -i s/world/edited/"
_MASKS = [
    (r"(?m)^[IWE]\d{4} \d\d:\d\d:\d\d\..*\n", ""),  # the client's log: it tells of its own haste
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000)", "TIME"),
    (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [-+]\d{4}", "DATE"),
    (r"/tmp/(LIVE|MERGED)-\d+", r"/tmp/\1-N"),
    (r"(?m)(?<=[ =])(\d+m)?\d+s(?= |$)", "AGE"),
    (r"(?i)(resource ?version\"?: +)\"?\d+\"?", r"\1REVISION"),
    (r"to be 1, was \d+", "to be 1, was REVISION"),
    (r"eyJ[-\w.]+", "TOKEN"),
    (r"gen-[a-z0-9]{5}\b", "gen-CHANCE"),
    (r"(tls\.(crt|key): +)\d+", r"\1SIZE"),
    (r" {2,}", "  "),
    (r"(?m) +$", ""),
]


@dataclass(frozen=True, slots=True)
class Printed:
    """A command, its exit code and what it printed, masked."""

    command: str
    code: int
    out: str
    err: str


def mask(text: str) -> str:
    """Return a text without what differs from run to run."""
    for pattern, shown in _MASKS:
        text = re.sub(pattern, shown, text)
    return text


async def take(k: Kubectl, folder: Path) -> AsyncIterator[Printed]:
    """Run every step, in order, and yield what it printed. `folder` gets the files they name."""
    for name, content in (FILES | _key_pair()).items():
        (folder / name).write_bytes(content)
    for step in STEPS:
        command, _, manifest = step.partition(" < ")
        args = [arg.replace("FOLDER", str(folder)) for arg in shlex.split(command)]
        stdin = MANIFESTS[manifest] if manifest else ""
        found = await k.run(*args, stdin=await _filled(k, stdin))
        yield Printed(step, found.code, mask(found.out), mask(found.err))


def _key_pair() -> dict[str, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tour")])
    until = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, until - dt.timedelta(1), until)
    ).sign(key, hashes.SHA256())
    return {
        "tls.crt": certificate.public_bytes(Encoding.PEM),
        "tls.key": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    }


def _request() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tour")])
    request = x509.CertificateSigningRequestBuilder(name).sign(key, hashes.SHA256())
    return base64.b64encode(request.public_bytes(Encoding.PEM)).decode()


async def _filled(k: Kubectl, manifest: str) -> str:
    """Return a manifest with what stands for a uid or a request filled in."""
    if manifest.startswith("{"):
        manifest = json.dumps(yaml.safe_load(manifest))  # kubectl 1.32 takes a brace for JSON
    manifest = manifest.replace("REQUEST", _request())
    for name in re.findall(r"UID:([-\w]+)", manifest):
        found = await k.ok("get", "cm", name, "-n", "tour", "-o", "jsonpath={.metadata.uid}")
        manifest = manifest.replace(f"UID:{name}", found.out)
    return manifest


async def _record(version: str, kubeconfig: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        k = Kubectl(locate(version), kubeconfig, Path(folder), EDITOR)
        lines = [json.dumps(asdict(found)) async for found in take(k, Path(folder))]
    (GOLDEN / f"tour-{version}.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    asyncio.run(_record(sys.argv[1], Path(sys.argv[2])))
