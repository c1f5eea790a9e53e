"""Retention: which points are kept, as a pure decision.

Owns the rules. Everything of the last day is kept, so that any point of it can be restored; of
older fulls one a day for a week and one a week for five; pinned points always; never fewer than
three fulls that were read back whole. Ages are by the bucket's clock (`modified` of each object
against an object written now), so that a hub with a wrong clock expires nothing.

What goes, goes by whole manifests from the oldest on: `horizon` is the last of them, and what is
kept from before it is carried into a manifest of its own.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from snapshot.catalog import Catalog
from snapshot.errors import IntegrityError
from snapshot.head import SegmentRef
from snapshot.layout import is_manifest_name, is_segment_name
from snapshot.pins import Pin
from snapshot.points import find_path, line
from snapshot.remote import Entry


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept, and for how long."""

    window: dt.timedelta = dt.timedelta(hours=24)
    """Every point this young can be restored."""
    daily: int = 7
    weekly: int = 5
    min_verified: int = 3
    """Fulls that were read back whole and stay whatever their age."""
    min_age: dt.timedelta = dt.timedelta(hours=6)
    """Nothing younger is deleted, and nothing before it has been planned for so long."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What may go: `names` of objects, once HEAD names `horizon` and `kept`."""

    horizon: int
    kept: tuple[SegmentRef, ...]
    names: tuple[str, ...]
    orphans: tuple[str, ...]
    """Objects that nothing ever named, or names no more."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing goes."""
        return not self.names and not self.orphans


def judge(
    catalog: Catalog,
    entries: Mapping[str, Entry],
    pins: Iterable[Pin],
    *,
    now: dt.datetime,
    retention: Retention,
    planned: frozenset[str] = frozenset(),
) -> Verdict:
    """Say what may go. `entries`: all that lies in the bucket; `planned`: what is to go already."""
    start = _start(catalog, entries, now - retention.window)
    horizon = _horizon(catalog, start)
    below = {
        ref.name: ref
        for _, manifest in catalog.manifests
        if manifest.seq <= horizon
        for ref in manifest.segments
    }
    below |= {ref.name: ref for ref in catalog.kept}
    in_head = {ref.name for ref in catalog.head.segments}
    above = {
        ref.name
        for _, manifest in catalog.manifests
        if manifest.seq > horizon
        for ref in manifest.segments
    }
    wanted = _wanted(catalog, entries, pins, start=start, retention=retention)
    wanted -= in_head | above
    kept = tuple(ref for ref in below.values() if ref.name in wanted)
    gone = set(below) - in_head - above - {ref.name for ref in kept}
    manifests = {ref.name for ref, manifest in catalog.manifests if manifest.seq <= horizon}
    if catalog.head.kept is not None and (gone or manifests):
        manifests.add(catalog.head.kept.name)
    return Verdict(
        horizon,
        kept,
        tuple(sorted((gone | manifests) & set(entries))),
        _orphans(catalog, entries, now - retention.min_age, planned),
    )


def _start(catalog: Catalog, entries: Mapping[str, Entry], oldest: dt.datetime) -> int:
    """Return the position of the full from which every point of the window is reached.

    It is older than the window, so that the state at the window's start keeps its time too; and it
    is there: where one was lost, the way around it begins with the full before.
    """
    named = [ref for _, manifest in catalog.manifests for ref in manifest.segments]
    young = [
        ref.from_seq
        for ref in (*named, *catalog.head.segments)
        if ref.name in entries and entries[ref.name].modified >= oldest
    ]
    first = min(young, default=catalog.head.seq)
    past = list(line(first, catalog.branches))
    old = [
        ref.seq
        for ref in catalog.segments
        if not ref.is_delta
        and ref.name in entries
        and entries[ref.name].modified < oldest
        and any(ref.seq in stretch for stretch in past)
    ]
    return max(old, default=0)


def _horizon(catalog: Catalog, start: int) -> int:
    """Return the newest position up to which no manifest names what comes after `start`.

    It stays below the newest position: the next manifest may be of that one.
    """
    needed = [m.seq for _, m in catalog.manifests if any(ref.seq > start for ref in m.segments)]
    first = min(needed, default=catalog.head.last_seq)
    return max((m.seq for _, m in catalog.manifests if m.seq < first), default=catalog.head.horizon)


def _wanted(
    catalog: Catalog,
    entries: Mapping[str, Entry],
    pins: Iterable[Pin],
    *,
    start: int,
    retention: Retention,
) -> set[str]:
    """Return the names of what retention keeps by age, number or pin."""
    fulls = [ref for ref in catalog.segments if not ref.is_delta and ref.name in entries]
    fulls.sort(key=lambda ref: (entries[ref.name].modified, ref.seq), reverse=True)
    verified = [ref for ref in fulls if ref.is_verified]
    wanted = {ref.name for ref in verified[: retention.min_verified]}
    if len(verified) < retention.min_verified:
        wanted |= {ref.name for ref in fulls}
    wanted |= {ref.name for ref in fulls if ref.seq == start}
    for days, count in ((1, retention.daily), (7, retention.weekly)):
        slots: dict[int, str] = {}
        for ref in fulls:
            slots.setdefault(entries[ref.name].modified.toordinal() // days, ref.name)
        wanted |= set(list(slots.values())[:count])
    for pin in pins:
        wanted |= _pinned(catalog, pin)
    return wanted


def _pinned(catalog: Catalog, pin: Pin) -> set[str]:
    """Return what leads to a pinned point; nothing when that is gone already."""
    try:
        return {ref.name for ref in find_path(catalog, pin.seq)}
    except IntegrityError:
        return {ref.name for ref in catalog.segments if ref.seq == pin.seq}


def _orphans(
    catalog: Catalog, entries: Mapping[str, Entry], before: dt.datetime, planned: frozenset[str]
) -> tuple[str, ...]:
    known = catalog.names() | planned
    return tuple(
        sorted(
            name
            for name, entry in entries.items()
            if (is_segment_name(name) or is_manifest_name(name))
            and name not in known
            and entry.modified < before
        )
    )
