"""A clock that tests move, and an engine on a real store without anything around it."""

import asyncio
import contextlib
import datetime as dt
import itertools
import random
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from hub.fleet.kinds import FLEET
from hub.registry.builtin import BUILTIN, NAMESPACE
from hub.registry.catalog import Catalog
from hub.registry.engine import Engine
from hub.registry.kind import Kind
from hub.store import Store, create_hub_key

CATALOG = Catalog((*BUILTIN, *FLEET))


class VirtualClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self._now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
        self._monotonic_s = 1000.0
        self._uids = itertools.count(1)
        self._random = random.Random(1)

    def move(self, seconds: float) -> None:
        self._now += dt.timedelta(seconds=seconds)
        self._monotonic_s += seconds

    def now(self) -> dt.datetime:
        return self._now

    def monotonic_s(self) -> float:
        return self._monotonic_s

    def uid(self) -> str:
        return f"00000000-0000-4000-8000-{next(self._uids):012}"

    def token(self, n_bytes: int) -> bytes:
        return self._random.randbytes(n_bytes)


@contextlib.asynccontextmanager
async def an_engine(
    path: Path,
    clock: VirtualClock,
    *,
    namespaces: Iterable[str] = (),
    catalog: Catalog = CATALOG,
) -> AsyncIterator[Engine]:
    """An engine on an empty store, with some namespaces."""
    key = create_hub_key(path / "key", token=clock.token, outside=path / "data")
    store = Store.open(path / "data", hub_key=key, clock=clock)
    try:
        engine = Engine(store, catalog, clock)
        for name in namespaces:
            await engine.create(NAMESPACE, {"metadata": {"name": name}})
        yield engine
    finally:
        await store.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose timers fire without waiting: time jumps to the next one."""

    def __init__(self) -> None:
        super().__init__()
        self._skipped_s = 0.0

    def time(self) -> float:
        return super().time() + self._skipped_s

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]  # asyncio's own
            ahead = self._scheduled[0].when() - self.time()  # type: ignore[attr-defined]  # the same
            self._skipped_s += max(ahead, 0.0)
        super()._run_once()  # type: ignore[misc]  # the same


def kind_named(name: str) -> Kind:
    return next(kind for kind in CATALOG if kind.kind == name)
