"""Answers: status line, the headers every answer carries, and errors as Status objects.

Owns the one translation from `ApiError` to bytes.
"""

from hub.http.api import Responder
from hub.http.negotiate import JSON
from hub.meta import Obj
from hub.meta.codec.json import encode
from hub.meta.errors import ApiError


def headers(audit_id: str, content_type: str = JSON) -> list[tuple[str, str]]:
    """Return the headers that kube-apiserver puts on every answer."""
    return [
        ("audit-id", audit_id),
        ("cache-control", "no-cache, private"),
        ("content-type", content_type),
    ]


class Reply:
    """One request's answer, in the forms that handlers need."""

    __slots__ = ("audit_id", "is_streaming", "responder")

    def __init__(self, responder: Responder, audit_id: str) -> None:
        self.responder = responder
        self.audit_id = audit_id
        self.is_streaming = False

    def send(self, status: int, body: bytes, content_type: str = JSON) -> None:
        """Answer with bytes."""
        self.responder.respond(status, headers(self.audit_id, content_type), body)

    def document(self, status: int, obj: Obj) -> None:
        """Answer with an object."""
        self.send(status, encode(obj) + b"\n")

    def text(self, status: int, text: str) -> None:
        """Answer with plain text, as the health endpoints do."""
        self.send(status, text.encode(), "text/plain; charset=utf-8")

    def fail(self, error: ApiError) -> None:
        """Answer with a Status, or cut a stream that has begun: a part is not the whole."""
        if self.is_streaming:
            self.responder.abort()
        else:
            self.error(error)

    def error(self, error: ApiError) -> None:
        """Answer with a Status; Retry-After makes client-go try again by itself."""
        found = headers(self.audit_id)
        if error.retry_after_s:
            found.append(("retry-after", str(error.retry_after_s)))
        if error.code == 401:
            found.append(("www-authenticate", 'Bearer realm="hublet"'))
        self.responder.respond(error.code, found, encode(error.status()) + b"\n")

    def stream(self, content_type: str = JSON) -> None:
        """Send the head of a stream at once, before any event."""
        self.is_streaming = True
        self.responder.start(200, headers(self.audit_id, content_type))
