"""Works that come and go while the fleet is steady: each is created, applied, and deleted again.

They show how long a new work takes to its agent when nothing else is going on, and that deletion
works; at the end of a run none is left, unless the hub is away.
"""

import asyncio
import itertools
import random
import time
from collections.abc import Callable, Sequence

from tools.simulate.agent import Agent
from tools.simulate.frame import MalformedError
from tools.simulate.provision import Provision
from tools.simulate.session import HubAwayError, RefusedError
from tools.simulate.tally import Tally
from tools.simulate.workbody import new_work

PATIENCE_S = 60.0
_POLL_S = 0.1


class Prober:
    """Starts `rate` probes a second until told to stop."""

    def __init__(
        self, provision: Provision, agents: Sequence[Agent], *, tally: Tally, rng: random.Random
    ) -> None:
        self._provision, self._agents = provision, agents
        self._tally, self._rng = tally, rng
        self._is_over = asyncio.Event()

    async def run(self, rate: float) -> None:
        """Probe until `stop`, then wait for those that are on their way."""
        if not rate:
            return
        async with asyncio.TaskGroup() as group:
            for number in itertools.count():
                if await _is_set_within(self._is_over, 1.0 / rate):
                    return
                group.create_task(self._probe(number, self._rng.choice(self._agents)))

    def stop(self) -> None:
        """Start no more."""
        self._is_over.set()

    async def _probe(self, number: int, agent: Agent) -> None:
        work = new_work(agent.cluster, number)
        name = work["metadata"]["name"] = f"probe-{number}"
        try:
            await self._provision.create_work(work)
            self._tally.probes_created += 1
            await _wait(lambda: agent.has_done(name))
            await self._provision.delete_work(agent.cluster, name)
            await _wait(lambda: not agent.has_work(name))
        except (HubAwayError, RefusedError, MalformedError, TimeoutError):
            return  # the session has judged it; a hub that is away is no fault
        self._tally.probes_done += 1


async def _wait(is_so: Callable[[], bool]) -> None:
    """Wait until it is so. Raises TimeoutError."""
    end_s = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > end_s:
            raise TimeoutError
        await asyncio.sleep(_POLL_S)


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
