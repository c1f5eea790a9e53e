"""A store that ships, as the hub's backup runner does it, for tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hub.store import STORE_DIRECTORY, Op, Revision, Store
from snapshot.chain import Chain
from snapshot.remote import Remote
from snapshot.ship import Shipped, ship
from snapshot.start import Begun, begin, remember
from tests.unit.snapshot.support import KEY, StillClock, contents, write


class TestHub:
    """An open store and its chain."""

    __test__ = False

    def __init__(self, directory: Path, store: Store, chain: Chain, begun: Begun) -> None:
        self.directory, self.store, self.chain, self.begun = directory, store, chain, begun

    async def put(self, *names: str, text: str = "x") -> None:
        """Create or update objects, in one commit."""
        writes = []
        for name in names:
            found = self.store.get(write(Op.CREATE, name).key)
            op = Op.UPDATE if found else Op.CREATE
            writes.append(write(op, name, text, expect=found.revision if found else None))
        await self.store.commit(*writes)

    async def drop(self, name: str) -> None:
        """Delete an object."""
        found = self.store.get(write(Op.CREATE, name).key)
        assert found is not None
        await self.store.commit(write(Op.DELETE, name, expect=found.revision))

    @property
    def spool(self) -> Path:
        return self.directory / "spool"

    def ship(self) -> Shipped | None:
        """Ship what changed, and remember it."""
        shipped = ship(self.store, self.chain, self.spool)
        remember(self.directory, self.chain.head, dir_id=self.store.dir_id)
        return shipped

    def contents(self) -> dict[bytes, bytes]:
        return {bytes(key): value for key, value in contents(self.store).items()}


@asynccontextmanager
async def serve(directory: Path, remote: Remote, *, seed: str = "hub") -> AsyncIterator[TestHub]:
    """Start a hub on a directory and a prefix; close it in good order."""
    clock = StillClock(seed)
    place = directory / STORE_DIRECTORY
    store = Store.open(place, hub_key=KEY, clock=clock, linger_s=0.0)
    try:
        chain = Chain(remote, KEY, clock=clock)
        begun = begin(chain, directory, dir_id=store.dir_id, position=store.position, reserve=1000)
        store.raise_floor(Revision(begun.floor), is_compacted=True)
        yield TestHub(directory, store, chain, begun)
    finally:
        await store.close()
