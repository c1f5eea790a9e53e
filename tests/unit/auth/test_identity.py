import dataclasses
import datetime as dt
import ipaddress
import json
import ssl

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from hub.auth.authority import (
    AUTHORITY_LIFE,
    create_authority,
    issue_serving_leaf,
    names_of,
    serving_names,
)
from hub.auth.certificates import mint_client
from hub.auth.errors import IdentityError
from hub.auth.identity import HubIdentity, create_identity, from_bundle
from hub.auth.keypair import KeyPair, load_private_key, new_private_key
from hub.auth.subject import read_subject
from hub.clock import SystemClock
from tests.unit.auth.support import (
    NOW,
    VirtualClock,
    client_context,
    handshake,
    make_csr,
    server_context,
)

URL = "https://Hub.Example.test:6443"
NAMES = serving_names(URL, ["10.0.0.7", "hub-0.hub"])


@pytest.fixture
def identity() -> HubIdentity:
    return create_identity(URL, VirtualClock(), names=NAMES)


def test_serving_names_start_with_the_host_and_hold_each_name_once() -> None:
    names = serving_names("https://LOCALHOST:1", ["a.b", "localhost", "0:0:0:0:0:0:0:1", "A.B"])
    assert names == (
        "localhost",
        "a.b",
        "::1",
        "127.0.0.1",
        "kubernetes",
        "kubernetes.default.svc",
    )


def test_an_ipv6_url_becomes_an_address() -> None:
    assert serving_names("https://[2001:db8::5]:6443")[0] == "2001:db8::5"


@pytest.mark.parametrize("url", ["http://hub", "hub:6443", "https://", "https://:6443", ""])
def test_a_url_without_https_or_host_is_refused(url: str) -> None:
    with pytest.raises(IdentityError, match="https://HOST"):
        serving_names(url)


def test_a_name_outside_ascii_is_refused_with_advice() -> None:
    ca = create_authority("ca", NOW)
    with pytest.raises(IdentityError, match="xn--"):
        issue_serving_leaf(ca, new_private_key(), names=["höbli.test"], now=NOW)


def test_the_leaf_carries_every_name_in_its_kind(identity: HubIdentity) -> None:
    leaf = identity.leaf.certificate()
    san = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert san.get_values_for_type(x509.DNSName) == [
        "hub.example.test",
        "hub-0.hub",
        "localhost",
        "kubernetes",
        "kubernetes.default.svc",
    ]
    assert san.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address(a) for a in ("10.0.0.7", "127.0.0.1", "::1")
    ]
    assert names_of(leaf) == NAMES


def _is_trusted(identity: HubIdentity, name: str, when: dt.datetime) -> bool:
    subject = x509.DNSName(name)
    verifier = (
        PolicyBuilder()
        .store(Store([identity.serving_ca.certificate()]))
        .time(when)
        .build_server_verifier(subject)
    )
    try:
        verifier.verify(identity.leaf.certificate(), [])
    except VerificationError:
        return False
    return True


def test_the_leaf_verifies_against_the_serving_ca_for_its_year_only(identity: HubIdentity) -> None:
    assert _is_trusted(identity, "kubernetes.default.svc", NOW)
    assert _is_trusted(identity, "hub.example.test", NOW + dt.timedelta(days=364))
    assert not _is_trusted(identity, "hub.example.test", NOW + dt.timedelta(days=366))
    assert not _is_trusted(identity, "other.example.test", NOW)
    stranger = create_identity(URL, VirtualClock(), names=NAMES)
    mixed = dataclasses.replace(stranger, leaf=identity.leaf)
    assert not _is_trusted(mixed, "hub.example.test", NOW)


def test_a_real_handshake_works_under_every_name_and_shows_the_client() -> None:
    identity = create_identity(URL, SystemClock(), names=NAMES)
    admin = identity.mint_admin(SystemClock().now())
    server = server_context(identity.leaf, identity.client_ca.cert_pem)
    client = client_context(identity.serving_ca.cert_pem, admin)
    for name in NAMES:
        shown = x509.load_der_x509_certificate(handshake(server, client, name))
        subject = read_subject(shown)
        assert (subject.common_name, subject.organizations) == ("admin", ("system:masters",))


def test_the_server_refuses_a_client_of_the_serving_ca_or_of_another_hub() -> None:
    now = SystemClock().now()
    identity = create_identity(URL, SystemClock(), names=NAMES)
    server = server_context(identity.leaf, identity.client_ca.cert_pem)
    for authority in (identity.serving_ca, create_authority("other", now)):
        forged = mint_client("admin", ["system:masters"], authority, now=now)
        client = client_context(identity.serving_ca.cert_pem, forged)
        with pytest.raises(ssl.SSLError):
            handshake(server, client, "localhost")


def test_the_serving_leaf_cannot_be_used_as_a_client_certificate() -> None:
    identity = create_identity(URL, SystemClock(), names=NAMES)
    # even when one CA were trusted for both, the extended key usage keeps the roles apart
    server = server_context(identity.leaf, identity.serving_ca.cert_pem)
    client = client_context(identity.serving_ca.cert_pem, identity.leaf)
    with pytest.raises(ssl.SSLError):
        handshake(server, client, "localhost")


def test_both_cas_last_ten_years_and_sign_leaves_only(identity: HubIdentity) -> None:
    assert identity.serving_ca.key_pem != identity.client_ca.key_pem
    for ca in (identity.serving_ca.certificate(), identity.client_ca.certificate()):
        assert ca.not_valid_before_utc < NOW - dt.timedelta(minutes=5)
        assert ca.not_valid_after_utc == NOW.replace(microsecond=0) + AUTHORITY_LIFE
        basic = ca.extensions.get_extension_for_class(x509.BasicConstraints)
        assert basic.critical
        assert basic.value == x509.BasicConstraints(ca=True, path_length=0)
        usage = ca.extensions.get_extension_for_class(x509.KeyUsage).value
        assert usage.key_cert_sign
        assert not usage.digital_signature


def test_a_leaf_never_outlives_its_ca(identity: HubIdentity) -> None:
    late = NOW + AUTHORITY_LIFE - dt.timedelta(days=10)
    renewed = identity.with_leaf_for(NAMES, late).leaf.certificate()
    assert renewed.not_valid_after_utc == identity.serving_ca.certificate().not_valid_after_utc


def test_a_leaf_with_life_left_and_the_same_names_stays(identity: HubIdentity) -> None:
    later = NOW + dt.timedelta(days=240)
    assert identity.with_leaf_for(tuple(reversed(NAMES)), later) is identity


@pytest.mark.parametrize("days", [245, 364, 900])
def test_a_leaf_with_less_than_a_third_left_is_renewed_under_the_same_key(
    identity: HubIdentity, days: int
) -> None:
    later = NOW + dt.timedelta(days=days)
    renewed = identity.with_leaf_for(NAMES, later)
    assert renewed.leaf.cert_pem != identity.leaf.cert_pem
    assert renewed.leaf.key_pem == identity.leaf.key_pem
    assert dataclasses.replace(renewed, leaf=identity.leaf) == identity
    assert _is_trusted(renewed, "hub.example.test", later)


def test_other_names_get_another_leaf_and_nothing_else_changes(identity: HubIdentity) -> None:
    moved = identity.with_leaf_for(serving_names("https://elsewhere.test"), NOW)
    assert dataclasses.replace(moved, leaf=identity.leaf) == identity
    assert _is_trusted(moved, "elsewhere.test", NOW)
    assert not _is_trusted(moved, "hub.example.test", NOW)


def test_two_hubs_share_nothing() -> None:
    clock = VirtualClock()
    one, two = (create_identity(URL, clock, names=NAMES) for _ in range(2))
    assert one.hub_id != two.hub_id
    assert one.context_cluster != two.context_cluster
    assert one.signing_key_pem != two.signing_key_pem
    assert one.serving_ca.certificate().subject != two.serving_ca.certificate().subject


def test_the_context_cluster_name_can_be_chosen() -> None:
    identity = create_identity(URL, VirtualClock(), names=NAMES, context_cluster="prod")
    assert identity.context_cluster == "prod"
    assert identity.issuer == URL


def test_a_bundle_survives_json_and_gives_the_same_identity(identity: HubIdentity) -> None:
    assert from_bundle(json.loads(json.dumps(identity.to_bundle()))) == identity


def test_no_private_key_shows_in_a_repr(identity: HubIdentity) -> None:
    assert "PRIVATE" not in repr(identity)
    assert "PRIVATE" not in repr(identity.leaf)


@pytest.mark.parametrize(
    "field", ["hubID", "servingCA", "clientCA", "leaf", "signingKey", "issuer", "contextCluster"]
)
def test_a_bundle_without_a_field_is_refused_by_name(identity: HubIdentity, field: str) -> None:
    bundle = identity.to_bundle()
    del bundle[field]
    with pytest.raises(IdentityError, match=field):
        from_bundle(bundle)


def test_a_bundle_of_another_version_is_refused(identity: HubIdentity) -> None:
    with pytest.raises(IdentityError, match="version 2 is not 1"):
        from_bundle(identity.to_bundle() | {"version": 2})


def test_a_bundle_whose_key_and_certificate_differ_is_refused(identity: HubIdentity) -> None:
    bundle = identity.to_bundle()
    bundle["clientCA"]["key"] = new_private_key()
    with pytest.raises(IdentityError, match="clientCA"):
        from_bundle(bundle)


def test_a_bundle_whose_leaf_comes_from_another_ca_is_refused(identity: HubIdentity) -> None:
    bundle = identity.to_bundle()
    leaf = issue_serving_leaf(
        create_authority("other", NOW), identity.leaf.key_pem, names=NAMES, now=NOW
    )
    bundle["leaf"]["certificate"] = leaf.cert_pem
    with pytest.raises(IdentityError, match="leaf was not issued"):
        from_bundle(bundle)


def test_a_bundle_with_a_damaged_certificate_or_key_is_refused(identity: HubIdentity) -> None:
    bundle = identity.to_bundle()
    bundle["leaf"]["certificate"] = "rubbish"
    with pytest.raises(IdentityError, match="leaf holds no PEM"):
        from_bundle(bundle)
    with pytest.raises(IdentityError, match="PEM key"):
        from_bundle(identity.to_bundle() | {"signingKey": "rubbish"})


def test_a_key_on_another_curve_is_refused() -> None:
    csr_key = make_csr("x", key=None)[1]
    assert load_private_key(csr_key).curve.name == "secp256r1"
    from cryptography.hazmat.primitives.asymmetric import ec

    _, p384 = make_csr("x", key=ec.generate_private_key(ec.SECP384R1()))
    with pytest.raises(IdentityError, match="P-256"):
        KeyPair("", p384).private_key()
