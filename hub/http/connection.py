"""One client's connection to the server: streams over a codec over a TLS link.

Owns the streams, the collection of request bodies up to their limits, and the deadlines of its
streams. A finished request is handed to the server, which runs the handler. Not owned: bytes
(link), protocol (codec), tasks (server).
"""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from hub.http.api import Peer, Request
from hub.http.codec import Codec, DataReceived, Event, RequestReceived, ServerCodec, StreamEnded
from hub.http.codecs.fields import content_length
from hub.http.limits import Limits
from hub.http.link import Link, LinkState, describe
from hub.http.poller import Poller
from hub.http.stream import ServerStream
from hub.http.tally import Cut, Handshake, Tally, reason_of
from hub.http.tls import parse_peer

# as Go's net/http has it
_NO_TLS = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"


class ConnectionOwner(Protocol):
    """What a connection needs of its server."""

    @property
    def limits(self) -> Limits:
        """The bounds."""
        ...

    @property
    def tally(self) -> Tally:
        """Where to count what goes wrong."""
        ...

    @property
    def is_closing(self) -> bool:
        """Whether no new requests are wanted."""
        ...

    def make_codec(self, alpn: str | None) -> ServerCodec:
        """Return a fresh codec for what ALPN agreed on."""
        ...

    def may_handshake(self) -> bool:
        """Whether this turn of the loop has a handshake step left; takes it."""
        ...

    def run(self, request: Request, stream: ServerStream, done: Callable[[], None]) -> None:
        """Start the handler; `done` is called when it is over."""
        ...

    def reserve(self, n_bytes: int) -> bool:
        """Count `n_bytes` of unfinished bodies (negative.

        Give back); False when there are too many.
        """
        ...

    def opened(self, connection: "ServerConnection") -> None:
        """Learn that the handshake is done."""
        ...

    def closed(self, connection: "ServerConnection", reason: str) -> None:
        """Learn that the connection is gone, and why."""
        ...


class _Incoming:
    """A request whose body is still arriving."""

    __slots__ = ("body", "request", "since_s", "stream")

    def __init__(self, request: Request, stream: ServerStream, since_s: float) -> None:
        self.request = request
        self.stream = stream
        self.since_s = since_s
        self.body = bytearray()  # one piece: many small ones would take more than they count for


class ServerConnection(Link):
    """A connection; its owner sweeps it for deadlines."""

    __slots__ = (
        "_busy",
        "_incoming",
        "_owner",
        "_running",
        "_waiting",
        "failure",
        "has_opened",
        "head_since_s",
        "http_version",
        "peer",
        "remote",
        "request_count",
        "server_codec",
        "streams",
    )

    def __init__(
        self, owner: ConnectionOwner, poller: Poller, sock: ssl.SSLSocket, *, remote: str
    ) -> None:
        super().__init__(poller, sock)
        self._owner = owner
        self.remote = remote
        self.peer: Peer | None = None
        self.http_version = ""
        self.has_opened = False
        self.failure = Handshake.CLOSED  # should it never open
        self.server_codec: ServerCodec | None = None
        self.request_count = 0
        self.streams: dict[int, ServerStream] = {}
        self.head_since_s = poller.now_s  # when the head being read began
        self._incoming: dict[int, _Incoming] | None = None
        self._busy: set[ServerStream] = set()  # streams with bytes in the codec
        self._waiting: deque[tuple[Request, ServerStream]] | None = None
        self._running = 0  # handlers at work

    # -- StreamOwner

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop of the poller."""
        return self.poller.loop

    @property
    def watermarks(self) -> tuple[int, int]:
        """Low and high."""
        limits = self._owner.limits
        return limits.stream_low_bytes, limits.stream_high_bytes

    def wrote(self, stream: ServerStream) -> None:
        """Flush soon; cut a connection that has too much to read."""
        if stream not in self._busy:
            self._busy.add(stream)
            stream.progress_at_s = self.poller.now_s
        codec = self.server_codec
        if codec is None:
            return
        stream.seen_bytes = codec.queued_bytes(stream.stream_id)
        if codec.queued_bytes() > self._owner.limits.max_connection_bytes:
            self.loop.call_soon(self._give_up, Cut.SLOW_READER, "slow reader: queue full")
        self.poller.mark(self)

    def count_cut(self, cause: Cut) -> None:
        """Count a stream that is cut."""
        self._owner.tally.streams[cause] += 1

    def is_over_limit(self, stream: ServerStream) -> bool:
        """Whether the stream's queue is past what even a careless handler may fill."""
        return stream.queued_bytes > self._owner.limits.max_stream_bytes

    # -- the server's side

    def on_ready(self, events: int) -> None:
        """Serve the socket, handshakes only as far as the turn's budget goes."""
        if self.state is LinkState.HANDSHAKE and not self._owner.may_handshake():
            return  # level-triggered: it is reported again in the next turn
        super().on_ready(events)

    def begin_shutdown(self) -> None:
        """Take no new requests; the open ones go on.

        What has ended goes out before the GOAWAY: python-hyper's clients take no data after one.
        """
        self.flush()
        codec = self.server_codec
        if codec is None:
            self.cut("server closing")
            return
        codec.shutdown()
        self.poller.mark(self)

    def sweep(self, now_s: float) -> None:
        """Cut what has outlived its deadline."""
        limits = self._owner.limits
        if self.state is LinkState.HANDSHAKE:
            if now_s > self.active_at_s + limits.handshake_s:
                self.failure = Handshake.TIMEOUT
                self.cut("handshake timeout")
        elif self.state is LinkState.LINGER:
            ends_s = min(self.active_at_s + limits.linger_s, self.written_at_s + limits.body_s)
            self._cut_after(ends_s, now_s, "")
        elif self.is_blocked and now_s - self.written_at_s > limits.stall_s:
            self._give_up(Cut.SLOW_READER, "slow reader: no progress")
        elif not self.streams:
            self._sweep_idle(now_s, limits)
        else:
            self._sweep_streams(now_s, limits)

    # -- Link

    def _opened(self, alpn: str | None) -> Codec | None:
        try:
            der = self._sock.getpeercert(binary_form=True)
            self.peer = parse_peer(der) if der else None
        except ValueError:
            self.failure = Handshake.BAD_CERTIFICATE
            self.cut("handshake failed: unreadable client certificate")
            return None
        self.has_opened = True
        self.head_since_s = self.poller.now_s
        self.http_version = "2" if alpn == "h2" else "1.1"
        self.server_codec = self._owner.make_codec(alpn)
        self._owner.opened(self)
        return self.server_codec

    def _handshake_failed(self, error: OSError | ValueError) -> None:
        """Give up; a client that was told why has the time to read it.

        A close with its first request unread would reset the connection, and the alert be lost.
        """
        self.failure = reason_of(error)
        is_told = isinstance(error, ssl.SSLCertVerificationError)
        if isinstance(error, ssl.SSLError) and error.reason == "HTTP_REQUEST":
            is_told = True
            with suppress(OSError):
                socket.socket.send(self._sock, _NO_TLS)  # below TLS
        if is_told:
            self._linger()
        else:
            self.cut(f"handshake failed: {describe(error)}")

    def _received(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, RequestReceived):
                self._begin(event)
            elif isinstance(event, DataReceived):
                self._collect(event)
            elif isinstance(event, StreamEnded):
                self._forget(event.stream_id)

    def _flushed(self) -> None:
        codec = self.server_codec
        if codec is None:
            return
        for stream in list(self._busy) if self._busy else ():
            queued = codec.queued_bytes(stream.stream_id)
            stream.flushed(queued, self.poller.now_s)
            if not queued:
                self._busy.discard(stream)
        self._run_waiting()

    def _ended(self, reason: str) -> None:
        self.server_codec = None
        streams, self.streams = self.streams, {}
        for stream in streams.values():
            stream.detach()
        if self._incoming:
            self._owner.reserve(-sum(len(incoming.body) for incoming in self._incoming.values()))
        if self._waiting:
            self._owner.reserve(-sum(len(request.body) for request, _ in self._waiting))
        self._incoming = None
        self._waiting = None
        self._busy.clear()
        self._owner.closed(self, reason)

    # -- requests

    def _begin(self, event: RequestReceived) -> None:
        """Open a stream; dispatch it when nothing more is to come."""
        stream = ServerStream(self, event.stream_id, is_head=event.method == "HEAD")
        self.streams[event.stream_id] = stream
        self.request_count += 1
        request = Request(
            method=event.method,
            target=event.target,
            headers=event.headers,
            body=b"",
            peer=self.peer,
            remote=self.remote,
            http_version=self.http_version,
        )
        if event.is_last:
            self._dispatch(request, stream)
        elif (content_length(event.headers) or 0) > self._owner.limits.max_body_bytes:
            request.is_too_large = True
            self._dispatch(request, stream)
        else:
            if self._incoming is None:
                self._incoming = {}
            self._incoming[event.stream_id] = _Incoming(request, stream, self.poller.now_s)

    def _collect(self, event: DataReceived) -> None:
        """Keep a piece of a body.

        One that passes the limit is dropped and its request dispatched at once.
        """
        incoming = self._incoming.get(event.stream_id) if self._incoming else None
        if incoming is None:
            return
        size = len(event.data)
        if len(incoming.body) + size > self._owner.limits.max_body_bytes:
            incoming.request.is_too_large = True
            self._release(event.stream_id)
            self._dispatch(incoming.request, incoming.stream)
            return
        incoming.body += event.data
        if not self._owner.reserve(size):
            incoming.stream.abort(Cut.NO_ROOM)
            self._release(event.stream_id)
        elif event.is_last:
            incoming.request.body = bytes(incoming.body)
            self._release(event.stream_id)
            self._dispatch(incoming.request, incoming.stream)

    def _release(self, stream_id: int) -> None:
        """Give a body's room back to the server."""
        incoming = self._incoming.pop(stream_id, None) if self._incoming else None
        if incoming is not None:
            self._owner.reserve(-len(incoming.body))

    def _dispatch(self, request: Request, stream: ServerStream) -> None:
        """Run the handler now, or when others are over and the client has read their answers.

        What waits counts as unfinished: it holds its body.
        """
        codec = self.server_codec
        if codec is None:
            return
        if not self._waiting and not self._is_full(codec):
            self._run(request, stream)
            return
        if not self._owner.reserve(len(request.body)):
            self._owner.reserve(-len(request.body))
            stream.abort(Cut.NO_ROOM)
            return
        if self._waiting is None:
            self._waiting = deque()
        self._waiting.append((request, stream))

    def _is_full(self, codec: ServerCodec) -> bool:
        limits = self._owner.limits
        is_congested = codec.queued_bytes() > limits.connection_high_bytes
        return is_congested or self._running >= limits.max_running

    def _run(self, request: Request, stream: ServerStream) -> None:
        self._running += 1
        self._owner.run(request, stream, self._ran)

    def _ran(self) -> None:
        self._running -= 1
        self._run_waiting()

    def _run_waiting(self) -> None:
        codec = self.server_codec
        while self._waiting and codec is not None and not self._is_full(codec):
            request, stream = self._waiting.popleft()
            self._owner.reserve(-len(request.body))
            if not stream.is_closed:
                self._run(request, stream)

    def _forget(self, stream_id: int) -> None:
        """Drop a stream that is over on the wire."""
        self._release(stream_id)
        stream = self.streams.pop(stream_id, None)
        if stream is not None:
            self._busy.discard(stream)
            stream.detach()
        if not self.streams:
            self.active_at_s = self.head_since_s = self.poller.now_s

    # -- deadlines

    def _give_up(self, cause: Cut, reason: str) -> None:
        """Cut the connection for what the client did or did not do."""
        if self.state is not LinkState.CLOSED:
            self._owner.tally.connections[cause] += 1
            self.cut(reason)

    def _cut_after(self, deadline_s: float, now_s: float, reason: str) -> None:
        if now_s > deadline_s:
            self.cut(reason)

    def _sweep_idle(self, now_s: float, limits: Limits) -> None:
        codec = self.server_codec
        if codec is not None and (codec.is_mid_head or not self.request_count):
            if now_s > self.head_since_s + limits.header_s:
                self._give_up(Cut.LATE_REQUEST, "request head timeout")
            return
        self.head_since_s = now_s
        if now_s - self.active_at_s > limits.idle_s:
            self.begin_shutdown()
            self._cut_after(self.active_at_s + limits.idle_s + limits.stall_s, now_s, "idle")

    def _sweep_streams(self, now_s: float, limits: Limits) -> None:
        late = [
            i.stream for i in (self._incoming or {}).values() if now_s - i.since_s > limits.body_s
        ]
        stalled = [s for s in self._busy if now_s - s.progress_at_s > limits.stall_s]
        for stream in late:
            stream.abort(Cut.LATE_REQUEST)
        for stream in stalled:
            stream.abort(Cut.SLOW_READER)
