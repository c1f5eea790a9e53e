"""Clients that are broken, slow or malicious: the server refuses them and goes on."""

import asyncio
import contextlib
import random
import socket
import ssl
from collections.abc import Callable, Iterator

import h2.config
import h2.connection
import pytest
from structlog.testing import capture_logs

from hub.http.client import ConnectionLost, Windows
from hub.http.limits import Limits
from hub.http.tally import Cut, Handshake
from hub.http.tls import client_context
from tests.contract.http_suite import Site, soon
from tests.contract.test_http import Kind, name_kind, open_site
from tests.unit.http.pki import Authority
from tests.unit.http.test_codec_fuzz import damage, request_bytes

KINDS: list[Kind] = [(None, "own"), ("ngh2", "own-ngh2"), ("h2", "own-h2")]
HASTY = Limits(
    handshake_s=0.2, header_s=0.2, body_s=0.2, idle_s=0.2, stall_s=0.2, linger_s=0.2, sweep_s=0.02
)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
every_kind = pytest.mark.parametrize("kind", KINDS, ids=name_kind)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def dial(site: Site) -> socket.socket:
    return socket.create_connection(("127.0.0.1", site.server.port), timeout=8)


def dial_tls(site: Site) -> ssl.SSLSocket:
    tls = client_context(site.authority.cert, http2=site.is_http2)
    return tls.wrap_socket(dial(site), server_hostname="127.0.0.1")


def read_to_the_end(sock: socket.socket) -> bytes:
    """Read until the server closes; a reset is a close too."""
    data = b""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while piece := sock.recv(65_536):
            data += piece
    return data


async def talk(site: Site, data: bytes) -> bytes:
    """Send `data` over TLS, then read what the server has to say until it closes."""

    def run() -> bytes:
        with dial_tls(site) as sock:
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                sock.sendall(data)
            return read_to_the_end(sock)

    return await soon(asyncio.to_thread(run))


async def is_well(site: Site) -> bool:
    return (await site.own().request("GET", "/echo")).status == 200


@contextlib.contextmanager
def no_defects() -> Iterator[None]:
    with capture_logs() as logs:
        yield
    bad = [e for e in logs if e["event"] in {"connection_failed", "handler_failed"}]
    assert bad == []


@every_kind
async def test_bytes_that_are_not_tls_are_dropped(kind: Kind, authority: Authority) -> None:
    async with open_site(authority, kind) as site:

        def run(data: bytes) -> None:
            with dial(site) as sock:
                with contextlib.suppress(OSError):  # the server may have hung up by now
                    sock.sendall(data)
                    sock.shutdown(socket.SHUT_WR)
                read_to_the_end(sock)

        with no_defects():
            for data in (b"", b"GET / HTTP/1.1\r\n\r\n", random.Random(1).randbytes(5_000)):
                await soon(asyncio.to_thread(run, data))
            assert await is_well(site)
        assert site.server.connections.failed_handshakes == {
            Handshake.CLOSED: 1,
            Handshake.NOT_TLS: 2,
        }


@every_kind
async def test_garbage_inside_tls_is_refused(kind: Kind, authority: Authority) -> None:
    async with open_site(authority, kind) as site:
        with no_defects():
            for seed in range(5):
                await talk(site, random.Random(seed).randbytes(20_000))
            assert await is_well(site)


@every_kind
async def test_damaged_conversations_do_no_harm(kind: Kind, authority: Authority) -> None:
    async with open_site(authority, kind, HASTY) as site:
        source = random.Random(f"wire-{kind}")
        data = request_bytes(kind[0] or "http1")

        def run() -> None:
            for _ in range(25):
                with dial_tls(site) as sock, contextlib.suppress(ConnectionError, ssl.SSLError):
                    sock.sendall(damage(source, data))
                    sock.settimeout(0.02)
                    sock.recv(65_536)

        with no_defects():
            await soon(asyncio.to_thread(lambda: suppress_timeouts(run)))
            assert await is_well(site)


def suppress_timeouts(run: Callable[[], None]) -> None:
    with contextlib.suppress(TimeoutError):
        run()


@every_kind
async def test_a_handshake_that_stands_still_is_cut(kind: Kind, authority: Authority) -> None:
    async with open_site(authority, kind, HASTY) as site:
        sock = dial(site)
        assert await soon(asyncio.to_thread(read_to_the_end, sock)) == b""
        sock.close()
        assert site.server.connections.failed_handshakes == {Handshake.TIMEOUT: 1}
        assert site.server.connections.handshaking == 0


@every_kind
async def test_a_client_that_asks_nothing_is_closed(kind: Kind, authority: Authority) -> None:
    async with open_site(authority, kind, HASTY) as site:
        await talk(site, PREFACE if site.is_http2 else b"")
        await talk(site, b"PRI * HT" if site.is_http2 else b"GET / HTTP/1.1\r\nhost: x\r\nx-")
        assert site.server.connections.open == 0
        assert site.server.connections.cut_connections == {Cut.LATE_REQUEST: 2}


@every_kind
async def test_a_connection_that_idles_is_closed_and_comes_back(
    kind: Kind, authority: Authority
) -> None:
    async with open_site(authority, kind, HASTY) as site:
        assert await is_well(site)
        await soon(until(lambda: site.server.connections.open == 0))
        await soon(until(lambda: site.own().open_connections == 0))
        assert await is_well(site)
        assert site.server.connections.accepted_total == 2


@every_kind
async def test_an_open_stream_keeps_its_connection(kind: Kind, authority: Authority) -> None:
    async with (
        open_site(authority, kind, HASTY) as site,
        site.own().stream("GET", "/watch") as watch,
    ):
        clock = asyncio.get_running_loop()
        ends_s = clock.time() + 2 * HASTY.idle_s
        await soon(until(lambda: clock.time() > ends_s))
        site.app.watches[0].write(b"still here")
        site.app.watches[0].end()
        assert await watch.read() == b"still here"


@every_kind
async def test_a_body_that_does_not_arrive_is_given_up(kind: Kind, authority: Authority) -> None:
    async with open_site(authority, kind, HASTY) as site:
        if kind[0] is None:
            data = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc"
        else:
            data = open_upload()
        await talk(site, data)
        assert site.server.connections.open == 0
        assert site.server.connections.pending_body_bytes == 0
        assert site.server.connections.cut_streams == {Cut.LATE_REQUEST: 1}


def open_upload() -> bytes:
    """Return an HTTP/2 conversation that begins an upload and says no more."""
    client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    client.initiate_connection()
    pseudo = [(":method", "PUT"), (":scheme", "https"), (":authority", "x"), (":path", "/a")]
    client.send_headers(1, pseudo)
    client.send_data(1, b"abc")
    return client.data_to_send()


@every_kind
async def test_bodies_of_all_clients_together_are_bounded(kind: Kind, authority: Authority) -> None:
    limits = Limits(max_pending_body_bytes=1_000_000, sweep_s=0.1, linger_s=0.3)
    async with open_site(authority, kind, limits) as site:
        tls = client_context(authority.cert, http2=False)
        half = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 900001\r\n\r\n" + bytes(900_000)

        def begin() -> ssl.SSLSocket:
            sock = tls.wrap_socket(dial(site), server_hostname="127.0.0.1")
            sock.sendall(half)
            return sock

        with await soon(asyncio.to_thread(begin)):
            await soon(until(lambda: site.server.connections.pending_body_bytes == 900_000))
            with pytest.raises(ConnectionLost):
                await site.own().request("POST", "/echo", body=bytes(900_000))
            assert site.server.connections.pending_body_bytes == 900_000
            assert site.server.connections.cut_streams == {Cut.NO_ROOM: 1}
            assert await is_well(site)
        await soon(until(lambda: site.server.connections.pending_body_bytes == 0))
        assert (await site.own().request("POST", "/echo", body=bytes(900_000))).status == 200


async def test_many_pipelined_requests_are_answered_in_order(authority: Authority) -> None:
    async with open_site(authority, (None, "own")) as site:
        count = 300
        data = b"".join(b"GET /big?%d HTTP/1.1\r\nhost: x\r\n\r\n" % n for n in range(1, count))
        answer = await talk(
            site, data + b"GET /end HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        )
        lengths = [int(part.split(b"\r\n")[0]) for part in answer.split(b"content-length: ")[1:]]
        assert lengths[: count - 1] == list(range(1, count))
        assert len(lengths) == count


async def test_clients_beyond_the_limit_wait_in_the_backlog(authority: Authority) -> None:
    limits = Limits(max_connections=2, sweep_s=0.05, linger_s=0.2)
    async with open_site(authority, ("ngh2", "own-ngh2"), limits) as site:
        first, second, third = (site.new_client() for _ in range(3))
        for client in (first, second):
            await client.request("GET", "/echo")
        waiting = asyncio.ensure_future(third.request("GET", "/echo"))
        await asyncio.wait([waiting], timeout=0.15)
        assert not waiting.done()
        assert site.server.connections.accepted_total == 2
        await first.close()
        assert (await soon(waiting)).status == 200


async def test_answers_nobody_reads_cut_their_connection(authority: Authority) -> None:
    limits = Limits(max_connection_bytes=3_000_000, sweep_s=0.05, linger_s=0.2)
    async with open_site(authority, ("ngh2", "own-ngh2"), limits) as site:
        greedy = site.new_client()
        asking = [greedy.request("GET", "/big?1000000", timeout_s=8) for _ in range(10)]
        results = await soon(asyncio.gather(*asking, return_exceptions=True))
        assert all(isinstance(result, ConnectionLost) for result in results)
        assert set(site.server.connections.cut_connections) == {Cut.SLOW_READER}
        assert await is_well(site)


@every_kind
async def test_a_handler_that_never_looks_at_its_queue_loses_its_stream(
    kind: Kind, authority: Authority
) -> None:
    limits = Limits(max_stream_bytes=1_000_000, linger_s=0.2)
    async with open_site(authority, kind, limits) as site:
        with pytest.raises(ConnectionLost):
            await site.own().request("GET", "/careless")
        assert 1_000_000 < site.app.most_queued <= 1_000_000 + 70_000
        assert site.server.connections.cut_streams == {Cut.SLOW_READER: 1}
        assert await is_well(site)


@pytest.mark.parametrize("kind", KINDS[1:], ids=name_kind)
async def test_new_requests_wait_for_a_client_that_does_not_read(
    kind: Kind, authority: Authority
) -> None:
    async with open_site(authority, kind, Limits(connection_high_bytes=100_000)) as site:
        client = site.new_client(windows=Windows(stream_bytes=20_000, connection_bytes=100_000))
        async with client.stream("GET", "/big?400000") as first:
            second = asyncio.ensure_future(client.request("GET", "/big?1"))
            await soon(until(lambda: site.server.connections.streams == 2))
            assert site.app.answered == 1
            assert len(await soon(first.read())) == 400_000
            assert (await soon(second)).body == b"0"
        assert site.app.answered == 2


@pytest.mark.parametrize("kind", KINDS[1:], ids=name_kind)
async def test_a_connection_has_few_handlers_at_work_and_all_of_them_in_the_end(
    kind: Kind, authority: Authority
) -> None:
    async with open_site(authority, kind, Limits(max_running=3)) as site:
        client = site.new_client()
        asking = [asyncio.ensure_future(client.request("GET", f"/hold?{n}")) for n in range(10)]
        await soon(until(lambda: site.server.connections.streams == 10))
        assert site.server.connections.handlers == len(site.app.asked) == 3
        assert await is_well(site)  # others are not held up
        site.app.release.set()
        answers = await soon(asyncio.gather(*asking))
        assert {answer.body for answer in answers} == {b"released"}
        assert site.server.connections.handlers == 0


@pytest.mark.parametrize("kind", KINDS[1:], ids=name_kind)
async def test_the_bodies_of_requests_that_wait_are_bounded(
    kind: Kind, authority: Authority
) -> None:
    limits = Limits(max_running=1, max_pending_body_bytes=250_000)
    async with open_site(authority, kind, limits) as site:
        client = site.new_client()
        held = asyncio.ensure_future(client.request("GET", "/hold"))
        await soon(site.app.opened.get())
        body = bytes(100_000)
        asking = [client.request("POST", "/echo", body=body) for _ in range(5)]
        waiting = asyncio.gather(*asking, return_exceptions=True)
        await soon(until(lambda: site.server.connections.streams == 3))
        assert site.server.connections.pending_body_bytes == 200_000
        site.app.release.set()
        answers = await soon(waiting)
        assert sum(isinstance(answer, ConnectionLost) for answer in answers) == 3
        assert (await soon(held)).body == b"released"
        assert site.server.connections.pending_body_bytes == 0
        assert await is_well(site)


async def test_a_storm_of_handshakes_is_served_a_few_at_a_time(authority: Authority) -> None:
    limits = Limits(
        handshakes_per_tick=1, accepts_per_tick=2, max_handshakes=3, linger_s=0.2, sweep_s=60
    )
    async with open_site(authority, ("ngh2", "own-ngh2"), limits) as site:
        clients = [site.new_client() for _ in range(20)]
        asking = asyncio.gather(*[client.request("GET", "/echo") for client in clients])
        assert {answer.status for answer in await soon(asking)} == {200}
        assert site.server.connections.handshaking == 0


@pytest.mark.parametrize("kind", KINDS[1:], ids=name_kind)
async def test_a_request_reset_in_the_same_breath_never_reaches_its_handler(
    kind: Kind, authority: Authority
) -> None:
    async with open_site(authority, kind, HASTY) as site:
        await talk(site, open_and_reset())
        assert site.app.asked == []
        assert await is_well(site)


def open_and_reset() -> bytes:
    """Return an HTTP/2 conversation that takes back what it asks."""
    client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    client.initiate_connection()
    pseudo = [(":method", "GET"), (":scheme", "https"), (":authority", "x"), (":path", "/echo")]
    client.send_headers(1, pseudo, end_stream=True)
    client.reset_stream(1)
    return client.data_to_send()


async def test_records_that_straddle_the_read_buffer_are_read_to_the_end(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub.http.poller.SCRATCH_BYTES", 10_000)
    async with open_site(authority, (None, "own")) as site:
        size = 3 * 9_000 - 100
        head = b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % size
        data = head + bytes(size)
        sock = await soon(asyncio.to_thread(dial_tls, site))
        for at in range(
            0, len(data), 9_000
        ):  # in the loop's own thread: the server sees it all at once
            sock.sendall(data[at : at + 9_000])
        answer = await soon(asyncio.to_thread(sock.recv, 65_536))
        assert b'"size": %d' % size in answer
        sock.close()


@pytest.mark.parametrize(
    ("target", "is_whole"), [("/echo", True), ("/boom-late", False)], ids=["whole", "cut"]
)
async def test_only_a_whole_answer_is_followed_by_a_goodbye(
    target: str, is_whole: bool, authority: Authority
) -> None:
    def run(site: Site) -> bool:
        tls = client_context(site.authority.cert, http2=False)
        with tls.wrap_socket(
            dial(site), server_hostname="127.0.0.1", suppress_ragged_eofs=False
        ) as sock:
            sock.sendall(b"GET %b HTTP/1.0\r\nhost: x\r\n\r\n" % target.encode())
            try:
                while sock.recv(65_536):
                    pass
            except ssl.SSLEOFError:
                return False
            return True

    async with open_site(authority, (None, "own")) as site:
        assert await soon(asyncio.to_thread(run, site)) == is_whole


async def until(condition: Callable[[], bool]) -> None:
    """Wait for `condition`, looking again whenever the loop has been through its sockets."""
    loop = asyncio.get_running_loop()
    while not condition():
        turn = loop.create_future()
        loop.call_later(0.01, turn.set_result, None)
        await turn
