"""Reviews: who am I, and may I? Answered from the request's user and the authorizer, never stored.

Mirrors k8s.io/kubernetes/pkg/registry/{authentication,authorization}.
"""

import datetime as dt

from hub.auth.rbac import Authorizer
from hub.auth.user import Attributes, User
from hub.meta import Obj
from hub.meta.errors import bad_request
from hub.meta.timestamp import format_time


def review_self(obj: Obj, user: User, now: dt.datetime) -> Obj:
    """Return a SelfSubjectReview with the user's attributes."""
    info: Obj = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    metadata = {"creationTimestamp": format_time(now)}
    return {**obj, "metadata": metadata, "status": {"userInfo": info}}


def review_access(obj: Obj, user: User, authorizer: Authorizer) -> Obj:
    """Return a SelfSubjectAccessReview or SubjectAccessReview with the decision.

    :raises ApiError: 400 when spec names neither or both of resource and non-resource attributes
    """
    spec = obj.get("spec") or {}
    asked = _attributes(spec)
    if obj.get("kind") == "SubjectAccessReview":
        if not spec.get("user") and not spec.get("groups"):
            raise bad_request("spec.user: at least one of user or groups must be specified")
        user = User(str(spec.get("user") or ""), tuple(spec.get("groups") or ()))
    decision = authorizer.authorize(user, asked)
    return {**obj, "metadata": obj.get("metadata") or {}, "status": decision.review_status()}


def _attributes(spec: Obj) -> Attributes:
    resource: Obj | None = spec.get("resourceAttributes")
    path: Obj | None = spec.get("nonResourceAttributes")
    if (resource is None) == (path is None):
        raise bad_request(
            "spec: exactly one of nonResourceAttributes or resourceAttributes must be specified"
        )
    if path is not None:
        return Attributes(verb=str(path.get("verb") or ""), path=str(path.get("path") or ""))
    resource = resource or {}
    names = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    return Attributes(**{name: str(resource.get(name) or "") for name in names})
