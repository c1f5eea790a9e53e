"""The seam between a connection (bytes) and a codec (HTTP/1.1, HTTP/2): events in, answers out.

Owns the events a codec reports and the protocols it keeps. A codec never blocks, never raises for
what a peer sends, and holds what the peer does not take yet; the connection asks `queued_bytes` to
bound it. Streams are named by an integer that is never reused within a connection.

    events = codec.feed(data)    what the peer did; feed(b"") tells what flushing has brought about
    codec.send_head(7, 200, [], length=2, is_last=False); codec.send_data(7, b"ok", is_last=True)
    while data := codec.flush(16384): socket.send(data)
    if codec.is_finished: close the socket
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
HeaderList: TypeAlias = Sequence[tuple[str, str]]


@dataclass(slots=True)
class RequestReceived:
    """The head of a request; `is_last` when no body follows."""

    stream_id: int
    method: str
    target: str
    headers: dict[str, str]
    is_last: bool


@dataclass(slots=True)
class ResponseReceived:
    """The head of a final response (never 1xx); `is_last` when no body follows."""

    stream_id: int
    status: int
    headers: dict[str, str]
    is_last: bool


@dataclass(slots=True)
class DataReceived:
    """A piece of a body; possibly empty when it only carries `is_last`."""

    stream_id: int
    data: bytes
    is_last: bool


@dataclass(slots=True)
class StreamEnded:
    """The stream is gone from both sides.

    `error` is empty after a regular end, else what the peer or the codec said.
    """

    stream_id: int
    error: str


@dataclass(slots=True)
class PeerLeaving:
    """The peer takes no new streams (GOAWAY, connection.

    Close); those above `last_stream_id` were not looked at.
    """

    last_stream_id: int


Event: TypeAlias = RequestReceived | ResponseReceived | DataReceived | StreamEnded | PeerLeaving


class Codec(Protocol):
    """What both roles share."""

    @property
    def wants_read(self) -> bool:
        """Whether more bytes may be fed now; False while pipelined requests wait."""
        ...

    @property
    def is_finished(self) -> bool:
        """Whether nothing more can be exchanged: close once `flush` is empty."""
        ...

    @property
    def is_aborted(self) -> bool:
        """Whether to close without a goodbye: the peer must not take what it has for complete."""
        ...

    @property
    def is_mid_head(self) -> bool:
        """Whether a head has begun and not ended (HTTP/1.1 only): the header deadline runs."""
        ...

    def feed(self, data: Buffer) -> list[Event]:
        """Take bytes off the wire; `data` is not kept."""
        ...

    def flush(self, max_bytes: int) -> bytes:
        """Return up to `max_bytes` for the wire; empty when the peer's windows are shut."""
        ...

    def send_data(self, stream_id: int, data: bytes, *, is_last: bool) -> None:
        """Queue a piece of the body; nothing happens when the stream is gone."""
        ...

    def reset(self, stream_id: int) -> None:
        """Cut the stream so that the peer sees an error."""
        ...

    def queued_bytes(self, stream_id: int | None = None) -> int:
        """Return the body bytes not flushed yet, of one stream or of all."""
        ...

    def shutdown(self) -> None:
        """Tell the peer to open no new streams; those open go on."""
        ...

    def lost(self) -> None:
        """Let go of everything: the connection is closed."""
        ...


class ServerCodec(Codec, Protocol):
    """The answering side."""

    def send_head(
        self, stream_id: int, status: int, headers: HeaderList, *, length: int | None, is_last: bool
    ) -> None:
        """Queue a final head; Date and framing are added.

        `length` None means a stream of unknown length. Raises ValueError when a header holds a line
        break.
        """
        ...


class ClientCodec(Codec, Protocol):
    """The asking side."""

    @property
    def can_request(self) -> bool:
        """Whether `request` may be called now."""
        ...

    def request(
        self, method: str, target: str, headers: HeaderList, *, length: int | None, is_last: bool
    ) -> int:
        """Queue the head of a request (`headers` holds `host`); return its stream."""
        ...

    def consumed(self, stream_id: int, n_bytes: int) -> None:
        """Open the receive window again by what the application has taken."""
        ...
