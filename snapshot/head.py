"""HEAD: the one mutable object of a prefix, and the commit point of everything under it.

Owns its JSON form (docs/snapshot-format.md, "HEAD"), its seal and what must hold inside it. It is
changed by compare-and-swap only (`snapshot.chain`) and never deleted. Every version carries a fresh
nonce: etags are content hashes on most servers, and a writer that lost an answer looks for its own.

HEAD names what a restore of the newest state reads. What it named before stands in manifests
(`snapshot.manifest`), which it leads to.
"""

import itertools
from typing import Annotated, Literal, TypeAlias

import msgspec

from snapshot.errors import HeadCorrupt, KeyMismatch, UnsupportedFormat
from snapshot.seal import HubKey
from snapshot.sealed import encode_sealed, is_sealed_by

FORMAT = 2

Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
"""32 bytes in hex."""

_Number = Annotated[int, msgspec.Meta(ge=0)]
_Text = Annotated[str, msgspec.Meta(max_length=256)]


class Writer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who wrote: the data directory, one session of a process on it, and where to look for it."""

    dir: _Text
    session: _Text
    """Drawn at every start, written down locally before HEAD carries it."""
    host: _Text
    pid: _Number

    def describe(self) -> str:
        """Name the writer for a message."""
        return f"process {self.pid} on {self.host} (directory {self.dir})"


Level: TypeAlias = Literal["full", "d0", "d1", "d2"]
"""What a segment is: a full, a delta as cut, deltas of minutes merged, of an hour merged."""


class SegmentRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A segment under this prefix, and between which positions and revisions it lies.

    `time_ms`: of the state at its end, Unix milliseconds.
    """

    name: _Text
    level: Level
    from_seq: _Number
    seq: _Number
    from_rev: _Number
    to_rev: _Number
    hash: Hash
    size: _Number
    time_ms: _Number
    is_verified: bool = False
    """Whether it was read back whole after it was put."""

    @property
    def is_delta(self) -> bool:
        """Whether it leads from one position to a later one."""
        return self.level != "full"


class ObjectRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A manifest, and the hash of its bytes."""

    name: _Text
    hash: Hash


class Fork(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where an epoch ended (`epoch`, `seq`, `rev`, `chain`) and from where the next went on.

    When `base_seq` is not `seq`, the positions given out after it until then are a branch left
    behind; it is the higher one where an epoch goes on from such a branch.
    """

    epoch: _Number
    seq: _Number
    rev: _Number
    chain: Hash
    base_seq: _Number
    time_ms: _Number = 0


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The state of the chain.

    `seq` is the position reached, `last_seq` the highest ever given to one (a fork leaves some
    behind); `rev`, `chain`, `state_hash` and `objects` are those at `seq` (all zero before the
    first segment). `full` is where a restore begins, `tail` what follows it in order. No hub of
    this chain has handed out a revision above `reserved_rev`.
    """

    format: int = FORMAT
    hub_id: _Text
    epoch: _Number
    writer: Writer
    nonce: _Text
    seq: _Number
    last_seq: _Number
    rev: _Number
    chain: Hash
    state_hash: Hash
    objects: _Number
    full: SegmentRef | None
    tail: tuple[SegmentRef, ...]
    manifest: ObjectRef | None = None
    """The newest manifest: what HEAD named before."""
    kept: ObjectRef | None = None
    """A manifest of what retention kept from before `horizon`."""
    horizon: _Number = 0
    """Manifests written at or before this position have been cleaned up."""
    reserved_rev: _Number
    key: _Text
    """Fingerprint of the hub key that opens the segments and seals this."""
    time: _Text
    """RFC 3339, UTC, the writer's clock."""
    released: bool
    """The writer has stopped in good order and will write no more in this epoch."""
    drained: bool = False
    """Everything that the writer had acknowledged is in the chain: a restore loses nothing."""
    moved: _Text = ""
    """Where the hub was moved to; no hub starts here any more."""
    fork: Fork | None
    """How this epoch began; null in the first."""
    branches: tuple[Fork, ...] = ()
    """The forks that left positions behind, oldest first."""
    seal: str = ""
    """On the wire only."""

    @property
    def segments(self) -> tuple[SegmentRef, ...]:
        """What a restore reads: the full and its tail; empty before the first full."""
        return () if self.full is None else (self.full, *self.tail)

    @property
    def delta_bytes(self) -> int:
        """The size of the tail."""
        return sum(ref.size for ref in self.tail)


class _Probe(msgspec.Struct):
    format: int


def encode_head(head: Head, key: HubKey) -> bytes:
    """Return HEAD as JSON, sealed with the hub key."""
    return encode_sealed(msgspec.structs.replace(head, seal=""), key)


def decode_head(data: bytes) -> Head:
    """Parse HEAD and check that it agrees with itself; without a key its seal is not checked.

    Raises `UnsupportedFormat` for a newer one, `HeadCorrupt` for anything else.
    """
    try:
        version = msgspec.json.decode(data, type=_Probe).format
        head = _decode(data, version)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HeadCorrupt(f"does not parse: {error}", op="read", object="HEAD") from error
    if problem := _contradiction(head):
        raise HeadCorrupt(problem, op="read", object="HEAD")
    return head


def open_head(data: bytes, key: HubKey) -> Head:
    """Parse HEAD and check that `key` sealed it as it is.

    Raises `KeyMismatch` when HEAD asks for another key, and as `decode_head`.
    """
    head = decode_head(data)
    check_key(head, key)
    if not is_sealed_by(data, key):
        raise HeadCorrupt("its seal is broken: somebody edited it", op="read", object="HEAD")
    return msgspec.structs.replace(head, seal="")


def check_key(head: Head, key: HubKey) -> None:
    """Raise `KeyMismatch` unless `key` is the one HEAD asks for."""
    if head.key != key.fingerprint:
        raise KeyMismatch(
            f"this prefix is sealed under the key {head.key}, the key at hand is {key.fingerprint}",
            op="read",
            object="HEAD",
        )


def _decode(data: bytes, version: int) -> Head:
    if version == 1:
        from snapshot.head_v1 import decode_head_1  # noqa: PLC0415  it builds on this module

        return decode_head_1(data)
    if version != FORMAT:
        raise UnsupportedFormat(
            f"HEAD has format {version}, this release reads up to {FORMAT}",
            op="read",
            object="HEAD",
        )
    return msgspec.json.decode(data, type=Head)


def _contradiction(head: Head) -> str:
    """Say what does not fit together, if anything."""
    segments = head.segments
    if head.tail and head.full is None:
        return "there are deltas and no full"
    if any(ref.is_delta is (ref is head.full) for ref in segments):
        return "a full stands among the deltas, or a delta for the full"
    for before, after in itertools.pairwise(segments):
        is_next = after.from_rev == before.to_rev and after.from_seq == before.seq
        if not is_next or after.to_rev < after.from_rev or after.seq <= after.from_seq:
            return f"{after.name} does not follow {before.name}"
    if segments and (segments[-1].seq, segments[-1].to_rev) != (head.seq, head.rev):
        end = segments[-1]
        return f"its segments end at @{end.seq}, {end.to_rev}; it claims @{head.seq}, {head.rev}"
    if head.last_seq < head.seq or (not segments and (head.seq or head.rev)):
        return f"{len(segments)} segments do not make position {head.seq} at revision {head.rev}"
    if head.reserved_rev < head.rev:
        return f"revision {head.rev} is above the {head.reserved_rev} reserved"
    if head.epoch < 1:
        return "the epoch is zero"
    return ""
