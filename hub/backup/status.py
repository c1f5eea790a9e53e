"""What a hub says of itself, as values: the content of Hub and HubSnapshot.

Owns the shape and nothing else: who knows the facts fills it (`hub.backup.report`), and
`hub.backup.wire` writes it as objects. None and "" are "not known", and are left out of them.
"""

import datetime as dt
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Truth: TypeAlias = Literal["True", "False", "Unknown"]
SegmentKind: TypeAlias = Literal["full", "d0", "d1", "d2"]

BACKUP_HEALTHY = "BackupHealthy"
CHAIN_VERIFIED = "ChainVerified"
FENCING_ENFORCED = "FencingEnforced"
RECOVERY_KEY_PROVEN = "RecoveryKeyProven"
SETTLED = "Settled"
NO_DIFFERENCES = "NoDifferences"
CONDITIONS = (
    BACKUP_HEALTHY,
    CHAIN_VERIFIED,
    FENCING_ENFORCED,
    RECOVERY_KEY_PROVEN,
    SETTLED,
    NO_DIFFERENCES,
)
"""Every type there is; all are good when True."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One aspect, now. Since when it is so is the keeper's (`hub.backup.objects`)."""

    type: str
    status: Truth
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Identity:
    """Which hub this is."""

    hub_id: str
    version: str
    url: str


@dataclass(frozen=True, slots=True)
class StartStatus:
    """How this process began."""

    kind: str
    at: dt.datetime
    source: str = ""
    takeover: str = ""
    restored_from: str = ""
    restored_revision: int | None = None


@dataclass(frozen=True, slots=True)
class PositionStatus:
    """Where the durable state stands."""

    revision: int
    state_hash: str
    objects: int


@dataclass(frozen=True, slots=True)
class ShippedStatus:
    """How far the bucket is."""

    revision: int
    seq: int
    at: dt.datetime | None


@dataclass(frozen=True, slots=True)
class LagStatus:
    """What the bucket does not have, and for how long."""

    revisions: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class FullStatus:
    """The newest full; `seconds` None when another process cut it."""

    revision: int
    at: dt.datetime
    size: int
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class DrillStatus:
    """The newest drill."""

    revision: int
    at: dt.datetime
    seconds: float
    result: str


@dataclass(frozen=True, slots=True)
class FencingStatus:
    """What the bucket enforces; `level` None = not known."""

    level: int | None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClustersStatus:
    """Which of the clusters known at the start have been heard since."""

    expected: int = 0
    returned: int = 0
    seconds_to_50: float | None = None
    seconds_to_95: float | None = None
    seconds_to_100: float | None = None


@dataclass(frozen=True, slots=True)
class HubStatus:
    """The status of the Hub object."""

    identity: Identity
    start: StartStatus
    position: PositionStatus
    epoch: int = 0
    writer: str = ""
    shipped: ShippedStatus | None = None
    lag: LagStatus = field(default_factory=LagStatus)
    last_full: FullStatus | None = None
    last_drill: DrillStatus | None = None
    fencing: FencingStatus = field(default_factory=lambda: FencingStatus(None))
    clusters: ClustersStatus = field(default_factory=ClustersStatus)
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class SnapshotPoint:
    """A point that the hub can be restored to."""

    kind: SegmentKind
    epoch: int
    seq: int
    revision: int
    at: dt.datetime
    size: int
    object_name: str
    is_verified: bool = False
    is_pinned: bool = False
