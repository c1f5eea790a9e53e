"""Metrics of shipping, prefix ``hublet_backup_`` (docs/operations.md)."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hub.backup.parts import Parts, Tended
from hub.backup.tend import Tender
from hub.store import Store
from snapshot.cleanup import Cleaned
from snapshot.errors import (
    ChainMoved,
    IntegrityError,
    RemoteDenied,
    RemoteError,
    RemoteUnavailable,
)
from snapshot.head import Head
from snapshot.ship import Shipped

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_LEVELS = ("full", "d0", "d1", "d2")
_OPERATIONS = ("ship", "merge", "full", "probe", "list", "drill", "clean")
_REASONS = ("unavailable", "denied", "refused", "moved", "integrity", "disk")
_RESTORE_BYTES_A_S = 20e6
"""How fast a restore goes by bytes of segments, on two shared cores (docs/sizing.md)."""

_Row: TypeAlias = tuple[str, str, float | None]
"""Name, help text and value, None while it is not known."""


class BackupMetrics:
    """The counters of one hub's shipping; what can be read off is a collector's."""

    def __init__(
        self, registry: CollectorRegistry, parts: Callable[[], Parts], store: Store
    ) -> None:
        registry.register(_Now(parts, store))
        kinds = ["kind"]
        segments = Counter(
            "hublet_backup_segments", "Segments committed.", kinds, registry=registry
        )
        self._segments = {kind: segments.labels(kind) for kind in _LEVELS}
        sizes = Counter(
            "hublet_backup_bytes", "Bytes of segments committed.", kinds, registry=registry
        )
        self._bytes = {kind: sizes.labels(kind) for kind in _LEVELS}
        last = Gauge(
            "hublet_backup_last_bytes", "Size of the newest segment.", kinds, registry=registry
        )
        self._last = {kind: last.labels(kind) for kind in _LEVELS}
        success = Gauge(
            "hublet_backup_last_success_timestamp_seconds",
            "When the newest segment was committed.",
            kinds,
            registry=registry,
        )
        self._success = {kind: success.labels(kind) for kind in _LEVELS}
        seconds = Histogram(
            "hublet_backup_duration_seconds",
            "What a segment took: to cut, and to put and commit.",
            ["kind", "phase"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._cut = {kind: seconds.labels(kind, "cut") for kind in _LEVELS}
        self._put = {kind: seconds.labels(kind, "put") for kind in _LEVELS}
        self._failures = Counter(
            "hublet_backup_failures",
            "Attempts that will be repeated.",
            ["operation", "reason"],
            registry=registry,
        )
        for operation in _OPERATIONS:
            for reason in _REASONS:
                self._failures.labels(operation, reason)
        self._confirmed = Gauge(
            "hublet_backup_confirmed_timestamp_seconds",
            "When HEAD was last known to be ours.",
            registry=registry,
        )
        self._deleted = Counter(
            "hublet_backup_gc_deleted", "Objects deleted by the clean-up.", registry=registry
        )
        self._undeleted = Counter(
            "hublet_backup_gc_failed",
            "Objects that the clean-up could not delete.",
            registry=registry,
        )

    def follow(self, tender: Tender) -> None:
        """Count what tending does."""
        tender.on_shipped, tender.on_failed = self.shipped, self.failed
        tender.on_cleaned = self.cleaned

    def shipped(self, shipped: Shipped) -> None:
        """Count a committed segment."""
        kind = shipped.level
        self._segments[kind].inc()
        self._bytes[kind].inc(shipped.size)
        self._last[kind].set(shipped.size)
        self._success[kind].set_to_current_time()
        self._cut[kind].observe(shipped.cut_s)
        self._put[kind].observe(shipped.put_s)
        self.confirmed()

    def confirmed(self) -> None:
        """Note that the prefix is still ours."""
        self._confirmed.set_to_current_time()

    def failed(self, operation: str, error: Exception) -> None:
        """Count an attempt that will be repeated."""
        self._failures.labels(operation, _reason(error)).inc()

    def cleaned(self, cleaned: Cleaned) -> None:
        """Count what a clean-up deleted, and could not."""
        self._deleted.inc(cleaned.deleted)
        self._undeleted.inc(cleaned.failed)


class _Now(Collector):
    """What is read off when it is asked for."""

    def __init__(self, parts: Callable[[], Parts], store: Store) -> None:
        self._parts, self._store = parts, store

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges; those whose value is not known have no sample."""
        parts = self._parts()
        rows = (*self._now(parts), *_chain(parts.head), *_tended(parts.tended))
        for name, text, value in rows:
            yield GaugeMetricFamily(f"hublet_backup_{name}", text, value=value)

    def _now(self, parts: Parts) -> Iterator[_Row]:
        yield "enabled", "Whether changes are shipped.", float(parts.has_store)
        yield "store_revision", "Newest durable revision.", self._store.position.revision
        yield "lag_revisions", "Durable revisions that are not in the bucket yet.", parts.behind
        yield "lag_seconds", "For how long the bucket has lacked something.", parts.behind_s
        yield "fenced", "Whether this hub may not write any more.", float(bool(parts.end))


def _chain(head: Head | None) -> Iterator[_Row]:
    segments = head.segments if head else ()
    size = sum(ref.size for ref in segments) if head else None
    count = len(segments) if head else None
    estimate = None if size is None else size / _RESTORE_BYTES_A_S
    yield "epoch", "Epoch of this writer.", head.epoch if head else None
    yield "committed_revision", "Newest revision in the bucket.", head.rev if head else None
    yield "chain_segments", "Segments that HEAD names.", count
    yield "chain_bytes", "Bytes of the segments that HEAD names.", size
    yield "estimated_restore_seconds", "What a restore would take, by its bytes.", estimate


def _tended(tended: Tended) -> Iterator[_Row]:
    yield "fencing_level", "What the bucket enforces: 2 all, 1 not all of it.", tended.fencing_level
    text = "By how much the bucket's clock is ahead of ours."
    yield "bucket_clock_offset_seconds", text, tended.clock_offset_s
    proven = tended.key_proven.timestamp() if tended.key_proven else None
    yield "key_proven_timestamp_seconds", "When the key file last opened a snapshot.", proven
    damaged = float(bool(tended.listed.problem)) if tended.listed else None
    yield "listing_damaged", "Whether the last listing found something amiss.", damaged
    drill = tended.drill
    failed = float(bool(drill.problem)) if drill else None
    yield "drill_failed", "Whether the last restore drill failed.", failed
    yield "drill_seconds", "What the last restore drill took.", drill.seconds if drill else None
    passed = drill if drill and not drill.problem else None
    revision = passed.revision if passed else None
    at_s = passed.at.timestamp() if passed else None
    yield "verified_revision", "Newest revision a drill has rebuilt.", revision
    yield "verified_timestamp_seconds", "When a drill last rebuilt the state.", at_s


def _reason(error: Exception) -> str:
    """Return the closed set's word for what failed."""
    for kind, word in (
        (RemoteUnavailable, "unavailable"),
        (RemoteDenied, "denied"),
        (RemoteError, "refused"),
        (ChainMoved, "moved"),
        (IntegrityError, "integrity"),
    ):
        if isinstance(error, kind):
            return word
    return "disk"
