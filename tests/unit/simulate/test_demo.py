"""The demo's statements fail when what they state is not so."""

import dataclasses
from pathlib import Path

import pytest

from hub.meta import Obj
from hub.store import Position, Revision
from tests.unit.snapshot.support import head
from tools.demo_move import Moved, MovePlan, compare_move
from tools.demo_result import Before, DemoPlan, DemoResult, compare
from tools.simulate.identity import Identity, IdentityStore
from tools.simulate.look import Sight

_REPORT: Obj = {
    "passed": True,
    "clusters_available": 1,
    "works_done": 1,
    "addons_done": 1,
    "csrs_created": 0,
    "certificates_reused": 1,
    "evictions": {"begun": 0, "ended": 0},
}
_SIGHT = Sight(b"ca", frozenset({"csr-1"}), {"managedclusters//c1": "u"})
_ROW: Obj = {
    "name": "c1",
    "accepted": True,
    "joined": "True",
    "available": "True",
    "heard": "2026-01-01T00:00:00Z",
    "version": "v1.33.4",
    "works": 1,
    "addons": 1,
}
_DEAD = Position(Revision(9), b"\x01" * 32, 5)


def _check(
    directory: Path,
    *,
    restored: Obj | None = None,
    after: Sight = _SIGHT,
    second: Obj | None = None,
    rows: list[Obj] | None = None,
) -> DemoResult:
    plan = DemoPlan(directory=directory, object_store="file:///nowhere", clusters=1)
    IdentityStore(plan.state_dir).save(Identity("c1", "abcde", "cert", "key", 1))
    before = Before(_SIGHT, [_ROW], _DEAD, {"c1": "cert"})
    result = DemoResult(reports=[_REPORT, {**_REPORT, **(second or {})}])
    whole = {"state_hash": "01" * 32, "revision": 9, "objects": 5, **(restored or {})}
    told = [_ROW] if rows is None else rows
    result.checks = compare(plan, before, whole, after=after, rows=told, result=result)
    return result


def test_a_hub_that_came_back_whole_passes(tmp_path: Path) -> None:
    assert _check(tmp_path).is_passed


@pytest.mark.parametrize(
    "restored", [{"state_hash": "02" * 32}, {"revision": 8}], ids=["hash", "revision"]
)
def test_another_state_fails(tmp_path: Path, restored: Obj) -> None:
    assert not _check(tmp_path, restored=restored).is_passed


@pytest.mark.parametrize(
    "change",
    [
        {"csr_uids": frozenset({"csr-1", "csr-2"})},
        {"csr_uids": frozenset({"csr-2"})},
        {"csr_uids": frozenset()},
        {"ca_pem": b"another"},
        {"uids": {"managedclusters//c1": "another"}},
    ],
    ids=["new csr", "other csr", "lost csr", "other ca", "other uid"],
)
def test_another_hub_fails(tmp_path: Path, change: dict[str, object]) -> None:
    after = dataclasses.replace(_SIGHT, **change)  # type: ignore[arg-type]  # one field of each type
    assert not _check(tmp_path, after=after).is_passed


@pytest.mark.parametrize(
    "second",
    [
        {"passed": False},
        {"csrs_created": 1},
        {"certificates_reused": 0},
        {"clusters_available": 0},
        {"works_done": 0},
        {"addons_done": 0},
        {"evictions": {"begun": 1, "ended": 1}},
    ],
)
def test_agents_that_did_not_simply_go_on_fail(tmp_path: Path, second: Obj) -> None:
    assert not _check(tmp_path, second=second).is_passed


@pytest.mark.parametrize(
    "change",
    [{"available": "Unknown"}, {"works": 0}, {"addons": 2}, {"version": ""}, {"name": "c2"}],
    ids=str,
)
def test_a_cluster_that_is_told_of_otherwise_fails(tmp_path: Path, change: Obj) -> None:
    assert not _check(tmp_path, rows=[{**_ROW, **change}]).is_passed


@pytest.mark.parametrize("rows", [[], [_ROW, _ROW]], ids=["none", "twice"])
def test_another_number_of_clusters_fails(tmp_path: Path, rows: list[Obj]) -> None:
    assert not _check(tmp_path, rows=rows).is_passed


def test_when_a_cluster_was_heard_of_is_another_matter(tmp_path: Path) -> None:
    assert _check(tmp_path, rows=[{**_ROW, "heard": "2026-01-01T00:01:00Z"}]).is_passed


def _check_move(directory: Path, **change: object) -> bool:
    plan = DemoPlan(directory=directory, object_store="file:///nowhere", clusters=1)
    IdentityStore(plan.state_dir).save(Identity("c1", "abcde", "cert", "key", 1))
    left, reached = head(full=None, moved="file:///nowhere-moved"), head(full=None)
    says = {"clusters": {"says": "1 of 1 clusters are back", "at_seconds": 1.0}}
    found = Moved(_SIGHT, {"c1": "cert"}, 0, says, _SIGHT, (left, reached), _REPORT)
    found = dataclasses.replace(found, **change)  # type: ignore[arg-type]  # one field of each type
    moving = MovePlan(plan, directory / "kubeconfig", "127.0.0.1:1", [])
    return all(check.is_true for check in compare_move(moving, found))


def test_a_move_that_nobody_noticed_passes(tmp_path: Path) -> None:
    assert _check_move(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"exit_status": 1},
        {"after": None},
        {"after": dataclasses.replace(_SIGHT, ca_pem=b"another")},
        {"after": dataclasses.replace(_SIGHT, csr_uids=frozenset({"csr-1", "csr-2"}))},
        {"after": dataclasses.replace(_SIGHT, uids={})},
        {"heads": ()},
        {"heads": (head(full=None), head(full=None))},
        {"report": {**_REPORT, "csrs_created": 1}},
        {"report": {**_REPORT, "evictions": {"begun": 1}}},
        {"report": {}},
        {"certificates": {"c1": "another"}},
    ],
    ids=[
        "exit",
        "nobody",
        "another CA",
        "a new CSR",
        "other uids",
        "no HEAD",
        "not moved",
        "an agent's CSR",
        "an eviction",
        "no report",
        "another certificate",
    ],
)
def test_a_move_that_was_noticed_fails(tmp_path: Path, change: dict[str, object]) -> None:
    assert not _check_move(tmp_path, **change)


def test_a_result_without_statements_is_no_success() -> None:
    assert not DemoResult().is_passed
