"""The runner: what is shipped when, what is tried again, and what ends a hub."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path

import pytest

from hub.backup.runner import RESERVE
from hub.store import Op, Revision
from snapshot.arbiter import Adopt, Continue, Create, Decision, TakeClaim
from snapshot.errors import (
    ChainMoved,
    Fenced,
    HeadCorrupt,
    HeadGone,
    PreconditionFailed,
    RemoteDenied,
    RemoteUnavailable,
    SegmentCorrupt,
    SnapshotError,
)
from snapshot.local import claim_on, load_claim, load_state, save_claim
from tests.unit.backup.support import Make, build
from tests.unit.backup.virtual import now_s, run
from tests.unit.snapshot.support import StillClock

FENCED = Fenced("another has taken this prefix", by="another", op="commit", object="HEAD")


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Make:
    return partial(build, monkeypatch, tmp_path)


def virtual(work: Callable[[], Coroutine[object, object, None]]) -> None:
    run(work())


@pytest.mark.parametrize(
    ("resource", "op", "at"),
    [
        ("managedclusters.cluster.open-cluster-management.io", Op.CREATE, 2.0),
        ("certificatesigningrequests.certificates.k8s.io", Op.CREATE, 2.0),
        ("managedclusters.cluster.open-cluster-management.io", Op.UPDATE, 2.1),
        ("configmaps", Op.CREATE, 2.1),
        ("secrets", Op.DELETE, 2.1),
        ("unknown.example.com", Op.CREATE, 2.0),
    ],
)
def test_new_clusters_are_shipped_at_once_and_the_rest_together(
    make: Make, resource: str, op: Op, at: float
) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        loop = asyncio.get_running_loop()
        loop.call_later(2.0, rig.store.change, resource, op)
        await rig.run_for(3)
        assert rig.bucket.done == [(at, "delta")]

    virtual(work)


def test_renewals_neither_make_a_segment_due_nor_put_one_off(make: Make) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        loop = asyncio.get_running_loop()
        for at in range(80):
            loop.call_later(at / 20, rig.store.renew)
        loop.call_later(2.0, rig.store.change)
        await rig.run_for(5)
        assert rig.bucket.done == [(2.1, "delta")]

    virtual(work)


def test_a_thousand_changed_objects_are_shipped_at_once(make: Make) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        for number in range(1000):
            rig.store.change(name=f"n{number}")
        await rig.run_for(5)
        assert rig.bucket.done == [(0.0, "delta")]

    virtual(work)


def test_who_waits_for_a_revision_hurries_the_segment_that_has_it(make: Make) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        rig.store.change()
        rig.store.change()
        done: list[tuple[int, float]] = []

        async def wait(revision: int) -> None:
            await rig.backup.durable(Revision(revision))
            done.append((revision, now_s()))

        async with asyncio.TaskGroup() as group:
            for revision in (50, 51, 52, 52):
                group.create_task(wait(revision))
            await rig.run_for(1)
        assert done == [(50, 0.0), (51, 0.0), (52, 0.0), (52, 0.0)]
        assert rig.bucket.done == [(0.0, "delta")]

    virtual(work)


def test_who_waits_goes_on_waiting_while_the_bucket_is_away(make: Make) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        rig.store.change()
        rig.bucket.faults = [RemoteUnavailable("no answer", op="put")] * 2

        async def wait() -> None:
            await rig.backup.durable(Revision(51))
            assert now_s() == pytest.approx(1.5)

        async with asyncio.TaskGroup() as group:
            group.create_task(wait())
            await rig.run_for(5)

    virtual(work)


def test_who_waits_is_told_what_ends_the_hub(make: Make) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        rig.store.change()
        rig.bucket.faults = [FENCED]
        waiting = asyncio.ensure_future(rig.backup.durable(Revision(51)))
        with pytest.raises(Fenced):
            await rig.run_for(5)
        with pytest.raises(Fenced):
            await waiting
        with pytest.raises(Fenced):
            await rig.backup.durable(Revision(50))

    virtual(work)


def test_who_waits_is_told_that_the_hub_stops(make: Make) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        rig.bucket.faults = [RemoteUnavailable("no answer", op="put")]
        rig.store.change()
        waiting = asyncio.ensure_future(rig.backup.durable(Revision(51)))
        await rig.run_for(0.2)
        with pytest.raises(SnapshotError, match="the hub is stopping"):
            await waiting
        await rig.backup.finish()
        assert rig.bucket.done == [(0.2, "delta"), (0.2, "release")]

    virtual(work)


def test_what_a_crash_left_unshipped_is_shipped_without_another_change(
    make: Make,
) -> None:
    async def work() -> None:
        rig = make(shipped=40)
        await rig.start()
        await rig.run_for(20)
        assert rig.bucket.done == [(0.1, "delta")]

    virtual(work)


@pytest.mark.parametrize(("decision", "kind"), [(Create(), "empty"), (None, "continue")])
def test_a_start_on_a_prefix_without_a_full_ships_it_at_once(
    make: Make, decision: Decision | None, kind: str
) -> None:
    async def work() -> None:
        rig = make(shipped=0, decision=decision)
        await rig.start()
        assert rig.backup.start_kind == kind
        await rig.run_for(20)
        assert rig.bucket.done == [(0.0, "full")]
        assert [each.level for each in rig.tender.seen] == ["full"]
        assert rig.store.floors == ([] if decision else [(1000, False)])
        assert rig.tender.asked == 0

    virtual(work)


@pytest.mark.parametrize(
    ("decision", "kind"),
    [(TakeClaim(floor=1000), "restored"), (Adopt(floor=1000), "adopted")],
)
def test_a_start_from_elsewhere_asks_for_a_full_and_forgets_old_watches(
    make: Make, decision: Decision, kind: str
) -> None:
    async def work() -> None:
        rig = make(decision=decision)
        await rig.start()
        assert (rig.backup.start_kind, rig.backup.is_from_elsewhere) == (kind, True)
        assert rig.store.floors == [(1000, True)]
        assert rig.tender.asked == 1
        await rig.run_for(20)
        assert rig.bucket.done == []

    virtual(work)


@pytest.mark.parametrize(("is_adopted", "kind"), [(False, "restored"), (True, "adopted")])
def test_a_crash_right_after_the_epoch_does_not_make_a_start_forget_where_it_came_from(
    make: Make, tmp_path: Path, *, is_adopted: bool, kind: str
) -> None:
    async def work() -> None:
        rig = make(decision=Continue(floor=1000))
        claim = claim_on(
            rig.bucket.head, None, object_store="s3://b", clock=StillClock(), adopted=is_adopted
        )
        save_claim(tmp_path, claim)
        await rig.start()
        assert (rig.backup.start_kind, rig.backup.is_from_elsewhere) == (kind, True)
        assert rig.store.floors == [(1000, True)]
        assert rig.tender.asked == 1
        rig.backup.spend_claim()
        assert load_claim(tmp_path) is None

    virtual(work)


def test_an_idle_hub_confirms_its_epoch_and_reserves_ahead_of_renewals(
    make: Make,
) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        rig.store.renewed = 7000
        await rig.run_for(65)
        assert rig.bucket.done == [(30.0, "confirm"), (60.0, "confirm")]
        assert rig.bucket.reserved == 50 + 7000 + RESERVE

    virtual(work)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RemoteUnavailable("no answer", op="put"), "unavailable"),
        (RemoteDenied("the credentials have expired", op="put"), "denied"),
        (PreconditionFailed("an odd answer", op="put"), "refused"),
        (ChainMoved("an earlier write had landed", op="commit"), "moved"),
        (OSError(28, "No space left on device"), "disk"),
    ],
)
def test_what_may_pass_is_repeated_and_serving_goes_on(
    make: Make, error: Exception, reason: str
) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        rig.bucket.faults = [error] * 8
        rig.store.change()
        await rig.run_for(120)
        pauses = [0.5, 1, 2, 4, 8, 16, 30, 30]
        expected = [0.1 + sum(pauses[:n]) for n in range(9)]
        assert rig.bucket.tried[:9] == pytest.approx(expected)
        assert rig.bucket.done[0] == (round(expected[-1], 3), "delta")
        assert rig.failures(reason) == 8
        assert rig.backup.refusal() == ""

    virtual(work)


def test_a_first_full_that_fails_is_a_full_again(make: Make) -> None:
    async def work() -> None:
        rig = make(shipped=0, decision=Create())
        await rig.start()
        rig.bucket.faults = [RemoteUnavailable("no answer", op="put")]
        await rig.run_for(5)
        assert rig.bucket.done == [(0.5, "full")]

    virtual(work)


def test_an_outage_is_seen_in_the_metrics(make: Make) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        rig.bucket.faults = [RemoteUnavailable("no answer", op="put")] * 100
        for _ in range(3):
            rig.store.change()
        await rig.run_for(10)
        value = rig.metrics.get_sample_value
        assert value("hublet_backup_lag_revisions") == 3
        assert value("hublet_backup_lag_seconds") == pytest.approx(10)
        assert rig.failures("unavailable") == 5
        assert value("hublet_backup_enabled") == 1
        assert rig.backup.shipped_revision() == 50

    virtual(work)


@pytest.mark.parametrize(
    "error",
    [
        FENCED,
        HeadGone("HEAD is gone", op="commit"),
        HeadCorrupt("its seal is broken", op="read"),
        SegmentCorrupt("another segment has this name", op="put"),
    ],
)
def test_what_ends_a_hub_ends_it_once_and_for_all(
    make: Make, tmp_path: Path, error: SnapshotError
) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        rig.bucket.faults = [error]
        rig.store.change()
        with pytest.raises(type(error)):
            await rig.run_for(10)
        assert str(error) in rig.backup.refusal()
        state = load_state(tmp_path)
        assert state is not None
        assert state.fenced_by == ("another" if isinstance(error, Fenced) else "")
        await rig.backup.finish()
        assert rig.bucket.done == []
        assert not rig.bucket.is_open
        assert not rig.tender.is_open

    virtual(work)


def test_what_ends_tending_ends_the_hub(make: Make) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        rig.tender.faults = [FENCED]
        with pytest.raises(Fenced):
            await rig.run_for(10)

    virtual(work)


def test_a_hub_that_finds_its_prefix_taken_by_its_last_segment_says_so(make: Make) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        rig.store.change()
        rig.bucket.faults = [FENCED]
        with pytest.raises(Fenced):
            await rig.backup.finish()
        assert rig.backup.refusal()
        assert not rig.bucket.is_open

    virtual(work)


def test_a_round_after_the_end_does_not_reach_the_bucket(make: Make) -> None:
    """As when the stop cancels the wait for a round, whose worker goes on and finds out."""

    async def work() -> None:
        rig = make()
        await rig.start()
        rig.bucket.faults = [FENCED]
        for _ in range(2):
            with pytest.raises(Fenced):
                await rig.backup._commit(rig.backup._ship_round)
        assert len(rig.bucket.tried) == 1

    virtual(work)


def test_a_stop_ships_the_rest_and_releases_the_prefix(make: Make) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        rig.store.change()
        await rig.backup.finish()
        assert rig.bucket.done == [(0.0, "delta"), (0.0, "release")]
        assert rig.bucket.is_drained
        assert rig.bucket.reserved < rig.store.rev + RESERVE
        assert not rig.bucket.is_open

    virtual(work)


def test_a_stop_releases_the_prefix_before_it_waits_for_tending(make: Make) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        then: list[list[tuple[float, str]]] = []
        rig.tender.on_close = lambda: then.append([*rig.bucket.done])
        rig.store.change()
        await rig.backup.finish()
        assert then == [[(0.0, "delta"), (0.0, "release")]]
        assert rig.tender.is_ended

    virtual(work)


def test_a_hub_that_finds_its_prefix_taken_by_its_release_remembers_it(
    make: Make, tmp_path: Path
) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        rig.bucket.release_faults = [FENCED]
        with pytest.raises(Fenced):
            await rig.backup.finish()
        state = load_state(tmp_path)
        assert state is not None
        assert state.fenced_by == FENCED.by
        assert not rig.tender.is_open

    virtual(work)


def test_a_stop_while_the_bucket_is_away_ends_without_an_error(make: Make) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        rig.store.change()
        rig.bucket.faults = [RemoteUnavailable("no answer", op="put")]
        await rig.backup.finish()
        assert rig.bucket.done == []
        assert not rig.bucket.is_open

    virtual(work)


def test_a_hub_that_was_refused_releases_nothing(make: Make) -> None:
    async def work() -> None:
        rig = make()
        await rig.backup.finish()
        assert rig.bucket.tried == []
        assert not rig.bucket.is_open

    virtual(work)


def test_without_an_object_store_nothing_is_shipped_and_nothing_holds_the_log(
    make: Make,
) -> None:
    async def work() -> None:
        rig = make()
        rig.backup._chain = rig.backup._tender = None
        await rig.start()
        rig.store.change()
        await rig.run_for(100)
        assert rig.backup.start_kind == "local"
        assert rig.backup.shipped_revision() == 51
        await rig.backup.finish()
        assert rig.bucket.done == []

    virtual(work)


# ------------------------------------------------------------------------ strict fencing

AWAY = RemoteUnavailable("no answer", op="put")


def test_an_idle_hub_asks_three_times_within_strict_fencing_and_never_refuses(make: Make) -> None:
    async def work() -> None:
        rig = make(strict_s=9)
        await rig.start()
        await rig.run_for(100)
        assert [at for at, _ in rig.bucket.done][:3] == [3.0, 6.0, 9.0]
        assert rig.backup.write_refusal() == ""

    virtual(work)


def test_strict_fencing_counts_from_the_last_answer_and_ends_with_the_next(make: Make) -> None:
    async def work() -> None:
        rig = make(strict_s=9)
        await rig.start()
        said: dict[float, str] = {}

        def listen() -> None:
            said[round(now_s(), 1)] = rig.backup.write_refusal()

        def go_away() -> None:
            rig.bucket.faults += [AWAY] * 1000

        loop = asyncio.get_running_loop()
        loop.call_later(4.0, go_away)  # it has answered at 3 s, and will not at 6 s
        loop.call_later(20.0, rig.bucket.faults.clear)
        for at in (5.0, 11.9, 12.1, 19.0, 25.0):
            loop.call_later(at, listen)
        await rig.run_for(30)
        assert [bool(said[at]) for at in (5.0, 11.9, 12.1, 19.0, 25.0)] == [
            False,
            False,
            True,
            True,
            False,
        ]
        assert said[12.1] == "the object store has not answered for 9 s (strict fencing)"

    virtual(work)


def test_without_strict_fencing_no_silence_stops_a_write(make: Make) -> None:
    async def work() -> None:
        rig = make()
        await rig.start()
        rig.bucket.faults += [AWAY] * 10_000
        await rig.run_for(10_000)
        assert rig.bucket.faults
        assert rig.backup.write_refusal() == ""

    virtual(work)


def test_no_revision_is_handed_out_that_head_does_not_reserve(make: Make) -> None:
    """An outage of weeks: a restore elsewhere goes on above what is reserved, and nowhere else."""

    async def work() -> None:
        rig = make()
        await rig.start()
        reserved = rig.bucket.head.reserved_rev
        rig.store.rev = reserved - 10_001
        assert rig.backup.write_refusal() == ""
        rig.store.rev = reserved - 10_000
        assert "are used up" in rig.backup.write_refusal()

    virtual(work)


# ------------------------------------------------------------------ what is told


def test_trouble_and_its_end_are_told_at_once_and_not_every_attempt(make: Make) -> None:
    async def work() -> None:
        rig, told = make(), list[float]()
        await rig.start()
        rig.backup.tell(lambda: told.append(round(now_s(), 3)))
        loop = asyncio.get_running_loop()
        loop.call_later(2.0, rig.store.change)
        rig.bucket.faults += [AWAY] * 2
        await rig.run_for(60)
        failed, tried_again, shipped, *_ = rig.bucket.tried
        assert failed < tried_again < shipped
        assert told == [round(failed, 3), round(shipped, 3)]

    virtual(work)


def test_a_lag_that_nobody_was_told_of_is_noticed(make: Make) -> None:
    """As when the store's listener is lost: nothing is due, nothing fails, nothing is shipped."""

    async def work() -> None:
        rig = make()
        await rig.start()
        assert rig.backup.parts().behind_s == 0
        rig.store.rev += 1
        assert not rig.backup.parts().is_lagging
        await asyncio.sleep(59)
        assert (rig.backup.parts().behind, rig.backup.parts().is_lagging) == (1, False)
        await asyncio.sleep(2)
        assert rig.backup.parts().is_lagging
        await rig.run_for(31)  # the heartbeat ships it
        assert (rig.backup.parts().behind_s, rig.backup.parts().is_lagging) == (0, False)

    virtual(work)
