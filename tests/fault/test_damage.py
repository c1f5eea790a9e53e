"""Damage of every kind to a small chain: the right state, or the documented error; never another.

What a restore can still reach without an object is worked out here once more, by brute force.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from snapshot.catalog import load_catalog, salvage_catalog
from snapshot.cleanup import look, propose
from snapshot.errors import (
    ChainBroken,
    HeadCorrupt,
    IntegrityError,
    KeyMismatch,
    NothingToRestore,
    SegmentCorrupt,
    SnapshotError,
    Unreachable,
    UnsupportedFormat,
)
from snapshot.head import Level, SegmentRef
from snapshot.layout import FORMAT, HEAD, is_manifest_name, is_segment_name
from snapshot.listing import check_listing
from snapshot.pins import put_pin
from snapshot.points import AtPosition, Latest, Target, resolve
from snapshot.policy import Merge
from snapshot.restore import restore
from snapshot.retention import Retention
from tests.fault.history import History, Judge, contents_of
from tests.fault.memory_remote import MemoryRemote
from tests.unit.snapshot.support import KEY, StillClock

PAST = 8
"""A position before the last full, reached over a merge."""
EARLY = 3
"""A position in the middle of a merge."""
STRIDE = 61
"""Every so many bytes are flipped where not all are."""


@dataclass(frozen=True, slots=True)
class Rig:
    """The chain, whole; `segments` as they are named, by level and positions."""

    history: History
    judge: Judge
    remote: MemoryRemote
    segments: dict[tuple[Level, int, int], SegmentRef]
    manifests: dict[str, set[str]]
    """The segments that each names."""

    def name(self, level: Level, from_seq: int, seq: int) -> str:
        return self.segments[level, from_seq, seq].name

    def names(self) -> list[str]:
        return [entry.name for entry in self.remote.list()]


async def make_chain(tmp_path: Path, remote: MemoryRemote) -> History:
    """Ship a base, deltas, merges of both kinds, a later full, and more of them; pin a point."""
    history = History(tmp_path / "hub", remote, StillClock())
    (tmp_path / "merges").mkdir()
    history.open()

    async def step(text: str, *names: str) -> None:
        history.clock.pass_s(10)
        await history.put(*names, text=text)
        history.ship()

    def merge(level: Level) -> None:
        parts = tuple(ref for ref in history.head.tail if ref.level == level)
        target: Level = "d1" if level == "d0" else "d2"
        history.merge(Merge(target, parts), tmp_path / "merges" / history.head.nonce)

    await step("first", "secret", *(f"pod-{number}" for number in range(9)))  # 1, a base
    await step("2", "pod-0", "pod-1")
    await history.drop("pod-8")
    await step("3", "pod-0", "secret")
    await step("4", "pod-9")
    merge("d0")  # 1 to 4
    await step("5", "pod-1")
    await step("6", "pod-2", "pod-9")
    merge("d0")  # 4 to 6
    merge("d1")  # 1 to 6
    await step("7", "pod-3")
    await history.drop("pod-4")
    await step("8", "secret")
    merge("d0")  # 6 to 8
    await step("9", "pod-8")
    history.full()  # at 9
    await step("10", "pod-1")
    await step("11", "pod-8", "pod-1")
    merge("d0")  # 9 to 11
    await step("12", "pod-5")
    await history.drop("pod-6")
    await step("13", "secret")
    catalog = load_catalog(remote, history.head, KEY)
    put_pin(remote, "kept", resolve(catalog, AtPosition(PAST)), clock=history.clock)
    await history.close()
    return history


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    remote = MemoryRemote()
    history = asyncio.run(make_chain(tmp_path, remote))
    catalog = load_catalog(remote, history.head, KEY)
    segments = {(ref.level, ref.from_seq, ref.seq): ref for ref in catalog.segments}
    manifests = {
        ref.name: {each.name for each in manifest.segments} for ref, manifest in catalog.manifests
    }
    return Rig(history, Judge(history, tmp_path), remote, segments, manifests)


def reachable(rig: Rig, lost: set[str]) -> set[int]:
    """Return every position that segments which are not lost lead to."""
    whole = [ref for ref in rig.segments.values() if ref.name not in lost]
    found = {ref.seq for ref in whole if not ref.is_delta}
    for _ in whole:
        found |= {ref.seq for ref in whole if ref.is_delta and ref.from_seq in found}
    return found


def check_target(rig: Rig, target: Target, seq: int, lost: set[str]) -> None:
    """Restore a position without what is lost, and hold the outcome against what is to be."""
    still = reachable(rig, lost)
    if seq in still:
        got = rig.judge.obtain(target)
        assert got.point.seq == seq
        assert set(got.damaged) <= lost
        assert not lost & {each.ref.name for each in got.fetched}
        return
    newest = max((each for each in still if each < seq), default=None)
    with pytest.raises(Unreachable) as raised:
        rig.judge.obtain(target)
    assert (raised.value.newest, raised.value.exit_code) == (newest, 4)
    assert raised.value.object in lost
    if newest is None:
        with pytest.raises(Unreachable):
            rig.judge.obtain(target, is_last_consistent=True)
        return
    got = rig.judge.obtain(target, is_last_consistent=True)
    assert got.point.seq == newest
    assert set(got.damaged) & lost


def check_all(rig: Rig, lost: set[str]) -> None:
    """Check every target with some segments lost; the state of a position is never another's."""
    check_target(rig, Latest(), 13, lost)
    check_target(rig, AtPosition(PAST), PAST, lost)
    check_target(rig, AtPosition(EARLY), EARLY, lost)


def put_back(rig: Rig, name: str, data: bytes) -> None:
    rig.remote.delete(name)
    rig.remote.put_if_absent(name, data)


def check_damaged(rig: Rig, name: str, *, is_removed: bool = False) -> None:
    """Check the outcome of every restore with one object damaged, by what it is."""
    if is_segment_name(name):
        check_all(rig, {name})
    elif is_manifest_name(name):
        check_without_manifest(rig, name)
    elif name == HEAD:
        errors = (
            (NothingToRestore,) if is_removed else (HeadCorrupt, UnsupportedFormat, KeyMismatch)
        )
        for target in (Latest(), AtPosition(PAST)):
            with pytest.raises(errors):
                restore(rig.remote, KEY, rig.judge.scratch / "no", clock=StillClock(), to=target)
        assert not (rig.judge.scratch / "no").exists()
    else:
        assert name == FORMAT or name.startswith("pins/")
        check_all(rig, set())


def check_without_manifest(rig: Rig, name: str) -> None:
    """The newest state needs no manifest; the past needs them all, and says which is bad.

    Who is content with less gets the newest point that the others lead to.
    """
    check_target(rig, Latest(), 13, set())
    still = reachable(rig, rig.manifests[name])
    for seq in (PAST, EARLY):
        with pytest.raises((SegmentCorrupt, ChainBroken)) as raised:
            rig.judge.obtain(AtPosition(seq))
        assert (raised.value.object, raised.value.exit_code) == (name, 4)
        newest = max((each for each in still if each <= seq), default=None)
        if newest is None:
            with pytest.raises((Unreachable, NothingToRestore)):
                rig.judge.obtain(AtPosition(seq), is_last_consistent=True)
            continue
        got = rig.judge.obtain(AtPosition(seq), is_last_consistent=True)
        assert (got.point.seq, got.damaged) == (newest, (name,))


def flips(rig: Rig, *, is_soak: bool) -> Iterator[tuple[str, int]]:
    """Yield the bytes to flip: all, or some of every object, first and last among them."""
    for name in rig.names():
        size = len(rig.remote.get(name).data)
        offsets = range(size) if is_soak else {*range(0, size, STRIDE), size - 1}
        yield from ((name, offset) for offset in sorted(offsets))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_flipped_byte_never_gives_another_state(rig: Rig, is_soak: bool) -> None:
    count = 0
    for name, offset in flips(rig, is_soak=is_soak):
        data = rig.remote.get(name).data
        flipped = data[offset] ^ (1 << (offset % 8))
        put_back(rig, name, data[:offset] + bytes([flipped]) + data[offset + 1 :])
        check_damaged(rig, name)
        put_back(rig, name, data)
        count += 1
    print(count, "bytes flipped")
    check_all(rig, set())


def test_a_segment_cut_short_is_gone_around_or_told(rig: Rig) -> None:
    for ref in rig.segments.values():
        data = rig.remote.get(ref.name).data
        for length in (0, 1, 16, 200, len(data) // 2, len(data) - 32, len(data) - 1):
            put_back(rig, ref.name, data[:length])
            check_all(rig, {ref.name})
        put_back(rig, ref.name, data + b"\0")
        check_all(rig, {ref.name})
        put_back(rig, ref.name, data)


def test_a_removed_object_is_gone_around_or_told(rig: Rig) -> None:
    for name in rig.names():
        data = rig.remote.get(name).data
        rig.remote.delete(name)
        check_damaged(rig, name, is_removed=True)
        rig.remote.put_if_absent(name, data)
    check_all(rig, set())


def test_any_two_segments_swapped_are_gone_around_or_told(rig: Rig) -> None:
    names = [ref.name for ref in rig.segments.values()]
    for one in names:
        for other in names[names.index(one) + 1 :]:
            kept = {name: rig.remote.get(name).data for name in (one, other)}
            put_back(rig, one, kept[other])
            put_back(rig, other, kept[one])
            check_all(rig, {one, other})
            for name, data in kept.items():
                put_back(rig, name, data)


def test_a_restore_around_damage_is_the_recorded_state_on_disk(rig: Rig, tmp_path: Path) -> None:
    """What `Judge` proves by its parts, once by the whole way."""
    rig.remote.delete(rig.name("full", 9, 9))
    restored = restore(rig.remote, KEY, tmp_path / "new", clock=StillClock("new"))
    end = rig.history.ends[13]
    assert contents_of(tmp_path / "new" / "store", StillClock()) == (end.state_hash, end.contents)
    assert restored.damaged == (rig.name("full", 9, 9),)
    assert (restored.point.seq, restored.left_behind) == (13, 0)


@pytest.mark.parametrize(
    ("lost", "target", "path"),
    [
        (("d1", 9, 11), 13, ["full 9", "d0 10", "d0 11", "d0 12", "d0 13"]),
        (("full", 9, 9), 13, ["full 1", "d2 6", "d1 8", "d0 9", "d1 11", "d0 12", "d0 13"]),
        (("d2", 1, 6), PAST, ["full 1", "d1 4", "d1 6", "d1 8"]),
        (("d1", 6, 8), PAST, ["full 1", "d2 6", "d0 7", "d0 8"]),
    ],
)
def test_the_fallback_is_the_documented_one(
    rig: Rig, lost: tuple[Level, int, int], target: int, path: list[str]
) -> None:
    rig.remote.delete(rig.name(*lost))
    got = rig.judge.obtain(AtPosition(target))
    assert [f"{each.ref.level} {each.ref.seq}" for each in got.fetched] == path
    assert got.damaged == (rig.name(*lost),)


def test_a_delta_that_a_merge_covers_may_be_lost(rig: Rig) -> None:
    covered = [
        ref
        for ref in rig.segments.values()
        if ref.level in {"d0", "d1"}
        and any(
            each.is_delta and each != ref and each.from_seq <= ref.from_seq and ref.seq <= each.seq
            for each in rig.segments.values()
        )
    ]
    assert len(covered) == 11
    for ref in covered:
        data = rig.remote.get(ref.name).data
        rig.remote.delete(ref.name)
        assert rig.judge.obtain(Latest()).point.seq == 13
        assert rig.judge.obtain(AtPosition(PAST)).point.seq == PAST
        rig.remote.put_if_absent(ref.name, data)


@pytest.mark.parametrize(("seq", "newest"), [(13, 12), (12, 11)])
def test_a_newest_delta_that_is_lost_is_told_with_the_point_before(
    rig: Rig, seq: int, newest: int
) -> None:
    rig.remote.delete(rig.name("d0", seq - 1, seq))
    with pytest.raises(Unreachable, match=f"revision {rig.history.ends[newest].rev} ") as raised:
        rig.judge.obtain(Latest())
    assert (raised.value.newest, raised.value.exit_code) == (newest, 4)
    assert rig.judge.obtain(Latest(), is_last_consistent=True).point.seq == newest


def test_with_the_first_full_lost_nothing_before_the_next_is_reached(rig: Rig) -> None:
    rig.remote.delete(rig.name("full", 0, 1))
    with pytest.raises(Unreachable, match="nothing before it") as raised:
        rig.judge.obtain(AtPosition(PAST), is_last_consistent=True)
    assert raised.value.newest is None
    assert rig.judge.obtain(Latest()).damaged == ()


def test_a_damaged_pin_or_manifest_stops_clean_up(rig: Rig) -> None:
    """Nothing may be let go by one who cannot see all that is to be kept."""
    manifest = next(name for name in rig.names() if is_manifest_name(name))
    for name in ("pins/kept.json", manifest):
        data = rig.remote.get(name).data
        put_back(rig, name, data[:-9])
        with pytest.raises(IntegrityError) as raised:
            propose(rig.remote, look(rig.remote, rig.history.head, KEY), Retention())
        assert raised.value.object == name
        put_back(rig, name, data)


def test_a_changed_head_is_never_believed(rig: Rig) -> None:
    """With the bytes of HEAD exchanged for those of another object, or for none."""
    data = rig.remote.get(HEAD).data
    others = [b"", b"{}", b"null", b"[" * 100_000, *(rig.remote.get(n).data for n in rig.names())]
    for other in (each for each in others if each != data):
        put_back(rig, HEAD, other)
        with pytest.raises(SnapshotError) as raised:
            restore(rig.remote, KEY, rig.judge.scratch / "no", clock=StillClock())
        assert isinstance(raised.value, HeadCorrupt)
    put_back(rig, HEAD, data)


def test_a_look_at_the_bucket_tells_what_is_lost(rig: Rig) -> None:
    head = rig.history.head
    assert check_listing(rig.remote, head, KEY).problem == ""
    in_head = {ref.name for ref in head.segments}
    for name in (*rig.manifests, *(ref.name for ref in rig.segments.values())):
        data = rig.remote.get(name).data
        rig.remote.delete(name)
        found = check_listing(rig.remote, head, KEY)
        assert name in found.problem
        assert found.is_head_hurt == (name in in_head)
        rig.remote.put_if_absent(name, data)


def test_two_manifests_swapped_are_told(rig: Rig) -> None:
    one, other, *_ = rig.manifests
    first, second = rig.remote.get(one).data, rig.remote.get(other).data
    put_back(rig, one, second)
    put_back(rig, other, first)
    with pytest.raises(SegmentCorrupt):
        rig.judge.obtain(AtPosition(PAST))
    catalog = salvage_catalog(rig.remote, rig.history.head, KEY)
    assert one in catalog.damaged
    assert rig.judge.obtain(AtPosition(PAST), is_last_consistent=True).point.seq == PAST
