"""GOAWAY, and frames too long to be legal, kept away from python-hyper's h2.

h2 treats a received GOAWAY as the end of the connection and refuses every later frame, where RFC
9113 (6.8) lets open streams go on. So GOAWAY frames are taken out of the byte stream before h2 sees
it, and written here rather than by h2. And h2 collects a frame of any length (16 MB) before it
looks at the length: here it ends with the frame's head.

    >>> splitter = GoawaySplitter(preface_bytes=0)
    >>> splitter.split(goaway_frame(7))
    (b'', [7])
"""

import struct

PREFACE_BYTES = 24
_HEAD = struct.Struct(">HBBBI")  # length (16 + 8 bits), type, flags, stream
_GOAWAY = 7
MAX_FRAME_BYTES = 16_384  # SETTINGS_MAX_FRAME_SIZE as we leave it
_STREAM_MASK = 0x7FFF_FFFF


def goaway_frame(last_stream_id: int, error_code: int = 0) -> bytes:
    """Return the frame that closes a connection to streams above `last_stream_id`."""
    return _HEAD.pack(0, 8, _GOAWAY, 0, 0) + struct.pack(">II", last_stream_id, error_code)


class GoawaySplitter:
    """Cuts GOAWAY frames out of a stream of frames that arrives in arbitrary pieces."""

    __slots__ = ("_goaway", "_head", "_is_goaway", "_left", "is_overlong")

    def __init__(self, *, preface_bytes: int) -> None:
        self._left = preface_bytes  # of the frame (or preface) being passed through or kept
        self._is_goaway = False
        self._head = b""  # an incomplete frame head
        self._goaway = b""  # the payload of an incomplete GOAWAY
        self.is_overlong = False
        """Whether a frame over `MAX_FRAME_BYTES` has begun; nothing behind it is passed on."""

    def split(self, data: bytes) -> tuple[bytes, list[int]]:
        """Return `data` without its GOAWAY frames, and the last stream each of those named.

        An incomplete frame head is held back until its rest arrives.
        """
        passed: list[bytes] = []
        named: list[int] = []
        data, at = self._head + data, 0
        self._head = b""
        while at < len(data) and not self.is_overlong:
            if self._left:
                piece = data[at : at + self._left]
                at += len(piece)
                self._left -= len(piece)
                if not self._is_goaway:
                    passed.append(piece)
                elif self._keep(piece):
                    named.append(struct.unpack(">I", self._goaway[:4])[0] & _STREAM_MASK)
            elif len(data) - at < _HEAD.size:
                self._head = data[at:]
                break
            else:
                head = data[at : at + _HEAD.size]
                at += _HEAD.size
                self._begin(head)
                if not self._is_goaway and not self.is_overlong:
                    passed.append(head)
        return b"".join(passed), named

    def _begin(self, head: bytes) -> None:
        high, low, kind, _, _ = _HEAD.unpack(head)
        self._left = high << 8 | low
        self.is_overlong = self._left > MAX_FRAME_BYTES
        self._is_goaway = kind == _GOAWAY and self._left >= 8  # a shorter one is for h2 to refuse
        self._goaway = b""

    def _keep(self, piece: bytes) -> bool:
        """Collect the payload; True when it is complete."""
        self._goaway += piece
        return not self._left
