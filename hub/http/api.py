"""The seams of the HTTP layer: what a handler sees, what a codec does.

Owns the vocabulary between transport (bytes on a TLS socket), codec (HTTP/1.1, HTTP/2) and handler
(Kubernetes verbs). No library type crosses these lines.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from hub.http.tally import Cut

Headers: TypeAlias = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Peer:
    """The client certificate of a connection, verified against the client CA at the handshake.

    `not_after_unix_s` is checked again at every request: a connection outlives its certificate.
    """

    common_name: str
    organizations: tuple[str, ...]
    not_after_unix_s: float
    fingerprint: str


@dataclass(slots=True)
class Request:
    """One request, complete: the body is read up to the transport's limit before the handler runs.

    `headers` has lower-case names; repeated headers are joined with ", ", those of impersonation
    with a line feed. `target` is path and query as sent. `is_too_large`: the body was over the
    limit and is left out; answer 413.
    """

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    peer: Peer | None
    remote: str
    http_version: str
    is_too_large: bool = False


class Responder(Protocol):
    """How a handler answers one request: `respond` once, or `start`, `write`..., `end`.

    Header names are given in lower case; the codec adds framing headers (content-length,
    transfer-encoding) and Date itself. All methods are for the event loop's thread only. After the
    client is gone every call is a no-op and `is_closed` is true.
    """

    @property
    def is_closed(self) -> bool:
        """Whether the answer is finished or the client is gone."""
        ...

    @property
    def queued_bytes(self) -> int:
        """Bytes written for this stream that the socket has not taken yet."""
        ...

    def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Answer at once, with a content-length."""
        ...

    def start(self, status: int, headers: Headers) -> None:
        """Send the head of a stream now, before any body."""
        ...

    def write(self, data: bytes) -> bool:
        """Queue `data`; False once the stream holds more than its high-water mark.

        The caller then drains or gives up.
        """
        ...

    async def drain(self) -> None:
        """Wait until the queue is below the low-water mark or the stream is closed."""
        ...

    def end(self) -> None:
        """Finish the stream cleanly."""
        ...

    def abort(self, cause: Cut = Cut.FAILED) -> None:
        """Cut the stream so that the client sees an error, and count why.

        HTTP/2 resets the stream, HTTP/1.1 closes the connection.
        """
        ...

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the stream ends for whatever reason."""
        ...


Handler: TypeAlias = Callable[[Request, Responder], Awaitable[None]]
