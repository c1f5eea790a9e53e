"""Which clusters have come back since the hub started: those whose agents renewed their Lease.

Owns the count and its times, in memory. Clusters that were accepted when counting began are
expected; what the hub writes into Leases before that is no return.
"""

from hub.clock import Clock
from hub.fleet.conditions import ACCEPTED, condition_status
from hub.fleet.kinds import MANAGED_CLUSTER
from hub.fleet.registration import LEASE_NAME
from hub.registry.builtin import LEASE
from hub.registry.engine import Engine
from hub.registry.watch import Event
from hub.store import Op

SHARES = (50, 95, 100)
"""Of a hundred clusters expected, those whose return is timed."""


class Returns:
    """Counts; nothing before `begin`. For the event loop's thread."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine, self._clock = engine, clock
        self._began_s = 0.0
        self._expected: frozenset[str] = frozenset()
        self._away: set[str] = set()
        self.seconds_to: dict[int, float] = {}
        """Share (`SHARES`) -> seconds from `begin` until that many were back; absent until then."""
        engine.watches.listen(LEASE, self._lease_changed)
        engine.watches.listen(MANAGED_CLUSTER, self._cluster_changed)

    @property
    def expected(self) -> int:
        """How many clusters there were, without those deleted before they came back."""
        return len(self._expected)

    @property
    def returned(self) -> int:
        """How many of them are back."""
        return len(self._expected) - len(self._away)

    def begin(self) -> None:
        """Expect the clusters accepted now, from now on."""
        clusters = self._engine.each(MANAGED_CLUSTER)
        self._expected = frozenset(
            str(cluster["metadata"]["name"])
            for cluster in clusters
            if condition_status(cluster, ACCEPTED) == "True"
        )
        self._away, self.seconds_to = set(self._expected), {}
        self._began_s = self._clock.monotonic_s()

    def _lease_changed(self, event: Event) -> None:
        is_renewal = event.name == LEASE_NAME and event.change.op is Op.UPDATE
        if is_renewal and event.namespace in self._away:
            self._away.remove(event.namespace)
            self._time()

    def _cluster_changed(self, event: Event) -> None:
        """Wait no longer for a cluster that is deleted."""
        if event.change.op is Op.DELETE and event.name in self._away:
            self._expected -= {event.name}
            self._away.remove(event.name)
            self._time()

    def _time(self) -> None:
        for share in SHARES:
            is_reached = self.returned * 100 >= self.expected * share
            if self.expected and is_reached and share not in self.seconds_to:
                self.seconds_to[share] = self._clock.monotonic_s() - self._began_s
