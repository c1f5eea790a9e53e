"""What the parts of a hub know, put together as `HubStatus` and as restorable points.

Owns the judgement behind each condition. What nothing in the hub finds out yet (drills, the probe
of the bucket, proofs of the recovery key, differences after a restore) is Unknown, never True.
"""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

from hub.backup.parts import Parts
from hub.backup.runner import Backup
from hub.backup.status import (
    BACKUP_HEALTHY,
    CHAIN_VERIFIED,
    FENCING_ENFORCED,
    NO_DIFFERENCES,
    RECOVERY_KEY_PROVEN,
    SETTLED,
    ClustersStatus,
    Condition,
    FencingStatus,
    FullStatus,
    HubStatus,
    Identity,
    LagStatus,
    PositionStatus,
    ShippedStatus,
    SnapshotPoint,
    StartStatus,
    Truth,
)
from hub.fleet.returns import Returns
from hub.store import Store
from snapshot.head import Head, SegmentRef

_NO_STORE = "NoObjectStore"
_RESTORED = "restored"


@dataclass(frozen=True, slots=True)
class Report:
    """The sources of a hub's status.

    `held_s`: for how much longer the controllers that delete are held.
    """

    backup: Backup
    store: Store
    returns: Returns
    identity: Identity
    started: dt.datetime
    held_s: Callable[[], float]

    def status(self) -> HubStatus:
        """Return what the hub knows of itself now."""
        parts, position = self.backup.parts(), self.store.position
        head = parts.head
        return HubStatus(
            identity=self.identity,
            epoch=0 if head is None else head.epoch,
            writer="" if head is None else head.writer.describe(),
            start=self._start(parts),
            position=PositionStatus(position.revision, position.state_hash.hex(), position.count),
            shipped=None if head is None else _shipped(head),
            lag=LagStatus(parts.behind, parts.behind_s),
            last_full=_last_full(parts),
            fencing=FencingStatus(None if parts.has_store else 0),
            clusters=_clusters(self.returns),
            conditions=tuple(self._conditions(parts)),
        )

    def points(self) -> list[SnapshotPoint]:
        """Return the points that HEAD tells of."""
        head = self.backup.parts().head
        return [] if head is None else points_of(head)

    def _start(self, parts: Parts) -> StartStatus:
        claim = parts.claim
        return StartStatus(
            kind=parts.start_kind,
            at=self.started,
            restored_from="" if claim is None else claim.object_store,
            restored_revision=None if claim is None else claim.rev,
        )

    def _conditions(self, parts: Parts) -> list[Condition]:
        is_restored = parts.start_kind == _RESTORED
        return [
            _healthy(parts),
            _of_store(parts, CHAIN_VERIFIED, "NotVerified", "no drill has been run yet"),
            _fencing(parts),
            _key(is_restored=is_restored),
            _settled(self.held_s()),
            _differences(is_restored=is_restored),
        ]


def _healthy(parts: Parts) -> Condition:
    if not parts.has_store:
        message = "nothing is shipped: what this machine loses is lost; give --object-store"
        return Condition(BACKUP_HEALTHY, "False", _NO_STORE, message)
    if parts.end:
        return Condition(BACKUP_HEALTHY, "False", "Ended", parts.end)
    if parts.trouble:
        return Condition(BACKUP_HEALTHY, "False", "NotShipping", parts.trouble)
    if parts.head is None or parts.head.full is None:
        return Condition(BACKUP_HEALTHY, "Unknown", "Starting", "the first full is on its way")
    return Condition(BACKUP_HEALTHY, "True", "Shipping", "changes reach the object store")


def _of_store(parts: Parts, type_: str, reason: str, message: str) -> Condition:
    """Return a condition that nothing here judges yet."""
    if parts.has_store:
        return Condition(type_, "Unknown", reason, message)
    return Condition(type_, "Unknown", _NO_STORE, "there is no object store")


def _fencing(parts: Parts) -> Condition:
    if not parts.has_store:
        message = "without an object store nothing keeps two copies of this hub apart"
        return Condition(FENCING_ENFORCED, "False", _NO_STORE, message)
    return _of_store(parts, FENCING_ENFORCED, "NotProbed", "what the store enforces is not probed")


def _key(*, is_restored: bool) -> Condition:
    if is_restored:
        message = "this hub was restored with the key that it has"
        return Condition(RECOVERY_KEY_PROVEN, "True", "RestoredWithIt", message)
    message = "prove the copy that is kept elsewhere with: hub-restore keycheck"
    return Condition(RECOVERY_KEY_PROVEN, "Unknown", "NotProven", message)


def _settled(held_s: float) -> Condition:
    if held_s > 0:
        message = "restored: nothing is deleted yet for what the restored state does not know"
        return Condition(SETTLED, "False", "HeldAfterRestore", message)
    return Condition(SETTLED, "True", "NothingHeld", "all controllers run")


def _differences(*, is_restored: bool) -> Condition:
    status: Truth = "Unknown" if is_restored else "True"
    reason = "NotCompared" if is_restored else "NotRestored"
    message = "what agents have has not been compared" if is_restored else "no restore, no gap"
    return Condition(NO_DIFFERENCES, status, reason, message)


def _shipped(head: Head) -> ShippedStatus:
    newest = head.segments[-1] if head.segments else None
    return ShippedStatus(head.rev, head.seq, None if newest is None else _cut_at(newest))


def _last_full(parts: Parts) -> FullStatus | None:
    if parts.head is None or parts.head.full is None:
        return None
    full, ours = parts.head.full, parts.last_full
    is_ours = ours is not None and ours.name == full.name
    seconds = ours.cut_s + ours.put_s if ours is not None and is_ours else None
    return FullStatus(full.to_rev, _cut_at(full), full.size, seconds)


def _clusters(returns: Returns) -> ClustersStatus:
    seconds = returns.seconds_to
    return ClustersStatus(
        returns.expected,
        returns.returned,
        seconds_to_50=seconds.get(50),
        seconds_to_95=seconds.get(95),
        seconds_to_100=seconds.get(100),
    )


def points_of(head: Head) -> list[SnapshotPoint]:
    """Return the points that HEAD's own segments end at, oldest first."""
    first = head.seq - len(head.segments) + 1
    return [
        SnapshotPoint(
            kind="full" if ref is head.full else "d0",
            epoch=_epoch_of(ref),
            seq=first + place,
            revision=ref.to_rev,
            at=_cut_at(ref),
            size=ref.size,
            object_name=ref.name,
        )
        for place, ref in enumerate(head.segments)
    ]


def _epoch_of(ref: SegmentRef) -> int:
    """Return the epoch that a segment's name begins with, ``e00000007/``."""
    return int(ref.name.partition("/")[0].removeprefix("e"))


def _cut_at(ref: SegmentRef) -> dt.datetime:
    return dt.datetime.fromtimestamp(ref.time_ms / 1000, dt.UTC)
