"""HTTP/1.1, the asking side, parsed by httptools (llhttp): one exchange at a time, no pipelining.

Interim (1xx) responses are skipped. A body that ends with the connection (neither content-length
nor chunks) is not supported: it cannot be told from a lost one. What the application has not
consumed is bounded by `wants_read`.
"""

import httptools

from hub.http.codec import Buffer, DataReceived, Event, HeaderList, ResponseReceived, StreamEnded
from hub.http.codecs.fields import add_field, check_fields
from hub.http.wirequeue import WireQueue

_MAX_HEAD_BYTES = 256 * 1024


class Http1Client:
    """One HTTP/1.1 connection of a client."""

    __slots__ = (
        "_aborted",
        "_chunked",
        "_current",
        "_events",
        "_fields",
        "_finished",
        "_head_bytes",
        "_is_head",
        "_is_sent",
        "_last",
        "_max_unread_bytes",
        "_out",
        "_parser",
        "_unread",
    )

    def __init__(self, *, max_unread_bytes: int) -> None:
        self._max_unread_bytes = max_unread_bytes
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._out = WireQueue()
        self._events: list[Event] = []
        self._fields: dict[str, str] = {}
        self._head_bytes = 0
        self._last = 0  # the last stream given out
        self._current = 0  # the exchange under way, 0 for none
        self._is_head = False
        self._is_sent = False  # the request is complete
        self._chunked = False
        self._unread = 0
        self._finished = False
        self._aborted = False

    @property
    def can_request(self) -> bool:
        """Whether the connection is free."""
        return not self._current and not self._finished

    @property
    def wants_read(self) -> bool:
        """False while the application has enough to read."""
        return self._unread < self._max_unread_bytes

    @property
    def is_finished(self) -> bool:
        """Whether the connection is used up."""
        return self._finished

    @property
    def is_aborted(self) -> bool:
        """Whether an exchange was given up."""
        return self._aborted

    @property
    def is_mid_head(self) -> bool:
        """Never asked of a client."""
        return False

    def feed(self, data: Buffer) -> list[Event]:
        """Parse `data`."""
        if len(data) and not self._finished and self._parser is not None:
            self._head_bytes += len(data)
            try:
                self._parser.feed_data(data)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade):
                self._fail("malformed response")
            if self._head_bytes > _MAX_HEAD_BYTES and not self._finished:
                self._fail("response head too large")
        events, self._events = self._events, []
        return events

    def flush(self, max_bytes: int) -> bytes:
        """Return bytes for the wire."""
        return self._out.take(max_bytes)

    def request(
        self, method: str, target: str, headers: HeaderList, *, length: int | None, is_last: bool
    ) -> int:
        """Queue the head of a request."""
        check_fields(headers)
        check_fields([(method, target)])
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        self._chunked = length is None and not is_last
        if self._chunked:
            lines.append("transfer-encoding: chunked")
        elif length is not None:
            lines.append(f"content-length: {length}")
        self._out.put("\r\n".join([*lines, "", ""]).encode("latin-1"))
        self._last += 1
        self._current = self._last
        self._is_head = method == "HEAD"
        self._is_sent = is_last
        return self._current

    def send_data(self, stream_id: int, data: bytes, *, is_last: bool) -> None:
        """Queue a piece of the request's body."""
        if stream_id != self._current:
            return
        if not self._chunked:
            self._out.put(data)
        elif data:
            self._out.put(b"%x\r\n%b\r\n" % (len(data), data))
        if self._chunked and is_last:
            self._out.put(b"0\r\n\r\n")
        self._is_sent = self._is_sent or is_last

    def reset(self, stream_id: int) -> None:
        """Give the exchange up, and the connection with it."""
        if stream_id == self._current:
            self._aborted = True
            self._fail("reset")

    def queued_bytes(self, stream_id: int | None = None) -> int:
        """Return what is queued."""
        return len(self._out) if stream_id is None or stream_id == self._current else 0

    def consumed(self, stream_id: int, n_bytes: int) -> None:  # noqa: ARG002  one stream at a time
        """Note what the application has taken."""
        self._unread -= n_bytes

    def shutdown(self) -> None:
        """Close once the exchange under way is over."""
        if not self._current:
            self._finished = True

    def lost(self) -> None:
        """Break the cycle between parser and codec."""
        self._parser = None
        self._finished = True
        self._out.clear()

    # -- parsing (called by httptools)

    def on_message_begin(self) -> None:
        """Begin a response, or an interim one."""
        self._fields = {}
        self._head_bytes = 0

    def on_header(self, name: bytes, value: bytes | None) -> None:
        """Take a field."""
        text = (value or b"").decode("latin-1").strip(" \t")
        add_field(self._fields, name.decode("latin-1").lower(), text)

    def on_headers_complete(self) -> None:
        """Report the head."""
        self._head_bytes = 0
        status = self._status()
        if status >= 200 and self._current:
            fields, self._fields = self._fields, {}
            event = ResponseReceived(self._current, status, fields, is_last=self._is_head)
            self._events.append(event)
            if self._is_head:
                self._parser = httptools.HttpResponseParser(self)  # it would wait for a body
                self._complete()

    def on_body(self, body: bytes) -> None:
        """Report a piece of the body."""
        self._head_bytes = 0
        if self._current:
            self._unread += len(body)
            self._events.append(DataReceived(self._current, body, is_last=False))

    def on_message_complete(self) -> None:
        """Report the end of the response."""
        if self._status() < 200 or not self._current:
            return
        last = self._events[-1] if self._events else None
        if isinstance(last, ResponseReceived | DataReceived):
            last.is_last = True
        else:
            self._events.append(DataReceived(self._current, b"", is_last=True))
        self._complete()

    def _status(self) -> int:
        status: int = self._parser.get_status_code() if self._parser is not None else 0
        return status

    def _complete(self) -> None:
        """End the exchange; an unfinished request or `connection.

        Close` ends the connection too.
        """
        is_kept = self._parser is not None and self._parser.should_keep_alive()
        self._events.append(StreamEnded(self._current, ""))
        self._current = 0
        if not (self._is_head or is_kept) or not self._is_sent or len(self._out):
            self._finished = True

    def _fail(self, error: str) -> None:
        self._finished = True
        self._out.clear()
        if self._current:
            self._events.append(StreamEnded(self._current, error))
            self._current = 0
