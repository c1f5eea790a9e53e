"""What is said of a hub, from what its parts know."""

import datetime as dt
from dataclasses import dataclass, replace
from typing import cast

import pytest

from hub.backup.report import Report, points_of
from hub.backup.runner import Backup, Parts
from hub.backup.status import CONDITIONS, Condition, Identity
from hub.fleet.returns import Returns
from hub.store import Position, Revision, Store
from snapshot.head import SegmentRef
from snapshot.header import Kind
from snapshot.local import Claim
from snapshot.policy import Due
from snapshot.ship import Shipped
from tests.unit.snapshot.support import HASH, HUB_ID, head

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
FULL = SegmentRef("e00000002/full/10-4-11111111.hs", 0, 10, HASH, 300, 1_767_225_600_000)
DELTA = SegmentRef("e00000003/d0/10-12-11111111.hs", 10, 12, HASH, 20, 1_767_225_601_000)
HEAD = head(full=FULL, tail=(DELTA,), epoch=3, seq=5)
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
class FakeReturns:
    expected: int = 4
    returned: int = 2
    seconds_to: dict[int, float] | None = None


def report(parts: Parts, *, held_s: float = 0.0) -> Report:
    returns = FakeReturns(seconds_to={50: 1.5})
    return Report(
        backup=cast("Backup", FakeBackup(parts)),
        store=cast("Store", FakeStore(Position(Revision(15), bytes.fromhex(HASH), 7))),
        returns=cast("Returns", returns),
        identity=Identity("id", "1", "https://hub"),
        started=START,
        held_s=lambda: held_s,
    )


def conditions(parts: Parts, *, held_s: float = 0.0) -> dict[str, Condition]:
    return {each.type: each for each in report(parts, held_s=held_s).status().conditions}


@pytest.mark.parametrize(
    ("parts", "status", "reason"),
    [
        (LOCAL, "False", "NoObjectStore"),
        (SHIPPING, "True", "Shipping"),
        (replace(SHIPPING, head=head(full=None)), "Unknown", "Starting"),
        (replace(SHIPPING, trouble="no answer"), "False", "NotShipping"),
        (replace(SHIPPING, trouble="no answer", end="another hub"), "False", "Ended"),
    ],
)
def test_the_backup_is_healthy_only_while_changes_reach_the_bucket(
    parts: Parts, status: str, reason: str
) -> None:
    found = conditions(parts)["BackupHealthy"]
    assert (found.status, found.reason) == (status, reason)
    if parts.trouble:
        assert found.message == (parts.end or parts.trouble)


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
    held, after = conditions(parts, held_s=10.0), conditions(parts)
    assert (held["Settled"].status, held["Settled"].reason) == ("False", "HeldAfterRestore")
    assert after["Settled"].status == "True"
    assert after["RecoveryKeyProven"].status == "True"
    assert after["NoDifferences"].status == "Unknown"
    assert conditions(SHIPPING)["NoDifferences"].status == "True"
    assert conditions(SHIPPING)["RecoveryKeyProven"].status == "Unknown"


def test_it_tells_how_far_the_store_and_the_bucket_are() -> None:
    status = report(replace(SHIPPING, behind=3, behind_s=2.0)).status()
    assert (status.position.revision, status.position.objects) == (15, 7)
    assert status.shipped is not None
    assert (status.shipped.revision, status.shipped.seq) == (12, 5)
    assert status.shipped.at == START + dt.timedelta(seconds=1)
    assert (status.lag.revisions, status.lag.seconds) == (3, 2.0)
    assert (status.clusters.expected, status.clusters.returned) == (4, 2)
    assert (status.clusters.seconds_to_50, status.clusters.seconds_to_95) == (1.5, None)


@pytest.mark.parametrize(("name", "seconds"), [(FULL.name, 0.75), ("another", None)])
def test_how_long_a_full_took_is_known_of_the_one_that_this_process_cut(
    name: str, seconds: float | None
) -> None:
    ours = Shipped(Kind.FULL, Due.ASKED, name, 0, 10, 5, 300, 0.5, 0.25)
    full = report(replace(SHIPPING, last_full=ours)).status().last_full
    assert full is not None
    assert (full.revision, full.size, full.at, full.seconds) == (10, 300, START, seconds)


def test_the_points_are_those_of_head() -> None:
    full, delta = points_of(HEAD)
    assert (full.kind, full.epoch, full.seq, full.revision) == ("full", 2, 4, 10)
    assert (delta.kind, delta.epoch, delta.seq, delta.revision) == ("d0", 3, 5, 12)
    assert (delta.size, delta.object_name) == (20, DELTA.name)
