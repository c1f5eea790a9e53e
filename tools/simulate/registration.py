"""The registration agent with its certificate: three watches, the cluster's status, its lease.

One connection. While the hub has not accepted the cluster all is refused, and the reflectors come
back with growing pauses. Certificates live a year, so renewal does not occur within a run.
"""

import asyncio
import ssl

from hub.meta import Obj
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
from tools.simulate.reflector import Reflector
from tools.simulate.resource import (
    ADDONS,
    CLUSTER_NAME_LABEL,
    CLUSTERS,
    CSRS,
    EVENTS,
    LEASES,
    Selection,
)
from tools.simulate.session import HubAwayError, Place, RefusedError, Session
from tools.simulate.upkeep import Upkeep

DEFAULT_LEASE_S = 60
JITTER = 0.25


class RegistrationAgent:
    """One cluster's registration agent; `run` until cancelled."""

    def __init__(self, context: Context, cluster: str, tls: ssl.SSLContext) -> None:
        self._context, self._cluster = context, cluster
        self.session = Session(context.route, tls, tally=context.tally, agent=REGISTRATION_AGENT)
        self.has_renewed_lease = False
        """Whether the lease was renewed in this run."""
        self._accepted = asyncio.Event()
        self._upkeep: Upkeep | None = None
        label = f"{CLUSTER_NAME_LABEL}={cluster}"
        self._clusters = self._reflector(
            Selection(CLUSTERS, field_selector=f"metadata.name={cluster}")
        )
        self._others = (
            self._reflector(Selection(ADDONS, namespace=cluster)),
            self._reflector(Selection(CSRS, label_selector=label)),
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
        return self._clusters.is_synced and all(r.is_synced for r in self._others)

    async def run(self) -> None:
        """Watch, report and renew."""
        try:
            async with asyncio.TaskGroup() as group:
                self._upkeep = Upkeep(
                    group, lambda: self._clusters.objects, self._report, rng=self._context.rng
                )
                for reflector in (self._clusters, *self._others):
                    group.create_task(reflector.run())
                group.create_task(self._keep_lease())
        finally:
            await self.session.close()

    # -- the cluster's status

    def _on_change(self, name: str) -> None:
        cluster = self._clusters.objects.get(name)
        if cluster is not None and is_true(cluster, ACCEPTED):
            self._accepted.set()
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
            elif is_first:
                is_first = False
                await asyncio.sleep(period_s * rng.uniform(0.25, 1.0))
            else:
                await asyncio.sleep(period_s * (1.0 + JITTER * rng.random()))

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

    def _reflector(self, selection: Selection) -> Reflector:
        is_cluster = selection.resource is CLUSTERS
        return Reflector(
            self.session,
            selection,
            on_change=self._on_change if is_cluster else _ignore,
            rng=self._context.rng,
        )


def _ignore(_name: str) -> None:
    """Add-ons and CSRs are watched as the agent does; nothing in a run acts on them."""
