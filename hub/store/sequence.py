"""The sequence: one revision counter for two writers, and changes shown in its order.

The committer thread and the event loop (renewals) draw revisions from one counter. Each revision
drawn is a *slot*; a slot is settled with the change it stands for, or with none when its write came
to nothing. Changes are released only from the front, so that nobody sees revision N before
everything below N is settled.

>>> sequence = Sequence(Revision(10))
>>> slow, quick = sequence.take(), sequence.take()
>>> sequence.settle(quick, None)
>>> sequence.release(), sequence.shown
([], 10)
>>> sequence.settle(slow, None)
>>> sequence.release(), sequence.shown
([], 12)
"""

import threading
from collections import deque

from hub.store.api import Change, Revision
from hub.store.errors import InvariantError


class Slot:
    """A revision that was drawn, and what has become of it."""

    __slots__ = ("change", "is_settled", "revision")

    def __init__(self, revision: Revision) -> None:
        self.revision = revision
        self.change: Change | None = None
        self.is_settled = False


class Sequence:
    """Hands out revisions, each once and rising, and releases their changes in order.

    `take` may be called from any thread; `settle` and `release` from the event loop's only.
    `shown` is the highest revision at and below which everything has been released.
    """

    __slots__ = ("_lock", "_pending", "last", "shown")

    def __init__(self, start: Revision) -> None:
        self._lock = threading.Lock()
        self._pending: deque[Slot] = deque()
        self.last = start
        self.shown = start

    def take(self) -> Slot:
        """Draw the next revision."""
        with self._lock:
            self.last = Revision(self.last + 1)
            slot = Slot(self.last)
            self._pending.append(slot)
            return slot

    def take_below(self, ceiling: Revision) -> Slot | None:
        """Draw the next revision unless it would exceed the ceiling on disk."""
        with self._lock:
            if self.last >= ceiling:
                return None
            self.last = Revision(self.last + 1)
            slot = Slot(self.last)
            self._pending.append(slot)
            return slot

    def settle(self, slot: Slot, change: Change | None) -> None:
        """Say what became of a slot."""
        slot.change = change
        slot.is_settled = True

    def release(self) -> list[Change]:
        """Return the changes that may be shown now and move `shown` up."""
        changes: list[Change] = []
        pending = self._pending
        while pending and pending[0].is_settled:
            slot = pending.popleft()
            if slot.change is not None:
                changes.append(slot.change)
            self.shown = slot.revision
        return changes

    def raise_to(self, floor: Revision) -> None:
        """Skip every revision up to and including `floor`; only while nothing is under way."""
        with self._lock:
            if self._pending:
                raise InvariantError(f"{len(self._pending)} writes are under way, floor {floor}")
            self.last = self.shown = Revision(max(self.last, floor))
