"""Metrics of the store and the watches, prefix ``hublet_`` (docs/operations.md).

Everything is read when somebody asks, and costs nothing before.
"""

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hub.registry.engine import Engine


class EngineMetrics(Collector):
    """Exports what an engine, its store and its watches know of themselves."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        """Read the numbers."""
        store, watches = self._engine.store, self._engine.watches
        stats, commits = store.stats(), store.commits
        gauges: tuple[tuple[str, str, float], ...] = (
            ("hublet_watch_count", "Open watches.", len(watches)),
            ("hublet_store_revision", "Highest visible revision.", store.revision),
            ("hublet_store_objects", "Durable objects.", store.position.count),
            ("hublet_store_file_bytes", "Size of the data file.", stats.file_bytes),
            ("hublet_store_used_bytes", "Size of the data file's pages in use.", stats.used_bytes),
            ("hublet_store_log_entries", "Changes kept for watches.", stats.log_entries),
            ("hublet_store_renewals", "Leases whose last renewal is in memory.", stats.renewals),
            ("hublet_store_trouble", "Whether the last commit failed.", bool(store.trouble)),
        )
        counters: tuple[tuple[str, str, float], ...] = (
            ("hublet_watch_events", "Changes shown to watches.", watches.events),
            ("hublet_store_commits", "Transactions committed.", commits.done),
            ("hublet_store_failed_commits", "Transactions not committed.", commits.failed),
            ("hublet_store_commit_seconds", "Time in transactions.", commits.seconds),
        )
        for name, text, value in gauges:
            yield GaugeMetricFamily(name, text, value=value)
        for name, text, value in counters:
            yield CounterMetricFamily(name, text, value=value)
