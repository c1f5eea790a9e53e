"""Retention on a made-up chain: a position every twelve minutes, a full every two hours."""

import datetime as dt

import msgspec
import pytest

from snapshot.catalog import Catalog
from snapshot.head import Level, ObjectRef, SegmentRef
from snapshot.manifest import Manifest
from snapshot.points import find_path
from snapshot.remote import Entry
from snapshot.retention import Retention, judge
from tests.unit.snapshot.support import HASH, HUB_ID, head

NEWEST, FULL_EVERY = 200, 10
NOW = dt.datetime(2026, 5, 6, tzinfo=dt.UTC)


def ref(level: Level, from_seq: int, seq: int) -> SegmentRef:
    return SegmentRef(
        name=f"e00000001/{level}/{from_seq}-{seq}-{seq:08x}.hs",
        level=level,
        from_seq=from_seq,
        seq=seq,
        from_rev=0 if level == "full" else from_seq,
        to_rev=seq,
        hash=HASH,
        size=1,
        time_ms=seq,
        is_verified=level == "full",
    )


def chain() -> Catalog:
    """Return a catalog in which every full has dropped the one before and its tail."""
    manifests: list[tuple[ObjectRef, Manifest]] = []
    full, tail = ref("full", 1, 1), list[SegmentRef]()
    for seq in range(2, NEWEST + 1):
        tail.append(ref("d0", seq - 1, seq))
        if seq % FULL_EVERY == 0:
            dropped = (full, *tail)
            manifest = Manifest(
                hub_id=HUB_ID, epoch=1, seq=seq, time="", prev=None, segments=dropped
            )
            manifests.insert(0, (ObjectRef(f"manifest/{seq}-00000000.json", HASH), manifest))
            full, tail = ref("full", seq, seq), []
    newest = msgspec.structs.replace(
        head(full=full, tail=tuple(tail)), seq=NEWEST, last_seq=NEWEST, rev=NEWEST
    )
    named = [each for _, manifest in manifests for each in manifest.segments]
    named = sorted([*named, *newest.segments], key=lambda r: (r.seq, r.is_delta, -r.from_seq))
    return Catalog(newest, tuple(named), tuple(manifests))


def entries(catalog: Catalog, *, late_min: int) -> dict[str, Entry]:
    """Return the bucket's list, the newest position being some minutes old."""

    def at(name: str, seq: int) -> Entry:
        age = dt.timedelta(minutes=12 * (NEWEST - seq) + late_min)
        return Entry(name, 1, NOW - age)

    found = {each.name: at(each.name, each.seq) for each in catalog.segments}
    return found | {each.name: at(each.name, m.seq) for each, m in catalog.manifests}


@pytest.mark.parametrize("late_min", [0, 1, 13, 23])
@pytest.mark.parametrize("lost", [70, 80, 90])
def test_what_leads_around_a_lost_full_stays_for_the_window(late_min: int, lost: int) -> None:
    """The full with which the window begins is one that is there."""
    catalog, retention = chain(), Retention()
    there = entries(catalog, late_min=late_min)
    del there[ref("full", lost, lost).name]
    verdict = judge(catalog, there, [], now=NOW, retention=retention)
    assert verdict.names
    left = tuple(e for e in catalog.segments if e.name in there and e.name not in verdict.names)
    oldest = NOW - retention.window
    for each in catalog.segments:
        if each.is_delta and there[each.name].modified >= oldest:
            assert find_path(Catalog(catalog.head, left, ()), each.seq)[-1].seq == each.seq
