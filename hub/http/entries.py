"""The entries of a long list, a few of them in memory at a time.

Owns how many: a client that reads slowly, or not at all, must not keep a whole list in memory until
it is cut. What follows the first entries is read when it is asked for, as it was at the list's
revision, however long that takes and whatever is written meanwhile.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hub.meta.errors import expired
from hub.store import Compacted, Key, Match, Page, Revision, Store, Stored

FIRST = 10
"""How many are read before it is known how large they are."""
MOST = 2_000
HELD_BYTES = 512 * 1024
"""About how much is read ahead, as stored: compressed to about a sixth."""


def next_count(n_entries: int, n_bytes: int) -> int:
    """Return how many entries to read next, when so many were that large.

    >>> next_count(10, 10_000), next_count(10, 100_000_000), next_count(0, 0)
    (524, 1, 10)
    """
    if not n_entries:
        return FIRST
    return max(1, min(MOST, HELD_BYTES * n_entries // max(1, n_bytes)))


@dataclass(frozen=True, slots=True)
class Entries:
    """What a list shows, in order, at one revision: `first`, then what lies behind in the store.

    `has_more`: whether anything does; `until`: the last key shown, empty for all there are.
    """

    store: Store
    prefix: bytes
    revision: Revision
    match: Match | None
    first: list[Stored]
    has_more: bool = False
    until: Key | None = None

    def __iter__(self) -> Iterator[Stored]:
        """Read on as far as is asked; ApiError 410 when the log does not reach back any more."""
        held, has_more = self.first, self.has_more
        yield from held
        while held and has_more:
            page = self._read(held[-1].key, next_count(len(held), sum(len(e.raw) for e in held)))
            held, has_more = page.entries, page.has_more
            # a key and no count says where a page ends: Events come and go meanwhile
            if self.until is not None and held and held[-1].key >= self.until:
                held, has_more = [e for e in held if e.key <= self.until], False
            yield from held

    def held(self) -> "Entries":
        """Return the same, all in memory: of objects that will be gone and are in no log."""
        return replace(self, first=list(self), has_more=False)

    def _read(self, after: Key, count: int) -> Page:
        try:
            return self.store.scan_at(
                self.prefix,
                self.revision,
                after=after,
                limit=count,
                match=self.match,
                is_counted=False,
            )
        except Compacted as error:
            raise expired("The list takes too long: its revision is no longer kept.") from error


def begin(store: Store, prefix: bytes, match: Match | None) -> Entries:
    """Return everything under a prefix that matches, as it is now."""
    revision = store.revision
    page = store.scan_at(prefix, revision, limit=FIRST, match=match, is_counted=False)
    return Entries(store, prefix, revision, match, page.entries, page.has_more)


def shorten(store: Store, prefix: bytes, match: Match | None, page: Page) -> Entries:
    """Return the entries of a page, and let go of all but its first."""
    size = held = 0
    for entry in page.entries:
        size += len(entry.raw)
        held += 1
        if size > HELD_BYTES:
            break
    if held == len(page.entries):
        return Entries(store, prefix, page.revision, match, page.entries)
    first, until = page.entries[:held], page.entries[-1].key
    return Entries(store, prefix, page.revision, match, first, has_more=True, until=until)
