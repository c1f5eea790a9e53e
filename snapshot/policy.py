"""When a full is due, as a pure function of the chain's figures.

Owns the numbers. A restore reads one full and its tail, so the tail is bounded in count (requests)
and in bytes (work); a tiny hub is spared a full for every few deltas by a floor.
"""

import enum
from dataclasses import dataclass

from snapshot.head import Head


class Due(enum.StrEnum):
    """Why a segment is a full; `DELTA` says that it is none."""

    DELTA = "delta"
    FIRST = "first"
    TAIL = "tail"
    BYTES = "bytes"
    AGE = "age"
    LOG = "log"
    """The store's log does not reach back to HEAD."""
    ASKED = "asked"


@dataclass(frozen=True, slots=True)
class Policy:
    """The bounds of a tail."""

    max_tail: int = 64
    """Deltas after a full."""
    max_delta_ratio: float = 0.5
    """Bytes of deltas, as a part of the full's."""
    delta_floor_bytes: int = 1 << 20
    """Deltas below this many bytes never call for a full by ratio."""
    full_every_ms: int = 3_600_000
    """The age of a full at which the next change brings a new one."""


def next_kind(head: Head, *, now_ms: int, policy: Policy) -> Due:
    """Say whether the next segment after `head` is a delta, or a full and why."""
    if head.full is None:
        return Due.FIRST
    if len(head.tail) >= policy.max_tail:
        return Due.TAIL
    bound = max(policy.delta_floor_bytes, head.full.size * policy.max_delta_ratio)
    if head.delta_bytes > bound:
        return Due.BYTES
    if now_ms - head.full.time_ms >= policy.full_every_ms:
        return Due.AGE
    return Due.DELTA
