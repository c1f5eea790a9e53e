"""The work agent: watches its namespace's ManifestWorks and reports each as applied and available.

One connection. Nothing is applied anywhere: the managed cluster is simulated, and always healthy.
"""

import asyncio
import ssl
import time
from collections.abc import Sequence

from hub.meta import Obj
from tools.simulate.context import WORK_AGENT, Context
from tools.simulate.evictions import Evictions
from tools.simulate.honesty import is_held, revision_of
from tools.simulate.outage import Outage
from tools.simulate.reflector import Reflector
from tools.simulate.resource import WORKS, Selection
from tools.simulate.session import Place, RefusedError, Session
from tools.simulate.upkeep import Upkeep
from tools.simulate.watchstate import WatchState
from tools.simulate.workbody import FINALIZER, Step, is_done, kept_work, next_step, step_patch

_MAIN_RESOURCE = frozenset({Step.ADD_FINALIZER, Step.REMOVE_FINALIZER})
_GONE = frozenset({404})


class WorkAgent:
    """One cluster's work agent; `run` until cancelled."""

    def __init__(
        self,
        context: Context,
        cluster: str,
        tls: ssl.SSLContext,
        *,
        outage: Outage,
        held: Sequence[str] = (),
    ) -> None:
        self._context, self._cluster = context, cluster
        self._writes = context.writes(cluster)
        self.session = Session(context.route, tls, tally=context.tally, agent=WORK_AGENT)
        self._done: set[str] = set()
        self._evictions = Evictions(context.tally, time.monotonic, applied=held)
        self._upkeep: Upkeep | None = None
        self._works = Reflector(
            self.session,
            Selection(WORKS, namespace=cluster),
            on_change=self._on_change,
            rng=context.rng,
            state=WatchState(kept_work, FINALIZER, frozenset(held), self._writes),
            outage=outage,
        )

    @property
    def is_synced(self) -> bool:
        """Whether the watch has brought its initial events."""
        return self._works.is_synced

    @property
    def done_count(self) -> int:
        """How many works the hub shows as applied and available."""
        return len(self._done)

    @property
    def held(self) -> frozenset[str]:
        """Which works it holds by its finalizer, and would evict if a list left them out."""
        works = self._works.objects
        return frozenset(name for name, work in works.items() if is_held(work, FINALIZER))

    def has(self, name: str) -> bool:
        """Whether the hub shows work `name`."""
        return name in self._works.objects

    def has_done(self, name: str) -> bool:
        """Whether work `name` is applied and available."""
        return name in self._done

    def check_writes(self) -> None:
        """Count the writes that an open watch should have shown by now."""
        if self.is_synced:
            self._evictions.look(self._works.objects)
        if self._works.is_open:
            self.session.tally.lied("watch manifestworks", self._writes.overdue())

    @property
    def is_idle(self) -> bool:
        """Whether every work the hub has shown is done."""
        return len(self._done) == len(self._works.objects)

    async def run(self) -> None:
        """Watch and report."""
        try:
            async with asyncio.TaskGroup() as group:
                self._upkeep = Upkeep(
                    group, lambda: self._works.objects, self._advance, rng=self._context.rng
                )
                group.create_task(self._works.run())
        finally:
            await self.session.close()

    def _on_change(self, name: str) -> None:
        work = self._works.objects.get(name)
        if work is not None and is_held(work, FINALIZER):
            self._evictions.applied(name)
        self._evictions.look(self._works.objects)
        if work is not None and is_done(work):
            self._done.add(name)
        else:
            self._done.discard(name)
        if work is not None and self._upkeep is not None:
            self._upkeep.wake(name)

    async def _advance(self, work: Obj) -> bool:
        """Send the next patch of `work`."""
        step = next_step(work)
        if step is Step.NOTHING:
            return False
        subresource = "" if step in _MAIN_RESOURCE else "status"
        name = work["metadata"]["name"]
        place = Place(WORKS, namespace=self._cluster, name=name, subresource=subresource)
        patch = step_patch(work, step, now=self._context.now_text())
        if step is Step.REMOVE_FINALIZER:
            self._context.identities.note_dropped(self._cluster, name)
            self._evictions.removed(name)
        write = self._writes.begin(name, work["metadata"]["resourceVersion"])
        revision = ""
        try:
            patched = await self.session.patch(place, patch, expected=_GONE)
            # the last finalizer takes the object with it, at a revision of its own
            revision = "" if step is Step.REMOVE_FINALIZER else revision_of(patched)
        except RefusedError as error:
            if error.status != 404:  # 404: deleted meanwhile, the watch will tell
                raise
        finally:
            self.session.tally.lied("watch manifestworks", self._writes.end(write, revision))
        return True
