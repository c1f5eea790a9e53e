"""Group commit, publishing, and what else one store promises on its loop."""

import asyncio
import errno
import os
from collections import deque
from pathlib import Path

import lmdb
import pytest

from hub.store import (
    Broken,
    Change,
    Corrupt,
    Exists,
    FutureRevision,
    InvariantError,
    Op,
    Revision,
    Store,
    Write,
    WriteFailed,
)
from hub.store.committer import Committer, Ticket
from hub.store.job import FlushJob
from hub.store.lmdb_env import Database, Environment
from hub.store.log import encode_revision
from tests.unit.store.given import (
    CLOCK,
    EMPTY,
    create,
    delete,
    draft,
    hub_key,
    key,
    open_store,
    update,
)


async def test_concurrent_commits_share_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    commit = Committer._commit

    def counted(self: Committer, tickets: list[object]) -> object:
        batches.append(len(tickets))
        return commit(self, tickets)  # type: ignore[arg-type]  # the test only counts

    monkeypatch.setattr(Committer, "_commit", counted)
    store = open_store(tmp_path / "data")
    await asyncio.gather(*(store.commit(create(key(f"n{n}"))) for n in range(1200)))
    assert sum(batches) == 1200
    assert max(batches) <= 500
    assert len(batches) < 60
    await store.close()


async def test_a_job_queued_right_before_the_end_is_not_left_behind(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    committer = Committer(store._shared, deliver=lambda _: None, now_s=CLOCK.monotonic_s)
    ticket = Ticket(FlushJob(store._shared.env, []), asyncio.get_running_loop().create_future())

    class Late(deque[Ticket]):
        """A queue that is filled, and ended, just after the thread has found it empty."""

        def __len__(self) -> int:
            found = super().__len__()
            if not committer._is_closing:
                committer.submit(ticket)
                committer.stop()
            return found

    committer._queue = Late()
    assert committer._gather(1) == [ticket]
    assert committer._gather(1) == []
    await store.close()


async def test_a_volume_that_does_not_even_tell_its_room_fails_one_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path / "data")

    def fails(_: Environment) -> None:
        error = lmdb.Error("mdb_txn_begin: Input/output error")
        error.code = errno.EIO  # type: ignore[misc]  # as the engine sets it
        raise error

    def stale(_: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr(Environment, "begin", fails)
        failing.setattr(os, "statvfs", stale)
        with pytest.raises(WriteFailed, match="Input/output error"):
            await asyncio.wait_for(store.commit(create(key("a"))), 5)
        assert "Input/output error" in store.trouble
    assert await store.commit(create(key("a"))) == (1,)
    assert (store.trouble, store.is_broken) == ("", False)
    await store.close()


async def test_what_escapes_the_committer_breaks_the_store_and_leaves_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path / "data")
    await store.commit(create(key("a")))

    def escapes(*_: object) -> None:
        raise SystemError("unforeseen")

    with monkeypatch.context() as failing:
        failing.setattr("hub.store.committer._fail", escapes)
        failing.setattr("hub.store.committer._apply", escapes)
        with pytest.raises(Broken, match="unforeseen"):
            await asyncio.wait_for(store.commit(create(key("b"))), 5)
    assert store.is_broken
    assert "start the hub again" in store.trouble
    for attempt in (store.watch_over(), store.commit(create(key("b"))), store.close()):
        with pytest.raises(Broken, match="unforeseen"):
            await asyncio.wait_for(attempt, 5)
    store = open_store(tmp_path / "data")
    with pytest.raises(Exists):
        await store.commit(create(key("a")))
    await store.close()


async def test_a_failing_listener_keeps_nobody_from_anything(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    seen: list[Change] = []
    raised: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context))

    def fails(_: list[Change]) -> None:
        raise RuntimeError("listener")

    store.subscribe(fails)
    store.subscribe(seen.extend)
    await store.commit(create(key("a")))
    assert [change.key for change in seen] == [key("a")]
    assert isinstance(raised[0]["exception"], ExceptionGroup)
    await store.close()


async def test_a_cancelled_wait_does_not_undo_the_write(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    task = asyncio.ensure_future(store.commit(create(key("a"))))
    await asyncio.sleep(0)
    task.cancel()
    await store.commit(create(key("b")))
    assert task.cancelled()
    assert store.get(key("a")) is not None
    await store.close()


async def test_small_values_live_beside_the_state(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    assert store.meta_get("epoch") is None
    await store.meta_put({"epoch": b"7", "chain": b"\0"})
    (revision,) = await store.commit(create(key("a")), meta={"epoch": b"8", "chain": None})
    with pytest.raises(ValueError, match="too long"):
        await store.commit(create(key("b")), meta={"x" * 600: b""})
    assert store.meta_get("epoch") == b"8"
    assert store.meta_get("chain") is None
    assert store.position.revision == revision == 1
    await store.close()
    store = open_store(tmp_path / "data")
    assert store.meta_get("epoch") == b"8"
    await store.close()


async def test_small_values_of_a_refused_commit_are_not_written(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    await store.commit(create(key("a")))
    with pytest.raises(Exception, match="exists"):
        await store.commit(create(key("a")), meta={"epoch": b"8"})
    assert store.meta_get("epoch") is None
    await store.close()


async def test_the_position_follows_every_durable_write(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    empty = store.position
    (first,) = await store.commit(create(key("a")))
    one = store.position
    assert (one.revision, one.count) == (first, 1)
    await store.commit(create(key("event"), volatile=True))
    assert store.position == one == store.verify()
    await store.commit(delete(key("a"), expect=first))
    assert (store.position.state_hash, store.position.count) == (empty.state_hash, 0)
    store.verify()
    await store.close()


async def test_a_raised_floor_outlives_a_restart(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    await store.commit(create(key("a")))
    store.raise_floor(Revision(5_000_000), is_compacted=True)
    assert (store.revision, store.compacted) == (5_000_000, 5_000_000)
    (revision,) = await store.commit(create(key("b")))
    assert revision == 5_000_001
    assert len(store.export_delta(Revision(1)).records) == 1
    await store.close()
    store = open_store(tmp_path / "data")
    assert (store.revision, store.compacted) == (5_000_001, 5_000_000)
    store.raise_floor(Revision(10), is_compacted=False)
    assert (store.revision, store.compacted) == (5_000_001, 5_000_000)
    store.verify()
    await store.close()


async def test_the_log_is_compacted_in_steps(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    await asyncio.gather(*(store.commit(create(key(f"n{n}"))) for n in range(2500)))
    cut = store.log_revision(keeping=100)
    assert cut == 2400
    assert store.log_revision(keeping=9999) == 0
    await store.compact_log(cut)
    stats = store.stats()
    assert (stats.log_entries, stats.log_after, stats.compacted) == (100, 2400, 2400)
    store.verify()
    await store.compact_log(Revision(10))
    assert store.compacted == 2400
    await store.compact_log(store.revision)
    assert store.stats().log_entries == 0
    store.verify()
    with pytest.raises(FutureRevision):
        await store.compact_log(Revision(2501))
    await store.close()


async def test_a_sweep_takes_what_is_old_and_shows_it(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    revisions = [
        (await store.commit(create(key(f"e{n:03}", resource="events"), volatile=True)))[0]
        for n in range(6)
    ]
    seen: list[Change] = []
    store.subscribe(seen.extend)
    swept = await store.sweep(
        b"events\0", older_than=revisions[4], redraft=lambda old: draft(f"{len(old)}")
    )
    assert swept == 4
    assert [change.op for change in seen] == [Op.DELETE] * 4
    assert b'"text":"' in seen[0].value
    left = [entry.revision for entry in store.scan(b"events\0").entries]
    assert left == revisions[4:]
    await store.close()


async def test_verify_finds_what_does_not_add_up(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    (first, second) = await store.commit(create(key("a")), create(key("b")))
    (third,) = await store.commit(update(key("a"), "new", expect=first))
    env = store._shared.env
    store.verify()

    def damaged(table: Database, at: bytes, value: bytes | None) -> str:
        """Put or delete one record, verify, and put it back."""
        with env.write() as txn:
            before = txn.get(at, db=table)
            if value is None:
                txn.delete(at, db=table)
            else:
                txn.put(at, value, db=table)
        with pytest.raises(Corrupt) as caught:
            store.verify()
        with env.write() as txn:
            if before is None:
                txn.delete(at, db=table)
            else:
                txn.put(at, before, db=table)
        store.verify()
        return str(caught.value)

    with env.read() as txn:
        raw = txn.get(key("b"), db=env.objects) or b""
    assert "have None" in damaged(env.objects, key("b"), None)
    assert "does not say so" in damaged(env.objects, key("c"), raw)
    assert "lacks the write" in damaged(env.log, encode_revision(first), None)
    assert "leaves" in damaged(env.log, encode_revision(third), None)
    assert "does not say so" in damaged(env.log, encode_revision(second), None)
    assert "damaged" in damaged(env.objects, key("b"), raw[:-3] + b"abc")
    assert "damaged" in damaged(env.log, encode_revision(third), b"\x09")
    assert "lacks its record" in damaged(env.meta, b"position", None)
    await store.close()


async def test_an_offline_store_reads_and_does_not_write(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    await store.commit(create(key("a")))
    await store.close()

    def offline() -> None:
        one = open_store(tmp_path / "data")
        assert one.get(key("a")) is not None
        assert one.verify().count == 1
        one.raise_floor(Revision(1000), is_compacted=True)
        with pytest.raises(InvariantError):
            one.subscribe(lambda _: None)
        one.close_offline()
        one.close_offline()

    await asyncio.to_thread(offline)
    store = open_store(tmp_path / "data")
    assert store.revision == 1000
    with pytest.raises(InvariantError):
        store.close_offline()
    await store.close()


async def test_writes_of_another_shape_are_refused_at_once(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    with pytest.raises(ValueError, match="expect belongs to"):
        await store.commit(Write(Op.UPDATE, key("a"), draft(), EMPTY))
    with pytest.raises(ValueError, match="expect belongs to"):
        await store.commit(Write(Op.CREATE, key("a"), draft(), EMPTY, Revision(1)))
    assert await store.commit() == ()
    await store.close()


def test_opening_offline_creates_too(tmp_path: Path) -> None:
    store: Store = open_store(tmp_path / "data")
    assert hub_key(tmp_path / "data").path == tmp_path / "data.key"
    store.close_offline()
