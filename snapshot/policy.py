"""When a full or a merge is due, as pure functions of what HEAD names.

Owns the numbers. A restore reads one full and its tail, so the tail is bounded in count (requests)
and in bytes (work): deltas are merged after five minutes, those merges after an hour, and a full
every hour begins anew. A tiny hub is spared a full for every few deltas by a floor.
"""

import enum
from dataclasses import dataclass

from snapshot.head import Head, Level, SegmentRef


class Due(enum.StrEnum):
    """Why a segment was cut."""

    DELTA = "delta"
    FIRST = "first"
    LOG = "log"
    """The store's log does not reach back to HEAD."""
    BYTES = "bytes"
    AGE = "age"
    ASKED = "asked"
    DAMAGED = "damaged"
    """What HEAD names cannot be read back whole."""
    MERGE = "merge"


@dataclass(frozen=True, slots=True)
class Policy:
    """The bounds of a tail."""

    max_d0: int = 64
    """Deltas at which they are merged before their time."""
    d1_every_ms: int = 300_000
    """The age of the oldest delta at which they are merged."""
    max_d1: int = 12
    """Merges at which they are merged again before their time."""
    d2_every_ms: int = 3_600_000
    max_delta_ratio: float = 0.5
    """Bytes of the tail, as a part of the full's."""
    delta_floor_bytes: int = 1 << 20
    """A tail below this many bytes never calls for a full by ratio."""
    full_every_ms: int = 3_600_000
    """The age of a full at which a change since brings a new one."""


@dataclass(frozen=True, slots=True)
class Merge:
    """Deltas of the tail, next to one another, that are to become one."""

    level: Level
    parts: tuple[SegmentRef, ...]


def full_due(head: Head, *, now_ms: int, policy: Policy) -> Due | None:
    """Say why a full is due, if one is."""
    if head.full is None:
        return Due.FIRST
    bound = max(policy.delta_floor_bytes, head.full.size * policy.max_delta_ratio)
    if head.delta_bytes > bound:
        return Due.BYTES
    if head.tail and now_ms - head.full.time_ms >= policy.full_every_ms:
        return Due.AGE
    return None


def merge_due(head: Head, *, now_ms: int, policy: Policy) -> Merge | None:
    """Return the merge that is due, the small ones first."""
    d0 = [ref for ref in head.tail if ref.level == "d0"]
    d1 = [ref for ref in head.tail if ref.level == "d1"]
    if _is_due(d0, now_ms=now_ms, most=policy.max_d0, every_ms=policy.d1_every_ms):
        return Merge("d1", tuple(d0))
    if _is_due(d1, now_ms=now_ms, most=policy.max_d1, every_ms=policy.d2_every_ms):
        return Merge("d2", tuple(d1))
    return None


def _is_due(parts: list[SegmentRef], *, now_ms: int, most: int, every_ms: int) -> bool:
    is_old = len(parts) > 1 and now_ms - parts[0].time_ms >= every_ms
    return is_old or len(parts) >= most
