"""The serving certificate of a hub that runs for long: issued anew before it ends.

A start does the same (`hub.server`); a hub that is not started for months would otherwise present
an expired certificate to its whole fleet. Key and CA stay, so no client notices.
"""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from hub.auth.identity import HubIdentity
from hub.auth.keypair import KeyPair
from hub.clock import Clock
from hub.registry.keeping import save_identity
from hub.store import MapFull, Store

_log = structlog.get_logger("hub.controllers")
LOOK_EVERY_S = 6 * 3600.0


class LeafKeeper:
    """Looks after the leaf; `use` takes a fresh one into service."""

    def __init__(
        self,
        store: Store,
        identity: HubIdentity,
        clock: Clock,
        *,
        names: Sequence[str],
        use: Callable[[KeyPair], None],
    ) -> None:
        self._store, self._identity, self._clock = store, identity, clock
        self._names, self._use = tuple(names), use

    async def run(self) -> None:
        """Look until cancelled; a full disk puts it off, there are months left."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.look()
            except (MapFull, OSError) as error:
                _log.warning("leaf_not_renewed", problem=str(error))

    async def look(self) -> bool:
        """Issue, keep and use a new leaf when the present one has lived two thirds of its life."""
        fresh = self._identity.with_leaf_for(self._names, self._clock.now())
        if fresh is self._identity:
            return False
        await save_identity(self._store, fresh)
        self._identity = fresh
        self._use(fresh.leaf)
        ends = fresh.leaf.certificate().not_valid_after_utc
        _log.info("leaf_renewed", ends=ends.isoformat())
        return True
