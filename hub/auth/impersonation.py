"""Acting as somebody else: the ``Impersonate-*`` headers of a request.

Mirrors k8s.io/apiserver/pkg/endpoints/filters/impersonation: each part of the wanted identity (user
or ServiceAccount, groups, uid, extras) needs the verb ``impersonate`` on a resource of its own; the
result replaces the requester in everything that follows, and nothing of the requester's remains.

Headers come with lower-case names; values of a repeated header are joined with a line feed, which
no header value can hold (`hub.http.api.Request`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from hub.auth.rbac import Authorizer
from hub.auth.user import (
    ANONYMOUS,
    AUTHENTICATED,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
    Attributes,
    User,
)
from hub.meta.errors import Resource, bad_request, forbidden
from hub.meta.names import namespace_errors, subdomain_errors

_PREFIX = "impersonate-"
_USER, _GROUP, _UID, _EXTRA = (_PREFIX + part for part in ("user", "group", "uid", "extra-"))
_ACCOUNT_PREFIX = "system:serviceaccount:"
_GROUP_NAME = "authentication.k8s.io"


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of the wanted identity; `key` is that of an extra."""

    kind: str
    name: str
    namespace: str = ""
    key: str = ""

    def attributes(self) -> Attributes:
        """Return what the requester must be allowed."""
        resource = {
            "User": "users",
            "ServiceAccount": "serviceaccounts",
            "Group": "groups",
            "UserExtra": "userextras",
            "UID": "uids",
        }[self.kind]
        is_core = self.kind in ("User", "ServiceAccount", "Group")
        return Attributes(
            verb="impersonate",
            group="" if is_core else _GROUP_NAME,
            version="" if is_core else "v1",
            resource=resource,
            subresource=self.key,
            namespace=self.namespace,
            name=self.name,
        )

    def __str__(self) -> str:
        # a Go struct of kind, namespace, name, uid, apiVersion, resourceVersion and fieldPath
        version = f"{_GROUP_NAME}/v1" if self.kind in ("UserExtra", "UID") else ""
        return f"{{{self.kind} {self.namespace} {self.name}  {version}  {self.key}}}"


def is_impersonating(headers: Mapping[str, str]) -> bool:
    """Whether a request asks to act as somebody else; any such header counts."""
    return any(name.startswith(_PREFIX) for name in headers)


def impersonate(user: User, headers: Mapping[str, str], authorizer: Authorizer) -> User:
    """Return whom `user` asks to act as, or `user` when the headers ask for nothing.

    Raises `ApiError`: 400 for groups, uid or extras without a user, 403 for what `user` may not be.
    """
    parts = list(_parts(headers))
    if not parts:
        return user
    if parts[0].kind not in ("User", "ServiceAccount"):
        shown = " ".join(str(part) for part in parts)
        raise bad_request(f"requested [{shown}] without impersonating a user")
    for part in parts:
        asked = part.attributes()
        decision = authorizer.authorize(user, asked)
        if not decision.allowed:
            raise forbidden(Resource(asked.group, asked.resource), asked.name, decision.reason)
    return _assemble(parts)


def _parts(headers: Mapping[str, str]) -> Iterator[_Part]:
    name = next(_values(headers, _USER), "")
    if name:
        yield _account(name) or _Part("User", name)
    for group in _values(headers, _GROUP):
        yield _Part("Group", group)
    for header in headers:
        if header.startswith(_EXTRA):
            key = unquote(_text(header[len(_EXTRA) :]))
            for value in _values(headers, header):
                yield _Part("UserExtra", value, key=key)
    uid = next(_values(headers, _UID), "")
    if uid:
        yield _Part("UID", uid)


def _values(headers: Mapping[str, str], name: str) -> Iterator[str]:
    for value in headers[name].split("\n") if name in headers else ():
        yield _text(value)


def _text(value: str) -> str:
    """Return a header's text; on the wire it is UTF-8, which the codecs read as latin-1."""
    return value if value.isascii() else value.encode("latin-1", "replace").decode(errors="replace")


def _account(name: str) -> _Part | None:
    """Return the ServiceAccount that a user name stands for, None when it is no such name."""
    if not name.startswith(_ACCOUNT_PREFIX):
        return None
    namespace, colon, account = name[len(_ACCOUNT_PREFIX) :].partition(":")
    if not colon or namespace_errors(namespace) or subdomain_errors(account):
        return None
    return _Part("ServiceAccount", account, namespace=namespace)


def _assemble(parts: list[_Part]) -> User:
    who = parts[0]
    groups = [part.name for part in parts if part.kind == "Group"]
    name = who.name
    if who.kind == "ServiceAccount":
        name = f"{_ACCOUNT_PREFIX}{who.namespace}:{who.name}"
        groups = groups or [SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{who.namespace}"]
    extra: dict[str, tuple[str, ...]] = {}
    for part in parts:
        if part.kind == "UserExtra":
            extra[part.key] = (*extra.get(part.key, ()), part.name)
    uid = next((part.name for part in parts if part.kind == "UID"), "")
    return User(name, (*groups, *_added_group(name, groups)), uid=uid, extra=extra)


def _added_group(name: str, groups: list[str]) -> tuple[str, ...]:
    """Return the group that says whether the user has proved who they are, unless one is given."""
    if name == ANONYMOUS:
        return () if UNAUTHENTICATED in groups else (UNAUTHENTICATED,)
    is_told = AUTHENTICATED in groups or UNAUTHENTICATED in groups
    return () if is_told else (AUTHENTICATED,)
