"""Restore and verify: the same state or a clear error, and never half a store."""

import asyncio
from pathlib import Path

import pytest

from hub.store import STORE_DIRECTORY, Store, has_store
from snapshot import local
from snapshot.errors import (
    ChainBroken,
    IntegrityError,
    KeyMismatch,
    NothingToRestore,
    SegmentCorrupt,
    SnapshotError,
    StateMismatch,
    TargetBusy,
    TargetNotEmpty,
    Unreachable,
)
from snapshot.header import Kind
from snapshot.remote import Remote
from snapshot.restore import restore
from snapshot.target import SPOOL, STAGE, staged
from snapshot.verify import verify
from tests.unit.snapshot.hub import serve
from tests.unit.snapshot.support import (
    KEY,
    OTHER_KEY,
    StillClock,
    contents,
    next_segment,
    record,
    take,
)


class Counting:
    """A remote that counts what is fetched beside HEAD."""

    def __init__(self, inner: Remote) -> None:
        self._inner, self.fetched = inner, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def get_to_file(self, name: str, path: Path) -> int:
        self.fetched += 1
        return self._inner.get_to_file(name, path)


@pytest.fixture
async def shipped(tmp_path: Path, bucket: Remote) -> dict[bytes, bytes]:
    """A full and three deltas with updates, deletions and sealed values; the state they make."""
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a", "b", "c", "secret-1")
        hub.ship()
        await hub.put("d", "a", text="2")
        hub.ship()
        await hub.drop("b")
        await hub.put("secret-1", "n" * 600, text="3")
        hub.ship()
        await hub.put("b", text="again")
        await hub.drop("c")
        hub.ship()
        return hub.contents()


def open_restored(directory: Path) -> dict[bytes, bytes]:
    place = directory / STORE_DIRECTORY
    store = Store.open(place, hub_key=KEY, clock=StillClock("o"), can_create=False)
    try:
        store.verify()
        return {bytes(key): value for key, value in contents(store).items()}
    finally:
        store.close_offline()


def test_full_and_tail_restore_to_the_same_state(
    tmp_path: Path, bucket: Remote, shipped: dict[bytes, bytes]
) -> None:
    done = restore(bucket, KEY, tmp_path / "new", clock=StillClock("r"))
    assert open_restored(tmp_path / "new") == shipped
    assert (done.segments, done.objects) == (4, len(shipped))
    assert set(done.seconds) == {"fetch", "build", "total"}
    claim, state = local.load_claim(tmp_path / "new"), local.load_state(tmp_path / "new")
    assert claim is not None
    assert state is not None
    assert (claim.seq, claim.rev, claim.epoch) == (4, done.revision, 1)
    assert (state.dir_id, state.hub_id, state.sessions) == (done.dir_id, done.hub_id, ())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bucket", "new", "old"]
    names = sorted(each.name for each in (tmp_path / "new").iterdir())
    assert names == ["restore-claim.json", "snapshot-state.json", "store"]


def test_an_existing_empty_directory_is_restored_in_place(
    tmp_path: Path, bucket: Remote, shipped: dict[bytes, bytes]
) -> None:
    target = tmp_path / "volume"
    target.mkdir()
    (target / "lost+found").mkdir()
    (target / SPOOL).mkdir()
    (target / SPOOL / "00000.hs").write_bytes(b"of a killed restore")
    inode = target.stat().st_ino
    restore(bucket, KEY, target, clock=StillClock("r"))
    assert open_restored(target) == shipped
    assert target.stat().st_ino == inode
    assert (target / "lost+found").is_dir()


def test_what_a_killed_restore_left_is_swept(
    tmp_path: Path, bucket: Remote, shipped: dict[bytes, bytes]
) -> None:
    rest = tmp_path / "new" / STAGE / "building"
    rest.mkdir(parents=True)
    (rest / "data.mdb").write_bytes(b"half")
    (tmp_path / "new" / STAGE / "data.mdb").write_bytes(b"half")
    restore(bucket, KEY, tmp_path / "new", clock=StillClock("r"))
    assert open_restored(tmp_path / "new") == shipped
    assert not (tmp_path / "new" / STAGE).exists()


@pytest.mark.parametrize("name", ["data.mdb", "notes.txt", "store/notes.txt"])
def test_a_directory_with_anything_else_in_it_is_refused(
    tmp_path: Path, bucket: Remote, shipped: dict[bytes, bytes], name: str
) -> None:
    (tmp_path / "new" / name).parent.mkdir(parents=True)
    (tmp_path / "new" / name).write_bytes(b"precious")
    counting = Counting(bucket)
    with pytest.raises(TargetNotEmpty, match=f"holds {Path(name).parts[0]}"):
        restore(counting, KEY, tmp_path / "new", clock=StillClock())  # type: ignore[arg-type]  # by __getattr__
    assert (tmp_path / "new" / name).read_bytes() == b"precious"
    assert counting.fetched == 0


def test_a_file_in_the_place_is_refused(
    tmp_path: Path, bucket: Remote, shipped: dict[bytes, bytes]
) -> None:
    (tmp_path / "new").write_bytes(b"precious")
    with pytest.raises(TargetNotEmpty, match="not a directory"):
        restore(bucket, KEY, tmp_path / "new", clock=StillClock())


def test_a_second_restore_into_the_same_place_is_refused(
    tmp_path: Path, bucket: Remote, shipped: dict[bytes, bytes]
) -> None:
    with staged(tmp_path / "new", clock=StillClock()) as stage:
        (stage.spool / "theirs").write_bytes(b"x")
        with pytest.raises(TargetBusy, match="a hub or another restore is at work"):
            restore(bucket, KEY, tmp_path / "new", clock=StillClock())
        assert (stage.spool / "theirs").exists()


def test_an_empty_prefix_has_nothing_to_restore(tmp_path: Path, bucket: Remote) -> None:
    with pytest.raises(NothingToRestore):
        verify(bucket, KEY, clock=StillClock())
    with pytest.raises(NothingToRestore):
        restore(bucket, KEY, tmp_path / "new", clock=StillClock())
    assert not (tmp_path / "new").exists()


async def test_a_prefix_without_a_full_has_nothing_to_restore(
    tmp_path: Path, bucket: Remote
) -> None:
    async with serve(tmp_path / "d", bucket):
        pass
    with pytest.raises(NothingToRestore, match="first full"):
        restore(bucket, KEY, tmp_path / "new", clock=StillClock())


def test_a_wrong_key_is_named_before_anything_is_fetched(
    tmp_path: Path, bucket: Remote, shipped: dict[bytes, bytes]
) -> None:
    counting = Counting(bucket)
    with pytest.raises(KeyMismatch, match=KEY.fingerprint):
        restore(counting, OTHER_KEY, tmp_path / "new", clock=StillClock())  # type: ignore[arg-type]  # see above
    assert counting.fetched == 0
    assert not (tmp_path / "new").exists()


def segment_files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "bucket").rglob("*.hs"))


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("damage", ["flipped", "cut short", "empty", "missing", "exchanged"])
def test_any_damaged_segment_stops_restore_and_verify(
    tmp_path: Path, bucket: Remote, shipped: dict[bytes, bytes], damage: str, which: int
) -> None:
    files = segment_files(tmp_path)
    path, data = files[which], files[which].read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(
            {
                "flipped": data[:-40] + bytes([data[-40] ^ 1]) + data[-39:],
                "cut short": data[:-1],
                "empty": b"",
                "exchanged": files[which - 1].read_bytes(),
            }[damage]
        )
    expected = ChainBroken if damage == "missing" else SegmentCorrupt
    with pytest.raises(Unreachable) as caught:
        verify(bucket, KEY, clock=StillClock(), scratch=tmp_path)
    name = path.relative_to(tmp_path / "bucket").as_posix()
    assert caught.value.object == name
    assert isinstance(caught.value.__cause__, expected)
    assert caught.value.__cause__.object == name
    for target in (tmp_path / "new", tmp_path / "mount"):
        if target.name == "mount":
            target.mkdir()
        with pytest.raises(Unreachable):
            restore(bucket, KEY, target, clock=StillClock())
        assert not has_store(target / STORE_DIRECTORY)
        assert not target.exists() or list(target.iterdir()) == []
    assert not (tmp_path / "new").exists()


async def test_a_chain_that_does_not_make_up_its_state_is_refused_at_the_build(
    tmp_path: Path, bucket: Remote
) -> None:
    """Every seal and hash holds, and still the state is not the one promised: a bug, caught."""
    async with serve(tmp_path / "d", bucket) as hub:
        await hub.put("a")
        hub.ship()
        stored = next(iter(hub.store.export_full().records))
        made = next_segment(
            hub.chain,
            tmp_path / "made.hs",
            kind=Kind.DELTA,
            records=[record("ghost", 2, b"\0\0\0\0\0\0\0\2" + (stored.raw or b"")[8:])],
        )
        hub.chain.commit_segment(made, reserved_rev=0)
    assert not verify(bucket, KEY, clock=StillClock(), scratch=tmp_path).is_deep
    with pytest.raises(StateMismatch):
        verify(bucket, KEY, clock=StillClock(), scratch=tmp_path, deep=True)
    with pytest.raises(StateMismatch):
        restore(bucket, KEY, tmp_path / "new", clock=StillClock())
    assert not (tmp_path / "new").exists()


def test_segments_of_another_chain_do_not_pass(
    tmp_path: Path, bucket: Remote, clock: StillClock
) -> None:
    """HEAD and segment of one key and hub, but the full is another's: the chain hash tells."""
    from snapshot.chain import Chain
    from snapshot.plan import Fetched, check_chain

    chain = Chain(bucket, KEY, clock=clock)
    take(chain)
    full = next_segment(chain, tmp_path / "1.hs", kind=Kind.FULL, records=[record("a", 1)])
    twin = next_segment(chain, tmp_path / "2.hs", kind=Kind.FULL, records=[record("a", 1)])
    chain.commit_segment(full, reserved_rev=0)
    delta = next_segment(chain, tmp_path / "3.hs", kind=Kind.DELTA, records=[record("b", 2)])
    head = chain.commit_segment(delta, reserved_rev=0)
    assert head.full is not None
    check_chain(head, [Fetched(head.full, full.path), Fetched(head.tail[0], delta.path)], KEY)
    import msgspec

    other = msgspec.structs.replace(head.full, hash=twin.hash.hex())
    with pytest.raises(ChainBroken, match="does not continue"):
        check_chain(head, [Fetched(other, twin.path), Fetched(head.tail[0], delta.path)], KEY)
    with pytest.raises(ChainBroken, match="first segment is no full"):
        check_chain(head, [Fetched(head.tail[0], delta.path)], KEY)
    segments = [Fetched(head.full, full.path), Fetched(head.tail[0], delta.path)]
    for claims in ({"state_hash": "22" * 32}, {"chain": "22" * 32}, {"objects": 9}, {"rev": 3}):
        with pytest.raises(ChainBroken, match="HEAD claims"):
            check_chain(msgspec.structs.replace(head, **claims), segments, KEY)
    with pytest.raises(ChainBroken, match="not of this hub"):
        check_chain(msgspec.structs.replace(head, hub_id="other"), segments, KEY)
    with pytest.raises(ChainBroken, match="not of this hub"):
        check_chain(msgspec.structs.replace(head, epoch=0), segments, KEY)


def test_a_full_volume_is_told_before_the_fetch(
    tmp_path: Path,
    bucket: Remote,
    shipped: dict[bytes, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from snapshot import restore as module

    monkeypatch.setattr(module, "_SPACE_FACTOR", 10**12)
    counting = Counting(bucket)
    with pytest.raises(SnapshotError, match="MiB are free"):
        restore(counting, KEY, tmp_path / "new", clock=StillClock())  # type: ignore[arg-type]  # see above
    assert counting.fetched == 0
    assert not (tmp_path / "new").exists()


def test_verify_reads_everything_and_deep_rebuilds_it(
    tmp_path: Path, bucket: Remote, shipped: dict[bytes, bytes]
) -> None:
    shallow = verify(bucket, KEY, clock=StillClock(), scratch=tmp_path)
    deep = verify(bucket, KEY, clock=StillClock(), scratch=tmp_path, deep=True)
    assert (shallow.records, shallow.segments, shallow.objects) == (11, 4, len(shipped))
    assert (deep.is_deep, deep.state_hash) == (True, shallow.state_hash)
    assert "build" in deep.seconds
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bucket", "old"]


async def test_a_chain_across_epochs_restores(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "d", bucket) as hub:
        await hub.put("a")
        hub.ship()
    for turn in range(3):
        async with serve(tmp_path / "d", bucket, seed=str(turn)) as hub:
            await hub.put(f"b{turn}")
            hub.ship()
            state = hub.contents()
    done = restore(bucket, KEY, tmp_path / "new", clock=StillClock("r"))
    assert (done.epoch, done.segments) == (4, 4)
    assert await asyncio.to_thread(open_restored, tmp_path / "new") == state


async def test_the_way_there_and_back_many_times(tmp_path: Path, bucket: Remote) -> None:
    """Each restore starts above every revision its forerunners may have handed out."""
    floors = [0]
    for turn in range(4):
        directory = tmp_path / f"d{turn}"
        if turn:
            done = restore(bucket, KEY, directory, clock=StillClock(f"r{turn}"))
            assert done.floor > floors[-1]
            floors.append(done.floor)
        async with serve(directory, bucket, seed=str(turn)) as hub:
            await hub.put(f"a{turn}")
            assert hub.store.position.revision > floors[-1]
            hub.ship()
    assert verify(bucket, KEY, clock=StillClock(), deep=True, scratch=tmp_path).objects == 4


def test_integrity_errors_share_one_exit_code() -> None:
    assert {error.exit_code for error in (SegmentCorrupt, ChainBroken, StateMismatch)} == {
        IntegrityError.exit_code
    }
