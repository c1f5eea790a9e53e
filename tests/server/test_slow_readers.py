"""Clients that ask for a large list and do not read: bounded, cut and counted."""

import asyncio
import contextlib
import re
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest
import pytest_asyncio

from hub.http.limits import Limits
from tests.hubs import Api, InProcess, running_hub
from tests.server.support import admin_context, config_maps, dial, noise

pytestmark = pytest.mark.asyncio(loop_scope="module")
MAPS = config_maps("default")
OBJECTS, OBJECT_BYTES, READERS = 200, 200_000, 40
ALL_BYTES = OBJECTS * OBJECT_BYTES
PATIENCE = Limits(stall_s=1.0, sweep_s=0.1)
ROOM_BYTES = 96 << 20
"""What all readers together may take; one list alone is 40 MB, 20 MB as stored."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A client that has asked for everything and reads nothing."""

    sock: ssl.SSLSocket
    session: h2.connection.H2Connection | None = None

    def read_to_the_end(self) -> int:
        """Return how many bytes there are to be read before the stream, or all, is cut."""
        size = 0
        with contextlib.suppress(ConnectionError, ssl.SSLError), self.sock:
            while piece := self.sock.recv(65_536):
                size += len(piece)
                if self.session is not None and self._is_reset(piece):
                    break
        return size

    def _is_reset(self, piece: bytes) -> bool:
        assert self.session is not None
        events = self.session.receive_data(piece)
        assert not any(isinstance(event, h2.events.StreamEnded) for event in events)
        return any(isinstance(event, h2.events.StreamReset) for event in events)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[InProcess]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("hub.http.transport.Limits", lambda: PATIENCE)
        async with running_hub(tmp_path_factory.mktemp("hub") / "data") as found:
            bodies = (
                {"metadata": {"name": f"n-{n}"}, "data": {"x": noise(str(n), OBJECT_BYTES)}}
                for n in range(OBJECTS)
            )
            await asyncio.gather(*(found.admin.create(MAPS, body) for body in bodies))
            yield found


def ask_http1(hub: InProcess, target: str) -> Reader:
    sock = dial(hub)
    sock.sendall(f"GET {target} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
    return Reader(sock)


def ask_http2(hub: InProcess, target: str) -> Reader:
    """Ask in one stream whose window is never opened again."""
    session = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    session.initiate_connection()
    head = [(":method", "GET"), (":scheme", "https"), (":authority", "x"), (":path", target)]
    session.send_headers(1, head, end_stream=True)
    sock = dial(hub, admin_context(hub, http2=True))
    sock.sendall(session.data_to_send())
    return Reader(sock, session)


def memory_bytes() -> int:
    """Return what is resident of this process, in which the hub runs."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


async def cuts(api: Api) -> int:
    """Return how many streams and connections were cut as slow readers."""
    page = (await api.call("GET", "/metrics")).body.decode()
    found = re.findall(r'^hublet_cut_\w+{reason="slow_reader"} (\S+)$', page, re.MULTILINE)
    assert len(found) == 2
    return sum(int(float(count)) for count in found)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("ask", [ask_http1, ask_http2])
@pytest.mark.parametrize("query", ["", "?watch=1", "?limit=500", "?labelSelector=!x"])
async def test_a_client_that_does_not_read_a_large_list_takes_little_memory_and_is_cut(
    hub: InProcess, ask: Callable[[InProcess, str], Reader], query: str
) -> None:
    await hub.admin.get(f"{MAPS}?limit=1")
    before, memory = await cuts(hub.admin), memory_bytes()
    readers = await asyncio.gather(
        *(asyncio.to_thread(ask, hub, MAPS + query) for _ in range(READERS))
    )
    peak = memory
    while await cuts(hub.admin) < before + READERS:
        assert (await hub.admin.call("GET", f"{MAPS}/n-0")).status == 200
        peak = max(peak, memory_bytes())
    print(query, (peak - memory) >> 20)
    assert peak - memory < ROOM_BYTES
    for reader in readers:
        assert await asyncio.to_thread(reader.read_to_the_end) < ALL_BYTES / 4
