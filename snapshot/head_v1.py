"""HEAD of format 1, as the releases before merges wrote it; read, never written.

Owns the translation. In format 1 every segment was a link of the chain and its place in it was its
number, so the positions are counted back from the end.
"""

import msgspec

from snapshot.head import Fork, Hash, Head, SegmentRef, Writer


class _Ref(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    from_rev: int
    to_rev: int
    hash: Hash
    size: int
    time_ms: int


class _Fork(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    epoch: int
    seq: int
    rev: int
    chain: Hash


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    format: int
    hub_id: str
    epoch: int
    writer: Writer
    nonce: str
    seq: int
    rev: int
    chain: Hash
    state_hash: Hash
    objects: int
    full: _Ref | None
    tail: tuple[_Ref, ...]
    reserved_rev: int
    key: str
    time: str
    released: bool
    fork: _Fork | None
    seal: str


def decode_head_1(data: bytes) -> Head:
    """Return a HEAD of format 1 as one of today's; raises msgspec.DecodeError."""
    old = msgspec.json.decode(data, type=_Head)
    first = max(0, old.seq - len(old.tail))
    return Head(
        hub_id=old.hub_id,
        epoch=old.epoch,
        writer=old.writer,
        nonce=old.nonce,
        seq=old.seq,
        last_seq=old.seq,
        rev=old.rev,
        chain=old.chain,
        state_hash=old.state_hash,
        objects=old.objects,
        full=_full(old.full, first) if old.full else None,
        tail=tuple(_delta(ref, first + number) for number, ref in enumerate(old.tail)),
        reserved_rev=old.reserved_rev,
        key=old.key,
        time=old.time,
        released=old.released,
        fork=_fork(old.fork) if old.fork else None,
        seal=old.seal,
    )


def _full(ref: _Ref, seq: int) -> SegmentRef:
    return SegmentRef(
        name=ref.name,
        level="full",
        from_seq=max(0, seq - 1),
        seq=seq,
        from_rev=0,
        to_rev=ref.to_rev,
        hash=ref.hash,
        size=ref.size,
        time_ms=ref.time_ms,
    )


def _delta(ref: _Ref, from_seq: int) -> SegmentRef:
    return SegmentRef(
        name=ref.name,
        level="d0",
        from_seq=from_seq,
        seq=from_seq + 1,
        from_rev=ref.from_rev,
        to_rev=ref.to_rev,
        hash=ref.hash,
        size=ref.size,
        time_ms=ref.time_ms,
    )


def _fork(fork: _Fork) -> Fork:
    return Fork(epoch=fork.epoch, seq=fork.seq, rev=fork.rev, chain=fork.chain, base_seq=fork.seq)
