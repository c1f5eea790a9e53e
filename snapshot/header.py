"""The header of a segment: what it is and where it stands in the chain, in 324 authenticated bytes.

Owns the byte layout (docs/snapshot-format.md, "Header") and the chain hash. The header is readable
without a key (`decode`), and believed only after its MAC is checked (`check_mac`). Format 1, which
knew no merges and no checkpoints, is read and no longer written.

>>> chain_hash(ZERO, bytes(32)).hex()[:16]
'b79a10ec67771d98'
"""

import enum
import hashlib
import hmac
import struct
import uuid
from dataclasses import dataclass

from snapshot.errors import SegmentCorrupt, UnsupportedFormat

MAGIC = b"\x89HUBSEG\n"
FORMAT = 2
HASH_BYTES = 32
ZERO = bytes(HASH_BYTES)
"""The chain and the state before the first segment."""

_ZSTD_AESGCM = 1
_PREFIX = struct.Struct(">8sHBBI")
PREFIX_BYTES = _PREFIX.size
"""Magic, format, kind, codec and length: what every format begins with."""
_LAYOUT = struct.Struct(">16s8Q32s32s32s32s8s60s")
_LAYOUT_1 = struct.Struct(">16s7Q32s32s32s8s60s")
HEADER_BYTES = _PREFIX.size + _LAYOUT.size + HASH_BYTES
HEADER_BYTES_1 = _PREFIX.size + _LAYOUT_1.size + HASH_BYTES
_LENGTHS = {1: HEADER_BYTES_1, FORMAT: HEADER_BYTES}


class Kind(enum.IntEnum):
    """What a segment holds."""

    FULL = 1
    DELTA = 2
    MERGE = 3


@dataclass(frozen=True, slots=True)
class Header:
    """The facts of one segment.

    A position of the chain has a number, `seq`, and a chain hash. A delta leads from one to the
    next: it holds what changed in (`from_rev`, `to_rev`]. A merge stands for all deltas from
    `from_seq` to `seq`. A full holds the state at `to_rev` (its `from_rev` is 0); it hangs at a
    position (`from_seq` is `seq`: a checkpoint), unless nothing but itself leads there (a base).
    `count` is the number of records in it, `objects` the number of objects in the store at
    `to_rev`. `pre_state` and `post_state` are the state hashes before and after it.
    """

    kind: Kind
    hub_id: str
    epoch: int
    from_seq: int
    seq: int
    from_rev: int
    to_rev: int
    objects: int
    time_ms: int
    """Unix time in milliseconds of what it holds: when it, or its last delta, was cut."""
    prev_chain: bytes
    """The chain at `from_seq`."""
    pre_state: bytes
    post_state: bytes
    end_chain: bytes = ZERO
    """The chain at `seq` where the segment is no link of it (merge, checkpoint), else zero."""
    count: int = 0

    @property
    def is_link(self) -> bool:
        """Whether the chain goes through this segment: its hash is part of the next position's."""
        return self.kind is not Kind.MERGE and self.from_seq < self.seq

    def chain_after(self, segment_hash: bytes) -> bytes:
        """Return the chain at `seq`, for a segment of that hash."""
        return chain_hash(self.prev_chain, segment_hash) if self.is_link else self.end_chain


@dataclass(frozen=True, slots=True)
class SealedHeader:
    """A header as it lies in the file: with the key that seals the body, wrapped, and the MAC."""

    header: Header
    key_id: bytes
    wrapped_key: bytes
    encoded: bytes
    """All but the MAC."""
    mac: bytes


def encode(header: Header, *, key_id: bytes, wrapped_key: bytes, mac_key: bytes) -> bytes:
    """Return the 324 bytes."""
    encoded = _PREFIX.pack(MAGIC, FORMAT, header.kind, _ZSTD_AESGCM, HEADER_BYTES) + _LAYOUT.pack(
        uuid.UUID(header.hub_id).bytes,
        header.epoch,
        header.from_seq,
        header.seq,
        header.from_rev,
        header.to_rev,
        header.count,
        header.objects,
        header.time_ms,
        header.prev_chain,
        header.end_chain,
        header.pre_state,
        header.post_state,
        key_id,
        wrapped_key,
    )
    return encoded + _mac(encoded, mac_key)


def header_bytes(prefix: bytes, *, name: str = "") -> int:
    """Return the length of the header that begins with these 16 bytes.

    Raises `UnsupportedFormat` for a newer format and `SegmentCorrupt` for anything else; `name` is
    for the message.
    """
    if prefix[:8] != MAGIC:
        raise SegmentCorrupt("this is no segment of hublet", op="read", object=name)
    if len(prefix) < _PREFIX.size:
        raise SegmentCorrupt("the header is cut short", op="read", object=name)
    _, version, kind, codec, length = _PREFIX.unpack(prefix[: _PREFIX.size])
    if version not in _LENGTHS:
        raise UnsupportedFormat(
            f"segment format {version}, this release reads up to {FORMAT}", op="read", object=name
        )
    is_known = kind in list(Kind) and (version != 1 or kind != Kind.MERGE)
    if not is_known or codec != _ZSTD_AESGCM or length != _LENGTHS[version]:
        raise SegmentCorrupt(
            f"kind {kind}, codec {codec} or header length {length} is unknown",
            op="read",
            object=name,
        )
    return int(length)


def decode(data: bytes, *, name: str = "") -> SealedHeader:
    """Take the header at the start of a segment apart; nothing is authenticated yet.

    Raises as `header_bytes`.
    """
    length = header_bytes(data[: _PREFIX.size], name=name)
    if len(data) < length:
        raise SegmentCorrupt("the header is cut short", op="read", object=name)
    encoded, mac = data[: length - HASH_BYTES], data[length - HASH_BYTES : length]
    kind = Kind(encoded[10])
    rest = encoded[_PREFIX.size :]
    header, key_id, wrapped = _one(kind, rest) if length == HEADER_BYTES_1 else _two(kind, rest)
    problem = _contradiction(header)
    if problem:
        raise SegmentCorrupt(problem, op="read", object=name)
    return SealedHeader(header, key_id, wrapped, encoded, mac)


def _two(kind: Kind, data: bytes) -> tuple[Header, bytes, bytes]:
    hub_id, epoch, from_seq, seq, from_rev, to_rev, count, objects, time_ms, *rest = _LAYOUT.unpack(
        data
    )
    prev_chain, end_chain, pre_state, post_state, key_id, wrapped = rest
    header = Header(
        kind=kind,
        hub_id=str(uuid.UUID(bytes=hub_id)),
        epoch=epoch,
        from_seq=from_seq,
        seq=seq,
        from_rev=from_rev,
        to_rev=to_rev,
        objects=objects,
        time_ms=time_ms,
        prev_chain=prev_chain,
        end_chain=end_chain,
        pre_state=pre_state,
        post_state=post_state,
        count=count,
    )
    return header, key_id, wrapped


def _one(kind: Kind, data: bytes) -> tuple[Header, bytes, bytes]:
    """Read format 1, in which every segment was a link of the chain."""
    hub_id, epoch, seq, from_rev, to_rev, count, objects, time_ms, *rest = _LAYOUT_1.unpack(data)
    prev_chain, pre_state, post_state, key_id, wrapped = rest
    header = Header(
        kind=kind,
        hub_id=str(uuid.UUID(bytes=hub_id)),
        epoch=epoch,
        from_seq=max(0, seq - 1),
        seq=seq,
        from_rev=from_rev,
        to_rev=to_rev,
        objects=objects,
        time_ms=time_ms,
        prev_chain=prev_chain,
        pre_state=pre_state,
        post_state=post_state,
        count=count,
    )
    return header, key_id, wrapped


def _contradiction(header: Header) -> str:
    """Say what does not fit together, if anything."""
    is_full = header.kind is Kind.FULL
    if header.from_seq > header.seq or (header.from_seq == header.seq and not is_full):
        return f"{header.kind.name} from position {header.from_seq} to {header.seq}"
    if header.from_rev > header.to_rev or (is_full and header.from_rev):
        return f"{header.kind.name} from revision {header.from_rev} to {header.to_rev}"
    return ""


def check_mac(sealed: SealedHeader, mac_key: bytes, *, name: str = "") -> Header:
    """Return the header if its MAC holds, else raise `SegmentCorrupt`."""
    if not hmac.compare_digest(_mac(sealed.encoded, mac_key), sealed.mac):
        raise SegmentCorrupt("the header's seal is broken", op="read", object=name)
    return sealed.header


def chain_hash(previous: bytes, segment_hash: bytes) -> bytes:
    """Return the chain after a segment: the hash of the chain before it and of the segment."""
    digest = hashlib.blake2b(digest_size=HASH_BYTES, person=b"hublet/chain/1")
    digest.update(previous + segment_hash)
    return digest.digest()


def _mac(encoded: bytes, mac_key: bytes) -> bytes:
    return hashlib.blake2b(encoded, digest_size=HASH_BYTES, key=mac_key).digest()
