"""Merging in the bucket: one segment that says what its parts said."""

import random
from pathlib import Path

import pytest

from hub.store import Record, stored_key
from snapshot.chain import Chain
from snapshot.errors import ChainBroken, SegmentCorrupt
from snapshot.head import Level, SegmentRef
from snapshot.header import Kind
from snapshot.merge import merge
from snapshot.merging import write_merge
from snapshot.remote import Remote
from snapshot.segment import Segment, open_segment
from snapshot.verify import verify
from tests.unit.snapshot.hub import TestHub, serve
from tests.unit.snapshot.support import KEY, StillClock, next_segment, record, take


def write(chain: Chain, parts: tuple[SegmentRef, ...], place: Path, *, epoch: int = 1) -> Segment:
    place.mkdir()
    return write_merge(
        chain.remote, KEY, parts, place, epoch=epoch, token=StillClock("merge").token
    )


def records_of(segment: Segment) -> list[Record]:
    with open_segment(segment.path, KEY) as reader:
        return list(reader.records())


def commit(
    hub: TestHub, parts: tuple[SegmentRef, ...], place: Path, *, level: Level = "d1"
) -> SegmentRef:
    segment = write(hub.chain, parts, place)
    merged = hub.chain.put_segment(segment, level=level)
    hub.chain.commit_merge(merged)
    return merged


@pytest.fixture
def deltas(chain: Chain, tmp_path: Path) -> tuple[SegmentRef, ...]:
    """Three deltas after a base: writes, writes again, deletions, and a revival."""
    take(chain)
    steps = [
        (Kind.FULL, [record("a", 1), record("b", 2)]),
        (Kind.DELTA, [record("c", 3), record("a", 4, b"again")]),
        (Kind.DELTA, [record("a", 5, None), record("b", 6, None), record("z", 7)]),
        (Kind.DELTA, [record("b", 8, b"back"), record("c", 9, None)]),
    ]
    for number, (kind, made) in enumerate(steps):
        segment = next_segment(chain, tmp_path / f"{number}.hs", kind=kind, records=made)
        chain.commit_segment(segment, reserved_rev=0)
    return chain.head.tail


def test_a_merge_has_the_last_write_to_each_key_and_keeps_deletions(
    chain: Chain, tmp_path: Path, deltas: tuple[SegmentRef, ...]
) -> None:
    segment = write(chain, deltas, tmp_path / "m")
    assert [(record.key[-1:], record.revision, record.raw) for record in records_of(segment)] == [
        (b"a", 5, None),
        (b"b", 8, b"back"),
        (b"c", 9, None),
        (b"z", 7, b"value"),
    ]


def test_a_merge_stands_exactly_where_its_parts_stood(
    chain: Chain, tmp_path: Path, deltas: tuple[SegmentRef, ...]
) -> None:
    facts = write(chain, deltas[1:], tmp_path / "m", epoch=7).header
    head = chain.head
    assert (facts.kind, facts.epoch, facts.is_link) == (Kind.MERGE, 7, False)
    assert (facts.from_seq, facts.seq) == (deltas[1].from_seq, deltas[2].seq)
    assert (facts.from_rev, facts.to_rev) == (deltas[1].from_rev, deltas[2].to_rev)
    assert facts.end_chain.hex() == head.chain
    assert facts.post_state.hex() == head.state_hash


@pytest.mark.parametrize("split", [1, 2])
def test_a_merge_of_merges_is_the_merge_of_all(
    chain: Chain, tmp_path: Path, deltas: tuple[SegmentRef, ...], split: int
) -> None:
    at_once = write(chain, deltas, tmp_path / "all")
    halves = []
    for number, parts in enumerate((deltas[:split], deltas[split:])):
        half = write(chain, parts, tmp_path / f"half-{number}")
        halves.append(chain.put_segment(half, level="d1"))
    twice = write(chain, tuple(halves), tmp_path / "twice")
    assert records_of(twice) == records_of(at_once)
    assert twice.header == at_once.header


@pytest.mark.parametrize("seed", range(8))
async def test_a_merged_chain_restores_to_the_same_state(
    tmp_path: Path, bucket: Remote, seed: int
) -> None:
    """Random writes and deletions, shipped, merged at random, and rebuilt from the bucket."""
    draw = random.Random(seed)
    async with serve(tmp_path / "d", bucket) as hub:
        alive = {"a", "secret-1", "k" * 600}
        await hub.put(*sorted(alive))
        hub.ship()
        for step in range(9):
            name = draw.choice([*sorted(alive), "b", "d", "secret-2"])
            if name in alive and draw.random() < 0.5:
                await hub.drop(name)
                alive.discard(name)
            name = draw.choice(["a", "b", "d", "secret-2"])
            await hub.put(name, text=str(step))
            alive.add(name)
            hub.ship()
            if step % 3 == 2:
                d0 = tuple(ref for ref in hub.chain.head.tail if ref.level == "d0")
                commit(hub, d0, tmp_path / f"m{step}")
        commit(hub, hub.chain.head.tail[:2], tmp_path / "hour", level="d2")
        head = hub.chain.head
        assert [ref.level for ref in head.tail] == ["d2", "d1"]
        assert (head.rev, head.state_hash) == (
            hub.store.position.revision,
            hub.store.position.state_hash.hex(),
        )
    done = verify(bucket, KEY, clock=StillClock(), scratch=tmp_path, deep=True)
    assert (done.segments, done.state_hash, done.damaged) == (3, head.state_hash, ())


def test_the_state_after_a_merge_is_the_state_after_its_parts(
    chain: Chain, tmp_path: Path, deltas: tuple[SegmentRef, ...]
) -> None:
    full = [record("a", 1), record("b", 2)]
    parts = []
    for number, ref in enumerate(deltas):
        path = tmp_path / f"part-{number}.hs"
        chain.remote.get_to_file(ref.name, path)
        with open_segment(path, KEY) as reader:
            parts.append(list(reader.records()))
    merged = records_of(write(chain, deltas, tmp_path / "m"))
    assert list(merge(full, [merged])) == list(merge(full, parts))
    assert [stored_key(each.key) for each in merged] == sorted(
        stored_key(each.key) for each in merged
    )


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("damage", ["missing", "flipped", "cut short"])
def test_a_damaged_part_ends_the_merge_and_is_named(
    chain: Chain, tmp_path: Path, deltas: tuple[SegmentRef, ...], which: int, damage: str
) -> None:
    bucket, name = chain.remote, deltas[which].name
    data = bucket.get(name).data
    bucket.delete(name)
    if damage != "missing":
        flipped = data[:-40] + bytes([data[-40] ^ 1]) + data[-39:]
        bucket.put_if_absent(name, flipped if damage == "flipped" else data[:-1])
    with pytest.raises(ChainBroken if damage == "missing" else SegmentCorrupt) as caught:
        write(chain, deltas, tmp_path / "m")
    assert caught.value.object == name
    assert not (tmp_path / "m" / "merge.hs").exists()


def test_parts_that_are_no_neighbours_are_not_merged(
    chain: Chain, tmp_path: Path, deltas: tuple[SegmentRef, ...]
) -> None:
    for number, parts in enumerate([(deltas[0], deltas[2]), deltas[::-1]]):
        with pytest.raises(ChainBroken, match="does not continue"):
            write(chain, parts, tmp_path / f"m{number}")
    with pytest.raises(ChainBroken, match="no segments"):
        write(chain, (), tmp_path / "none")


def test_a_full_is_not_merged(chain: Chain, tmp_path: Path, deltas: tuple[SegmentRef, ...]) -> None:
    full = chain.head.full
    assert full is not None
    with pytest.raises(ChainBroken, match="a full is among the deltas"):
        write(chain, (full, *deltas), tmp_path / "m")
