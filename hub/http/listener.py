"""The listening socket.

Owns accepting: a bounded number in a turn of the loop, none while the server has no room or the
process no descriptors; who is not accepted waits in the kernel's backlog.
"""

import errno
import socket
import ssl
from typing import Protocol

from hub.http.limits import Limits
from hub.http.link import tune_socket
from hub.http.poller import READ, Poller

_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class ListenerOwner(Protocol):
    """What a listener needs of its server."""

    @property
    def limits(self) -> Limits:
        """The bounds."""
        ...

    def has_room(self) -> bool:
        """Whether one more client may be accepted."""
        ...

    def accepted(self, sock: ssl.SSLSocket, remote: str) -> None:
        """Take over a client's socket, its handshake not begun."""
        ...


class Listener:
    """One listening socket in a poller."""

    __slots__ = ("_is_paused", "_owner", "_poller", "_sock", "_tls", "accepted_total", "is_marked")

    def __init__(
        self, owner: ListenerOwner, poller: Poller, sock: socket.socket, tls: ssl.SSLContext
    ) -> None:
        self.is_marked = False
        self.accepted_total = 0
        self._owner = owner
        self._poller = poller
        self._sock = sock
        self._tls = tls
        self._is_paused = False

    def open(self) -> int:
        """Listen on the bound socket; return the port."""
        sock = self._sock
        try:
            sock.listen(self._owner.limits.backlog)
        except OSError:
            sock.close()
            raise
        self._poller.register(sock.fileno(), self, READ)
        port: int = sock.getsockname()[1]
        return port

    def on_ready(self, events: int) -> None:  # noqa: ARG002  the seam's signature
        """Accept some clients."""
        for _ in range(self._owner.limits.accepts_per_tick):
            if not self._owner.has_room():
                self._pause()
                return
            try:
                sock, address = self._sock.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _OUT_OF_RESOURCES:
                    self._pause()
                    return
                continue  # that client is gone already
            self._begin(sock, address)

    def resume(self) -> None:
        """Accept again when there is room."""
        if self._is_paused and self._sock.fileno() >= 0 and self._owner.has_room():
            self._is_paused = False
            self._poller.register(self._sock.fileno(), self, READ)

    def close(self) -> None:
        """Stop listening."""
        if self._sock.fileno() >= 0:
            self._poller.unregister(self._sock.fileno())
            self._sock.close()

    def flush(self) -> None:
        """Nothing is ever queued here."""

    def cut(self, reason: str) -> None:
        """Go on with the next client after a defect while accepting one."""

    def _pause(self) -> None:
        self._is_paused = True
        self._poller.unregister(self._sock.fileno())

    def _begin(self, sock: socket.socket, address: tuple[str, int]) -> None:
        self.accepted_total += 1
        host, port = address[:2]
        try:
            tune_socket(sock)
            wrapped = self._tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        except OSError:
            sock.close()  # it hung up between accept and here
            return
        self._owner.accepted(wrapped, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
