"""The keeper of Hub and HubSnapshot: looks every few seconds and writes what has changed.

Owns the writing, since when a condition is as it is, and the Events about them. What there is to
say comes from two functions. A full disk or a store that refuses costs a look and no more: the next
one writes what is true by then.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence

import structlog

from hub.backup.kinds import HUB, HUB_NAME, SNAPSHOT
from hub.backup.status import Condition, HubStatus, SnapshotPoint
from hub.backup.wire import choose, snapshot_name, snapshot_status, status_obj
from hub.fleet.conditions import find_condition, set_condition
from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.meta.timestamp import format_time
from hub.registry.engine import Engine
from hub.registry.event import EVENT

_log = structlog.get_logger("hub.backup")
LOOK_EVERY_S = 5.0
LEAST_PAUSE_S = 1.0
"""How soon after a look the next one may come, however often there is a poke."""
_EVENT_NAMESPACE = "default"
"""Where Events about cluster-scoped objects are, as client-go's recorder has it."""


class HubObjects:
    """Keeps the objects up to date. For the event loop's thread."""

    def __init__(
        self,
        engine: Engine,
        status: Callable[[], HubStatus],
        snapshots: Callable[[], Sequence[SnapshotPoint]],
    ) -> None:
        self._engine, self._status, self._snapshots = engine, status, snapshots
        self._poked = asyncio.Event()

    def poke(self) -> None:
        """Look soon: something changed that is worth telling."""
        self._poked.set()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(LEAST_PAUSE_S)
            try:
                async with asyncio.timeout(LOOK_EVERY_S - LEAST_PAUSE_S):
                    await self._poked.wait()
            except TimeoutError:
                pass
            await self.refresh()

    async def refresh(self) -> None:
        """Look once and write what has changed; what the store refuses, the next look tries."""
        self._poked.clear()
        try:
            async with asyncio.TaskGroup() as group:
                for write in (self._keep_hub(), *self._snapshot_writes()):
                    group.create_task(write)  # together: their commits share an fsync
        except* ApiError as errors:
            _log.warning("hub_objects_not_written", problem=str(errors.exceptions[0]))

    # ---------------------------------------------------------------- the hub

    async def _keep_hub(self) -> None:
        status, engine = self._status(), self._engine
        present = engine.peek(HUB, HUB_NAME)
        wanted = self._hub_obj(status, present)
        if present is None:
            kept = await engine.create(HUB, wanted)
        else:
            kept = await engine.modify(
                HUB, HUB_NAME, lambda obj: {**obj, "status": wanted["status"]}
            )
        for condition in turned(present, status.conditions):
            await self._tell(kept, condition)

    def _hub_obj(self, status: HubStatus, present: Obj | None) -> Obj:
        types = {condition.type for condition in status.conditions}
        before = ((present or {}).get("status") or {}).get("conditions") or []
        kept = [dict(condition) for condition in before if condition["type"] in types]
        obj: Obj = {"metadata": {"name": HUB_NAME}, "status": status_obj(status)}
        obj["status"]["conditions"] = kept
        now = self._engine.clock.now()
        for each in status.conditions:
            set_condition(
                obj, each.type, each.status, reason=each.reason, message=each.message, now=now
            )
        return obj

    async def _tell(self, hub: Obj, condition: Condition) -> None:
        clock, meta = self._engine.clock, hub["metadata"]
        now = format_time(clock.now())
        event: Obj = {
            "metadata": {
                "name": f"{HUB_NAME}.{clock.token(8).hex()}",
                "namespace": _EVENT_NAMESPACE,
            },
            "involvedObject": {
                "kind": HUB.kind,
                "apiVersion": HUB.storage.api_version,
                "name": meta["name"],
                "uid": meta["uid"],
                "resourceVersion": meta["resourceVersion"],
            },
            "type": "Warning" if condition.status == "False" else "Normal",
            "reason": condition.reason,
            "message": f"{condition.type} is {condition.status}: {condition.message}",
            "source": {"component": "hublet"},
            "reportingComponent": "hublet",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        await self._engine.create(EVENT, event, namespace=_EVENT_NAMESPACE)

    # ---------------------------------------------------------------- the snapshots

    def _snapshot_writes(self) -> Iterator[Coroutine[None, None, object]]:
        engine = self._engine
        wanted = {snapshot_name(p): snapshot_status(p) for p in choose(self._snapshots())}
        present: dict[str, Obj] = {obj["metadata"]["name"]: obj for obj in engine.each(SNAPSHOT)}
        for name in present.keys() - wanted.keys():
            yield engine.delete(SNAPSHOT, name)
        for name, status in wanted.items():
            if name not in present:
                yield engine.create(SNAPSHOT, {"metadata": {"name": name}, "status": status})
            elif present[name]["status"] != status:
                yield self._change(name, status)

    async def _change(self, name: str, status: Obj) -> None:
        await self._engine.modify(SNAPSHOT, name, lambda obj: {**obj, "status": status})


def turned(before: Obj | None, conditions: Sequence[Condition]) -> list[Condition]:
    """Return the conditions that are False for a new reason, and those True that were False."""
    found = []
    for condition in conditions:
        present = find_condition(before or {}, condition.type) or {}
        was, why = present.get("status"), present.get("reason")
        is_bad = condition.status == "False" and (was, why) != ("False", condition.reason)
        if is_bad or (condition.status == "True" and was == "False"):
            found.append(condition)
    return found
