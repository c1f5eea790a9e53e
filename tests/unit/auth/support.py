"""What the tests of hub.auth share: a virtual clock, signing requests, TLS handshakes in memory."""

import datetime as dt
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes

from hub.auth.keypair import KeyPair
from hub.auth.subject import build_subject

NOW = dt.datetime(2031, 5, 17, 8, 30, 15, 123456, tzinfo=dt.UTC)


@dataclass
class VirtualClock:
    moment: dt.datetime = NOW
    drawn: int = field(default=0)

    def now(self) -> dt.datetime:
        return self.moment

    def monotonic_s(self) -> float:
        return self.moment.timestamp()

    def uid(self) -> str:
        self.drawn += 1
        return f"{self.drawn:08d}-0000-4000-8000-000000000000"

    def token(self, n_bytes: int) -> bytes:
        self.drawn += 1
        return bytes((self.drawn * 31 + i * 7) % 256 for i in range(n_bytes))


def make_csr(
    common_name: str,
    organizations: Sequence[str] = (),
    *,
    dns_names: Sequence[str] = (),
    key: CertificateIssuerPrivateKeyTypes | None = None,
) -> tuple[bytes, str]:
    """Return a signing request and its key, both PEM."""
    return make_csr_for(build_subject(common_name, organizations), dns_names=dns_names, key=key)


def make_csr_for(
    subject: x509.Name,
    *,
    dns_names: Sequence[str] = (),
    key: CertificateIssuerPrivateKeyTypes | None = None,
) -> tuple[bytes, str]:
    key = key or ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if dns_names:
        names = x509.SubjectAlternativeName([x509.DNSName(n) for n in dns_names])
        builder = builder.add_extension(names, critical=False)
    key_pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    csr = builder.sign(key, hashes.SHA256())
    return csr.public_bytes(serialization.Encoding.PEM), key_pem.decode()


def server_context(leaf: KeyPair, client_ca_pem: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load(context, leaf)
    context.load_verify_locations(cadata=client_ca_pem)
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def client_context(serving_ca_pem: str, client: KeyPair) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=serving_ca_pem)
    _load(context, client)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, hostname: str) -> bytes:
    """Shake hands in memory; return the client's certificate as the server verified it, in DER."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname=hostname)
    far = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [near, far]
    for _ in range(10):
        for side in tuple(waiting):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(side)
        if not waiting:
            break
    assert not waiting
    certificate = far.getpeercert(binary_form=True)
    assert certificate is not None
    return certificate


def _load(context: ssl.SSLContext, pair: KeyPair) -> None:
    # the ssl module reads certificate chains from files only
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(pair.cert_pem + pair.key_pem)
        file.flush()
        context.load_cert_chain(Path(file.name))
