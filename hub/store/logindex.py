r"""The log's index in memory: which revisions concern which part of the key space.

Without it a watch that resumes reads the whole log since its revision; with thousands of agents
coming back at once that is most of their hub's first minutes. Owns nothing durable: it is built
from the log when a store is opened, and kept in step on the event loop's thread, where it is read.

Revisions are grouped by the first two parts of their key (``resource NUL namespace NUL``).

>>> index = LogIndex()
>>> index.add(Revision(7), Key(b"works\0c1\0a"))
>>> index.add(Revision(8), Key(b"works\0c2\0a"))
>>> index.add(Revision(9), Key(b"works\0c1\0b"))
>>> list(index.find(b"works\0c1\0", range(1, 100)))
[7, 9]
>>> list(index.find(b"works\0", range(8, 100)))
[8, 9]
>>> index.add(Revision(10), Key(b"works\0c1\0a"))
>>> index.first(b"works\0c1\0", range(8, 100))
{b'works\x00c1\x00b': 9, b'works\x00c1\x00a': 10}
"""

import heapq
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from hub.store.api import Key, Revision
from hub.store.key import group_of

SEPARATOR = b"\0"
_PARTS = 2


class _Group:
    """The revisions of one group, rising, and the keys they wrote."""

    __slots__ = ("_names", "keys", "revisions")

    def __init__(self) -> None:
        self.revisions = array("Q")
        self.keys: list[Key] = []
        self._names: dict[Key, Key] = {}

    def add(self, revision: Revision, key: Key) -> None:
        self.revisions.append(revision)
        self.keys.append(self._names.setdefault(key, key))

    def find(self, prefix: bytes, window: range) -> Iterator[int]:
        start = bisect_left(self.revisions, window.start)
        stop = bisect_left(self.revisions, window.stop)
        for at in range(start, stop):
            if self.keys[at].startswith(prefix):
                yield self.revisions[at]

    def first(self, prefix: bytes, window: range, found: dict[Key, Revision]) -> None:
        start = bisect_left(self.revisions, window.start)
        stop = bisect_left(self.revisions, window.stop)
        for at in range(start, stop):
            key = self.keys[at]
            if key not in found and key.startswith(prefix):
                found[key] = Revision(self.revisions[at])

    def cut(self, through: Revision) -> bool:
        """Forget what is at or below `through`; whether nothing is left."""
        end = bisect_right(self.revisions, through)
        if end:
            del self.revisions[:end], self.keys[:end]
            self._names = {key: key for key in self.keys}
        return not self.keys


class LogIndex:
    """Which revisions of the log wrote under a prefix."""

    def __init__(self) -> None:
        self._groups: dict[bytes, _Group] = {}

    def add(self, revision: Revision, key: Key) -> None:
        """Note a logged write; revisions rise."""
        name = group_of(key)
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = _Group()
        group.add(revision, key)

    def find(self, prefix: bytes, window: range) -> Iterator[int]:
        """Yield, rising, the revisions in `window` that wrote under `prefix`."""
        return heapq.merge(*(group.find(prefix, window) for group in self._groups_of(prefix)))

    def first(self, prefix: bytes, window: range) -> dict[Key, Revision]:
        """Return the keys under `prefix` written in `window`, and where each first was."""
        found: dict[Key, Revision] = {}
        for group in self._groups_of(prefix):
            group.first(prefix, window, found)
        return found

    def cut(self, through: Revision) -> None:
        """Forget every revision at or below `through`."""
        for name in [n for n, group in self._groups.items() if group.cut(through)]:
            del self._groups[name]

    def _groups_of(self, prefix: bytes) -> list[_Group]:
        if prefix.count(SEPARATOR) >= _PARTS:
            group = self._groups.get(group_of(prefix))
            return [] if group is None else [group]
        return [group for name, group in self._groups.items() if name.startswith(prefix)]
