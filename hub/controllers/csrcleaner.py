"""The cleaner of certificate requests: by age, as kube's, and by number, for the agents' sake.

Which requests go is `hub.controllers.surplus`; this finds them. Every few minutes all are looked at
for their age; a request that is made is a reason to count those of its cluster and add-on.
"""

import asyncio

import structlog

from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.clock import Clock
from hub.controllers.surplus import KEPT, group_of, has_served, summarize, surplus
from hub.meta import Obj
from hub.meta.codec.json import decode
from hub.meta.errors import ApiError
from hub.meta.selectors import parse_label_selector
from hub.registry.call import Preconditions
from hub.registry.engine import Engine
from hub.registry.hold import Hold
from hub.registry.requests import CSR
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain
from hub.store import Op
from hub.store import prefix as key_prefix

_log = structlog.get_logger("hub.controllers")
_SWEEP_S = 300.0
_PAGE = 100
_WORKERS = 16


class RequestCleaner:
    """Deletes requests that have served their time, and those that are too many.

    `hold`: until then nothing goes by age, so that agents can fetch what a restored hub has for
    them. The number is always kept: more would stop an agent.
    """

    def __init__(self, engine: Engine, clock: Clock, *, hold: Hold) -> None:
        self._engine, self._clock, self._hold = engine, clock, hold
        self._awake_since = clock.now()
        self._queue = Queue()
        engine.watches.listen(CSR, self._changed)

    def _changed(self, event: Event) -> None:
        if event.change.op is Op.CREATE:
            self._count(event.obj)

    def _count(self, request: Obj) -> None:
        group = group_of(request)
        if group is not None:
            self._queue.add("\0".join(group))

    async def run(self) -> None:
        """Clean until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(drain("csr-cleaner", self._queue, self.reconcile, workers=_WORKERS))
            tasks.create_task(self._sweep_forever())

    async def _sweep_forever(self) -> None:
        await self._hold.wait()
        while True:
            await self.sweep()
            await asyncio.sleep(_SWEEP_S)

    async def sweep(self) -> None:
        """Look at every request once, in pages between which the loop goes on."""
        store, after = self._engine.store, None
        while True:
            page = store.scan(key_prefix(CSR.id, None), after=after, limit=_PAGE, is_counted=False)
            for entry in page.entries:
                request = decode(store.read(entry))
                if has_served(request, now=self._clock.now(), awake_since=self._awake_since):
                    await self._delete(request, "served its time")
                else:
                    self._count(request)
            if not page.has_more or not page.entries:
                return
            after = page.entries[-1].key
            await asyncio.sleep(0)

    async def reconcile(self, text: str) -> float | None:
        """Bring the number of one cluster's or add-on's requests below what stops its agent."""
        cluster, _, addon = text.partition("\0")
        wanted = parse_label_selector(f"{CLUSTER_NAME_LABEL}={cluster}")
        keys = self._engine.candidates(CSR, wanted) or []
        if len(keys) <= KEPT:
            return None
        found = (self._engine.store.get(key) for key in keys)
        requests = [decode(self._engine.store.read(each)) for each in found if each is not None]
        group = {
            str(obj["metadata"]["name"]): obj
            for obj in requests
            if group_of(obj) == (cluster, addon)
        }
        for name in surplus([summarize(obj) for obj in group.values()], self._clock.now()):
            await self._delete(group[name], "more than its agent needs")
        return None

    async def _delete(self, request: Obj, why: str) -> None:
        meta = request["metadata"]
        judged = Preconditions(str(meta["uid"]), str(meta["resourceVersion"]))
        try:
            await self._engine.delete(CSR, str(meta["name"]), preconditions=judged)
        except ApiError as error:
            if error.code not in (404, 409):  # gone, or changed since: judged again later
                raise
        else:
            _log.info("csr_cleaned", name=meta["name"], why=why)
