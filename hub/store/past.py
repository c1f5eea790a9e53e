"""The past: what must be undone of the present to see an earlier revision.

The log has, with every write, the value before it. A key written since a revision had then what the
first of those writes replaced; every other key is now as it was. The log's index says which keys
those are and where, so that only the entries a page shows are read.

Renewals and volatile objects are not in the log: of them the present is shown.
"""

from collections.abc import Iterator

from hub.store.api import Key, Revision, Stored
from hub.store.errors import Corrupt
from hub.store.key import stored_key
from hub.store.ledger import Shared
from hub.store.lmdb_env import Txn
from hub.store.log import decode_entry, encode_revision, key_of
from hub.store.value import stored


class Undo:
    """The keys under a prefix that were written since a revision, and what they had then."""

    __slots__ = ("_shared", "_txn", "keys")

    def __init__(self, shared: Shared, txn: Txn, prefix: bytes, revision: Revision) -> None:
        """Find the keys; the log must reach back to `revision`, and `txn` stay open."""
        self._shared, self._txn = shared, txn
        shown = shared.sequence.shown
        first: dict[Key, Revision] = {}
        if revision < shown:
            first = shared.log_index.first(prefix, range(revision + 1, shown + 1))
        # what is in the file and not shown yet is perhaps not in the index either
        with txn.cursor(shared.env.log) as cursor:
            if cursor.set_range(encode_revision(shown + 1)):
                for at, raw in cursor:
                    if (key := key_of(raw)).startswith(prefix):
                        first.setdefault(key, Revision(int.from_bytes(at)))
        self.keys = {stored_key(key): at for key, at in first.items()}
        """The stored keys, and the first revision that wrote each."""

    def at(self, key: bytes) -> Stored | None:
        """Return what lay at one of these keys, None when nothing did."""
        raw = self._before(self.keys[key])
        return stored(key, raw) if raw else None

    def entries(self, after: Key | None) -> Iterator[Stored]:
        """Yield the objects that lay at these keys after `after`, in order of the stored key."""
        for key in self._following(after):
            entry = self.at(key)
            if entry is not None:
                yield entry

    def count(self, after: Key | None) -> int:
        """Return how many those are."""
        return sum(bool(self._before(self.keys[key])) for key in self._following(after))

    def _following(self, after: Key | None) -> list[bytes]:
        passed = b"" if after is None else stored_key(after)
        return sorted(key for key in self.keys if key > passed)

    def _before(self, revision: Revision) -> bytes:
        at = encode_revision(revision)
        raw = self._txn.get(at, db=self._shared.env.log)
        if raw is None:
            raise Corrupt(f"the log has no entry at {revision}, which its index knows")
        return decode_entry(at, raw).previous
