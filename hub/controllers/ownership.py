"""Who depends on whom: a graph of owner references, small enough to keep in memory.

Owns two maps: from an object that has owners to its links, and from an owner's uid to the keys of
its dependents. Objects without owners are in it only as the uid that somebody names, so a fleet's
hundred thousand objects cost nothing and each dependent about 300 bytes. Knows nothing of what is
stored; whether an owner exists is for the collector to read.

>>> graph = OwnerGraph()
>>> graph.put(Key(b"pods"), (Link("u1", is_blocking=True),))
()
>>> graph.dependents("u1"), graph.is_blocked("u1")
([b'pods'], True)
>>> graph.drop(Key(b"pods"))
(Link(uid='u1', is_blocking=True),)
>>> len(graph)
0
"""

from dataclasses import dataclass
from typing import TypeAlias

from hub.meta import Obj
from hub.store import Key


@dataclass(frozen=True, slots=True)
class Link:
    """One owner reference: whose, and whether the owner waits for this dependent."""

    uid: str
    is_blocking: bool


Links: TypeAlias = tuple[Link, ...]


def links_of(obj: Obj) -> Links:
    """Return an object's owner references."""
    found = obj["metadata"].get("ownerReferences") or ()
    return tuple(Link(str(r.get("uid")), bool(r.get("blockOwnerDeletion"))) for r in found)


class OwnerGraph:
    """The links of every object that has owners."""

    def __init__(self) -> None:
        self._links: dict[Key, Links] = {}
        self._dependents: dict[str, dict[Key, bool]] = {}

    def __len__(self) -> int:
        return len(self._links)

    def __contains__(self, key: Key) -> bool:
        return key in self._links

    def put(self, key: Key, links: Links) -> Links:
        """Take over the links of an object; return those it had."""
        before = self._links.get(key, ())
        if links == before:
            return before
        self.drop(key)
        if links:
            self._links[key] = links
        for link in links:
            found = self._dependents.setdefault(link.uid, {})
            found[key] = found.get(key, False) or link.is_blocking
        return before

    def drop(self, key: Key) -> Links:
        """Forget an object; return the links it had."""
        links = self._links.pop(key, ())
        for link in links:
            found = self._dependents.get(link.uid)
            if found is None:
                continue
            found.pop(key, None)
            if not found:
                del self._dependents[link.uid]
        return links

    def dependents(self, uid: str) -> list[Key]:
        """Return the keys of the objects that name `uid` as an owner."""
        return list(self._dependents.get(uid, ()))

    def is_blocked(self, uid: str) -> bool:
        """Whether a dependent holds up the deletion of `uid` in the foreground."""
        return any(self._dependents.get(uid, {}).values())
