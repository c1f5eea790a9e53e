"""Seals: the keys of a segment, and its body in authenticated frames.

Owns the key schedule and the framing (docs/snapshot-format.md, "Keys" and "Frames").

Every segment has a data key of its own, 32 random bytes, wrapped under the hub key in its header;
the frame key and the MAC key are derived from it. As no two segments share a frame key, the nonce
can be the frame's place: index and last-flag. A frame moved, dropped, repeated or taken from
another segment does not open, and neither does a body whose last frame is missing.
"""

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from snapshot.errors import SegmentCorrupt

KEY_BYTES = 32
NONCE_BYTES = 12
FRAME_BYTES = 1 << 20
"""Plain bytes of every frame but the last."""

_TAG_BYTES = 16
_WRAP_AAD = b"hublet segment key 1"
_LENGTH = struct.Struct(">I")
_LAST = 1 << 31
_NONCE = struct.Struct(">QI")


class HubKey(Protocol):
    """What is needed of the hub key (`hub.store.HubKey`)."""

    @property
    def secret(self) -> bytes:
        """The 32 bytes."""
        ...

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that name the key."""
        ...


@dataclass(frozen=True, slots=True)
class SegmentKeys:
    """The two keys of one segment."""

    frame: bytes = field(repr=False)
    mac: bytes = field(repr=False)


def derive_segment_keys(data_key: bytes) -> SegmentKeys:
    """Derive the keys of a segment from its data key."""
    return SegmentKeys(_derive(data_key, b"hublet/seg/frame"), _derive(data_key, b"hublet/seg/mac"))


def wrap(data_key: bytes, hub_key: HubKey, *, token: Callable[[int], bytes]) -> bytes:
    """Return 60 bytes: nonce, encrypted data key, tag. `token` draws random bytes."""
    nonce = token(NONCE_BYTES)
    return nonce + AESGCM(_wrapping_key(hub_key)).encrypt(nonce, data_key, _WRAP_AAD)


def unwrap(wrapped: bytes, hub_key: HubKey, *, name: str) -> bytes:
    """Return the data key; `SegmentCorrupt` if it does not open (a wrong key is told before)."""
    nonce, sealed = wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:]
    try:
        return AESGCM(_wrapping_key(hub_key)).decrypt(nonce, sealed, _WRAP_AAD)
    except InvalidTag as error:
        raise SegmentCorrupt("the header's key does not open", op="read", object=name) from error


def head_mac(data: bytes, hub_key: HubKey) -> str:
    """Return the seal of HEAD: a MAC under a key derived from the hub key, in hex."""
    key = _derive(hub_key.secret, b"hublet/head/mac")
    return hashlib.blake2b(data, digest_size=32, key=key).hexdigest()


class FrameWriter:
    """Encrypts a stream into frames; `close` writes the last one. Holds one frame in memory."""

    def __init__(self, sink: Callable[[bytes], object], frame_key: bytes) -> None:
        self._sink, self._cipher = sink, AESGCM(frame_key)
        self._buffer = bytearray()
        self._index = 0

    def write(self, data: bytes) -> None:
        """Take plain bytes."""
        self._buffer += data
        while len(self._buffer) > FRAME_BYTES:
            self._emit(bytes(self._buffer[:FRAME_BYTES]), is_last=False)
            del self._buffer[:FRAME_BYTES]

    def close(self) -> None:
        """Write the last frame, of 0 to 1 MiB."""
        self._emit(bytes(self._buffer), is_last=True)
        self._buffer.clear()

    def _emit(self, plain: bytes, *, is_last: bool) -> None:
        sealed = self._cipher.encrypt(_NONCE.pack(self._index, is_last), plain, None)
        self._sink(_LENGTH.pack(len(sealed) | (_LAST if is_last else 0)) + sealed)
        self._index += 1


class FrameReader:
    """Decrypts frames as a stream that ends after the last one. Holds one frame in memory.

    `source` reads exactly n bytes or fewer at its end. Raises `SegmentCorrupt`.
    """

    def __init__(self, source: Callable[[int], bytes], frame_key: bytes, *, name: str) -> None:
        self._source, self._cipher, self._name = source, AESGCM(frame_key), name
        self._plain, self._at = b"", 0
        self._index = 0
        self._is_done = False

    def read(self, size: int) -> bytes:
        """Return up to `size` plain bytes, none at the end."""
        while self._at == len(self._plain) and not self._is_done:
            self._next()
        piece = self._plain[self._at : self._at + size]
        self._at += len(piece)
        return piece

    def _next(self) -> None:
        prefix = self._source(_LENGTH.size)
        if len(prefix) < _LENGTH.size:
            raise self._corrupt("is cut short")
        (word,) = _LENGTH.unpack(prefix)
        is_last, length = bool(word & _LAST), word & ~_LAST
        whole = FRAME_BYTES + _TAG_BYTES
        if length > whole or length < _TAG_BYTES or (length < whole and not is_last):
            raise self._corrupt(f"has an impossible length of {length}")
        sealed = self._source(length)
        if len(sealed) < length:
            raise self._corrupt("is cut short")
        try:
            self._plain = self._cipher.decrypt(_NONCE.pack(self._index, is_last), sealed, None)
        except InvalidTag as error:
            raise self._corrupt("does not open") from error
        self._at, self._is_done = 0, is_last
        self._index += 1

    def _corrupt(self, what: str) -> SegmentCorrupt:
        return SegmentCorrupt(
            f"a frame {what}", op="read", object=self._name, position=f"frame {self._index}"
        )


def _wrapping_key(hub_key: HubKey) -> bytes:
    return _derive(hub_key.secret, b"hublet/seg/wrap")


def _derive(key: bytes, purpose: bytes) -> bytes:
    return hashlib.blake2b(digest_size=KEY_BYTES, key=key, person=purpose).digest()
