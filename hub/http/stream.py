"""One request's way back: the `Responder` a handler holds.

A stream costs no task and no queue: it is a few slots, and what is not sent yet lies in the codec.
It may outlive its handler (a watch kept open by a subscription) until `end`, `abort` or the
client's leaving. Close callbacks run in a later turn of the loop, never inside the call that closed
the stream.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeAlias

import structlog

from hub.http.api import Headers
from hub.http.codec import ServerCodec
from hub.http.tally import Cut

Callback: TypeAlias = Callable[[], None]


class StreamOwner(Protocol):
    """What a stream needs of its connection."""

    @property
    def server_codec(self) -> ServerCodec | None:
        """None once the connection is gone."""
        ...

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Where callbacks run."""
        ...

    def wrote(self, stream: "ServerStream") -> None:
        """Bytes of `stream` wait in the codec: flush soon, watch its progress."""
        ...

    def count_cut(self, cause: Cut) -> None:
        """Learn why one of its streams is cut."""
        ...

    def is_over_limit(self, stream: "ServerStream") -> bool:
        """Whether `stream` may take no more at all."""
        ...

    @property
    def watermarks(self) -> tuple[int, int]:
        """Low and high, in bytes."""
        ...


class ServerStream:
    """The answer to one request; see `hub.http.api.Responder`."""

    __slots__ = (
        "_callbacks",
        "_is_closed",
        "_is_cut",
        "_is_head",
        "_is_started",
        "_owner",
        "_waiter",
        "progress_at_s",
        "seen_bytes",
        "stream_id",
    )

    def __init__(self, owner: StreamOwner, stream_id: int, *, is_head: bool) -> None:
        self._owner: StreamOwner | None = owner
        self.stream_id = stream_id
        self.progress_at_s = 0.0  # when the queue last got shorter; owned by the connection
        self.seen_bytes = 0  # how long it was then
        self._is_head = is_head
        self._is_started = False
        self._is_closed = False
        self._is_cut = False
        self._callbacks: Callback | list[Callback] | None = None
        self._waiter: asyncio.Future[None] | None = None

    # -- Responder

    @property
    def is_closed(self) -> bool:
        """Whether the answer is finished or the client is gone."""
        return self._is_closed

    @property
    def is_started(self) -> bool:
        """Whether a head was sent."""
        return self._is_started

    @property
    def queued_bytes(self) -> int:
        """Bytes the socket has not taken yet."""
        codec = self._owner.server_codec if self._owner is not None else None
        return codec.queued_bytes(self.stream_id) if codec is not None else 0

    def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Answer at once."""
        codec = self._codec_to_start()
        if codec is None or self._owner is None:
            return
        is_bare = self._is_head or not body
        codec.send_head(self.stream_id, status, headers, length=len(body), is_last=is_bare)
        self._is_started = True
        if not is_bare:
            codec.send_data(self.stream_id, body, is_last=True)
        self._owner.wrote(self)
        self.close()

    def start(self, status: int, headers: Headers) -> None:
        """Send the head of a stream now."""
        codec = self._codec_to_start()
        if codec is None or self._owner is None:
            return
        codec.send_head(self.stream_id, status, headers, length=None, is_last=self._is_head)
        self._is_started = True
        self._owner.wrote(self)

    def write(self, data: bytes) -> bool:
        """Queue `data`; False above the high-water mark."""
        owner = self._owner
        codec = owner.server_codec if owner is not None else None
        if self._is_closed or owner is None or codec is None:
            return True
        if not self._is_started:
            raise RuntimeError("write before start: send the head of the stream first")
        if self._is_head or not data:
            return True
        if owner.is_over_limit(self):
            self.abort(Cut.SLOW_READER)
            return False
        codec.send_data(self.stream_id, data, is_last=False)
        owner.wrote(self)
        return codec.queued_bytes(self.stream_id) <= owner.watermarks[1]

    async def drain(self) -> None:
        """Wait for the low-water mark or the end."""
        owner = self._owner
        while not self._is_closed and owner is not None:
            if self.queued_bytes <= owner.watermarks[0]:
                return
            if self._waiter is None or self._waiter.done():
                self._waiter = owner.loop.create_future()
            await asyncio.shield(self._waiter)

    def end(self) -> None:
        """Finish cleanly."""
        owner = self._owner
        codec = owner.server_codec if owner is not None else None
        if self._is_closed or owner is None or codec is None:
            return
        if not self._is_started:
            raise RuntimeError("end before start: send the head of the stream first")
        if not self._is_head:
            codec.send_data(self.stream_id, b"", is_last=True)
        owner.wrote(self)
        self.close()

    def abort(self, cause: Cut = Cut.FAILED) -> None:
        """Cut the stream, also one that was ended and is not flushed."""
        owner = self._owner
        codec = owner.server_codec if owner is not None else None
        if owner is not None and codec is not None:
            if not self._is_cut:
                self._is_cut = True
                owner.count_cut(cause)
            codec.reset(self.stream_id)
            owner.wrote(self)
        self.close()

    def on_close(self, callback: Callback) -> None:
        """Call `callback` once at the end, soon when it is over already."""
        if self._is_closed:
            if self._owner is not None:
                self._owner.loop.call_soon(_run, callback)
            else:
                callback()
        elif self._callbacks is None:
            self._callbacks = callback
        elif isinstance(self._callbacks, list):
            self._callbacks.append(callback)
        else:
            self._callbacks = [self._callbacks, callback]

    # -- the connection's side

    def close(self) -> None:
        """End the answer for its handler; what is queued still goes out."""
        if self._is_closed:
            return
        self._is_closed = True
        callbacks, self._callbacks = self._callbacks, None
        if callbacks is not None and self._owner is not None:
            for callback in callbacks if isinstance(callbacks, list) else (callbacks,):
                self._owner.loop.call_soon(_run, callback)
        self._wake()

    def detach(self) -> None:
        """Learn that the stream is gone from the wire."""
        self.close()
        self._owner = None

    def flushed(self, queued_bytes: int, now_s: float) -> None:
        """Note that the queue has `queued_bytes` left."""
        if queued_bytes < self.seen_bytes:
            self.progress_at_s = now_s
        self.seen_bytes = queued_bytes
        owner = self._owner
        if self._waiter is not None and owner is not None and queued_bytes <= owner.watermarks[0]:
            self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _codec_to_start(self) -> ServerCodec | None:
        """Return the codec for a head, None when nobody is there to read it."""
        if self._is_closed or self._owner is None:
            return None
        if self._is_started:
            raise RuntimeError("the stream has started: its head cannot be sent again")
        return self._owner.server_codec


def _run(callback: Callback) -> None:
    """Run a close callback; the top level of whatever it does."""
    try:
        callback()
    except Exception:  # noqa: BLE001  the top level of a callback; logged with traceback
        structlog.get_logger(__name__).exception("close_callback_failed")
