"""An asynchronous HTTP client on the server's own transport, light enough for thousands at once.

    async with Client("hub.example", 6443, client_context(ca_pem)) as client:
        answer = await client.request("GET", "/version")
        async with client.stream("GET", "/api/v1/namespaces?watch=true") as watch:
            async for chunk in watch: ...

Connects at the first use and again at the next use after a loss. HTTP/2 runs all exchanges over one
connection; HTTP/1.1 (or a server that speaks nothing else) takes a connection for each concurrent
one. Nothing is retried here. Clients that are given one `Poller` share its epoll.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from hub.http.api import Headers
from hub.http.client_connection import ClientConnection, ConnectionLost, Exchange, Windows
from hub.http.codecs.choice import Http2Library, choose_library
from hub.http.link import tune_socket
from hub.http.poller import Poller

__all__ = ["Client", "ClientStream", "ConnectionLost", "Poller", "Response", "Windows"]


@dataclass(frozen=True, slots=True)
class Response:
    """A complete answer; `headers` has lower-case names."""

    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """A client of one server."""

    __slots__ = (
        "_connections",
        "_host",
        "_is_multiplexed",
        "_library",
        "_lock",
        "_own_poller",
        "_poller",
        "_port",
        "_server_name",
        "_tls",
        "_windows",
        "connect_s",
    )

    def __init__(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext,
        *,
        server_name: str | None = None,
        http2: bool = True,
        http2_codec: Http2Library = "auto",
        poller: Poller | None = None,
        windows: Windows | None = None,
        connect_s: float = 30.0,
    ) -> None:
        """`server_name` is what the certificate must name (default: `host`)."""
        self._host = host
        self._port = port
        self._tls = tls
        self._server_name = server_name or host
        self._library: Http2Library = choose_library(http2_codec)
        self._poller = poller
        self._own_poller: Poller | None = None
        self._windows = windows or Windows()
        self._connections: list[ClientConnection] = []
        self._is_multiplexed = http2
        self._lock: asyncio.Lock | None = None
        self.connect_s = connect_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def open_connections(self) -> int:
        """How many sockets are open."""
        return len(self._connections)

    async def request(
        self,
        method: str,
        target: str,
        headers: Headers = (),
        *,
        body: bytes = b"",
        timeout_s: float = 30.0,
    ) -> Response:
        """Ask and read the whole answer.

        Raises `ConnectionLost`, or TimeoutError after `timeout_s`.
        """
        async with (
            asyncio.timeout(timeout_s),
            self.stream(method, target, headers, body=body) as stream,
        ):
            content = await stream.read()
            return Response(stream.status, stream.headers, content)

    def stream(
        self, method: str, target: str, headers: Headers = (), *, body: bytes = b""
    ) -> "ClientStream":
        """Return a context manager.

        Entering it asks and waits for the head, leaving it gives up what is left.
        """
        return ClientStream(self, method, target, headers, body)

    async def close(self) -> None:
        """Close every connection; open streams see `ConnectionLost`."""
        for connection in list(self._connections):
            connection.close()
        poller, self._own_poller = self._own_poller, None
        if poller is not None:
            poller.close()

    async def begin(self, method: str, target: str, headers: Headers, *, body: bytes) -> Exchange:
        """Send a request on a connection that has room, a new one when none has."""
        connection = self._usable() or await self._connect()
        names = {name for name, _ in headers}
        host = self._server_name if self._port == 443 else f"{self._server_name}:{self._port}"
        fields = list(headers) if "host" in names else [("host", host), *headers]
        return connection.begin(method, target, fields, body=body)

    def _usable(self) -> ClientConnection | None:
        return next((link for link in self._connections if link.can_request), None)

    async def _connect(self) -> ClientConnection:
        """Open a connection; those who ask at the same time share it when it can carry them."""
        if not self._is_multiplexed:
            return await self._open()
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            connection = self._usable() or await self._open()
            self._is_multiplexed = connection.is_multiplexed
            return connection

    async def _open(self) -> ClientConnection:
        try:
            async with asyncio.timeout(self.connect_s):
                sock = await self._dial()
                return await self._shake(sock)
        except TimeoutError as error:
            raise ConnectionLost(f"no connection within {self.connect_s} s") from error

    async def _dial(self) -> socket.socket:
        """Return a connected plain socket."""
        loop = asyncio.get_running_loop()
        try:
            family, kind, proto, _, address = (
                await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            )[0]
            sock = socket.socket(family, kind, proto)
        except OSError as error:
            raise ConnectionLost(f"cannot connect to {self._host}: {error}") from error
        try:
            tune_socket(sock)
            await loop.sock_connect(sock, address)
        except OSError as error:
            sock.close()
            raise ConnectionLost(f"cannot connect to {self._host}:{self._port}: {error}") from error
        except BaseException:
            sock.close()
            raise
        return sock

    async def _shake(self, sock: socket.socket) -> ClientConnection:
        """Make a connection of a socket: TLS and the choice of the protocol."""
        try:
            wrapped = self._tls.wrap_socket(
                sock, server_hostname=self._server_name, do_handshake_on_connect=False
            )
        except OSError as error:
            sock.close()
            raise ConnectionLost(f"cannot connect to {self._host}: {error}") from error
        connection = ClientConnection(
            self._shared_poller(),
            wrapped,
            library=self._library,
            windows=self._windows,
            on_end=self._forget,
        )
        self._connections.append(connection)
        try:
            await connection.wait_open()
        except BaseException:
            connection.cut("given up")
            raise
        return connection

    def _shared_poller(self) -> Poller:
        if self._poller is not None:
            return self._poller
        if self._own_poller is None:
            self._own_poller = Poller()
        return self._own_poller

    def _forget(self, connection: ClientConnection) -> None:
        with suppress(ValueError):
            self._connections.remove(connection)


class ClientStream:
    """One exchange; made by `Client.stream`, used once."""

    __slots__ = ("_body", "_client", "_exchange", "_headers", "_method", "_target")

    def __init__(
        self, client: Client, method: str, target: str, headers: Headers, body: bytes
    ) -> None:
        self._client = client
        self._method = method
        self._target = target
        self._headers = headers
        self._body = body
        self._exchange: Exchange | None = None

    async def __aenter__(self) -> Self:
        exchange = await self._client.begin(
            self._method, self._target, self._headers, body=self._body
        )
        self._body = b""
        self._exchange = exchange
        try:
            await exchange.wait_head()
        except BaseException:
            exchange.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._begun().close()

    @property
    def status(self) -> int:
        """The status of the answer."""
        return self._begun().status

    @property
    def headers(self) -> dict[str, str]:
        """The fields of the answer, names in lower case."""
        return self._begun().headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield pieces of the body as they arrive, to its end; raises `ConnectionLost`."""
        exchange = self._begun()
        while chunk := await exchange.next_chunk():
            yield chunk

    async def read(self) -> bytes:
        """Return the rest of the body."""
        return b"".join([chunk async for chunk in self])

    def _begun(self) -> Exchange:
        if self._exchange is None:
            raise RuntimeError("the stream is not open: use `async with client.stream(...)`")
        return self._exchange
