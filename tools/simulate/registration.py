"""The registration agent with its certificate: three watches, the cluster's status, lease, add-ons.

One connection. While the hub has not accepted the cluster all is refused, and the reflectors come
back with growing pauses. Certificates live a year, so renewal does not occur within a run.
"""

import asyncio
import ssl
import time
from collections.abc import Callable

from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.meta import Obj
from tools.simulate.addon import AddOns
from tools.simulate.addonbody import FEATURE
from tools.simulate.clusterbody import (
    ACCEPTED,
    AVAILABLE,
    CLOCK_SYNCED,
    JOINED,
    LEASE_NAME,
    available_event,
    renewed,
    status_patch,
)
from tools.simulate.condition import find_condition, is_true
from tools.simulate.context import REGISTRATION_AGENT, Context
from tools.simulate.frame import MalformedError
from tools.simulate.outage import Outage
from tools.simulate.reflector import Reflector
from tools.simulate.resource import ADDONS, CLUSTERS, CSRS, EVENTS, LEASES, Selection
from tools.simulate.session import HubAwayError, Place, RefusedError, Session
from tools.simulate.upkeep import Upkeep

DEFAULT_LEASE_S = 60
JITTER = 0.25


class RegistrationAgent:
    """One cluster's registration agent; `run` until cancelled."""

    def __init__(
        self, context: Context, cluster: str, tls: ssl.SSLContext, *, outage: Outage
    ) -> None:
        self._context, self._cluster, self._outage = context, cluster, outage
        self.session = Session(context.route, tls, tally=context.tally, agent=REGISTRATION_AGENT)
        self.has_renewed_lease = False
        """Whether the lease was renewed in this run."""
        self.available_at_s: float | None = None
        """Monotonic time at which the hub first showed the cluster as available."""
        self._accepted, self._hurry = asyncio.Event(), asyncio.Event()
        self._upkeep: Upkeep | None = None
        label = f"{CLUSTER_NAME_LABEL}={cluster}"
        self._clusters = self._reflector(
            Selection(CLUSTERS, field_selector=f"metadata.name={cluster}"), self._on_change
        )
        self._csrs = self._reflector(Selection(CSRS, label_selector=label), self._on_csr)
        self.addons = AddOns(
            context, self.session, cluster, objects=lambda: self._addon_watch.objects
        )
        self._addon_watch = self._reflector(
            Selection(ADDONS, namespace=cluster), self.addons.on_change
        )

    @property
    def is_joined(self) -> bool:
        """Whether the hub shows the cluster as accepted and joined."""
        cluster = self._cluster_now()
        return cluster is not None and is_true(cluster, ACCEPTED) and is_true(cluster, JOINED)

    @property
    def is_available(self) -> bool:
        """Whether the hub shows the cluster as available."""
        cluster = self._cluster_now()
        return cluster is not None and is_true(cluster, AVAILABLE)

    @property
    def is_synced(self) -> bool:
        """Whether every watch has brought its initial events."""
        return all(watch.is_synced for watch in self._watches)

    @property
    def features(self) -> frozenset[str]:
        """Which add-ons the hub's labels on the cluster call available."""
        cluster = self._cluster_now()
        return available_features(cluster) if cluster else frozenset()

    @property
    def _watches(self) -> tuple[Reflector, ...]:
        return self._clusters, self._addon_watch, self._csrs

    async def run(self) -> None:
        """Watch, report and renew."""
        try:
            async with asyncio.TaskGroup() as group:
                self._upkeep = Upkeep(
                    group, lambda: self._clusters.objects, self._report, rng=self._context.rng
                )
                self.addons.start(group)
                for reflector in self._watches:
                    group.create_task(reflector.run())
                group.create_task(self._keep_lease())
        finally:
            await self.session.close()

    # -- the cluster's status

    def _on_change(self, name: str) -> None:
        cluster = self._clusters.objects.get(name)
        if self.available_at_s is None and cluster is not None and self.is_available:
            self.available_at_s = time.monotonic()
        if cluster is not None and is_true(cluster, ACCEPTED):
            self._accepted.set()
            self._hurry.set()
            if self._upkeep is not None:
                self._upkeep.wake(name)
        else:
            self._accepted.clear()

    async def _report(self, cluster: Obj) -> bool:
        clock = find_condition(cluster, CLOCK_SYNCED)
        if clock is not None and clock.get("status") == "False":
            return False  # OCM's agent writes no status while its clock is off
        patch = status_patch(cluster, now=self._context.now_text())
        if patch is None:
            return False
        was_available = is_true(cluster, AVAILABLE)
        place = Place(CLUSTERS, name=self._cluster, subresource="status")
        patched = await self.session.patch(place, patch)
        if not was_available:
            await self._record_event(patched)
        return True

    async def _record_event(self, cluster: Obj) -> None:
        event = available_event(cluster, now=self._context.clock.now())
        try:
            await self.session.create(Place(EVENTS, namespace=self._cluster), event)
        except (HubAwayError, RefusedError, MalformedError):
            return  # events are best effort; the session has judged the answer
        self._context.tally.events_created += 1

    # -- the lease

    async def _keep_lease(self) -> None:
        """Renew at once, then every period; the second comes early so that a fleet spreads."""
        rng, is_first = self._context.rng, True
        while True:
            await self._accepted.wait()
            is_renewed = await self._renew_lease()
            period_s = float(self._lease_s())
            if not is_renewed and not self.has_renewed_lease:
                await asyncio.sleep(1.0 + rng.random())  # the hub may still be making the Lease
                continue
            pause_s = period_s * (rng.uniform(0.25, 1.0) if is_first else 1 + JITTER * rng.random())
            is_first = await self._has_new_period(pause_s, period_s)

    async def _has_new_period(self, pause_s: float, period_s: float) -> bool:
        """Wait out `pause_s`, or until the cluster's spec asks for another period."""
        try:
            async with asyncio.timeout(pause_s):
                while float(self._lease_s()) == period_s:
                    self._hurry.clear()
                    await self._hurry.wait()
        except TimeoutError:
            return False
        return True

    async def _renew_lease(self) -> bool:
        place = Place(LEASES, namespace=self._cluster, name=LEASE_NAME)
        try:
            lease = await self.session.get(place)
            await self.session.update(place, renewed(lease, now=self._context.clock.now()))
        except (HubAwayError, RefusedError, MalformedError):
            return False  # the next period tries again
        self.has_renewed_lease = True
        return True

    def _lease_s(self) -> int:
        spec: Obj = (self._cluster_now() or {}).get("spec") or {}
        return spec.get("leaseDurationSeconds") or DEFAULT_LEASE_S

    # -- inner workings

    def _cluster_now(self) -> Obj | None:
        return self._clusters.objects.get(self._cluster)

    def _on_csr(self, name: str) -> None:
        csr = self._csrs.objects.get(name)
        if csr is not None:
            self.addons.on_csr(csr)

    def _reflector(self, selection: Selection, on_change: Callable[[str], None]) -> Reflector:
        return Reflector(
            self.session,
            selection,
            on_change=on_change,
            rng=self._context.rng,
            outage=self._outage,
        )


def available_features(cluster: Obj) -> frozenset[str]:
    """Return the add-ons that the labels of a ManagedCluster call available."""
    labels: Obj = cluster["metadata"].get("labels") or {}
    return frozenset(
        label.removeprefix(FEATURE)
        for label, value in labels.items()
        if label.startswith(FEATURE) and value == "available"
    )
