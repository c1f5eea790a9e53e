"""Where objects lie under a prefix.

Owns the names: ``HEAD`` and ``format.json`` at the root, segments under their epoch. A segment's
name holds its place and eight digits of its hash, so that a stalled writer's late create is an
orphan and never another's segment.

>>> full_name(epoch=7, rev=120, seq=31, digest=bytes.fromhex("0badcafe") + bytes(28))
'e00000007/full/120-31-0badcafe.hs'
>>> delta_name(epoch=7, from_rev=120, to_rev=125, digest=bytes.fromhex("0badcafe") + bytes(28))
'e00000007/d0/120-125-0badcafe.hs'
"""

from snapshot.header import Kind
from snapshot.segment import Segment

HEAD = "HEAD"
FORMAT = "format.json"


def full_name(*, epoch: int, rev: int, seq: int, digest: bytes) -> str:
    """Return the name of a full."""
    return f"e{epoch:08d}/full/{rev}-{seq}-{digest[:4].hex()}.hs"


def delta_name(*, epoch: int, from_rev: int, to_rev: int, digest: bytes) -> str:
    """Return the name of a delta as cut (level 0)."""
    return f"e{epoch:08d}/d0/{from_rev}-{to_rev}-{digest[:4].hex()}.hs"


def segment_name(segment: Segment) -> str:
    """Return the name under which a segment is put."""
    header = segment.header
    if header.kind is Kind.FULL:
        return full_name(epoch=header.epoch, rev=header.to_rev, seq=header.seq, digest=segment.hash)
    return delta_name(
        epoch=header.epoch, from_rev=header.from_rev, to_rev=header.to_rev, digest=segment.hash
    )
