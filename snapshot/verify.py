"""Verification: read everything back that a restore would need, and say what was proven.

Owns the ladder's two upper rungs: every segment's hash, seal, order and place in the chain; and
with `deep` a store built from them in a scratch directory, whose state hash must be HEAD's.
"""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hub.clock import Clock
from hub.store import HubKey
from snapshot.chain import Chain
from snapshot.plan import Fetched, Progress, obtain, require_full
from snapshot.points import Latest, Point, Target
from snapshot.remote import Remote
from snapshot.restore import build
from snapshot.segment import open_segment


@dataclass(frozen=True, slots=True)
class Verified:
    """What was read back and found whole; `records` counts them over all segments."""

    hub_id: str
    epoch: int
    revision: int
    state_hash: str
    objects: int
    segments: int
    records: int
    size: int
    is_deep: bool
    point: Point
    damaged: tuple[str, ...]
    """Segments that are missing or altered, and were gone around."""
    seconds: dict[str, float] = field(default_factory=dict)


def verify(
    remote: Remote,
    key: HubKey,
    *,
    clock: Clock,
    scratch: Path | None = None,
    deep: bool = False,
    to: Target = Latest(),  # noqa: B008  frozen
    progress: Progress | None = None,
) -> Verified:
    """Verify what a restore of `to` reads; raises `IntegrityError` when it cannot be restored.

    `scratch`: a directory with room for the segments (and with `deep` for the store); default the
    system's temporary one. Also raises `NothingToRestore`, `KeyMismatch`, `RemoteError`.
    """
    head = require_full(Chain(remote, key, clock=clock).read_head(), remote)
    seconds: dict[str, float] = {}
    began_s = clock.monotonic_s()
    with tempfile.TemporaryDirectory(prefix="hublet-verify-", dir=scratch) as name:
        place = Path(name)
        obtained = obtain(remote, key, head, place, target=to, progress=progress)
        records = sum(_read_through(each, key) for each in obtained.fetched)
        seconds["read"] = clock.monotonic_s() - began_s
        if deep:
            deep_s = clock.monotonic_s()
            build(place / "store", obtained, key, dir_id=clock.uid(), progress=progress)
            seconds["build"] = clock.monotonic_s() - deep_s
    seconds["total"] = clock.monotonic_s() - began_s
    base = obtained.base
    return Verified(
        hub_id=head.hub_id,
        epoch=head.epoch,
        revision=base.rev,
        state_hash=base.state_hash,
        objects=base.objects,
        segments=len(obtained.fetched),
        records=records,
        size=obtained.size,
        is_deep=deep,
        point=obtained.point,
        damaged=obtained.damaged,
        seconds=seconds,
    )


def _read_through(each: Fetched, key: HubKey) -> int:
    """Open every frame and record of a segment."""
    with open_segment(each.path, key, name=each.ref.name) as reader:
        return sum(1 for _ in reader.records())
