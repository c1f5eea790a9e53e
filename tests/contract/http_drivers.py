"""Clients for the HTTP contract: ours, urllib3, python-hyper's h2 on a plain socket, and curl."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import urllib3

from hub.http.client import Client
from tests.contract.http_suite import Answer

TIMEOUT_S = 15


class OwnDriver:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def ask(
        self,
        method: str,
        target: str,
        *,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
    ) -> Answer:
        answer = await self._client.request(method, target, headers, body=body)
        return answer.status, answer.headers, answer.body

    async def ask_all(self, targets: Sequence[str]) -> list[Answer]:
        return await asyncio.gather(*[self.ask("GET", target) for target in targets])

    async def close(self) -> None:
        await self._client.close()


class Urllib3Driver:
    """What the Python `kubernetes` client stands on."""

    def __init__(self, port: int, tls: ssl.SSLContext) -> None:
        self._port = port
        self._pool = urllib3.HTTPSConnectionPool(
            "127.0.0.1",
            port,
            ssl_context=tls,
            maxsize=8,
            block=True,
            retries=False,
            timeout=TIMEOUT_S,
        )

    async def ask(
        self,
        method: str,
        target: str,
        *,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
    ) -> Answer:
        return await asyncio.to_thread(self._ask, method, target, dict(headers), body)

    async def ask_all(self, targets: Sequence[str]) -> list[Answer]:
        return await asyncio.gather(*[self.ask("GET", target) for target in targets])

    async def close(self) -> None:
        self._pool.close()

    def _ask(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        answer = self._pool.request(method, target, headers=headers, body=body or None)
        fields = {name.lower(): value for name, value in answer.headers.items()}
        return answer.status, fields, answer.data


class HyperDriver:
    """An HTTP/2 client that shares no code with the transport; blocking, one connection."""

    def __init__(self, port: int, tls: ssl.SSLContext) -> None:
        self._port = port
        self._tls = tls
        self._sock: ssl.SSLSocket | None = None
        self._session = h2.connection.H2Connection(
            h2.config.H2Configuration(header_encoding="utf-8")
        )
        self._lock = asyncio.Lock()
        self._unsent: dict[int, memoryview] = {}
        self._answers: dict[int, tuple[dict[str, str], list[bytes]]] = {}
        self._done: set[int] = set()
        self.is_told_to_leave = False

    async def ask(
        self,
        method: str,
        target: str,
        *,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
    ) -> Answer:
        async with self._lock:
            return await asyncio.to_thread(self._ask, method, target, headers, body)

    async def ask_all(self, targets: Sequence[str]) -> list[Answer]:
        async with self._lock:
            return await asyncio.to_thread(self._ask_all, targets)

    async def close(self) -> None:
        if self._sock is not None:
            self._sock.close()

    async def read_to_the_end(self) -> None:
        """Read until the server closes the connection."""
        await asyncio.to_thread(self._read_to_the_end)

    def _read_to_the_end(self) -> None:
        while data := self._connect().recv(65_536):
            for event in self._session.receive_data(data):
                self._take(event)

    def _ask(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes
    ) -> Answer:
        stream_id = self._send(method, target, headers, body)
        self._run({stream_id})
        return self._answer(stream_id)

    def _ask_all(self, targets: Sequence[str]) -> list[Answer]:
        streams = [self._send("GET", target, (), b"") for target in targets]
        self._run(set(streams))
        return [self._answer(stream_id) for stream_id in streams]

    def _answer(self, stream_id: int) -> Answer:
        fields, chunks = self._answers.pop(stream_id)
        return int(fields.pop(":status")), fields, b"".join(chunks)

    def _connect(self) -> ssl.SSLSocket:
        if self._sock is None:
            plain = socket.create_connection(("127.0.0.1", self._port), timeout=TIMEOUT_S)
            self._sock = self._tls.wrap_socket(plain, server_hostname="127.0.0.1")
            assert self._sock.selected_alpn_protocol() == "h2"
            self._session.initiate_connection()
        return self._sock

    def _send(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes
    ) -> int:
        self._connect()
        stream_id = self._session.get_next_available_stream_id()
        pseudo = [
            (":method", method),
            (":scheme", "https"),
            (":authority", "hub"),
            (":path", target),
        ]
        self._session.send_headers(stream_id, [*pseudo, *headers], end_stream=not body)
        self._answers[stream_id] = ({}, [])
        if body:
            self._unsent[stream_id] = memoryview(body)
        return stream_id

    def _run(self, streams: set[int]) -> None:
        """Read and write until every one of `streams` is answered."""
        sock = self._connect()
        while not streams <= self._done:
            self._upload()
            sock.sendall(self._session.data_to_send())
            if streams <= self._done:
                return
            data = sock.recv(65_536)
            assert data, "the server has closed the connection"
            for event in self._session.receive_data(data):
                self._take(event)
        sock.sendall(self._session.data_to_send())

    def _upload(self) -> None:
        for stream_id, whole in list(self._unsent.items()):
            body = whole
            while body and stream_id in self._unsent:
                room = self._session.local_flow_control_window(stream_id)
                size = min(room, self._session.max_outbound_frame_size, len(body))
                if not size:
                    break
                self._session.send_data(stream_id, bytes(body[:size]), end_stream=size == len(body))
                body = body[size:]
            self._unsent[stream_id] = body
            if not body:
                del self._unsent[stream_id]

    def _take(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.ResponseReceived):
            self._answers[event.stream_id][0].update(
                (str(name), str(value)) for name, value in event.headers
            )
        elif isinstance(event, h2.events.DataReceived):
            self._answers[event.stream_id][1].append(event.data)
            self._session.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            self._done.add(event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            self._unsent.pop(event.stream_id, None)
            self._done.add(event.stream_id)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.is_told_to_leave = True


async def run_curl(
    *arguments: str, ca_path: Path, is_http2: bool, timeout_s: int = 10
) -> tuple[int, bytes]:
    """Run curl and return its exit code and output."""
    process = await asyncio.create_subprocess_exec(
        "curl",
        "--silent",
        "--show-error",
        "--max-time",
        str(timeout_s),
        "--cacert",
        str(ca_path),
        "--http2" if is_http2 else "--http1.1",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output
