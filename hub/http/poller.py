"""Many sockets behind one reader of the event loop.

Owns a nested epoll: its descriptor is the only thing the loop (uvloop or asyncio) watches, so that
a connection costs no loop handle, no transport and no protocol object. Readiness is
level-triggered; each turn of the loop serves at most `_READY_PER_TICK` sockets. Writes are
collected: a pollable marked several times in one turn is flushed once. One poller serves any number
of servers and clients of one loop.
"""

import asyncio
import select
from typing import Protocol

import structlog

INPUT = select.EPOLLIN
READ = INPUT | select.EPOLLRDHUP
WRITE = select.EPOLLOUT
HANGUP = select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP
_READY_PER_TICK = 256
SCRATCH_BYTES = 64 * 1024


class Pollable(Protocol):
    """What is registered: a socket's owner."""

    is_marked: bool
    """Whether a flush is due; owned by the poller."""

    def on_ready(self, events: int) -> None:
        """Serve readiness `events` (epoll bits)."""
        ...

    def flush(self) -> None:
        """Send what is queued; called in the turn after `Poller.mark`."""
        ...

    def cut(self, reason: str) -> None:
        """Drop the socket at once: `on_ready` or `flush` has failed."""
        ...


class Poller:
    """One epoll in one event loop; create it inside the running loop and close it there."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.now_s = self.loop.time()
        self.tick = 0
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        """Where sockets read into; its content is good until the next read."""
        self._log = structlog.get_logger(__name__)
        self._epoll = select.epoll()
        self._pollables: dict[int, Pollable] = {}
        self._marked: list[Pollable] = []
        self._is_flush_due = False
        self.loop.add_reader(self._epoll.fileno(), self._poll)

    def register(self, fd: int, pollable: Pollable, mask: int) -> None:
        """Watch `fd` for `mask` until `unregister`."""
        self._epoll.register(fd, mask)
        self._pollables[fd] = pollable

    def modify(self, fd: int, mask: int) -> None:
        """Watch `fd` for `mask` from now on."""
        self._epoll.modify(fd, mask)

    def unregister(self, fd: int) -> None:
        """Forget `fd`; call it before closing the socket."""
        if self._pollables.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def mark(self, pollable: Pollable) -> None:
        """Have `pollable.flush` called in the next turn of the loop."""
        if not pollable.is_marked:
            pollable.is_marked = True
            self._marked.append(pollable)
            if not self._is_flush_due:
                self._is_flush_due = True
                self.loop.call_soon(self._flush)

    def close(self) -> None:
        """Stop watching; the sockets belong to their owners."""
        if not self._epoll.closed:
            self.loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
        self._pollables.clear()

    def _poll(self) -> None:
        self.tick += 1
        self.now_s = self.loop.time()
        was_due, self._is_flush_due = self._is_flush_due, True
        for fd, events in self._epoll.poll(0, _READY_PER_TICK):
            pollable = self._pollables.get(fd)
            if pollable is not None:
                self.serve(pollable, events)
        if not was_due:
            # last in line: behind the handlers started just now, so that their answers go with it
            self.loop.call_soon(self._flush)

    def serve(self, pollable: Pollable, events: int) -> None:
        """Run one pollable; the top level, so that its defect does not stop the others."""
        try:
            if events:
                pollable.on_ready(events)
            else:
                pollable.flush()
        except Exception:  # noqa: BLE001  the top level of a connection; logged with traceback
            self._log.exception("connection_failed")
            pollable.cut("internal error")

    def _flush(self) -> None:
        self._is_flush_due = False
        self.now_s = self.loop.time()
        marked, self._marked = self._marked, []
        for pollable in marked:
            pollable.is_marked = False
            self.serve(pollable, 0)
