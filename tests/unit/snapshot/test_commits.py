"""What a writer commits beside its deltas: fulls, merges, verdicts, horizons, forks, moves."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from snapshot.catalog import load_catalog
from snapshot.chain import Base, Chain
from snapshot.errors import (
    ChainBroken,
    ChainMoved,
    Fenced,
    HeadGone,
    ObjectMissing,
    RemoteUnavailable,
    SegmentCorrupt,
)
from snapshot.head import Head, SegmentRef
from snapshot.header import Header, Kind
from snapshot.manifest import Manifest, decode_manifest
from snapshot.merging import write_merge
from snapshot.points import points
from snapshot.remote import Remote
from snapshot.segment import Segment
from tests.fault.memory_remote import MemoryRemote
from tests.unit.snapshot.support import (
    HUB_ID,
    KEY,
    FlakyRemote,
    StillClock,
    checkpoint,
    next_segment,
    record,
    take,
    writer,
)


class Hand:
    """Cuts and commits made-up segments on one chain."""

    def __init__(self, chain: Chain, tmp_path: Path) -> None:
        self.chain, self._dir, self._cut = chain, tmp_path, 0

    def path(self) -> Path:
        self._cut += 1
        return self._dir / f"cut-{self._cut}.hs"

    def delta(self) -> Head:
        made = [record("x", self.chain.head.rev + 1)]
        segment = next_segment(self.chain, self.path(), kind=Kind.DELTA, records=made)
        return self.chain.commit_segment(segment, reserved_rev=0)

    def base(self) -> Head:
        made = [record("x", self.chain.head.rev + 1)]
        segment = next_segment(self.chain, self.path(), kind=Kind.FULL, records=made)
        return self.chain.commit_segment(segment, reserved_rev=0)

    def full(self) -> Segment:
        """Cut a checkpoint of HEAD's position."""
        rev = self.chain.head.rev
        return checkpoint(self.chain, self.path(), records=[record("x", rev)])

    def put_full(self) -> SegmentRef:
        return self.chain.put_segment(self.full(), level="full")

    def put_merge(self, parts: tuple[SegmentRef, ...]) -> SegmentRef:
        place = self.path().with_suffix("")
        place.mkdir()
        segment = write_merge(
            self.chain.remote, KEY, parts, place, epoch=1, token=self.chain.clock.token
        )
        return self.chain.put_segment(segment, level="d1")


@pytest.fixture
def hand(chain: Chain, tmp_path: Path) -> Hand:
    """A chain with a base full and four deltas."""
    take(chain)
    made = Hand(chain, tmp_path)
    made.base()
    for _ in range(4):
        made.delta()
    return made


@pytest.fixture
def rival(bucket: Remote) -> Chain:
    return Chain(bucket, KEY, clock=StillClock("rival"))


def manifest_of(chain: Chain) -> Manifest:
    ref = chain.head.manifest
    assert ref is not None
    return decode_manifest(chain.remote.get(ref.name).data, ref, KEY)


def known(chain: Chain) -> set[str]:
    """The segments that HEAD and manifests name."""
    return {ref.name for ref in load_catalog(chain.remote, chain.head, KEY).segments}


def segments_in(remote: Remote) -> set[str]:
    return {entry.name for entry in remote.list() if entry.name.endswith(".hs")}


def place(head: Head) -> tuple[object, ...]:
    return head.seq, head.last_seq, head.rev, head.chain, head.state_hash, head.objects


# ---------------------------------------------------------------- fulls


def test_a_full_that_hangs_at_a_position_does_not_advance_the_chain(hand: Hand) -> None:
    chain = hand.chain
    before = chain.head
    ref = hand.put_full()
    after = chain.commit_full(ref)
    assert place(after) == place(before)
    assert (after.full, after.tail) == (ref, ())
    assert manifest_of(chain).segments == before.segments
    assert known(chain) == segments_in(chain.remote)


def test_deltas_committed_while_a_full_was_put_stay_in_the_tail(hand: Hand) -> None:
    chain = hand.chain
    ref = hand.put_full()
    hand.delta()
    newest = hand.delta()
    after = chain.commit_full(ref)
    assert (after.full, after.tail) == (ref, newest.tail[-2:])
    assert place(after) == place(newest)
    assert hand.delta().seq == newest.seq + 1


def test_a_put_segment_counts_for_nothing(hand: Hand, bucket: Remote) -> None:
    before = bucket.get("HEAD")
    ref = hand.put_full()
    assert bucket.get("HEAD") == before
    assert ref.name not in known(hand.chain)
    assert ref.name in segments_in(bucket)


def test_a_full_whose_position_is_within_a_merge_by_now_is_not_taken(hand: Hand) -> None:
    chain = hand.chain
    ref = hand.put_full()
    hand.delta()
    chain.commit_merge(hand.put_merge(chain.head.tail))
    before = chain.head
    with pytest.raises(ChainMoved, match="no segment of HEAD ends there"):
        chain.commit_full(ref)
    assert chain.head == before


def test_an_older_full_never_replaces_a_newer_one(hand: Hand) -> None:
    chain = hand.chain
    older = hand.put_full()
    hand.delta()
    newer = chain.commit_full(hand.put_full())
    with pytest.raises(ChainMoved):
        chain.commit_full(older)
    assert chain.head == newer


def test_the_same_position_may_get_a_second_full(hand: Hand) -> None:
    """As when the first turns out to be damaged."""
    chain = hand.chain
    first = hand.put_full()
    chain.commit_full(first)
    second = hand.put_full()
    assert second.name != first.name
    assert chain.commit_full(second).full == second
    assert manifest_of(chain).segments == (first,)


def test_a_base_full_drops_all_before_it_into_a_manifest(hand: Hand) -> None:
    before = hand.chain.head
    after = hand.base()
    assert (after.seq, after.tail) == (before.seq + 1, ())
    assert manifest_of(hand.chain).segments == before.segments


def test_a_checkpoint_is_no_link_and_not_committed_as_one(hand: Hand) -> None:
    with pytest.raises(ChainMoved, match="does not continue"):
        hand.chain.commit_segment(hand.full(), reserved_rev=0)


# ---------------------------------------------------------------- merges


def test_a_merge_takes_the_place_of_its_parts(hand: Hand) -> None:
    chain = hand.chain
    before = chain.head
    merged = hand.put_merge(before.tail[1:3])
    after = chain.commit_merge(merged)
    assert after.tail == (before.tail[0], merged, before.tail[3])
    assert place(after) == place(before)
    assert manifest_of(chain).segments == before.tail[1:3]
    assert known(chain) == segments_in(chain.remote)


def test_a_merge_of_what_head_names_no_more_is_not_taken(hand: Hand) -> None:
    chain = hand.chain
    merged = hand.put_merge(chain.head.tail[:2])
    chain.commit_full(hand.put_full())
    before = chain.head
    with pytest.raises(ChainMoved, match="does not name what was merged"):
        chain.commit_merge(merged)
    assert chain.head == before


@pytest.mark.parametrize("facts", [{"from_seq": 3}, {"seq": 3}, {"from_seq": 0}, {"seq": 9}])
def test_a_merge_that_does_not_cover_whole_deltas_is_not_taken(
    hand: Hand, facts: dict[str, int]
) -> None:
    chain = hand.chain
    inner = hand.put_merge(chain.head.tail[1:3])
    chain.commit_merge(inner)
    wrong = msgspec.structs.replace(inner, name="e00000001/d2/1-9-00000000.hs", **facts)
    before = chain.head
    with pytest.raises(ChainMoved):
        chain.commit_merge(wrong)
    assert chain.head == before


def test_manifests_are_a_list_that_leads_back_to_the_first(hand: Hand) -> None:
    chain = hand.chain
    chain.commit_merge(hand.put_merge(chain.head.tail[:2]))
    chain.commit_full(hand.put_full())
    hand.delta()
    hand.base()
    found = load_catalog(chain.remote, chain.head, KEY)
    assert len(found.manifests) == 3
    assert [each.prev for _, each in found.manifests] == [
        *(ref for ref, _ in found.manifests[1:]),
        None,
    ]
    assert known(chain) == segments_in(chain.remote)


# ---------------------------------------------------------------- notes and horizons


def test_a_full_that_was_read_back_is_noted_once(hand: Hand) -> None:
    chain = hand.chain
    before = chain.commit_full(hand.put_full())
    assert before.full is not None
    after = chain.commit_verified(before.full.name)
    assert after.full == msgspec.structs.replace(before.full, is_verified=True)
    assert chain.commit_verified(before.full.name) == after


def test_a_full_that_is_not_heads_any_more_is_not_noted(hand: Hand) -> None:
    chain = hand.chain
    ref = hand.put_full()
    before = chain.head
    assert chain.commit_verified(ref.name) == before


def test_a_verified_full_stays_verified_in_the_manifest(hand: Hand) -> None:
    chain = hand.chain
    ref = hand.put_full()
    chain.commit_full(ref)
    chain.commit_verified(ref.name)
    hand.delta()
    chain.commit_full(hand.put_full())
    assert manifest_of(chain).segments[0].is_verified


def test_a_horizon_leaves_only_what_is_kept_from_before_it(hand: Hand) -> None:
    chain = hand.chain
    first = chain.head.full
    assert first is not None
    chain.commit_full(hand.put_full())
    old = manifest_of(chain)
    hand.delta()
    chain.commit_full(hand.put_full())
    after = chain.commit_horizon(old.seq, (first,))
    found = load_catalog(chain.remote, after, KEY)
    assert after.horizon == old.seq
    assert [each.seq for _, each in found.manifests] == [6]
    assert found.kept == (first,)
    assert {ref.name for ref in old.segments} & {ref.name for ref in found.segments} == {first.name}
    assert chain.commit_horizon(0, (first,)).horizon == old.seq


# ---------------------------------------------------------------- lost answers

Step = Callable[[Hand], Callable[[], Head]]


def _full(hand: Hand) -> Callable[[], Head]:
    ref = hand.put_full()
    return lambda: hand.chain.commit_full(ref)


def _merge(hand: Hand) -> Callable[[], Head]:
    ref = hand.put_merge(hand.chain.head.tail[:3])
    return lambda: hand.chain.commit_merge(ref)


def _verified(hand: Hand) -> Callable[[], Head]:
    full = hand.chain.head.full
    assert full is not None
    return lambda: hand.chain.commit_verified(full.name)


def _horizon(hand: Hand) -> Callable[[], Head]:
    full = hand.chain.head.full
    assert full is not None
    return lambda: hand.chain.commit_horizon(1, (full,))


STEPS: list[Step] = [_full, _merge, _verified, _horizon]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("what", ["HEAD", "manifest/"])
@pytest.mark.parametrize("fault", ["lost", "answer", "late"])
def test_a_commit_without_an_answer_may_be_repeated(
    hand: Hand, flaky: FlakyRemote, step: Step, what: str, fault: str
) -> None:
    chain = hand.chain
    before = chain.head
    commit = step(hand)
    flaky.faults = {what: [fault]}
    try:
        commit()
    except RemoteUnavailable:
        assert chain.head == before
        flaky.land()
        after = commit()
    else:  # HEAD was read back, or the step needs no manifest
        after = chain.head
    assert place(after) == place(before)
    assert chain.read_head() == after
    expected = commit() if step is not _horizon else after
    assert (expected.full, expected.tail) == (after.full, after.tail)
    assert known(chain) >= {ref.name for ref in before.segments}
    assert hand.delta().seq == before.seq + 1


@pytest.mark.parametrize("step", STEPS)
def test_a_commit_that_lands_late_makes_another_one_wait(
    hand: Hand, flaky: FlakyRemote, step: Step
) -> None:
    chain = hand.chain
    commit = step(hand)
    flaky.faults = {"HEAD": ["late"]}
    with pytest.raises(RemoteUnavailable):
        commit()
    flaky.land()
    with pytest.raises(ChainMoved) as caught:
        hand.delta()
    assert caught.value.recoverable
    assert hand.delta().seq == 6
    assert known(chain) >= {ref.name for ref in chain.head.segments}


@pytest.mark.parametrize("step", STEPS)
def test_every_commit_finds_out_that_another_has_the_prefix(
    hand: Hand, rival: Chain, step: Step
) -> None:
    commit = step(hand)
    take(rival, "b")
    with pytest.raises(Fenced, match="dir-b"):
        commit()
    assert rival.read_head() == rival.head


@pytest.mark.parametrize("step", STEPS)
def test_no_commit_makes_a_deleted_head_again(hand: Hand, bucket: Remote, step: Step) -> None:
    commit = step(hand)
    bucket.delete("HEAD")
    with pytest.raises(HeadGone):
        commit()
    with pytest.raises(ObjectMissing):
        bucket.get("HEAD")


def test_another_object_under_a_manifests_name_is_not_taken_for_it(
    hand: Hand, flaky: FlakyRemote, bucket: Remote
) -> None:
    class Squatted(FlakyRemote):
        def put_if_absent(self, name: str, source: bytes | Path) -> str:
            if name.startswith("manifest/"):
                bucket.put_if_absent(name, b"another")
            return super().put_if_absent(name, source)

    ref = hand.put_full()
    before = hand.chain.head
    hand.chain.remote = Squatted(bucket)
    with pytest.raises(SegmentCorrupt, match="another manifest has this name"):
        hand.chain.commit_full(ref)
    hand.chain.remote = flaky
    assert hand.chain.read_head() == before


# ---------------------------------------------------------------- forks and moves


def base_at(head: Head, parts: int) -> Base:
    """The position that HEAD's full and so many of its deltas lead to."""
    assert head.full is not None
    tail = head.tail[:parts]
    end = (head.full, *tail)[-1]
    return Base(
        seq=end.seq,
        rev=end.to_rev,
        chain="ab" * 32,
        state_hash="cd" * 32,
        objects=1,
        full=head.full,
        tail=tail,
    )


def test_an_epoch_from_a_point_in_the_past_leaves_a_branch_and_reuses_no_position(
    hand: Hand, rival: Chain, tmp_path: Path
) -> None:
    seen = rival.read_head()
    assert seen is not None
    base = base_at(seen, 2)
    forked = rival.take_epoch(seen, hub_id=HUB_ID, writer=writer("b"), reserved_rev=0, base=base)
    assert (forked.seq, forked.last_seq, forked.rev) == (base.seq, seen.seq, base.rev)
    assert (forked.chain, forked.tail) == (base.chain, base.tail)
    assert forked.fork is not None
    assert (forked.fork.seq, forked.fork.base_seq) == (seen.seq, base.seq)
    assert (forked.fork.rev, forked.fork.chain, forked.fork.epoch) == (seen.rev, seen.chain, 1)
    assert forked.branches == (forked.fork,)
    assert forked.reserved_rev == seen.reserved_rev
    assert manifest_of(rival).segments == seen.segments
    delta = Hand(rival, tmp_path / "rival")
    (tmp_path / "rival").mkdir()
    newest = delta.delta()
    assert (newest.tail[-1].from_seq, newest.seq) == (base.seq, seen.seq + 1)


def test_an_epoch_from_heads_own_position_is_no_branch(hand: Hand, rival: Chain) -> None:
    seen = rival.read_head()
    assert seen is not None
    base = base_at(seen, len(seen.tail))
    after = rival.take_epoch(seen, hub_id=HUB_ID, writer=writer("b"), reserved_rev=0, base=base)
    assert place(after) == place(seen)
    assert (after.branches, after.manifest) == ((), None)


def test_no_branch_that_was_left_behind_comes_back_among_the_points(hand: Hand) -> None:
    """However often somebody went back since: a time would mean a state of another history."""
    chain = hand.chain
    for turn in range(40):
        seen = chain.read_head()
        assert seen is not None
        base = base_at(seen, min(turn, 1))
        chain.take_epoch(seen, hub_id=HUB_ID, writer=writer(f"w{turn}"), reserved_rev=0, base=base)
        hand.delta()
    head = chain.head
    assert (head.last_seq, head.branches[-1].epoch) == (45, 40)
    found = points(load_catalog(chain.remote, head, chain.key))
    assert [point.seq for point in found] == [ref.seq for ref in head.segments]


class Careless(MemoryRemote):
    """A server that takes a condition and does not look at it."""

    def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
        del etag
        self.delete(name)
        return self.put_if_absent(name, source)


def test_on_a_bucket_that_ignores_conditions_the_old_writer_still_finds_out(tmp_path: Path) -> None:
    bucket = Careless()
    chain, rival = (Chain(bucket, KEY, clock=StillClock(seed)) for seed in ("old", "new"))
    take(chain)
    hand = Hand(chain, tmp_path)
    hand.base()
    chain.looks_first = True
    hand.delta()
    taken = take(rival, "b")
    with pytest.raises(Fenced):
        hand.delta()
    assert rival.read_head() == taken
    chain.remote.delete("HEAD")
    rival.looks_first = True
    with pytest.raises(HeadGone):
        rival.confirm()


def test_a_move_ends_the_chain_for_a_live_writer(hand: Hand, rival: Chain) -> None:
    seen = rival.read_head()
    assert seen is not None
    moved = rival.mark_moved("s3://elsewhere/hub")
    assert (moved.epoch, moved.released, moved.moved) == (2, True, "s3://elsewhere/hub")
    assert place(moved) == place(seen)
    with pytest.raises(Fenced, match="whoever moved this hub to s3://elsewhere/hub"):
        hand.chain.confirm()


def test_a_move_that_another_write_overtakes_is_decided_on_again(hand: Hand, rival: Chain) -> None:
    rival.read_head()
    hand.delta()
    with pytest.raises(ChainMoved):
        rival.mark_moved("s3://elsewhere/hub")
    assert hand.chain.confirm().moved == ""


def test_what_reads_only_may_not_commit(hand: Hand, bucket: Remote) -> None:
    reader = Chain(bucket, KEY, clock=StillClock("reader"))
    with pytest.raises(ValueError, match="HEAD has not been read"):
        _ = reader.head
    with pytest.raises(ValueError, match="HEAD has not been read"):
        reader._swap(hand.chain.head, op="test")
    reader.read_head()
    full = reader.head.full
    assert full is not None
    commits: list[Callable[[], Head]] = [
        lambda: reader.commit_full(full),
        lambda: reader.commit_merge(full),
        lambda: reader.commit_verified(full.name),
        lambda: reader.commit_segment(hand.full(), reserved_rev=0),
        reader.confirm,
        reader.release,
    ]
    for commit in commits:
        with pytest.raises(ValueError, match="has not taken an epoch"):
            commit()


def test_the_same_head_under_another_etag_is_written_on_the_next_try(
    hand: Hand, bucket: Remote
) -> None:
    """As after a bucket was copied or put back as it was."""
    chain = hand.chain
    assert chain._held is not None
    chain._held = replace(chain._held, etag="another")
    before = chain.head
    with pytest.raises(RemoteUnavailable, match="was not replaced"):
        chain.confirm()
    assert chain.confirm().seq == before.seq


def test_a_catalog_tells_of_a_manifest_that_is_gone(hand: Hand, bucket: Remote) -> None:
    chain = hand.chain
    chain.commit_full(hand.put_full())
    ref = chain.head.manifest
    assert ref is not None
    bucket.delete(ref.name)
    with pytest.raises(ChainBroken, match="a manifest is missing") as caught:
        load_catalog(bucket, chain.head, KEY)
    assert caught.value.object == ref.name


def test_the_chain_goes_through_links_only() -> None:
    """Merges and checkpoints carry the chain of their end instead."""
    made = Header(
        kind=Kind.MERGE,
        hub_id=HUB_ID,
        epoch=1,
        from_seq=2,
        seq=5,
        from_rev=2,
        to_rev=5,
        objects=1,
        time_ms=0,
        prev_chain=b"p" * 32,
        end_chain=b"e" * 32,
        pre_state=bytes(32),
        post_state=bytes(32),
    )
    full = replace(made, kind=Kind.FULL, from_seq=5, from_rev=0)
    base = replace(made, kind=Kind.FULL, from_seq=4, from_rev=0)
    delta = replace(made, kind=Kind.DELTA, from_seq=4)
    assert [each.is_link for each in (made, full, base, delta)] == [False, False, True, True]
    assert made.chain_after(b"h" * 32) == full.chain_after(b"h" * 32) == b"e" * 32
    assert base.chain_after(b"h" * 32) == delta.chain_after(b"h" * 32) != b"e" * 32
