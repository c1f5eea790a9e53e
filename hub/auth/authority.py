"""Certificate authorities and the serving certificates they issue.

Owns: making a CA, issuing the hub's serving leaf, and the list of names the leaf carries. Client
certificates are `hub.auth.certificate`'s. Both CAs of a hub are roots that sign leaves only (path
length 0) and last ten years.
"""

import datetime as dt
import ipaddress
import urllib.parse
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hub.auth.errors import IdentityError
from hub.auth.keypair import (
    KeyPair,
    encode_certificate,
    load_private_key,
    new_private_key,
    whole_seconds,
)

AUTHORITY_LIFE = dt.timedelta(days=3652)
LEAF_LIFE = dt.timedelta(days=365)
# a managed cluster whose clock is a little behind must not find the hub's certificates in its
# future
BACKDATE = dt.timedelta(minutes=5)
AUTHORITY_BACKDATE = dt.timedelta(hours=1)

# in-cluster clients and port-forwards reach the hub under these, whatever its public name is
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc")


def create_authority(common_name: str, now: dt.datetime) -> KeyPair:
    """Return a fresh self-signed root, valid from an hour ago for ten years."""
    key_pem = new_private_key()
    key = load_private_key(key_pem)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    start = whole_seconds(now)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - AUTHORITY_BACKDATE)
        .not_valid_after(start + AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return KeyPair(encode_certificate(certificate), key_pem)


def issue_serving_leaf(
    authority: KeyPair, key_pem: str, *, names: Sequence[str], now: dt.datetime
) -> KeyPair:
    """Return a serving certificate over `key_pem` for `names`: DNS names and IP addresses.

    The first is the CN. It lasts a year, or as long as the CA if that is shorter.
    """
    issuer = authority.certificate()
    key = load_private_key(key_pem)
    start = whole_seconds(now)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    certificate = (
        leaf_builder(issuer, start - BACKDATE, min(start + LEAF_LIFE, issuer.not_valid_after_utc))
        .subject_name(subject)
        .public_key(key.public_key())
        .add_extension(key_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_general_names(names)), critical=False)
        .sign(authority.private_key(), hashes.SHA256())
    )
    return KeyPair(encode_certificate(certificate), key_pem)


def leaf_builder(
    issuer: x509.Certificate, not_before: dt.datetime, not_after: dt.datetime
) -> x509.CertificateBuilder:
    """Return what every leaf has: issuer, serial, life, the CA's key id, and that it is no CA."""
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer.subject)
        .serial_number(x509.random_serial_number())
        .not_valid_before(not_before)
        .not_valid_after(not_after)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
            critical=False,
        )
    )


def key_usage(
    *,
    digital_signature: bool = False,
    key_encipherment: bool = False,
    key_cert_sign: bool = False,
    crl_sign: bool = False,
) -> x509.KeyUsage:
    """Return the key usage extension with only the named bits set."""
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=key_encipherment,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def serving_names(url: str, extra: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names a hub reached at `url` must answer to, each once, the URL's host first.

    Raises `IdentityError` when `url` is not ``https://HOST[:PORT]``.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise IdentityError(f"url {url!r} must have the form https://HOST[:PORT]")
    return tuple(dict.fromkeys(_canonical(n) for n in (parts.hostname, *extra, *LOCAL_NAMES)))


def names_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the DNS names and IP addresses a certificate is for, in its own order."""
    try:
        alternative = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(name.value) for name in alternative.value)


def _canonical(name: str) -> str:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name.lower()


def _general_names(names: Sequence[str]) -> list[x509.GeneralName]:
    result: list[x509.GeneralName] = []
    for name in names:
        try:
            result.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            if not name.isascii() or not name:
                raise IdentityError(
                    f"name {name!r} cannot stand in a certificate: write it in ASCII (xn--)"
                ) from None
            result.append(x509.DNSName(name))
    return result
