"""The overlay: renewals of heartbeat Leases, in memory and flushed now and then.

Owns the newest state of every renewed object. A renewal is acknowledged at once; the entries
changed since the last flush are written to the `renewals` database in one sorted transaction.
Renewals since the last flush are lost in a crash; whoever serves Leases grants a grace period at
start.

Invariants: an entry lies over an object of the `objects` database and is newer than it, or it does
not count; while a durable write to its key is under way an entry is frozen, so that the committer
thread may compare with it. Only the event loop's thread changes the overlay.
"""

from collections import Counter
from collections.abc import Iterable

from hub.store.api import Key, Stored
from hub.store.key import group_of, stored_key
from hub.store.lmdb_env import (
    Environment,
    Txn,
)
from hub.store.value import revision_of, stored


class Overlay:
    """The renewed entries by key."""

    __slots__ = ("_busy", "_dirty", "_groups", "entries")

    def __init__(self, entries: Iterable[Stored] = ()) -> None:
        self.entries: dict[Key, Stored] = {}
        self._groups: dict[bytes, set[Key]] = {}
        self._dirty: set[Key] = set()
        self._busy: Counter[Key] = Counter()
        for entry in entries:
            self._take(entry)

    def put(self, entry: Stored) -> None:
        """Take a renewal."""
        self._take(entry)
        self._dirty.add(entry.key)

    def _take(self, entry: Stored) -> None:
        if entry.key not in self.entries:
            self._groups.setdefault(group_of(entry.key), set()).add(entry.key)
        self.entries[entry.key] = entry

    def under(self, prefix: bytes) -> list[Stored]:
        """Return the entries under a prefix; for one namespace without a look at all others."""
        if prefix.count(0) < 2:
            return [entry for key, entry in self.entries.items() if key.startswith(prefix)]
        group = self._groups.get(group_of(prefix), ())
        return [self.entries[key] for key in group if key.startswith(prefix)]

    def drop(self, key: Key) -> None:
        """Forget an entry: a durable write has replaced its object."""
        if self.entries.pop(key, None) is None:
            return
        self._dirty.discard(key)
        name = group_of(key)
        self._groups[name].discard(key)
        if not self._groups[name]:
            del self._groups[name]

    def freeze(self, key: Key) -> None:
        """Say that a durable write to `key` is under way."""
        self._busy[key] += 1

    def thaw(self, key: Key) -> None:
        """Say that a durable write to `key` has ended, either way."""
        self._busy[key] -= 1
        if not self._busy[key]:
            del self._busy[key]

    def is_frozen(self, key: Key) -> bool:
        """Whether a durable write to `key` is under way."""
        return key in self._busy

    def take_dirty(self) -> list[tuple[bytes, bytes]]:
        """Return (stored key, value) of everything to flush, sorted, and count it as flushed."""
        rows = sorted((stored_key(key), self.entries[key].raw) for key in self._dirty)
        self._dirty.clear()
        return rows

    def mark_dirty(self) -> None:
        """Flush everything next time: a flush has failed."""
        self._dirty.update(self.entries)


def over(base: bytes, entry: Stored | None) -> bytes:
    """Return what counts of an object's value and the overlay's entry for it."""
    if entry is not None and entry.revision > revision_of(base):
        return entry.raw
    return base


def load(txn: Txn, env: Environment) -> Overlay:
    """Read the flushed renewals; those that no longer count are deleted with the caller's `txn`."""
    entries: list[Stored] = []
    stale: list[bytes] = []
    with txn.cursor(env.renewals) as cursor:
        for key, raw in cursor:
            base = txn.get(key, db=env.objects)
            if base is None or revision_of(base) > revision_of(raw):
                stale.append(key)
            else:
                entries.append(stored(key, raw))
    for key in stale:
        txn.delete(key, db=env.renewals)
    return Overlay(entries)
