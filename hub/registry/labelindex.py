"""Objects by the value of one label, for the few labels that thousands of clients select by.

Owns an in-memory map from values to keys, loaded from the index blocks at the start and kept in
step with what watchers are shown: exactly the objects at or below the store's visible revision.
Without it every agent's list of its own CSRs reads the index block of all of them.
"""

from hub.registry.kind import Kind
from hub.registry.watch import Event
from hub.store import Index, Key, Op, Store, decode_index
from hub.store import prefix as key_prefix


class LabelIndex:
    """The keys of one kind by the value of one label."""

    def __init__(self, kind: Kind, label: str, store: Store) -> None:
        self._label = label
        self._keys: dict[str, set[Key]] = {}
        for entry in store.scan(key_prefix(kind.id, None), is_counted=False).entries:
            self._put(entry.key, entry.index)

    def follow(self, event: Event) -> None:
        """Take over a change of the kind."""
        change = event.change
        if change.previous_index is not None:
            self._drop(change.key, change.previous_index)
        if change.op is not Op.DELETE:
            self._put(change.key, change.index)

    def keys(self, value: str) -> list[Key]:
        """Return the keys of the objects whose label has `value`, in key order."""
        return sorted(self._keys.get(value, ()))

    def _put(self, key: Key, index: Index) -> None:
        value = self._value(index)
        if value is not None:
            self._keys.setdefault(value, set()).add(key)

    def _drop(self, key: Key, index: Index) -> None:
        value = self._value(index)
        keys = self._keys.get(value) if value is not None else None
        if keys is None or value is None:
            return
        keys.discard(key)
        if not keys:
            del self._keys[value]

    def _value(self, index: Index) -> str | None:
        return decode_index(index)[0].get(self._label)
