import base64
import datetime as dt
import re
from collections import Counter

import pytest

from hub.auth.bootstrap_token import (
    BootstrapToken,
    new_bootstrap_token,
    parse_bootstrap_token,
    verify_bootstrap_token,
)
from hub.auth.errors import TokenError
from hub.auth.user import User
from hub.clock import SystemClock
from hub.meta import Obj
from tests.unit.auth.support import NOW

TOKEN = BootstrapToken("abcdef", "0123456789abcdef")


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _verify(secret: Obj | None, token: BootstrapToken = TOKEN) -> User:
    def find(namespace: str, name: str) -> Obj | None:
        assert (namespace, name) == ("kube-system", f"bootstrap-token-{token.token_id}")
        return secret

    return verify_bootstrap_token(token, find_secret=find, now=NOW)


def _secret(**data: str | None) -> Obj:
    secret = TOKEN.as_secret()
    for key, value in data.items():
        name = key.replace("_", "-")
        if value is None:
            del secret["data"][name]
        else:
            secret["data"][name] = _b64(value)
    return secret


def test_a_token_is_made_fair_and_in_its_form() -> None:
    clock = SystemClock()
    made = [str(new_bootstrap_token(clock.token)) for _ in range(500)]
    assert len(set(made)) == 500
    assert all(re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", m) for m in made)
    counts = Counter("".join(made).replace(".", ""))
    assert len(counts) == 36
    # 11,000 letters, about 306 each: a biased alphabet would have its first letters at 350 and up
    assert max(counts.values()) < 420


def test_bytes_that_would_favour_some_letters_are_left_out() -> None:
    draws = iter([bytes([252, 255, 253]), bytes(range(32))])
    token = new_bootstrap_token(lambda _: next(draws))
    assert str(token) == "abcdef.ghijklmnopqrstuv"


@pytest.mark.parametrize(
    "text",
    [
        "abcdef.0123456789abcde",
        "abcdef.0123456789abcdef0",
        "abcde.0123456789abcdef",
        "ABCDEF.0123456789abcdef",
        "abcdef.0123456789abcdef\n",
        "abcdef-0123456789abcdef",
        "",
    ],
)
def test_another_form_is_no_bootstrap_token(text: str) -> None:
    assert parse_bootstrap_token(text) is None


def test_a_token_is_read_and_its_secret_never_shown() -> None:
    token = parse_bootstrap_token("abcdef.0123456789abcdef")
    assert token == TOKEN
    assert "0123456789" not in repr(token)


def test_a_good_token_stands_for_a_bootstrapper() -> None:
    assert _verify(_secret()) == User(
        "system:bootstrap:abcdef", ("system:bootstrappers", "system:bootstrappers:managedcluster")
    )


def test_extra_groups_are_sorted_and_given_once() -> None:
    secret = _secret(auth_extra_groups="system:bootstrappers:z,system:bootstrappers:a")
    assert _verify(secret).groups == (
        "system:bootstrappers",
        "system:bootstrappers:a",
        "system:bootstrappers:z",
    )
    for none in (_secret(auth_extra_groups=None), _secret(auth_extra_groups="")):
        assert _verify(none).groups == ("system:bootstrappers",)


@pytest.mark.parametrize(
    "groups",
    [
        "system:masters",
        "system:bootstrappers",
        "system:bootstrappers:",
        "system:bootstrappers:a,system:masters",
        "system:bootstrappers:a, system:bootstrappers:b",
        "system:bootstrappers:a\n",
        "system:bootstrappers:A",
        "xsystem:bootstrappers:a",
        ",",
    ],
)
def test_a_token_with_a_foreign_group_is_refused_as_a_whole(groups: str) -> None:
    with pytest.raises(TokenError, match="auth-extra-groups"):
        _verify(_secret(auth_extra_groups=groups))


def test_a_wrong_secret_is_refused() -> None:
    wrong = BootstrapToken("abcdef", "0123456789abcdeg")
    with pytest.raises(TokenError, match="secret part"):
        _verify(_secret(), wrong)


@pytest.mark.parametrize("stored", ["", None])
def test_a_secret_without_its_secret_part_matches_nothing(stored: str | None) -> None:
    with pytest.raises(TokenError, match="secret part"):
        _verify(_secret(token_secret=stored))


def test_a_token_id_that_differs_from_the_name_is_refused() -> None:
    with pytest.raises(TokenError, match="token-id"):
        _verify(_secret(token_id="fedcba"))


@pytest.mark.parametrize("usage", [None, "", "false", "True", "1"])
def test_a_token_not_meant_for_authentication_is_refused(usage: str | None) -> None:
    with pytest.raises(TokenError, match="usage-bootstrap-authentication"):
        _verify(_secret(usage_bootstrap_authentication=usage))


def test_a_token_ends_at_its_expiration() -> None:
    end = NOW.replace(microsecond=0) + dt.timedelta(seconds=1)
    secret = TOKEN.as_secret(expiration=end.astimezone(dt.timezone(dt.timedelta(hours=2))))
    assert secret["data"]["expiration"] == _b64("2031-05-17T08:30:16Z")
    _verify(secret)
    with pytest.raises(TokenError, match="expired"):
        verify_bootstrap_token(TOKEN, find_secret=lambda _, __: secret, now=end)


def test_an_expiration_with_another_offset_counts() -> None:
    _verify(_secret(expiration="2031-05-17T10:30:16+02:00"))
    with pytest.raises(TokenError, match="expired"):
        _verify(_secret(expiration="2031-05-17T09:30:16+02:00"))


@pytest.mark.parametrize("text", ["soon", "2031-13-01T00:00:00Z", "2099-01-01T00:00:00", "2099"])
def test_an_expiration_that_cannot_be_read_has_passed(text: str) -> None:
    with pytest.raises(TokenError, match="expired"):
        _verify(_secret(expiration=text))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "Opaque"}, "must be of type"),
        ({"type": None}, "must be of type"),
        ({"data": None}, "secret part"),
        ({"data": {"token-secret": "***"}}, "base64"),
        ({"data": {"token-secret": 7}}, "base64"),
        ({"metadata": {"deletionTimestamp": "2031-01-01T00:00:00Z"}}, "no secret"),
    ],
)
def test_a_secret_of_another_kind_is_refused(change: Obj, message: str) -> None:
    with pytest.raises(TokenError, match=message):
        _verify(_secret() | change)


def test_a_missing_secret_is_refused() -> None:
    with pytest.raises(TokenError, match="no secret kube-system/bootstrap-token-abcdef"):
        _verify(None)


def test_the_secret_carries_labels_and_no_expiration_unless_asked() -> None:
    secret = TOKEN.as_secret(labels={"app": "cluster-manager"})
    assert secret["metadata"]["labels"] == {"app": "cluster-manager"}
    assert "expiration" not in secret["data"]
    assert secret["type"] == "bootstrap.kubernetes.io/token"
