"""Client certificates: reading signing requests and signing them.

Mirrors the in-tree signer of ``kubernetes.io/kube-apiserver-client``
(pkg/controller/certificates/signer/signer.go and authority/policies.go): default and longest life
one year, at least ten minutes, back-dated by five; the usages asked for and no others; alternative
names carried over. Stricter in two places: a request has at most one common name (ours is the user
name, so two would be two identities), and only CN and O of the subject are copied. Whether a
request may be approved is not decided here (`hub.fleet`).
"""

import base64
import binascii
import datetime as dt
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID

from hub.auth.authority import BACKDATE, key_usage, leaf_builder
from hub.auth.errors import CsrError
from hub.auth.keypair import (
    KeyPair,
    encode_certificate,
    load_private_key,
    new_private_key,
    whole_seconds,
)
from hub.auth.subject import build_subject, read_subject

DEFAULT_DURATION_S = 365 * 24 * 3600
MIN_DURATION_S = 600
# below this a certificate's end is not moved back together with its start
SHORT_DURATION_S = 8 * 3600

DIGITAL_SIGNATURE = "digital signature"
KEY_ENCIPHERMENT = "key encipherment"
CLIENT_AUTH = "client auth"
CLIENT_USAGES = (DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, CLIENT_AUTH)

CSR_BLOCK = "CERTIFICATE REQUEST"
# label, then base64 lines: RFC 7468 without encapsulated headers
_PEM = re.compile(
    rb"-----BEGIN ([A-Z0-9 ]+)-----\r?\n([A-Za-z0-9+/=\r\n]+?)\r?\n?-----END \1-----", re.ASCII
)
_MIN_RSA_BITS = 2048
_CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)


@dataclass(frozen=True, slots=True)
class CsrInfo:
    """What a signing request asks for.

    `common_name` is empty when there is none; `key_type` is like ``EC secp256r1``.
    """

    common_name: str
    organizations: tuple[str, ...]
    dns_names: tuple[str, ...]
    ip_addresses: tuple[str, ...]
    emails: tuple[str, ...]
    uris: tuple[str, ...]
    key_type: str


def parse_csr(csr_pem: bytes) -> CsrInfo:
    """Read a PEM signing request and check its signature; raises `CsrError`.

    The first and only PEM block must be a ``CERTIFICATE REQUEST``
    (k8s.io/kubernetes/pkg/apis/certificates/helpers.go).
    """
    return _describe(_load_csr(csr_pem))


def csr_key_sha256(csr_pem: bytes) -> str:
    """Return the SHA-256 of the public key that a signing request is for; raises `CsrError`."""
    csr = _load_csr(csr_pem)
    _key_type(csr)  # refuses what is no key
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    key = csr.public_key().public_bytes(serialization.Encoding.DER, form)
    return hashlib.sha256(key).hexdigest()


def sign_client_certificate(
    csr_pem: bytes,
    authority: KeyPair,
    *,
    usages: Sequence[str],
    now: dt.datetime,
    duration_s: int | None = None,
) -> bytes:
    """Sign a request for a client certificate and return it as PEM; raises `CsrError`.

    `usages` are the words of ``spec.usages``; `duration_s` is ``spec.expirationSeconds``.
    """
    csr = _load_csr(csr_pem)
    info = _describe(csr)
    if not info.common_name:
        raise CsrError("the subject has no common name (CN): a client certificate needs one")
    check_client_usages(usages)
    builder = _client_builder(
        authority.certificate(), csr.public_key(), usages=usages, now=now, duration_s=duration_s
    ).subject_name(build_subject(info.common_name, info.organizations))
    alternative = _alternative_names(csr)
    if alternative is not None:
        builder = builder.add_extension(alternative, critical=False)
    certificate = builder.sign(authority.private_key(), hashes.SHA256())
    return encode_certificate(certificate).encode()


def certificate_end(cert_pem: bytes) -> dt.datetime:
    """Return until when the first certificate of a PEM text is valid; ValueError for none."""
    return x509.load_pem_x509_certificate(cert_pem).not_valid_after_utc


def mint_client(
    user: str,
    groups: Sequence[str],
    authority: KeyPair,
    *,
    now: dt.datetime,
    duration_s: int | None = None,
) -> KeyPair:
    """Make a key and a client certificate for `user` in `groups`, for kubeconfigs of the hub."""
    key_pem = new_private_key()
    certificate = (
        _client_builder(
            authority.certificate(),
            load_private_key(key_pem).public_key(),
            usages=CLIENT_USAGES,
            now=now,
            duration_s=duration_s,
        )
        .subject_name(build_subject(user, groups))
        .sign(authority.private_key(), hashes.SHA256())
    )
    return KeyPair(encode_certificate(certificate), key_pem)


def check_client_usages(usages: Sequence[str]) -> None:
    """Refuse usages that the signer does not give, and a set without client auth: `CsrError`."""
    for usage in usages:
        if usage not in CLIENT_USAGES:
            raise CsrError(f"invalid usage for client certificate: {usage}")
    if CLIENT_AUTH not in usages:
        raise CsrError(f"missing required usage for client certificate: {CLIENT_AUTH}")


def _load_csr(csr_pem: bytes) -> x509.CertificateSigningRequest:
    blocks = list(_PEM.finditer(csr_pem))
    if len(blocks) != 1 or csr_pem.count(b"-----BEGIN ") != 1:
        raise CsrError(f"the request must be exactly one PEM block of type {CSR_BLOCK}")
    label, body = blocks[0].groups()
    if label != CSR_BLOCK.encode():
        raise CsrError(f"PEM block type must be {CSR_BLOCK}, not {label.decode()}")
    try:
        csr = x509.load_der_x509_csr(base64.b64decode(re.sub(rb"\s", b"", body), validate=True))
        is_valid = csr.is_signature_valid
    except (ValueError, TypeError, binascii.Error, UnsupportedAlgorithm) as error:
        raise CsrError("the PEM block does not hold a readable PKCS #10 request") from error
    if not is_valid:
        raise CsrError("the signature of the request does not match its public key")
    return csr


def _describe(csr: x509.CertificateSigningRequest) -> CsrInfo:
    subject = read_subject(csr)
    alternative = _alternative_names(csr) or ()
    values: dict[type[x509.GeneralName], list[str]] = {}
    for name in alternative:
        values.setdefault(type(name), []).append(str(name.value))
    return CsrInfo(
        common_name=subject.common_name,
        organizations=subject.organizations,
        dns_names=tuple(values.get(x509.DNSName, ())),
        ip_addresses=tuple(values.get(x509.IPAddress, ())),
        emails=tuple(values.get(x509.RFC822Name, ())),
        uris=tuple(values.get(x509.UniformResourceIdentifier, ())),
        key_type=_key_type(csr),
    )


def _alternative_names(
    csr: x509.CertificateSigningRequest,
) -> x509.SubjectAlternativeName | None:
    try:
        return csr.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise CsrError("the extensions of the request cannot be read") from error


def _key_type(csr: x509.CertificateSigningRequest) -> str:
    try:
        key = csr.public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CsrError("the public key must be EC, RSA or Ed25519") from error
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, _CURVES):
        return f"EC {key.curve.name}"
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= _MIN_RSA_BITS:
        return f"RSA {key.key_size}"
    if isinstance(key, ed25519.Ed25519PublicKey):
        return "Ed25519"
    raise CsrError("the public key must be EC P-256/384/521, RSA of 2048 bits or more, or Ed25519")


def _client_builder(
    issuer: x509.Certificate,
    public_key: CertificatePublicKeyTypes,
    *,
    usages: Sequence[str],
    now: dt.datetime,
    duration_s: int | None,
) -> x509.CertificateBuilder:
    not_before, not_after = _life(issuer, whole_seconds(now), duration_s)
    builder = (
        leaf_builder(issuer, not_before, not_after)
        .public_key(public_key)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    )
    can_sign, can_encipher = DIGITAL_SIGNATURE in usages, KEY_ENCIPHERMENT in usages
    if can_sign or can_encipher:
        usage = key_usage(digital_signature=can_sign, key_encipherment=can_encipher)
        builder = builder.add_extension(usage, critical=True)
    return builder


def _life(
    issuer: x509.Certificate, now: dt.datetime, duration_s: int | None
) -> tuple[dt.datetime, dt.datetime]:
    asked_s = DEFAULT_DURATION_S if duration_s is None else duration_s
    granted_s = min(max(asked_s, MIN_DURATION_S), DEFAULT_DURATION_S)
    end = now + dt.timedelta(seconds=granted_s)
    if granted_s >= SHORT_DURATION_S:
        end -= BACKDATE
    if now >= issuer.not_valid_after_utc:
        raise CsrError(f"the client CA expired at {issuer.not_valid_after_utc}: renew it first")
    return now - BACKDATE, min(end, issuer.not_valid_after_utc)
