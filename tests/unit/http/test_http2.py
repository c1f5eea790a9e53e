"""Both HTTP/2 libraries in both roles against each other, in memory."""

from collections.abc import Callable
from itertools import product

import h2.config
import h2.connection
import h2.errors
import h2.events
import pytest

from hub.clock import SystemClock
from hub.http.codec import (
    ClientCodec,
    Codec,
    DataReceived,
    Event,
    PeerLeaving,
    RequestReceived,
    ResponseReceived,
    ServerCodec,
    StreamEnded,
)
from hub.http.codecs.choice import Http2Library, http2_client, http2_server
from hub.http.codecs.fields import DateHeader
from hub.http.limits import Limits

LIBRARIES: tuple[Http2Library, ...] = ("ngh2", "h2")
PAIRS = list(product(LIBRARIES, LIBRARIES))
both_servers = pytest.mark.parametrize("library", LIBRARIES)
every_pair = pytest.mark.parametrize(
    ("asked", "asking"), PAIRS, ids=[f"{a}-asked-by-{b}" for a, b in PAIRS]
)
GET = ("GET", "/a", [("host", "hub"), ("x", "1")])


def make_server(library: Http2Library, limits: Limits | None = None) -> ServerCodec:
    clock = SystemClock()
    return http2_server(library, date=DateHeader(clock), limits=limits or Limits(), clock=clock)


def is_finished(codec: Codec) -> bool:
    return codec.is_finished


class Wire:
    """A server and a client and what they have told."""

    def __init__(self, asked: Http2Library, asking: Http2Library, *, window: int = 65_535) -> None:
        self.server = make_server(asked)
        self.client: ClientCodec = http2_client(
            asking, stream_window_bytes=window, connection_window_bytes=1 << 20
        )
        self.seen: list[Event] = []
        self.told: list[Event] = []
        self.run()

    def run(self) -> None:
        """Carry bytes until nothing moves."""
        while self._carry(self.client, self.server, self.seen) + self._carry(
            self.server, self.client, self.told
        ):
            pass

    def get(self) -> int:
        method, target, headers = GET
        stream_id = self.client.request(method, target, headers, length=None, is_last=True)
        self.run()
        return stream_id

    def post(self, body: bytes, *, length: int | None = None, is_last: bool = True) -> int:
        stream_id = self.client.request(
            "POST", "/p", [("host", "hub")], length=length, is_last=False
        )
        self.client.send_data(stream_id, body, is_last=is_last)
        self.run()
        return stream_id

    def _carry(self, source: Codec, sink: Codec, events: list[Event]) -> int:
        carried = 0
        while data := source.flush(1_000):
            carried += len(data)
            new = sink.feed(data)
            events += new
            for event in new:
                if sink is self.client and isinstance(event, DataReceived):
                    self.client.consumed(event.stream_id, len(event.data))
        events += sink.feed(b"")
        return carried


def body_of(events: list[Event], stream_id: int) -> bytes:
    return b"".join(
        e.data for e in events if isinstance(e, DataReceived) and e.stream_id == stream_id
    )


@every_pair
def test_a_request_and_its_answer(asked: Http2Library, asking: Http2Library) -> None:
    wire = Wire(asked, asking)
    stream_id = wire.get()
    headers = {"host": "hub", "x": "1"}
    assert wire.seen == [RequestReceived(stream_id, "GET", "/a", headers, is_last=True)]
    wire.server.send_head(stream_id, 200, [("y", "2")], length=2, is_last=False)
    wire.server.send_data(stream_id, b"ok", is_last=True)
    wire.run()
    head = wire.told[0]
    assert isinstance(head, ResponseReceived)
    assert (head.status, head.headers["y"], head.headers["content-length"]) == (200, "2", "2")
    assert "date" in head.headers
    assert body_of(wire.told, stream_id) == b"ok"
    assert wire.told[-1] == wire.seen[-1] == StreamEnded(stream_id, "")
    assert not is_finished(wire.server)
    assert not is_finished(wire.client)


@every_pair
def test_a_body_larger_than_every_window_goes_both_ways(
    asked: Http2Library, asking: Http2Library
) -> None:
    wire = Wire(asked, asking)
    body = bytes(range(256)) * 12_000
    stream_id = wire.post(body)
    assert body_of(wire.seen, stream_id) == body
    wire.server.send_head(stream_id, 200, [], length=len(body), is_last=False)
    wire.server.send_data(stream_id, body, is_last=True)
    assert wire.server.queued_bytes(stream_id) == wire.server.queued_bytes() == len(body)
    wire.run()
    assert body_of(wire.told, stream_id) == body
    assert wire.server.queued_bytes() == 0
    assert wire.told[-1] == StreamEnded(stream_id, "")


@every_pair
def test_a_head_without_a_body_ends_the_stream(asked: Http2Library, asking: Http2Library) -> None:
    wire = Wire(asked, asking)
    stream_id = wire.get()
    wire.server.send_head(stream_id, 204, [], length=0, is_last=True)
    wire.run()
    head = wire.told[0]
    assert isinstance(head, ResponseReceived)
    assert (head.is_last, "content-length" in head.headers) == (True, False)
    assert wire.told[-1] == StreamEnded(stream_id, "")


@every_pair
def test_what_the_client_does_not_consume_stays_with_the_server(
    asked: Http2Library, asking: Http2Library
) -> None:
    wire = Wire(asked, asking, window=20_000)
    stream_id = wire.get()
    wire.server.send_head(stream_id, 200, [], length=None, is_last=False)
    wire.server.send_data(stream_id, bytes(100_000), is_last=False)
    received = 0
    while data := wire.server.flush(4_096):
        for event in wire.client.feed(data):
            received += len(event.data) if isinstance(event, DataReceived) else 0
    assert received == 20_000
    assert wire.server.queued_bytes(stream_id) == 80_000
    wire.client.consumed(stream_id, 20_000)
    wire.run()
    assert body_of(wire.told, stream_id) == bytes(80_000)


@every_pair
def test_resets_are_told_to_the_other_side(asked: Http2Library, asking: Http2Library) -> None:
    wire = Wire(asked, asking)
    first, second = wire.get(), wire.get()
    for stream_id in (first, second):
        wire.server.send_head(stream_id, 200, [], length=None, is_last=False)
    wire.run()
    wire.client.reset(first)
    wire.server.reset(second)
    wire.run()
    ends = {e.stream_id: e.error for e in wire.seen if isinstance(e, StreamEnded)}
    assert ends[first] == "CANCEL"
    ends = {e.stream_id: e.error for e in wire.told if isinstance(e, StreamEnded)}
    assert ends[second] == "INTERNAL_ERROR"
    wire.server.send_data(first, b"late", is_last=False)
    wire.run()
    assert wire.server.queued_bytes() == 0
    assert (wire.server.is_finished, wire.client.is_finished) == (False, False)


@every_pair
@pytest.mark.parametrize("body", [b"no!", b""])
def test_an_early_answer_arrives_and_stops_the_upload(
    asked: Http2Library, asking: Http2Library, body: bytes
) -> None:
    wire = Wire(asked, asking)
    stream_id = wire.post(bytes(10_000), is_last=False)
    wire.server.send_head(stream_id, 413, [], length=len(body), is_last=not body)
    if body:
        wire.server.send_data(stream_id, body, is_last=True)
    wire.run()
    head = next(e for e in wire.told if isinstance(e, ResponseReceived))
    assert head.status == 413
    assert body_of(wire.told, stream_id) == body
    assert StreamEnded(stream_id, "") in wire.seen
    assert any(isinstance(e, StreamEnded) and e.stream_id == stream_id for e in wire.told)
    wire.client.send_data(stream_id, bytes(10_000), is_last=True)
    again = wire.get()
    assert any(isinstance(e, RequestReceived) and e.stream_id == again for e in wire.seen)


@every_pair
def test_after_a_goaway_open_streams_go_on_and_the_connection_ends_with_the_last(
    asked: Http2Library, asking: Http2Library
) -> None:
    wire = Wire(asked, asking)
    stream_id = wire.get()
    wire.server.send_head(stream_id, 200, [], length=None, is_last=False)
    wire.run()
    wire.server.shutdown()
    wire.server.shutdown()
    wire.run()
    assert [e.last_stream_id for e in wire.told if isinstance(e, PeerLeaving)] == [stream_id]
    assert not wire.client.can_request
    assert not is_finished(wire.server)
    wire.server.send_data(stream_id, bytes(100_000), is_last=False)
    wire.run()
    wire.server.send_data(stream_id, b"end", is_last=True)
    wire.run()
    assert body_of(wire.told, stream_id) == bytes(100_000) + b"end"
    assert wire.told[-1] == StreamEnded(stream_id, "")
    assert is_finished(wire.server)
    assert is_finished(wire.client)


@every_pair
def test_a_client_that_says_goodbye_still_gets_its_answers(
    asked: Http2Library, asking: Http2Library
) -> None:
    wire = Wire(asked, asking)
    stream_id = wire.get()
    wire.client.shutdown()
    wire.run()
    wire.server.send_head(stream_id, 200, [], length=2, is_last=False)
    wire.server.send_data(stream_id, b"ok", is_last=True)
    wire.run()
    assert body_of(wire.told, stream_id) == b"ok"
    assert is_finished(wire.client)


@every_pair
def test_a_hundred_streams_share_the_connection_fairly(
    asked: Http2Library, asking: Http2Library
) -> None:
    wire = Wire(asked, asking)
    streams = [wire.get() for _ in range(100)]
    for stream_id in streams:
        wire.server.send_head(stream_id, 200, [], length=40_000, is_last=False)
        wire.server.send_data(stream_id, bytes(40_000), is_last=True)
    wire.run()
    assert {len(body_of(wire.told, stream_id)) for stream_id in streams} == {40_000}
    assert [e for e in wire.told if isinstance(e, StreamEnded) and e.error] == []


# -- against a bare client


def bare_client() -> h2.connection.H2Connection:
    config = h2.config.H2Configuration(
        header_encoding="utf-8", validate_outbound_headers=False, normalize_outbound_headers=False
    )
    client = h2.connection.H2Connection(config)
    client.initiate_connection()
    return client


def exchange(client: h2.connection.H2Connection, server: ServerCodec) -> list[h2.events.Event]:
    """Carry everything from the client to the server and back; return what the client saw."""
    server.feed(client.data_to_send())
    seen: list[h2.events.Event] = []
    while data := server.flush(65_536):
        seen += client.receive_data(data)
    return seen


def head(method: str = "POST", **fields: str) -> list[tuple[str, str]]:
    pseudo = [(":method", method), (":scheme", "https"), (":authority", "hub"), (":path", "/")]
    return pseudo + [(name.replace("_", "-"), value) for name, value in fields.items()]


@both_servers
def test_the_server_announces_its_limits(library: Http2Library) -> None:
    client, server = bare_client(), make_server(library)
    exchange(client, server)
    settings = client.remote_settings
    assert settings.max_concurrent_streams == 1_000
    assert settings.max_header_list_size == 65_536
    assert settings.initial_window_size >= 1 << 20
    assert client.outbound_flow_control_window >= 1 << 20


@both_servers
def test_a_ping_is_answered(library: Http2Library) -> None:
    client, server = bare_client(), make_server(library)
    exchange(client, server)
    client.ping(b"12345678")
    assert any(isinstance(e, h2.events.PingAckReceived) for e in exchange(client, server))


@both_servers
def test_trailers_end_a_request_and_are_ignored(library: Http2Library) -> None:
    client, server = bare_client(), make_server(library)
    client.send_headers(1, head())
    client.send_data(1, b"abc")
    client.send_headers(1, [("x-checksum", "1")], end_stream=True)
    events = server.feed(client.data_to_send())
    assert body_of(events, 1) == b"abc"
    assert [e.is_last for e in events if isinstance(e, DataReceived)][-1]
    assert all("x-checksum" not in e.headers for e in events if isinstance(e, RequestReceived))


@both_servers
@pytest.mark.parametrize("length", ["3", "99999999"])
def test_expect_is_answered_unless_the_body_would_be_refused(
    library: Http2Library, length: str
) -> None:
    client, server = bare_client(), make_server(library)
    exchange(client, server)
    client.send_headers(1, head(expect="100-continue", content_length=length))
    seen = exchange(client, server)
    is_answered = any(isinstance(e, h2.events.InformationalResponseReceived) for e in seen)
    assert is_answered == (length == "3")


@both_servers
def test_cookies_and_repeated_fields_are_joined(library: Http2Library) -> None:
    client, server = bare_client(), make_server(library)
    fields = [*head("GET"), ("cookie", "a=1"), ("cookie", "b=2"), ("accept", "x"), ("accept", "y")]
    client.send_headers(1, fields, end_stream=True)
    (request,) = server.feed(client.data_to_send())
    assert isinstance(request, RequestReceived)
    assert request.headers == {"host": "hub", "cookie": "a=1; b=2", "accept": "x, y"}
    assert request.is_last


@both_servers
def test_a_head_over_the_limit_does_not_reach_the_application(library: Http2Library) -> None:
    client, server = bare_client(), make_server(library)
    exchange(client, server)
    client.send_headers(1, head(x="v" * 70_000), end_stream=True)
    assert not any(isinstance(e, RequestReceived) for e in server.feed(client.data_to_send()))


@both_servers
@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nx" * 9]
)
def test_what_is_not_http2_ends_the_connection(library: Http2Library, data: bytes) -> None:
    server = make_server(library)
    assert server.feed(data) == []
    while server.flush(65_536):
        pass
    assert is_finished(server)
    assert server.feed(data) == []


@both_servers
def test_a_reset_storm_ends_the_connection(library: Http2Library) -> None:
    server = make_server(library, Limits(reset_burst=50, resets_per_s=1))
    client = bare_client()
    exchange(client, server)
    for _ in range(60):
        stream_id = client.get_next_available_stream_id()
        client.send_headers(stream_id, head("GET"), end_stream=True)
        client.reset_stream(stream_id, h2.errors.ErrorCodes.CANCEL)
        server.feed(client.data_to_send())
    while server.flush(65_536):
        pass
    assert is_finished(server)


@both_servers
def test_a_few_resets_are_nothing(library: Http2Library) -> None:
    server = make_server(library, Limits(reset_burst=50, resets_per_s=1))
    client = bare_client()
    exchange(client, server)
    for _ in range(40):
        stream_id = client.get_next_available_stream_id()
        client.send_headers(stream_id, head("GET"), end_stream=True)
        client.reset_stream(stream_id, h2.errors.ErrorCodes.CANCEL)
        exchange(client, server)
    assert not is_finished(server)


@both_servers
def test_a_flood_of_pings_nobody_reads_the_answers_to_ends_the_connection(
    library: Http2Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub.http.codecs.http2_hyper._MAX_CONTROL_BYTES", 100_000)
    server, client = make_server(library), bare_client()
    exchange(client, server)
    client.ping(b"12345678")
    ping = client.data_to_send()
    for _ in range(8):
        server.feed(ping * 1_000)
    out = sum(len(data) for data in iter(lambda: server.flush(65_536), b""))
    assert out <= 120_000
    assert is_finished(server)


@both_servers
def test_more_streams_than_allowed_are_refused(library: Http2Library) -> None:
    server = make_server(library, Limits(max_streams=3))
    client = bare_client()
    events: list[Event] = []
    for number in range(5):  # before the client has seen the server's settings
        client.send_headers(1 + 2 * number, head("GET"), end_stream=True)
        events += server.feed(client.data_to_send())
    assert len([e for e in events if isinstance(e, RequestReceived)]) <= 3 + 2
    events = server.feed(b"")
    exchange(client, server)
    assert client.remote_settings.max_concurrent_streams == 3


Break = Callable[[ServerCodec], None]


@both_servers
@pytest.mark.parametrize(
    "use",
    [
        lambda server: server.send_data(99, b"x", is_last=True),
        lambda server: server.send_head(99, 200, [], length=1, is_last=False),
        lambda server: server.reset(99),
    ],
    ids=["data", "head", "reset"],
)
def test_a_stream_that_is_not_there_is_ignored(library: Http2Library, use: Break) -> None:
    server = make_server(library)
    use(server)
    assert server.queued_bytes(99) == 0
    assert not is_finished(server)


@both_servers
def test_a_header_cannot_break_out_of_its_line(library: Http2Library) -> None:
    client, server = bare_client(), make_server(library)
    client.send_headers(1, head("GET"), end_stream=True)
    server.feed(client.data_to_send())
    with pytest.raises(ValueError, match="line break"):
        server.send_head(1, 200, [("x", "a\r\nb")], length=0, is_last=True)
