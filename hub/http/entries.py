"""The entries of a long list, a few of them in memory at a time.

Owns how many: a client that reads slowly, or not at all, must not keep a whole list in memory until
it is cut. What follows the first entries is read when it is asked for, as it was at the list's
revision, however long that takes and whatever is written meanwhile.
"""

from collections.abc import Iterator
from dataclasses import dataclass

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

    `left`: how many follow `first`, None for all there are; 0 when there is nothing to be read.
    """

    store: Store
    prefix: bytes
    revision: Revision
    match: Match | None
    first: list[Stored]
    left: int | None = 0

    def __iter__(self) -> Iterator[Stored]:
        """Read on as far as is asked; ApiError 410 when the log does not reach back any more."""
        held, left = self.first, self.left
        yield from held
        while held and (left is None or left > 0):
            count = next_count(len(held), sum(len(entry.raw) for entry in held))
            after = held[-1].key
            held = self._read(after, count if left is None else min(count, left))
            left = None if left is None else left - len(held)
            yield from held

    def _read(self, after: Key, count: int) -> list[Stored]:
        try:
            page = self.store.scan_at(
                self.prefix,
                self.revision,
                after=after,
                limit=count,
                match=self.match,
                is_counted=False,
            )
        except Compacted as error:
            raise expired("The list takes too long: its revision is no longer kept.") from error
        return page.entries


def begin(store: Store, prefix: bytes, match: Match | None) -> Entries:
    """Return everything under a prefix that matches, as it is now."""
    revision = store.revision
    page = store.scan_at(prefix, revision, limit=FIRST, match=match, is_counted=False)
    return Entries(store, prefix, revision, match, page.entries, None if page.has_more else 0)


def shorten(store: Store, prefix: bytes, match: Match | None, page: Page) -> Entries:
    """Return the entries of a page, and let go of all but its first."""
    size = held = 0
    for entry in page.entries:
        size += len(entry.raw)
        held += 1
        if size > HELD_BYTES:
            break
    left = len(page.entries) - held
    return Entries(store, prefix, page.revision, match, page.entries[:held], left)
