import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from hub.http.api import Request, Responder
from hub.http.client import Client, ConnectionLost, Poller
from hub.http.codec import DataReceived
from hub.http.tls import client_context, server_context
from hub.http.transport import Server, serve
from tests.unit.http.pki import Authority


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


async def echo_host(request: Request, responder: Responder) -> None:
    responder.respond(200, [], request.headers["host"].encode())


def server_tls(authority: Authority) -> ssl.SSLContext:
    pem = authority.server()
    return server_context(pem.cert, pem.key)


@asynccontextmanager
async def running(authority: Authority, *, port: int = 0) -> AsyncIterator[Server]:
    server = await serve(echo_host, host="127.0.0.1", port=port, tls=server_tls(authority))
    try:
        yield server
    finally:
        await server.close(1)


@asynccontextmanager
async def scripted(tls: ssl.SSLContext | None, answer: bytes = b"") -> AsyncIterator[int]:
    """Run a server for one client that says `answer` when it is asked; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(8)

        def talk() -> None:
            plain, _ = listener.accept()
            plain.settimeout(8)
            with tls.wrap_socket(plain, server_side=True) if tls is not None else plain as sock:
                asked = b""
                while tls is not None and b"\r\n\r\n" not in asked:
                    asked += sock.recv(65_536)
                with suppress(OSError):  # the client may hang up in the middle
                    sock.sendall(answer)
                    while sock.recv(65_536):
                        pass

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.to_thread(talk))
            yield listener.getsockname()[1]


def scripted_tls(authority: Authority) -> ssl.SSLContext:
    tls = server_tls(authority)
    tls.set_alpn_protocols(["http/1.1"])
    return tls


async def test_nobody_listening_is_a_lost_connection(authority: Authority) -> None:
    async with running(authority) as server:
        port = server.port
    async with Client("127.0.0.1", port, client_context(authority.cert)) as client:
        with pytest.raises(ConnectionLost, match="cannot connect to"):
            await client.request("GET", "/")


async def test_a_server_that_cannot_be_trusted_is_not_asked() -> None:
    async with running(Authority()) as server:
        tls = client_context(Authority("another").cert)
        async with Client("127.0.0.1", server.port, tls) as client:
            with pytest.raises(ConnectionLost, match="certificate verify failed"):
                await client.request("GET", "/")
            assert client.open_connections == 0


async def test_a_server_of_another_name_is_not_asked(authority: Authority) -> None:
    async with running(authority) as server:
        tls = client_context(authority.cert)
        async with Client("127.0.0.1", server.port, tls, server_name="hub.example") as client:
            with pytest.raises(ConnectionLost, match="certificate verify failed"):
                await client.request("GET", "/")


async def test_a_server_may_be_reached_under_another_name(authority: Authority) -> None:
    async with running(authority) as server:
        tls = client_context(authority.cert)
        async with Client("127.0.0.1", server.port, tls, server_name="localhost") as client:
            answer = await client.request("GET", "/")
            assert answer.body == f"localhost:{server.port}".encode()


async def test_a_host_given_by_the_caller_stays(authority: Authority) -> None:
    async with (
        running(authority) as server,
        Client("127.0.0.1", server.port, client_context(authority.cert)) as client,
    ):
        assert (await client.request("GET", "/", [("host", "other")])).body == b"other"


async def test_clients_share_a_poller_and_leave_it_open(authority: Authority) -> None:
    poller = Poller()
    async with running(authority) as server:
        tls = client_context(authority.cert)
        clients = [Client("127.0.0.1", server.port, tls, poller=poller) for _ in range(5)]
        await clients[0].request("GET", "/")
        await clients[0].close()
        answers = await asyncio.gather(*[client.request("GET", "/") for client in clients])
        assert [answer.status for answer in answers] == [200] * 5
        assert server.connections.accepted_total == 6
        for client in clients:
            await client.close()
    poller.close()


async def test_requests_at_once_share_one_handshake(authority: Authority) -> None:
    async with (
        running(authority) as server,
        Client("127.0.0.1", server.port, client_context(authority.cert)) as client,
    ):
        await asyncio.gather(*[client.request("GET", "/") for _ in range(10)])
        assert (client.open_connections, server.connections.accepted_total) == (1, 1)


async def test_a_closed_client_connects_again_when_it_is_used(authority: Authority) -> None:
    async with running(authority) as server:
        client = Client("127.0.0.1", server.port, client_context(authority.cert))
        for _ in range(2):
            assert (await client.request("GET", "/")).status == 200
            await client.close()
            assert client.open_connections == 0
        assert server.connections.accepted_total == 2


async def test_a_server_restarted_on_its_port_is_found_again(authority: Authority) -> None:
    async with running(authority) as server:
        port = server.port
        client = Client("127.0.0.1", port, client_context(authority.cert))
        assert (await client.request("GET", "/")).status == 200
    async with running(authority, port=port):
        assert (await client.request("GET", "/")).status == 200
        await client.close()


async def test_a_connection_that_takes_too_long_is_given_up(authority: Authority) -> None:
    async with scripted(None) as port:
        tls = client_context(authority.cert)
        async with Client("127.0.0.1", port, tls, connect_s=0.1) as client:
            with pytest.raises(ConnectionLost, match="no connection within"):
                await client.request("GET", "/")
            assert client.open_connections == 0


async def test_a_stream_that_is_not_entered_says_how(authority: Authority) -> None:
    client = Client("127.0.0.1", 1, client_context(authority.cert))
    with pytest.raises(RuntimeError, match="async with"):
        _ = client.stream("GET", "/").status


BROKEN = {
    "no http": b"220 mail ready\r\n\r\n",
    "bad chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    "switching": b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
    "endless head": b"HTTP/1.1 200 OK\r\nx: " + bytes(65) * 5_000,
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
async def test_an_answer_that_is_no_answer_is_a_lost_connection(
    answer: bytes, authority: Authority
) -> None:
    async with (
        scripted(scripted_tls(authority), answer) as port,
        Client("127.0.0.1", port, client_context(authority.cert)) as client,
    ):
        with pytest.raises(ConnectionLost):
            await client.request("GET", "/", timeout_s=5)


async def test_interim_answers_are_skipped(authority: Authority) -> None:
    answer = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
        b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok"
    )
    async with (
        scripted(scripted_tls(authority), answer) as port,
        Client("127.0.0.1", port, client_context(authority.cert)) as client,
    ):
        got = await client.request("POST", "/", body=b"x")
        assert (got.status, got.body, "link" in got.headers) == (201, b"ok", False)


async def test_what_arrives_after_a_stream_was_given_up_opens_the_window_again(
    authority: Authority,
) -> None:
    class Recorder:
        def __init__(self) -> None:
            self.taken: list[tuple[int, int]] = []

        def consumed(self, stream_id: int, n_bytes: int) -> None:
            self.taken.append((stream_id, n_bytes))

    async with running(authority) as server:
        client = Client("127.0.0.1", server.port, client_context(authority.cert))
        async with client.stream("GET", "/") as stream:
            stream_id = stream._begun().stream_id
        (connection,) = client._connections
        codec, recorder = connection.client_codec, Recorder()
        connection.client_codec = recorder  # type: ignore[assignment]  # only `consumed` is called
        connection._received([DataReceived(stream_id, b"late", is_last=False)])
        connection.client_codec = codec
        assert recorder.taken == [(stream_id, 4)]
        await client.close()
