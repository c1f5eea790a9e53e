"""The header of a segment: what it is and where it stands in the chain, in 284 authenticated bytes.

Owns the byte layout (docs/snapshot-format.md, "Header") and the chain hash. The header is readable
without a key (`decode`), and believed only after its MAC is checked (`check_mac`).

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
FORMAT = 1
HASH_BYTES = 32
ZERO = bytes(HASH_BYTES)
"""The chain and the state before the first segment."""

_ZSTD_AESGCM = 1
_LAYOUT = struct.Struct(">8sHBBI16s7Q32s32s32s8s60s")
HEADER_BYTES = _LAYOUT.size + HASH_BYTES


class Kind(enum.IntEnum):
    """What a segment holds."""

    FULL = 1
    DELTA = 2


@dataclass(frozen=True, slots=True)
class Header:
    """The facts of one segment.

    `seq` counts segments along the chain, across epochs. A full holds the state at `to_rev` (its
    `from_rev` is 0), a delta what changed in (`from_rev`, `to_rev`]. `count` is the number of
    records in it, `objects` the number of objects in the store at `to_rev`. `pre_state` and
    `post_state` are the state hashes of the chain before and after it.
    """

    kind: Kind
    hub_id: str
    epoch: int
    seq: int
    from_rev: int
    to_rev: int
    objects: int
    time_ms: int
    """Unix time in milliseconds when it was cut."""
    prev_chain: bytes
    pre_state: bytes
    post_state: bytes
    count: int = 0


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
    """Return the 284 bytes."""
    encoded = _LAYOUT.pack(
        MAGIC,
        FORMAT,
        header.kind,
        _ZSTD_AESGCM,
        HEADER_BYTES,
        uuid.UUID(header.hub_id).bytes,
        header.epoch,
        header.seq,
        header.from_rev,
        header.to_rev,
        header.count,
        header.objects,
        header.time_ms,
        header.prev_chain,
        header.pre_state,
        header.post_state,
        key_id,
        wrapped_key,
    )
    return encoded + _mac(encoded, mac_key)


def decode(data: bytes, *, name: str = "") -> SealedHeader:
    """Take the first 284 bytes of a segment apart; nothing is authenticated yet.

    Raises `UnsupportedFormat` for a newer format and `SegmentCorrupt` for anything else; `name` is
    for the message.
    """
    if data[:8] != MAGIC:
        raise SegmentCorrupt("this is no segment of hublet", op="read", object=name)
    if len(data) >= 10 and (version := int.from_bytes(data[8:10], "big")) != FORMAT:
        raise UnsupportedFormat(
            f"segment format {version}, this release reads {FORMAT}", op="read", object=name
        )
    if len(data) < HEADER_BYTES:
        raise SegmentCorrupt("the header is cut short", op="read", object=name)
    encoded, mac = data[: _LAYOUT.size], data[_LAYOUT.size : HEADER_BYTES]
    (_, _, kind, codec, length, hub_id, epoch, seq, from_rev, to_rev, count, *rest) = (
        _LAYOUT.unpack(encoded)
    )
    objects, time_ms, prev_chain, pre_state, post_state, key_id, wrapped_key = rest
    if kind not in list(Kind) or codec != _ZSTD_AESGCM or length != HEADER_BYTES:
        raise SegmentCorrupt(
            f"kind {kind}, codec {codec} or header length {length} is unknown",
            op="read",
            object=name,
        )
    header = Header(
        kind=Kind(kind),
        hub_id=str(uuid.UUID(bytes=hub_id)),
        epoch=epoch,
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
    return SealedHeader(header, key_id, wrapped_key, encoded, mac)


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
