import hashlib
import ssl
from pathlib import Path

import pytest

from hub.http.tls import client_context, parse_peer, server_context
from tests.unit.http.pki import Authority


def test_a_peer_is_the_common_name_and_every_organization_in_order() -> None:
    pem = Authority().client([("O", "b"), ("CN", "one"), ("O", "a"), ("O", "b")])
    peer = parse_peer(pem.der())
    assert peer.common_name == "one"
    assert peer.organizations == ("b", "a", "b")
    assert peer.fingerprint == hashlib.sha256(pem.der()).hexdigest()
    assert peer.not_after_unix_s == int(peer.not_after_unix_s)


def test_a_certificate_with_two_common_names_names_nobody() -> None:
    pem = Authority().client([("CN", "one"), ("O", "a"), ("CN", "two")])
    with pytest.raises(ValueError, match="more than one common name"):
        parse_peer(pem.der())


def test_a_peer_may_have_no_name() -> None:
    peer = parse_peer(Authority().client([]).der())
    assert (peer.common_name, peer.organizations) == ("", ())


def test_what_is_not_a_certificate_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_peer(b"not a certificate")


def test_the_server_context_is_modern_and_keeps_no_sessions() -> None:
    authority = Authority()
    pem = authority.server()
    context = server_context(pem.cert, pem.key, authority.cert)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.verify_mode == ssl.CERT_OPTIONAL
    assert context.num_tickets == 0
    assert context.options & ssl.OP_NO_TICKET
    assert server_context(pem.cert, pem.key).verify_mode == ssl.CERT_NONE


def test_a_key_leaves_no_descriptor_behind() -> None:
    authority = Authority()
    pem = authority.client([("CN", "x")])
    before = list(Path("/proc/self/fd").iterdir())
    client_context(authority.cert, pem.cert, pem.key)
    assert len(list(Path("/proc/self/fd").iterdir())) == len(before)


def test_a_client_checks_the_server() -> None:
    context = client_context(Authority().cert)
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname


def test_a_key_of_another_certificate_is_refused() -> None:
    authority = Authority()
    one, other = authority.client([("CN", "a")]), authority.client([("CN", "b")])
    with pytest.raises(ssl.SSLError):
        client_context(authority.cert, one.cert, other.key)
