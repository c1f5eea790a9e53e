import datetime as dt

import pytest

from hub.clock import SystemClock
from hub.http.codec import DataReceived, Event, RequestReceived, StreamEnded
from hub.http.codecs.fields import DateHeader
from hub.http.codecs.http1 import Http1Server


class FixedClock(SystemClock):
    def now(self) -> dt.datetime:
        return dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


DATE = b"date: Fri, 02 Jan 2026 03:04:05 GMT\r\n"


def codec(*, max_header_bytes: int = 4_096, max_body_bytes: int = 100) -> Http1Server:
    return Http1Server(
        date=DateHeader(FixedClock()),
        max_header_bytes=max_header_bytes,
        max_body_bytes=max_body_bytes,
    )


def is_finished(server: Http1Server) -> bool:
    return server.is_finished


def requests(events: list[Event]) -> list[tuple[int, str, str]]:
    return [(e.stream_id, e.method, e.target) for e in events if isinstance(e, RequestReceived)]


def answer(server: Http1Server, stream_id: int, body: bytes = b"ok") -> bytes:
    server.send_head(stream_id, 200, [], length=len(body), is_last=False)
    server.send_data(stream_id, body, is_last=True)
    return server.flush(1 << 20)


def test_a_request_and_its_answer() -> None:
    server = codec()
    (event,) = server.feed(
        b"GET /a?b=c HTTP/1.1\r\nHost: x\r\nX-A: 1\r\nx-a: 2\r\nX-Empty:\r\n\r\n"
    )
    headers = {"host": "x", "x-a": "1, 2", "x-empty": ""}
    assert event == RequestReceived(1, "GET", "/a?b=c", headers, is_last=True)
    assert answer(server, 1) == b"HTTP/1.1 200 OK\r\n" + DATE + b"content-length: 2\r\n\r\nok"
    assert server.feed(b"") == [StreamEnded(1, "")]
    assert not is_finished(server)


@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
def test_a_request_may_arrive_in_any_pieces(size: int) -> None:
    server = codec()
    data = b"POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 11\r\n\r\nhello world"
    events: list[Event] = []
    for at in range(0, len(data), size):
        events += server.feed(data[at : at + size])
    assert requests(events) == [(1, "POST", "/a")]
    body = [e for e in events if isinstance(e, DataReceived)]
    assert b"".join(e.data for e in body) == b"hello world"
    assert [e.is_last for e in body] == [False] * (len(body) - 1) + [True]


def test_a_chunked_request_is_put_together_and_its_trailers_are_ignored() -> None:
    server = codec()
    events = server.feed(
        b"POST /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        b"3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nx-trailer: 1\r\n\r\n"
    )
    assert isinstance(events[0], RequestReceived)
    assert "x-trailer" not in events[0].headers
    assert b"".join(e.data for e in events if isinstance(e, DataReceived)) == b"abcde"
    assert getattr(events[-1], "is_last", False)


def test_a_stream_is_chunked_and_its_head_goes_first() -> None:
    server = codec()
    server.feed(b"GET /watch HTTP/1.1\r\nhost: x\r\n\r\n")
    server.send_head(1, 200, [("content-type", "application/json")], length=None, is_last=False)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + DATE
    assert server.flush(1 << 20) == head + b"transfer-encoding: chunked\r\n\r\n"
    server.send_data(1, b"x" * 26, is_last=False)
    assert server.flush(1 << 20) == b"1a\r\n" + b"x" * 26 + b"\r\n"
    server.send_data(1, b"y" * 5_000, is_last=False)
    assert server.flush(1 << 20) == b"1388\r\n" + b"y" * 5_000 + b"\r\n"
    server.send_data(1, b"", is_last=True)
    assert server.flush(1 << 20) == b"0\r\n\r\n"


def test_pipelined_requests_wait_for_their_turn() -> None:
    server = codec()
    data = b"".join(b"GET /%d HTTP/1.1\r\nhost: x\r\n\r\n" % number for number in range(3))
    assert requests(server.feed(data)) == [(1, "GET", "/0")]
    assert (server.wants_read, is_finished(server)) == (False, False)
    answer(server, 1)
    assert requests(server.feed(b"")) == [(2, "GET", "/1")]
    answer(server, 2)
    assert requests(server.feed(b"")) == [(3, "GET", "/2")]
    assert (server.wants_read, is_finished(server)) == (True, False)
    assert not is_finished(server)


def test_a_pipelined_body_follows_its_head() -> None:
    server = codec()
    one = b"GET /0 HTTP/1.1\r\nhost: x\r\n\r\n"
    two = b"POST /1 HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nab"
    assert requests(server.feed(one + two)) == [(1, "GET", "/0")]
    answer(server, 1)
    events = server.feed(b"")
    assert requests(events) == [(2, "POST", "/1")]
    assert DataReceived(2, b"ab", is_last=False) in events
    assert server.feed(b"c") == [DataReceived(2, b"c", is_last=True)]


@pytest.mark.parametrize(
    ("head", "version"),
    [
        (b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", "1.1"),
        (b"GET / HTTP/1.0\r\n\r\n", "1.0"),
    ],
)
def test_a_client_that_wants_to_close_is_closed_after_its_answer(head: bytes, version: str) -> None:
    server = codec()
    server.feed(head)
    assert not is_finished(server)
    assert b"connection: close\r\n" in answer(server, 1)
    assert is_finished(server)


def test_an_old_client_gets_a_stream_that_ends_with_the_connection() -> None:
    server = codec()
    server.feed(b"GET / HTTP/1.0\r\n\r\n")
    server.send_head(1, 200, [], length=None, is_last=False)
    server.send_data(1, b"raw", is_last=True)
    out = server.flush(1 << 20)
    assert out.endswith(b"\r\n\r\nraw")
    assert b"chunked" not in out
    assert is_finished(server)


def test_a_head_request_is_answered_without_a_body() -> None:
    server = codec()
    server.feed(b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n")
    server.send_head(1, 200, [], length=7, is_last=True)
    assert server.flush(1 << 20).endswith(b"content-length: 7\r\n\r\n")
    assert not is_finished(server)


@pytest.mark.parametrize("status", [204, 304])
def test_a_bodiless_status_has_no_framing(status: int) -> None:
    server = codec()
    server.feed(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    server.send_head(1, status, [], length=0, is_last=True)
    out = server.flush(1 << 20)
    assert b"content-length" not in out
    assert b"transfer-encoding" not in out


def test_expect_is_answered_before_the_body() -> None:
    server = codec()
    head = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n"
    assert requests(server.feed(head)) == [(1, "POST", "/")]
    assert server.flush(1 << 20) == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert server.feed(b"abc") == [DataReceived(1, b"abc", is_last=True)]


def test_expect_is_not_answered_when_the_body_would_be_refused() -> None:
    server = codec(max_body_bytes=2)
    server.feed(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n")
    assert server.flush(1 << 20) == b""
    assert b"connection: close" in answer(server, 1)
    assert is_finished(server)


def test_an_answer_before_the_end_of_the_body_closes() -> None:
    server = codec()
    server.feed(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nabc")
    assert b"connection: close" in answer(server, 1)
    assert is_finished(server)
    assert server.feed(b"d" * 500) == [StreamEnded(1, "")]


BAD = {
    "not http": b"\x16\x03\x01 hello\r\n\r\n",
    "http2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "space in name": b"GET / HTTP/1.1\r\nhost: x\r\nx y: 1\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\na",
    "length and chunks": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n"
    b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad length": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
    "bad chunk": b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    "bare line feeds": b"GET / HTTP/1.1\nhost: x\n\n",
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_a_malformed_request_is_refused_with_400(data: bytes) -> None:
    server = codec()
    events = server.feed(data)
    assert not any(getattr(event, "is_last", False) for event in events)
    out = server.flush(1 << 20)
    assert out.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"connection: close" in out
    assert is_finished(server)
    assert all(e.error for e in events if isinstance(e, StreamEnded))


def test_a_malformed_request_behind_a_good_one_is_refused_after_its_answer() -> None:
    server = codec()
    events = server.feed(b"GET / HTTP/1.1\r\nhost: x\r\n\r\nnonsense\r\n\r\n")
    assert requests(events) == [(1, "GET", "/")]
    assert server.flush(1 << 20) == b""
    out = answer(server, 1)
    assert out.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"HTTP/1.1 400 Bad Request\r\n" in out
    assert is_finished(server)


LONG = {
    "many fields": b"".join(b"x-%d: %s\r\n" % (n, b"v" * 50) for n in range(200)) + b"\r\n",
    "one endless field": b"x: " + b"v" * 10_000,
    "an endless name": b"x" * 10_000,
}


@pytest.mark.parametrize("rest", LONG.values(), ids=LONG)
@pytest.mark.parametrize("size", [500, 100_000])
def test_a_head_over_the_limit_is_refused_with_431(rest: bytes, size: int) -> None:
    server = codec()
    data = b"GET / HTTP/1.1\r\nhost: x\r\n" + rest
    for at in range(0, len(data), size):
        server.feed(data[at : at + size])
    assert server.flush(1 << 20).startswith(b"HTTP/1.1 431 ")
    assert is_finished(server)


def test_a_trailer_without_end_is_refused() -> None:
    server = codec()
    server.feed(
        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: "
    )
    for _ in range(20):
        server.feed(b"v" * 500)
    assert is_finished(server)
    assert server.flush(1 << 20).startswith(b"HTTP/1.1 431 ")


def test_an_upgrade_is_an_ordinary_request_and_the_last() -> None:
    server = codec()
    events = server.feed(
        b"GET /exec HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: SPDY/3.1\r\n\r\n\x80\x03"
    )
    assert requests(events) == [(1, "GET", "/exec")]
    assert isinstance(events[0], RequestReceived)
    assert events[0].is_last
    assert b"connection: close" in answer(server, 1)
    assert is_finished(server)


@pytest.mark.parametrize("value", ["a\r\nset-cookie: x", "a\nb", "a\0b"])
def test_a_header_cannot_break_out_of_its_line(value: str) -> None:
    server = codec()
    server.feed(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    with pytest.raises(ValueError, match="line break"):
        server.send_head(1, 200, [("x", value)], length=0, is_last=True)
    assert server.flush(1 << 20) == b""


def test_shutdown_closes_an_idle_connection_at_once_and_a_busy_one_after_its_answer() -> None:
    idle = codec()
    idle.shutdown()
    assert is_finished(idle)
    busy = codec()
    busy.feed(b"GET / HTTP/1.1\r\nhost: x\r\n\r\nGET /2 HTTP/1.1\r\nhost: x\r\n\r\n")
    busy.shutdown()
    assert not is_finished(busy)
    assert b"connection: close" in answer(busy, 1)
    assert is_finished(busy)
    assert requests(busy.feed(b"")) == []


def test_a_reset_drops_what_is_queued_and_says_so() -> None:
    server = codec()
    server.feed(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    server.send_head(1, 200, [], length=None, is_last=False)
    server.send_data(1, b"abc", is_last=False)
    server.reset(1)
    assert (server.is_aborted, server.is_finished, server.flush(99)) == (True, True, b"")
    assert server.feed(b"") == [StreamEnded(1, "reset")]


def test_a_closed_codec_leaves_no_cycle() -> None:
    import gc
    import weakref

    class Watched(Http1Server):
        __slots__ = ("__weakref__",)

    gc.disable()
    try:
        server = Watched(date=DateHeader(FixedClock()), max_header_bytes=99, max_body_bytes=99)
        seen = weakref.ref(server)
        server.lost()
        del server
        assert seen() is None
    finally:
        gc.enable()
