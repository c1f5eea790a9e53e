"""Segments: a stretch of the hub's history as one immutable file (``.hs``).

Owns the body (typed, length-prefixed items, zstd, frames) and the trailer. Layout on disk:
docs/snapshot-format.md; header and frames: `snapshot.header`, `snapshot.seal`. Both ways are
streams: memory is bounded by a few frames and the largest single value.

What a reader promises: every record yielded is authentic and in its place; a segment that is
damaged, cut short or reordered ends in `SegmentCorrupt`, at the latest when its records run out.
"""

import contextlib
import hashlib
import hmac
import io
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, BinaryIO, cast

import zstandard

from hub.store import Key, Record, Revision, stored_key
from snapshot import seal
from snapshot.errors import KeyMismatch, SegmentCorrupt
from snapshot.header import (
    HASH_BYTES,
    HEADER_BYTES,
    HEADER_BYTES_1,
    PREFIX_BYTES,
    Header,
    Kind,
    check_mac,
    decode,
    encode,
    header_bytes,
)

ZSTD_LEVEL = 1

_END, _PUT, _TOMBSTONE, _DICTIONARY, _DATA_KEYS = range(5)
_ITEM = struct.Struct(">BI")
_AT = struct.Struct(">QH")
_NUMBER = struct.Struct(">H")
_COUNT = struct.Struct(">Q")
_BATCH_BYTES = 128 << 10
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment as a local file: its facts, its hash (what the chain links) and its size."""

    path: Path
    header: Header
    hash: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Preamble:
    """What a full carries before its records, so that a store can be built from it alone."""

    dictionaries: Mapping[int, bytes]
    """Number -> stored form (`hub.store`)."""
    data_keys: bytes
    """The store's data keys, wrapped under the hub key; empty in deltas."""


NO_PREAMBLE = Preamble({}, b"")


def write_segment(
    path: Path,
    header: Header,
    *,
    records: Iterable[Record],
    key: seal.HubKey,
    token: Callable[[int], bytes],
    preamble: Preamble = NO_PREAMBLE,
) -> Segment:
    """Write a segment to a new file at `path` and return it with its count and hash.

    The file is not synced: it is on its way to an object store, which makes it durable.

    `records` in order of stored key (full, merge) or of revision (delta), or ValueError;
    `header.count` is counted here. `token` draws random bytes (`Clock.token`). On error no file is
    left.
    """
    data_key = token(seal.KEY_BYTES)
    keys = seal.derive_segment_keys(data_key)
    wrapped = seal.wrap(data_key, key, token=token)
    with _new_file(path) as file:
        file.write(bytes(HEADER_BYTES))
        frames = seal.FrameWriter(file.write, keys.frame)
        count = _write_body(frames, header, records, preamble)
        frames.close()
        header = replace(header, count=count)
        file.seek(0)
        file.write(
            encode(
                header,
                key_id=bytes.fromhex(key.fingerprint),
                wrapped_key=wrapped,
                mac_key=keys.mac,
            )
        )
        file.flush()
        size = file.seek(0, os.SEEK_END)
        digest = _digest(path, size)
        file.write(digest)
    return Segment(path, header, digest, size + HASH_BYTES)


def check_hash(path: Path, *, name: str) -> bytes:
    """Return the segment's hash; `SegmentCorrupt` if its trailer does not agree with its bytes."""
    size = path.stat().st_size
    if size < HEADER_BYTES_1 + HASH_BYTES:
        raise SegmentCorrupt(f"only {size} bytes long", op="read", object=name)
    with path.open("rb") as file:
        file.seek(size - HASH_BYTES)
        trailer = file.read()
    if not hmac.compare_digest(_digest(path, size - HASH_BYTES), trailer):
        raise SegmentCorrupt("the trailer's hash does not match", op="read", object=name)
    return trailer


@contextlib.contextmanager
def open_segment(path: Path, key: seal.HubKey, *, name: str = "") -> Iterator["SegmentReader"]:
    """Open a segment for one pass; its header is authenticated on entry.

    Raises `KeyMismatch` when it was sealed under another hub key, `SegmentCorrupt`, and
    `UnsupportedFormat`. `name` is for messages.
    """
    with path.open("rb") as file:
        yield SegmentReader(file, key, name=name or path.name)


class _Hashed:
    """A file whose bytes are hashed as they are read.

    An object of its own, so that the decompressor does not lead back to the `SegmentReader` that
    holds it: the garbage collector sees no cycle through its C code, and each would be kept.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.hash = file, hashlib.blake2b(digest_size=HASH_BYTES)

    def read(self, length: int) -> bytes:
        """Read up to `length` bytes."""
        data = self.file.read(length)
        self.hash.update(data)
        return data


class SegmentReader:
    """One pass over a segment: `header`, `preamble`, then `records()` once."""

    def __init__(self, file: BinaryIO, key: seal.HubKey, *, name: str) -> None:
        self._bytes, self._name = _Hashed(file), name
        prefix = self._bytes.read(PREFIX_BYTES)
        length = header_bytes(prefix, name=name)
        sealed = decode(prefix + self._bytes.read(length - PREFIX_BYTES), name=name)
        if sealed.key_id.hex() != key.fingerprint:
            raise KeyMismatch(
                f"sealed under key {sealed.key_id.hex()}, the key at hand is {key.fingerprint}",
                op="read",
                object=name,
            )
        keys = seal.derive_segment_keys(seal.unwrap(sealed.wrapped_key, key, name=name))
        self.header = check_mac(sealed, keys.mac, name=name)
        self._frames = seal.FrameReader(self._bytes.read, keys.frame, name=name)
        source = cast("IO[bytes]", self._frames)  # stream_reader calls nothing but read()
        inflated = zstandard.ZstdDecompressor().stream_reader(source)
        self._plain = io.BufferedReader(inflated, _BATCH_BYTES)
        self.preamble, self._first = self._read_preamble()

    def records(self) -> Iterator[Record]:
        """Yield every record, checking its place; complete only when it returns."""
        items = self._records()
        is_delta = self.header.kind is Kind.DELTA
        yield from _in_revision_order(items, self) if is_delta else _in_key_order(items, self)

    def corrupt(self, what: str) -> SegmentCorrupt:
        """Make the error for a contradiction found in this segment."""
        return SegmentCorrupt(what, op="read", object=self._name)

    def _records(self) -> Iterator[Record]:
        count = 0
        item, payload = self._first
        while item in {_PUT, _TOMBSTONE}:
            yield self._record(item, payload)
            count += 1
            item, payload = self._item()
        if item != _END or len(payload) != _COUNT.size:
            raise self.corrupt(f"an item of type {item} is out of place")
        if not count == _COUNT.unpack(payload)[0] == self.header.count:
            raise self.corrupt(f"{count} records, the header says {self.header.count}")
        self._finish()

    def _record(self, item: int, payload: bytes) -> Record:
        if len(payload) < _AT.size:
            raise self.corrupt("a record is too short")
        revision, key_length = _AT.unpack_from(payload)
        key, raw = payload[_AT.size : _AT.size + key_length], payload[_AT.size + key_length :]
        if len(key) < key_length or (item == _TOMBSTONE and raw):
            raise self.corrupt("a record contradicts its length")
        return Record(Key(key), Revision(revision), raw if item == _PUT else None)

    def _read_preamble(self) -> tuple[Preamble, tuple[int, bytes]]:
        dictionaries: dict[int, bytes] = {}
        data_keys = b""
        while True:
            item, payload = self._item()
            if item == _DICTIONARY and len(payload) > _NUMBER.size:
                dictionaries[_NUMBER.unpack_from(payload)[0]] = payload[_NUMBER.size :]
            elif item == _DATA_KEYS:
                data_keys = payload
            else:
                return Preamble(dictionaries, data_keys), (item, payload)

    def _item(self) -> tuple[int, bytes]:
        item, length = _ITEM.unpack(self._exactly(_ITEM.size))
        return item, self._exactly(length)

    def _exactly(self, length: int) -> bytes:
        try:
            data = self._plain.read(length)
        except zstandard.ZstdError as error:
            raise self.corrupt("the body does not decompress") from error
        if len(data) < length:
            raise self.corrupt("the body is cut short")
        return data

    def _finish(self) -> None:
        """Check that nothing follows the end, and the trailer."""
        if self._plain.read(1) or self._frames.read(1):
            raise self.corrupt("the body goes on after its end")
        digest = self._bytes.hash.digest()
        if not hmac.compare_digest(self._bytes.file.read(HASH_BYTES + 1), digest):
            raise self.corrupt("the trailer's hash does not match")


def _in_key_order(records: Iterator[Record], reader: SegmentReader) -> Iterator[Record]:
    """Pass the records of a full or a merge on, in ascending order of key, within its bounds.

    Nothing is deleted in a full.
    """
    header, last = reader.header, b""
    is_full = header.kind is Kind.FULL
    for record in records:
        at = stored_key(record.key)
        is_fit = header.from_rev < record.revision <= header.to_rev
        if at <= last or not is_fit or (is_full and record.raw is None):
            raise reader.corrupt(f"record {record.key!r} is out of place")
        last = at
        yield record


def _in_revision_order(records: Iterator[Record], reader: SegmentReader) -> Iterator[Record]:
    """Pass a delta's records on, in ascending order of revision, within its bounds."""
    last = reader.header.from_rev
    for record in records:
        if not last < record.revision <= reader.header.to_rev:
            raise reader.corrupt(f"record {record.key!r} is out of place")
        last = record.revision
        yield record


def _write_body(
    frames: seal.FrameWriter, header: Header, records: Iterable[Record], preamble: Preamble
) -> int:
    """Compress the items into the frames and return the number of records."""
    deflate = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compressobj()
    batch: list[bytes] = []
    pending = count = 0
    for item in _preamble_items(preamble):
        batch.extend(item)
    for record in _ordered(header, records):
        item = _record_item(record)
        batch.extend(item)
        count += 1
        pending += sum(map(len, item))
        if pending >= _BATCH_BYTES:
            frames.write(deflate.compress(b"".join(batch)))
            batch.clear()
            pending = 0
    batch += (_ITEM.pack(_END, _COUNT.size), _COUNT.pack(count))
    frames.write(deflate.compress(b"".join(batch)))
    frames.write(deflate.flush())
    return count


def _ordered(header: Header, records: Iterable[Record]) -> Iterator[Record]:
    """Pass records on, refusing an order that no reader would accept."""
    last_key, last_revision = b"", header.from_rev
    for record in records:
        key = stored_key(record.key)
        if header.kind is Kind.DELTA:
            is_fit = record.revision > last_revision
        else:
            is_merge = header.kind is Kind.MERGE
            is_fit = key > last_key and (record.raw is not None or is_merge)
            is_fit = is_fit and record.revision > header.from_rev
        if not is_fit or record.revision > header.to_rev:
            raise ValueError(f"record {record.key!r} at {record.revision} is out of order")
        last_key, last_revision = key, record.revision
        yield record


def _preamble_items(preamble: Preamble) -> Iterator[tuple[bytes, ...]]:
    if preamble.data_keys:
        yield _ITEM.pack(_DATA_KEYS, len(preamble.data_keys)), preamble.data_keys
    for number, stored in sorted(preamble.dictionaries.items()):
        length = _NUMBER.size + len(stored)
        yield _ITEM.pack(_DICTIONARY, length), _NUMBER.pack(number), stored


def _record_item(record: Record) -> tuple[bytes, ...]:
    at = _AT.pack(record.revision, len(record.key))
    raw = record.raw
    if raw is None:
        return _ITEM.pack(_TOMBSTONE, len(at) + len(record.key)), at, record.key
    return _ITEM.pack(_PUT, len(at) + len(record.key) + len(raw)), at, record.key, raw


@contextlib.contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a new private file, removed again when the block fails."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _digest(path: Path, size: int) -> bytes:
    """Hash the first `size` bytes."""
    digest = hashlib.blake2b(digest_size=HASH_BYTES)
    with path.open("rb") as file:
        while size and (chunk := file.read(min(_CHUNK, size))):
            digest.update(chunk)
            size -= len(chunk)
    return digest.digest()
