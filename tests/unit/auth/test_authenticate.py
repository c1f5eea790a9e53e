from dataclasses import dataclass

import pytest

from hub.auth.authenticate import NOBODY, Authenticator, bearer_token
from hub.auth.bootstrap_token import BootstrapToken
from hub.auth.errors import TokenError
from hub.auth.keypair import new_private_key
from hub.auth.tokens import ObjectRef, ServiceAccountTokens
from hub.auth.user import User
from hub.http.api import Peer
from hub.meta.errors import ApiError
from tests.unit.auth.support import NOW, VirtualClock

ISSUER = "https://hub.test"
ROBOT = ObjectRef("ServiceAccount", "tour", "robot", "uid-1")
BOOTSTRAP = BootstrapToken("abcdef", "0123456789abcdef")
AGENT = Peer(
    common_name="system:open-cluster-management:c1:a",
    organizations=("system:open-cluster-management:c1", "x"),
    not_after_unix_s=NOW.timestamp() + 60,
    fingerprint="ab" * 32,
)
EXPIRED = Peer("u", ("g",), NOW.timestamp(), "cd" * 32)
NAMELESS = Peer("", ("system:masters",), NOW.timestamp() + 60, "ef" * 32)


@dataclass(frozen=True)
class Hub:
    authenticator: Authenticator
    tokens: ServiceAccountTokens

    def token(self) -> str:
        return self.tokens.issue(ROBOT, now=NOW, expiration_s=600).token

    def who(self, peer: Peer | None = None, authorization: str | None = None) -> User:
        return self.authenticator.authenticate(peer=peer, authorization=authorization, now=NOW)


@pytest.fixture(scope="module")
def hub() -> Hub:
    tokens = ServiceAccountTokens(
        new_private_key(),
        ISSUER,
        find_uid=lambda *key: "uid-1" if key == ("ServiceAccount", "tour", "robot") else None,
        new_id=VirtualClock().uid,
    )
    secret = BOOTSTRAP.as_secret()
    found = {("kube-system", "bootstrap-token-abcdef"): secret}
    return Hub(Authenticator(tokens, find_secret=lambda *key: found.get(key)), tokens)


def test_nobody_is_anonymous_and_not_authenticated(hub: Hub) -> None:
    assert hub.who() == NOBODY == User("system:anonymous", ("system:unauthenticated",))


def test_a_certificate_gives_user_groups_and_its_fingerprint(hub: Hub) -> None:
    assert hub.who(AGENT) == User(
        AGENT.common_name,
        ("system:open-cluster-management:c1", "x", "system:authenticated"),
        extra={"authentication.kubernetes.io/credential-id": (f"X509SHA256={'ab' * 32}",)},
    )


def test_an_expired_certificate_is_unauthorized_and_not_anonymous(hub: Hub) -> None:
    with pytest.raises(ApiError) as caught:
        hub.who(EXPIRED)
    assert caught.value.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


def test_an_expired_certificate_does_not_hide_a_good_token(hub: Hub) -> None:
    assert hub.who(EXPIRED, f"Bearer {hub.token()}").uid == "uid-1"


def test_a_good_certificate_wins_over_any_token(hub: Hub) -> None:
    for authorization in (f"Bearer {hub.token()}", "Bearer rubbish", "Basic x"):
        assert hub.who(AGENT, authorization).name == AGENT.common_name


def test_a_certificate_without_a_name_is_nobody_whatever_its_groups(hub: Hub) -> None:
    assert hub.who(NAMELESS) == NOBODY
    assert hub.who(NAMELESS, f"Bearer {hub.token()}").uid == "uid-1"


def test_a_certificate_that_says_authenticated_itself_is_not_told_twice(hub: Hub) -> None:
    peer = Peer("u", ("system:authenticated", "g"), AGENT.not_after_unix_s, "00")
    assert hub.who(peer).groups == ("system:authenticated", "g")


def test_a_service_account_token_is_authenticated(hub: Hub) -> None:
    user = hub.who(None, f"Bearer {hub.token()}")
    assert user.name == "system:serviceaccount:tour:robot"
    assert user.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:tour",
        "system:authenticated",
    )
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")


def test_a_bootstrap_token_is_authenticated(hub: Hub) -> None:
    assert hub.who(None, f"bearer {BOOTSTRAP}") == User(
        "system:bootstrap:abcdef",
        (
            "system:bootstrappers",
            "system:bootstrappers:managedcluster",
            "system:authenticated",
        ),
    )


@pytest.mark.parametrize(
    "token", ["rubbish", "abcdef.0123456789abcdee", "zzzzzz.0123456789abcdef", "a.b.c"]
)
def test_a_bad_token_is_unauthorized_and_says_no_more(hub: Hub, token: str) -> None:
    with pytest.raises(ApiError) as caught:
        hub.who(None, f"Bearer {token}")
    assert (caught.value.code, caught.value.message) == (401, "Unauthorized")


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (None, None),
        ("", None),
        ("Bearer", None),
        ("Bearer ", None),
        ("Bearer  x", None),
        ("Basic dTpw", None),
        ("Bearerx y", None),
        ("Bearer x", "x"),
        ("  BEARER x  ", "x"),
        ("bearer x y", "x"),
    ],
)
def test_a_header_is_read_as_kube_apiserver_reads_it(header: str | None, token: str | None) -> None:
    assert bearer_token(header) == token


def test_another_scheme_is_nobody(hub: Hub) -> None:
    assert hub.who(None, "Basic dTpw") == NOBODY


def test_a_token_review_asks_for_audiences(hub: Hub) -> None:
    token = hub.tokens.issue(ROBOT, now=NOW, expiration_s=600, audiences=["vault"]).token
    verified = hub.authenticator.authenticate_token(token, now=NOW, audiences=["vault", "x"])
    assert verified.audiences == ("vault",)
    assert verified.user.groups[-1] == "system:authenticated"
    with pytest.raises(TokenError, match="audiences"):
        hub.authenticator.authenticate_token(token, now=NOW)


def test_a_bootstrap_token_is_for_the_hub_only(hub: Hub) -> None:
    text = str(BOOTSTRAP)
    reviewed = hub.authenticator.authenticate_token(text, now=NOW, audiences=[ISSUER])
    assert reviewed.audiences == (ISSUER,)
    with pytest.raises(TokenError, match="vault"):
        hub.authenticator.authenticate_token(text, now=NOW, audiences=["vault"])
