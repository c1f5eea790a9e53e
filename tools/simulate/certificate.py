"""Whether a client certificate is what its agent asked for, from the CA it was given. Pure."""

import datetime as dt
from collections.abc import Iterator

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from hub.auth.errors import CsrError
from hub.auth.subject import Subject, read_subject


def certificate_faults(
    cert_pem: str, key_pem: str, *, subject: Subject, authority: bytes, now: dt.datetime
) -> list[str]:
    """Return what is wrong with a certificate.

    `authority` is PEM: the CA that must have signed it, or another certificate of that CA, as an
    administrator has one (a hub may sign clients with another CA than its own certificate).
    """
    try:
        cert = x509.load_pem_x509_certificate(cert_pem.encode())
        return [*_own_faults(cert, key_pem, subject, now), *_chain_faults(cert, authority)]
    except (ValueError, CsrError, x509.ExtensionNotFound) as error:
        return [f"it cannot be read: {error}"]


def _own_faults(
    cert: x509.Certificate, key_pem: str, subject: Subject, now: dt.datetime
) -> Iterator[str]:
    key = serialization.load_pem_private_key(key_pem.encode(), password=None)
    if cert.public_key() != key.public_key():
        yield "it is for another key"
    named = read_subject(cert)
    groups = set(named.organizations)
    if (named.common_name, groups) != (subject.common_name, set(subject.organizations)):
        yield f"it is for {named.common_name} in {', '.join(named.organizations) or 'no group'}"
    if not cert.not_valid_before_utc <= now <= cert.not_valid_after_utc:
        life = f"{cert.not_valid_before_utc:%FT%TZ} to {cert.not_valid_after_utc:%FT%TZ}"
        yield f"it is valid from {life}"
    usages = cert.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    if ExtendedKeyUsageOID.CLIENT_AUTH not in usages:
        yield "it is not for clients"


def _chain_faults(cert: x509.Certificate, authority: bytes) -> Iterator[str]:
    known = x509.load_pem_x509_certificates(authority) if authority.strip() else []
    issuers = [other for other in known if other.subject == cert.issuer]
    if issuers:
        is_ours = any(_is_signed_by(cert, issuer) for issuer in issuers)
    else:  # all that can be seen of the CA is what it has put into its other certificates
        is_ours = any(_is_sibling(cert, other) for other in known)
    if known and not is_ours:
        yield f"it was signed by {cert.issuer.rfc4514_string()}, which is not the CA of this hub"


def _is_signed_by(cert: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        cert.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _is_sibling(cert: x509.Certificate, other: x509.Certificate) -> bool:
    """Whether both name the same issuer with the same key."""
    try:
        return cert.issuer == other.issuer and _issuer_key(cert) == _issuer_key(other)
    except x509.ExtensionNotFound:
        return False


def _issuer_key(cert: x509.Certificate) -> bytes | None:
    found = cert.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)
    return found.value.key_identifier
