"""Adoption: a directory that is a copy, or was fenced, is made the one that goes on.

Owns the question what would be lost: what the directory holds and the bucket lacks, and the other
way round. Where only one of the two has more, nothing is: the directory goes on as it is, or
catches up from the bucket. Where both have, one history must give way, and a human says so.

A directory holds nothing of its own when its state is the bucket's at the newest point that is not
after it, or when the segment after that point is of the epoch that it remembers: then its writer
went on, and what the directory holds is in there.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hub.clock import Clock
from hub.store import Position
from snapshot import local
from snapshot.catalog import Catalog, load_catalog
from snapshot.chain import Chain
from snapshot.errors import ForeignPrefix, Refused
from snapshot.head import Head, SegmentRef
from snapshot.plan import fetch, require_full
from snapshot.points import Point, left_behind, points
from snapshot.segment import open_segment


@dataclass(frozen=True, slots=True)
class Found:
    """How a directory and a prefix stand to each other.

    `common`: the newest point of the chain at or before the directory; `has_unshipped`: the
    directory holds what the chain lacks; `behind`: positions of the chain that it lacks.
    """

    hub_id: str
    epoch: int
    revision: int
    common: Point | None
    has_unshipped: bool
    behind: int
    fenced_by: str
    in_use_by: str

    @property
    def is_torn(self) -> bool:
        """Whether both sides hold what the other lacks."""
        return self.has_unshipped and self.behind > 0


def examine(chain: Chain, directory: Path, position: Position) -> Found:
    """Compare a directory, which the caller holds and whose store stands at `position`.

    Raises `NothingToRestore`, `ForeignPrefix` when they are of two hubs, `Refused` when the hub was
    moved elsewhere, `IntegrityError`, `RemoteError`.
    """
    head = require_full(chain.read_head(), chain.remote)
    state, claim = local.load_state(directory), local.load_claim(directory)
    known = {each.hub_id for each in (state, claim) if each is not None}
    if known != {head.hub_id}:
        raise ForeignPrefix(
            f"the prefix is of hub {head.hub_id}, the directory of "
            f"{', '.join(sorted(known)) or 'a hub that has never shipped'}",
            op="adopt",
            object=str(directory),
            hint="check the URL and the directory; to start from the bucket: hub-restore restore",
        )
    if head.moved:
        raise Refused(f"this hub has been moved to {head.moved}", op="adopt", hint="adopt it there")
    catalog = load_catalog(chain.remote, head, chain.key)
    common = _common(catalog, position)
    is_equal = common is not None and _state_at(chain, catalog, common) == position.state_hash
    went_on = state is not None and _went_on(catalog, common, state.epoch)
    return Found(
        hub_id=head.hub_id,
        epoch=head.epoch,
        revision=position.revision,
        common=common,
        has_unshipped=not (is_equal or went_on),
        behind=left_behind(head, common.seq) if common else head.seq,
        fenced_by=state.fenced_by if state else "",
        in_use_by="" if head.released else head.writer.describe(),
    )


def adopt(
    chain: Chain, directory: Path, found: Found, *, clock: Clock, discards_unshipped: bool
) -> None:
    """Leave the claim with which the next start of a directory goes on.

    `chain` and `found` are those of `examine`. Raises `Refused` as `refuse_loss` does.
    """
    refuse_loss(chain.head, directory, found, discards_unshipped=discards_unshipped)
    local.save_claim(directory, _claim(chain.head, chain.remote.url, clock))


def refuse_loss(head: Head, directory: Path, found: Found, *, discards_unshipped: bool) -> None:
    """Raise `Refused` when an adoption would lose changes that nobody said may be lost."""
    if found.is_torn and not discards_unshipped:
        raise Refused(
            "the directory holds changes that the bucket lacks, and the bucket holds "
            f"{found.behind} position{'' if found.behind == 1 else 's'} that the directory lacks",
            op="adopt",
            object=str(directory),
            hint="see what they are with hub-restore diff; then --discard-unshipped goes on from "
            "the bucket (the old store is kept aside)",
        )
    if found.is_torn and found.revision >= head.rev:
        raise Refused(
            f"the directory is at revision {found.revision} of another history than the bucket's",
            op="adopt",
            object=str(directory),
            hint="go on from the bucket: hub-restore restore --from URL --into DIR",
        )


def _claim(head: Head, url: str, clock: Clock) -> local.Claim:
    return local.claim_on(head, None, object_store=url, clock=clock, adopted=True)


def _common(catalog: Catalog, position: Position) -> Point | None:
    before = [each for each in points(catalog) if each.rev <= position.revision]
    return before[-1] if before else None


def _went_on(catalog: Catalog, common: Point | None, epoch: int) -> bool:
    """Whether what follows a point was written under `epoch`."""
    later = (each.seq for each in points(catalog) if common is None or each.seq > common.seq)
    next_seq = next(later, None)
    under = f"e{epoch:08d}/"
    return any(ref.seq == next_seq and ref.name.startswith(under) for ref in catalog.segments)


def _state_at(chain: Chain, catalog: Catalog, point: Point) -> bytes:
    """Return the state hash at a point, from the smallest segment that ends there."""
    smallest: SegmentRef = min(
        (ref for ref in catalog.segments if ref.seq == point.seq), key=lambda ref: ref.size
    )
    if point.seq == catalog.head.seq:
        return bytes.fromhex(catalog.head.state_hash)
    with tempfile.TemporaryDirectory(prefix="hublet-adopt-") as name:
        (fetched,) = fetch(chain.remote, [smallest], Path(name))
        with open_segment(fetched.path, chain.key, name=smallest.name) as reader:
            return reader.header.post_state
