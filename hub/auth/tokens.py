"""ServiceAccount tokens: issuing and verifying the hub's own JWTs.

Mirrors kube-apiserver's TokenRequest tokens (pkg/serviceaccount/claims.go, jwt.go): ES256, key id
from the public key, audiences defaulting to the issuer, and the claim ``kubernetes.io`` that ties a
token to the uid of its ServiceAccount and, if asked, of one more object. A token is good only while
those objects exist with those uids: that is looked up on every use, never cached. What is cached,
up to `MAX_CACHED` tokens, is that a signature was valid.
"""

import base64
import datetime as dt
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hub.auth.coverage import quote_list
from hub.auth.errors import SpentTokenError, TokenError
from hub.auth.keypair import load_private_key
from hub.auth.user import (
    CREDENTIAL_ID,
    SERVICE_ACCOUNTS,
    User,
    service_account_name,
)
from hub.meta import Obj

ALGORITHM = "ES256"
MAX_CACHED = 8192
# how far nbf and iat may lie ahead of us: a restored hub may run on a machine with another clock
LEEWAY_S = 60

FindUid: TypeAlias = Callable[[str, str, str], str | None]
"""(kind, namespace, name) -> uid of the living object, None when it is gone or being deleted.

Kinds asked for: ServiceAccount, Secret, Pod (namespaced) and Node (namespace "").
"""


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """One object by name and uid; `namespace` is empty for a Node."""

    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A fresh token and what TokenRequest's status says of it; `credential_id` is for audit."""

    token: str
    expiry: dt.datetime
    audiences: tuple[str, ...]
    credential_id: str


@dataclass(frozen=True, slots=True)
class VerifiedToken:
    """Who a token stands for, and which of the wanted audiences it was made for."""

    user: User
    audiences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Claims:
    account: ObjectRef
    bound: tuple[ObjectRef, ...]
    audiences: tuple[str, ...]
    expires_s: int
    starts_s: int
    token_id: str


class ServiceAccountTokens:
    """Issues and verifies tokens under one signing key and one issuer."""

    def __init__(
        self,
        signing_key_pem: str,
        issuer: str,
        *,
        find_uid: FindUid,
        new_id: Callable[[], str],
    ) -> None:
        self._key = load_private_key(signing_key_pem)
        self._public = self._key.public_key()
        self._key_id = key_id(self._public)
        self._find_uid, self._new_id = find_uid, new_id
        self._cache: dict[bytes, _Claims] = {}
        self.issuer = issuer

    def issue(
        self,
        account: ObjectRef,
        *,
        now: dt.datetime,
        expiration_s: int,
        audiences: Sequence[str] = (),
        bound: ObjectRef | None = None,
    ) -> IssuedToken:
        """Return a token for `account`; its limits are for the caller (TokenRequest) to check."""
        issued_s = int(now.timestamp())
        token_id, chosen = self._new_id(), tuple(audiences) or (self.issuer,)
        private: Obj = {"namespace": account.namespace, "serviceaccount": _named(account)}
        if bound is not None:
            private[bound.kind.lower()] = _named(bound)
        claims: Obj = {
            "aud": list(chosen),
            "exp": issued_s + expiration_s,
            "iat": issued_s,
            "iss": self.issuer,
            "jti": token_id,
            "kubernetes.io": private,
            "nbf": issued_s,
            "sub": service_account_name(account.namespace, account.name),
        }
        token = jwt.encode(claims, self._key, ALGORITHM, headers={"kid": self._key_id})
        expiry = dt.datetime.fromtimestamp(issued_s + expiration_s, dt.UTC)
        return IssuedToken(token, expiry, chosen, f"JTI={token_id}")

    def verify(
        self, token: str, *, now: dt.datetime, audiences: Sequence[str] = ()
    ) -> VerifiedToken:
        """Return whom `token` stands for, for one of `audiences` (default: the issuer).

        The user comes without system:authenticated. Raises `TokenError`.
        """
        if not token.isascii():  # PyJWT would fail on it in other ways than its own error
            raise TokenError("a token consists of ASCII letters, digits, '-', '_' and '.'")
        digest = hashlib.sha256(token.encode()).digest()
        claims = self._cache.get(digest) or self._decode(token)
        self._check_time(claims, now.timestamp())
        wanted = tuple(audiences) or (self.issuer,)
        common = tuple(a for a in claims.audiences if a in wanted)
        if not common:
            raise SpentTokenError(
                f"token audiences {quote_list(claims.audiences)} is invalid for the target "
                f"audiences {quote_list(wanted)}"
            )
        for ref in (claims.account, *claims.bound):
            if self._find_uid(ref.kind, ref.namespace, ref.name) != ref.uid:
                raise SpentTokenError(
                    f"{ref.kind} {ref.namespace}/{ref.name} of the token is gone: ask for a new one"
                )
        self._remember(digest, claims)
        return VerifiedToken(_user(claims), common)

    def keys(self) -> Obj:
        """Return the JSON Web Key Set served at /openid/v1/jwks."""
        numbers = self._public.public_numbers()
        key = {
            "use": "sig",
            "kty": "EC",
            "kid": self._key_id,
            "crv": "P-256",
            "alg": ALGORITHM,
            "x": _base64url(numbers.x.to_bytes(32)),
            "y": _base64url(numbers.y.to_bytes(32)),
        }
        return {"keys": [key]}

    def openid_configuration(self, url: str) -> Obj:
        """Return /.well-known/openid-configuration of a hub that is reached at `url`."""
        return {
            "issuer": self.issuer,
            "jwks_uri": f"{url.rstrip('/')}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }

    def _decode(self, token: str) -> _Claims:
        try:
            payload = jwt.decode(
                token,
                self._public,
                [ALGORITHM],
                issuer=self.issuer,
                options={
                    "verify_exp": False,  # times in _check_time, on the injected clock
                    "verify_nbf": False,
                    "verify_iat": False,
                    "verify_aud": False,  # in verify: the caller says which it wants
                },
            )
            return _read_claims(payload)
        except jwt.PyJWTError as error:
            raise TokenError(f"not a token of this hub: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TokenError("the token lacks a claim that ServiceAccount tokens have") from error

    def _check_time(self, claims: _Claims, now_s: float) -> None:
        if now_s >= claims.expires_s:
            raise SpentTokenError("service account token has expired")
        if now_s + LEEWAY_S < claims.starts_s:
            raise SpentTokenError("service account token is not valid yet")

    def _remember(self, digest: bytes, claims: _Claims) -> None:
        if digest not in self._cache and len(self._cache) >= MAX_CACHED:
            del self._cache[next(iter(self._cache))]
        self._cache[digest] = claims


def key_id(key: ec.EllipticCurvePublicKey) -> str:
    """Return the key id as kube-apiserver makes it: base64url of the SHA-256 of the DER key."""
    der = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return _base64url(hashlib.sha256(der).digest())


def _read_claims(payload: Obj) -> _Claims:
    private = payload["kubernetes.io"]
    namespace = private["namespace"]
    account = _ref("ServiceAccount", namespace, private["serviceaccount"])
    if payload["sub"] != service_account_name(namespace, account.name):
        raise ValueError("sub names another account than kubernetes.io")
    bound = [
        _ref(kind, "" if kind == "Node" else namespace, private[kind.lower()])
        for kind in ("Secret", "Pod", "Node")
        if kind.lower() in private
    ]
    audiences = payload["aud"]
    return _Claims(
        account=account,
        bound=tuple(bound),
        audiences=(audiences,) if isinstance(audiences, str) else tuple(audiences),
        expires_s=int(payload["exp"]),
        starts_s=max(int(payload["nbf"]), int(payload["iat"])),
        token_id=str(payload["jti"]),
    )


def _ref(kind: str, namespace: str, named: Obj) -> ObjectRef:
    return ObjectRef(kind, namespace, named["name"], named["uid"])


def _named(ref: ObjectRef) -> Obj:
    return {"name": ref.name, "uid": ref.uid}


def _user(claims: _Claims) -> User:
    account = claims.account
    extra: dict[str, tuple[str, ...]] = {CREDENTIAL_ID: (f"JTI={claims.token_id}",)}
    for ref in claims.bound:
        if ref.kind in {"Pod", "Node"}:
            prefix = f"authentication.kubernetes.io/{ref.kind.lower()}"
            extra |= {f"{prefix}-name": (ref.name,), f"{prefix}-uid": (ref.uid,)}
    return User(
        name=service_account_name(account.namespace, account.name),
        groups=(SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{account.namespace}"),
        uid=account.uid,
        extra=extra,
    )


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
