"""docs/bug-reports.md names a test for every public report that the design answers to."""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "bug-reports.md").read_text()
REPORTS = {
    1: "etcd-backup-restore#1043",
    2: "etcd-backup-restore#1044",
    3: "etcd-backup-restore#1046, #583",
    4: "etcd-backup-restore#749",
    5: "etcd-backup-restore#263, #963",
    6: "etcd-backup-restore#604, #636",
    7: "etcd-backup-restore#599",
    8: "litestream#781",
    9: "litestream#1270, #1307",
    10: "litestream#753, #847, #1084",
    11: "litestream#422, #266, #1119",
    12: "litestream#1310, #927, #1104",
    13: "litestream#1165, #1197",
    14: "litestream#976",
    15: "boto3#4392",
    16: "minio#21526",
    17: "slatedb#352",
    18: "k3s#13085",
    19: "k3s#10292",
    20: "k3s#8611",
    21: "velero#6845",
    22: "velero#7902",
    23: "velero#10556",
    24: "kubernetes#28671",
    25: "VictoriaMetrics#9280",
    26: "py-lmdb#269",
    27: "py-lmdb#465",
    28: "rqlite#2759",
    29: "wal-g#1869",
    30: "cluster-backup-operator#376",
    31: "rke#2034",
}
"""The reports of the contract's section 7, by a part of what it calls them."""


@dataclass(frozen=True, slots=True)
class Row:
    """A report on the page."""

    reports: str
    happened: str
    rule: str
    tests: tuple[tuple[str, str], ...]


def rows() -> dict[int, Row]:
    found = {}
    for number, *cells in re.findall(
        r"^\| (\d+) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE
    ):
        tests = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", cells[3])
        assert cells[3] == " ".join(f"`{file}::{name}`" for file, name in tests), number
        found[int(number)] = Row(cells[0], cells[1], cells[2], tuple(tests))
    return found


@cache
def names_in(path: Path) -> set[str]:
    """The names of the tests in a file, as pytest collects them."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, functions) and node.name.startswith("test_")
    }


def test_no_report_is_left_out_and_none_stands_twice() -> None:
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)]
    assert numbers == sorted(REPORTS)
    assert set(rows()) == set(REPORTS)


@pytest.mark.parametrize("number", REPORTS)
def test_every_report_has_a_rule_and_tests_that_exist(number: int) -> None:
    row = rows()[number]
    assert REPORTS[number] in row.reports
    assert row.happened.endswith(".")
    assert row.rule.endswith(".")
    assert row.tests
    for file, name in row.tests:
        assert name in names_in(ROOT / file), f"{file}: {name}"


def test_the_page_says_which_test_holds_it() -> None:
    assert str(Path(__file__).relative_to(ROOT)) in PAGE
