"""Answers: status line, the headers every answer carries, coding, and errors as Status objects.

Owns the one translation from `ApiError` to bytes.
"""

import asyncio
from collections.abc import Iterable, Iterator

from hub.http.api import Headers, Responder
from hub.http.coding import GZIP_FROM_BYTES, GZIP_HEAD, Gzip, gzip
from hub.http.info import RequestInfo
from hub.http.negotiate import JSON
from hub.http.warning import Warnings
from hub.meta import Obj
from hub.meta.codec.json import encode
from hub.meta.errors import ApiError

SLICE_BYTES = 256 * 1024
"""How much of a large body is written before the others on the loop have their turn."""


class Reply:
    """One request's answer, in the forms that handlers need."""

    __slots__ = (
        "_accepts_gzip",
        "_more",
        "_warnings",
        "audit_id",
        "info",
        "is_streaming",
        "responder",
        "status",
    )

    def __init__(self, responder: Responder, audit_id: str, *, accepts_gzip: bool = False) -> None:
        self.responder = responder
        self.audit_id = audit_id
        self.is_streaming = False
        self.info: RequestInfo | None = None
        """What was asked, once that is known."""
        self.status = 0
        """What was answered, 0 before."""
        self._accepts_gzip = accepts_gzip
        self._warnings: Warnings | None = None
        self._more: list[tuple[str, str]] | None = None

    def warn(self, text: str) -> None:
        """Tell the client something beside the answer; only before it is sent."""
        if self._warnings is None:
            self._warnings = Warnings()
        self._warnings.add(text)

    def add_header(self, name: str, value: str) -> None:
        """Give the answer one more header, its name in lower case; only before it is sent."""
        self._more = [*(self._more or ()), (name, value)]

    def send(
        self, status: int, body: bytes, content_type: str = JSON, *, extra: Headers = ()
    ) -> None:
        """Answer with bytes of a media type, "" when there are none.

        A header in `extra` takes the place of the one all answers have.
        """
        if self._accepts_gzip and len(body) > GZIP_FROM_BYTES:
            body = gzip(body)
            extra = [*extra, *GZIP_HEAD]
        self.status = status
        self.responder.respond(status, self._head(content_type, extra), body)

    def document(self, status: int, obj: Obj) -> None:
        """Answer with an object."""
        self.send(status, encode(obj) + b"\n")

    def text(self, status: int, text: str) -> None:
        """Answer with plain text, as the health endpoints do."""
        self.send(status, text.encode(), "text/plain; charset=utf-8")

    async def pour(self, pieces: Iterator[bytes]) -> None:
        """Answer 200 with a JSON body in pieces of about `SLICE_BYTES`, at the client's pace.

        The loop has its turn after each; one piece alone is sent like any body.
        """
        first, second = next(pieces), next(pieces, None)
        if second is None:
            self.send(200, first)
            return
        coder = Gzip() if self._accepts_gzip else None
        self.stream(extra=GZIP_HEAD if coder else ())
        for piece in _chain(first, second, pieces):
            await self._write(coder.add(piece) if coder else piece)
            if self.responder.is_closed:
                return
        if coder:
            await self._write(coder.end())
        self.responder.end()

    async def _write(self, data: bytes) -> None:
        if not self.responder.write(data):
            await self.responder.drain()
        await asyncio.sleep(0)

    def fail(self, error: ApiError) -> None:
        """Answer with a Status, or cut a stream that has begun: a part is not the whole."""
        if self.is_streaming:
            self.responder.abort()
        else:
            self.error(error)

    def error(self, error: ApiError) -> None:
        """Answer with a Status; Retry-After makes client-go try again by itself."""
        extra: list[tuple[str, str]] = []
        if error.retry_after_s:
            extra.append(("retry-after", str(error.retry_after_s)))
        if error.code == 401:
            extra.append(("www-authenticate", 'Bearer realm="hublet"'))
        self.send(error.code, encode(error.status()) + b"\n", extra=extra)

    def stream(self, content_type: str = JSON, *, extra: Headers = ()) -> None:
        """Send the head of a stream at once, before any event."""
        self.is_streaming, self.status = True, 200
        self.responder.start(200, self._head(content_type, extra))

    def _head(self, content_type: str, extra: Headers) -> list[tuple[str, str]]:
        """Return the headers that kube-apiserver puts on every answer, and `extra`."""
        found = [("audit-id", self.audit_id)]
        if not any(name == "cache-control" for name, _ in extra):
            found.append(("cache-control", "no-cache, private"))
        if content_type:
            found.append(("content-type", content_type))
        found += extra
        if self._warnings is not None:
            found += self._warnings.headers()
        if self._more is not None:
            found += self._more
        return found


def _chain(first: bytes, second: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield first
    yield second
    yield from rest
