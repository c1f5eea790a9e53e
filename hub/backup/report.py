"""What the parts of a hub know, put together as `HubStatus` and as restorable points.

Owns the judgement behind each condition. What has not been found out yet (the first drill, the
probe of the bucket, a proof of the key) is Unknown, never True.
"""

import datetime as dt
from dataclasses import dataclass

from hub.backup.holdings import Holdings
from hub.backup.parts import MOST_LAG_S, Parts
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
    DrillStatus,
    FencingStatus,
    FullStatus,
    HubStatus,
    Identity,
    LagStatus,
    PositionStatus,
    ShippedStatus,
    SnapshotPoint,
    StartStatus,
)
from hub.fleet.differences import Differences, Summary
from hub.registry.hold import Hold
from hub.store import Store
from snapshot.head import Head, SegmentRef

_NO_STORE = "NoObjectStore"


@dataclass(frozen=True, slots=True)
class Report:
    """The sources of a hub's status."""

    backup: Backup
    store: Store
    hold: Hold
    differences: Differences
    identity: Identity
    started: dt.datetime
    source: str
    takeover: str

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
            last_drill=_last_drill(parts),
            fencing=_fencing_status(parts),
            clusters=_clusters(self.hold),
            conditions=tuple(self._conditions(parts)),
        )

    def points(self) -> list[SnapshotPoint]:
        """Return the points that the bucket holds, as far as they may be listed."""
        parts = self.backup.parts()
        return [] if parts.head is None else points_of(parts.holdings.with_head(parts.head))

    def _start(self, parts: Parts) -> StartStatus:
        claim = parts.claim
        return StartStatus(
            kind=parts.start_kind,
            at=self.started,
            source=self.source,
            takeover=self.takeover,
            restored_from="" if claim is None else claim.object_store,
            restored_revision=None if claim is None else (claim.base or claim).rev,
        )

    def _conditions(self, parts: Parts) -> list[Condition]:
        return [
            _healthy(parts),
            _verified(parts),
            _fencing(parts),
            _key(parts),
            _settled(self.hold),
            _differences(self.differences.summary()),
        ]


def _healthy(parts: Parts) -> Condition:
    if not parts.has_store:
        message = "nothing is shipped: what this machine loses is lost; give --object-store"
        return Condition(BACKUP_HEALTHY, "False", _NO_STORE, message)
    if parts.end:
        return Condition(BACKUP_HEALTHY, "False", "Ended", parts.end)
    if parts.trouble:
        return Condition(BACKUP_HEALTHY, "False", "NotShipping", parts.trouble)
    if parts.is_lagging:
        message = f"the object store has lacked changes for over {MOST_LAG_S:.0f} s, without error"
        return Condition(BACKUP_HEALTHY, "False", "Lagging", message)
    if parts.tended.trouble:
        return Condition(BACKUP_HEALTHY, "False", "NotTended", parts.tended.trouble)
    if parts.head is None or parts.head.full is None:
        return Condition(BACKUP_HEALTHY, "Unknown", "Starting", "the first full is on its way")
    return Condition(BACKUP_HEALTHY, "True", "Shipping", "changes reach the object store")


def _verified(parts: Parts) -> Condition:
    """Judge the newest drill, and the newest look at what lies in the bucket."""
    drill, listed = parts.tended.drill, parts.tended.listed
    if not parts.has_store:
        return Condition(CHAIN_VERIFIED, "Unknown", _NO_STORE, "there is no object store")
    if listed is not None and listed.problem:
        return Condition(CHAIN_VERIFIED, "False", "ObjectsAmiss", listed.problem)
    if drill is None:
        return Condition(CHAIN_VERIFIED, "Unknown", "NotVerified", "no drill has been run yet")
    if drill.problem:
        return Condition(CHAIN_VERIFIED, "False", "DrillFailed", drill.problem)
    message = f"revision {drill.revision} was rebuilt from the bucket and is what was shipped"
    return Condition(CHAIN_VERIFIED, "True", "DrillPassed", message)


def _fencing(parts: Parts) -> Condition:
    if not parts.has_store:
        message = "without an object store nothing keeps two copies of this hub apart"
        return Condition(FENCING_ENFORCED, "False", _NO_STORE, message)
    if parts.tended.fencing_level is None:
        message = "what the store enforces is being probed"
        return Condition(FENCING_ENFORCED, "Unknown", "NotProbed", message)
    if parts.tended.missing:
        missing = "; ".join(parts.tended.missing)
        return Condition(FENCING_ENFORCED, "False", "FencingDegraded", missing)
    message = "of two writers the object store refuses one"
    return Condition(FENCING_ENFORCED, "True", "Enforced", message)


def _key(parts: Parts) -> Condition:
    if parts.tended.key_proven is not None:
        message = "the key file has opened the newest snapshot"
        return Condition(RECOVERY_KEY_PROVEN, "True", "DrillPassed", message)
    if parts.claim is not None:
        message = "this hub was restored with the key that it has"
        return Condition(RECOVERY_KEY_PROVEN, "True", "RestoredWithIt", message)
    message = "no drill has used it yet; prove the copy kept elsewhere with: hub-restore keycheck"
    return Condition(RECOVERY_KEY_PROVEN, "Unknown", "NotProven", message)


def _settled(hold: Hold) -> Condition:
    if not hold.is_over:
        message = "restored: nothing is deleted yet for what the restored state does not know"
        return Condition(SETTLED, "False", "HeldAfterRestore", message)
    return Condition(SETTLED, "True", "NothingHeld", "all controllers run")


def _differences(found: Summary) -> Condition:
    if found.has_differences:
        reason = "AgentsAhead" if found.clusters_ahead else "DifferencesFound"
        return Condition(NO_DIFFERENCES, "False", reason, found.message)
    return Condition(NO_DIFFERENCES, "True", "NoneSeen", found.message)


def _last_drill(parts: Parts) -> DrillStatus | None:
    drill = parts.tended.drill
    if drill is None:
        return None
    return DrillStatus(drill.revision, drill.at, drill.seconds, drill.problem or "passed")


def _fencing_status(parts: Parts) -> FencingStatus:
    if not parts.has_store:
        return FencingStatus(0)
    return FencingStatus(parts.tended.fencing_level, parts.tended.missing)


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


def _clusters(hold: Hold) -> ClustersStatus:
    seconds = hold.seconds
    return ClustersStatus(
        hold.expected,
        hold.returned,
        seconds_to_50=seconds.get(50),
        seconds_to_95=seconds.get(95),
        seconds_to_100=seconds.get(100),
    )


def points_of(holdings: Holdings) -> list[SnapshotPoint]:
    """Return the points that segments end at, oldest first."""
    return [
        SnapshotPoint(
            kind=ref.level,
            epoch=_epoch_of(ref),
            seq=ref.seq,
            revision=ref.to_rev,
            at=_cut_at(ref),
            size=ref.size,
            object_name=ref.name,
            is_verified=ref.is_verified,
            is_pinned=ref.name in holdings.pinned,
        )
        for ref in holdings.segments
    ]


def _epoch_of(ref: SegmentRef) -> int:
    """Return the epoch that a segment's name begins with, ``e00000007/``."""
    return int(ref.name.partition("/")[0].removeprefix("e"))


def _cut_at(ref: SegmentRef) -> dt.datetime:
    return dt.datetime.fromtimestamp(ref.time_ms / 1000, dt.UTC)
