"""Shipping: cut a segment from the store and commit it to the chain.

Owns what goes into a segment and when none is needed. Everything here blocks (disk, then network)
and belongs in a thread. The store's read transaction is open only while the segment is spooled to
the local disk, never across the network.

A full is a checkpoint: in one read transaction the delta up to its revision is shipped, which gives
the position where it hangs (`begin_full`, beside every other commit), and then everything is read
and put (`put_full`, in another thread; meanwhile deltas go on). Only when no delta can be cut (the
first segment, or a log that does not reach back) the full is itself the next link (`ship_base`).
"""

import contextlib
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hub.store import Compacted, DeltaExport, FullExport, Position, Record, Revision
from snapshot.chain import Chain
from snapshot.errors import SnapshotError
from snapshot.head import SegmentRef
from snapshot.header import Header, Kind
from snapshot.policy import Due
from snapshot.segment import NO_PREAMBLE, Preamble, Segment, check_hash, write_segment
from snapshot.start import RESERVE


class Exporter(Protocol):
    """What is needed of the store (`hub.store.Store`); called from the shipping thread."""

    def export_full(self) -> FullExport:
        """Begin an export of everything."""
        ...

    def export_delta(self, after: Revision) -> DeltaExport:
        """Return what changed since `after`; raises `Compacted`."""
        ...


@dataclass(frozen=True, slots=True)
class FullBegun:
    """A full whose position is fixed and whose contents are still to be read from `export`.

    Close it, or hand it to `put_full`.
    """

    export: FullExport
    header: Header
    because: Due
    began_s: float
    delta: "Shipped | None"
    """What had to be shipped first."""

    def close(self) -> None:
        """End the store's transaction."""
        self.export.close()


@dataclass(frozen=True, slots=True)
class Shipped:
    """A segment that HEAD names now, and what it cost."""

    level: str
    because: Due
    name: str
    from_rev: int
    to_rev: int
    records: int
    size: int
    cut_s: float
    put_s: float


def ship(
    store: Exporter, chain: Chain, spool_dir: Path, *, reserve: int = RESERVE
) -> Shipped | None:
    """Ship what changed since HEAD; None when nothing did.

    Raises what `Chain.commit_segment` does.
    """
    if chain.head.full is None:
        return ship_base(store, chain, spool_dir, because=Due.FIRST, reserve=reserve)
    try:
        return ship_delta(store, chain, chain.head.rev, spool_dir, reserve=reserve)
    except Compacted:
        return ship_base(store, chain, spool_dir, because=Due.LOG, reserve=reserve)


def ship_base(
    store: Exporter, chain: Chain, spool_dir: Path, *, because: Due, reserve: int = RESERVE
) -> Shipped | None:
    """Ship the whole state as the next link of the chain; None when HEAD's full is of this state.

    Raises what `Chain.commit_segment` does.
    """
    began_s = chain.clock.monotonic_s()
    with store.export_full() as export, _spool(spool_dir) as path:
        _check_ahead(export.position, chain)
        head = chain.head
        if head.full is not None and head.full.to_rev == export.position.revision:
            return None
        header = _link(chain, export.position, kind=Kind.FULL)
        segment = _cut_full(path, header, chain, export)
        return _commit(chain, segment, because=because, began_s=began_s, reserve=reserve)


def ship_full(
    store: Exporter,
    chain: Chain,
    spool_dir: Path,
    *,
    because: Due = Due.ASKED,
    reserve: int = RESERVE,
) -> Shipped | None:
    """Ship what changed, then a full of that state; None when HEAD's full is of this very state.

    For callers that can wait: the steps of a full in one thread.
    """
    begun = begin_full(store, chain, spool_dir, because=because, reserve=reserve)
    if begun is None or isinstance(begun, Shipped):
        return begun
    put = put_full(begun, chain, spool_dir)
    chain.commit_full(put.ref)
    return put.shipped


def begin_full(
    store: Exporter,
    chain: Chain,
    spool_dir: Path,
    *,
    because: Due = Due.ASKED,
    reserve: int = RESERVE,
) -> FullBegun | Shipped | None:
    """Fix the position of a full; `put_full` and `Chain.commit_full` finish it.

    Returns the base that was shipped where no delta could be cut, None when HEAD's full is of this
    very state and not damaged. Raises what `Chain.commit_segment` does.
    """
    began_s = chain.clock.monotonic_s()
    if chain.head.full is None:
        return ship_base(store, chain, spool_dir, because=Due.FIRST, reserve=reserve)
    export = store.export_full()
    try:
        _check_ahead(export.position, chain)
        is_there = chain.head.full.to_rev == export.position.revision
        if is_there and because is not Due.DAMAGED:
            export.close()
            return None
        delta = None
        if chain.head.rev < export.position.revision:
            changed = export.delta(Revision(chain.head.rev))
            delta = _ship_export(changed, chain, spool_dir, began_s=began_s, reserve=reserve)
        header = _checkpoint(chain, export.position)
    except Compacted:
        export.close()
        return ship_base(store, chain, spool_dir, because=Due.LOG, reserve=reserve)
    except BaseException:
        export.close()
        raise
    return FullBegun(export, header, because, began_s, delta)


@dataclass(frozen=True, slots=True)
class FullPut:
    """A full that lies in the bucket and is named by nothing yet."""

    ref: SegmentRef
    shipped: Shipped


def put_full(begun: FullBegun, chain: Chain, spool_dir: Path) -> FullPut:
    """Read a full's contents and put it; then `Chain.commit_full` may name it.

    May run beside commits of `chain`; closes the export.
    """
    with _spool(spool_dir, stem="full") as path, begun.export as export:
        segment = _cut_full(path, begun.header, chain, export)
        cut_s = chain.clock.monotonic_s()
        ref = chain.put_segment(segment, level="full")
        return FullPut(
            ref, _shipped(chain, segment, ref, begun.because, began_s=begun.began_s, cut_s=cut_s)
        )


def read_back(chain: Chain, ref: SegmentRef, spool_dir: Path) -> bool:
    """Whether a segment can be fetched and is, byte for byte, the one that was put."""
    with _spool(spool_dir, stem="back") as path:
        size = chain.remote.get_to_file(ref.name, path)
        return size == ref.size and check_hash(path, name=ref.name).hex() == ref.hash


def ship_delta(
    store: Exporter, chain: Chain, after: int, spool_dir: Path, *, reserve: int = RESERVE
) -> Shipped | None:
    """Ship what changed after revision `after`, which is HEAD's; None when nothing did.

    Raises `Compacted` when the store's log does not reach back (ship a base), and what
    `Chain.commit_segment` does.
    """
    if after != chain.head.rev:
        raise ValueError(f"a delta begins at HEAD's revision {chain.head.rev}, not at {after}")
    began_s = chain.clock.monotonic_s()
    export = store.export_delta(Revision(after))
    return _ship_export(export, chain, spool_dir, began_s=began_s, reserve=reserve)


def _ship_export(
    export: DeltaExport, chain: Chain, spool_dir: Path, *, began_s: float, reserve: int
) -> Shipped | None:
    _check_ahead(export.position, chain)
    if not export.records:
        return None
    with _spool(spool_dir) as path:
        header = _link(chain, export.position, kind=Kind.DELTA)
        segment = _cut(path, header, chain, records=export.records)
        return _commit(chain, segment, because=Due.DELTA, began_s=began_s, reserve=reserve)


def _link(chain: Chain, position: Position, *, kind: Kind) -> Header:
    """Return the header of the segment that leads on from HEAD."""
    head = chain.head
    return Header(
        kind=kind,
        hub_id=head.hub_id,
        epoch=head.epoch,
        from_seq=head.seq,
        seq=head.last_seq + 1,
        from_rev=head.rev if kind is Kind.DELTA else 0,
        to_rev=position.revision,
        objects=position.count,
        time_ms=_now_ms(chain),
        prev_chain=bytes.fromhex(head.chain),
        pre_state=bytes.fromhex(head.state_hash),
        post_state=position.state_hash,
    )


def _checkpoint(chain: Chain, position: Position) -> Header:
    """Return the header of a full that hangs at HEAD's position, which must be the store's."""
    head = chain.head
    if (head.rev, head.state_hash) != (position.revision, position.state_hash.hex()):
        raise SnapshotError(
            f"the store and HEAD hold different states at revision {head.rev}",
            op="ship",
            hint="keep the directory for inspection, and go on from the bucket: hub-restore",
        )
    return Header(
        kind=Kind.FULL,
        hub_id=head.hub_id,
        epoch=head.epoch,
        from_seq=head.seq,
        seq=head.seq,
        from_rev=0,
        to_rev=position.revision,
        objects=position.count,
        time_ms=_now_ms(chain),
        prev_chain=bytes.fromhex(head.chain),
        end_chain=bytes.fromhex(head.chain),
        pre_state=position.state_hash,
        post_state=position.state_hash,
    )


def _cut_full(path: Path, header: Header, chain: Chain, export: FullExport) -> Segment:
    preamble = Preamble(export.dicts, export.wrapped_data_key)
    segment = _cut(path, header, chain, records=export.records, preamble=preamble)
    export.close()
    return segment


def _cut(
    path: Path,
    header: Header,
    chain: Chain,
    *,
    records: Iterable[Record],
    preamble: Preamble = NO_PREAMBLE,
) -> Segment:
    return write_segment(
        path,
        header,
        records=records,
        key=chain.key,
        token=chain.clock.token,
        preamble=preamble,
    )


def _commit(
    chain: Chain, segment: Segment, *, because: Due, began_s: float, reserve: int
) -> Shipped:
    cut_s = chain.clock.monotonic_s()
    head = chain.commit_segment(segment, reserved_rev=segment.header.to_rev + reserve)
    ref = head.segments[-1]
    return _shipped(chain, segment, ref, because, began_s=began_s, cut_s=cut_s)


def _shipped(
    chain: Chain, segment: Segment, ref: SegmentRef, because: Due, *, began_s: float, cut_s: float
) -> Shipped:
    return Shipped(
        level=ref.level,
        because=because,
        name=ref.name,
        from_rev=ref.from_rev,
        to_rev=ref.to_rev,
        records=segment.header.count,
        size=segment.size,
        cut_s=cut_s - began_s,
        put_s=chain.clock.monotonic_s() - cut_s,
    )


def _check_ahead(position: Position, chain: Chain) -> None:
    """Refuse to ship a store that is behind its own HEAD: the arbiter lets none start."""
    if position.revision < chain.head.rev:
        raise SnapshotError(
            f"the store is at revision {position.revision}, HEAD at {chain.head.rev}",
            op="ship",
            hint="stop the hub: its data directory was exchanged under it",
        )


@contextlib.contextmanager
def _spool(directory: Path, *, stem: str = "ship") -> Iterator[Path]:
    """Give a path for one segment, gone afterwards; sweeps what a crash left under its stem."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for rest in directory.glob(f"{stem}-*.hs"):
        rest.unlink(missing_ok=True)
    path = directory / f"{stem}-{secrets.token_hex(6)}.hs"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _now_ms(chain: Chain) -> int:
    return int(chain.clock.now().timestamp() * 1000)
