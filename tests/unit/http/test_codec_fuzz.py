"""Codecs fed with broken bytes: they may refuse, they may not raise, hang or grow."""

import random

import h2.config
import h2.connection
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hub.clock import SystemClock
from hub.http.codec import (
    Codec,
    DataReceived,
    PeerLeaving,
    RequestReceived,
    ResponseReceived,
    ServerCodec,
    StreamEnded,
)
from hub.http.codecs.choice import Http2Library, http2_client, http2_server
from hub.http.codecs.fields import DateHeader
from hub.http.codecs.http1 import Http1Server
from hub.http.codecs.http1_client import Http1Client
from hub.http.limits import Limits

KINDS = ("http1", "ngh2", "h2")
ROUNDS = 150


def library_of(kind: str) -> Http2Library:
    return "ngh2" if kind == "ngh2" else "h2"


def make_server(kind: str) -> ServerCodec:
    clock = SystemClock()
    date = DateHeader(clock)
    if kind == "http1":
        return Http1Server(date=date, max_header_bytes=4_096, max_body_bytes=4_096)
    return http2_server(library_of(kind), date=date, limits=Limits(), clock=clock)


def request_bytes(kind: str) -> bytes:
    """Return a valid conversation of a client: heads, bodies, a ping, a reset."""
    if kind == "http1":
        return (
            b"GET /a?watch=true HTTP/1.1\r\nhost: hub\r\naccept: */*\r\n\r\n"
            b"POST /b HTTP/1.1\r\nhost: hub\r\ncontent-length: 5\r\n\r\nhello"
            b"PUT /c HTTP/1.1\r\nhost: hub\r\ntransfer-encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\n0\r\n\r\n"
        )
    client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    client.initiate_connection()
    for stream_id in (1, 3, 5):
        pseudo = [(":method", "PUT"), (":scheme", "https"), (":authority", "x"), (":path", "/a")]
        client.send_headers(stream_id, [*pseudo, ("accept", "application/json")])
        client.send_data(stream_id, b"hello" * 20, end_stream=stream_id != 5)
    client.ping(b"12345678")
    client.increment_flow_control_window(1_000)
    client.reset_stream(5)
    return client.data_to_send()


def respond(server: ServerCodec, stream_id: int) -> None:
    server.send_head(stream_id, 200, [("x", "y")], length=None, is_last=False)
    server.send_data(stream_id, b"body", is_last=True)


def drive(server: ServerCodec, data: bytes, pieces: int) -> None:
    """Feed `data` in pieces and answer everything that comes out."""
    size = max(1, len(data) // pieces)
    for at in range(0, len(data), size):
        for event in server.feed(data[at : at + size]):
            if isinstance(event, RequestReceived):
                respond(server, event.stream_id)
        drain(server)
    for event in server.feed(b""):
        if isinstance(event, RequestReceived):
            respond(server, event.stream_id)
    drain(server)
    server.shutdown()
    drain(server)
    assert server.queued_bytes() <= 4 * 200
    server.lost()


def drain(codec: Codec) -> None:
    total = 0
    while data := codec.flush(16_384):
        total += len(data)
        assert total < 2 << 20
    codec.feed(b"")


def damage(source: random.Random, data: bytes) -> bytes:
    """Flip, drop, double or insert a few bytes."""
    damaged = bytearray(data)
    for _ in range(source.randint(1, 6)):
        at = source.randrange(len(damaged))
        match source.randint(0, 3):
            case 0:
                damaged[at] ^= 1 << source.randrange(8)
            case 1:
                del damaged[at : at + source.randint(1, 8)]
            case 2:
                damaged[at:at] = damaged[at : at + source.randint(1, 40)]
            case _:
                damaged[at:at] = source.randbytes(source.randint(1, 8))
        if not damaged:
            return b"x"
    return bytes(damaged)


@pytest.mark.parametrize("kind", KINDS)
def test_the_undamaged_conversation_is_understood(kind: str) -> None:
    server = make_server(kind)
    events = server.feed(request_bytes(kind))
    for _ in range(3):
        for event in list(events):
            if isinstance(event, RequestReceived):
                respond(server, event.stream_id)
        events += server.feed(b"")
    assert len({e.stream_id for e in events if isinstance(e, RequestReceived)}) == 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_server_survives_damaged_requests(kind: str, seed: int) -> None:
    source = random.Random(f"{kind}-{seed}")
    data = request_bytes(kind)
    for _ in range(ROUNDS):
        drive(make_server(kind), damage(source, data), source.randint(1, 30))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.binary(max_size=300), pieces=st.integers(1, 20))
def test_a_server_survives_any_bytes(kind: str, data: bytes, pieces: int) -> None:
    drive(make_server(kind), data, pieces)


@pytest.mark.parametrize("kind", ["ngh2", "h2"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    frames=st.lists(
        st.tuples(
            st.integers(0, 12), st.integers(0, 255), st.integers(0, 9), st.binary(max_size=40)
        ),
        max_size=12,
    )
)
def test_a_server_survives_any_frames(kind: str, frames: list[tuple[int, int, int, bytes]]) -> None:
    data = b"".join(
        len(payload).to_bytes(3, "big")
        + bytes([type_, flags])
        + stream.to_bytes(4, "big")
        + payload
        for type_, flags, stream, payload in frames
    )
    start = request_bytes(kind)
    drive(make_server(kind), start[: 24 + 9 + start[26]] + data, 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_client_survives_damaged_answers(kind: str, seed: int) -> None:
    source = random.Random(f"client-{kind}-{seed}")
    for _ in range(ROUNDS):
        client = (
            Http1Client(max_unread_bytes=1 << 20)
            if kind == "http1"
            else http2_client(
                library_of(kind),
                stream_window_bytes=65_535,
                connection_window_bytes=65_535,
            )
        )
        server = make_server(kind)
        client.request("GET", "/", [("host", "hub")], length=None, is_last=True)
        for event in server.feed(client.flush(65_536)):
            if isinstance(event, RequestReceived):
                respond(server, event.stream_id)
        answer = damage(source, server.flush(65_536))
        for event in client.feed(answer):
            assert isinstance(event, ResponseReceived | DataReceived | StreamEnded | PeerLeaving)
        drain(client)
        client.shutdown()
        client.lost()
