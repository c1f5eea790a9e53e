"""HEAD: the one mutable object of a prefix, and the commit point of everything under it.

Owns its JSON form (docs/snapshot-format.md, "HEAD"), its seal and what must hold inside it. It is
changed by compare-and-swap only (`snapshot.chain`) and never deleted. Every version carries a fresh
nonce: etags are content hashes on most servers, and a writer that lost an answer looks for its own.
"""

import itertools
from typing import Annotated

import msgspec

from snapshot.errors import HeadCorrupt, KeyMismatch, UnsupportedFormat
from snapshot.seal import HubKey, head_mac

FORMAT = 1

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


class SegmentRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A segment under this prefix. `time_ms` is when it was cut, Unix milliseconds."""

    name: _Text
    from_rev: _Number
    to_rev: _Number
    hash: Hash
    size: _Number
    time_ms: _Number


class Fork(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the epoch before this one ended."""

    epoch: _Number
    seq: _Number
    rev: _Number
    chain: Hash


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The state of the chain.

    `seq` counts segments, across epochs; `rev`, `chain`, `state_hash` and `objects` are those after
    the newest one (all zero before the first). `full` is where a restore begins, `tail` the deltas
    after it in order. No hub of this chain has handed out a revision above `reserved_rev`.
    """

    format: int = FORMAT
    hub_id: _Text
    epoch: _Number
    writer: Writer
    nonce: _Text
    seq: _Number
    rev: _Number
    chain: Hash
    state_hash: Hash
    objects: _Number
    full: SegmentRef | None
    tail: tuple[SegmentRef, ...]
    reserved_rev: _Number
    key: _Text
    """Fingerprint of the hub key that opens the segments and seals this."""
    time: _Text
    """RFC 3339, UTC, the writer's clock."""
    released: bool
    """The writer has stopped in good order and will write no more in this epoch."""
    fork: Fork | None
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
    bare = msgspec.structs.replace(head, seal="")
    sealed = msgspec.structs.replace(bare, seal=head_mac(msgspec.json.encode(bare), key))
    return msgspec.json.encode(sealed)


def decode_head(data: bytes) -> Head:
    """Parse HEAD and check that it agrees with itself; the seal is `check_seal`'s.

    Raises `UnsupportedFormat` for a newer one, `HeadCorrupt` for anything else.
    """
    try:
        version = msgspec.json.decode(data, type=_Probe).format
        if version != FORMAT:
            raise UnsupportedFormat(
                f"HEAD has format {version}, this release reads {FORMAT}", op="read", object="HEAD"
            )
        head = msgspec.json.decode(data, type=Head)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HeadCorrupt(f"does not parse: {error}", op="read", object="HEAD") from error
    if problem := _contradiction(head):
        raise HeadCorrupt(problem, op="read", object="HEAD")
    return head


def check_key(head: Head, key: HubKey) -> None:
    """Raise `KeyMismatch` unless `key` is the one HEAD asks for."""
    if head.key != key.fingerprint:
        raise KeyMismatch(
            f"this prefix is sealed under the key {head.key}, the key at hand is {key.fingerprint}",
            op="read",
            object="HEAD",
        )


def check_seal(head: Head, key: HubKey) -> Head:
    """Return HEAD without its seal if `key` sealed it as it is; else raise `HeadCorrupt`."""
    check_key(head, key)
    bare = msgspec.structs.replace(head, seal="")
    if head_mac(msgspec.json.encode(bare), key) != head.seal:
        raise HeadCorrupt("its seal is broken: somebody edited it", op="read", object="HEAD")
    return bare


def _contradiction(head: Head) -> str:
    """Say what does not fit together, if anything."""
    segments = head.segments
    if head.tail and head.full is None:
        return "there are deltas and no full"
    for before, after in itertools.pairwise(segments):
        if after.from_rev != before.to_rev or after.to_rev < after.from_rev:
            return f"{after.name} does not follow {before.name}"
    if segments and segments[-1].to_rev != head.rev:
        return f"its segments end at {segments[-1].to_rev}, it claims {head.rev}"
    if head.seq < len(segments) or (not segments and (head.seq or head.rev)):
        return f"{len(segments)} segments do not make sequence {head.seq} at revision {head.rev}"
    if head.reserved_rev < head.rev:
        return f"revision {head.rev} is above the {head.reserved_rev} reserved"
    if head.epoch < 1:
        return "the epoch is zero"
    return ""
