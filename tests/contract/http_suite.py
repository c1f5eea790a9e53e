"""What every HTTP server of ours must do, whatever its protocol and library.

Each `check_...` takes a `Site`: a running server with the `App` below behind it, and a driver that
asks it. `CHECKS` run with every driver, `STREAM_CHECKS` with our own client, which alone can hold a
stream open.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import pytest
from structlog.testing import capture_logs

from hub.http.api import Request, Responder
from hub.http.client import Client, ConnectionLost, Windows
from hub.http.tally import Cut, Handshake
from hub.http.tls import client_context
from hub.http.transport import Server
from tests.unit.http.pki import Authority, Pem

T = TypeVar("T")
Answer = tuple[int, dict[str, str], bytes]
LINE = b'{"type":"ADDED"}\n'


class Driver(Protocol):
    """A client, ours or not, that asks one thing at a time or many at once."""

    async def ask(
        self,
        method: str,
        target: str,
        *,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
    ) -> Answer: ...

    async def ask_all(self, targets: Sequence[str]) -> list[Answer]: ...

    async def close(self) -> None: ...


class App:
    """The application behind the server; it remembers what streams did."""

    def __init__(self) -> None:
        self.watches: list[Responder] = []
        self.closed: asyncio.Queue[str] = asyncio.Queue()
        self.opened: asyncio.Queue[Responder] = asyncio.Queue()
        self.most_queued = 0
        self.answered = 0
        self.asked: list[str] = []
        self.release = asyncio.Event()

    async def __call__(self, request: Request, responder: Responder) -> None:
        route, _, query = request.target.partition("?")
        self.asked.append(request.target)
        if request.is_too_large:
            responder.respond(413, [], b"too large")
        elif route == "/big":
            self.answered += 1
            responder.respond(200, [], pattern(int(query)))
        elif route == "/careless":
            self._careless(responder)
        elif route == "/sliced":
            await self._slices(responder, int(query))
        elif route == "/watch":
            self._watch(responder, request.target)
        elif route == "/flood":
            await self._flood(responder, request.target)
        elif route == "/boom":
            raise KeyError("a defect")
        elif route == "/boom-late":
            responder.start(200, [])
            raise KeyError("a defect behind the head")
        elif route == "/hold":
            responder.on_close(lambda: self.closed.put_nowait(request.target))
            self.opened.put_nowait(responder)
            await self.release.wait()
            responder.respond(200, [], b"released")
        elif route == "/late-watch":
            self.opened.put_nowait(responder)
            await self.release.wait()
            self._watch(responder, request.target)
        elif route == "/empty":
            responder.respond(204, [], b"")
        else:
            responder.respond(200, [("content-type", "application/json")], describe(request))

    async def _slices(self, responder: Responder, size: int) -> None:
        responder.start(200, [("content-type", "application/octet-stream")])
        body = pattern(size)
        for at in range(0, size, 100_000):
            if not responder.write(body[at : at + 100_000]):
                await responder.drain()
        responder.end()

    def _watch(self, responder: Responder, target: str) -> None:
        responder.start(200, [("content-type", "application/json")])
        responder.on_close(lambda: self.closed.put_nowait(target))
        self.watches.append(responder)
        self.opened.put_nowait(responder)

    def _careless(self, responder: Responder) -> None:
        responder.start(200, [])
        chunk = bytes(65_536)
        for _ in range(1_000):
            responder.write(chunk)
            self.most_queued = max(self.most_queued, responder.queued_bytes)

    async def _flood(self, responder: Responder, target: str) -> None:
        responder.start(200, [])
        responder.on_close(lambda: self.closed.put_nowait(target))
        chunk = bytes(16_384)
        while not responder.is_closed:
            if not responder.write(chunk):
                self.most_queued = max(self.most_queued, responder.queued_bytes)
                await responder.drain()


@dataclass(slots=True)
class Site:
    """A running server and who asks it."""

    server: Server
    app: App
    authority: Authority
    driver: Driver
    is_http2: bool
    client: Client | None = None
    """Our client, where the driver is ours."""
    library: str = ""
    clients: list[Client] = field(default_factory=list)

    def new_client(self, pem: Pem | None = None, windows: Windows | None = None) -> Client:
        """Return one more client of ours, closed with the site."""
        tls = client_context(
            self.authority.cert,
            pem.cert if pem else None,
            pem.key if pem else None,
            http2=self.is_http2,
        )
        client = Client("127.0.0.1", self.server.port, tls, http2=self.is_http2, windows=windows)
        self.clients.append(client)
        return client

    def own(self) -> Client:
        assert self.client is not None
        return self.client


def pattern(size: int) -> bytes:
    """Return `size` bytes that notice being reordered."""
    block = b"".join(b"%07d\n" % i for i in range(4_096))
    return (block * (size // len(block) + 1))[:size]


def describe(request: Request) -> bytes:
    """Return what the server has understood, as JSON."""
    peer = request.peer
    return json.dumps(
        {
            "method": request.method,
            "target": request.target,
            "version": request.http_version,
            "headers": request.headers,
            "size": len(request.body),
            "sha256": hashlib.sha256(request.body).hexdigest(),
            "peer": peer and [peer.common_name, list(peer.organizations), peer.fingerprint],
        }
    ).encode()


async def soon(awaitable: Awaitable[T]) -> T:
    """Wait for what must happen within a few seconds."""
    async with asyncio.timeout(8):
        return await awaitable


# -- with every driver


async def check_a_small_get_is_understood(site: Site) -> None:
    status, headers, body = await site.driver.ask(
        "GET", "/echo?a=b%20c&watch=true", headers=[("x-one", "1"), ("accept", "text/plain")]
    )
    seen = json.loads(body)
    assert status == 200
    assert headers["content-type"] == "application/json"
    assert headers["content-length"] == str(len(body))
    assert "date" in headers
    assert (seen["method"], seen["target"]) == ("GET", "/echo?a=b%20c&watch=true")
    assert seen["version"] == ("2" if site.is_http2 else "1.1")
    assert seen["headers"]["x-one"] == "1"
    assert seen["headers"]["accept"] == "text/plain"
    assert "host" in seen["headers"]
    assert seen["peer"] is None


async def check_requests_follow_each_other_on_one_connection(site: Site) -> None:
    for number in range(5):
        status, _, body = await site.driver.ask("GET", f"/echo?{number}")
        assert (status, json.loads(body)["target"]) == (200, f"/echo?{number}")
    assert site.server.connections.accepted_total == 1


async def check_a_head_has_a_length_and_no_body(site: Site) -> None:
    status, headers, body = await site.driver.ask("HEAD", "/big?5000")
    assert (status, headers["content-length"], body) == (200, "5000", b"")
    assert (await site.driver.ask("GET", "/big?10"))[2] == pattern(10)


async def check_a_204_has_no_length(site: Site) -> None:
    status, headers, body = await site.driver.ask("GET", "/empty")
    assert (status, body) == (204, b"")
    assert "content-length" not in headers


async def check_an_upload_of_2_mb_arrives_whole(site: Site) -> None:
    body = pattern(2_000_000)
    status, _, answer = await site.driver.ask("POST", "/echo", body=body)
    seen = json.loads(answer)
    assert (status, seen["size"]) == (200, len(body))
    assert seen["sha256"] == hashlib.sha256(body).hexdigest()
    assert site.server.connections.pending_body_bytes == 0


async def check_a_response_of_20_mb_arrives_whole(site: Site) -> None:
    status, _, body = await site.driver.ask("GET", "/big?20000000")
    assert status == 200
    assert body == pattern(20_000_000)


async def check_a_sliced_response_arrives_whole(site: Site) -> None:
    status, headers, body = await site.driver.ask("GET", "/sliced?3000000")
    assert status == 200
    assert "content-length" not in headers
    assert body == pattern(3_000_000)


async def check_a_body_over_the_limit_is_refused_and_the_server_goes_on(site: Site) -> None:
    body = bytes(site.server.limits.max_body_bytes + 200_000)
    status, _, _ = await site.driver.ask("POST", "/echo", body=body)
    assert status == 413
    assert (await site.driver.ask("GET", "/echo"))[0] == 200
    assert site.server.connections.pending_body_bytes == 0
    if site.is_http2:
        assert site.server.connections.accepted_total == 1


async def check_a_hundred_requests_at_once_are_answered(site: Site) -> None:
    answers = await site.driver.ask_all([f"/big?{1_000 + number}" for number in range(100)])
    assert [(status, len(body)) for status, _, body in answers] == [
        (200, 1_000 + number) for number in range(100)
    ]
    if site.is_http2:
        assert site.server.connections.accepted_total == 1


async def check_a_failing_handler_is_answered_with_500(site: Site) -> None:
    with capture_logs() as logs:
        status, _, _ = await site.driver.ask("GET", "/boom?secret=1")
        after, _, _ = await site.driver.ask("GET", "/echo")
    assert (status, after) == (500, 200)
    failures = [entry for entry in logs if entry["event"] == "handler_failed"]
    assert [entry["path"] for entry in failures] == ["/boom"]


CHECKS: tuple[Callable[[Site], Awaitable[None]], ...] = (
    check_a_small_get_is_understood,
    check_requests_follow_each_other_on_one_connection,
    check_a_head_has_a_length_and_no_body,
    check_a_204_has_no_length,
    check_an_upload_of_2_mb_arrives_whole,
    check_a_response_of_20_mb_arrives_whole,
    check_a_sliced_response_arrives_whole,
    check_a_body_over_the_limit_is_refused_and_the_server_goes_on,
    check_a_hundred_requests_at_once_are_answered,
    check_a_failing_handler_is_answered_with_500,
)


# -- with our client


async def check_the_head_of_a_stream_arrives_before_any_body(site: Site) -> None:
    async with site.own().stream("GET", "/watch") as watch:
        assert watch.status == 200
        chunks = aiter(watch)
        for _ in range(3):
            site.app.watches[0].write(LINE)
            assert await soon(anext(chunks)) == LINE
        site.app.watches[0].end()
        assert await soon(anext(chunks, b"end")) == b"end"
    assert await soon(site.app.closed.get()) == "/watch"
    assert site.server.connections.handlers == 0


async def check_a_client_that_leaves_closes_its_stream(site: Site) -> None:
    async with site.own().stream("GET", "/watch?1"):
        responder = await soon(site.app.opened.get())
        before = responder.is_closed
    assert await soon(site.app.closed.get()) == "/watch?1"
    assert (before, responder.is_closed) == (False, True)
    assert responder.write(LINE)
    responder.end()
    assert (await site.own().request("GET", "/echo")).status == 200


async def check_a_client_that_vanishes_closes_all_its_streams(site: Site) -> None:
    client = site.new_client()
    targets = {f"/watch?{number}" for number in range(4)}
    watches = [client.stream("GET", target) for target in targets]
    for watch in watches:
        await watch.__aenter__()
    assert site.server.connections.streams == 4
    await client.close()
    assert {await soon(site.app.closed.get()) for _ in targets} == targets
    with pytest.raises(ConnectionLost):
        await watches[0].read()


async def check_a_client_that_leaves_does_not_stop_its_handler(site: Site) -> None:
    client = site.new_client()
    with pytest.raises(TimeoutError):
        await client.request("PUT", "/hold", body=b"x", timeout_s=0.1)
    responder = await soon(site.app.opened.get())
    assert await soon(site.app.closed.get()) == "/hold"
    assert responder.is_closed
    assert site.server.connections.handlers == 1
    site.app.release.set()
    assert (await site.own().request("GET", "/echo")).status == 200
    assert site.server.connections.handlers == 0


async def check_a_handler_that_fails_behind_its_head_cuts_the_stream(site: Site) -> None:
    with capture_logs() as logs, pytest.raises(ConnectionLost):
        await site.own().request("GET", "/boom-late")
    assert "handler_failed" in {entry["event"] for entry in logs}


async def check_an_aborted_stream_is_an_error_to_its_client(site: Site) -> None:
    async with site.own().stream("GET", "/watch") as watch:
        site.app.watches[0].write(LINE)
        chunks = aiter(watch)
        assert await soon(anext(chunks)) == LINE
        site.app.watches[0].abort()
        with pytest.raises(ConnectionLost):
            await soon(anext(chunks))


async def check_a_slow_reader_is_bounded_and_cut(site: Site) -> None:
    client = site.new_client(windows=Windows(stream_bytes=65_536, connection_bytes=65_536))
    async with client.stream("GET", "/flood") as flood:
        assert await soon(site.app.closed.get()) == "/flood"
        assert site.app.most_queued <= site.server.limits.stream_high_bytes + 16_384
        with pytest.raises(ConnectionLost):
            await soon(flood.read())
    cut = (site.server.connections.cut_streams, site.server.connections.cut_connections)
    assert cut in (({Cut.SLOW_READER: 1}, {}), ({}, {Cut.SLOW_READER: 1}))
    assert (await site.own().request("GET", "/echo")).status == 200


async def check_small_windows_slow_a_transfer_but_do_not_stop_it(site: Site) -> None:
    client = site.new_client(windows=Windows(stream_bytes=16_384, connection_bytes=65_536))
    answers = await asyncio.gather(*[client.request("GET", "/big?400000") for _ in range(3)])
    assert [answer.body for answer in answers] == [pattern(400_000)] * 3


async def check_closing_ends_streams_cleanly(site: Site) -> None:
    async with (
        site.own().stream("GET", "/watch?1") as first,
        site.own().stream("GET", "/watch?2") as second,
    ):
        site.app.watches[0].write(LINE)
        _, one, two = await asyncio.gather(site.server.close(5), first.read(), second.read())
    assert (one, two) == (LINE, b"")
    assert site.server.connections.open == 0
    with pytest.raises(ConnectionLost):
        await site.own().request("GET", "/echo")


async def check_closing_waits_for_a_running_handler(site: Site) -> None:
    asking = asyncio.ensure_future(site.own().request("GET", "/hold"))
    await soon(site.app.opened.get())
    closing = asyncio.ensure_future(site.server.close(5))
    asyncio.get_running_loop().call_later(0.05, site.app.release.set)
    answer = await soon(asking)
    assert (answer.status, answer.body) == (200, b"released")
    await soon(closing)
    assert site.server.connections.handlers == 0


async def check_a_stream_that_starts_while_the_server_closes_is_ended_too(site: Site) -> None:
    asking = asyncio.ensure_future(site.own().request("GET", "/late-watch"))
    await soon(site.app.opened.get())
    closing = asyncio.ensure_future(site.server.close(5))
    asyncio.get_running_loop().call_later(0.02, site.app.release.set)
    answer = await soon(asking)
    assert (answer.status, answer.body) == (200, b"")
    await soon(closing)


async def check_answers_given_up_leave_room_for_others(site: Site) -> None:
    client = site.new_client(windows=Windows(stream_bytes=16_384, connection_bytes=65_535))
    for _ in range(6):  # with bytes that have arrived unread, and with bytes still to arrive
        async with client.stream("GET", "/big?60000") as arrived:
            while not arrived._begun()._chunks:
                await soon(arrived._begun()._wait())
        async with client.stream("GET", "/sliced?60000"):
            pass
    assert len((await client.request("GET", "/big?200000", timeout_s=8)).body) == 200_000


async def check_closing_cuts_what_the_grace_is_not_enough_for(site: Site) -> None:
    asking = asyncio.ensure_future(site.own().request("GET", "/hold"))
    await soon(site.app.opened.get())
    await soon(site.server.close(0.05))
    with pytest.raises(ConnectionLost):
        await soon(asking)
    assert site.server.connections.open == site.server.connections.handlers == 0


async def check_a_client_certificate_is_seen_as_the_peer(site: Site) -> None:
    pem = site.authority.client([("O", "first"), ("CN", "agent"), ("O", "second")])
    answer = await site.new_client(pem).request("GET", "/echo")
    name, organizations, fingerprint = json.loads(answer.body)["peer"]
    assert (name, organizations) == ("agent", ["first", "second"])
    assert fingerprint == hashlib.sha256(pem.der()).hexdigest()


async def check_a_bad_certificate_fails_its_handshake_only(site: Site) -> None:
    expired = site.authority.client([("CN", "late")], is_expired=True)
    foreign = Authority("another").client([("CN", "stranger")])
    for pem in (expired, foreign):
        with pytest.raises(ConnectionLost):
            await site.new_client(pem).request("GET", "/echo")
    assert (await site.own().request("GET", "/echo")).status == 200
    assert site.server.connections.failed_handshakes == {
        Handshake.EXPIRED: 1,
        Handshake.UNKNOWN_CA: 1,
    }


async def check_a_client_comes_back_after_a_loss(site: Site) -> None:
    client = site.own()
    async with client.stream("GET", "/watch") as watch:
        responder = await soon(site.app.opened.get())
        for connection in list(site.server._connections):
            connection.cut("a test")
        with pytest.raises(ConnectionLost):
            await soon(watch.read())
    assert responder.is_closed
    assert (await client.request("GET", "/echo")).status == 200
    assert site.server.connections.accepted_total == 2


STREAM_CHECKS: tuple[Callable[[Site], Awaitable[None]], ...] = (
    check_the_head_of_a_stream_arrives_before_any_body,
    check_a_client_that_leaves_closes_its_stream,
    check_a_client_that_vanishes_closes_all_its_streams,
    check_a_client_that_leaves_does_not_stop_its_handler,
    check_a_handler_that_fails_behind_its_head_cuts_the_stream,
    check_an_aborted_stream_is_an_error_to_its_client,
    check_a_slow_reader_is_bounded_and_cut,
    check_small_windows_slow_a_transfer_but_do_not_stop_it,
    check_closing_ends_streams_cleanly,
    check_closing_waits_for_a_running_handler,
    check_a_stream_that_starts_while_the_server_closes_is_ended_too,
    check_answers_given_up_leave_room_for_others,
    check_closing_cuts_what_the_grace_is_not_enough_for,
    check_a_client_certificate_is_seen_as_the_peer,
    check_a_bad_certificate_fails_its_handshake_only,
    check_a_client_comes_back_after_a_loss,
)
