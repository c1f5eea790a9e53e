"""Reviews: who am I, may I, may they, whose token is this? Answered at once, never stored.

Mirrors k8s.io/kubernetes/pkg/registry/{authentication,authorization} and the validation in
pkg/apis/authorization/validation.
"""

import datetime as dt

from hub.auth.authenticate import Authenticator
from hub.auth.errors import SpentTokenError, TokenError
from hub.auth.rbac import Authorizer
from hub.auth.user import Attributes, User, user_info
from hub.meta import Obj
from hub.meta.causes import invalid_value, required
from hub.meta.errors import Cause, bad_request, invalid
from hub.meta.timestamp import format_time

_LOCAL = "LocalSubjectAccessReview"
_OF_OTHERS = ("SubjectAccessReview", _LOCAL)


class Reviewer:
    """Answers every review kind."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator, self._authorizer = authenticator, authorizer

    def answer(self, obj: Obj, user: User, now: dt.datetime) -> Obj:
        """Return the review `obj` of `user` with its status.

        :raises ApiError: 400 or 422 when it asks nothing, or two things at once
        """
        kind = obj.get("kind")
        if kind == "SelfSubjectReview":
            return review_self(obj, user, now)
        if kind == "TokenReview":
            return self._review_token(obj, now)
        if kind == "SelfSubjectRulesReview":
            namespace = str((obj.get("spec") or {}).get("namespace") or "")
            if not namespace:
                raise bad_request("no namespace on request")
            status = self._authorizer.rules_for(user, namespace).review_status()
            return {**obj, "spec": {}, "status": status}
        return review_access(obj, user, self._authorizer)

    def _review_token(self, obj: Obj, now: dt.datetime) -> Obj:
        spec = obj.get("spec") or {}
        token, audiences = spec.get("token") or "", spec.get("audiences") or ()
        if not token:
            raise bad_request("token is required for TokenReview in authentication")
        try:
            verified = self._authenticator.authenticate_token(token, now=now, audiences=audiences)
        except SpentTokenError as error:
            return _refused(obj, f"[invalid bearer token, {error}]")
        except TokenError:
            return _refused(obj, "invalid bearer token")
        status = {
            "authenticated": True,
            "user": user_info(verified.user),
            "audiences": list(verified.audiences),
        }
        return {**obj, "status": status}


def review_self(obj: Obj, user: User, now: dt.datetime) -> Obj:
    """Return a SelfSubjectReview with the user's attributes."""
    metadata = {"creationTimestamp": format_time(now)}
    return {**obj, "metadata": metadata, "status": {"userInfo": user_info(user)}}


def review_access(obj: Obj, user: User, authorizer: Authorizer) -> Obj:
    """Return an access review (of oneself, of others, in one namespace) with the decision.

    :raises ApiError: 422
    """
    spec, kind = obj.get("spec") or {}, obj.get("kind")
    metadata = {name: value for name, value in (obj.get("metadata") or {}).items() if value}
    causes = _spec_causes(spec, is_of_others=kind in _OF_OTHERS)
    causes += _metadata_causes(metadata, is_local=kind == _LOCAL)
    if kind == _LOCAL:
        causes += _local_causes(spec, str(metadata.get("namespace") or ""))
    if causes:
        # the internal object that kube-apiserver validates has no kind any more
        raise invalid("authorization.k8s.io", "", "", causes)
    if kind in _OF_OTHERS:
        user = User(str(spec.get("user") or ""), tuple(spec.get("groups") or ()))
    decision = authorizer.authorize(user, _attributes(spec))
    return {**obj, "metadata": metadata, "status": decision.review_status()}


def _refused(obj: Obj, error: str) -> Obj:
    return {**obj, "status": {"user": {}, "error": error}}


def _spec_causes(spec: Obj, *, is_of_others: bool) -> list[Cause]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    causes: list[Cause] = []
    if resource is not None and path is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        causes.append(invalid_value("spec.nonResourceAttributes", _go_path(path), detail))
    if resource is None and path is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes.append(invalid_value("spec.resourceAttributes", None, detail))
    if is_of_others and not spec.get("user") and not spec.get("groups"):
        detail = "at least one of user or group must be specified"
        causes.append(invalid_value("spec.user", spec.get("user") or "", detail))
    for name in ("fieldSelector", "labelSelector"):
        selector = (resource or {}).get(name)
        if selector is not None:
            causes += _selector_causes(selector, f"spec.resourceAttributes.{name}")
    return causes


def _selector_causes(selector: Obj, field: str) -> list[Cause]:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        detail = "may not specified at the same time as requirements"
        return [invalid_value(f"{field}.rawSelector", raw, detail)]
    if not raw and not requirements:
        detail = f"when {field} is specified, requirements or rawSelector is required"
        return [required(f"{field}.requirements", detail)]
    return []


def _metadata_causes(metadata: Obj, *, is_local: bool) -> list[Cause]:
    names = set(metadata) - {"managedFields"} - ({"namespace"} if is_local else set())
    if not names:
        return []
    detail = "must be empty except for namespace" if is_local else "must be empty"
    return [invalid_value("metadata", metadata, detail)]


def _local_causes(spec: Obj, namespace: str) -> list[Cause]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    causes: list[Cause] = []
    if resource is not None and (resource.get("namespace") or "") != namespace:
        field, given = "spec.resourceAttributes.namespace", resource.get("namespace") or ""
        causes.append(invalid_value(field, given, "must match metadata.namespace"))
    if path is not None:
        detail = "disallowed on this kind of request"
        causes.append(invalid_value("spec.nonResourceAttributes", _go_path(path), detail))
    return causes


def _go_path(path: Obj) -> Obj:
    """Return non-resource attributes as Go prints its internal type."""
    return {"Path": path.get("path") or "", "Verb": path.get("verb") or ""}


def _attributes(spec: Obj) -> Attributes:
    path: Obj | None = spec.get("nonResourceAttributes")
    if path is not None:
        return Attributes(verb=str(path.get("verb") or ""), path=str(path.get("path") or ""))
    resource = spec.get("resourceAttributes") or {}
    names = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    return Attributes(**{name: str(resource.get(name) or "") for name in names})
