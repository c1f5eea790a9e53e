"""Copies and moves: whole or not there, and never two chains that go on."""

from pathlib import Path

import pytest

from snapshot.arbiter import Allowed, Takeover
from snapshot.errors import (
    ChainBroken,
    Fenced,
    ForeignPrefix,
    NothingToRestore,
    RemoteUnavailable,
    SegmentCorrupt,
    StartRefused,
)
from snapshot.head import Head, open_head
from snapshot.moving import copy_chain, move_in_from
from snapshot.points import AtPosition
from snapshot.remote import Remote, Source, open_remote
from snapshot.restore import restore
from snapshot.verify import verify
from tests.unit.snapshot.hub import TestHub, serve
from tests.unit.snapshot.support import KEY, FlakyRemote, StillClock

FORCE = Allowed(takeover=Takeover.FORCE)


@pytest.fixture
def target(tmp_path: Path) -> Remote:
    return open_remote((tmp_path / "target").as_uri())


async def fill(hub: TestHub) -> None:
    """Ship three positions."""
    for name in ("a", "secret-b", "c"):
        await hub.put(name)
        assert hub.ship() is not None


@pytest.fixture
async def released(tmp_path: Path, bucket: Remote) -> Head:
    async with serve(tmp_path / "d", bucket) as hub:
        await fill(hub)
        return hub.chain.release()


def head_of(remote: Remote) -> Head:
    return open_head(remote.get("HEAD").data, KEY)


def test_a_copy_holds_the_same_state_and_leaves_the_source_alone(
    tmp_path: Path, bucket: Remote, target: Remote, released: Head
) -> None:
    before = bucket.get("HEAD")
    done = copy_chain(bucket, target, KEY, clock=StillClock("copy"))
    assert bucket.get("HEAD") == before
    assert (done.segments, done.revision, done.epoch) == (3, released.rev, released.epoch)
    found = verify(target, KEY, clock=StillClock(), scratch=tmp_path, deep=True)
    assert found.state_hash == released.state_hash
    head = head_of(target)
    assert head.nonce != released.nonce
    assert (head.segments, head.last_seq, head.released) == (released.segments, 3, True)


def test_a_copy_of_a_point_ends_there(
    tmp_path: Path, bucket: Remote, target: Remote, released: Head
) -> None:
    done = copy_chain(bucket, target, KEY, clock=StillClock("copy"), to=AtPosition(2))
    assert (done.segments, done.revision) == (2, released.segments[1].to_rev)
    head = head_of(target)
    assert (head.seq, head.last_seq, head.reserved_rev) == (2, 3, released.reserved_rev)
    assert verify(target, KEY, clock=StillClock(), scratch=tmp_path, deep=True).revision == head.rev


@pytest.mark.parametrize("after", range(3))
def test_a_copy_that_is_cut_short_is_empty_until_it_is_taken_up_again(
    tmp_path: Path, bucket: Remote, target: Remote, released: Head, after: int
) -> None:
    class Dying(FlakyRemote):
        def put_if_absent(self, name: str, source: Source) -> str:
            if len(list(self.inner.list())) >= after:
                raise RemoteUnavailable("no answer", op="put", object=name)
            return super().put_if_absent(name, source)

    with pytest.raises(RemoteUnavailable):
        copy_chain(bucket, Dying(target), KEY, clock=StillClock("1"))
    with pytest.raises(NothingToRestore):
        verify(target, KEY, clock=StillClock(), scratch=tmp_path)
    copy_chain(bucket, target, KEY, clock=StillClock("2"))
    found = verify(target, KEY, clock=StillClock(), scratch=tmp_path, deep=True)
    assert found.state_hash == released.state_hash


async def test_a_copy_is_brought_up_to_date_by_another(
    tmp_path: Path, bucket: Remote, target: Remote, released: Head
) -> None:
    copy_chain(bucket, target, KEY, clock=StillClock("1"))
    async with serve(tmp_path / "d", bucket, seed="2") as hub:
        await hub.put("later")
        hub.ship()
        newer = hub.chain.release()
    copy_chain(bucket, target, KEY, clock=StillClock("2"))
    assert head_of(target).rev == newer.rev > released.rev


async def test_a_copy_that_somebody_started_on_is_not_replaced(
    tmp_path: Path, bucket: Remote, target: Remote, released: Head
) -> None:
    copy_chain(bucket, target, KEY, clock=StillClock("1"))
    restore(target, KEY, tmp_path / "there", clock=StillClock("r"))
    async with serve(tmp_path / "there", target, seed="2") as hub:
        await hub.put("there")
        hub.ship()
        before = target.get("HEAD")
        with pytest.raises(ForeignPrefix, match="epoch 2"):
            copy_chain(bucket, target, KEY, clock=StillClock("3"))
        assert target.get("HEAD") == before


async def test_another_hubs_prefix_is_never_written_over(
    tmp_path: Path, bucket: Remote, target: Remote, released: Head
) -> None:
    async with serve(tmp_path / "other", target, seed="other") as hub:
        await fill(hub)
        hub.chain.release()
    before = target.get("HEAD")
    with pytest.raises(ForeignPrefix, match="holds hub"):
        copy_chain(bucket, target, KEY, clock=StillClock())
    assert target.get("HEAD") == before


def test_an_object_of_another_size_in_a_segments_place_is_told(
    bucket: Remote, target: Remote, released: Head
) -> None:
    name = released.segments[1].name
    target.put_if_absent(name, b"x")
    with pytest.raises(SegmentCorrupt, match="another object has this name") as caught:
        copy_chain(bucket, target, KEY, clock=StillClock())
    assert caught.value.object == name


def test_an_empty_prefix_cannot_be_copied(bucket: Remote, target: Remote) -> None:
    with pytest.raises(NothingToRestore):
        copy_chain(bucket, target, KEY, clock=StillClock())
    assert list(target.list()) == []


# ---------------------------------------------------------------- moves


def move(bucket: Remote, target: Remote, allowed: Allowed = Allowed()) -> None:  # noqa: B008  frozen
    move_in_from(bucket, target, KEY, clock=StillClock("move"), allowed=allowed)


def test_a_released_chain_moves_and_ends_at_its_source(
    tmp_path: Path, bucket: Remote, target: Remote, released: Head
) -> None:
    move(bucket, target)
    source, moved = head_of(bucket), head_of(target)
    assert (source.moved, source.epoch) == (target.url, released.epoch + 1)
    assert (moved.moved, moved.epoch, moved.released) == ("", source.epoch, True)
    found = verify(target, KEY, clock=StillClock(), scratch=tmp_path, deep=True)
    assert found.state_hash == released.state_hash


async def test_a_move_fences_a_hub_that_still_writes(
    tmp_path: Path, bucket: Remote, target: Remote
) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        await fill(hub)
        with pytest.raises(StartRefused, match="has not released the prefix"):
            move(bucket, target)
        assert list(target.list()) == []
        move(bucket, target, FORCE)
        await hub.put("late")
        with pytest.raises(Fenced, match=f"moved this hub to {target.url}"):
            hub.ship()
    assert head_of(target).rev == hub.chain.head.rev


def test_a_move_that_died_after_the_source_was_ended_is_taken_up_again(
    tmp_path: Path, bucket: Remote, target: Remote, released: Head
) -> None:
    class Dead(FlakyRemote):
        def put_if_absent(self, name: str, source: Source) -> str:
            raise RemoteUnavailable("no answer", op="put", object=name)

    with pytest.raises(RemoteUnavailable):
        move(bucket, Dead(target))
    ended = head_of(bucket)
    assert ended.moved == target.url
    move(bucket, target)
    assert head_of(bucket) == ended
    assert verify(target, KEY, clock=StillClock(), scratch=tmp_path).revision == released.rev


def test_what_was_moved_elsewhere_is_not_moved_twice(
    tmp_path: Path, bucket: Remote, target: Remote, released: Head
) -> None:
    move(bucket, target)
    third = open_remote((tmp_path / "third").as_uri())
    with pytest.raises(StartRefused, match=f"has been moved to {target.url}"):
        move(bucket, third, FORCE)
    assert list(third.list()) == []


@pytest.mark.parametrize(("damage", "says"), [(None, "is missing"), (b"xyz", "3 bytes long")])
def test_a_damaged_chain_is_not_ended_by_a_move_that_cannot_copy_it(
    bucket: Remote, target: Remote, released: Head, damage: bytes | None, says: str
) -> None:
    name = released.segments[1].name
    bucket.delete(name)
    if damage is not None:
        bucket.put_if_absent(name, damage)
    with pytest.raises(ChainBroken, match=says) as caught:
        move(bucket, target)
    assert caught.value.object == name
    assert head_of(bucket) == released
    assert list(target.list()) == []


def test_a_point_that_is_not_there_does_not_end_the_source(
    bucket: Remote, target: Remote, released: Head
) -> None:
    with pytest.raises(NothingToRestore):
        move_in_from(bucket, target, KEY, clock=StillClock(), allowed=FORCE, to=AtPosition(99))
    assert head_of(bucket) == released
