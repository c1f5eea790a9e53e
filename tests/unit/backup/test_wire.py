"""Hub and HubSnapshot as objects: every field there is, and which points are listed."""

import datetime as dt
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hub.backup.kinds import HUB, OWN, OWN_SCHEMAS, SNAPSHOT
from hub.backup.status import (
    CONDITIONS,
    ClustersStatus,
    DrillStatus,
    FencingStatus,
    FullStatus,
    HubStatus,
    Identity,
    LagStatus,
    PositionStatus,
    SegmentKind,
    ShippedStatus,
    SnapshotPoint,
    StartStatus,
)
from hub.backup.wire import choose, snapshot_name, snapshot_status, status_obj
from hub.fleet.conditions import set_condition
from hub.meta import Obj
from hub.meta.schema.check import check_structural
from hub.meta.schema.structural import parse
from hub.registry.kind import Kind

PAGE = (Path(__file__).parents[3] / "docs" / "api.md").read_text()
AT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
BARE = HubStatus(
    identity=Identity("id", "1", "https://hub"),
    start=StartStatus("local", AT),
    position=PositionStatus(5, "ab", 2),
)
WHOLE = HubStatus(
    identity=BARE.identity,
    start=StartStatus("restored", AT, "Auto", "Claimed", "file:///b", 4),
    position=BARE.position,
    epoch=2,
    writer="process 1 on h (directory d)",
    shipped=ShippedStatus(4, 7, AT),
    lag=LagStatus(1, 0.123),
    last_full=FullStatus(3, AT, 100, 0.5),
    last_drill=DrillStatus(3, AT, 1.5, "Passed"),
    fencing=FencingStatus(1, ("If-Match",)),
    clusters=ClustersStatus(3, 3, 0.5, 1.0, 1.23456),
)


def point(seq: int, kind: SegmentKind = "d0", *, is_pinned: bool = False) -> SnapshotPoint:
    at = AT + dt.timedelta(seconds=seq)
    return SnapshotPoint(kind, 1, seq, seq * 10, at, 1, f"{kind}/{seq}", is_pinned=is_pinned)


def paths(obj: Obj, at: str = "") -> Iterator[str]:
    """The leaves of an object, but for what is in its conditions."""
    for name, value in obj.items():
        if isinstance(value, dict):
            yield from paths(value, f"{at}{name}.")
        else:
            yield f"{at}{name}"


def schema_paths(node: Obj, at: str = "") -> Iterator[str]:
    for name, below in node["properties"].items():
        if "properties" in below:
            yield from schema_paths(below, f"{at}{name}.")
        else:
            yield f"{at}{name}"


@pytest.mark.parametrize("kind", OWN, ids=lambda kind: kind.kind)
def test_the_schemas_are_structural(kind: Kind) -> None:
    assert check_structural(parse(OWN_SCHEMAS[kind.id]), "schema", has_status=True) == []


def test_a_status_in_which_everything_is_known_has_every_field_of_the_schema() -> None:
    obj = {"status": status_obj(WHOLE)}
    set_condition(obj, CONDITIONS[0], "True", reason="R", message="m", now=AT)
    known = OWN_SCHEMAS[HUB.id]["properties"]["status"]
    assert sorted(paths(obj["status"])) == sorted(schema_paths(known))
    assert obj["status"]["clusters"]["secondsTo100"] == 1.23
    assert HUB.strategy.validate(obj) == []


def test_what_is_not_known_is_left_out_and_zero_is_known() -> None:
    assert status_obj(BARE) == {
        "identity": {"hubID": "id", "version": "1", "url": "https://hub"},
        "epoch": 0,
        "start": {"kind": "local", "time": "2026-01-01T00:00:00Z"},
        "position": {"revision": 5, "stateHash": "ab", "objects": 2},
        "lag": {"revisions": 0, "seconds": 0.0},
        "clusters": {"expected": 0, "returned": 0},
    }


def test_a_point_has_every_field_of_the_schema() -> None:
    status = snapshot_status(point(1, "d2"))
    known = OWN_SCHEMAS[SNAPSHOT.id]["properties"]["status"]
    assert sorted(status) == sorted(schema_paths(known))
    assert SNAPSHOT.strategy.validate({"status": status}) == []


def test_the_manual_names_every_field_and_condition_and_no_others() -> None:
    text = PAGE.partition("## The hub itself")[2].partition("\n## ")[0]
    told: set[str] = set()
    for cell in re.findall(r"^\| (`.*?) \| ", text, flags=re.MULTILINE):
        before = ""
        for name in re.findall(r"`([\w.]+)`", cell):
            full = f"{before}{name}" if name.startswith(".") else name
            before = full.rpartition(".")[0]
            told.add(full)
    fields = {p for s in OWN_SCHEMAS.values() for p in schema_paths(s["properties"]["status"])}
    assert told == fields | set(CONDITIONS)


def test_a_few_points_are_all_listed_in_the_order_of_the_chain() -> None:
    points = [point(3), point(1, "full"), point(2), point(3, "full")]
    names = [snapshot_name(each) for each in choose(points)]
    assert names == ["0000000001-full", "0000000002-d0", "0000000003-d0", "0000000003-full"]


def test_of_many_the_newest_deltas_the_fulls_and_then_merges_are_listed() -> None:
    deltas = [point(seq) for seq in range(1000, 1064)]
    merges = [point(seq, "d1") for seq in range(500, 540)]
    fulls = [point(seq, "full") for seq in range(10, 340, 10)]
    found = choose([*merges, *fulls, *deltas])
    assert len(found) == 50
    by_kind = {k: [p.seq for p in g] for k, g in itertools.groupby(found, lambda p: p.kind)}
    assert by_kind["d0"] == list(range(1054, 1064))
    assert by_kind["full"] == [p.seq for p in fulls]
    assert by_kind["d1"] == list(range(533, 540))


def test_a_pinned_delta_stays_listed_as_a_full_does() -> None:
    pinned = point(1, "d1", is_pinned=True)
    found = choose([pinned, *(point(seq) for seq in range(2, 200))])
    assert pinned in found
    assert len(found) == 50


def test_of_two_fulls_at_one_position_the_newer_is_listed() -> None:
    older = point(4, "full")
    newer = SnapshotPoint("full", 2, 4, 40, AT + dt.timedelta(hours=1), 1, "newer")
    assert choose([older, newer]) == choose([newer, older]) == [newer]
