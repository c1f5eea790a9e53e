"""A whole run: an administrator and N agents, from the first token to the verdict.

Owns the order: token, agents (a few at a time), wait until all are in order, stay, look once more.
The duration counts from the moment at which every cluster is available with all its works done.
"""

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from hub.http.tls import client_context
from tools.kubeconfig import Kubeconfig
from tools.simulate.administrator import Administrator
from tools.simulate.agent import Agent
from tools.simulate.backoff import Backoff
from tools.simulate.context import Context
from tools.simulate.frame import MalformedError
from tools.simulate.probe import Prober
from tools.simulate.progress import Progress
from tools.simulate.registration import DEFAULT_LEASE_S
from tools.simulate.report import Outcome
from tools.simulate.session import HubAwayError, RefusedError

T = TypeVar("T")

TICK_S = 0.2
SETTLE_S = 30.0
"""How long the hub may take to answer the last question, for one that is just restarting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to simulate."""

    clusters: int
    works: int
    duration_s: float
    join_timeout_s: float
    concurrency: int
    name_prefix: str
    addons: int = 0
    speed: float = 1.0
    """By how much the leases are shorter than OCM's."""
    probes: float = 0.0
    """How many works a second come and go while all is steady."""

    @property
    def lease_s(self) -> int:
        """Return the lease duration of every cluster: whole seconds, at least one."""
        return max(1, round(DEFAULT_LEASE_S / self.speed))

    @property
    def names(self) -> list[str]:
        """Return the clusters' names, in order."""
        width = max(4, len(str(self.clusters - 1)))
        return [f"{self.name_prefix}{number:0{width}}" for number in range(self.clusters)]


class Fleet:
    """One run of a plan."""

    def __init__(
        self,
        plan: Plan,
        context: Context,
        admin: Kubeconfig,
        *,
        stop: asyncio.Event,
        progress: Progress,
    ) -> None:
        self._plan, self._context = plan, context
        self._stop, self._progress = stop, progress
        tls = client_context(admin.ca_pem, admin.cert_pem, admin.key_pem)
        self._administrator = Administrator(
            context,
            tls,
            clusters=plan.names,
            works=plan.works,
            addons=plan.addons,
            lease_s=plan.lease_s,
        )
        self._agents: list[Agent] = []
        self._pending: list[Agent] = []
        self._began_s = time.monotonic()
        self._steady_s = 0.0
        self._connected_at_end = 0
        self._unlabelled_at_end: list[str] = []
        self._is_joined = False
        self._problem = ""

    async def run(self) -> Outcome:
        """Run to the end, or until `stop` is set, and say what it came to."""
        at_end: list[str] = []
        has_new = any(self._context.identities.find(n) is None for n in self._plan.names)
        token = ""
        if has_new:
            await self._tell_found()
        if has_new and not self._problem:
            token = await self._insist("create a token", self._administrator.mint_token) or ""
        if self._plan.addons and not self._problem:
            define = self._administrator.provision.define_addons
            await self._insist("create the add-ons", define)
        if self._problem:
            await self._administrator.close()
        else:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._administrator.run(approves=has_new))]
                tasks += self._start_agents(group, token)
                at_end = await self._watch_over()
                for task in tasks:
                    task.cancel()
        return self._outcome(at_end)

    # -- phases

    async def _tell_found(self) -> None:
        """Say which of the clusters are on the hub already though their identities are not here."""
        found = await self._insist("list the clusters", self._administrator.list_clusters) or {}
        strange = sum(self._context.identities.find(name) is None for name in found)
        if strange:
            self._progress.say(
                f"found {strange} of the {self._plan.clusters} clusters on the hub already, and no"
                " identities for them here (--state-dir keeps them): they register again, and keep"
                " the works they have"
            )

    def _start_agents(self, group: asyncio.TaskGroup, token: str) -> list["asyncio.Task[None]"]:
        gate = asyncio.Semaphore(self._plan.concurrency)
        self._agents = [
            Agent(
                self._context,
                name,
                works=self._plan.works,
                addons=self._administrator.provision.addons,
                token=token,
            )
            for name in self._plan.names
        ]
        self._pending = list(self._agents)
        return [group.create_task(agent.run(gate)) for agent in self._agents]

    async def _watch_over(self) -> list[str]:
        """Wait until all are in order, then for the duration; return who is not at the end."""
        tally = self._context.tally
        await self._until(lambda: not self._pending or bool(tally.final_refusal), self._join_s())
        if tally.final_refusal:
            self._problem = f"the hub refuses, and will: {tally.final_refusal}"
            self._progress.say(f"error: {self._problem}")
            return []
        if self._pending:
            if not self._stop.is_set():
                self._problem = f"not all in order after {self._plan.join_timeout_s:g} s"
            return []
        self._progress.say(self._line() + "  all in order")
        self._is_joined = True
        return await self._stay()

    async def _stay(self) -> list[str]:
        """Stay for the duration; return who is not available at its end."""
        administrator, tally = self._administrator, self._context.tally
        administrator.guard()
        tally.mark_steady()
        prober = Prober(administrator.provision, self._agents, tally=tally, rng=self._context.rng)
        steady_from_s = time.monotonic()
        async with asyncio.TaskGroup() as group:
            group.create_task(prober.run(self._plan.probes))
            await self._insist("retire the bootstrap token", administrator.retire_token)
            left_s = steady_from_s + self._plan.duration_s - time.monotonic()
            await self._until(lambda: False, left_s)
            self._steady_s = time.monotonic() - steady_from_s
            prober.stop()
        found = await self._insist("list the clusters at the end", administrator.list_clusters)
        for agent in self._agents:
            agent.check_writes()
            agent.remember()
        self._connected_at_end = sum(agent.is_connected for agent in self._agents)
        if found is None:
            return []
        self._unlabelled_at_end = administrator.list_unlabelled(found)
        return administrator.list_unavailable(found)

    async def _until(self, is_over: Callable[[], bool], timeout_s: float) -> None:
        """Wait for `is_over`, `stop` or the time, telling how far things are."""
        began_s = time.monotonic()
        end_s = began_s + timeout_s
        while not self._stop.is_set() and (now_s := time.monotonic()) < end_s:
            self._pending = [agent for agent in self._pending if not agent.check_ready()]
            if is_over():
                return
            ready = 1.0 - len(self._pending) / max(len(self._agents), 1)
            share = (now_s - began_s) / timeout_s if self._is_joined else ready
            self._progress.show(self._line, share)
            await asyncio.sleep(min(TICK_S, end_s - now_s))

    async def _insist(self, what: str, step: Callable[[], Awaitable[T]]) -> T | None:
        """Run an administrator's `step`, again while the hub is away; failing fails the run."""
        backoff, reason = Backoff(self._context.rng, base_s=0.2, cap_s=5.0), ""
        within_s = SETTLE_S if self._is_joined else min(SETTLE_S, self._join_s())
        try:
            async with asyncio.timeout(within_s):
                while True:
                    try:
                        return await step()
                    except HubAwayError as error:
                        if not reason:
                            self._progress.say(f"waiting to {what}: {error}")
                        reason = str(error)
                    if self._stop.is_set():
                        break
                    await asyncio.sleep(backoff.next_s(time.monotonic()))
        except TimeoutError:
            reason = reason or f"no answer within {within_s:g} s"
        except (RefusedError, MalformedError) as error:
            reason = str(error)
        self._problem = f"cannot {what}: {reason}"
        return None

    def _join_s(self) -> float:
        """Return how much of the time for joining is left."""
        return max(0.0, self._began_s + self._plan.join_timeout_s - time.monotonic())

    # -- figures

    def _line(self) -> str:
        """Return how far all are, in one line."""
        agents, total = self._agents, len(self._agents)
        counts = {
            "joined": (sum(agent.is_joined for agent in agents), total),
            "available": (sum(agent.is_available for agent in agents), total),
            "connected": (sum(agent.is_connected for agent in agents), total),
            "works": (sum(agent.works_done for agent in agents), total * self._plan.works),
            "add-ons": (sum(agent.addons_done for agent in agents), total * self._plan.addons),
        }
        if not self._plan.addons:
            del counts["add-ons"]
        more = sum(agent.works_more for agent in agents)
        parts = [f"{name} {done}/{wanted}" for name, (done, wanted) in counts.items()]
        if more:
            parts[3] += f" and {more} more"
        return "  ".join([f"{time.monotonic() - self._began_s:7.1f} s", *parts])

    def _outcome(self, unavailable_at_end: list[str]) -> Outcome:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        agents, began_s = self._agents, self._began_s
        return Outcome(
            clusters=self._plan.clusters,
            joined=sum(agent.is_joined for agent in agents),
            works_each=self._plan.works,
            works_done=sum(agent.works_done for agent in agents),
            works_more=sum(agent.works_more for agent in agents),
            addons_each=self._plan.addons,
            addons_done=sum(agent.addons_done for agent in agents),
            ready_after_s=[a.ready_at_s - began_s for a in agents if a.ready_at_s is not None],
            available_within_s=[
                agent.available_at_s - agent.began_at_s
                for agent in agents
                if agent.available_at_s is not None and agent.began_at_s is not None
            ],
            steady_s=self._steady_s,
            wanted_s=self._plan.duration_s,
            is_interrupted=self._stop.is_set(),
            seconds=time.monotonic() - began_s,
            cpu_s=usage.ru_utime + usage.ru_stime,
            memory_mib=usage.ru_maxrss / 1024,
            lease_s=self._plan.lease_s,
            lapses=dict(self._administrator.lapses),
            unavailable_at_end=unavailable_at_end,
            unlabelled_at_end=self._unlabelled_at_end,
            connected_at_end=self._connected_at_end,
            problem=self._problem,
        )
