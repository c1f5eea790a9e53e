import base64
import datetime as dt
import json

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import HMACAlgorithm

from hub.auth import tokens as tokens_module
from hub.auth.errors import TokenError
from hub.auth.keypair import load_private_key, new_private_key
from hub.auth.tokens import ObjectRef, ServiceAccountTokens
from tests.unit.auth.support import NOW, VirtualClock

ISSUER = "https://hub.test:6443"
ROBOT = ObjectRef("ServiceAccount", "tour", "robot", "uid-1")
KEY = new_private_key()


class World:
    """The objects that exist: (kind, namespace, name) -> uid."""

    def __init__(self) -> None:
        self.uids = {("ServiceAccount", "tour", "robot"): "uid-1"}
        self.asked: list[tuple[str, str, str]] = []

    def find_uid(self, kind: str, namespace: str, name: str) -> str | None:
        self.asked.append((kind, namespace, name))
        return self.uids.get((kind, namespace, name))


@pytest.fixture
def world() -> World:
    return World()


def _tokens(world: World, *, key: str = KEY, issuer: str = ISSUER) -> ServiceAccountTokens:
    return ServiceAccountTokens(key, issuer, find_uid=world.find_uid, new_id=VirtualClock().uid)


@pytest.fixture
def tokens(world: World) -> ServiceAccountTokens:
    return _tokens(world)


def _payload(token: str) -> dict[str, object]:
    body = token.split(".")[1]
    payload = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    assert isinstance(payload, dict)
    return payload


def _seconds(count: float) -> dt.timedelta:
    return dt.timedelta(seconds=count)


def test_a_token_has_the_claims_of_kube_apiserver(tokens: ServiceAccountTokens) -> None:
    issued = tokens.issue(ROBOT, now=NOW, expiration_s=3600)
    second = int(NOW.timestamp())
    assert _payload(issued.token) == {
        "aud": [ISSUER],
        "exp": second + 3600,
        "iat": second,
        "iss": ISSUER,
        "jti": "00000001-0000-4000-8000-000000000000",
        "kubernetes.io": {
            "namespace": "tour",
            "serviceaccount": {"name": "robot", "uid": "uid-1"},
        },
        "nbf": second,
        "sub": "system:serviceaccount:tour:robot",
    }
    header = jwt.get_unverified_header(issued.token)
    assert header["alg"] == "ES256"
    assert header["kid"] == tokens.keys()["keys"][0]["kid"]
    assert issued.expiry == NOW.replace(microsecond=0) + _seconds(3600)
    assert issued.audiences == (ISSUER,)
    assert issued.credential_id == "JTI=00000001-0000-4000-8000-000000000000"


def test_a_token_stands_for_its_service_account(tokens: ServiceAccountTokens) -> None:
    issued = tokens.issue(ROBOT, now=NOW, expiration_s=600)
    verified = tokens.verify(issued.token, now=NOW)
    user = verified.user
    assert user.name == "system:serviceaccount:tour:robot"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:tour")
    assert user.uid == "uid-1"
    assert user.extra == {"authentication.kubernetes.io/credential-id": (issued.credential_id,)}
    assert verified.audiences == (ISSUER,)


@pytest.mark.parametrize("is_cached", [False, True])
def test_a_token_ends_at_its_expiry(tokens: ServiceAccountTokens, is_cached: bool) -> None:
    token = tokens.issue(ROBOT, now=NOW, expiration_s=600).token
    if is_cached:
        tokens.verify(token, now=NOW)
    end = NOW.replace(microsecond=0) + _seconds(600)
    tokens.verify(token, now=end - _seconds(0.001))
    with pytest.raises(TokenError, match="expired"):
        tokens.verify(token, now=end)


def test_a_token_from_a_clock_slightly_ahead_is_accepted(tokens: ServiceAccountTokens) -> None:
    token = tokens.issue(ROBOT, now=NOW, expiration_s=600).token
    tokens.verify(token, now=NOW - _seconds(59))
    with pytest.raises(TokenError, match="not valid yet"):
        tokens.verify(token, now=NOW - _seconds(62))


@pytest.mark.parametrize("is_cached", [False, True])
def test_a_token_dies_with_its_service_account(
    world: World, tokens: ServiceAccountTokens, is_cached: bool
) -> None:
    token = tokens.issue(ROBOT, now=NOW, expiration_s=600).token
    if is_cached:
        tokens.verify(token, now=NOW)
    del world.uids["ServiceAccount", "tour", "robot"]
    with pytest.raises(TokenError, match="ServiceAccount tour/robot of the token is gone"):
        tokens.verify(token, now=NOW)


def test_a_service_account_made_again_does_not_revive_old_tokens(
    world: World, tokens: ServiceAccountTokens
) -> None:
    token = tokens.issue(ROBOT, now=NOW, expiration_s=600).token
    world.uids["ServiceAccount", "tour", "robot"] = "uid-2"
    with pytest.raises(TokenError, match="gone"):
        tokens.verify(token, now=NOW)


@pytest.mark.parametrize(
    ("bound", "extra"),
    [
        (ObjectRef("Secret", "tour", "s", "uid-s"), {}),
        (ObjectRef("Pod", "tour", "p", "uid-p"), {"pod-name": ("p",), "pod-uid": ("uid-p",)}),
        (ObjectRef("Node", "", "n", "uid-n"), {"node-name": ("n",), "node-uid": ("uid-n",)}),
    ],
)
def test_a_bound_token_dies_with_its_object(
    world: World,
    tokens: ServiceAccountTokens,
    bound: ObjectRef,
    extra: dict[str, tuple[str, ...]],
) -> None:
    key = (bound.kind, bound.namespace, bound.name)
    world.uids[key] = bound.uid
    token = tokens.issue(ROBOT, now=NOW, expiration_s=600, bound=bound).token
    private = _payload(token)["kubernetes.io"]
    assert isinstance(private, dict)
    assert private[bound.kind.lower()] == {"name": bound.name, "uid": bound.uid}
    shown = dict(tokens.verify(token, now=NOW).user.extra)
    del shown["authentication.kubernetes.io/credential-id"]
    assert shown == {f"authentication.kubernetes.io/{k}": v for k, v in extra.items()}
    del world.uids[key]
    with pytest.raises(TokenError, match=f"{bound.kind} .* is gone"):
        tokens.verify(token, now=NOW)


def test_a_token_is_good_for_its_audiences_only(tokens: ServiceAccountTokens) -> None:
    token = tokens.issue(ROBOT, now=NOW, expiration_s=600, audiences=["vault", "db"]).token
    assert tokens.verify(token, now=NOW, audiences=["db", "x"]).audiences == ("db",)
    with pytest.raises(TokenError, match="audiences"):
        tokens.verify(token, now=NOW)
    with pytest.raises(TokenError, match="audiences"):
        tokens.verify(token, now=NOW, audiences=["x"])


def test_a_token_of_another_hub_is_refused(world: World, tokens: ServiceAccountTokens) -> None:
    other = _tokens(world, key=new_private_key())
    with pytest.raises(TokenError, match="not a token of this hub"):
        tokens.verify(other.issue(ROBOT, now=NOW, expiration_s=600).token, now=NOW)
    same_key = _tokens(world, issuer="https://other.test")
    token = same_key.issue(ROBOT, now=NOW, expiration_s=600, audiences=[ISSUER]).token
    with pytest.raises(TokenError, match="not a token of this hub"):
        tokens.verify(token, now=NOW)


def _valid_payload(tokens: ServiceAccountTokens) -> dict[str, object]:
    return _payload(tokens.issue(ROBOT, now=NOW, expiration_s=600).token)


def test_an_unsigned_token_and_one_signed_with_the_public_key_are_refused(
    tokens: ServiceAccountTokens,
) -> None:
    payload = _valid_payload(tokens)
    unsigned = jwt.encode(payload, "", algorithm="none")
    public = load_private_key(KEY).public_key()
    from cryptography.hazmat.primitives import serialization

    pem = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    # by hand: PyJWT itself refuses to sign with a public key
    parts = [{"alg": "HS256", "typ": "JWT"}, payload]
    signed = ".".join(
        base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts
    )
    mac = HMACAlgorithm(HMACAlgorithm.SHA256).sign(signed.encode(), pem)
    confused = f"{signed}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"
    for token in (unsigned, confused):
        with pytest.raises(TokenError, match="not a token of this hub"):
            tokens.verify(token, now=NOW)


def test_a_token_changed_in_any_part_is_refused(tokens: ServiceAccountTokens) -> None:
    token = tokens.issue(ROBOT, now=NOW, expiration_s=600).token
    tokens.verify(token, now=NOW)
    head, body, signature = token.split(".")
    forged = _payload(token) | {"sub": "system:serviceaccount:tour:admin"}
    other = base64.urlsafe_b64encode(json.dumps(forged).encode()).decode().rstrip("=")
    cut = signature[:-4] + ("AAAA" if signature[-4:] != "AAAA" else "BBBB")
    for bad in (f"{head}.{other}.{signature}", f"{head}.{body}.{cut}", f"{head}.{body}", token[1:]):
        with pytest.raises(TokenError):
            tokens.verify(bad, now=NOW)


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "....", "\udcff", "ü.ü.ü", "a" * 100_000])
def test_text_that_is_no_token_is_refused(tokens: ServiceAccountTokens, text: str) -> None:
    with pytest.raises(TokenError):
        tokens.verify(text, now=NOW)


@pytest.mark.parametrize(
    "change",
    [
        {"kubernetes.io": None},
        {"kubernetes.io": {"namespace": "tour"}},
        {"kubernetes.io": {"namespace": "tour", "serviceaccount": {"name": "robot"}}},
        {"kubernetes.io": "text"},
        {"exp": None},
        {"exp": "soon"},
        {"aud": None},
        {"aud": 5},
        {"jti": None},
        {"nbf": None},
        {"sub": "system:serviceaccount:tour:other"},
        {"sub": None},
    ],
)
def test_a_token_with_a_missing_or_odd_claim_is_refused(
    tokens: ServiceAccountTokens, change: dict[str, object]
) -> None:
    payload = {k: v for k, v in (_valid_payload(tokens) | change).items() if v is not None}
    token = jwt.encode(payload, load_private_key(KEY), "ES256")
    with pytest.raises(TokenError):
        tokens.verify(token, now=NOW)


def test_a_single_audience_written_as_text_is_read(tokens: ServiceAccountTokens) -> None:
    payload = _valid_payload(tokens) | {"aud": ISSUER}
    token = jwt.encode(payload, load_private_key(KEY), "ES256")
    assert tokens.verify(token, now=NOW).audiences == (ISSUER,)


def test_signatures_are_checked_once_but_objects_every_time(
    world: World, tokens: ServiceAccountTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tokens.issue(ROBOT, now=NOW, expiration_s=600).token
    first = tokens.verify(token, now=NOW)
    monkeypatch.setattr(tokens, "_decode", None)
    assert tokens.verify(token, now=NOW) == first
    assert world.asked == [("ServiceAccount", "tour", "robot")] * 2


def test_the_cache_forgets_the_oldest(
    tokens: ServiceAccountTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens_module, "MAX_CACHED", 3)
    made = [tokens.issue(ROBOT, now=NOW, expiration_s=600).token for _ in range(5)]
    for token in made:
        tokens.verify(token, now=NOW)
    assert len(tokens._cache) == 3
    for token in made:
        assert tokens.verify(token, now=NOW).user.uid == "uid-1"
    assert len(tokens._cache) == 3


def test_a_refused_token_is_not_remembered(world: World, tokens: ServiceAccountTokens) -> None:
    token = tokens.issue(ROBOT, now=NOW, expiration_s=600).token
    world.uids.clear()
    with pytest.raises(TokenError):
        tokens.verify(token, now=NOW)
    assert not tokens._cache


def test_anyone_can_check_a_token_with_the_published_keys(tokens: ServiceAccountTokens) -> None:
    token = tokens.issue(ROBOT, now=NOW, expiration_s=600).token
    keys = jwt.PyJWKSet.from_dict(json.loads(json.dumps(tokens.keys())))
    key = keys[str(jwt.get_unverified_header(token)["kid"])]
    payload = jwt.decode(
        token, key, ["ES256"], audience=ISSUER, options={"verify_iat": False, "verify_nbf": False}
    )
    assert payload["sub"] == "system:serviceaccount:tour:robot"


def test_coordinates_with_leading_zeros_keep_their_width(world: World) -> None:
    # the smallest private values give points whose coordinates need their zeros in a JWK
    from cryptography.hazmat.primitives import serialization

    for value in range(1, 300):
        key = ec.derive_private_key(value, ec.SECP256R1())
        numbers = key.public_key().public_numbers()
        if min(numbers.x.bit_length(), numbers.y.bit_length()) > 248:
            continue
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode()
        (shown,) = _tokens(world, key=pem).keys()["keys"]
        assert {len(shown["x"]), len(shown["y"])} == {43}
        return
    pytest.fail("no such point among the first 300")


def test_the_openid_configuration_points_to_the_keys(tokens: ServiceAccountTokens) -> None:
    assert tokens.openid_configuration("https://new.test:1/") == {
        "issuer": ISSUER,
        "jwks_uri": "https://new.test:1/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
