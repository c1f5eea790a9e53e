"""HTTP/2 on ngh2 (nghttp2), both roles.

ngh2 keeps the bytes objects it is given until the peer's windows take them, so there is no queue
here. What is added: our events, lower-case text headers, Date and content-length, and the rule that
an upload nobody will read is stopped (RST_STREAM NO_ERROR) once its answer has been flushed, not
before: nghttp2 drops what a reset stream still has to send.
"""

import ngh2

from hub.http.codec import (
    Buffer,
    DataReceived,
    Event,
    HeaderList,
    PeerLeaving,
    RequestReceived,
    ResponseReceived,
    StreamEnded,
)
from hub.http.codecs.fields import (
    DateHeader,
    check_fields,
    content_length,
    encode_fields,
    has_body,
    split_pseudo,
)
from hub.http.limits import Limits

_SETTING = ngh2.Setting
_GIVE_UP = ngh2.ErrorCode.NO_ERROR


class _Ngh2Codec:
    """What both roles share."""

    __slots__ = ("_events", "_is_broken", "_is_shut", "_session")

    def __init__(self, session: ngh2.Connection) -> None:
        self._session = session
        self._events: list[Event] = []
        self._is_broken = False
        self._is_shut = False

    @property
    def wants_read(self) -> bool:
        """Whether the session still listens."""
        return not self._is_broken

    @property
    def is_aborted(self) -> bool:
        """Never: RST_STREAM says it."""
        return False

    @property
    def is_mid_head(self) -> bool:
        """Never: streams carry the deadlines of HTTP/2."""
        return False

    @property
    def is_finished(self) -> bool:
        """Whether the session has ended; nghttp2 knows."""
        return self._is_broken or not (self._session.want_read or self._session.want_write)

    def feed(self, data: Buffer) -> list[Event]:
        """Take bytes off the wire and report what they and earlier flushes have brought about."""
        session = self._session
        if len(data) and not self._is_broken:
            try:
                session.receive_data(data)
            except ngh2.NGH2Error:
                self._is_broken = True
        for event in session.events():
            self._translate(event)
        events, self._events = self._events, []
        return events

    def flush(self, max_bytes: int) -> bytes:
        """Return frames for the wire."""
        try:
            return self._session.data_to_send(max_bytes)
        except ngh2.NGH2Error:
            self._is_broken = True
            return b""

    def send_data(self, stream_id: int, data: bytes, *, is_last: bool) -> None:
        """Queue a piece of the body."""
        try:
            self._session.send_data(stream_id, data, end_stream=is_last)
        except ngh2.NGH2Error:
            return  # the stream is gone; its StreamEnded is on the way

    def reset(self, stream_id: int) -> None:
        """Send RST_STREAM."""
        self._reset(stream_id, ngh2.ErrorCode.INTERNAL_ERROR)

    def _reset(self, stream_id: int, code: int) -> None:
        try:
            self._session.reset_stream(stream_id, code)
        except ngh2.NGH2Error:
            return  # as in send_data

    def queued_bytes(self, stream_id: int | None = None) -> int:
        """Return the body bytes not framed yet."""
        return self._session.queued_body_size(stream_id)

    def shutdown(self) -> None:
        """Send GOAWAY for the streams seen so far."""
        if not self._is_broken and not self._is_shut:
            self._is_shut = True
            try:
                self._session.send_goaway(ngh2.ErrorCode.NO_ERROR)
            except ngh2.NGH2Error:
                self._is_broken = True

    def lost(self) -> None:
        """Nothing holds the session but this codec."""
        self._is_broken = True

    def _translate(self, event: ngh2.Event) -> None:
        if isinstance(event, ngh2.DataReceived):
            self._data(event.stream_id, event.data, is_last=event.end_stream)
        elif isinstance(event, ngh2.TrailersReceived):
            self._data(event.stream_id, b"", is_last=True)
        elif isinstance(event, ngh2.StreamClosed):
            self._closed(event.stream_id, event.error_code)
        elif isinstance(event, ngh2.GoAwayReceived):
            self._events.append(PeerLeaving(event.last_stream_id))

    def _data(self, stream_id: int, data: bytes, *, is_last: bool) -> None:
        self._events.append(DataReceived(stream_id, data, is_last))

    def _closed(self, stream_id: int, code: int) -> None:
        self._events.append(StreamEnded(stream_id, error_name(code) if code else ""))


def error_name(code: int) -> str:
    """Return the RFC's name of an HTTP/2 error code."""
    try:
        return ngh2.ErrorCode(code).name
    except ValueError:
        return f"error {code}"


class Ngh2Server(_Ngh2Codec):
    """The answering side."""

    __slots__ = ("_date", "_max_body_bytes", "_unread", "_unstopped")

    def __init__(self, *, date: DateHeader, limits: Limits) -> None:
        config = ngh2.Configuration(
            stream_reset_rate_limit=(limits.reset_burst, limits.resets_per_s),
            max_inbound_header_list_size=limits.max_header_bytes,
        )
        super().__init__(ngh2.Connection(ngh2.Role.SERVER, config))
        self._date = date
        self._max_body_bytes = limits.max_body_bytes
        self._unread: set[int] = set()  # streams whose request is not complete
        self._unstopped: list[int] = []  # answered while still uploading
        self._session.initiate_connection(
            {
                _SETTING.MAX_CONCURRENT_STREAMS: limits.max_streams,
                _SETTING.INITIAL_WINDOW_SIZE: limits.receive_window_bytes,
                _SETTING.MAX_HEADER_LIST_SIZE: limits.max_header_bytes,
            }
        )
        self._session.set_local_window_size(limits.receive_window_bytes)

    def send_head(
        self, stream_id: int, status: int, headers: HeaderList, *, length: int | None, is_last: bool
    ) -> None:
        """Queue HEADERS."""
        check_fields(headers)
        fields = [(b":status", b"%d" % status), *encode_fields(headers)]
        fields.append((b"date", self._date.text().encode()))
        if length is not None and has_body(status):
            fields.append((b"content-length", b"%d" % length))
        try:
            self._session.send_response(stream_id, fields, end_stream=is_last)
        except ngh2.NGH2Error:
            return  # the stream is gone; its StreamEnded is on the way
        if is_last:
            self._stop_upload(stream_id)

    def send_data(self, stream_id: int, data: bytes, *, is_last: bool) -> None:
        """Queue a piece of the body; its end also ends an upload that goes on."""
        super().send_data(stream_id, data, is_last=is_last)
        if is_last:
            self._stop_upload(stream_id)

    def flush(self, max_bytes: int) -> bytes:
        """Return frames for the wire; behind a complete answer, stop the upload it was given to."""
        data = super().flush(max_bytes)
        if self._unstopped and len(data) < max_bytes:
            for stream_id in [i for i in self._unstopped if not self.queued_bytes(i)]:
                self._unstopped.remove(stream_id)
                self._reset(stream_id, _GIVE_UP)
            data += super().flush(max_bytes - len(data))
        return data

    def _stop_upload(self, stream_id: int) -> None:
        if stream_id in self._unread:
            self._unread.discard(stream_id)
            self._unstopped.append(stream_id)

    def _translate(self, event: ngh2.Event) -> None:
        if isinstance(event, ngh2.RequestReceived):
            self._request(event)
        else:
            super()._translate(event)

    def _request(self, event: ngh2.RequestReceived) -> None:
        pseudo, headers = split_pseudo(event.headers)
        stream_id, is_last = event.stream_id, event.end_stream
        target = pseudo.get(":path", headers.get("host", ""))  # CONNECT has no path
        if not is_last:
            self._unread.add(stream_id)
            self._expect(stream_id, headers)
        method = pseudo[":method"]
        self._events.append(RequestReceived(stream_id, method, target, headers, is_last))

    def _expect(self, stream_id: int, headers: dict[str, str]) -> None:
        """Answer `expect: 100-continue` unless the body would be refused anyway."""
        if headers.get("expect", "").lower() != "100-continue":
            return
        if (content_length(headers) or 0) <= self._max_body_bytes:
            try:
                self._session.send_informational_response(stream_id, [(b":status", b"100")])
            except ngh2.NGH2Error:
                return  # as in send_head

    def _data(self, stream_id: int, data: bytes, *, is_last: bool) -> None:
        if is_last:
            self._unread.discard(stream_id)
        super()._data(stream_id, data, is_last=is_last)

    def _closed(self, stream_id: int, code: int) -> None:
        self._unread.discard(stream_id)
        if stream_id in self._unstopped:
            self._unstopped.remove(stream_id)
        super()._closed(stream_id, code)


class Ngh2Client(_Ngh2Codec):
    """The asking side."""

    __slots__ = ("_requested",)

    def __init__(self, *, stream_window_bytes: int, connection_window_bytes: int) -> None:
        config = ngh2.Configuration(auto_window_update=False)
        super().__init__(ngh2.Connection(ngh2.Role.CLIENT, config))
        self._session.initiate_connection(
            {_SETTING.ENABLE_PUSH: 0, _SETTING.INITIAL_WINDOW_SIZE: stream_window_bytes}
        )
        self._session.set_local_window_size(max(connection_window_bytes, 65_535))

    @property
    def can_request(self) -> bool:
        """Whether the connection is open on both sides."""
        return not self._is_broken and not self._is_shut and self._session.can_send_request

    def request(
        self, method: str, target: str, headers: HeaderList, *, length: int | None, is_last: bool
    ) -> int:
        """Queue HEADERS."""
        check_fields(headers)
        authority = next((value for name, value in headers if name == "host"), "")
        rest = [(name, value) for name, value in headers if name != "host"]
        if length is not None:
            rest.append(("content-length", str(length)))
        pseudo = [
            (":method", method),
            (":scheme", "https"),
            (":authority", authority),
            (":path", target),
        ]
        return self._session.send_request(encode_fields([*pseudo, *rest]), end_stream=is_last)

    def consumed(self, stream_id: int, n_bytes: int) -> None:
        """Open the windows again."""
        try:
            self._session.acknowledge_received_data(n_bytes, stream_id)
        except ngh2.NGH2Error:
            return  # the connection is ending

    def reset(self, stream_id: int) -> None:
        """Send RST_STREAM CANCEL."""
        self._reset(stream_id, ngh2.ErrorCode.CANCEL)

    def _translate(self, event: ngh2.Event) -> None:
        if isinstance(event, ngh2.ResponseReceived):
            pseudo, headers = split_pseudo(event.headers)
            status = int(pseudo[":status"])
            self._events.append(
                ResponseReceived(event.stream_id, status, headers, event.end_stream)
            )
        else:
            super()._translate(event)
