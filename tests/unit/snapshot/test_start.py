"""The start: which steps are durable before which, so that a crash between any two is harmless."""

import json
import shutil
from pathlib import Path

import pytest

from hub.store import Position, Revision
from snapshot import local
from snapshot.arbiter import Adopt, Allowed, Continue, Create, Refuse, TakeClaim, Takeover
from snapshot.chain import Chain
from snapshot.errors import (
    CatchUpNeeded,
    ChainMoved,
    Fenced,
    IntegrityError,
    RemoteUnavailable,
    StartRefused,
)
from snapshot.remote import Remote
from snapshot.restore import restore
from snapshot.start import RESERVE, Begun, arbitrate, begin, remember_fenced
from tests.unit.snapshot.hub import serve
from tests.unit.snapshot.support import KEY, FlakyRemote, StillClock, take

EMPTY = Position(Revision(0), bytes(32), 0)


async def test_create_then_continue(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        assert (hub.begun.decision, hub.begun.head.epoch) == (Create(), 1)
        await hub.put("a")
        hub.ship()
        await hub.put("b")
    async with serve(tmp_path / "d", bucket, seed="2") as hub:
        assert (hub.begun.decision, hub.begun.head.epoch) == (Continue(RESERVE + 1), 2)
        shipped = hub.ship()
        assert shipped is not None
        assert shipped.records == 1


async def test_a_restored_directory_takes_its_claim_once(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a", "secret-b")
        hub.ship()
        before = hub.contents()
    done = restore(bucket, KEY, tmp_path / "new", clock=StillClock("r"))
    assert (tmp_path / "new" / local.CLAIM_FILE).stat().st_mode & 0o777 == 0o600
    async with serve(tmp_path / "new", bucket, seed="2") as hub:
        assert hub.begun.decision == TakeClaim(done.floor)
        assert hub.begun.head.epoch == 2
        assert hub.contents() == before
        assert hub.store.compacted == done.floor
        assert hub.store.revision >= done.floor > hub.store.position.revision
        assert not (tmp_path / "new" / local.CLAIM_FILE).exists()
        await hub.put("c")
        assert hub.store.position.revision > done.floor
        hub.ship()
    async with serve(tmp_path / "new", bucket, seed="3") as hub:
        assert isinstance(hub.begun.decision, Continue)


async def test_the_old_hub_is_fenced_by_the_restored_one(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "old", bucket) as old:
        await old.put("a")
        old.ship()
        restore(bucket, KEY, tmp_path / "new", clock=StillClock("r"))
        async with serve(tmp_path / "new", bucket, seed="2") as new:
            await old.put("late")
            with pytest.raises(Fenced):
                old.ship()
            await new.put("b")
            new.ship()
    with pytest.raises(StartRefused, match="another directory wrote this prefix last"):
        async with serve(tmp_path / "old", bucket, seed="3"):
            pass


async def test_a_claim_is_worth_nothing_once_the_old_hub_has_shipped_more(
    tmp_path: Path, bucket: Remote
) -> None:
    async with serve(tmp_path / "old", bucket) as old:
        await old.put("a")
        old.ship()
        restore(bucket, KEY, tmp_path / "new", clock=StillClock("r"))
        await old.put("b")
        old.ship()
    with pytest.raises(StartRefused, match="moved on") as caught:
        async with serve(tmp_path / "new", bucket, seed="2"):
            pass
    assert "restore again" in caught.value.hint


async def test_an_empty_directory_never_takes_a_prefix(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "d", bucket):
        pass
    chain = Chain(bucket, KEY, clock=StillClock())
    decision, head = arbitrate(chain, tmp_path / "e", dir_id="", position=None)
    assert isinstance(decision, Refuse)
    assert head is not None


def test_a_refused_start_writes_nothing(tmp_path: Path, bucket: Remote, chain: Chain) -> None:
    take(chain)
    before = bucket.get("HEAD")
    with pytest.raises(StartRefused):
        begin(Chain(bucket, KEY, clock=StillClock()), tmp_path, dir_id="x", position=EMPTY)
    assert bucket.get("HEAD") == before
    assert list(tmp_path.glob("snapshot*")) == []


@pytest.mark.parametrize("fault", ["answer", "late", "lost"])
def test_a_crash_in_the_first_epoch_is_taken_up_again(
    tmp_path: Path, flaky: FlakyRemote, fault: str
) -> None:
    """The put of HEAD gets no answer and the process dies: the next start knows its session."""
    flaky.faults["HEAD"] = [fault]
    chain = Chain(flaky, KEY, clock=StillClock("1"))
    if fault == "answer":
        begin(chain, tmp_path, dir_id="d", position=EMPTY)
    else:
        with pytest.raises(RemoteUnavailable):
            begin(chain, tmp_path, dir_id="d", position=EMPTY)
    flaky.land()
    begun = begin(Chain(flaky, KEY, clock=StillClock("2")), tmp_path, dir_id="d", position=EMPTY)
    assert begun.head.epoch == (1 if fault == "lost" else 2)


def test_a_crash_after_the_swap_of_an_epoch_is_taken_up_again(
    tmp_path: Path, flaky: FlakyRemote
) -> None:
    begin(Chain(flaky, KEY, clock=StillClock("1")), tmp_path, dir_id="d", position=EMPTY)
    for seed in ("2", "3"):  # two tries without an answer; the first of them lands
        flaky.faults["HEAD"] = ["late"]
        with pytest.raises(RemoteUnavailable):
            begin(Chain(flaky, KEY, clock=StillClock(seed)), tmp_path, dir_id="d", position=EMPTY)
    flaky.late.pop()
    flaky.land()
    begun = begin(Chain(flaky, KEY, clock=StillClock("4")), tmp_path, dir_id="d", position=EMPTY)
    assert begun.head.epoch == 3
    state = local.load_state(tmp_path)
    assert state is not None
    assert state.sessions == (begun.head.writer.session,)


def test_a_head_that_moves_under_the_swap_is_decided_on_again(
    tmp_path: Path, bucket: Remote
) -> None:
    begin(Chain(bucket, KEY, clock=StillClock("1")), tmp_path, dir_id="d", position=EMPTY)
    rival = Chain(bucket, KEY, clock=StillClock("rival"))

    class Overtaken(FlakyRemote):
        def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
            take(rival, "b")
            return super().put_if_match(name, source, etag=etag)

    with pytest.raises(StartRefused, match="another directory"):
        begin(
            Chain(Overtaken(bucket), KEY, clock=StillClock("2")),
            tmp_path,
            dir_id="d",
            position=EMPTY,
        )


def test_a_head_that_never_stands_still_ends_the_start(tmp_path: Path, bucket: Remote) -> None:
    first = Chain(bucket, KEY, clock=StillClock("1"))
    begin(first, tmp_path, dir_id="d", position=EMPTY)

    class Restless(FlakyRemote):
        def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
            first.confirm()
            return super().put_if_match(name, source, etag=etag)

    with pytest.raises(ChainMoved, match="5 tries"):
        begin(
            Chain(Restless(bucket), KEY, clock=StillClock("2")),
            tmp_path,
            dir_id="d",
            position=EMPTY,
        )


async def test_an_older_copy_of_a_directory_is_refused(tmp_path: Path, bucket: Remote) -> None:
    directory = tmp_path / "d"
    async with serve(directory, bucket) as hub:
        await hub.put("a")
        hub.ship()
    store = directory / "store"
    old = {each.name: each.read_bytes() for each in store.iterdir() if each.is_file()}
    async with serve(directory, bucket, seed="2") as hub:
        await hub.put("b")
        hub.ship()
        newer = local.load_state(directory)
    for name, data in old.items():
        (store / name).write_bytes(data)
    assert newer is not None
    local.save_state(directory, newer)  # even with the newest memory, the store tells
    with pytest.raises(StartRefused, match="older copy"):
        async with serve(directory, bucket, seed="3"):
            pass


# ------------------------------------------------------------------------ copies


def start(
    remote: Remote, directory: Path, *, seed: str, place: str = "", **allowed: object
) -> Begun:
    """Begin as directory "d" with an empty store, whatever the place is called."""
    return begin(
        Chain(remote, KEY, clock=StillClock(seed)),
        directory,
        dir_id="d",
        position=EMPTY,
        allowed=Allowed(**allowed),  # type: ignore[arg-type]  # its fields, by name
        place=place,
    )


def test_a_copy_is_told_by_where_it_lies(tmp_path: Path, bucket: Remote) -> None:
    original, copy = tmp_path / "d", tmp_path / "copy"
    original.mkdir()
    start(bucket, original, seed="1")
    shutil.copytree(original, copy)
    with pytest.raises(StartRefused, match="is a copy of the one that wrote this prefix last"):
        start(bucket, copy, seed="2")
    assert isinstance(start(bucket, original, seed="3").decision, Continue)


def test_a_clone_of_a_volume_is_told_by_its_name(tmp_path: Path, bucket: Remote) -> None:
    """The same inodes at another place: what a clone of the block device looks like."""
    start(bucket, tmp_path, seed="1", place="cluster-a")
    with pytest.raises(StartRefused, match="is a copy"):
        start(bucket, tmp_path, seed="2", place="cluster-b")
    begun = start(bucket, tmp_path, seed="3", place="cluster-b", has_lease=True)
    assert isinstance(begun.decision, Adopt)
    assert isinstance(start(bucket, tmp_path, seed="4", place="cluster-b").decision, Continue)
    with pytest.raises(StartRefused, match="is a copy"):
        start(bucket, tmp_path, seed="5", place="cluster-a")


def test_a_directory_that_was_renamed_is_no_copy(tmp_path: Path, bucket: Remote) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    start(bucket, first, seed="1")
    first.rename(second)
    assert isinstance(start(bucket, second, seed="2").decision, Continue)


@pytest.mark.parametrize("fault", ["lost", "late", "answer"])
def test_a_copy_whose_try_got_no_answer_is_a_copy_still(
    tmp_path: Path, flaky: FlakyRemote, fault: str
) -> None:
    """Allowed once by force, it must not go on by itself unless its try had landed."""
    start(flaky, tmp_path, seed="1", place="a")
    flaky.faults["HEAD"] = [fault]
    if fault == "answer":
        start(flaky, tmp_path, seed="2", place="b", takeover=Takeover.FORCE)
    else:
        with pytest.raises(RemoteUnavailable):
            start(flaky, tmp_path, seed="2", place="b", takeover=Takeover.FORCE)
    flaky.land()
    if fault == "lost":
        with pytest.raises(StartRefused, match="is a copy"):
            start(flaky, tmp_path, seed="3", place="b")
        begun = start(flaky, tmp_path, seed="4", place="b", takeover=Takeover.FORCE)
        assert isinstance(begun.decision, Adopt)
    else:
        assert isinstance(start(flaky, tmp_path, seed="3", place="b").decision, Continue)


def adopt(remote: Remote, directory: Path) -> None:
    """Leave the claim that `hub-restore adopt` leaves."""
    head = Chain(remote, KEY, clock=StillClock()).read_head()
    assert head is not None
    claim = local.claim_on(head, None, object_store=remote.url, clock=StillClock(), adopted=True)
    local.save_claim(directory, claim)


def test_an_adopted_copy_goes_on_once_and_its_original_no_more(
    tmp_path: Path, bucket: Remote
) -> None:
    original, copy = tmp_path / "d", tmp_path / "copy"
    original.mkdir()
    start(bucket, original, seed="1")
    shutil.copytree(original, copy)
    adopt(bucket, copy)
    assert isinstance(start(bucket, copy, seed="2").decision, Adopt)
    assert local.load_claim(copy) is None
    with pytest.raises(StartRefused, match="a copy of this directory has gone on"):
        start(bucket, original, seed="3")
    assert isinstance(start(bucket, copy, seed="4").decision, Continue)


def test_an_adoption_cut_short_after_its_epoch_is_taken_up_again(
    tmp_path: Path, bucket: Remote
) -> None:
    original, copy = tmp_path / "d", tmp_path / "copy"
    original.mkdir()
    start(bucket, original, seed="1")
    shutil.copytree(original, copy)
    adopt(bucket, copy)
    claim = (copy / local.CLAIM_FILE).read_bytes()
    epoch = start(bucket, copy, seed="2").head.epoch
    (copy / local.CLAIM_FILE).write_bytes(claim)  # as if it had not been spent
    begun = start(bucket, copy, seed="3")
    assert (begun.decision, begun.head.epoch) == (Continue(begun.floor), epoch + 1)
    assert local.load_claim(copy) is None


def test_a_fenced_directory_starts_when_it_is_adopted_and_not_by_itself(
    tmp_path: Path, bucket: Remote
) -> None:
    start(bucket, tmp_path, seed="1")
    take(Chain(bucket, KEY, clock=StillClock("other")), "b")
    remember_fenced(tmp_path, "process 9 on h")
    for takeover in (Takeover.NEVER, Takeover.IF_RELEASED, Takeover.CLAIMED):
        with pytest.raises(StartRefused, match="process 9 on h took the prefix"):
            start(bucket, tmp_path, seed="2", takeover=takeover)
    with pytest.raises(CatchUpNeeded):
        start(bucket, tmp_path, seed="3", takeover=Takeover.FORCE)
    adopt(bucket, tmp_path)
    assert isinstance(start(bucket, tmp_path, seed="4").decision, Adopt)
    state = local.load_state(tmp_path)
    assert state is not None
    assert state.fenced_by == ""


def test_a_damaged_state_file_is_named(tmp_path: Path) -> None:
    for data in (b"", b"{", b"\xff", json.dumps({"format": 1}).encode()):
        (tmp_path / local.STATE_FILE).write_bytes(data)
        with pytest.raises(IntegrityError, match=local.STATE_FILE):
            local.load_state(tmp_path)
