"""Which clusters are back after a start: those whose agents have renewed their Lease since.

Tells `hub.registry.hold`. Begins after the hub has refreshed the Leases itself, and listens no more
once all are back.
"""

from hub.fleet.conditions import ACCEPTED, condition_status
from hub.fleet.kinds import MANAGED_CLUSTER
from hub.fleet.registration import LEASE_NAME
from hub.meta import Obj
from hub.registry.builtin import LEASE
from hub.registry.engine import Engine
from hub.registry.hold import Hold
from hub.registry.objects import is_deleting, meta_of
from hub.registry.watch import Event
from hub.store import Op


class Returns:
    """Counts the clusters that come back."""

    def __init__(self, engine: Engine, hold: Hold) -> None:
        self._engine, self._hold = engine, hold

    def begin(self) -> None:
        """Expect every cluster that is accepted and not going; call it before anyone is served."""
        self._hold.expect(
            str(meta_of(cluster)["name"])
            for cluster in self._engine.each(MANAGED_CLUSTER)
            if _is_expected(cluster)
        )
        if self._hold.awaited:
            self._engine.watches.listen(LEASE, self._lease_changed)
            self._engine.watches.listen(MANAGED_CLUSTER, self._cluster_changed)

    def _lease_changed(self, event: Event) -> None:
        # a Lease is made by the hub and renewed by its agent
        if event.name != LEASE_NAME or event.change.op is not Op.UPDATE:
            return
        if self._hold.has_awaited(event.namespace):
            self._rest_if_done()

    def _cluster_changed(self, event: Event) -> None:
        if event.change.op is Op.DELETE or not _is_expected(event.obj):
            self._hold.forget(event.name)
            self._rest_if_done()

    def _rest_if_done(self) -> None:
        if not self._hold.awaited:
            self._engine.watches.unlisten(LEASE, self._lease_changed)
            self._engine.watches.unlisten(MANAGED_CLUSTER, self._cluster_changed)


def _is_expected(cluster: Obj) -> bool:
    return condition_status(cluster, ACCEPTED) == "True" and not is_deleting(cluster)
