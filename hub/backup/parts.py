"""What shipping and tending know of themselves, for the Hub object and the metrics."""

import datetime as dt
from dataclasses import dataclass

from hub.backup.holdings import NOTHING_HELD, Holdings
from snapshot.head import Head
from snapshot.local import Claim
from snapshot.ship import Shipped

MOST_LAG_S = 60.0
"""A segment takes seconds; who is behind for longer is not shipping, error or not."""


@dataclass(frozen=True, slots=True)
class Drilled:
    """The newest restore drill: what was rebuilt beside the store, and whether it was right.

    `problem` "": the state built from the bucket is the one that was shipped.
    """

    at: dt.datetime
    revision: int
    seconds: float
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """The newest comparison of what lies in the bucket with what HEAD and manifests name."""

    at: dt.datetime
    segments: int
    size: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Tended:
    """What tending found out last; None: not looked yet.

    `fencing_level` and `missing`: what the bucket enforces, and what it does not. `trouble`: why
    the last full or merge failed.
    """

    drill: Drilled | None = None
    listed: Listed | None = None
    fencing_level: int | None = None
    missing: tuple[str, ...] = ()
    clock_offset_s: float | None = None
    key_proven: dt.datetime | None = None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Parts:
    """What shipping knows of itself (`Backup.parts`).

    `head`: HEAD as last written, None without an object store or before the epoch was taken.
    `behind_s`: for how long the bucket has lacked something. `trouble`: why the last attempt
    failed; `end`: why there will be no further one. `claim`: what this process was restored from.
    `last_full`: the newest that it shipped itself. `holdings`: what the bucket holds.
    """

    start_kind: str
    has_store: bool
    head: Head | None
    behind: int
    behind_s: float
    trouble: str
    end: str
    claim: Claim | None
    last_full: Shipped | None
    tended: Tended = Tended()
    holdings: Holdings = NOTHING_HELD

    @property
    def is_lagging(self) -> bool:
        """Whether the bucket has lacked something for so long that it is not just under way."""
        return self.behind_s > MOST_LAG_S
