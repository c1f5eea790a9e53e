"""The bounds of the HTTP transport: nothing a peer sends or refuses to read may grow without one.

Sizes are in bytes, times in seconds. The defaults suit a hub of 3,000 clusters; tests shrink them.
"""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Every bound of one server.

    Each deadline ends in a reset stream or a cut connection, never in a longer queue.
    """

    max_connections: int = 16_000
    """Open sockets; further clients wait in the kernel's backlog."""
    max_handshakes: int = 1_024
    """Sockets still in their TLS handshake; further clients wait in the backlog."""
    accepts_per_tick: int = 32
    handshakes_per_tick: int = 8
    """TLS handshake steps in one turn of the loop.

    A reconnect storm must not starve open connections (1 ms each).
    """
    backlog: int = 4_096

    max_header_bytes: int = 64 * KIB
    max_body_bytes: int = 3 * MIB + 64 * KIB
    max_pending_body_bytes: int = 256 * MIB
    """Bodies of unfinished and of waiting requests of all connections together.

    The stream that passes it is reset.
    """
    max_streams: int = 1_000
    """Concurrent HTTP/2 streams of one connection."""
    receive_window_bytes: int = 1 * MIB
    """HTTP/2 flow control, for a stream and for a connection."""
    reset_burst: int = 1_000
    resets_per_s: int = 33
    """A client that resets HTTP/2 streams faster than this bucket refills is cut: rapid reset."""
    idle_frame_burst: int = 2_000
    idle_frames_per_s: int = 100
    """The same for HTTP/2 frames that ask for nothing (PING, SETTINGS, empty DATA).

    For python-hyper, to which each costs 50 us; nghttp2 bounds what it owes for them.
    """

    stream_high_bytes: int = 256 * KIB
    """`Responder.write` answers False above it."""
    stream_low_bytes: int = 64 * KIB
    """`Responder.drain` returns below it."""
    max_stream_bytes: int = 16 * MIB
    """`Responder.write` on top of more than this aborts the stream.

    Its handler ignores the answer False.
    """
    max_running: int = 32
    """Handlers of one connection at work at a time, its further requests wait.

    A handler may hold a whole list. A watch that has begun has none.
    """
    connection_high_bytes: int = 8 * MIB
    """New requests of a connection wait while it has more than this to read."""
    max_connection_bytes: int = 256 * MIB
    """A connection whose queues pass it is cut."""

    handshake_s: float = 10.0
    header_s: float = 30.0
    """For the head of a request, from its first byte (the first request: from the handshake)."""
    body_s: float = 60.0
    """For the rest of a request, from its head."""
    idle_s: float = 120.0
    """Without any open stream."""
    stall_s: float = 30.0
    """Without the client taking a byte of what is queued for it."""
    linger_s: float = 2.0
    """For the client to close after our last byte, so that it can still read it."""
    sweep_s: float = 1.0
    """How often deadlines are looked at."""
