"""Acting as somebody else: the Impersonate-* headers of ``kubectl --as``.

The user who asks needs the right to `impersonate` each user, group and uid that is named; whoever
ignores these headers would do as an administrator what was meant to be tried as nobody. Mirrors
k8s.io/apiserver/pkg/endpoints/filters/impersonation.
"""

from collections.abc import Iterator, Mapping

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

_PREFIX = "impersonate-"
_USER, _GROUP, _UID = f"{_PREFIX}user", f"{_PREFIX}group", f"{_PREFIX}uid"
_ACCOUNT = "system:serviceaccount:"


def impersonate(user: User, headers: Mapping[str, str], authorizer: Authorizer) -> User:
    """Return whom the request is to be treated as: `user`, unless headers name another.

    :raises ApiError: 403 without the right to it, 400 for headers that go together otherwise
    """
    named = {name: value for name, value in headers.items() if name.startswith(_PREFIX)}
    if not named:
        return user
    unknown = set(named) - {_USER, _GROUP, _UID}
    if unknown:
        raise bad_request(f"{min(unknown)}: this hub impersonates users, groups and uids only")
    if not named.get(_USER):
        raise bad_request("requested impersonation without impersonating a user")
    name, uid = named[_USER], named.get(_UID, "")
    groups = tuple(g for g in named.get(_GROUP, "").split(", ") if g)
    for asked in _asked(name, groups, uid):
        decision = authorizer.authorize(user, asked)
        if not decision.allowed:
            raise forbidden(Resource(asked.group, asked.resource), asked.name, decision.reason)
    return User(name, _groups_of(name, groups), uid=uid)


def _asked(name: str, groups: tuple[str, ...], uid: str) -> Iterator[Attributes]:
    verb = "impersonate"
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":")
    if name.startswith(_ACCOUNT) and namespace and account:
        yield Attributes(verb, "", "v1", "serviceaccounts", namespace=namespace, name=account)
    else:
        yield Attributes(verb, "", "v1", "users", name=name)
    for group in groups:
        yield Attributes(verb, "", "v1", "groups", name=group)
    if uid:
        yield Attributes(verb, "authentication.k8s.io", "v1", "uids", name=uid)


def _groups_of(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Return the groups that were named, and those that come with the user by itself."""
    if name.startswith(_ACCOUNT) and not groups:
        namespace = name.removeprefix(_ACCOUNT).partition(":")[0]
        groups = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}")
    own = UNAUTHENTICATED if name == ANONYMOUS else AUTHENTICATED
    return groups if own in groups else (*groups, own)
