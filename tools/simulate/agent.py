"""One simulated managed cluster: its registration, then both agents, for as long as it runs."""

import asyncio
import time
from contextlib import AbstractAsyncContextManager

from tools.simulate.bootstrap import Bootstrap
from tools.simulate.context import Context
from tools.simulate.identity import Identity
from tools.simulate.registration import RegistrationAgent
from tools.simulate.work import WorkAgent


class Agent:
    """A cluster's agents and how far they are."""

    def __init__(self, context: Context, cluster: str, *, works: int, token: str) -> None:
        self.cluster = cluster
        self.ready_at_s: float | None = None
        """Monotonic time at which all was in order for the first time in this run."""
        self._context, self._wanted_works, self._token = context, works, token
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
        expected = max(self._wanted_works, self._context.identities.works(self.cluster))
        is_synced = self._registration.is_synced and self._work.is_synced
        return is_synced and self._work.is_idle and self._work.done_count >= expected

    def check_ready(self) -> bool:
        """Note when it is first in order; from then on refusals are errors."""
        if self.ready_at_s is None and self.is_in_order:
            self.ready_at_s = time.monotonic()
            self._expect_service()
        return self.ready_at_s is not None

    async def run(self, gate: AbstractAsyncContextManager[None]) -> None:
        """Live until cancelled; `gate` bounds how many start at once."""
        async with gate:
            identity = self._context.identities.find(self.cluster)
            if identity is None:
                identity = await Bootstrap(self._context, self.cluster, token=self._token).run()
            else:
                self._context.tally.certificates_reused += 1
            registration, work = self._make_agents(identity)
        async with asyncio.TaskGroup() as group:
            group.create_task(registration.run())
            group.create_task(work.run())

    def _make_agents(self, identity: Identity) -> tuple[RegistrationAgent, WorkAgent]:
        tls = self._context.tls_of(identity)
        self._registration = RegistrationAgent(self._context, self.cluster, tls)
        self._work = WorkAgent(self._context, self.cluster, tls)
        if identity.works:  # it was accepted in an earlier run
            self._expect_service()
        return self._registration, self._work

    def _expect_service(self) -> None:
        for agent in (self._registration, self._work):
            if agent is not None:
                agent.session.is_early = False
