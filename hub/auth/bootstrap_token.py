"""Bootstrap tokens: ``<id>.<secret>``, kept as Secrets in kube-system.

Mirrors k8s.io/cluster-bootstrap and plugin/pkg/auth/authenticator/token/bootstrap. Owns the form of
a token, the Secret it is kept in and its verification; finding Secrets is injected.
"""

import base64
import datetime as dt
import hmac
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from hub.auth.errors import TokenError
from hub.auth.user import User
from hub.meta import Obj
from hub.meta.codec.base64 import decode_base64

NAMESPACE = "kube-system"
SECRET_PREFIX = "bootstrap-token-"  # noqa: S105 - the prefix of a Secret's name
SECRET_TYPE = "bootstrap.kubernetes.io/token"  # noqa: S105 - a Secret's type
BOOTSTRAPPERS = "system:bootstrappers"
CLUSTER_BOOTSTRAPPERS = f"{BOOTSTRAPPERS}:managedcluster"

_FORM = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})", re.ASCII)
_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]", re.ASCII)
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
# the largest multiple of the alphabet's size in a byte: bytes from there on would favour its start
_FAIR_LIMIT = 252

FindSecret: TypeAlias = Callable[[str, str], Obj | None]
"""(namespace, name) -> the Secret as stored (data in base64), None when there is none."""


@dataclass(frozen=True, slots=True)
class BootstrapToken:
    """The two parts of a token; `str` joins them to what a client sends."""

    token_id: str
    secret: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.token_id}.{self.secret}"

    def as_secret(
        self,
        *,
        expiration: dt.datetime | None = None,
        groups: Sequence[str] = (CLUSTER_BOOTSTRAPPERS,),
        labels: dict[str, str] | None = None,
    ) -> Obj:
        """Return the Secret that makes this token valid until `expiration`, for `groups`."""
        data = {
            "token-id": self.token_id,
            "token-secret": self.secret,
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": ",".join(groups),
        }
        if expiration is not None:
            data["expiration"] = expiration.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        name = f"{SECRET_PREFIX}{self.token_id}"
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": dict(labels or {})},
            "type": SECRET_TYPE,
            "data": {k: base64.b64encode(v.encode()).decode() for k, v in data.items()},
        }


def new_bootstrap_token(random_bytes: Callable[[int], bytes]) -> BootstrapToken:
    """Return a fresh token; `random_bytes` is `Clock.token`."""
    letters = ""
    while len(letters) < 22:
        fair = [b for b in random_bytes(32) if b < _FAIR_LIMIT]
        letters += "".join(_ALPHABET[b % len(_ALPHABET)] for b in fair)
    return BootstrapToken(letters[:6], letters[6:22])


def parse_bootstrap_token(text: str) -> BootstrapToken | None:
    """Return the token's parts, None when `text` has another form."""
    match = _FORM.fullmatch(text)
    return BootstrapToken(match[1], match[2]) if match else None


def verify_bootstrap_token(
    token: BootstrapToken, *, find_secret: FindSecret, now: dt.datetime
) -> User:
    """Return the user ``system:bootstrap:<id>`` with its groups, without system:authenticated.

    Raises `TokenError`; the message is for logs, a client learns only that it is unauthorised.
    """
    name = f"{SECRET_PREFIX}{token.token_id}"
    secret = find_secret(NAMESPACE, name)
    if secret is None or secret.get("metadata", {}).get("deletionTimestamp"):
        raise TokenError(f"there is no secret {NAMESPACE}/{name}")
    if secret.get("type") != SECRET_TYPE:
        raise TokenError(f"secret {NAMESPACE}/{name} must be of type {SECRET_TYPE}")
    if not hmac.compare_digest(_data(secret, "token-secret"), token.secret.encode()):
        raise TokenError("the secret part of the bootstrap token is wrong")
    if _data(secret, "token-id") != token.token_id.encode():
        raise TokenError(f"token-id of secret {NAMESPACE}/{name} must be {token.token_id}")
    if _is_expired(_data(secret, "expiration").decode(errors="replace"), now):
        raise TokenError("the bootstrap token has expired")
    if _data(secret, "usage-bootstrap-authentication") != b"true":
        raise TokenError("usage-bootstrap-authentication of the bootstrap token must be true")
    return User(f"system:bootstrap:{token.token_id}", _groups(_data(secret, "auth-extra-groups")))


def token_life_s(secret: Obj, now: dt.datetime) -> float | None:
    """Return for how many seconds a token's Secret is still good.

    None = for ever; 0 or less = no longer, or its expiration cannot be read.
    """
    try:
        text = _data(secret, "expiration").decode(errors="replace")
        return (dt.datetime.fromisoformat(text) - now).total_seconds() if text else None
    except (TokenError, ValueError, TypeError):  # TypeError: no time zone
        return 0.0


def _data(secret: Obj, key: str) -> bytes:
    text = (secret.get("data") or {}).get(key) or ""
    try:
        return decode_base64(text)
    except (AttributeError, ValueError) as error:  # AttributeError: no text at all
        raise TokenError(f"{key} of the bootstrap token's secret must be base64") from error


def _is_expired(expiration: str, now: dt.datetime) -> bool:
    """No expiration never expires; one that cannot be read has expired."""
    if not expiration:
        return False
    try:
        return dt.datetime.fromisoformat(expiration) <= now
    except (ValueError, TypeError):  # TypeError: no time zone
        return True


def _groups(extra: bytes) -> tuple[str, ...]:
    groups = {BOOTSTRAPPERS}
    for group in extra.decode(errors="replace").split(",") if extra else ():
        if not _GROUP.fullmatch(group):
            raise TokenError(f"auth-extra-groups: {group!r} must match {_GROUP.pattern}")
        groups.add(group)
    return tuple(sorted(groups))
