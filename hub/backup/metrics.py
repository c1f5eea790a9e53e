"""Metrics of shipping, prefix ``hublet_backup_`` (docs/operations.md)."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from snapshot.ship import Shipped

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class BackupMetrics:
    """The counters and gauges of one hub's shipping."""

    def __init__(
        self, registry: CollectorRegistry, unshipped: Callable[[], int], *, is_on: bool
    ) -> None:
        enabled = Gauge("hublet_backup_enabled", "Whether changes are shipped.", registry=registry)
        enabled.set(1 if is_on else 0)
        lag = Gauge(
            "hublet_backup_unshipped_revisions",
            "Durable revisions that are not in the bucket yet.",
            registry=registry,
        )
        lag.set_function(unshipped)
        segments = Counter(
            "hublet_backup_segments", "Segments committed.", ["kind"], registry=registry
        )
        self._segments = {kind: segments.labels(kind) for kind in ("full", "delta")}
        sizes = Counter(
            "hublet_backup_bytes", "Bytes of segments committed.", ["kind"], registry=registry
        )
        self._bytes = {kind: sizes.labels(kind) for kind in ("full", "delta")}
        last = Gauge(
            "hublet_backup_last_bytes", "Size of the newest segment.", ["kind"], registry=registry
        )
        self._last = {kind: last.labels(kind) for kind in ("full", "delta")}
        seconds = Histogram(
            "hublet_backup_seconds",
            "From cutting a segment to its commit.",
            ["kind"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._seconds = {kind: seconds.labels(kind) for kind in ("full", "delta")}
        self._failures = Counter(
            "hublet_backup_failures", "Attempts that will be repeated.", registry=registry
        )
        self._confirmed = Gauge(
            "hublet_backup_confirmed_timestamp_seconds",
            "When HEAD was last known to be ours.",
            registry=registry,
        )

    def shipped(self, shipped: Shipped) -> None:
        """Count a committed segment."""
        kind = shipped.kind.name.lower()
        self._segments[kind].inc()
        self._bytes[kind].inc(shipped.size)
        self._last[kind].set(shipped.size)
        self._seconds[kind].observe(shipped.cut_s + shipped.put_s)
        self.confirmed()

    def confirmed(self) -> None:
        """Note that the prefix is still ours."""
        self._confirmed.set_to_current_time()

    def failed(self) -> None:
        """Count an attempt that will be repeated."""
        self._failures.inc()
