"""Shipping: cut a segment from the store and commit it to the chain.

Owns what goes into a segment and when none is needed. Everything here blocks (disk, then network)
and belongs in a thread, one at a time for a chain. The store's read transaction is open only while
the segment is spooled to the local disk, never across the network.
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
from snapshot.header import Header, Kind
from snapshot.policy import Due, Policy, next_kind
from snapshot.segment import NO_PREAMBLE, Preamble, Segment, write_segment
from snapshot.start import RESERVE

_SPOOLED = "ship-*.hs"


class Exporter(Protocol):
    """What is needed of the store (`hub.store.Store`); called from the shipping thread."""

    def export_full(self) -> FullExport:
        """Begin an export of everything."""
        ...

    def export_delta(self, after: Revision) -> DeltaExport:
        """Return what changed since `after`; raises `Compacted`."""
        ...


@dataclass(frozen=True, slots=True)
class Shipped:
    """A segment that HEAD names now, and what it cost."""

    kind: Kind
    because: Due
    name: str
    from_rev: int
    to_rev: int
    records: int
    size: int
    cut_s: float
    put_s: float


def ship(
    store: Exporter,
    chain: Chain,
    spool_dir: Path,
    *,
    policy: Policy = Policy(),  # noqa: B008  frozen
    reserve: int = RESERVE,
) -> Shipped | None:
    """Ship what changed since HEAD as the policy says; None when nothing did."""
    because = next_kind(chain.head, now_ms=_now_ms(chain), policy=policy)
    if because is not Due.DELTA:
        return ship_full(store, chain, spool_dir, because=because, reserve=reserve)
    try:
        return ship_delta(store, chain, chain.head.rev, spool_dir, reserve=reserve)
    except Compacted:
        return ship_full(store, chain, spool_dir, because=Due.LOG, reserve=reserve)


def ship_full(
    store: Exporter,
    chain: Chain,
    spool_dir: Path,
    *,
    because: Due = Due.ASKED,
    reserve: int = RESERVE,
) -> Shipped | None:
    """Ship the whole state; None when HEAD's full is of this very state.

    Raises what `Chain.commit_segment` does.
    """
    began_s = chain.clock.monotonic_s()
    with store.export_full() as export, _spool(spool_dir) as path:
        position = export.position
        _check_ahead(position, chain)
        head = chain.head
        if head.full is not None and head.full.to_rev == position.revision:
            return None
        segment = _cut(
            path,
            _header(chain, position, kind=Kind.FULL),
            chain,
            records=export.records,
            preamble=Preamble(export.dicts, export.wrapped_data_key),
        )
        export.close()
        return _commit(chain, segment, because=because, began_s=began_s, reserve=reserve)


def ship_delta(
    store: Exporter, chain: Chain, after: int, spool_dir: Path, *, reserve: int = RESERVE
) -> Shipped | None:
    """Ship what changed after revision `after`, which is HEAD's; None when nothing did.

    Raises `Compacted` when the store's log does not reach back (ship a full), and what
    `Chain.commit_segment` does.
    """
    if after != chain.head.rev:
        raise ValueError(f"a delta begins at HEAD's revision {chain.head.rev}, not at {after}")
    began_s = chain.clock.monotonic_s()
    export = store.export_delta(Revision(after))
    _check_ahead(export.position, chain)
    if not export.records:
        return None
    with _spool(spool_dir) as path:
        header = _header(chain, export.position, kind=Kind.DELTA)
        segment = _cut(path, header, chain, records=export.records)
        return _commit(chain, segment, because=Due.DELTA, began_s=began_s, reserve=reserve)


def _header(chain: Chain, position: Position, *, kind: Kind) -> Header:
    head = chain.head
    return Header(
        kind=kind,
        hub_id=head.hub_id,
        epoch=head.epoch,
        seq=head.seq + 1,
        from_rev=head.rev if kind is Kind.DELTA else 0,
        to_rev=position.revision,
        objects=position.count,
        time_ms=_now_ms(chain),
        prev_chain=bytes.fromhex(head.chain),
        pre_state=bytes.fromhex(head.state_hash),
        post_state=position.state_hash,
    )


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
    header = segment.header
    cut_s = chain.clock.monotonic_s()
    head = chain.commit_segment(segment, reserved_rev=header.to_rev + reserve)
    return Shipped(
        kind=header.kind,
        because=because,
        name=head.segments[-1].name,
        from_rev=header.from_rev,
        to_rev=header.to_rev,
        records=header.count,
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
def _spool(directory: Path) -> Iterator[Path]:
    """Give a path for one segment, gone afterwards; sweeps what a crash left."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for rest in directory.glob(_SPOOLED):
        rest.unlink(missing_ok=True)
    path = directory / f"ship-{secrets.token_hex(6)}.hs"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _now_ms(chain: Chain) -> int:
    return int(chain.clock.now().timestamp() * 1000)
