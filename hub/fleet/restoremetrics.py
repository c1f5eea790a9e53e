"""How the fleet comes back, as metrics; after every start."""

import math
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hub.fleet.differences import Differences
from hub.registry.hold import Hold


class RestoreMetrics(Collector):
    """Exports what a hold and the differences know."""

    def __init__(self, hold: Hold, differences: Differences) -> None:
        self._hold, self._differences = hold, differences

    def collect(self) -> Iterator[Metric]:
        """Read the numbers."""
        now = self._differences.summary()
        for name, text, value in (
            ("clusters_expected", "Clusters known at the start.", now.clusters_expected),
            ("clusters_reacquired", "Of these, renewed since the start.", now.clusters_returned),
            ("clusters_ahead", "Agents that have seen more than the state.", now.clusters_ahead),
            ("unknown_clusters", "Certified clusters that are not known.", now.unknown_clusters),
            ("unknown_objects", "Works and add-ons only agents have.", now.unknown_objects),
            ("held", "1 while what destroys waits.", float(not self._hold.is_over)),
        ):
            yield GaugeMetricFamily(f"hublet_restore_{name}", text, value=value)
        text = "From the start until so many per cent of the clusters had renewed."
        seconds = GaugeMetricFamily("hublet_restore_seconds", text, labels=["percent"])
        for share, after_s in self._hold.seconds.items():
            seconds.add_metric([str(share)], math.nan if after_s is None else after_s)
        yield seconds
