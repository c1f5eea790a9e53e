"""Which part of an old object a part of the new one replaces.

Mirrors k8s.io/apiserver/pkg/cel/common/{equality,maplist}.go: fields by name, items of a list-type
map by their keys, other items not at all.

>>> from hub.meta.schema.structural import parse
>>> traits = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}
>>> schema = parse({"type": "array", "items": {"properties": {"v": {}}}, **traits})
>>> before = Before([{"n": 1, "v": 2}], [{"n": 0}, {"n": 1, "v": 3}], schema)
>>> before.item(0).member("v").old
3
"""

from typing import Any

from hub.meta.schema.gotext import identity, same
from hub.meta.schema.structural import Schema


class Before:
    """A value and what stood there before the update."""

    __slots__ = ("_by_key", "new", "old", "schema")

    def __init__(self, new: Any, old: Any, schema: Schema) -> None:
        self.new, self.old, self.schema = new, old, schema
        self._by_key: dict[Any, Any] | None = None

    def member(self, key: str) -> "Before | None":
        """Return the pair below `key`, None when there is no such old value."""
        below = self.schema.child(key)
        if below is None or not (isinstance(self.new, dict) and isinstance(self.old, dict)):
            return None
        if key not in self.new or key not in self.old:
            return None
        return Before(self.new[key], self.old[key], below)

    def item(self, index: int) -> "Before | None":
        """Return the pair of an item, None when its old one is not there or cannot be told."""
        items = self.schema.items
        if items is None or not self._is_map_list():
            return None
        if not (isinstance(self.new, list) and isinstance(self.old, list)):
            return None
        key = self._key(self.new[index])
        if key is None:
            return None
        if self._by_key is None:
            self._by_key = {self._key(item): item for item in reversed(self.old)}
        old = self._by_key.get(key)
        return None if old is None else Before(self.new[index], old, items)

    def is_unchanged(self) -> bool:
        """Whether the value is what it was; items of a list-type map may have changed places."""
        if isinstance(self.new, list) and isinstance(self.old, list) and self._is_map_list():
            if len(self.new) != len(self.old):
                return False
            pairs = [self.item(index) for index in range(len(self.new))]
            return all(pair is not None and pair.is_unchanged() for pair in pairs)
        if isinstance(self.new, dict) and isinstance(self.old, dict):
            members = [self.member(key) for key in self.new]
            if len(self.new) != len(self.old):
                return False
            return all(member is not None and member.is_unchanged() for member in members)
        return same(self.new, self.old)

    def _is_map_list(self) -> bool:
        traits = self.schema.traits
        return traits.list_type == "map" and bool(traits.list_keys) and self.schema.type == "array"

    def _key(self, item: Any) -> tuple[Any, ...] | None:
        if not isinstance(item, dict):
            return None
        values = [item.get(key) for key in self.schema.traits.list_keys]
        if not all(isinstance(value, str | int | float) for value in values):
            return None
        return tuple(map(identity, values))
