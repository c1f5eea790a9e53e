"""A certificate with its private key, in PEM.

Owns the one value in which CAs, serving leaves and client credentials travel, and the making of EC
P-256 keys. The private key never appears in a repr.
"""

import datetime as dt
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hub.auth.errors import IdentityError


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and the key it speaks for, as PEM texts ready to be written to files."""

    cert_pem: str
    key_pem: str = field(repr=False)

    def certificate(self) -> x509.Certificate:
        """Return the parsed certificate."""
        return x509.load_pem_x509_certificate(self.cert_pem.encode())

    def private_key(self) -> ec.EllipticCurvePrivateKey:
        """Return the parsed private key."""
        return load_private_key(self.key_pem)


def new_private_key() -> str:
    """Return a fresh EC P-256 key as PKCS #8 PEM."""
    return (
        ec.generate_private_key(ec.SECP256R1())
        .private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        .decode()
    )


def load_private_key(key_pem: str) -> ec.EllipticCurvePrivateKey:
    """Parse an EC P-256 key; raises `IdentityError` for anything else."""
    try:
        key = serialization.load_pem_private_key(key_pem.encode(), password=None)
    except (ValueError, TypeError) as error:
        raise IdentityError("the private key is not an unencrypted PEM key") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise IdentityError("the private key must be an EC P-256 key")
    return key


def encode_certificate(certificate: x509.Certificate) -> str:
    """Return the PEM text of a certificate."""
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def whole_seconds(moment: dt.datetime) -> dt.datetime:
    """Cut the fraction that a certificate cannot carry."""
    return moment.astimezone(dt.UTC).replace(microsecond=0)
