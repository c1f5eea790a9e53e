"""What can go wrong in the store.

    StoreError
    +-- NotFound          the key of an UPDATE or DELETE does not exist
    +-- Exists            the key of a CREATE is taken
    +-- Conflict          the object is at another revision than expected
    +-- Compacted         the revision asked for is older than the log
    +-- FutureRevision    the revision asked for has not been reached
    +-- MapFull           the file or its volume is full; reads go on
    |   +-- WriteFailed   the volume refused a write for another reason; reads go on
    +-- Broken            the engine gave up; reads too, until the process is started again
    +-- Corrupt           the file, a value or the log contradicts itself
    +-- Locked            another process has the directory
    +-- KeyMismatch       the hub key does not open this store
    +-- Closed            the store is closing; nothing was written

`InvariantError` is outside the tree: a broken promise of our own code, with the values; it stops
the process.
"""

from hub.store.api import Key, Revision


class StoreError(Exception):
    """Any refusal of the store."""


class NotFound(StoreError):  # noqa: N818  the field's word; the tree above is read aloud
    """The key of an UPDATE or DELETE does not exist."""

    def __init__(self, key: Key) -> None:
        super().__init__(f"no object at {key!r}")
        self.key = key


class Exists(StoreError):  # noqa: N818  see NotFound
    """The key of a CREATE is taken."""

    def __init__(self, key: Key) -> None:
        super().__init__(f"object exists at {key!r}")
        self.key = key


class Conflict(StoreError):  # noqa: N818  see NotFound
    """The object is at another revision than expected."""

    def __init__(self, key: Key, *, expected: Revision, actual: Revision) -> None:
        super().__init__(f"{key!r} is at revision {actual}, not {expected}")
        self.key, self.expected, self.actual = key, expected, actual


class Compacted(StoreError):  # noqa: N818  see NotFound
    """The revision asked for is older than the log."""

    def __init__(self, *, asked: Revision, oldest: Revision) -> None:
        super().__init__(f"revision {asked} is compacted, the log begins after {oldest}")
        self.asked, self.oldest = asked, oldest


class FutureRevision(StoreError):  # noqa: N818  see NotFound
    """The revision asked for has not been reached."""

    def __init__(self, *, asked: Revision, current: Revision) -> None:
        super().__init__(f"revision {asked} is in the future, the store is at {current}")
        self.asked, self.current = asked, current


class MapFull(StoreError):  # noqa: N818  see NotFound
    """The file or its volume is full; nothing was written and reads go on."""


class WriteFailed(MapFull):
    """The volume refused a write though it has room; nothing was written and reads go on."""


class Broken(StoreError):  # noqa: N818  see NotFound
    """The engine could not tell which of two states is the last one; the process must end.

    Whether the last batch is in the file shows at the next start, as after a crash.
    """


class Corrupt(StoreError):  # noqa: N818  see NotFound
    """The file, a value or the log contradicts itself."""


class Locked(StoreError):  # noqa: N818  see NotFound
    """Another process has the directory."""


class KeyMismatch(StoreError):  # noqa: N818  see NotFound
    """The hub key does not open this store."""


class Closed(StoreError):  # noqa: N818  see NotFound
    """The store is closing; nothing was written."""


class InvariantError(Exception):
    """A promise of our own code is broken; carries the values and stops the process."""
