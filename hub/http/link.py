"""A TLS socket in a poller: handshake, reading, writing, closing; the same for servers and clients.

Owns the non-blocking `SSLSocket`, its place in the epoll and at most one record of bytes the socket
did not take. Everything else that waits is in the codec. States go one way: HANDSHAKE, OPEN, LINGER
(our last byte and close_notify are sent, the peer may still read them), CLOSED. An error of the
socket is a lost peer, never an exception.
"""

import abc
import enum
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress

from hub.http.codec import Codec, Event
from hub.http.poller import HANGUP, INPUT, READ, WRITE, Poller

_RECORD_BYTES = 16_384  # one TLS record, what one send takes
_RECORDS_PER_FLUSH = 16  # then the other connections have their turn
_QUIET_S = 5.0  # nothing under way that a reset could overtake
_KEEPALIVE_IDLE_S, _KEEPALIVE_INTERVAL_S, _KEEPALIVE_PROBES = 30, 10, 3


class LinkState(enum.Enum):
    """Where a link stands."""

    HANDSHAKE = "handshake"
    OPEN = "open"
    LINGER = "linger"
    CLOSED = "closed"


def tune_socket(sock: socket.socket) -> None:
    """Make `sock` non-blocking, prompt, and aware of a peer that vanished (about a minute)."""
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEPALIVE_PROBES)


class Link(abc.ABC):
    """The base of a connection.

    Subclasses fill the four hooks `_opened`, `_received`, `_flushed` and `_ended`.
    """

    __slots__ = (
        "_fd",
        "_mask",
        "_out",
        "_sock",
        "active_at_s",
        "codec",
        "is_marked",
        "poller",
        "state",
        "written_at_s",
    )

    _paused_mask = HANGUP  # what to watch for while the codec wants no more

    def __init__(self, poller: Poller, sock: ssl.SSLSocket) -> None:
        self.poller = poller
        self.is_marked = False
        self.state = LinkState.HANDSHAKE
        self.codec: Codec | None = None
        self.active_at_s = poller.now_s  # when the peer last sent anything
        # when the socket last took, or was first offered, anything
        self.written_at_s = poller.now_s
        self._sock = sock
        self._fd = sock.fileno()
        self._out = b""
        self._mask = READ
        poller.register(self._fd, self, READ)

    # -- hooks

    @abc.abstractmethod
    def _opened(self, alpn: str | None) -> Codec | None:
        """Return the codec for `alpn`, the handshake being done; None after `cut`."""

    def _handshake_failed(self, error: OSError | ValueError) -> None:
        """Give up."""
        self.cut(f"handshake failed: {describe(error)}")

    @abc.abstractmethod
    def _received(self, events: Sequence[Event]) -> None:
        """Act on what the peer did."""

    @abc.abstractmethod
    def _flushed(self) -> None:
        """Bytes have left the codec."""

    @abc.abstractmethod
    def _ended(self, reason: str) -> None:
        """Learn that the socket is closed; called once."""

    # -- what the poller and the owner call

    @property
    def is_blocked(self) -> bool:
        """Whether the socket takes no more bytes at present."""
        return bool(self._out)

    def on_ready(self, events: int) -> None:
        """Serve the socket."""
        if self.state is LinkState.HANDSHAKE:
            self.handshake()
            return
        if self.state is LinkState.LINGER:
            self._discard()
            return
        if events & (READ | HANGUP):
            self._read(events)
        if events & WRITE and self.state is LinkState.OPEN:
            self.flush()

    def handshake(self) -> None:
        """Take the handshake one step further."""
        try:
            self._sock.do_handshake()
        except ssl.SSLWantReadError:
            self._watch(READ)
            return
        except ssl.SSLWantWriteError:
            self._watch(WRITE | READ)
            return
        except (
            OSError,
            ValueError,
        ) as error:  # ssl.SSLError is an OSError; ValueError: a bad server name
            self._handshake_failed(error)
            return
        self.state = LinkState.OPEN
        self.active_at_s = self.written_at_s = self.poller.now_s
        self.codec = self._opened(self._sock.selected_alpn_protocol())
        if self.state is LinkState.OPEN:
            self._watch(READ)
            self.poller.mark(self)
            self._read(INPUT)  # the first request may have come with the last handshake message

    def flush(self) -> None:
        """Send what the codec has until the socket is full or a turn's worth is out."""
        codec = self.codec
        if self.state is not LinkState.OPEN or codec is None:
            return
        if codec.is_aborted:
            self.cut("aborted")
            return
        try:
            is_empty = self._send(codec)
        except ssl.SSLWantWriteError:
            self._watch_for(codec, is_blocked=True)
            self._flushed()
            return
        except OSError as error:
            self.cut(describe(error))
            return
        self._watch_for(codec, is_blocked=False)
        if not is_empty:
            self.poller.mark(self)
        self._flushed()
        self._report(codec.feed(b""))
        if is_empty and self.state is LinkState.OPEN and codec.is_finished:
            self._finish()

    def cut(self, reason: str) -> None:
        """Close the socket now."""
        if self.state is LinkState.CLOSED:
            return
        self.state = LinkState.CLOSED
        self.poller.unregister(self._fd)
        self._sock.close()
        self._out = b""
        codec, self.codec = self.codec, None
        if codec is not None:
            codec.lost()
        self._ended(reason)

    # -- inner workings

    def _send(self, codec: Codec) -> bool:
        """Return True when the codec has nothing left, False when the turn is used up."""
        sock = self._sock
        for _ in range(_RECORDS_PER_FLUSH):
            if not self._out:
                self._out = codec.flush(_RECORD_BYTES)
                if not self._out:
                    return True
                self.written_at_s = self.poller.now_s  # a socket that is full now is so from now on
            data = self._out  # on a full socket the very same bytes must be offered again
            sent = sock.send(data)
            self._out = data[sent:] if sent < len(data) else b""
            self.written_at_s = self.poller.now_s
        return False

    def _read(self, events: int) -> None:
        """Read what is there, as far as the scratch buffer goes, and feed it."""
        codec = self.codec
        if codec is None:
            return
        if not codec.wants_read and not self._may_read_paused(events):
            return
        scratch, size, problem = self.poller.scratch, 0, ""
        try:
            while size < len(scratch):
                got = self._sock.recv_into(scratch[size:])
                if not got:
                    problem = "closed by the peer"
                    break
                size += got
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass  # all read
        except OSError as error:
            problem = describe(error)
        if size:
            self.active_at_s = self.poller.now_s
            self._report(codec.feed(scratch[:size]))
            self.poller.mark(self)
        if problem:
            self.cut(problem)
        elif size == len(scratch) and self.state is LinkState.OPEN and self._sock.pending():
            self.poller.loop.call_soon(self._read_on)  # decrypted bytes do not show in the epoll

    def _may_read_paused(self, events: int) -> bool:
        """Decide what a hangup means while the codec wants no more.

        For a server, that nobody waits for answers.
        """
        if events & HANGUP:
            self.cut("closed by the peer")
        return False

    def _read_on(self) -> None:
        if self.state is LinkState.OPEN:
            self.poller.serve(self, INPUT)

    def _report(self, events: Sequence[Event]) -> None:
        if events and self.state is LinkState.OPEN:
            self._received(events)

    def _finish(self) -> None:
        """Say goodbye and wait for the peer to close, so that no reset overtakes our last bytes."""
        is_quiet = self.poller.now_s - max(self.active_at_s, self.written_at_s) > _QUIET_S
        with suppress(OSError, ValueError):  # the peer's close_notify is to come, or never will
            self._sock.unwrap()
        self._linger()
        if is_quiet:
            self.cut("")

    def _linger(self) -> None:
        """Send no more, and wait for the peer to close."""
        self.state = LinkState.LINGER
        self.active_at_s = self.written_at_s = self.poller.now_s
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError as error:
            self.cut(describe(error))
            return
        self._watch(READ)

    def _discard(self) -> None:
        """Read and forget until the peer closes; the sweep cuts one that does not."""
        try:
            # below TLS: nobody looks at it
            while socket.socket.recv_into(self._sock, self.poller.scratch):
                self.active_at_s = self.poller.now_s
        except BlockingIOError:
            return
        except OSError:
            pass  # gone is gone
        self.cut("")

    def _watch_for(self, codec: Codec, *, is_blocked: bool) -> None:
        reading = READ if codec.wants_read else self._paused_mask
        self._watch(reading | WRITE if is_blocked else reading)

    def _watch(self, mask: int) -> None:
        if mask != self._mask:
            self._mask = mask
            self.poller.modify(self._fd, mask)


def describe(error: Exception) -> str:
    """Return an error's text without the library's source position."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).lower().replace("_", " ")
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)
