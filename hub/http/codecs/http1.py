"""HTTP/1.1, the answering side, parsed by httptools (llhttp).

One response at a time: requests that arrive behind an unfinished one (pipelining) are parsed, kept
as events and given out when its answer is complete; meanwhile `wants_read` is False, so what waits
is bounded by one read. Errors of the peer are answered here (400, 431) and close the connection; so
does an answer given before the request's body was read. Not owned: the size of bodies (the
connection counts them).
"""

from http import HTTPStatus

import httptools

from hub.http.codec import Buffer, DataReceived, Event, HeaderList, RequestReceived, StreamEnded
from hub.http.codecs.fields import DateHeader, add_field, check_fields, content_length, has_body
from hub.http.wirequeue import WireQueue

_NOBODY = object()
_JOIN_BYTES = 4_096  # chunks up to this are copied into one piece with their frame


def reason_phrase(status: int) -> str:
    """Return the phrase of the status line."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


class Http1Server:
    """One HTTP/1.1 connection of a server."""

    __slots__ = (
        "_aborted",
        "_chunked",
        "_current",
        "_date",
        "_events",
        "_failure",
        "_fields",
        "_finished",
        "_head_bytes",
        "_is_closing",
        "_later",
        "_max_body_bytes",
        "_max_header_bytes",
        "_needs_close",
        "_old",
        "_out",
        "_parser",
        "_parsing",
        "_quiet_bytes",
        "_received",
        "_serial",
        "_target",
    )

    def __init__(self, *, date: DateHeader, max_header_bytes: int, max_body_bytes: int) -> None:
        self._date = date
        self._max_header_bytes = max_header_bytes
        self._max_body_bytes = max_body_bytes
        self._parser = httptools.HttpRequestParser(self)
        self._out = WireQueue()
        self._events: list[Event] = []
        self._later: list[Event] = []  # of requests behind the current one
        self._serial = 0  # the last request whose head was parsed
        self._parsing = False  # a request has begun and is not complete
        self._current = 0  # the request being answered, 0 for none
        self._received = 0  # the last request read to its end
        self._needs_close: set[int] | None = None  # requests after whose answer the client closes
        self._old = 0  # the first HTTP/1.0 request: its stream ends with the connection
        self._chunked = False
        self._is_closing = False  # no request after the current one
        self._finished = False
        self._aborted = False
        self._failure = 0  # the status to refuse the connection's next request with
        self._head_bytes = self._quiet_bytes = 0
        self._target = b""
        self._fields: dict[str, str] | None = None  # of the head being parsed

    # -- towards the connection

    @property
    def wants_read(self) -> bool:
        """False while a pipelined request waits or the connection is ending."""
        return not (self._later or self._finished or self._failure)

    @property
    def is_finished(self) -> bool:
        """Whether the last answer is complete and no other will follow."""
        return self._finished

    @property
    def is_aborted(self) -> bool:
        """Whether a response was cut short."""
        return self._aborted

    @property
    def is_mid_head(self) -> bool:
        """Whether a head has begun and not ended."""
        return self._parsing and self._fields is not None

    def feed(self, data: Buffer) -> list[Event]:
        """Parse `data`; see `Codec.feed`."""
        if len(data) and not self._finished and not self._failure:
            self._parse(data)
        if self._failure and not self._current_is_sound():
            self._refuse()
        events, self._events = self._events, []
        return events

    def flush(self, max_bytes: int) -> bytes:
        """Return bytes for the wire."""
        return self._out.take(max_bytes)

    def send_head(
        self, stream_id: int, status: int, headers: HeaderList, *, length: int | None, is_last: bool
    ) -> None:
        """Queue the head; a stream of unknown length is sent chunked."""
        check_fields(headers)
        if stream_id != self._current:
            return
        lines = [f"HTTP/1.1 {status} {reason_phrase(status)}"]
        lines += [f"{name}: {value}" for name, value in headers]
        lines.append(f"date: {self._date.text()}")
        is_old = 0 < self._old <= self._current
        self._chunked = length is None and has_body(status) and not is_old
        if self._chunked:
            lines.append("transfer-encoding: chunked")
        elif length is not None and has_body(status):
            lines.append(f"content-length: {length}")
        if self._is_last_response():
            lines.append("connection: close")
        self._out.put("\r\n".join([*lines, "", ""]).encode("latin-1"))
        if is_last:
            self._complete()

    def send_data(self, stream_id: int, data: bytes, *, is_last: bool) -> None:
        """Queue a piece of the current response."""
        if stream_id != self._current:
            return
        if self._chunked:
            self._put_chunk(data, is_last=is_last)
        else:
            self._out.put(data)
        if is_last:
            self._complete()

    def reset(self, stream_id: int) -> None:
        """Close the connection short of the response's end."""
        if stream_id == self._current:
            self._out.clear()
            self._finished = self._aborted = True
            self._current = 0
            self._events.append(StreamEnded(stream_id, "reset"))

    def queued_bytes(self, stream_id: int | None = None) -> int:
        """Return what is queued: there is one response at a time."""
        return len(self._out) if stream_id is None or stream_id == self._current else 0

    def shutdown(self) -> None:
        """Close after the current response, or now when there is none."""
        self._is_closing = True
        if not self._current:
            self._finished = True

    def lost(self) -> None:
        """Break the cycle between parser and codec."""
        self._parser = httptools.HttpRequestParser(_NOBODY)
        self._finished = True
        self._out.clear()
        self._later.clear()

    # -- parsing (called by httptools)

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._parsing = True
        self._fields = {}
        self._target = b""
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Take (a part of) the target."""
        self._head_bytes += len(url)
        self._target += url

    def on_header(self, name: bytes, value: bytes | None) -> None:
        """Take a field of the head; trailers are ignored."""
        if self._fields is None:
            return
        self._head_bytes += len(name) + len(value or b"") + 32
        text = (value or b"").decode("latin-1").strip(" \t")
        add_field(self._fields, name.decode("latin-1").lower(), text)

    def on_headers_complete(self) -> None:
        """Report the head."""
        headers, self._fields = self._fields or {}, None
        self._serial += 1
        self._quiet_bytes = 0
        if self._head_bytes > self._max_header_bytes:
            self._failure = 431
        elif "host" not in headers and self._parser.get_http_version() == "1.1":
            self._failure = 400
        if self._failure:
            return
        is_old = self._parser.get_http_version() != "1.1"
        if is_old or not self._parser.should_keep_alive():
            self._close_after(self._serial)
            self._old = self._serial if is_old else 0
        method = self._parser.get_method().decode("latin-1")
        target = self._target.decode("latin-1")
        self._report(RequestReceived(self._serial, method, target, headers, is_last=False))
        self._expect(headers)

    def on_body(self, body: bytes) -> None:
        """Report a piece of the body."""
        self._quiet_bytes = 0
        if not self._failure:
            self._report(DataReceived(self._serial, body, is_last=False))

    def on_chunk_header(self) -> None:
        """Note that the body moves on."""
        self._quiet_bytes = 0

    def on_message_complete(self) -> None:
        """Report the end of the request, on its last event where possible."""
        self._parsing = False
        if self._failure:
            return
        self._received = self._serial
        events = self._later or self._events
        last = events[-1] if events else None
        if isinstance(last, RequestReceived | DataReceived) and last.stream_id == self._serial:
            last.is_last = True
        else:
            self._report(DataReceived(self._serial, b"", is_last=True))

    # -- inner workings

    def _parse(self, data: Buffer) -> None:
        self._quiet_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._close_after(self._serial)  # what follows the head is not HTTP to us
            self._is_closing = True
        except httptools.HttpParserError:
            self._failure = self._failure or 400
        if self._parsing and self._quiet_bytes > self._max_header_bytes:
            self._failure = (
                self._failure or 431
            )  # a head, a chunk extension or a trailer without end
        if not self._parsing:
            self._quiet_bytes = 0

    def _report(self, event: RequestReceived | DataReceived) -> None:
        """Give the event out now when it belongs to the current request, else keep it."""
        if not self._current and not self._later:
            self._current = event.stream_id
        if event.stream_id == self._current:
            self._events.append(event)
        elif event.stream_id > self._current and not self._is_last_response():
            self._later.append(event)

    def _expect(self, headers: dict[str, str]) -> None:
        """Answer `Expect: 100-continue` unless the body would be refused anyway."""
        is_expected = headers.get("expect", "").lower() == "100-continue"
        is_wanted = (content_length(headers) or 0) <= self._max_body_bytes
        if is_expected and is_wanted and self._current == self._serial:
            self._out.put(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _close_after(self, stream_id: int) -> None:
        if self._needs_close is None:
            self._needs_close = set()
        self._needs_close.add(stream_id)

    def _is_last_response(self) -> bool:
        """Whether the connection ends with the current response."""
        return (
            self._is_closing
            or self._received < self._current
            or (self._needs_close is not None and self._current in self._needs_close)
        )

    def _put_chunk(self, data: bytes, *, is_last: bool) -> None:
        end = b"0\r\n\r\n" if is_last else b""
        if not data:
            self._out.put(end)
        elif len(data) <= _JOIN_BYTES:
            self._out.put(b"%x\r\n%b\r\n%b" % (len(data), data, end))
        else:
            self._out.put(b"%x\r\n" % len(data))
            self._out.put(data)
            self._out.put(b"\r\n" + end)

    def _complete(self) -> None:
        """End the current response and let the next pipelined request out."""
        is_last = self._is_last_response()
        self._events.append(StreamEnded(self._current, ""))
        self._current = 0
        if is_last:
            self._finished = True
            self._later.clear()
        elif self._later:
            waiting, self._later = self._later, []
            for event in waiting:
                self._report(event)  # type: ignore[arg-type]  # only request and data events wait
        if self._failure and not self._current:
            self._refuse()

    def _current_is_sound(self) -> bool:
        """Whether the failure belongs to a later request than the one being answered."""
        return 0 < self._current <= self._received

    def _refuse(self) -> None:
        """Answer the request that cannot be read, and end."""
        if self._finished:
            return
        if self._current:
            self._events.append(StreamEnded(self._current, "malformed request"))
            self._current = 0
        status = self._failure
        self._out.put(
            f"HTTP/1.1 {status} {reason_phrase(status)}\r\ndate: {self._date.text()}\r\n"
            "content-length: 0\r\nconnection: close\r\n\r\n".encode("latin-1")
        )
        self._finished = True
