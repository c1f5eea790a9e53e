"""HTTP/2 frames by the thousand, windows that make no sense, heads without end.

Both libraries must end the connection, or go on without keeping anything, whatever a client sends
and does not read; the others on the server notice nothing.
"""

import asyncio
import contextlib
import ssl
import struct
import sys
from collections.abc import Callable, Iterator

import hpack
import pytest

from hub.http.limits import Limits
from hub.http.tally import Cut
from tests.contract.http_suite import Site, pattern, soon
from tests.contract.test_http import Kind, name_kind, open_site
from tests.contract.test_http_hostile import dial_tls, is_well, no_defects, talk, until
from tests.unit.http.pki import Authority

KINDS: list[Kind] = [("ngh2", "own-ngh2"), ("h2", "own-h2")]
LIMITS = Limits(stall_s=1.0, body_s=1.0, sweep_s=0.05, linger_s=0.2)
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PSEUDO = [(":method", "POST"), (":scheme", "https"), (":authority", "x"), (":path", "/echo")]
Attack = Callable[[], Iterator[bytes]]
both = pytest.mark.parametrize("kind", KINDS, ids=name_kind)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    size = struct.pack(">I", len(payload))[1:]
    return size + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def head(*more: tuple[str, str]) -> bytes:
    return hpack.Encoder().encode([*PSEUDO, *more], huffman=False)


OPENING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0)


def repeated(piece: bytes, *, first: bytes = b"") -> Attack:
    """An opening, then the same for ever."""

    def run() -> Iterator[bytes]:
        yield OPENING + first
        block = piece * (65_536 // len(piece) + 1)
        while True:
            yield block

    return run


def resets() -> Iterator[bytes]:
    yield OPENING
    fields = head()
    for number in range(1, 1 << 30, 2):
        yield frame(HEADERS, END_HEADERS, number, fields) + frame(RST, 0, number, bytes(4))


def window(stream: int, increment: int) -> bytes:
    return frame(WINDOW, 0, stream, struct.pack(">I", increment))


def setting(name: int, value: int) -> bytes:
    return frame(SETTINGS, 0, 0, struct.pack(">HI", name, value))


OPEN_UPLOAD = frame(HEADERS, END_HEADERS, 1, head())
BEGUN_HEAD = frame(HEADERS, 0, 1, head())

ENDLESS: dict[str, Attack] = {
    "rapid resets": resets,
    "pings": repeated(frame(PING, 0, 0, bytes(8))),
    "settings": repeated(frame(SETTINGS, 0, 0)),
    "settings that change the windows": repeated(setting(4, 1) + setting(4, 65_535)),
    "a head without end": repeated(
        frame(CONTINUATION, 0, 1, b"\x00\x01a\x01b" * 100), first=BEGUN_HEAD
    ),
    "empty pieces of a head": repeated(frame(CONTINUATION, 0, 1), first=BEGUN_HEAD),
    "headers for streams that are closed": repeated(
        frame(HEADERS, END_HEADERS | END_STREAM, 1, head()), first=OPEN_UPLOAD
    ),
}
AT_ONCE: dict[str, bytes] = {
    "a window that overflows": window(0, 2**31 - 1) + window(0, 2**31 - 1),
    "a window that does not open": window(0, 0),
    "an initial window beyond the limit": setting(4, 2**31),
    "a frame size below the limit": setting(5, 1),
    "a frame longer than allowed": struct.pack(">I", 20_000)[1:] + bytes([DATA, 0]) + bytes(4),
    "data on no stream": frame(DATA, 0, 0, b"x"),
    "data on a stream never opened": frame(DATA, 0, 7, b"x"),
    "a push promise": frame(PUSH, END_HEADERS, 1, bytes(4) + head()),
    "settings of a wrong size": frame(SETTINGS, 0, 0, b"12345"),
    "a ping of a wrong size": frame(PING, 0, 0, b"1"),
    "an acknowledgement with a body": frame(SETTINGS, ACK, 0, bytes(6)),
    "a head that cannot be decoded": frame(HEADERS, END_HEADERS, 1, b"\xff" * 50),
    "something between the pieces of a head": BEGUN_HEAD + frame(PING, 0, 0, bytes(8)),
    "a stream with an even number": frame(HEADERS, END_HEADERS, 2, head()),
}


def send_until_refused(site: Site, pieces: Iterator[bytes]) -> None:
    """Send without ever reading until the server hangs up."""
    with dial_tls(site) as sock, contextlib.suppress(ConnectionError, ssl.SSLError):
        for piece in pieces:
            sock.sendall(piece)


@both
@pytest.mark.parametrize("name", ENDLESS)
async def test_a_flood_whose_answers_nobody_reads_ends_its_connection(
    kind: Kind, name: str, authority: Authority
) -> None:
    async with open_site(authority, kind, LIMITS) as site:
        assert await is_well(site)
        with no_defects():
            await soon(asyncio.to_thread(send_until_refused, site, ENDLESS[name]()))
            await soon(until(lambda: site.server.connections.open == 1))
            assert site.server.connections.streams == 0
            assert await is_well(site)
        assert site.server.connections.accepted_total == 2


def frames_of(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield type, stream and payload of each whole frame."""
    at = 0
    while at + 9 <= len(data):
        size, kind = int.from_bytes(data[at : at + 3]), data[at + 3]
        stream = int.from_bytes(data[at + 5 : at + 9])
        yield kind, stream, data[at + 9 : at + 9 + size]
        at += 9 + size


@both
@pytest.mark.parametrize("name", AT_ONCE)
async def test_frames_that_break_the_rules_end_their_connection_with_a_goaway(
    kind: Kind, name: str, authority: Authority
) -> None:
    async with open_site(authority, kind, LIMITS) as site:
        assert await is_well(site)
        with no_defects():
            answer = await talk(site, OPENING + AT_ONCE[name])
            codes = [
                int.from_bytes(payload[4:8])
                for type_, _, payload in frames_of(answer)
                if type_ == GOAWAY
            ]
            assert codes, "no word of why"
            assert codes[-1] != 0
            assert await is_well(site)
        assert site.app.asked == ["/echo"] * 2


@both
async def test_a_small_head_that_stands_for_a_huge_one_does_not_reach_the_application(
    kind: Kind, authority: Authority
) -> None:
    """A field of 4 kB in the table, then one byte for each time it is repeated."""
    encoder = hpack.Encoder()
    first = encoder.encode([*PSEUDO, ("x-large", "a" * 3_900)])
    bomb = first + b"\xbe" * 10_000  # index 62, the newest entry of the table: 39 MB
    async with open_site(authority, kind, LIMITS) as site:
        with no_defects():
            await talk(site, OPENING + frame(HEADERS, END_HEADERS | END_STREAM, 1, bomb))
        assert site.app.asked == []
        assert await is_well(site)


@both
async def test_a_window_that_opens_byte_by_byte_is_served_and_bounded(
    kind: Kind, authority: Authority
) -> None:
    """A client whose windows are shut in turn, then opened a little, gets its answer whole."""
    async with open_site(authority, kind, LIMITS) as site:
        asked = [*PSEUDO[1:3], (":method", "GET"), (":path", "/big?2000")]
        request = frame(HEADERS, END_HEADERS | END_STREAM, 1, hpack.Encoder().encode(asked))
        games = b"".join(setting(4, size) for size in (0, 1, 0, 3))
        opened = b"".join(window(1, 1) for _ in range(1_000)) + window(1, 1_000)
        goodbye = frame(GOAWAY, 0, 0, bytes(8))
        answer = await talk(site, OPENING + games + request + opened + goodbye)
        body = b"".join(
            payload for type_, stream, payload in frames_of(answer) if (type_, stream) == (DATA, 1)
        )
        assert body == pattern(2_000)
        assert await is_well(site)


@both
async def test_a_window_shut_under_a_running_answer_gets_it_cut(
    kind: Kind, authority: Authority
) -> None:
    async with open_site(authority, kind, LIMITS) as site:
        asked = [*PSEUDO[1:3], (":method", "GET"), (":path", "/flood")]
        request = frame(HEADERS, END_HEADERS | END_STREAM, 1, hpack.Encoder().encode(asked))
        with await soon(asyncio.to_thread(dial_tls, site)) as sock:
            await asyncio.to_thread(sock.sendall, OPENING + request + setting(4, 0))
            await soon(site.app.closed.get())
        assert site.app.most_queued <= site.server.limits.stream_high_bytes + 16_384
        assert site.server.connections.cut_streams == {Cut.SLOW_READER: 1}
        assert await is_well(site)


@both
async def test_heads_that_never_end_are_cut_and_hold_no_room(
    kind: Kind, authority: Authority
) -> None:
    hasty = Limits(header_s=0.3, sweep_s=0.02, linger_s=0.2)
    async with open_site(authority, kind, hasty) as site:
        socks = [await soon(asyncio.to_thread(dial_tls, site)) for _ in range(10)]
        for sock in socks:
            sock.sendall(OPENING + BEGUN_HEAD)
        await soon(until(lambda: site.server.connections.open == 0))
        assert site.server.connections.cut_connections == {Cut.LATE_REQUEST: 10}
        for sock in socks:
            sock.close()
        assert await is_well(site)


@both
async def test_a_body_in_very_small_pieces_takes_no_more_than_it_counts_for(
    kind: Kind, authority: Authority
) -> None:
    pieces = 20_000
    async with open_site(authority, kind, Limits()) as site:
        sock = await soon(asyncio.to_thread(dial_tls, site))
        data = OPENING + OPEN_UPLOAD + frame(DATA, 0, 1, b"ab") * pieces
        await asyncio.to_thread(sock.sendall, data)
        await soon(until(lambda: site.server.connections.pending_body_bytes == 2 * pieces))
        (connection,) = site.server._connections
        assert connection._incoming is not None
        (incoming,) = connection._incoming.values()
        assert sys.getsizeof(incoming.body) < 3 * pieces
        sock.close()
        await soon(until(lambda: site.server.connections.pending_body_bytes == 0))
