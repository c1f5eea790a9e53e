"""One connection of a client, and the exchanges on it.

Owns the waiting: for the handshake, for a response's head, for the next piece of its body. Pieces
are kept until they are asked for; the codec opens its receive window only by what was taken, so a
reader that stops stops the server.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hub.http.codec import (
    ClientCodec,
    Codec,
    DataReceived,
    Event,
    HeaderList,
    PeerLeaving,
    ResponseReceived,
    StreamEnded,
)
from hub.http.codecs.choice import Http2Library, http2_client
from hub.http.codecs.http1_client import Http1Client
from hub.http.limits import KIB, MIB
from hub.http.link import Link
from hub.http.poller import HANGUP, Poller


class ConnectionLost(Exception):  # noqa: N818  what happened, in the caller's words
    """The exchange cannot be completed.

    The connection or the stream was cut, by whom the text says.
    """


@dataclass(frozen=True, slots=True)
class Windows:
    """How many bytes a server may send ahead of the reader."""

    stream_bytes: int = 256 * KIB
    connection_bytes: int = 16 * MIB


class Exchange:
    """One request and its answer as it arrives."""

    __slots__ = (
        "_chunks",
        "_connection",
        "_error",
        "_is_complete",
        "_waiter",
        "headers",
        "status",
        "stream_id",
    )

    def __init__(self, connection: "ClientConnection", stream_id: int) -> None:
        self.stream_id = stream_id
        self.status = 0
        self.headers: dict[str, str] = {}
        self._connection: ClientConnection | None = connection
        self._chunks: list[bytes] = []
        self._is_complete = False
        self._error: str | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def wait_head(self) -> None:
        """Wait for the head of the answer."""
        while not self.status:
            self._raise_if_lost()
            await self._wait()

    async def next_chunk(self) -> bytes:
        """Return what has arrived since the last call, waiting for some; empty at the end."""
        while not self._chunks and not self._is_complete:
            self._raise_if_lost()
            await self._wait()
        chunks, self._chunks = self._chunks, []
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if self._connection is not None and data:
            self._connection.consumed(self, len(data))
        return data

    def close(self) -> None:
        """Give up what is left of the answer."""
        connection, self._connection = self._connection, None
        if connection is not None:
            unread = sum(len(chunk) for chunk in self._chunks)
            connection.give_up(self, unread, is_complete=self._is_complete)
        self._chunks = []

    # -- the connection's side

    def add_head(self, event: ResponseReceived) -> None:
        """Take the head."""
        self.status, self.headers = event.status, event.headers
        self._is_complete = event.is_last
        self._wake()

    def add_data(self, event: DataReceived) -> None:
        """Take a piece of the body."""
        if event.data:
            self._chunks.append(event.data)
        self._is_complete = self._is_complete or event.is_last
        self._wake()

    def finish(self, error: str) -> None:
        """Learn that the stream is gone."""
        if not self._is_complete:
            self._error = error or "stream ended early"
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _raise_if_lost(self) -> None:
        if self._error is not None:
            raise ConnectionLost(self._error)


class ClientConnection(Link):
    """A connection to the server."""

    __slots__ = (
        "_exchanges",
        "_is_leaving",
        "_library",
        "_on_end",
        "_opened_future",
        "_windows",
        "client_codec",
        "is_multiplexed",
    )

    _paused_mask = 0  # a hangup waits: there may be bytes to read before it

    def __init__(
        self,
        poller: Poller,
        sock: ssl.SSLSocket,
        *,
        library: Http2Library,
        windows: Windows,
        on_end: Callable[["ClientConnection"], None],
    ) -> None:
        super().__init__(poller, sock)
        self.client_codec: ClientCodec | None = None
        self.is_multiplexed = False
        self._library = library
        self._windows = windows
        self._on_end = on_end
        self._exchanges: dict[int, Exchange] = {}
        self._is_leaving = False
        self._opened_future: asyncio.Future[None] | None = None

    @property
    def can_request(self) -> bool:
        """Whether one more exchange may begin."""
        codec = self.client_codec
        return codec is not None and codec.can_request and not self._is_leaving

    async def wait_open(self) -> None:
        """Go through the handshake; raises `ConnectionLost`."""
        future = self._opened_future = self.poller.loop.create_future()
        self.handshake()
        await future

    def begin(self, method: str, target: str, headers: HeaderList, *, body: bytes) -> Exchange:
        """Send a request; the caller has asked `can_request`."""
        codec = self.client_codec
        if codec is None:
            raise ConnectionLost("connection closed")
        length = len(body) if body or method in {"POST", "PUT", "PATCH"} else None
        stream_id = codec.request(method, target, headers, length=length, is_last=not body)
        if body:
            codec.send_data(stream_id, body, is_last=True)
        exchange = self._exchanges[stream_id] = Exchange(self, stream_id)
        self.poller.mark(self)
        return exchange

    def consumed(self, exchange: Exchange, n_bytes: int) -> None:
        """Let the server send more."""
        if self.client_codec is not None:
            self.client_codec.consumed(exchange.stream_id, n_bytes)
            self.poller.mark(self)

    def give_up(self, exchange: Exchange, unread_bytes: int, *, is_complete: bool) -> None:
        """Drop an exchange; the connection lives on when its protocol allows."""
        self._exchanges.pop(exchange.stream_id, None)  # what still arrives is dropped
        codec = self.client_codec
        if codec is None:
            return
        if unread_bytes:
            codec.consumed(exchange.stream_id, unread_bytes)
        if not is_complete:
            codec.reset(exchange.stream_id)
        self.poller.mark(self)

    def close(self) -> None:
        """Say goodbye as far as the socket takes it, and close."""
        if self.client_codec is not None:
            self.client_codec.shutdown()
            self.flush()
        self.cut("client closed")

    # -- Link

    def _opened(self, alpn: str | None) -> Codec | None:
        self.is_multiplexed = alpn == "h2"
        windows = self._windows
        if self.is_multiplexed:
            self.client_codec = http2_client(
                self._library,
                stream_window_bytes=windows.stream_bytes,
                connection_window_bytes=windows.connection_bytes,
            )
        else:
            self.client_codec = Http1Client(max_unread_bytes=windows.stream_bytes)
        if self._opened_future is not None and not self._opened_future.done():
            self._opened_future.set_result(None)
        return self.client_codec

    def _received(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, PeerLeaving):
                self._is_leaving = True
                continue
            exchange = self._exchanges.get(event.stream_id)
            if exchange is None:
                self._drop(event)
            elif isinstance(event, DataReceived):
                exchange.add_data(event)
            elif isinstance(event, ResponseReceived):
                exchange.add_head(event)
            elif isinstance(event, StreamEnded):
                self._exchanges.pop(event.stream_id, None)
                exchange.finish(event.error)

    def _drop(self, event: Event) -> None:
        """Open the window for a body nobody reads any more."""
        if isinstance(event, DataReceived) and self.client_codec is not None:
            self.client_codec.consumed(event.stream_id, len(event.data))

    def _flushed(self) -> None:
        """Nothing waits for room to write."""

    def _may_read_paused(self, events: int) -> bool:
        return bool(events & HANGUP)

    def _ended(self, reason: str) -> None:
        self.client_codec = None
        exchanges, self._exchanges = self._exchanges, {}
        for exchange in exchanges.values():
            exchange.finish(f"connection lost: {reason or 'closed'}")
        future = self._opened_future
        if future is not None and not future.done():
            future.set_exception(ConnectionLost(reason))
        self._on_end(self)
