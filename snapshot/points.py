"""Points in time: from "yesterday at noon" to the segments that lead there.

Owns two pure questions: which position of the chain a target means, and which segments a restore of
it reads. Only ends of segments can be restored; a time or revision between two means the one
before. Positions on a branch that a fork left behind are met by number only.

>>> parse_target("latest"), parse_target("1200"), parse_target("@7")
(Latest(), AtRevision(revision=1200), AtPosition(seq=7))
>>> parse_target("2026-12-01T03:15:00Z")
AtTime(time_ms=1796094900000)
"""

import bisect
import datetime as dt
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from snapshot.catalog import Catalog
from snapshot.errors import NothingToRestore, TargetUnclear, Unreachable
from snapshot.head import Fork, Head, SegmentRef

_SEE_POINTS = "hub-restore list --from URL --key-file KEY --all shows every point"


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest state."""


@dataclass(frozen=True, slots=True)
class AtRevision:
    """The newest state at or before a revision."""

    revision: int


@dataclass(frozen=True, slots=True)
class AtTime:
    """The newest state at or before a time, Unix milliseconds."""

    time_ms: int


@dataclass(frozen=True, slots=True)
class AtPosition:
    """The state at a position of the chain, on whatever branch."""

    seq: int


Target: TypeAlias = Latest | AtRevision | AtTime | AtPosition


@dataclass(frozen=True, slots=True)
class Point:
    """A position that can be restored; `note` says where it is not exactly what was asked."""

    seq: int
    rev: int
    time_ms: int
    note: str = ""

    @property
    def time(self) -> str:
        """RFC 3339, UTC, to the millisecond."""
        return render_time(self.time_ms)


def parse_target(text: str) -> Target:
    """Read ``latest``, a revision, ``@position``, or a time (RFC 3339; without zone: UTC).

    Raises `TargetUnclear`.
    """
    if text == "latest":
        return Latest()
    if text.isascii() and text.isdigit():
        return AtRevision(int(text))
    if text.startswith("@") and text[1:].isascii() and text[1:].isdigit():
        return AtPosition(int(text[1:]))
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise TargetUnclear(f"{text!r} is no point in time", op="plan") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return AtTime(int(moment.timestamp() * 1000))


def render_time(time_ms: int) -> str:
    """Return Unix milliseconds as RFC 3339, UTC."""
    moment = dt.datetime.fromtimestamp(time_ms / 1000, dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def line(end: int, branches: Iterable[Fork]) -> Iterator[range]:
    """Yield the stretches of positions in the past of position `end`, the newest first.

    `branches` in the order in which they came. A fork may go on from a branch that was left behind
    before, so how far positions were given out then is more than where the fork was made.

    >>> first = Fork(epoch=1, seq=9, rev=90, chain="0" * 64, base_seq=4)
    >>> again = Fork(epoch=2, seq=4, rev=40, chain="0" * 64, base_seq=2)
    >>> back = Fork(epoch=3, seq=2, rev=20, chain="0" * 64, base_seq=7)
    >>> list(line(12, [first])), list(line(9, [first]))
    ([range(10, 13), range(0, 5)], [range(0, 10)])
    >>> list(line(12, [first, again])), list(line(12, [first, again, back]))
    ([range(10, 13), range(0, 3)], [range(10, 13), range(0, 8)])
    """
    forks = list(branches)
    given = list(itertools.accumulate((fork.seq for fork in forks), max))
    for fork, last in zip(reversed(forks), reversed(given), strict=True):
        if last < end:  # else it came after `end` was reached
            yield range(last + 1, end + 1)
            end = fork.base_seq
    yield range(end + 1)


def on_line(seq: int, *, end: int, branches: Iterable[Fork]) -> bool:
    """Whether position `seq` is in the past of position `end`.

    >>> left = Fork(epoch=1, seq=9, rev=90, chain="0" * 64, base_seq=4)
    >>> [on_line(seq, end=12, branches=[left]) for seq in (4, 5, 9, 10)]
    [True, False, False, True]
    """
    return any(seq in stretch for stretch in line(end, branches))


def left_behind(head: Head, base_seq: int) -> int:
    """Return how many positions of HEAD's past are not in the past of `base_seq`."""
    kept = list(line(base_seq, head.branches))
    return sum(
        len(stretch) - sum(_overlap(stretch, each) for each in kept)
        for stretch in line(head.seq, head.branches)
    )


def _overlap(one: range, other: range) -> int:
    return len(range(max(one.start, other.start), min(one.stop, other.stop)))


def points(catalog: Catalog, *, end: int | None = None) -> list[Point]:
    """Return every end of a segment in the past of `end` (default: HEAD's), oldest first."""
    head = catalog.head
    past = list(line(head.seq if end is None else end, catalog.branches))
    found: dict[int, Point] = {}
    for ref in catalog.segments:
        if any(ref.seq in stretch for stretch in past):
            found[ref.seq] = Point(ref.seq, ref.to_rev, ref.time_ms)
    return [found[seq] for seq in sorted(found)]


def resolve(catalog: Catalog, target: Target) -> Point:
    """Return the point a target means.

    Raises `NothingToRestore` when there is none that old, or the position never was.
    """
    head = catalog.head
    if isinstance(target, AtPosition):
        return _at_position(catalog, target.seq)
    known = points(catalog)
    if isinstance(target, Latest):
        return known[-1]
    asked, at_or_before, is_exact = _at_or_before(known, target)
    if not at_or_before:
        oldest = known[0]
        raise NothingToRestore(
            f"nothing is as old as {asked}: the oldest is revision {oldest.rev} of {oldest.time}",
            op="plan",
            hint=_SEE_POINTS,
        )
    found = at_or_before[-1]
    if is_exact:
        return found
    note = f"{asked} lies between two segments: revision {found.rev} of {found.time} is before it"
    if found.seq == head.seq:
        note = f"{asked} is after the newest: revision {found.rev} of {found.time}"
    return Point(found.seq, found.rev, found.time_ms, note)


def _at_or_before(known: list[Point], target: AtRevision | AtTime) -> tuple[str, list[Point], bool]:
    """Return how the target reads, the points up to it, and whether the last is exactly it."""
    if isinstance(target, AtRevision):
        found = [each for each in known if each.rev <= target.revision]
        return (
            f"revision {target.revision}",
            found,
            found[-1:] != [] and (found[-1].rev == target.revision),
        )
    found = [each for each in known if each.time_ms <= target.time_ms]
    is_exact = found[-1:] != [] and found[-1].time_ms == target.time_ms
    return render_time(target.time_ms), found, is_exact


def find_path(
    catalog: Catalog, seq: int, *, bad: frozenset[str] = frozenset()
) -> tuple[SegmentRef, ...]:
    """Return the full and the deltas that lead to a position, around segments that are `bad`.

    The newest full from which it can be reached, then as few segments as possible. Raises
    `Unreachable`, which names the newest position that can be.
    """
    path = _path(catalog, seq, bad)
    if path:
        return path
    reached = _reachable(catalog, seq, bad)
    before = (p for p in reversed(points(catalog, end=seq)) if p.seq in reached)
    newest = next(before, None)
    lost = ", ".join(sorted(bad)) or "a segment"
    reachable = f"revision {newest.rev} of {newest.time}" if newest else "nothing before it"
    raise Unreachable(
        f"position {seq} cannot be reached without {lost}; {reachable} can",
        op="plan",
        object=min(bad) if bad else "",
        newest=newest.seq if newest else None,
    )


def _path(catalog: Catalog, seq: int, bad: frozenset[str]) -> tuple[SegmentRef, ...]:
    """Go back from a position to the nearest full from which it is reached."""
    past = list(line(seq, catalog.branches))
    onward: dict[int, list[SegmentRef]] = {}
    last = bisect.bisect_right(catalog.segments, seq, key=lambda ref: ref.seq)
    for at in range(last - 1, -1, -1):
        ref = catalog.segments[at]
        if ref.name in bad or not any(ref.seq in stretch for stretch in past):
            continue
        if ref.is_delta:
            onward.setdefault(ref.from_seq, []).append(ref)
            continue
        came = _spread({ref.seq}, onward)
        if seq == ref.seq or seq in came:
            return (ref, *_steps(came, seq, start=ref.seq))
    return ()


def _reachable(catalog: Catalog, end: int, bad: frozenset[str]) -> set[int]:
    """Return every position in the past of `end` that can be restored."""
    past = list(line(end, catalog.branches))
    starts: set[int] = set()
    onward: dict[int, list[SegmentRef]] = {}
    for ref in catalog.segments:
        if ref.name in bad or not any(ref.seq in stretch for stretch in past):
            continue
        if ref.is_delta:
            onward.setdefault(ref.from_seq, []).append(ref)
        else:
            starts.add(ref.seq)
    return starts | set(_spread(starts, onward))


def _spread(starts: set[int], onward: dict[int, list[SegmentRef]]) -> dict[int, SegmentRef]:
    """Return by which delta each position is first reached, breadth first."""
    came: dict[int, SegmentRef] = {}
    frontier = list(starts)
    while frontier:
        reached: list[int] = []
        for at in frontier:
            for ref in onward.get(at, ()):
                if ref.seq not in came and ref.seq not in starts:
                    came[ref.seq] = ref
                    reached.append(ref.seq)
        frontier = reached
    return came


def _steps(came: dict[int, SegmentRef], end: int, *, start: int) -> list[SegmentRef]:
    steps: list[SegmentRef] = []
    at = end
    while at != start:
        steps.append(came[at])
        at = came[at].from_seq
    return steps[::-1]


def _at_position(catalog: Catalog, seq: int) -> Point:
    for ref in catalog.segments:
        if ref.seq == seq:
            return Point(seq, ref.to_rev, ref.time_ms)
    before = points(catalog, end=seq) if catalog.damaged else []
    if before:
        last = before[-1]
        note = f"a manifest of position {seq} is lost: {last.seq} is the newest known before it"
        return Point(last.seq, last.rev, last.time_ms, note)
    raise NothingToRestore(f"no segment ends at position {seq}", op="plan", hint=_SEE_POINTS)


def newest_point(head: Head) -> Point:
    """Return where HEAD stands; it names at least one segment."""
    last = head.segments[-1]
    return Point(head.seq, head.rev, last.time_ms)
