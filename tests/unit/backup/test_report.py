"""What is said of a hub, from what its parts know."""

import datetime as dt
from dataclasses import dataclass, replace
from typing import cast

import pytest
from msgspec import structs

from hub.backup.holdings import Holdings
from hub.backup.parts import Drilled, Listed, Parts, Tended
from hub.backup.report import Report
from hub.backup.runner import Backup
from hub.backup.status import CONDITIONS, Condition, Identity
from hub.fleet.differences import Differences, Summary
from hub.registry.hold import Hold
from hub.store import Position, Revision, Store
from snapshot.head import Head, SegmentRef, Writer
from snapshot.local import Claim
from snapshot.policy import Due
from snapshot.ship import Shipped

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
HASH, HUB_ID = "11" * 32, "hub-1"
FULL = SegmentRef(
    name="e00000002/full/10-4-11111111.hs",
    level="full",
    from_seq=4,
    seq=4,
    from_rev=0,
    to_rev=10,
    hash=HASH,
    size=300,
    time_ms=1_767_225_600_000,
    is_verified=True,
)
DELTA = SegmentRef(
    name="e00000003/d1/10-12-11111111.hs",
    level="d1",
    from_seq=4,
    seq=9,
    from_rev=10,
    to_rev=12,
    hash=HASH,
    size=20,
    time_ms=1_767_225_601_000,
)
HEAD = Head(
    hub_id=HUB_ID,
    epoch=3,
    writer=Writer("dir", "session", "host", 1),
    nonce="aa",
    seq=9,
    last_seq=9,
    rev=12,
    chain=HASH,
    state_hash=HASH,
    objects=7,
    full=FULL,
    tail=(DELTA,),
    reserved_rev=1000,
    key="key",
    time="2026-01-01T00:00:01Z",
    released=False,
    fork=None,
)
NONE = Summary(
    is_restored=False,
    is_held=False,
    held_s=0.0,
    clusters_expected=4,
    clusters_returned=2,
    clusters_awaited=(),
    clusters_ahead=0,
    ahead=(),
    unknown_clusters=0,
    unknown=(),
    unknown_objects=0,
    objects=(),
)
SOME = replace(NONE, is_restored=True, unknown_clusters=1, unknown=("lost",))
LOCAL = Parts(
    start_kind="local",
    has_store=False,
    head=None,
    behind=0,
    behind_s=0.0,
    trouble="",
    end="",
    claim=None,
    last_full=None,
)
SHIPPING = replace(LOCAL, start_kind="continue", has_store=True, head=HEAD)
CLAIM = Claim(
    hub_id=HUB_ID,
    epoch=2,
    seq=4,
    rev=10,
    chain=HASH,
    state_hash=HASH,
    object_store="file:///b",
    restored="2026-01-01T00:00:00Z",
)


@dataclass
class FakeBackup:
    known: Parts

    def parts(self) -> Parts:
        return self.known


@dataclass
class FakeStore:
    position: Position


@dataclass
class FakeHold:
    is_over: bool
    seconds: dict[int, float]
    expected: int = 4
    returned: int = 2


@dataclass
class FakeDifferences:
    found: Summary

    def summary(self) -> Summary:
        return self.found


def report(parts: Parts, *, is_held: bool = False, found: Summary = NONE) -> Report:
    return Report(
        backup=cast("Backup", FakeBackup(parts)),
        store=cast("Store", FakeStore(Position(Revision(15), bytes.fromhex(HASH), 7))),
        hold=cast("Hold", FakeHold(not is_held, {50: 1.5})),
        differences=cast("Differences", FakeDifferences(found)),
        identity=Identity("id", "1", "https://hub"),
        started=START,
        source="Auto",
        takeover="Claimed",
    )


def conditions(
    parts: Parts, *, is_held: bool = False, found: Summary = NONE
) -> dict[str, Condition]:
    made = report(parts, is_held=is_held, found=found).status().conditions
    return {each.type: each for each in made}


@pytest.mark.parametrize(
    ("parts", "status", "reason"),
    [
        (LOCAL, "False", "NoObjectStore"),
        (SHIPPING, "True", "Shipping"),
        (replace(SHIPPING, head=structs.replace(HEAD, full=None)), "Unknown", "Starting"),
        (replace(SHIPPING, tended=Tended(trouble="merge: no answer")), "False", "NotTended"),
        (replace(SHIPPING, trouble="no answer"), "False", "NotShipping"),
        (replace(SHIPPING, trouble="no answer", behind=1, behind_s=61), "False", "NotShipping"),
        (replace(SHIPPING, behind=1, behind_s=59.0), "True", "Shipping"),
        (replace(SHIPPING, behind=1, behind_s=61.0), "False", "Lagging"),
        (replace(SHIPPING, trouble="no answer", end="another hub"), "False", "Ended"),
    ],
)
def test_the_backup_is_healthy_only_while_changes_reach_the_bucket(
    parts: Parts, status: str, reason: str
) -> None:
    found = conditions(parts)["BackupHealthy"]
    assert (found.status, found.reason) == (status, reason)
    if trouble := parts.end or parts.trouble or parts.tended.trouble:
        assert found.message == trouble


@pytest.mark.parametrize(
    ("tended", "status", "reason"),
    [
        (Tended(), "Unknown", "NotVerified"),
        (Tended(listed=Listed(START, 2, 320)), "Unknown", "NotVerified"),
        (Tended(drill=Drilled(START, 12, 1.5)), "True", "DrillPassed"),
        (Tended(drill=Drilled(START, 12, 1.5, "it is wrong")), "False", "DrillFailed"),
        (
            Tended(drill=Drilled(START, 12, 1.5), listed=Listed(START, 2, 320, "one is gone")),
            "False",
            "ObjectsAmiss",
        ),
    ],
)
def test_the_chain_is_verified_by_a_drill_and_as_long_as_no_look_finds_it_damaged(
    tended: Tended, status: str, reason: str
) -> None:
    parts = replace(SHIPPING, tended=tended)
    found = conditions(parts)["ChainVerified"]
    assert (found.status, found.reason) == (status, reason)
    drill = report(parts).status().last_drill
    assert (drill is None) == (tended.drill is None)
    if drill is not None and tended.drill is not None:
        assert (drill.revision, drill.seconds) == (12, 1.5)
        assert drill.result == (tended.drill.problem or "passed")


@pytest.mark.parametrize(
    ("tended", "status", "reason"),
    [
        (Tended(), "Unknown", "NotProbed"),
        (Tended(fencing_level=1, missing=("no swap", "no list")), "False", "FencingDegraded"),
        (Tended(fencing_level=2), "True", "Enforced"),
    ],
)
def test_fencing_is_enforced_when_the_probe_says_so(
    tended: Tended, status: str, reason: str
) -> None:
    parts = replace(SHIPPING, tended=tended)
    found = conditions(parts)["FencingEnforced"]
    assert (found.status, found.reason) == (status, reason)
    if tended.missing:
        assert found.message == "no swap; no list"
    fencing = report(parts).status().fencing
    assert (fencing.level, fencing.missing) == (tended.fencing_level, tended.missing)


def test_the_recovery_key_is_proven_by_a_drill_that_reads_its_file() -> None:
    parts = replace(SHIPPING, tended=Tended(key_proven=START))
    found = conditions(parts)["RecoveryKeyProven"]
    assert (found.status, found.reason) == ("True", "DrillPassed")


@pytest.mark.parametrize("parts", [LOCAL, SHIPPING, replace(SHIPPING, start_kind="restored")])
def test_every_condition_is_reported_and_what_nobody_looked_at_is_never_true(parts: Parts) -> None:
    found = conditions(parts)
    assert tuple(found) == CONDITIONS
    assert found["ChainVerified"].status == "Unknown"
    assert found["FencingEnforced"].status != "True"


def test_without_an_object_store_fencing_is_at_level_0() -> None:
    status = report(LOCAL).status()
    assert (status.fencing.level, status.epoch, status.shipped) == (0, 0, None)
    assert conditions(LOCAL)["FencingEnforced"].status == "False"
    assert report(LOCAL).points() == []


def test_after_a_restore_it_tells_from_where_and_that_deletions_are_held() -> None:
    parts = replace(SHIPPING, start_kind="restored", claim=CLAIM)
    start = report(parts).status().start
    assert (start.restored_from, start.restored_revision) == ("file:///b", 10)
    assert (start.source, start.takeover) == ("Auto", "Claimed")
    held, after = conditions(parts, is_held=True), conditions(parts)
    assert (held["Settled"].status, held["Settled"].reason) == ("False", "HeldAfterRestore")
    assert after["Settled"].status == "True"
    assert after["RecoveryKeyProven"].status == "True"
    assert conditions(SHIPPING)["RecoveryKeyProven"].status == "Unknown"


def test_what_agents_have_beyond_the_restored_state_is_told_in_numbers() -> None:
    found = conditions(SHIPPING, found=SOME)["NoDifferences"]
    assert (found.status, found.reason) == ("False", "DifferencesFound")
    assert found.message == SOME.message
    assert conditions(SHIPPING)["NoDifferences"].status == "True"


def test_agents_that_are_ahead_are_a_reason_of_their_own() -> None:
    """History is lost, which is worth an Event whatever else is told already."""
    found = conditions(SHIPPING, found=replace(SOME, clusters_ahead=1, ahead=("c1",)))
    assert found["NoDifferences"].reason == "AgentsAhead"
    assert "1 agents have seen a later state" in found["NoDifferences"].message


def test_it_tells_how_far_the_store_and_the_bucket_are() -> None:
    status = report(replace(SHIPPING, behind=3, behind_s=2.0)).status()
    assert (status.position.revision, status.position.objects) == (15, 7)
    assert status.shipped is not None
    assert (status.shipped.revision, status.shipped.seq) == (12, 9)
    assert status.shipped.at == START + dt.timedelta(seconds=1)
    assert (status.lag.revisions, status.lag.seconds) == (3, 2.0)
    assert (status.clusters.expected, status.clusters.returned) == (4, 2)
    assert (status.clusters.seconds_to_50, status.clusters.seconds_to_95) == (1.5, None)


@pytest.mark.parametrize(("name", "seconds"), [(FULL.name, 0.75), ("another", None)])
def test_how_long_a_full_took_is_known_of_the_one_that_this_process_cut(
    name: str, seconds: float | None
) -> None:
    ours = Shipped("full", Due.ASKED, name, 0, 10, 5, 300, 0.5, 0.25)
    full = report(replace(SHIPPING, last_full=ours)).status().last_full
    assert full is not None
    assert (full.revision, full.size, full.at, full.seconds) == (10, 300, START, seconds)


def test_the_points_are_those_of_head_and_of_what_else_the_bucket_holds() -> None:
    older = structs.replace(FULL, name="e00000001/full/5-2-11111111.hs", seq=2, to_rev=5)
    holdings = Holdings((older,), frozenset({older.name}))
    first, full, delta = report(replace(SHIPPING, holdings=holdings)).points()
    assert (first.epoch, first.seq, first.is_pinned) == (1, 2, True)
    assert not full.is_pinned
    assert (full.kind, full.epoch, full.seq, full.revision) == ("full", 2, 4, 10)
    assert (delta.kind, delta.epoch, delta.seq, delta.revision) == ("d1", 3, 9, 12)
    assert (delta.size, delta.object_name) == (20, DELTA.name)
    assert (full.is_verified, delta.is_verified) == (True, False)
