"""etcd's Put and Range over gRPC, on our own HTTP/2 codec: no dependency, and no cost for the peer.

Speaks cleartext HTTP/2 from the first byte, as etcd's own tools do without certificates: etcd pays
for no TLS here, the hub's figures include it. A call is one stream, a message is 5 bytes of frame
and a protobuf of two fields. An error of etcd is an answer without a message, or a status other
than 200; either raises.
"""

import asyncio
from typing import Self, cast

from hub.http.codec import ClientCodec, DataReceived, ResponseReceived, StreamEnded
from hub.http.codecs.choice import choose_library, http2_client
from hub.http.limits import KIB, MIB
from hub.meta.protobuf.wire import bytes_field, fields

_PUT, _RANGE = "/etcdserverpb.KV/Put", "/etcdserverpb.KV/Range"
_FLUSH_BYTES = 64 * KIB
_FRAME = 5


class EtcdError(Exception):
    """etcd refused a call, or the connection was lost."""


class EtcdClient(asyncio.Protocol):
    """One connection to one etcd; calls share it."""

    def __init__(self, authority: str) -> None:
        self._codec: ClientCodec = http2_client(
            choose_library("auto"), stream_window_bytes=8 * MIB, connection_window_bytes=16 * MIB
        )
        self._fields = [
            ("host", authority),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ]
        self._transport: asyncio.Transport | None = None
        self._calls: dict[int, _Call] = {}

    @classmethod
    async def connect(cls, host: str, port: int) -> Self:
        """Return a client that is connected. Raises OSError."""
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(lambda: cls(f"{host}:{port}"), host, port)
        return client

    async def put(self, key: bytes, value: bytes) -> None:
        """Write a key; returns when etcd says that it is durable."""
        await self._call(_PUT, bytes_field(1, key) + bytes_field(2, value))

    async def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, None when there is none."""
        answer = await self._call(_RANGE, bytes_field(1, key))
        for found in fields(answer, 0, len(answer)):
            if found.number == 2:  # kvs, a KeyValue
                for part in fields(answer, found.start, found.end):
                    if part.number == 5:
                        return answer[part.start : part.end]
        return None

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    async def _call(self, target: str, message: bytes) -> bytes:
        codec = self._codec
        stream = codec.request("POST", target, self._fields, length=None, is_last=False)
        codec.send_data(stream, b"\0" + len(message).to_bytes(4) + message, is_last=True)
        call = self._calls[stream] = _Call()
        self._flush()
        body = await call.done
        if len(body) < _FRAME:
            raise EtcdError(f"{target}: {call.trouble or 'an answer without a message'}")
        return body[_FRAME : _FRAME + int.from_bytes(body[1:_FRAME])]

    def _flush(self) -> None:
        while self._transport is not None and (data := self._codec.flush(_FLUSH_BYTES)):
            self._transport.write(data)

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the preface."""
        self._transport = cast("asyncio.Transport", transport)
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Take what etcd sent."""
        for event in self._codec.feed(data):
            call = self._calls.get(getattr(event, "stream_id", 0))
            if call is None:
                continue
            if isinstance(event, DataReceived):
                call.body += event.data
                self._codec.consumed(event.stream_id, len(event.data))
            elif isinstance(event, ResponseReceived):
                call.trouble = event.headers.get("grpc-message", "")
            elif isinstance(event, StreamEnded):
                del self._calls[event.stream_id]
                call.end(event.error)
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail what is under way."""
        self._transport = None
        for call in self._calls.values():
            call.end(f"connection lost: {exc or 'closed'}")


class _Call:
    """A call under way."""

    __slots__ = ("body", "done", "trouble")

    def __init__(self) -> None:
        self.body = bytearray()
        self.trouble = ""
        self.done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def end(self, error: str) -> None:
        if self.done.done():
            return
        if error:
            self.done.set_exception(EtcdError(error))
        else:
            self.done.set_result(bytes(self.body))
