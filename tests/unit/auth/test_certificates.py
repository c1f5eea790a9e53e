import base64
import datetime as dt
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hub.auth.authority import AUTHORITY_LIFE, create_authority, issue_serving_leaf
from hub.auth.certificates import (
    CLIENT_USAGES,
    check_client_usages,
    mint_client,
    parse_csr,
    sign_client_certificate,
)
from hub.auth.errors import CsrError
from hub.auth.keypair import KeyPair, new_private_key
from hub.auth.subject import build_subject, read_subject
from hub.clock import SystemClock
from tests.unit.auth.support import (
    NOW,
    client_context,
    handshake,
    make_csr,
    make_csr_for,
    server_context,
)

CLUSTER = "a-cluster-with-a-name-as-long-as-kubernetes-lets-a-namespace-be"
USER = f"system:open-cluster-management:{CLUSTER}:agent"
GROUPS = (
    "system:open-cluster-management:managed-clusters",
    f"system:open-cluster-management:{CLUSTER}",
)
SECOND = dt.timedelta(seconds=1)
BACKDATE = dt.timedelta(minutes=5)


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    return create_authority("client-ca", NOW)


def _sign(
    authority: KeyPair, *, duration_s: int | None = None, now: dt.datetime = NOW
) -> x509.Certificate:
    csr, _ = make_csr("u")
    pem = sign_client_certificate(
        csr, authority, usages=CLIENT_USAGES, now=now, duration_s=duration_s
    )
    return x509.load_pem_x509_certificate(pem)


def test_a_request_is_read_in_full() -> None:
    csr, _ = make_csr(USER, GROUPS, dns_names=["a.addon.test"])
    info = parse_csr(csr)
    assert (info.common_name, info.organizations) == (USER, GROUPS)
    assert info.dns_names == ("a.addon.test",)
    assert info.key_type == "EC secp256r1"
    assert info.ip_addresses == info.emails == info.uris == ()


def test_a_signed_certificate_has_the_shape_of_kube_controller_managers(authority: KeyPair) -> None:
    csr, _ = make_csr(USER, GROUPS, dns_names=["a.addon.test"])
    pem = sign_client_certificate(csr, authority, usages=CLIENT_USAGES, now=NOW)
    certificate = x509.load_pem_x509_certificate(pem)
    subject = read_subject(certificate)
    assert (subject.common_name, subject.organizations) == (USER, GROUPS)
    shape = {e.oid: (e.critical, e.value) for e in certificate.extensions}
    identifier = (
        authority.certificate().extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    )
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=True,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    assert shape == {
        x509.BasicConstraints.oid: (True, x509.BasicConstraints(ca=False, path_length=None)),
        x509.AuthorityKeyIdentifier.oid: (
            False,
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
        ),
        x509.ExtendedKeyUsage.oid: (
            False,
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]),
        ),
        x509.KeyUsage.oid: (True, usage),
        x509.SubjectAlternativeName.oid: (
            False,
            x509.SubjectAlternativeName([x509.DNSName("a.addon.test")]),
        ),
    }
    certificate.verify_directly_issued_by(authority.certificate())


def test_only_the_usages_asked_for_are_given(authority: KeyPair) -> None:
    csr, _ = make_csr("u")
    bare = x509.load_pem_x509_certificate(
        sign_client_certificate(csr, authority, usages=["client auth"], now=NOW)
    )
    with pytest.raises(x509.ExtensionNotFound):
        bare.extensions.get_extension_for_class(x509.KeyUsage)
    signing = x509.load_pem_x509_certificate(
        sign_client_certificate(
            csr, authority, usages=["digital signature", "client auth"], now=NOW
        )
    )
    usage = signing.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_encipherment) == (True, False)


@pytest.mark.parametrize(
    ("usages", "message"),
    [
        (["digital signature"], "missing required usage for client certificate: client auth"),
        ([], "missing required usage"),
        (["client auth", "server auth"], "invalid usage for client certificate: server auth"),
        (["client auth", "cert sign"], "invalid usage for client certificate: cert sign"),
    ],
)
def test_usages_of_another_signer_are_refused(
    authority: KeyPair, usages: list[str], message: str
) -> None:
    csr, _ = make_csr("u")
    with pytest.raises(CsrError, match=message):
        check_client_usages(usages)
    with pytest.raises(CsrError, match=message):
        sign_client_certificate(csr, authority, usages=usages, now=NOW)


@pytest.mark.parametrize(
    ("asked_s", "ends_after"),
    [
        (None, dt.timedelta(days=365) - BACKDATE),
        (10 * 365 * 86400, dt.timedelta(days=365) - BACKDATE),
        (86400, dt.timedelta(days=1) - BACKDATE),
        (8 * 3600, dt.timedelta(hours=8) - BACKDATE),
        (8 * 3600 - 1, dt.timedelta(hours=8) - SECOND),
        (3600, dt.timedelta(hours=1)),
        (600, dt.timedelta(minutes=10)),
        (599, dt.timedelta(minutes=10)),
        (1, dt.timedelta(minutes=10)),
    ],
)
def test_a_certificate_lasts_as_long_as_kubernetes_would_let_it(
    authority: KeyPair, asked_s: int | None, ends_after: dt.timedelta
) -> None:
    certificate = _sign(authority, duration_s=asked_s)
    now = NOW.replace(microsecond=0)
    assert certificate.not_valid_before_utc == now - BACKDATE
    assert certificate.not_valid_after_utc == now + ends_after


def test_a_certificate_never_outlives_its_ca(authority: KeyPair) -> None:
    end = authority.certificate().not_valid_after_utc
    assert _sign(authority, now=end - SECOND).not_valid_after_utc == end


def test_an_expired_ca_signs_nothing(authority: KeyPair) -> None:
    with pytest.raises(CsrError, match="the client CA expired"):
        _sign(authority, now=NOW + AUTHORITY_LIFE)


def test_serial_numbers_differ(authority: KeyPair) -> None:
    assert _sign(authority).serial_number != _sign(authority).serial_number


def test_a_signed_certificate_opens_a_connection_and_names_its_user() -> None:
    now = SystemClock().now()
    serving, clients = create_authority("serving", now), create_authority("client", now)
    leaf = issue_serving_leaf(serving, new_private_key(), names=["localhost"], now=now)
    csr, key_pem = make_csr(USER, GROUPS)
    signed = sign_client_certificate(
        csr, clients, usages=CLIENT_USAGES, now=now, duration_s=3600
    ).decode()
    shown = handshake(
        server_context(leaf, clients.cert_pem),
        client_context(serving.cert_pem, KeyPair(signed, key_pem)),
        "localhost",
    )
    subject = read_subject(x509.load_der_x509_certificate(shown))
    assert (subject.common_name, subject.organizations) == (USER, GROUPS)


def test_an_expired_certificate_opens_no_connection() -> None:
    now = SystemClock().now()
    serving = create_authority("serving", now)
    clients = create_authority("client", now - dt.timedelta(days=2))
    leaf = issue_serving_leaf(serving, new_private_key(), names=["localhost"], now=now)
    old = mint_client("u", [], clients, now=now - dt.timedelta(days=1), duration_s=3600)
    with pytest.raises(ssl.SSLError, match="expired"):
        handshake(
            server_context(leaf, clients.cert_pem),
            client_context(serving.cert_pem, old),
            "localhost",
        )


def _der(pem: bytes) -> bytearray:
    lines = pem.decode().strip().split("\n")[1:-1]
    return bytearray(base64.b64decode("".join(lines)))


def _pem(der: bytearray, label: str = "CERTIFICATE REQUEST") -> bytes:
    body = base64.encodebytes(bytes(der)).decode()
    return f"-----BEGIN {label}-----\n{body}-----END {label}-----\n".encode()


def test_a_request_changed_after_signing_is_refused() -> None:
    csr, _ = make_csr("system:open-cluster-management:cluster-a:agent")
    der = _der(csr)
    at = der.index(b"cluster-a")
    der[at : at + 9] = b"cluster-b"
    with pytest.raises(CsrError, match="signature of the request does not match"):
        parse_csr(_pem(der))


def test_a_request_with_a_damaged_signature_is_refused() -> None:
    der = _der(make_csr("u")[0])
    der[-3] ^= 0x55
    with pytest.raises(CsrError, match=r"signature|readable"):
        parse_csr(_pem(der))


def test_a_request_with_a_swapped_key_is_refused() -> None:
    one, two = _der(make_csr("u")[0]), _der(make_csr("u")[0])
    point = one.index(b"\x03\x42\x00\x04")
    one[point : point + 68] = two[point : point + 68]
    with pytest.raises(CsrError, match="signature"):
        parse_csr(_pem(one))


@pytest.mark.parametrize(
    "label", ["CERTIFICATE", "NEW CERTIFICATE REQUEST", "PRIVATE KEY", "X509 CRL"]
)
def test_another_pem_block_is_refused_by_its_type(label: str) -> None:
    der = _der(make_csr("u")[0])
    with pytest.raises(CsrError, match=f"must be CERTIFICATE REQUEST, not {label}"):
        parse_csr(_pem(der, label))


def test_two_blocks_are_refused_whichever_comes_first() -> None:
    csr, other = make_csr("u")[0], make_csr("system:admin")[0]
    for both in (csr + other, csr + b"-----BEGIN X-----\n", other + csr):
        with pytest.raises(CsrError, match="exactly one PEM block"):
            parse_csr(both)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"nonsense",
        b"-----BEGIN CERTIFICATE REQUEST-----\n",
        b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE REQUEST-----\n=AAA\n-----END CERTIFICATE REQUEST-----\n",
        b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
        b"-----BEGIN CERTIFICATE REQUEST-----\nK: v\n\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
    ],
)
def test_text_that_is_no_request_is_refused(text: bytes) -> None:
    with pytest.raises(CsrError):
        parse_csr(text)


def test_base64_after_the_padding_is_refused() -> None:
    # a lenient decoder would drop it, so that two texts would be one request
    padded = [c for c, _ in (make_csr("u" * n) for n in range(1, 9)) if b"=\n-----END" in c]
    assert padded
    for csr in padded:
        with pytest.raises(CsrError, match="readable"):
            parse_csr(csr.replace(b"=\n-----END", b"=AAAA\n-----END"))


def test_text_around_the_block_is_allowed() -> None:
    # `openssl req -text` puts a description in front
    csr, _ = make_csr("u")
    assert parse_csr(b"Certificate Request:\n    Version: 1\n" + csr + b"\n").common_name == "u"
    assert parse_csr(csr.replace(b"\n", b"\r\n")).common_name == "u"


def test_two_common_names_are_refused() -> None:
    names = [x509.NameAttribute(NameOID.COMMON_NAME, n) for n in ("u", "system:admin")]
    csr, _ = make_csr_for(x509.Name(names))
    with pytest.raises(CsrError, match="more than one common name"):
        parse_csr(csr)


def test_a_nul_in_a_name_is_refused() -> None:
    for csr, _ in (make_csr("admin\0.test"), make_csr("u", ["system:masters\0x"])):
        with pytest.raises(CsrError, match="plain text"):
            parse_csr(csr)


def test_a_request_without_a_common_name_can_be_read_but_not_signed(authority: KeyPair) -> None:
    csr, _ = make_csr_for(x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "o")]))
    assert parse_csr(csr).common_name == ""
    with pytest.raises(CsrError, match="no common name"):
        sign_client_certificate(csr, authority, usages=CLIENT_USAGES, now=NOW)


def test_organizations_in_one_rdn_are_read_as_go_writes_them(authority: KeyPair) -> None:
    values = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in ("one", "two")]
    name = x509.Name(
        [
            x509.RelativeDistinguishedName(values),
            x509.RelativeDistinguishedName([x509.NameAttribute(NameOID.COMMON_NAME, "u")]),
        ]
    )
    csr, _ = make_csr_for(name)
    assert parse_csr(csr).organizations == ("one", "two")
    pem = sign_client_certificate(csr, authority, usages=CLIENT_USAGES, now=NOW)
    assert read_subject(x509.load_pem_x509_certificate(pem)).organizations == ("one", "two")


def test_other_parts_of_the_subject_are_not_copied(authority: KeyPair) -> None:
    pairs = [
        (NameOID.COUNTRY_NAME, "CH"),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, "unit"),
        (NameOID.COMMON_NAME, "u"),
    ]
    csr, _ = make_csr_for(x509.Name([x509.NameAttribute(o, v) for o, v in pairs]))
    pem = sign_client_certificate(csr, authority, usages=CLIENT_USAGES, now=NOW)
    assert x509.load_pem_x509_certificate(pem).subject == build_subject("u", [])


def test_extensions_of_the_request_do_not_make_a_ca(authority: KeyPair) -> None:
    from cryptography.hazmat.primitives import hashes, serialization

    csr = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(build_subject("u", []))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=True)
        .sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    pem = sign_client_certificate(csr, authority, usages=CLIENT_USAGES, now=NOW)
    extensions = x509.load_pem_x509_certificate(pem).extensions
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    usage = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_common_key_types_are_read_and_weak_ones_refused() -> None:
    good: dict[str, CertificateIssuerPrivateKeyTypes] = {
        "EC secp384r1": ec.generate_private_key(ec.SECP384R1()),
        "RSA 2048": rsa.generate_private_key(65537, 2048),
    }
    for text, key in good.items():
        assert parse_csr(make_csr("u", key=key)[0]).key_type == text
    weak_keys: list[CertificateIssuerPrivateKeyTypes] = [
        rsa.generate_private_key(65537, 1024),
        ec.generate_private_key(ec.SECP256K1()),
    ]
    for weak in weak_keys:
        with pytest.raises(CsrError, match="public key must be"):
            parse_csr(make_csr("u", key=weak)[0])


def test_an_ed25519_request_is_read() -> None:
    from cryptography.hazmat.primitives import serialization

    csr = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(build_subject("u", []))
        .sign(ed25519.Ed25519PrivateKey.generate(), None)
        .public_bytes(serialization.Encoding.PEM)
    )
    assert parse_csr(csr).key_type == "Ed25519"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
def test_openssl_verifies_the_chain_and_its_requests_can_be_signed(tmp_path: Path) -> None:
    now = SystemClock().now()
    authority = create_authority("client-ca", now)
    # short ones: the openssl command keeps to X.520's 64 characters
    groups = (
        "system:open-cluster-management:managed-clusters",
        "system:open-cluster-management:c1",
    )
    subject = f"/O={groups[0]}/O={groups[1]}/CN=system:open-cluster-management:c1:agent"
    request = "req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    csr = _openssl(tmp_path, request, "-keyout", "key.pem", "-subj", subject).stdout.encode()
    assert parse_csr(csr).organizations == groups
    pem = sign_client_certificate(csr, authority, usages=CLIENT_USAGES, now=now)
    (tmp_path / "ca.pem").write_text(authority.cert_pem)
    (tmp_path / "leaf.pem").write_bytes(pem)
    result = _openssl(tmp_path, "verify -x509_strict -purpose sslclient -CAfile ca.pem leaf.pem")
    assert (result.returncode, result.stdout) == (0, "leaf.pem: OK\n"), result.stderr


def _openssl(cwd: Path, words: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = ["openssl", *words.split(), *more]
    return subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True, timeout=30)
