"""One simulated managed cluster: its registration, then both agents, for as long as it runs."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from tools.simulate.bootstrap import Bootstrap
from tools.simulate.context import Context
from tools.simulate.identity import Identity
from tools.simulate.outage import Outage
from tools.simulate.registration import RegistrationAgent
from tools.simulate.work import WorkAgent


class Agent:
    """A cluster's agents and how far they are."""

    def __init__(
        self, context: Context, cluster: str, *, works: int, addons: Sequence[str], token: str
    ) -> None:
        self.cluster = cluster
        self.began_at_s: float | None = None
        """Monotonic time of its first request in this run."""
        self.ready_at_s: float | None = None
        """Monotonic time at which all was in order for the first time in this run."""
        self._context, self._wanted_works, self._token = context, works, token
        self._wanted_addons = frozenset(addons)
        self._registration: RegistrationAgent | None = None
        self._work: WorkAgent | None = None

    @property
    def is_connected(self) -> bool:
        """Whether both agents have a connection on which the hub answered."""
        agents = (self._registration, self._work)
        return all(agent is not None and agent.session.is_connected for agent in agents)

    @property
    def is_joined(self) -> bool:
        """Whether the hub shows it as joined, to its own agent."""
        return self._registration is not None and self._registration.is_joined

    @property
    def is_available(self) -> bool:
        """Whether the hub shows it as available, after a lease renewal of this run."""
        agent = self._registration
        return agent is not None and agent.is_available and agent.has_renewed_lease

    @property
    def available_at_s(self) -> float | None:
        """Monotonic time at which the hub first showed it as available."""
        return self._registration.available_at_s if self._registration else None

    @property
    def addons_done(self) -> int:
        """How many of the add-ons asked for are available, by status and by the hub's label."""
        if self._registration is None:
            return 0
        done = self._registration.addons.done & self._registration.features
        return len(self._wanted_addons & done)

    @property
    def works_done(self) -> int:
        """How many of the works asked for are applied and available."""
        return min(self._done_count, self._wanted_works)

    @property
    def works_more(self) -> int:
        """How many more than were asked for are, from earlier runs or others."""
        return self._done_count - self.works_done

    @property
    def _done_count(self) -> int:
        return self._work.done_count if self._work else 0

    @property
    def is_in_order(self) -> bool:
        """Whether it is available, all watches are synced and all its works are done."""
        if self._registration is None or self._work is None or not self.is_available:
            return False
        expected = max(self._wanted_works, self._context.identities.made(self.cluster)[0])
        is_synced = self._registration.is_synced and self._work.is_synced
        if not is_synced or self.addons_done < len(self._wanted_addons):
            return False
        return self._work.is_idle and self._work.done_count >= expected

    def check_ready(self) -> bool:
        """Note when it is first in order; from then on refusals are errors."""
        if self.ready_at_s is None and self.is_in_order:
            self.ready_at_s = time.monotonic()
            self._expect_service()
            self.remember()
        return self.ready_at_s is not None

    def remember(self) -> None:
        """Keep the names of the works it holds, for the next run."""
        if self._work is not None and self._work.is_synced:
            self._context.identities.note_holds(self.cluster, self._work.held)

    def check_writes(self) -> None:
        """Count what an open watch should have shown by now."""
        if self._work is not None:
            self._work.check_writes()

    def has_work(self, name: str) -> bool:
        """Whether the hub shows it the work `name`."""
        return self._work is not None and self._work.has(name)

    def has_done(self, name: str) -> bool:
        """Whether its work `name` is applied and available."""
        return self._work is not None and self._work.has_done(name)

    async def run(self, gate: AbstractAsyncContextManager[None]) -> None:
        """Live until cancelled; `gate` bounds how many start at once."""
        async with gate:
            self.began_at_s = time.monotonic()
            identity = self._context.identities.find(self.cluster)
            if identity is None:
                identity = await Bootstrap(self._context, self.cluster, token=self._token).run()
            else:
                self._context.tally.certificates_reused += 1
                self._context.check_certificate(
                    identity.cert_pem, identity.key_pem, identity.subject
                )
            registration, work = self._make_agents(identity)
        async with asyncio.TaskGroup() as group:
            group.create_task(registration.run())
            group.create_task(work.run())

    def _make_agents(self, identity: Identity) -> tuple[RegistrationAgent, WorkAgent]:
        context, tls = self._context, self._context.tls_of(identity)
        outage = Outage(context.tally.outages_s)
        self._registration = RegistrationAgent(context, self.cluster, tls, outage=outage)
        self._work = WorkAgent(context, self.cluster, tls, outage=outage, held=identity.holds)
        if identity.works:  # it was accepted in an earlier run
            self._expect_service()
        return self._registration, self._work

    def _expect_service(self) -> None:
        for agent in (self._registration, self._work):
            if agent is not None:
                agent.session.is_early = False
