"""The distinguished name of a client certificate: who it is (CN) and in which groups (O).

Owns reading and building such names without cryptography's 64-character limit: X.520 gives CN and O
that upper bound, Go neither checks nor respects it, and
``system:open-cluster-management:<cluster>:<agent>`` is longer as soon as the cluster's name has 28
characters. cryptography reports such values with a warning on every access, which is silenced here
and nowhere else.
"""

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.x509.oid import NameOID

from hub.auth.errors import CsrError


@dataclass(frozen=True, slots=True)
class Subject:
    """`common_name` is empty when the name has none."""

    common_name: str
    organizations: tuple[str, ...]


def build_subject(common_name: str, organizations: Sequence[str]) -> x509.Name:
    """Return the name with the O's in the order given, then the CN; values of any length."""
    pairs = [(NameOID.ORGANIZATION_NAME, o) for o in organizations]
    pairs.append((NameOID.COMMON_NAME, common_name))
    with _any_length():
        return x509.Name([x509.NameAttribute(oid, v, _validate=False) for oid, v in pairs])


def read_subject(holder: x509.CertificateSigningRequest | x509.Certificate) -> Subject:
    """Return CN and O's in order; raises `CsrError` for two CNs or a value that is no plain text.

    Two CNs are refused because programs disagree on which of them is the user.
    """
    with _any_length():
        name = holder.subject
    common_names = _texts(name, NameOID.COMMON_NAME)
    if len(common_names) > 1:
        raise CsrError("the subject has more than one common name (CN): give exactly one")
    return Subject(
        common_name=common_names[0] if common_names else "",
        organizations=_texts(name, NameOID.ORGANIZATION_NAME),
    )


def _texts(name: x509.Name, oid: x509.ObjectIdentifier) -> tuple[str, ...]:
    """Return an attribute's values; O's may stand in one RDN (Go) or in one each (openssl)."""
    result = []
    for attribute in name.get_attributes_for_oid(oid):
        value = attribute.value
        # a NUL ends the name for some C code and not for other: never let the two disagree on who
        # this is
        if not isinstance(value, str) or not value or "\0" in value:
            raise CsrError(f"the subject's {attribute.rfc4514_attribute_name} must be plain text")
        result.append(value)
    return tuple(result)


@contextlib.contextmanager
def _any_length() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Attribute's length must be")
        yield
