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
from tools.simulate.report import Outcome
from tools.simulate.session import HubAwayError, RefusedError

T = TypeVar("T")

TICK_S = 0.2
PROGRESS_EVERY_S = 2.0
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
        echo: Callable[[str], None],
    ) -> None:
        self._plan, self._context = plan, context
        self._stop, self._echo = stop, echo
        tls = client_context(admin.ca_pem, admin.cert_pem, admin.key_pem)
        self._administrator = Administrator(context, tls, clusters=plan.names, works=plan.works)
        self._agents: list[Agent] = []
        self._pending: list[Agent] = []
        self._began_s = time.monotonic()
        self._steady_s = 0.0
        self._connected_at_end = 0
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
        names = await self._insist("list the clusters", self._administrator.list_names) or set()
        strange = sum(self._context.identities.find(name) is None for name in names)
        if strange:
            self._echo(
                f"found {strange} of the {self._plan.clusters} clusters on the hub already, and no"
                " identities for them here (--state-dir keeps them): they register again, and keep"
                " the works they have"
            )

    def _start_agents(self, group: asyncio.TaskGroup, token: str) -> list["asyncio.Task[None]"]:
        gate = asyncio.Semaphore(self._plan.concurrency)
        self._agents = [
            Agent(self._context, name, works=self._plan.works, token=token)
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
            self._echo(f"error: {self._problem}")
            return []
        if self._pending:
            if not self._stop.is_set():
                self._problem = f"not all in order after {self._plan.join_timeout_s:g} s"
            return []
        self._echo(self._progress() + "  all in order")
        self._is_joined = True
        self._administrator.guard()
        steady_from_s = time.monotonic()
        await self._insist("retire the bootstrap token", self._administrator.retire_token)
        await self._until(lambda: False, steady_from_s + self._plan.duration_s - time.monotonic())
        self._steady_s = time.monotonic() - steady_from_s
        unavailable = await self._insist(
            "list the clusters at the end", self._administrator.list_unavailable
        )
        self._connected_at_end = sum(agent.is_connected for agent in self._agents)
        return unavailable or []

    async def _until(self, is_over: Callable[[], bool], timeout_s: float) -> None:
        """Wait for `is_over`, `stop` or the time, telling how far things are."""
        end_s = time.monotonic() + timeout_s
        next_line_s = time.monotonic()
        while not self._stop.is_set() and (now_s := time.monotonic()) < end_s:
            self._pending = [agent for agent in self._pending if not agent.check_ready()]
            if is_over():
                return
            if now_s >= next_line_s:
                self._echo(self._progress())
                next_line_s = now_s + PROGRESS_EVERY_S
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
                            self._echo(f"waiting to {what}: {error}")
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

    def _progress(self) -> str:
        joined = sum(agent.is_joined for agent in self._agents)
        available = sum(agent.is_available for agent in self._agents)
        connected = sum(agent.is_connected for agent in self._agents)
        works = sum(agent.works_done for agent in self._agents)
        more = sum(agent.works_more for agent in self._agents)
        total = len(self._agents)
        return (
            f"{time.monotonic() - self._began_s:7.1f} s  joined {joined}/{total}"
            f"  available {available}/{total}  connected {connected}/{total}"
            f"  works {works}/{total * self._plan.works}{f' and {more} more' if more else ''}"
        )

    def _outcome(self, unavailable_at_end: list[str]) -> Outcome:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        ready = [a.ready_at_s - self._began_s for a in self._agents if a.ready_at_s is not None]
        return Outcome(
            clusters=self._plan.clusters,
            works_each=self._plan.works,
            works_done=sum(agent.works_done for agent in self._agents),
            works_more=sum(agent.works_more for agent in self._agents),
            ready_after_s=ready,
            steady_s=self._steady_s,
            wanted_s=self._plan.duration_s,
            is_interrupted=self._stop.is_set(),
            seconds=time.monotonic() - self._began_s,
            cpu_s=usage.ru_utime + usage.ru_stime,
            lapses=dict(self._administrator.lapses),
            unavailable_at_end=unavailable_at_end,
            connected_at_end=self._connected_at_end,
            problem=self._problem,
        )
