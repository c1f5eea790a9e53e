"""From credentials to a user: client certificate, bearer token or nobody.

Mirrors the order of kube-apiserver (pkg/kubeapiserver/authenticator/config.go): a valid certificate
wins, then a valid bearer token; a credential that was given but is no good is 401, never anonymous.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from hub.auth.bootstrap_token import FindSecret, parse_bootstrap_token, verify_bootstrap_token
from hub.auth.errors import TokenError
from hub.auth.tokens import ServiceAccountTokens, VerifiedToken
from hub.auth.user import ANONYMOUS, AUTHENTICATED, CREDENTIAL_ID, UNAUTHENTICATED, User
from hub.meta.errors import unauthorized

NOBODY = User(ANONYMOUS, (UNAUTHENTICATED,))


class ClientCertificate(Protocol):
    """A client certificate that the transport has verified against the client CA.

    `organizations` in subject order; `fingerprint` is the SHA-256 of the DER certificate in hex.
    """

    @property
    def common_name(self) -> str: ...  # noqa: D102 - see the class

    @property
    def organizations(self) -> tuple[str, ...]: ...  # noqa: D102 - see the class

    @property
    def not_after_unix_s(self) -> float: ...  # noqa: D102 - see the class

    @property
    def fingerprint(self) -> str: ...  # noqa: D102 - see the class


class Authenticator:
    """Decides who sent a request."""

    def __init__(self, tokens: ServiceAccountTokens, *, find_secret: FindSecret) -> None:
        self._tokens, self._find_secret = tokens, find_secret

    def authenticate(
        self,
        *,
        peer: ClientCertificate | None,
        authorization: str | None,
        now: dt.datetime,
    ) -> User:
        """Return the user of a request; raises `ApiError` 401.

        `authorization` is the header as sent. An expired certificate does not hide a good token.
        """
        is_expired = peer is not None and peer.not_after_unix_s <= now.timestamp()
        if peer is not None and peer.common_name and not is_expired:
            return _from_certificate(peer)
        token = bearer_token(authorization)
        if token is not None:
            try:
                return self.authenticate_token(token, now=now).user
            except TokenError as error:
                raise unauthorized() from error
        if is_expired:
            raise unauthorized()
        return NOBODY

    def authenticate_token(
        self, token: str, *, now: dt.datetime, audiences: Sequence[str] = ()
    ) -> VerifiedToken:
        """Return whom a bearer token stands for, in system:authenticated; raises `TokenError`.

        This is TokenReview's question, and the message its ``status.error``. A bootstrap token
        knows no audiences: it is for the hub alone.
        """
        bootstrap = parse_bootstrap_token(token)
        if bootstrap is None:
            verified = self._tokens.verify(token, now=now, audiences=audiences)
        elif audiences and self._tokens.issuer not in audiences:
            raise TokenError(f"a bootstrap token is not for any of {tuple(audiences)}")
        else:
            user = verify_bootstrap_token(bootstrap, find_secret=self._find_secret, now=now)
            verified = VerifiedToken(user, (self._tokens.issuer,))
        return replace(verified, user=_authenticated(verified.user))


def bearer_token(authorization: str | None) -> str | None:
    """Return the token of an Authorization header, None when there is no bearer token in it.

    As k8s.io/apiserver/pkg/authentication/request/bearertoken: other schemes are not ours to judge.
    """
    parts = (authorization or "").strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer":
        return None
    return parts[1] or None


def _from_certificate(peer: ClientCertificate) -> User:
    extra: dict[str, tuple[str, ...]] = {CREDENTIAL_ID: (f"X509SHA256={peer.fingerprint}",)}
    return _authenticated(User(peer.common_name, tuple(peer.organizations), extra=extra))


def _authenticated(user: User) -> User:
    if user.name == ANONYMOUS or AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))
