"""The publisher: shows changes to subscribers on the event loop, in revision order."""

import asyncio
from collections.abc import Callable

from hub.store.api import Listener
from hub.store.sequence import Sequence


class Publisher:
    """Calls the listeners with what the sequence releases, one call a batch."""

    __slots__ = ("_handle", "_listeners", "_loop", "_sequence")

    def __init__(self, sequence: Sequence, loop: asyncio.AbstractEventLoop) -> None:
        self._sequence, self._loop = sequence, loop
        self._listeners: list[Listener] = []
        self._handle: asyncio.Handle | None = None

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every later batch of changes; return how to stop that."""
        self._listeners = [*self._listeners, listener]

        def unsubscribe() -> None:
            self._listeners = [each for each in self._listeners if each is not listener]

        return unsubscribe

    def schedule(self) -> None:
        """Publish in the loop's next turn; renewals of one turn go out together."""
        if self._handle is None:
            self._handle = self._loop.call_soon(self._publish_scheduled)

    def publish(self) -> None:
        """Show what may be shown.

        A failing listener does not keep the others from their changes; its error is raised to the
        loop's exception handler afterwards.
        """
        changes = self._sequence.release()
        if not changes:
            return
        errors: list[Exception] = []
        for listener in self._listeners:
            try:
                listener(changes)
            except Exception as error:  # noqa: BLE001  raised below, after every listener had its turn
                errors.append(error)
        if errors:
            raise ExceptionGroup("listeners of the store failed", errors)

    def _publish_scheduled(self) -> None:
        self._handle = None
        self.publish()
