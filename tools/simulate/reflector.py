"""Keeps a copy of what a watch selects, for as long as its task runs.

Owns the loop around `WatchState`: open, read, end, pause, open again. Every change is told to
`on_change` with the name of the object; the object is in `objects` then, or gone.
"""

import asyncio
import random
import time
from collections.abc import Callable

from hub.meta import Obj
from tools.simulate.backoff import Backoff
from tools.simulate.frame import LineFrames, MalformedError, WatchEvent
from tools.simulate.outage import Outage
from tools.simulate.resource import Selection
from tools.simulate.session import HubAwayError, RefusedError, Session
from tools.simulate.watchstate import End, Phase, WatchState

MIN_TIMEOUT_S, MAX_TIMEOUT_S = 300, 600
GRACE_S = 30.0
"""How much longer than its timeoutSeconds a watch may last."""

OnChange = Callable[[str], None]


class Reflector:
    """One informer: a watch that never stays closed, and the objects it has shown."""

    def __init__(
        self,
        session: Session,
        selection: Selection,
        *,
        on_change: OnChange,
        rng: random.Random,
        state: WatchState | None = None,
        outage: Outage | None = None,
    ) -> None:
        self._session, self._selection, self._rng = session, selection, rng
        self._on_change, self._outage = on_change, outage
        self._state = state or WatchState()
        self._backoff = Backoff(rng)
        self._has_opened = False
        self.is_open = False
        """Whether the hub has answered the last request for a watch, and that has not ended."""

    @property
    def objects(self) -> dict[str, Obj]:
        """Return the objects by name; not to be changed."""
        return self._state.objects

    @property
    def is_synced(self) -> bool:
        """Whether the initial events have come in once."""
        return self._state.is_synced

    async def run(self) -> None:
        """Watch until cancelled."""
        tally = self._session.tally
        while True:
            started_s = time.monotonic()
            end = await self._follow()
            self.is_open, now_s = False, time.monotonic()
            if end is End.AWAY and self._has_opened and self._outage is not None:
                self._outage.lost(self, now_s)
            if end is End.EXPIRED:
                tally.watches_expired += 1
            if self._state.ended(end, lasted_s=now_s - started_s):
                await asyncio.sleep(self._backoff.next_s(now_s))

    async def _follow(self) -> End:
        """Read one stream to its end."""
        timeout_s = self._rng.randint(MIN_TIMEOUT_S, MAX_TIMEOUT_S)
        try:
            async with asyncio.timeout(timeout_s + GRACE_S):
                return await self._read(timeout_s)
        except HubAwayError:
            return End.AWAY
        except RefusedError:
            return End.REFUSED  # the session has judged it
        except MalformedError as error:
            self._session.tally.protocol_error(f"watch {self._label}: {error}", kind="malformed")
            return End.REFUSED
        except TimeoutError:
            self._session.tally.protocol_error(
                f"watch {self._label}: still open {GRACE_S:.0f} s after its timeoutSeconds",
                kind="watch overdue",
            )
            return End.AWAY

    async def _read(self, timeout_s: int) -> End:
        state = self._state
        target = self._selection.target(
            revision=state.revision, is_initial=state.phase is Phase.LIST, timeout_s=timeout_s
        )
        frames, end = LineFrames(), End.CLEAN
        async with self._session.watch(self._selection, target) as chunks:
            self._count_opening()
            state.opened()
            async for chunk in chunks:
                for event in frames.feed(chunk):
                    if event.type == "ERROR":
                        end = self._failed(event.object)
                    else:
                        self._take(event)
        frames.close()
        return end

    def _count_opening(self) -> None:
        self._session.tally.watches_opened += 1
        self._session.tally.watch_restarts += self._has_opened
        self._has_opened = self.is_open = True
        if self._outage is not None:
            self._outage.opened(self, time.monotonic())

    def _take(self, event: WatchEvent) -> None:
        self._session.tally.watch_events[event.type] += 1
        changed = self._state.apply(event)
        if self._state.faults:
            self._session.tally.lied(f"watch {self._label}", self._state.faults)
            self._state.faults.clear()
        for name in changed:
            self._on_change(name)

    def _failed(self, status: Obj) -> End:
        """Judge an ERROR event."""
        if status.get("code") == 410:
            return End.EXPIRED
        self._session.tally.protocol_error(
            f"watch {self._label}: ERROR event {status}", kind=f"watch error {status.get('code')}"
        )
        return End.REFUSED

    @property
    def _label(self) -> str:
        return self._selection.resource.plural
