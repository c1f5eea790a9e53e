"""TLS contexts from PEM bytes, and the identity in a client's certificate.

Keys never touch a disk: OpenSSL reads them from an anonymous file in memory. No session tickets and
no renegotiation: client-go keeps no sessions, and each would cost the server 6 kB of client
certificate.
"""

import hashlib
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from cryptography import x509

from hub.auth.errors import CsrError
from hub.auth.subject import read_subject
from hub.http.api import Peer

_PROTOCOLS = ("h2", "http/1.1")


def server_context(
    cert_pem: bytes, key_pem: bytes, client_ca_pem: bytes | None = None
) -> ssl.SSLContext:
    """Return the context of a hub's port: TLS 1.2 or later, client certificates optional.

    `cert_pem` is the certificate and its chain. A client certificate not signed by `client_ca_pem`
    (one or more CAs), or expired, fails the handshake: OpenSSL cannot let it through as "none" once
    it is presented.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _harden(context)
    context.num_tickets = 0
    _load_key(context, cert_pem, key_pem)
    if client_ca_pem:
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=client_ca_pem.decode("ascii"))
    context.set_alpn_protocols(list(_PROTOCOLS))
    return context


def replace_leaf(context: ssl.SSLContext, cert_pem: bytes, key_pem: bytes) -> None:
    """Show another certificate in every handshake that begins from now on."""
    _load_key(context, cert_pem, key_pem)


def client_context(
    ca_pem: bytes | None = None,
    cert_pem: bytes | None = None,
    key_pem: bytes | None = None,
    *,
    http2: bool = True,
) -> ssl.SSLContext:
    """Return a client's context: it trusts `ca_pem`, without one the system's CAs.

    It shows `cert_pem` when that is given with its key. Raises ValueError and ssl.SSLError for PEM
    that cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _harden(context)
    if ca_pem is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        context.load_verify_locations(cadata=ca_pem.decode("ascii"))
    if cert_pem is not None and key_pem is not None:
        _load_key(context, cert_pem, key_pem)
    context.set_alpn_protocols(list(_PROTOCOLS if http2 else _PROTOCOLS[1:]))
    return context


def parse_peer(certificate_der: bytes) -> Peer:
    """Read who a verified client certificate names; raises ValueError when it cannot be read."""
    certificate = x509.load_der_x509_certificate(certificate_der)
    try:
        subject = read_subject(certificate)
    except CsrError as error:
        raise ValueError(f"the client certificate names nobody: {error}") from error
    return Peer(
        common_name=subject.common_name,
        organizations=subject.organizations,
        not_after_unix_s=certificate.not_valid_after_utc.timestamp(),
        fingerprint=hashlib.sha256(certificate_der).hexdigest(),
    )


def _harden(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION


def _load_key(context: ssl.SSLContext, cert_pem: bytes, key_pem: bytes) -> None:
    with _memory_file(cert_pem) as cert_path, _memory_file(key_pem) as key_path:
        context.load_cert_chain(cert_path, key_path)


@contextmanager
def _memory_file(content: bytes) -> Iterator[str]:
    """Give `content` a path for as long as the block runs."""
    fd = os.memfd_create("hublet-pem", os.MFD_CLOEXEC)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)
