"""API errors: the Status objects that Kubernetes clients branch on.

Owns the one exception that becomes an HTTP answer, and a constructor for each reason, named and
worded as in k8s.io/apimachinery/pkg/api/errors/errors.go (clients and people match those texts).
Raising is the registry's and the handlers' business; turning an `ApiError` into bytes is the HTTP
layer's.

    ApiError
        code, reason, message, details{name, group, kind, uid, causes[], retryAfterSeconds}
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hub.meta import Obj


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of ``details.causes``: a reason for machines, a message and the field's path."""

    reason: str
    message: str
    field: str

    def as_obj(self) -> Obj:
        """Return the wire form; empty parts are left out."""
        wire = {"reason": self.reason, "message": self.message, "field": self.field}
        return {k: v for k, v in wire.items() if v}


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource name with its group, printed as ``leases.coordination.k8s.io``."""

    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class ApiError(Exception):
    """An answer other than success, as a Kubernetes Status."""

    def __init__(
        self,
        *,
        code: int,
        reason: str,
        message: str,
        resource: Resource | None = None,
        name: str = "",
        kind: str = "",
        causes: Sequence[Cause] = (),
        retry_after_s: int = 0,
        continue_token: str = "",
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message
        self.resource, self.name, self.kind = resource, name, kind
        self.causes, self.retry_after_s = tuple(causes), retry_after_s
        self.continue_token = continue_token

    def status(self) -> Obj:
        """Return the Status object, fields in the order kube-apiserver writes them."""
        metadata: Obj = {"continue": self.continue_token} if self.continue_token else {}
        status: Obj = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        details = self._details()
        if details or self.resource is not None:  # {} for a path that is not served
            status["details"] = details
        status["code"] = self.code
        return status

    def _details(self) -> Obj:
        details: Obj = {}
        if self.name:
            details["name"] = self.name
        if self.resource is not None:
            if self.resource.group:
                details["group"] = self.resource.group
            # apimachinery puts the resource (not the kind) here, except for Invalid
            kind = self.kind or self.resource.resource
            details |= {"kind": kind} if kind else {}
        if self.causes:
            details["causes"] = [c.as_obj() for c in self.causes]
        if self.retry_after_s:
            details["retryAfterSeconds"] = self.retry_after_s
        return details


def bad_request(message: str) -> ApiError:
    """400: the request cannot be understood."""
    return ApiError(code=400, reason="BadRequest", message=message)


def unauthorized(message: str = "Unauthorized") -> ApiError:
    """401: no valid credential."""
    return ApiError(code=401, reason="Unauthorized", message=message)


def forbidden(resource: Resource, name: str, detail: str) -> ApiError:
    """403: the user may not; `detail` is the sentence after the colon."""
    if str(resource) and name:
        message = f'{resource} "{name}" is forbidden: {detail}'
    elif str(resource):
        message = f"{resource} is forbidden: {detail}"
    else:
        message = f"forbidden: {detail}"
    return ApiError(code=403, reason="Forbidden", message=message, resource=resource, name=name)


def not_found(resource: Resource, name: str) -> ApiError:
    """404 for an object."""
    message = f'{resource} "{name}" not found'
    return ApiError(code=404, reason="NotFound", message=message, resource=resource, name=name)


def path_not_found() -> ApiError:
    """404 for a path that is not served, as kube-apiserver words it."""
    message = "the server could not find the requested resource"
    return ApiError(code=404, reason="NotFound", message=message, resource=Resource("", ""))


def method_not_allowed(resource: Resource, action: str, detail: str = "") -> ApiError:
    """405: the resource does not know this verb; `detail`: why."""
    message = f'{action} is not supported on resources of kind "{resource}"'
    message = f"{message}: {detail}" if detail else message
    return ApiError(code=405, reason="MethodNotAllowed", message=message, resource=resource)


def not_acceptable(accepted: Sequence[str]) -> ApiError:
    """406: none of the media types of Accept can be written."""
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return ApiError(code=406, reason="NotAcceptable", message=message)


def already_exists(resource: Resource, name: str, *, is_going: bool = False) -> ApiError:
    """409 on create; `is_going`: what has the name is being deleted."""
    message = f'{resource} "{name}" already exists'
    if is_going:
        message = f"object is being deleted: {message}"
    return ApiError(code=409, reason="AlreadyExists", message=message, resource=resource, name=name)


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def conflict(resource: Resource, name: str, detail: str = MODIFIED) -> ApiError:
    """409 on update: a precondition does not hold."""
    message = f'Operation cannot be fulfilled on {resource} "{name}": {detail}'
    return ApiError(code=409, reason="Conflict", message=message, resource=resource, name=name)


def expired(message: str, *, continue_token: str = "") -> ApiError:
    """410: the revision asked for is compacted; the client lists again."""
    return ApiError(code=410, reason="Expired", message=message, continue_token=continue_token)


def precondition_failed(message: str) -> ApiError:
    """412: what the request's headers demand cannot be met; nothing was done."""
    return ApiError(code=412, reason="PreconditionFailed", message=message)


def too_large(message: str) -> ApiError:
    """413: the body is over the limit."""
    return ApiError(code=413, reason="RequestEntityTooLarge", message=message)


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    """415: the body is of a type the resource does not read."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
    return ApiError(code=415, reason="UnsupportedMediaType", message=message)


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """422: the object breaks rules; one cause a field, messages as field.Error writes them."""
    texts = [f"{c.field}: {c.message}" for c in causes]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    return ApiError(
        code=422,
        reason="Invalid",
        message=f'{qualified} "{name}" is invalid: {joined}',
        resource=Resource(group, kind),
        kind=kind,
        name=name,
        causes=causes,
    )


def too_many_requests() -> ApiError:
    """429: as many requests are under way as the hub takes; client-go tries again by itself."""
    return ApiError(
        code=429,
        reason="TooManyRequests",
        message="too many requests, please try again later",
        retry_after_s=1,
    )


def timed_out(message: str) -> ApiError:
    """504: the client wanted its answer sooner; what was begun may yet be done."""
    return ApiError(
        code=504, reason="Timeout", message=f"Timeout: {message}", resource=Resource("", "")
    )


def internal_error(message: str) -> ApiError:
    """500: our fault."""
    cause = Cause("", message, "")
    return ApiError(
        code=500,
        reason="InternalError",
        message=f"Internal error occurred: {message}",
        causes=[cause],
    )


def unavailable(message: str, *, retry_after_s: int = 1) -> ApiError:
    """503: not now; the Retry-After header makes client-go try again by itself."""
    return ApiError(
        code=503, reason="ServiceUnavailable", message=message, retry_after_s=retry_after_s
    )


def storage_full(message: str) -> ApiError:
    """507: the volume is full; reads go on, writes come back once there is space."""
    return ApiError(code=507, reason="InsufficientStorage", message=message, retry_after_s=5)


def resource_version_too_large(asked: int, current: int) -> ApiError:
    """504 as the watch cache words it: the client is ahead of this server."""
    cause = Cause("ResourceVersionTooLarge", "Too large resource version", "")
    return ApiError(
        code=504,
        reason="Timeout",
        message=f"Timeout: Too large resource version: {asked}, current: {current}",
        causes=[cause],
        retry_after_s=1,
    )
