"""An agent's identity and where it lasts: key, certificate and agent name of each cluster.

A state directory holds one file a cluster, ``<cluster>.json``, 0600, replaced in one step: so an
identity is there whole or not at all. Losing the directory means new CSRs.
"""

import dataclasses
from dataclasses import dataclass, field, replace
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hub.meta.codec import json
from hub.meta.errors import ApiError
from tools.simulate.files import check_directory, replace_file

USER_PREFIX = "system:open-cluster-management:"
FLEET_GROUP = "system:open-cluster-management:managed-clusters"


@dataclass(frozen=True, slots=True)
class Identity:
    """What an agent keeps after its CSR was signed; `works` is how many its administrator made."""

    cluster: str
    agent: str
    cert_pem: str
    key_pem: str = field(repr=False)
    works: int = 0


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """A fresh key and the certificate request for it, both PEM."""

    agent: str
    key_pem: str = field(repr=False)
    request_pem: str

    def signed(self, cluster: str, cert_pem: str) -> Identity:
        """Return the identity this becomes with its certificate."""
        return Identity(cluster, self.agent, cert_pem, self.key_pem)


def new_request(cluster: str, agent: str) -> KeyRequest:
    """Return an EC P-256 key and a request for the subject OCM's agents use."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder().subject_name(_subject(cluster, agent))
    request = builder.sign(key, hashes.SHA256())
    key_pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    request_pem = request.public_bytes(serialization.Encoding.PEM)
    return KeyRequest(agent, key_pem.decode(), request_pem.decode())


def _subject(cluster: str, agent: str) -> x509.Name:
    """Go's crypto/x509 puts all organisations into one RDN, so the hub must read that form."""
    groups = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)
        for group in (f"{USER_PREFIX}{cluster}", FLEET_GROUP)
    ]
    user = x509.NameAttribute(NameOID.COMMON_NAME, f"{USER_PREFIX}{cluster}:{agent}")
    return x509.Name(
        [x509.RelativeDistinguishedName(groups), x509.RelativeDistinguishedName([user])]
    )


class IdentityStore:
    """The identities of a fleet, in `directory`, or in memory when there is none.

    Raises OSError when nothing can be kept there.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._known: dict[str, Identity] = {}
        self._works: dict[str, int] = {}
        if directory is not None:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_directory(directory)

    def find(self, cluster: str) -> Identity | None:
        """Return the identity of `cluster`. Raises ValueError for a file that is not one."""
        if cluster not in self._known and self._directory is not None:
            path = self._directory / f"{cluster}.json"
            if path.exists():
                self._known[cluster] = _parse(path)
        return self._known.get(cluster)

    def save(self, identity: Identity) -> None:
        """Keep `identity`; it is on disk, whole, when this returns."""
        identity = replace(identity, works=max(identity.works, self.works(identity.cluster)))
        self._known[identity.cluster] = identity
        if self._directory is not None:
            path = self._directory / f"{identity.cluster}.json"
            replace_file(path, json.encode(dataclasses.asdict(identity)), mode=0o600)

    def works(self, cluster: str) -> int:
        """Return how many ManifestWorks were made for `cluster`, in this run or before."""
        identity = self._known.get(cluster)
        return max(identity.works if identity else 0, self._works.get(cluster, 0))

    def note_works(self, cluster: str, works: int) -> None:
        """Remember that `works` ManifestWorks exist; the certificate may still be to come."""
        self._works[cluster] = works
        identity = self.find(cluster)
        if identity is not None and identity.works < works:
            self.save(identity)


def _parse(path: Path) -> Identity:
    try:
        return Identity(**json.decode(path.read_bytes()))
    except (TypeError, ApiError) as error:
        raise ValueError(f"{path} is not an identity of the simulator; remove it") from error
