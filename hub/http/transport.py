"""The TLS HTTP server.

    server = await serve(handler, host="127.0.0.1", port=0, tls=server_context(cert, key, ca))
    ...
    await server.close(grace_s=5)

Owns the listening socket, the connections, the tasks that run handlers and the sweep for deadlines.
Every handler runs in a task of the server's own set; one that raises is logged and answered with a
bare 500. A handler may return and leave its stream open: it then costs no task. `close` ends those
streams cleanly, lets running handlers finish within the grace, and cuts the rest.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from hub.clock import Clock, SystemClock
from hub.http.api import Handler, Request
from hub.http.codec import ServerCodec
from hub.http.codecs.choice import Http2Library, choose_library, http2_server
from hub.http.codecs.fields import DateHeader
from hub.http.codecs.http1 import Http1Server
from hub.http.connection import ServerConnection
from hub.http.limits import Limits
from hub.http.link import LinkState
from hub.http.listener import Listener
from hub.http.poller import Poller
from hub.http.stream import ServerStream
from hub.http.tally import Cut, Handshake, Tally


@dataclass(frozen=True, slots=True)
class ConnectionStats:
    """What a server holds now, and what it has seen since it started (`_total`)."""

    open: int
    handshaking: int
    streams: int
    handlers: int
    pending_body_bytes: int
    accepted_total: int
    failed_handshakes: Mapping[Handshake, int]
    cut_streams: Mapping[Cut, int]
    cut_connections: Mapping[Cut, int]

    @property
    def failed_handshakes_total(self) -> int:
        """All of them."""
        return sum(self.failed_handshakes.values())


async def bind(host: str, port: int) -> socket.socket:
    """Take `host`:`port` (0: any free port) without listening yet. Raises OSError.

    A hub makes sure of its address before it takes anything from another.
    """
    loop = asyncio.get_running_loop()
    family, kind, proto, _, address = (
        await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    )[0]
    sock = socket.socket(family, kind, proto)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


async def serve(
    handler: Handler,
    *,
    host: str = "",
    port: int = 0,
    tls: ssl.SSLContext,
    sock: socket.socket | None = None,
    limits: Limits | None = None,
    http2_codec: Http2Library = "auto",
    clock: Clock | None = None,
) -> "Server":
    """Listen on `host`:`port` and answer with `handler` until `Server.close`.

    With `sock`, what `bind` gave, on that; it is the server's from then on. Runs in the current
    event loop, uvloop or asyncio. Raises OSError when the address cannot be had.
    """
    library = choose_library(http2_codec)
    server = Server(
        handler, tls=tls, limits=limits or Limits(), library=library, clock=clock or SystemClock()
    )
    server.listen(sock if sock is not None else await bind(host, port))
    return server


class Server:
    """A running server; made by `serve`."""

    def __init__(
        self,
        handler: Handler,
        *,
        tls: ssl.SSLContext,
        limits: Limits,
        library: Http2Library,
        clock: Clock,
    ) -> None:
        self.limits = limits
        self.is_closing = False
        self.port = 0
        self.tally = Tally()
        self._handler = handler
        self._library = library
        self._clock = clock
        self._date = DateHeader(clock)
        self._log = structlog.get_logger(__name__)
        self._poller = Poller()
        self._tls = tls
        self._listener: Listener | None = None
        self._connections: set[ServerConnection] = set()
        self._running: dict[asyncio.Task[None], ServerStream] = {}
        self._idle = asyncio.Event()
        self._handshaking = 0
        self._pending_body_bytes = 0
        self._handshake_tick = -1
        self._handshakes_left = 0
        self._sweeper = self._poller.loop.call_later(limits.sweep_s, self._sweep)

    def listen(self, sock: socket.socket) -> None:
        """Accept on a bound socket; called once by `serve`."""
        self._listener = Listener(self, self._poller, sock, self._tls)
        self.port = self._listener.open()

    @property
    def connections(self) -> ConnectionStats:
        """The server's present load."""
        return ConnectionStats(
            open=len(self._connections),
            handshaking=self._handshaking,
            streams=sum(len(connection.streams) for connection in self._connections),
            handlers=len(self._running),
            pending_body_bytes=self._pending_body_bytes,
            accepted_total=self._listener.accepted_total if self._listener else 0,
            failed_handshakes=self.tally.handshakes,
            cut_streams=self.tally.streams,
            cut_connections=self.tally.connections,
        )

    async def close(self, grace_s: float) -> None:
        """Stop accepting, end what can be ended within `grace_s`, then cut the rest; idempotent.

        Open streams without a running handler end at once and cleanly (END_STREAM and GOAWAY, the
        last chunk); a stream whose handler runs past the grace is aborted and the handler
        cancelled.
        """
        self.is_closing = True
        if self._listener is not None:
            self._listener.close()
        self._end_streams()
        for connection in list(self._connections):
            connection.begin_shutdown()
        self._check_idle()
        try:
            async with asyncio.timeout(grace_s):
                await self._idle.wait()
        except TimeoutError:
            await self._cut_all()
        self._sweeper.cancel()
        self._poller.close()

    # -- ConnectionOwner

    def make_codec(self, alpn: str | None) -> ServerCodec:
        """Return a codec for what ALPN agreed on, HTTP/1.1 when it agreed on nothing."""
        if alpn == "h2":
            return http2_server(
                self._library, date=self._date, limits=self.limits, clock=self._clock
            )
        return Http1Server(
            date=self._date,
            max_header_bytes=self.limits.max_header_bytes,
            max_body_bytes=self.limits.max_body_bytes,
        )

    def may_handshake(self) -> bool:
        """Take one of this turn's handshake steps."""
        if self._handshake_tick != self._poller.tick:
            self._handshake_tick = self._poller.tick
            self._handshakes_left = self.limits.handshakes_per_tick
        self._handshakes_left -= 1
        return self._handshakes_left >= 0

    def reserve(self, n_bytes: int) -> bool:
        """Count unfinished bodies."""
        self._pending_body_bytes += n_bytes
        return self._pending_body_bytes <= self.limits.max_pending_body_bytes

    def run(self, request: Request, stream: ServerStream, done: Callable[[], None]) -> None:
        """Start the handler in a task of the server's set."""
        task = self._poller.loop.create_task(self._handle(request, stream))
        self._running[task] = stream
        task.add_done_callback(self._done)
        task.add_done_callback(lambda _: done())

    def opened(self, connection: ServerConnection) -> None:  # noqa: ARG002  the seam names whose handshake it was
        """One handshake fewer."""
        self._handshaking -= 1
        if self._listener is not None:
            self._listener.resume()

    def closed(self, connection: ServerConnection, reason: str) -> None:
        """Forget a connection."""
        self._connections.discard(connection)
        if not connection.has_opened:
            self._handshaking -= 1
            self.tally.handshakes[connection.failure] += 1
        self._log.debug("connection_closed", remote=connection.remote, reason=reason)
        if self._listener is not None:
            self._listener.resume()
        self._check_idle()

    # -- ListenerOwner

    def has_room(self) -> bool:
        """Whether one more client may be accepted."""
        return (
            len(self._connections) < self.limits.max_connections
            and self._handshaking < self.limits.max_handshakes
        )

    def accepted(self, sock: ssl.SSLSocket, remote: str) -> None:
        """Begin a connection."""
        self._handshaking += 1
        self._connections.add(ServerConnection(self, self._poller, sock, remote=remote))

    # -- handlers

    async def _handle(self, request: Request, stream: ServerStream) -> None:
        """Run the handler; the top level of whatever it does."""
        if stream.is_closed:
            return  # reset before it began
        try:
            await self._handler(request, stream)
        except Exception:  # noqa: BLE001  the top level of a task; logged with traceback
            path = request.target.partition("?")[0]
            self._log.exception("handler_failed", method=request.method, path=path)
            self._fail(stream)

    def _fail(self, stream: ServerStream) -> None:
        """Say that the handler has failed: by a 500, or too late for that by a cut stream."""
        if stream.is_started and not stream.is_closed:
            stream.abort()
        else:
            stream.respond(500, [("content-type", "text/plain")], b"internal server error\n")

    def _done(self, task: asyncio.Task[None]) -> None:
        stream = self._running.pop(task)
        if task.cancelled():
            stream.abort()
        elif self.is_closing and stream.is_started:
            stream.end()
        self._check_idle()

    # -- closing and sweeping

    def _end_streams(self) -> None:
        """End the streams that no handler is working on."""
        working = {stream for task, stream in self._running.items() if not task.done()}
        for connection in list(self._connections):
            for stream in list(connection.streams.values()):
                if stream.is_started and stream not in working:
                    stream.end()

    def _check_idle(self) -> None:
        if self.is_closing and not self._connections and not self._running:
            self._idle.set()

    async def _cut_all(self) -> None:
        """Cut what the grace was not enough for."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for connection in list(self._connections):
            if connection.state is LinkState.OPEN:
                connection.flush()  # a last chance for resets
            connection.cut("server closed")

    def _sweep(self) -> None:
        """Look at every deadline."""
        loop = self._poller.loop
        self._sweeper = loop.call_later(self.limits.sweep_s, self._sweep)
        now_s = self._poller.now_s = loop.time()
        if self._listener is not None:
            self._listener.resume()
        for connection in list(self._connections):
            connection.sweep(now_s)
