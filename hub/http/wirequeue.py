"""Bytes waiting for the wire.

A queue that shares the bytes put into it (one event goes to thousands of watchers without a copy)
and is small when empty.

    >>> queue = WireQueue()
    >>> queue.put(b"hello "); queue.put(b"world")
    >>> queue.take(8), len(queue), queue.take(8)
    (b'hello wo', 3, b'rld')
"""

from collections.abc import Iterator

_COMPACT_AT = 64


class WireQueue:
    """A first-in first-out queue of bytes with a size."""

    __slots__ = ("_at", "_offset", "_parts", "_size")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._at = 0
        self._offset = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, data: bytes) -> None:
        """Append `data`; it is kept as it is."""
        if data:
            self._parts.append(data)
            self._size += len(data)

    def take(self, max_bytes: int) -> bytes:
        """Remove and return at most `max_bytes` from the front."""
        if not self._size or max_bytes <= 0:
            return b""
        taken = b"".join(self._pieces(max_bytes))
        self._size -= len(taken)
        if not self._size:
            self.clear()
        elif self._at >= _COMPACT_AT:
            del self._parts[: self._at]
            self._at = 0
        return taken

    def _pieces(self, max_bytes: int) -> Iterator[bytes | memoryview]:
        """Walk the front of the queue, moving `_at` and `_offset` past what is yielded."""
        while max_bytes > 0 and self._at < len(self._parts):
            part = self._parts[self._at]
            left = len(part) - self._offset
            if left > max_bytes:
                yield memoryview(part)[self._offset : self._offset + max_bytes]
                self._offset += max_bytes
                return
            yield memoryview(part)[self._offset :] if self._offset else part
            max_bytes -= left
            self._parts[self._at] = b""
            self._at += 1
            self._offset = 0

    def clear(self) -> None:
        """Drop everything."""
        self._parts.clear()
        self._at = self._offset = self._size = 0
