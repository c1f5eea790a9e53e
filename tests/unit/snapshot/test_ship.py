"""Shipping: what is cut, when, and what is left behind."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hub.store import Closed, Position, Revision
from snapshot.errors import ChainMoved, RemoteUnavailable, SegmentCorrupt, SnapshotError
from snapshot.header import Kind
from snapshot.points import AtPosition
from snapshot.policy import Due
from snapshot.remote import Remote
from snapshot.restore import restore
from snapshot.ship import (
    FullBegun,
    Shipped,
    begin_full,
    put_full,
    read_back,
    ship_base,
    ship_delta,
    ship_full,
)
from snapshot.verify import verify
from tests.unit.snapshot.hub import serve
from tests.unit.snapshot.support import KEY, FlakyRemote, StillClock, next_segment, record


async def test_the_first_segment_is_a_full_and_the_next_a_delta(
    tmp_path: Path, bucket: Remote
) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        await hub.put("a", "b")
        full = hub.ship()
        await hub.put("c", "a")
        delta = hub.ship()
        position = hub.store.position
    assert full is not None
    assert delta is not None
    assert (full.level, full.because, full.records, full.to_rev) == ("full", Due.FIRST, 2, 2)
    assert (delta.level, delta.records, delta.from_rev, delta.to_rev) == ("d0", 2, 2, 4)
    head = hub.chain.head
    assert (head.rev, head.state_hash) == (position.revision, position.state_hash.hex())
    assert head.objects == position.count == 3
    assert head.reserved_rev > head.rev


async def test_no_change_means_no_segment(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        await hub.put("a")
        hub.ship()
        before = bucket.get("HEAD")
        assert hub.ship() is None
        assert ship_full(hub.store, hub.chain, tmp_path / "s") is None
        assert ship_delta(hub.store, hub.chain, hub.chain.head.rev, tmp_path / "s") is None
    assert bucket.get("HEAD") == before


async def test_a_key_written_often_is_shipped_once(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        await hub.put("a")
        hub.ship()
        for n in range(5):
            await hub.put("a", text=str(n))
        await hub.put("gone")
        await hub.drop("gone")
        delta = hub.ship()
    assert delta is not None
    assert delta.records == 2


async def test_a_long_tail_is_left_to_merges_and_a_full_that_is_asked_for_ends_it(
    tmp_path: Path, bucket: Remote
) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        levels = []
        for n in range(70):
            await hub.put(f"a{n}")
            shipped = hub.ship()
            assert shipped is not None
            levels.append(shipped.level)
        before = hub.chain.head
        full = ship_full(hub.store, hub.chain, hub.spool)
        after = hub.chain.head
    assert levels == ["full"] + ["d0"] * 69
    assert full is not None
    assert (full.level, full.because) == ("full", Due.ASKED)
    assert (after.seq, after.chain, after.rev) == (before.seq, before.chain, before.rev)
    assert (after.tail, after.segments[0].name) == ((), full.name)
    assert verify(bucket, KEY, clock=StillClock(), scratch=tmp_path, deep=True).segments == 1


async def test_a_compacted_log_brings_a_full(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        await hub.put("a")
        hub.ship()
        await hub.put("b")
        await hub.put("c")
        await hub.store.compact_log(Revision(2))
        shipped = hub.ship()
    assert shipped is not None
    assert (shipped.level, shipped.because, shipped.records) == ("full", Due.LOG, 3)


async def test_a_new_data_key_brings_a_full_that_has_it(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        await hub.put("secret-a")
        hub.ship()
        await hub.put("b")
        hub.ship()
        await hub.store.rotate_data_key(KEY)
        await hub.put("secret-a", "secret-c")
        full = hub.ship()
        await hub.put("secret-d")
        delta = hub.ship()
        expected = hub.contents()
    assert full is not None
    assert delta is not None
    assert (full.level, full.because, delta.level) == ("full", Due.LOG, "d0")
    done = restore(bucket, KEY, tmp_path / "new", clock=StillClock())
    assert done.objects == 4
    async with serve(tmp_path / "new", bucket) as again:
        assert again.contents() == expected
        assert again.store._shared.codecs.keys.current == 2


async def test_a_bucket_that_is_away_costs_nothing_but_time(
    tmp_path: Path, flaky: FlakyRemote
) -> None:
    async with serve(tmp_path / "d", flaky) as hub:
        for part in (".hs", "HEAD"):
            for fault in ("lost", "answer", "late"):
                await hub.put("a", text=f"{part} {fault}")
                flaky.faults = {part: [fault]}
                try:
                    hub.ship()
                except RemoteUnavailable:
                    flaky.land()
                    _ship_until_done(hub.ship)
                assert hub.chain.head.rev == hub.store.position.revision
        assert list((hub.directory / "spool").iterdir()) == []
    assert verify(flaky, KEY, clock=StillClock(), scratch=tmp_path, deep=True).objects == 1


def _ship_until_done(ship: Callable[[], Shipped | None]) -> None:
    """Ship again as the runner does: at most one cut is lost to a write that landed late."""
    try:
        ship()
    except ChainMoved:
        ship()


async def test_what_a_crash_left_in_the_spool_is_swept(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        spool = hub.directory / "spool"
        spool.mkdir()
        (spool / "ship-dead.hs").write_bytes(b"x")
        (spool / "other").write_bytes(b"x")
        await hub.put("a")
        hub.ship()
        assert [each.name for each in spool.iterdir()] == ["other"]


async def test_a_store_behind_its_head_is_not_shipped(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        await hub.put("a")
        hub.ship()

    class Behind:
        def export_full(self) -> object:
            raise AssertionError("not asked")

        def export_delta(self, after: Revision) -> object:
            from hub.store import DeltaExport

            return DeltaExport(after, Position(Revision(0), bytes(32), 0), [])

    with pytest.raises(SnapshotError, match="HEAD at 1"):
        ship_delta(Behind(), hub.chain, 1, tmp_path / "s")  # type: ignore[arg-type]  # half a store
    with pytest.raises(ValueError, match="begins at HEAD"):
        ship_delta(Behind(), hub.chain, 0, tmp_path / "s")  # type: ignore[arg-type]  # half a store


# ---------------------------------------------------------------- fulls beside deltas


async def test_a_full_hangs_where_it_was_begun_whatever_is_shipped_meanwhile(
    tmp_path: Path, bucket: Remote
) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        await hub.put("a")
        hub.ship()
        await hub.put("b")
        begun = begin_full(hub.store, hub.chain, hub.spool)
        assert isinstance(begun, FullBegun)
        assert begun.delta is not None
        assert (begun.delta.level, hub.chain.head.seq) == ("d0", 2)
        await hub.put("c", "a", text="meanwhile")
        hub.ship()
        put = put_full(begun, hub.chain, hub.spool)
        await hub.put("d")
        hub.ship()
        head = hub.chain.commit_full(put.ref)
        assert (put.ref.seq, put.ref.to_rev, put.shipped.records) == (2, 2, 2)
        assert [(ref.from_seq, ref.seq) for ref in head.tail] == [(2, 3), (3, 4)]
        assert head.state_hash == hub.store.position.state_hash.hex()
        assert read_back(hub.chain, put.ref, hub.spool)
        assert list(hub.spool.iterdir()) == []
    found = verify(bucket, KEY, clock=StillClock(), scratch=tmp_path, deep=True)
    assert (found.segments, found.state_hash) == (3, head.state_hash)
    for seq in (1, 2, 3, 4):
        verify(bucket, KEY, clock=StillClock(), scratch=tmp_path, deep=True, to=AtPosition(seq))


async def test_a_full_without_a_change_since_the_last_delta_ships_no_delta(
    tmp_path: Path, bucket: Remote
) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        await hub.put("a")
        hub.ship()
        await hub.put("b")
        hub.ship()
        begun = begin_full(hub.store, hub.chain, hub.spool)
        assert isinstance(begun, FullBegun)
        assert begun.delta is None
        begun.close()
        begun.close()
        assert begin_full(hub.store, hub.chain, hub.spool) is not None


async def test_a_full_over_a_compacted_log_is_a_base(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        await hub.put("a")
        hub.ship()
        await hub.put("b")
        await hub.put("c")
        await hub.store.compact_log(Revision(2))
        shipped = begin_full(hub.store, hub.chain, hub.spool)
        assert isinstance(shipped, Shipped)
        full = hub.chain.head.full
        assert full is not None
        assert (shipped.because, shipped.name) == (Due.LOG, full.name)
        assert (full.from_seq, full.seq) == (1, 2)
        assert ship_base(hub.store, hub.chain, hub.spool, because=Due.LOG) is None
    verify(bucket, KEY, clock=StillClock(), scratch=tmp_path, deep=True)


async def test_a_first_full_is_a_base_however_it_is_asked_for(
    tmp_path: Path, bucket: Remote
) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        await hub.put("a")
        shipped = ship_full(hub.store, hub.chain, hub.spool)
        assert shipped is not None
        assert (shipped.because, hub.chain.head.seq) == (Due.FIRST, 1)


async def test_an_empty_store_has_a_full_too(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        full = hub.ship()
        assert full is not None
        assert (full.level, full.records, full.to_rev) == ("full", 0, 0)
        assert hub.ship() is None
    assert verify(bucket, KEY, clock=StillClock(), scratch=tmp_path, deep=True).objects == 0


async def test_a_full_that_fails_half_way_leaves_no_transaction_and_no_file(
    tmp_path: Path, flaky: FlakyRemote
) -> None:
    async with serve(tmp_path / "d", flaky) as hub:
        await hub.put("a")
        hub.ship()
        await hub.put("b")
        flaky.faults = {"d0/": ["lost"]}
        with pytest.raises(RemoteUnavailable):
            begin_full(hub.store, hub.chain, hub.spool)
        flaky.faults = {"full/": ["lost"]}
        begun = begin_full(hub.store, hub.chain, hub.spool)
        assert isinstance(begun, FullBegun)
        with pytest.raises(RemoteUnavailable):
            put_full(begun, hub.chain, hub.spool)
        assert list(hub.spool.iterdir()) == []
        with pytest.raises((Closed, StopIteration)):
            next(iter(begun.export.records))
        assert ship_full(hub.store, hub.chain, hub.spool) is not None


async def test_a_full_of_another_state_than_heads_is_not_begun(
    tmp_path: Path, bucket: Remote
) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        await hub.put("a")
        hub.ship()
        await hub.put("b")
        made = next_segment(
            hub.chain, tmp_path / "x.hs", kind=Kind.DELTA, records=[record("ghost", 2)]
        )
        hub.chain.commit_segment(made, reserved_rev=0)
        with pytest.raises(SnapshotError, match="hold different states at revision 2"):
            begin_full(hub.store, hub.chain, hub.spool)


async def test_a_segment_that_reads_back_otherwise_is_told(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        await hub.put("a")
        hub.ship()
        full = hub.chain.head.full
        assert full is not None
        other = msgspec.structs.replace(full, hash="22" * 32)
        assert read_back(hub.chain, full, hub.spool)
        assert not read_back(hub.chain, other, hub.spool)
        assert not read_back(hub.chain, msgspec.structs.replace(full, size=1), hub.spool)
        data = bucket.get(full.name).data
        bucket.delete(full.name)
        bucket.put_if_absent(full.name, data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(SegmentCorrupt):
            read_back(hub.chain, full, hub.spool)
        assert list(hub.spool.iterdir()) == []
