"""Values: how a JSON document becomes the bytes that lie in the file and travel in snapshots.

Layout of a value (`raw`), big endian:

    u64 revision | u8 flags | u16 dictionary | u32 length of the index | index
    [u16 length of the key | key]            when the key is longer than LMDB takes (`LONG_KEY`)
    payload                                  the rest

The payload is the JSON document, compressed with zstd (`ZSTD`: level 3, content checksum, no
dictionary id in the frame) and then, when `SEALED`, encrypted: u8 number of the data key, 12 bytes
random nonce, AES-256-GCM ciphertext and tag. The associated data is the key followed by everything
before the payload, so that a value moved to another key, revision or index does not open.

Encoders hold zstd and AES objects that are not thread-safe: one `ValueCodec` a thread, from
`Codecs`.
"""

import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass

import zstandard
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hub.store import dictionary
from hub.store.api import Index, Key, Revision, Stored
from hub.store.dictionary import Dictionaries
from hub.store.errors import Corrupt
from hub.store.hubkey import NONCE_BYTES, DataKeys
from hub.store.key import STORED_KEY_BYTES, is_long

ZSTD = 1
SEALED = 2
LONG_KEY = 4

DOCUMENT_BYTES = 256 << 20
"""A frame that claims to be larger is damaged; no memory is taken for it."""

_KNOWN = ZSTD | SEALED | LONG_KEY
_HEADER = struct.Struct(">QBHI")
_REVISION = struct.Struct(">Q")
_KEY_LENGTH = struct.Struct(">H")
_SEAL_BYTES = 1 + NONCE_BYTES


@dataclass(frozen=True, slots=True)
class Header:
    """A value's header; `payload_at` is where the payload begins."""

    revision: Revision
    flags: int
    dictionary: int
    index: Index
    long_key: Key | None
    payload_at: int


def revision_of(raw: bytes) -> Revision:
    """Return the revision of a value; the cheapest look at it."""
    revision: int = _REVISION.unpack_from(raw)[0]
    return Revision(revision)


def header_of(raw: bytes) -> Header:
    """Return the whole header, or raise Corrupt."""
    try:
        revision, flags, number, index_bytes = _HEADER.unpack_from(raw)
        at = _HEADER.size + index_bytes
        index, long_key = Index(raw[_HEADER.size : at]), None
        if flags & LONG_KEY:
            (key_bytes,) = _KEY_LENGTH.unpack_from(raw, at)
            at += _KEY_LENGTH.size + key_bytes
            long_key = Key(raw[at - key_bytes : at])
    except struct.error as error:
        raise Corrupt(f"a value of {len(raw)} bytes is cut short in its header") from error
    if at > len(raw) or flags & ~_KNOWN:
        raise Corrupt(f"the header of a value at revision {revision} is damaged, flags {flags:#x}")
    return Header(Revision(revision), flags, number, index, long_key, at)


def stored(key_in_file: bytes, raw: bytes) -> Stored:
    """Return an entry as read from the file; a long key is taken from the header."""
    try:
        revision, flags, _, index_bytes = _HEADER.unpack_from(raw)
    except struct.error as error:
        raise Corrupt(f"the value at {key_in_file!r} is cut short in its header") from error
    index = Index(raw[_HEADER.size : _HEADER.size + index_bytes])
    key = full_key(key_in_file, raw) if flags & LONG_KEY else Key(key_in_file)
    return Stored(key, Revision(revision), index, raw)


def full_key(key_in_file: bytes, raw: bytes) -> Key:
    """Return the key behind a stored key."""
    if not is_long(key_in_file):
        return Key(key_in_file)
    long_key = header_of(raw).long_key
    if long_key is None:
        raise Corrupt(f"the value at {key_in_file!r} lacks its long key")
    return long_key


def is_sealed(raw: bytes) -> bool:
    """Whether a value is encrypted."""
    return bool(raw[8] & SEALED)


def data_key_of(raw: bytes) -> int:
    """Return the number of the data key that a value is sealed under, 0 when it is not sealed."""
    return raw[header_of(raw).payload_at] if is_sealed(raw) else 0


class ValueCodec:
    """Encodes and decodes values; belongs to one thread."""

    __slots__ = ("_ciphers", "_compress", "_decompress", "_dictionary", "_seal_with", "_token")

    def __init__(
        self, dictionaries: Dictionaries, keys: DataKeys, *, token: Callable[[int], bytes]
    ) -> None:
        digested = dictionaries.digested
        self._dictionary = dictionaries.current
        self._compress = zstandard.ZstdCompressor(
            level=dictionary.LEVEL,
            dict_data=digested.get(self._dictionary),
            write_checksum=True,
            write_content_size=True,
            write_dict_id=False,
        ).compress
        self._decompress = {
            number: zstandard.ZstdDecompressor(dict_data=each).decompress
            for number, each in digested.items()
        }
        self._decompress[dictionary.NONE] = zstandard.ZstdDecompressor().decompress
        self._ciphers = {number: AESGCM(key) for number, key in keys.keys.items()}
        self._seal_with = keys.current
        self._token = token

    def encode(
        self, key: Key, revision: Revision, *, index: Index, document: bytes, sealed: bool
    ) -> bytes:
        """Return the value of a document."""
        flags = ZSTD | (SEALED if sealed else 0)
        suffix = b""
        if len(key) > STORED_KEY_BYTES:
            flags |= LONG_KEY
            suffix = _KEY_LENGTH.pack(len(key)) + key
        head = _HEADER.pack(revision, flags, self._dictionary, len(index)) + index + suffix
        payload = self._compress(document)
        return head + (self._seal(payload, key + head) if sealed else payload)

    def decode(self, key: Key, raw: bytes) -> bytes:
        """Return the JSON document of a value, or raise Corrupt."""
        header = header_of(raw)
        payload = raw[header.payload_at :]
        if header.flags & SEALED:
            payload = self._open(payload, key + raw[: header.payload_at], key)
        if not header.flags & ZSTD:
            return payload
        decompress = self._decompress.get(header.dictionary)
        if decompress is None:
            raise Corrupt(
                f"the value at {key!r} needs dictionary {header.dictionary}, not held here"
            )
        try:
            if zstandard.frame_content_size(payload) > DOCUMENT_BYTES:
                raise Corrupt(f"the value at {key!r} is damaged: it claims an absurd size")
            return decompress(payload)
        except zstandard.ZstdError as error:
            raise Corrupt(f"the value at {key!r} is damaged: {error}") from error

    def _seal(self, payload: bytes, associated: bytes) -> bytes:
        nonce = self._token(NONCE_BYTES)
        cipher = self._ciphers[self._seal_with]
        return bytes([self._seal_with]) + nonce + cipher.encrypt(nonce, payload, associated)

    def _open(self, payload: bytes, associated: bytes, key: Key) -> bytes:
        cipher = self._ciphers.get(payload[0]) if len(payload) > _SEAL_BYTES else None
        if cipher is None:
            raise Corrupt(f"the sealed value at {key!r} is cut short or under an unknown data key")
        nonce, sealed = payload[1:_SEAL_BYTES], payload[_SEAL_BYTES:]
        try:
            return cipher.decrypt(nonce, sealed, associated)
        except InvalidTag as error:
            raise Corrupt(f"the sealed value at {key!r} does not open: it was altered") from error


class Codecs:
    """Gives each thread its own `ValueCodec`."""

    __slots__ = ("_dictionaries", "_local", "keys", "token")

    def __init__(
        self, dictionaries: Dictionaries, keys: DataKeys, *, token: Callable[[int], bytes]
    ) -> None:
        self._dictionaries, self.keys, self.token = dictionaries, keys, token
        self._local = threading.local()

    def use(self, keys: DataKeys) -> None:
        """Seal under another ring from now on; one that opens all that the present one does."""
        self.keys = keys
        self._local = threading.local()

    def here(self) -> ValueCodec:
        """Return the codec of the calling thread."""
        codec: ValueCodec | None = getattr(self._local, "codec", None)
        if codec is None:
            codec = ValueCodec(self._dictionaries, self.keys, token=self.token)
            self._local.codec = codec
        return codec

    def decode(self, key: Key, raw: bytes) -> bytes:
        """Return the JSON document of a value, on whichever thread this is called."""
        return self.here().decode(key, raw)
