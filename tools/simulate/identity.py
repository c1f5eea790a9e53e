"""An agent's identity and where it lasts: key, certificate and agent name of each cluster.

A state directory holds one file a cluster, ``<cluster>.json``, 0600, replaced in one step: so an
identity is there whole or not at all. Losing the directory means new CSRs.
"""

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hub.auth.subject import Subject
from hub.meta.codec import json
from hub.meta.errors import ApiError
from tools.simulate.files import check_directory, replace_file

USER_PREFIX = "system:open-cluster-management:"
FLEET_GROUP = "system:open-cluster-management:managed-clusters"


@dataclass(frozen=True, slots=True)
class Identity:
    """What an agent keeps after its CSR was signed.

    `works` and `addons` are how many its administrator made, `holds` the works on which the agent
    has put its finalizer: the hub cannot lose those without its help.
    """

    cluster: str
    agent: str
    cert_pem: str
    key_pem: str = field(repr=False)
    works: int = 0
    addons: int = 0
    holds: tuple[str, ...] = ()

    @property
    def subject(self) -> Subject:
        """Return who its certificate names."""
        return agent_subject(self.cluster, self.agent)


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
    return make_request(agent_subject(cluster, agent), agent)


def make_request(subject: Subject, agent: str, *, hosts: Sequence[str] = ()) -> KeyRequest:
    """Return an EC P-256 key and a request for `subject`, with DNS names when `hosts` are given."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder().subject_name(_go_name(subject))
    if hosts:
        names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    request = builder.sign(key, hashes.SHA256())
    key_pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    request_pem = request.public_bytes(serialization.Encoding.PEM)
    return KeyRequest(agent, key_pem.decode(), request_pem.decode())


def agent_subject(cluster: str, agent: str) -> Subject:
    """Return who an agent's certificate names."""
    return Subject(f"{USER_PREFIX}{cluster}:{agent}", (f"{USER_PREFIX}{cluster}", FLEET_GROUP))


def _go_name(subject: Subject) -> x509.Name:
    """Return the name as Go's crypto/x509 writes it, so that the hub must read that form.

    All organisations are in one RDN, and values are of any length: X.520's 64 characters, of which
    cryptography warns, are too few for most add-ons.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        groups = [_attribute(NameOID.ORGANIZATION_NAME, group) for group in subject.organizations]
        user = _attribute(NameOID.COMMON_NAME, subject.common_name)
        return x509.Name(
            [x509.RelativeDistinguishedName(groups), x509.RelativeDistinguishedName([user])]
        )


def _attribute(oid: x509.ObjectIdentifier, value: str) -> "x509.NameAttribute[str]":
    return x509.NameAttribute(oid, value, _validate=False)


class IdentityStore:
    """The identities of a fleet, in `directory`, or in memory when there is none.

    Raises OSError when nothing can be kept there.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._known: dict[str, Identity] = {}
        self._made: dict[str, tuple[int, int]] = {}
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
        works, addons = self.made(identity.cluster)
        identity = replace(
            identity, works=max(identity.works, works), addons=max(identity.addons, addons)
        )
        self._known[identity.cluster] = identity
        if self._directory is not None:
            path = self._directory / f"{identity.cluster}.json"
            replace_file(path, json.encode(dataclasses.asdict(identity)), mode=0o600)

    def made(self, cluster: str) -> tuple[int, int]:
        """Return how many works and add-ons were made for `cluster`, in this run or before."""
        identity = self._known.get(cluster)
        works, addons = self._made.get(cluster, (0, 0))
        if identity is None:
            return works, addons
        return max(identity.works, works), max(identity.addons, addons)

    def note_made(self, cluster: str, *, works: int, addons: int) -> None:
        """Remember what exists; the certificate may still be to come."""
        self._made[cluster] = works, addons
        identity = self.find(cluster)
        if identity is not None and (identity.works < works or identity.addons < addons):
            self.save(identity)

    def note_holds(self, cluster: str, names: frozenset[str]) -> None:
        """Remember which works the agent holds, and would evict if a list left them out."""
        identity = self.find(cluster)
        if identity is not None and frozenset(identity.holds) != names:
            self.save(replace(identity, holds=tuple(sorted(names))))

    def note_dropped(self, cluster: str, name: str) -> None:
        """Forget a work that the agent is about to let go."""
        identity = self.find(cluster)
        if identity is not None and name in identity.holds:
            self.note_holds(cluster, frozenset(identity.holds) - {name})


def _parse(path: Path) -> Identity:
    try:
        fields = json.decode(path.read_bytes())
        return Identity(**{**fields, "holds": tuple(fields.get("holds", ()))})
    except (TypeError, ApiError) as error:
        raise ValueError(f"{path} is not an identity of the simulator; remove it") from error
