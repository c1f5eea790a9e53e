"""Users and the attributes of a request, as authorisation sees them.

Pure data; mirrors k8s.io/apiserver `user.Info` and `authorizer.Attributes`.
"""

from dataclasses import dataclass, field

from hub.meta import Obj

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = "system:anonymous"
MASTERS = "system:masters"
SERVICE_ACCOUNTS = "system:serviceaccounts"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
"""Key in `User.extra`: which certificate or token proved the user, for audit."""


@dataclass(frozen=True, slots=True)
class User:
    """Who asks. `extra` maps lower-case keys to lists of values, as in SelfSubjectReview."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is asked: a resource request, or a non-resource `path` when `path` is not empty.

    `name` is the object's name, or for list/watch/deletecollection the one that
    ``fieldSelector=metadata.name=x`` pins (k8s.io/apiserver/pkg/endpoints/request/requestinfo.go),
    which is how agents may list with resourceNames.
    """

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


def service_account_name(namespace: str, name: str) -> str:
    """Return the user name of a ServiceAccount."""
    return f"system:serviceaccount:{namespace}:{name}"


def user_info(user: User) -> Obj:
    """Return a user as authentication.k8s.io/v1 UserInfo; what is empty is left out."""
    info: Obj = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info
