"""A controller driven by hand: its queue is drained on the test's own turn, in no time."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol

from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.registry.builtin import CONFIG_MAP
from hub.registry.engine import Engine
from hub.registry.kind import Kind
from hub.registry.watch import Event
from hub.registry.workqueue import Queue
from hub.store import Op


class Controller(Protocol):
    """What can be driven."""

    _queue: Queue

    def reconcile(self, key: str) -> Awaitable[float | None]: ...


async def shown() -> None:
    """Let the loop turn until what is committed has reached the listeners."""
    for _ in range(20):
        await asyncio.sleep(0)


async def settle(*controllers: Controller) -> dict[str, float]:
    """Reconcile until nothing is queued; return when which key wants to be looked at again.

    A conflict puts the key back, as the work queue does.
    """
    later: dict[str, float] = {}
    for _ in range(10_000):
        await shown()
        busy = next((c for c in controllers if len(c._queue)), None)
        if busy is None:
            return later
        key = await busy._queue.take()
        later.pop(key, None)
        try:
            again = await busy.reconcile(key)
        except ApiError as error:
            if error.code != 409:
                raise
            busy._queue.add(key)
        else:
            if again is not None:
                later[key] = again
        busy._queue.done(key)
    raise AssertionError("it never comes to rest")


def deletion_of(engine: Engine, kind: Kind) -> asyncio.Event:
    """Return what is set when the next object of a kind is gone."""
    happened = asyncio.Event()

    def changed(event: Event) -> None:
        if event.change.op is Op.DELETE:
            happened.set()

    engine.watches.listen(kind, changed)
    return happened


async def run_for(run: Callable[[], Awaitable[None]], until: Callable[[], bool]) -> None:
    """Run a controller's own loop until something holds."""
    task = asyncio.ensure_future(run())
    try:
        async with asyncio.timeout(10):
            while not until():
                await asyncio.sleep(0)
                assert not task.done(), task.exception()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def owned_by(*owners: Obj, blocks: bool = False) -> list[Obj]:
    """Return references to stored objects."""
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": blocks,
        }
        for owner in owners
    ]


async def config_map(
    engine: Engine,
    name: str,
    *owners: Obj,
    namespace: str = "a",
    blocks: bool = False,
    finalizers: tuple[str, ...] = (),
) -> Obj:
    """Make a ConfigMap, owned by others."""
    references = owned_by(*owners, blocks=blocks)
    meta = {"name": name, "ownerReferences": references, "finalizers": list(finalizers)}
    return await engine.create(CONFIG_MAP, {"metadata": meta}, namespace=namespace)


def names(engine: Engine, namespace: str = "a") -> list[str]:
    """Return the names of the ConfigMaps in a namespace."""
    return [str(obj["metadata"]["name"]) for obj in engine.each(CONFIG_MAP, namespace)]
