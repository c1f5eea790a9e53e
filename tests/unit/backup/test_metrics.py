"""The metrics of backup and restore are those of the design, and their labels are closed."""

import datetime as dt
import re
from pathlib import Path
from typing import cast

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from hub.backup.metrics import BackupMetrics
from hub.backup.parts import Drilled, Listed, Parts, Tended
from hub.backup.tend import REPEATED
from hub.store import Store
from snapshot.cleanup import Cleaned
from snapshot.errors import (
    ChainMoved,
    PreconditionFailed,
    RemoteDenied,
    RemoteUnavailable,
    SegmentCorrupt,
)
from snapshot.policy import Due
from snapshot.ship import Shipped
from tests.unit.backup.support import FakeStore, at

OPERATIONS = (Path(__file__).resolve().parents[3] / "docs" / "operations.md").read_text()
DESIGN = {
    "hublet_backup_": """committed_revision store_revision lag_revisions lag_seconds
    last_success_timestamp duration_seconds bytes_total failures_total chain_segments chain_bytes
    estimated_restore_seconds verified_revision verified_timestamp drill_seconds gc_deleted_total
    gc_failed_total epoch fenced fencing_level bucket_clock_offset_seconds key_proven_timestamp""",
    "hublet_store_": """map_bytes used_bytes free_page_ratio oldest_reader_lag commit_seconds
    readonly""",
    "hublet_restore_": "seconds objects clusters_expected clusters_reacquired",
}
NAMES = [prefix + name for prefix, names in DESIGN.items() for name in names.split()]
LEVELS = {"full", "d0", "d1", "d2"}
NOON = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
LABELS = {
    "kind": LEVELS,
    "phase": {"cut", "put"},
    "operation": {"ship", "merge", "full", "probe", "list", "drill", "clean"},
    "reason": {"unavailable", "denied", "refused", "moved", "integrity", "disk"},
}


def parts(tended: Tended, *, is_writer: bool = True) -> Parts:
    return Parts(
        start_kind="continue",
        has_store=is_writer,
        head=at(40) if is_writer else None,
        behind=10,
        behind_s=2.5,
        trouble="",
        end="",
        claim=None,
        last_full=None,
        tended=tended,
    )


KNOWN = Tended(
    drill=Drilled(NOON, 30, 1.5),
    listed=Listed(NOON, 1, 100),
    fencing_level=2,
    clock_offset_s=0.5,
    key_proven=NOON,
)


def served(now: Parts) -> tuple[BackupMetrics, CollectorRegistry]:
    registry = CollectorRegistry()
    return BackupMetrics(registry, lambda: now, cast("Store", FakeStore())), registry


def families(registry: CollectorRegistry) -> dict[str, Metric]:
    """By the names that a scrape shows."""
    return {
        f"{each.name}_total" if each.type == "counter" else each.name: each
        for each in registry.collect()
    }


def test_every_metric_of_the_design_is_served_or_the_manual_says_what_stands_for_it() -> None:
    manual = dict(
        re.findall(r"^\| `(hublet_\w+)(?:{[\w,]+})?` \| (.*) \|$", OPERATIONS, re.MULTILINE)
    )
    backup = set(families(served(parts(KNOWN))[1]))
    for name in NAMES:
        assert name in manual, name
        told = re.findall(r"`(hublet_\w+)`", manual[name])
        is_other = name not in backup and name.startswith("hublet_backup_")
        assert not is_other or told, name
        for other in told if is_other else ():
            assert other in backup


def test_what_is_not_known_has_a_family_and_no_sample() -> None:
    known, unknown = served(parts(KNOWN))[1], served(parts(Tended(), is_writer=False))[1]
    assert set(families(known)) == set(families(unknown))
    empty = {name for name, each in families(unknown).items() if not each.samples}
    assert empty == {
        f"hublet_backup_{name}"
        for name in (
            *("epoch", "committed_revision", "chain_segments", "chain_bytes"),
            *("estimated_restore_seconds", "fencing_level", "bucket_clock_offset_seconds"),
            *("key_proven_timestamp_seconds", "listing_damaged", "drill_failed", "drill_seconds"),
            *("verified_revision", "verified_timestamp_seconds"),
        )
    }
    assert not [name for name, each in families(known).items() if not each.samples]


def test_what_is_known_is_told() -> None:
    _, registry = served(parts(KNOWN))

    def value(name: str) -> float | None:
        return registry.get_sample_value(f"hublet_backup_{name}")

    assert (value("lag_revisions"), value("lag_seconds")) == (10, 2.5)
    assert (value("committed_revision"), value("store_revision")) == (40, 50)
    assert (value("verified_revision"), value("drill_seconds")) == (30, 1.5)
    assert value("verified_timestamp_seconds") == NOON.timestamp()
    assert (value("fencing_level"), value("bucket_clock_offset_seconds")) == (2, 0.5)
    assert (value("chain_segments"), value("chain_bytes"), value("fenced")) == (1, 100, 0)


def test_a_failed_drill_proves_nothing() -> None:
    _, registry = served(parts(Tended(drill=Drilled(NOON, 30, 1.5, "lost"))))
    assert registry.get_sample_value("hublet_backup_drill_failed") == 1
    assert registry.get_sample_value("hublet_backup_verified_revision") is None


def test_whatever_happens_no_series_comes_that_was_not_there_at_the_start() -> None:
    metrics, registry = served(parts(KNOWN))
    before = {
        (each.name, *each.labels.items())
        for family in registry.collect()
        for each in family.samples
    }
    for level in LEVELS:
        metrics.shipped(Shipped(level, Due.DELTA, "n", 1, 2, 1, 1, 0.1, 0.1))
    metrics.cleaned(Cleaned(deleted=2, failed=1))
    for operation in LABELS["operation"]:
        for error in (
            RemoteUnavailable("x", op="put"),
            RemoteDenied("x", op="put"),
            PreconditionFailed("x", op="put"),
            ChainMoved("x", op="ship"),
            SegmentCorrupt("x", op="read"),
            OSError("full"),
        ):
            assert isinstance(error, (*REPEATED, SegmentCorrupt))
            metrics.failed(operation, error)
    after = {
        (each.name, *each.labels.items())
        for family in registry.collect()
        for each in family.samples
    }
    assert after == before
    seen: dict[str, set[str]] = {}
    for family in registry.collect():
        for sample in family.samples:
            for label, value in sample.labels.items():
                seen.setdefault(label, set()).add(value)
    del seen["le"]
    assert seen == LABELS
    reasons = registry.get_sample_value(
        "hublet_backup_failures_total", {"operation": "ship", "reason": "disk"}
    )
    assert reasons == 1
    assert registry.get_sample_value("hublet_backup_gc_failed_total") == 1
