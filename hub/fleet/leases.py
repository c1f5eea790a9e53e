"""Which clusters are alive: judged by when *this hub* received a renewal, on its own clock.

The monotonic clock counts. A cluster whose Lease is not renewed for five lease durations becomes
Available=Unknown, at that moment and not at the next poll. What the agent wrote into renewTime only
tells how far its clock is off (condition ClockSynced, from its first renewal on). After a start
every cluster gets a whole grace period: the hub was away, not the cluster.

Upstream's lease controller compares renewTime with the hub's clock, so that a skewed agent is
Unknown forever and a restored hub declares its whole fleet dead in its first second
(pkg/registration/hub/lease).
"""

import asyncio
import datetime as dt
from http import HTTPStatus

from hub.clock import Clock
from hub.fleet.conditions import ACCEPTED, AVAILABLE, CLOCK_SYNCED, condition_status, set_condition
from hub.fleet.kinds import MANAGED_CLUSTER, MANAGED_CLUSTER_ADDON
from hub.fleet.registration import LEASE_NAME
from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.meta.timestamp import format_micro_time, parse_time
from hub.registry.builtin import LEASE
from hub.registry.engine import Change, Engine
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain
from hub.store import Op

GRACE_LEASES = 5
_DEFAULT_LEASE_S = 60
_LEAST_LEASE_S, _MOST_LEASE_S = 1, 7 * 24 * 3600
"""What agents write is bounded: a negative duration would be due for ever, at once."""
SKIP_CLOCK_CHECK = "registration.open-cluster-management.io/skip-clock-sync-check"


class LeaseJudge:
    """Turns silence into Available=Unknown, and renewals into ClockSynced."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine, self._clock = engine, clock
        self._queue = Queue()
        self._heard_s: dict[str, float] = {}
        self._skew_s: dict[str, float] = {}
        self._is_refreshing = False
        self._duration_s: dict[str, float] = {}
        engine.watches.listen(LEASE, self._lease_changed)
        engine.watches.listen(MANAGED_CLUSTER, self._cluster_changed)

    def _lease_changed(self, event: Event) -> None:
        if event.name != LEASE_NAME or event.change.op is Op.DELETE:
            return
        cluster = event.namespace
        is_first = cluster not in self._heard_s
        self._heard_s[cluster] = self._clock.monotonic_s()
        # what the hub writes itself tells nothing of a clock: a new Lease, all of them at the start
        is_own = event.change.op is Op.CREATE or self._is_refreshing
        skew = None if is_own else self._skew_of(event.obj)
        was_off = self._is_off(cluster, self._skew_s.get(cluster))
        if skew is not None:
            self._skew_s[cluster] = skew
        if is_first or was_off != self._is_off(cluster, skew):
            self._queue.add(cluster)

    def _cluster_changed(self, event: Event) -> None:
        if event.change.op is Op.DELETE:
            self._heard_s.pop(event.name, None)
            self._skew_s.pop(event.name, None)
            self._duration_s.pop(event.name, None)
            return
        self._duration_s[event.name] = _duration_of(event.obj)
        before = event.previous
        if not _is_accepted(event.obj) or (before and _terms(event.obj) == _terms(before)):
            return
        if before is None or not _is_accepted(before):
            self._heard_s[event.name] = self._clock.monotonic_s()
        self._queue.add(event.name)

    def _skew_of(self, lease: Obj) -> float | None:
        text = (lease.get("spec") or {}).get("renewTime")
        if not text:
            return None
        now: dt.datetime = self._clock.now()
        try:
            return (now - parse_time(str(text))).total_seconds()
        except ValueError:  # written before times were validated
            return None

    def _is_off(self, cluster: str, skew: float | None) -> bool | None:
        return None if skew is None else abs(skew) >= GRACE_LEASES * self._lease_s(cluster)

    def _lease_s(self, cluster: str) -> float:
        known = self._duration_s.get(cluster)
        if known is not None:
            return known
        obj = self._engine.peek(MANAGED_CLUSTER, cluster)
        if obj is None:
            return float(_DEFAULT_LEASE_S)
        # kept: every renewal asks for it, and changes of the cluster come by `_cluster_changed`
        found = self._duration_s[cluster] = _duration_of(obj)
        return found

    async def refresh_all(self) -> int:
        """Give every cluster's Lease a renewTime of now, before anyone is served.

        Returns how many there were.
        """
        count = 0
        now = format_micro_time(self._clock.now())

        def renew(lease: Obj) -> None:
            lease.setdefault("spec", {})["renewTime"] = now

        self._is_refreshing = True
        for cluster in self._engine.each(MANAGED_CLUSTER):
            name = str(cluster["metadata"]["name"])
            if self._engine.find(LEASE, LEASE_NAME, name) is not None:
                await self._engine.modify(LEASE, LEASE_NAME, renew, namespace=name)
                count += 1
        await asyncio.sleep(0)  # renewals are shown in the loop's next turn
        self._is_refreshing = False
        return count

    async def run(self) -> None:
        """Judge until cancelled."""
        now = self._clock.monotonic_s()
        async for cluster in self._engine.paced(MANAGED_CLUSTER):
            if _is_accepted(cluster):
                name = str(cluster["metadata"]["name"])
                self._heard_s.setdefault(name, now)
                self._queue.add(name)
        await drain("leases", self._queue, self.reconcile, workers=32)

    async def reconcile(self, name: str) -> float | None:
        """Judge one cluster; return when its time would be up."""
        heard = self._heard_s.get(name)
        cluster = self._engine.peek(MANAGED_CLUSTER, name)
        if heard is None or cluster is None or not _is_accepted(cluster):
            return None
        await self._report_clock(name, cluster)
        left = heard + GRACE_LEASES * self._lease_s(name) - self._clock.monotonic_s()
        if left > 0:
            return left
        if condition_status(cluster, AVAILABLE) not in ("Unknown", ""):
            await self._lose(name, heard)
        # a renewal does not queue the cluster: the agent itself turns Available back to True
        return GRACE_LEASES * self._lease_s(name)

    async def _lose(self, name: str, heard_s: float) -> None:
        """Turn a silent cluster and all its add-ons to Unknown, until it is heard again."""
        reason = "ManagedClusterLeaseUpdateStopped"
        message = "Registration agent stopped updating its lease."
        now = self._clock.now()

        def lost(type_: str) -> Change:
            def change(obj: Obj) -> None:
                if self._heard_s.get(name) == heard_s:  # a renewal may come between the writes
                    set_condition(obj, type_, "Unknown", reason=reason, message=message, now=now)

            return change

        # the cluster last: it says that its add-ons are done, and nothing is tried again after it
        for addon in self._engine.each(MANAGED_CLUSTER_ADDON, name):
            own = str(addon["metadata"]["name"])
            try:
                await self._engine.modify(
                    MANAGED_CLUSTER_ADDON,
                    own,
                    lost("Available"),
                    namespace=name,
                    subresource="status",
                )
            except ApiError as error:
                if error.code != HTTPStatus.NOT_FOUND:  # deleted meanwhile
                    raise
        await self._engine.modify(MANAGED_CLUSTER, name, lost(AVAILABLE), subresource="status")

    async def _report_clock(self, name: str, cluster: Obj) -> None:
        is_off = self._is_off(name, self._skew_s.get(name))
        annotations = cluster["metadata"].get("annotations") or {}
        if is_off is None or annotations.get(SKIP_CLOCK_CHECK) == "true":
            return
        status = "False" if is_off else "True"
        if condition_status(cluster, CLOCK_SYNCED) == status:
            return
        reason = "ManagedClusterClockOutOfSync" if is_off else "ManagedClusterClockSynced"
        state = "out of sync" if is_off else "synced"
        message = f"The clock of the managed cluster is {state} with the hub."
        await self._set(name, CLOCK_SYNCED, status, reason, message)

    async def _set(self, name: str, type_: str, status: str, reason: str, message: str) -> None:
        now = self._clock.now()

        def change(obj: Obj) -> None:
            set_condition(obj, type_, status, reason=reason, message=message, now=now)

        await self._engine.modify(MANAGED_CLUSTER, name, change, subresource="status")


def _duration_of(cluster: Obj) -> float:
    spec = cluster.get("spec") or {}
    asked = int(spec.get("leaseDurationSeconds") or _DEFAULT_LEASE_S)
    return float(min(max(asked, _LEAST_LEASE_S), _MOST_LEASE_S))


def _terms(cluster: Obj) -> tuple[bool, object, bool]:
    """Return what decides when a cluster is to be judged: a change of it is a reason to look."""
    lease_s = (cluster.get("spec") or {}).get("leaseDurationSeconds")
    return _is_accepted(cluster), lease_s, condition_status(cluster, AVAILABLE) != ""


def _is_accepted(cluster: Obj) -> bool:
    return condition_status(cluster, ACCEPTED) == "True"
