"""What a request's path and query mean: verb, resource, name, and what is to be authorised.

Pure; mirrors k8s.io/apiserver/pkg/endpoints/request/requestinfo.go.
"""

from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

from hub.auth.user import Attributes
from hub.meta.errors import ApiError, bad_request
from hub.meta.selectors import parse_field_selector
from hub.registry.options import is_true

_VERBS = {
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
    "GET": "get",
    "HEAD": "get",
}
_NAMESPACE_SUBRESOURCES = frozenset(("status", "finalize"))


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """A parsed request line.

    For anything that is no resource only `path`, `query` and `verb` (the method) are filled.
    """

    method: str
    path: str
    query: dict[str, str]
    verb: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def attributes(self) -> Attributes:
        """Return what is to be authorised."""
        if not self.is_resource:
            return Attributes(verb=self.verb, path=self.path)
        return Attributes(
            verb=self.verb,
            group=self.group,
            version=self.version,
            resource=self.resource,
            subresource=self.subresource,
            namespace=self.namespace,
            name=self.name or self._pinned_name(),
        )

    def _pinned_name(self) -> str:
        """Return the name that the field selector pins: resourceNames may allow such a list."""
        if self.verb not in ("list", "watch", "deletecollection"):
            return ""
        try:
            return (
                parse_field_selector(self.query.get("fieldSelector", "")).pinned("metadata.name")
                or ""
            )
        except ApiError:
            return ""


def parse_request(method: str, target: str) -> RequestInfo:
    """Return the meaning of a request line.

    :raises ApiError: 400 when the target is no path
    """
    if not target.startswith("/"):
        raise bad_request(f"the request target {target[:80]!r} is not a path")
    raw_path, _, raw_query = target.partition("?")
    path = unquote(raw_path)
    # of repeated parameters the first counts, as for Go's url.Values.Get
    query = dict(reversed(parse_qsl(raw_query, keep_blank_values=True)))
    segments = [s for s in path.split("/") if s]
    plain = RequestInfo(method, path, query, method.lower())
    if len(segments) >= 3 and segments[0] == "api":
        return _resource(plain, "", segments[1], segments[2:])
    if len(segments) >= 4 and segments[0] == "apis":
        return _resource(plain, segments[1], segments[2], segments[3:])
    return plain


def _resource(plain: RequestInfo, group: str, version: str, rest: list[str]) -> RequestInfo:
    namespace = ""
    is_watch_path = rest[0] == "watch" and len(rest) > 1 and plain.method in ("GET", "HEAD")
    if is_watch_path:
        rest = rest[1:]
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    subresource = "/".join(rest[2:])
    verb = _VERBS.get(plain.method, plain.method.lower())
    if verb == "get" and (is_watch_path or (not name and is_true(plain.query.get("watch")))):
        verb = "watch"
    elif verb == "get" and not name:
        verb = "list"
    elif verb == "delete" and not name:
        verb = "deletecollection"
    return RequestInfo(
        plain.method,
        plain.path,
        plain.query,
        verb,
        is_resource=True,
        group=group,
        version=version,
        resource=rest[0],
        subresource=subresource,
        namespace=namespace,
        name=name,
    )
