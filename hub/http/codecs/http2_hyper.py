"""HTTP/2 on python-hyper's h2, both roles.

h2 frames at once what it is given, so the bodies wait here, a queue a stream, and are framed
round-robin as the socket and the peer's windows take them. Also added: limits nghttp2 has built in
(a bucket for RST_STREAM, a bound on the control frames owed to the peer), one event for the end of
a stream, and a GOAWAY, sent or received, after which open streams go on (h2's own forbids every
later frame).
"""

from collections import deque
from contextlib import suppress

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from hub.clock import Clock
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
from hub.http.codecs.bucket import Bucket
from hub.http.codecs.fields import (
    DateHeader,
    check_fields,
    content_length,
    encode_fields,
    has_body,
    split_pseudo,
)
from hub.http.codecs.goaway import PREFACE_BYTES, GoawaySplitter, goaway_frame
from hub.http.limits import MIB, Limits
from hub.http.wirequeue import WireQueue

_SETTING = h2.settings.SettingCodes
_ERROR = h2.errors.ErrorCodes
_MAX_CONTROL_BYTES = 1 * MIB  # heads and acknowledgements the peer does not take
_IDLE = (
    h2.events.PingReceived,
    h2.events.RemoteSettingsChanged,
    h2.events.SettingsAcknowledged,
    h2.events.PriorityUpdated,
    h2.events.UnknownFrameReceived,
)


class _Stream:
    """What is known of one stream; `queue` exists once there is a body to send."""

    __slots__ = ("is_queued", "is_read", "is_sent", "is_sent_after_queue", "queue")

    def __init__(self, *, is_read: bool) -> None:
        self.queue: WireQueue | None = None
        self.is_read = is_read  # the peer has ended its side
        self.is_sent_after_queue = False  # our side ends when the queue is empty
        self.is_sent = False
        self.is_queued = False  # is in the codec's ready list


class _HyperCodec:
    """What both roles share."""

    __slots__ = (
        "_broken",
        "_events",
        "_goaways",
        "_is_leaving",
        "_out",
        "_ready",
        "_session",
        "_shut",
        "_size",
        "_streams",
    )

    def __init__(self, *, is_client: bool) -> None:
        config = h2.config.H2Configuration(
            client_side=is_client,
            header_encoding=None,
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
        )
        self._session = h2.connection.H2Connection(config)
        self._streams: dict[int, _Stream] = {}
        self._ready: deque[int] = deque()
        self._size = 0
        self._events: list[Event] = []
        self._out = WireQueue()
        self._goaways = GoawaySplitter(preface_bytes=0 if is_client else PREFACE_BYTES)
        self._broken = False
        self._shut = False  # we have sent GOAWAY
        self._is_leaving = False  # the peer has

    @property
    def wants_read(self) -> bool:
        """Whether the session still listens."""
        return not self._broken

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
        """Whether the session is broken, or shut down with its last stream gone."""
        is_ending = self._shut or self._is_leaving
        return self._broken or (is_ending and not self._streams)

    def feed(self, data: Buffer) -> list[Event]:
        """Take bytes off the wire and report what they and earlier flushes have brought about."""
        if len(data) and not self._broken:
            frames, goaways = self._goaways.split(bytes(data))
            self._feed(frames)
            for last_stream_id in goaways:
                self._peer_leaves(last_stream_id)
            if self._goaways.is_overlong:
                self._end(_ERROR.FRAME_SIZE_ERROR)
        events, self._events = self._events, []
        return events

    def _feed(self, frames: bytes) -> None:
        try:
            received = self._session.receive_data(frames)
        except (h2.exceptions.H2Error, ValueError, IndexError, KeyError):
            self._break()
        else:
            for event in received:
                self._translate(event)
        self._collect()

    def flush(self, max_bytes: int) -> bytes:
        """Return frames for the wire, framing as many bodies as fit."""
        while len(self._out) < max_bytes and self._ready and not self._broken:
            self._frame_next(max_bytes)
        return self._out.take(max_bytes)

    def send_data(self, stream_id: int, data: bytes, *, is_last: bool) -> None:
        """Queue a piece of the body."""
        stream = self._streams.get(stream_id)
        if stream is None or stream.is_sent or stream.is_sent_after_queue:
            return
        if data:
            if stream.queue is None:
                stream.queue = WireQueue()
            stream.queue.put(data)
            self._size += len(data)
        stream.is_sent_after_queue = is_last
        self._make_ready(stream_id, stream)

    def reset(self, stream_id: int) -> None:
        """Send RST_STREAM."""
        self._reset(stream_id, _ERROR.INTERNAL_ERROR)

    def queued_bytes(self, stream_id: int | None = None) -> int:
        """Return the body bytes not framed yet."""
        if stream_id is None:
            return self._size
        stream = self._streams.get(stream_id)
        return len(stream.queue) if stream is not None and stream.queue is not None else 0

    def shutdown(self) -> None:
        """Send GOAWAY for the streams seen so far."""
        if not self._shut and not self._broken:
            self._shut = True
            last = self._session.highest_inbound_stream_id
            self._collect()
            self._out.put(goaway_frame(last))

    def lost(self) -> None:
        """Let go of the queues."""
        self._broken = True
        self._streams.clear()
        self._ready.clear()
        self._out.clear()
        self._size = 0

    # -- sending

    def _make_ready(self, stream_id: int, stream: _Stream) -> None:
        if not stream.is_queued:
            stream.is_queued = True
            self._ready.append(stream_id)

    def _frame_next(self, max_bytes: int) -> None:
        """Frame one DATA of the next ready stream.

        A stream whose window is shut leaves the list.
        """
        stream_id = self._ready.popleft()
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        stream.is_queued = False
        waiting = len(stream.queue) if stream.queue is not None else 0
        try:
            room = self._session.local_flow_control_window(stream_id) if waiting else 0
            size = min(room, waiting, self._session.max_outbound_frame_size, max_bytes)
            is_last = stream.is_sent_after_queue and size == waiting
            if size <= 0 and not is_last:
                return  # a WINDOW_UPDATE brings it back
            data = stream.queue.take(size) if stream.queue is not None else b""
            self._session.send_data(stream_id, data, end_stream=is_last)
        except h2.exceptions.H2Error:
            self._forget(stream_id, "stream closed")
            return
        self._size -= len(data)
        self._collect()
        if is_last:
            stream.is_sent = True
            self._sent(stream_id, stream)
        elif waiting > size:
            self._make_ready(stream_id, stream)

    def _sent(self, stream_id: int, stream: _Stream) -> None:
        """Our side of the stream has ended."""
        if stream.is_read:
            self._forget(stream_id, "")

    def _reset(self, stream_id: int, code: int) -> None:
        if stream_id in self._streams:
            with suppress(h2.exceptions.H2Error):  # closed already; forgotten below
                self._session.reset_stream(stream_id, code)
            self._collect()
            self._forget(stream_id, "" if code == _ERROR.NO_ERROR else "reset")

    def _forget(self, stream_id: int, error: str) -> None:
        stream = self._streams.pop(stream_id, None)
        if stream is not None:
            if stream.queue is not None:
                self._size -= len(stream.queue)
            self._events.append(StreamEnded(stream_id, error))

    def _collect(self) -> None:
        """Move what h2 has framed into our queue, and bound it.

        A peer that only provokes answers is cut.
        """
        self._out.put(self._session.data_to_send())
        if len(self._out) > _MAX_CONTROL_BYTES:
            self._out.clear()
            self._break()

    def _end(self, code: int) -> None:
        """Close the connection with `code`."""
        if not self._broken:
            with suppress(h2.exceptions.H2Error):  # closed already
                self._session.close_connection(code)
            self._collect()
            self._break()

    def _break(self) -> None:
        self._broken = True
        for stream_id in list(self._streams):
            self._forget(stream_id, "connection error")

    # -- receiving

    def _translate(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.DataReceived):
            self._received(event)
        elif isinstance(event, h2.events.StreamEnded):
            self._peer_ended(event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            self._peer_reset(event)
        elif isinstance(event, h2.events.WindowUpdated):
            self._wake(event.stream_id)
        elif isinstance(event, h2.events.RemoteSettingsChanged):
            self._wake(0)

    def _received(self, event: h2.events.DataReceived) -> None:
        self._account(event)
        if event.data:
            self._events.append(DataReceived(event.stream_id, event.data, is_last=False))

    def _account(self, event: h2.events.DataReceived) -> None:
        """Open the windows by what arrived: bodies are bounded elsewhere."""
        self._acknowledge(event.stream_id, event.flow_controlled_length)

    def _acknowledge(self, stream_id: int, n_bytes: int) -> None:
        try:
            if n_bytes:
                self._session.acknowledge_received_data(n_bytes, stream_id)
        except h2.exceptions.H2Error:
            return  # the stream or the connection has ended meanwhile

    def _peer_ended(self, stream_id: int) -> None:
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        stream.is_read = True
        last = self._events[-1] if self._events else None
        if (
            isinstance(last, RequestReceived | ResponseReceived | DataReceived)
            and last.stream_id == stream_id
        ):
            last.is_last = True
        else:
            self._events.append(DataReceived(stream_id, b"", is_last=True))
        if stream.is_sent:
            self._forget(stream_id, "")

    def _peer_reset(self, event: h2.events.StreamReset) -> None:
        code = event.error_code
        name = code.name if isinstance(code, _ERROR) else f"error {code}"
        self._forget(event.stream_id, "" if code == _ERROR.NO_ERROR else name)

    def _peer_leaves(self, last_stream_id: int) -> None:
        self._is_leaving = True
        self._events.append(PeerLeaving(last_stream_id))

    def _wake(self, stream_id: int) -> None:
        """Try the streams again whose window may have opened."""
        for name in self._streams if not stream_id else (stream_id,):
            stream = self._streams.get(name)
            if stream is not None and stream.queue is not None and len(stream.queue):
                self._make_ready(name, stream)


class HyperServer(_HyperCodec):
    """The answering side."""

    __slots__ = ("_date", "_idle_frames", "_limits", "_resets")

    def __init__(self, *, date: DateHeader, limits: Limits, clock: Clock) -> None:
        super().__init__(is_client=False)
        self._date = date
        self._limits = limits
        self._resets = Bucket(clock, limits.reset_burst, limits.resets_per_s)
        self._idle_frames = Bucket(clock, limits.idle_frame_burst, limits.idle_frames_per_s)
        self._session.local_settings = h2.settings.Settings(
            client=False,
            initial_values={
                _SETTING.MAX_CONCURRENT_STREAMS: limits.max_streams,
                _SETTING.INITIAL_WINDOW_SIZE: limits.receive_window_bytes,
                _SETTING.MAX_HEADER_LIST_SIZE: limits.max_header_bytes,
            },
        )
        self._session.decoder.max_header_list_size = limits.max_header_bytes
        self._session.initiate_connection()
        more = limits.receive_window_bytes - 65_535
        if more > 0:
            self._session.increment_flow_control_window(more)
        self._collect()

    def send_head(
        self, stream_id: int, status: int, headers: HeaderList, *, length: int | None, is_last: bool
    ) -> None:
        """Frame HEADERS."""
        check_fields(headers)
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        fields = [(b":status", b"%d" % status), *encode_fields(headers)]
        fields.append((b"date", self._date.text().encode()))
        if length is not None and has_body(status):
            fields.append((b"content-length", b"%d" % length))
        try:
            self._session.send_headers(stream_id, fields, end_stream=is_last)
        except h2.exceptions.H2Error:
            self._forget(stream_id, "stream closed")
            return
        self._collect()
        if is_last:
            stream.is_sent = True
            self._sent(stream_id, stream)

    def _sent(self, stream_id: int, stream: _Stream) -> None:
        """Our side has ended: the stream is done, or its upload is stopped."""
        if stream.is_read:
            self._forget(stream_id, "")
        else:
            self._reset(stream_id, _ERROR.NO_ERROR)

    def _translate(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            self._request(event)
        elif isinstance(event, _IDLE) or (
            isinstance(event, h2.events.DataReceived) and not event.data and not event.stream_ended
        ):
            if not self._idle_frames.take():
                self._end(_ERROR.ENHANCE_YOUR_CALM)
            super()._translate(event)
        else:
            super()._translate(event)

    def _request(self, event: h2.events.RequestReceived) -> None:
        stream_id = event.stream_id
        pseudo, headers = split_pseudo(event.headers)
        self._streams[stream_id] = _Stream(is_read=False)
        if self._shut:
            self._reset(stream_id, _ERROR.REFUSED_STREAM)
            return
        target = pseudo.get(":path", headers.get("host", ""))  # CONNECT has no path
        method = pseudo.get(":method", "")
        self._events.append(RequestReceived(stream_id, method, target, headers, is_last=False))
        if event.stream_ended is None:
            self._expect(stream_id, headers)

    def _expect(self, stream_id: int, headers: dict[str, str]) -> None:
        """Answer `expect: 100-continue` unless the body would be refused anyway."""
        if headers.get("expect", "").lower() != "100-continue":
            return
        if (content_length(headers) or 0) <= self._limits.max_body_bytes:
            try:
                self._session.send_headers(stream_id, [(b":status", b"100")])
            except h2.exceptions.H2Error:
                return  # the stream is gone

    def _peer_reset(self, event: h2.events.StreamReset) -> None:
        """Count resets: a stream opened and reset costs us more than it costs the client."""
        super()._peer_reset(event)
        if not self._resets.take():
            self._end(_ERROR.ENHANCE_YOUR_CALM)


class HyperClient(_HyperCodec):
    """The asking side."""

    __slots__ = ()

    def __init__(self, *, stream_window_bytes: int, connection_window_bytes: int) -> None:
        super().__init__(is_client=True)
        self._session.local_settings = h2.settings.Settings(
            client=True,
            initial_values={
                _SETTING.ENABLE_PUSH: 0,
                _SETTING.INITIAL_WINDOW_SIZE: stream_window_bytes,
            },
        )
        self._session.initiate_connection()
        more = connection_window_bytes - 65_535
        if more > 0:
            self._session.increment_flow_control_window(more)
        self._collect()

    @property
    def can_request(self) -> bool:
        """Whether both sides are open and the peer has room for one more stream."""
        session = self._session
        has_room = session.open_outbound_streams < session.remote_settings.max_concurrent_streams
        return has_room and not (self._broken or self._shut or self._is_leaving)

    def request(
        self, method: str, target: str, headers: HeaderList, *, length: int | None, is_last: bool
    ) -> int:
        """Frame HEADERS."""
        check_fields(headers)
        authority = next((value for name, value in headers if name == "host"), "")
        fields = [(":method", method), (":scheme", "https"), (":authority", authority)]
        fields.append((":path", target))
        fields += [(name, value) for name, value in headers if name != "host"]
        if length is not None:
            fields.append(("content-length", str(length)))
        stream_id = self._session.get_next_available_stream_id()
        self._session.send_headers(stream_id, encode_fields(fields), end_stream=is_last)
        self._collect()
        stream = self._streams[stream_id] = _Stream(is_read=False)
        stream.is_sent = is_last
        return stream_id

    def consumed(self, stream_id: int, n_bytes: int) -> None:
        """Open the windows again."""
        self._acknowledge(stream_id, n_bytes)
        self._collect()

    def reset(self, stream_id: int) -> None:
        """Send RST_STREAM CANCEL."""
        self._reset(stream_id, _ERROR.CANCEL)

    def _peer_leaves(self, last_stream_id: int) -> None:
        """Give up the streams the server will not look at."""
        super()._peer_leaves(last_stream_id)
        for stream_id in [name for name in self._streams if name > last_stream_id]:
            self._forget(stream_id, "REFUSED_STREAM")

    def _account(self, event: h2.events.DataReceived) -> None:
        """Leave the window to `consumed`, but for the padding nobody will consume."""
        padding = (event.flow_controlled_length or 0) - len(event.data or b"")
        self._acknowledge(event.stream_id, padding)

    def _translate(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.ResponseReceived):
            pseudo, headers = split_pseudo(event.headers)
            status = int(pseudo[":status"])
            self._events.append(ResponseReceived(event.stream_id, status, headers, is_last=False))
        else:
            super()._translate(event)
