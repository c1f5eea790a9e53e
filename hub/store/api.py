"""The store's public types: what a write, a stored value and a change are.

Owns the vocabulary that the layers above (registry, backup, snapshot) speak with the store. It
knows bytes and revisions, nothing of Kubernetes beyond the shape of a key.

Invariants every implementation keeps:
- one global revision; each durable write takes the next one; no revision is ever handed out twice,
  across crash, restart and restore;
- a commit is acknowledged only when it is durable;
- subscribers see every change once, in revision order, only after it is durable.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NewType, TypeAlias

Revision = NewType("Revision", int)
"""A position in the store's one history; unsigned 64 bit, 0 = before everything."""

Key = NewType("Key", bytes)
"""``resource NUL namespace NUL name`` in UTF-8, see `hub.store.key`; sorts by its components."""

Index = NewType("Index", bytes)
"""Labels and selectable fields in the clear, see `hub.store.index`; what selectors read."""


class Op(enum.IntEnum):
    """What a write does to its key."""

    CREATE = 1
    UPDATE = 2
    DELETE = 3


@dataclass(frozen=True, slots=True)
class Draft:
    """A JSON document with its revision left out.

    The stored value is ``head + decimal revision + tail``, so the writer thread can put the
    resourceVersion it has just assigned into the bytes without decoding them, and get, list and
    watch never decode either.

    >>> Draft(b'{"rv":"', b'"}').at(Revision(7))
    b'{"rv":"7"}'
    """

    head: bytes
    tail: bytes

    def at(self, revision: Revision) -> bytes:
        """Return the document as it reads at `revision`."""
        return b"%b%d%b" % (self.head, revision, self.tail)


@dataclass(frozen=True, slots=True)
class Write:
    """One change asked of the store.

    `expect`: for UPDATE and DELETE the revision the object must have now, or `Conflict`; for CREATE
    None: the key must be free, or `Exists`. `draft` is the new document; for DELETE it is the
    object's last state, which watchers are shown at the revision of the deletion. `sealed`: encrypt
    at rest. `volatile`: keep out of log, state hash and snapshots (Events); it still takes a
    revision and is shown to subscribers.
    """

    op: Op
    key: Key
    draft: Draft
    index: Index
    expect: Revision | None = None
    sealed: bool = False
    volatile: bool = False


@dataclass(frozen=True, slots=True)
class Stored:
    """A value as it lies in the file.

    It has a header (revision, flags, dictionary id, index) and a payload (compressed, perhaps
    sealed), see `hub.store.value`. `raw` is header and payload together, the unit that snapshots
    ship and `state_hash` sums.
    """

    key: Key
    revision: Revision
    index: Index
    raw: bytes


@dataclass(frozen=True, slots=True)
class Change:
    """One durable (or overlay) change, as subscribers and log readers see it.

    `value` is the JSON document at `revision` (for DELETE: the last state, carrying the deletion's
    revision). `previous_index` is the index block before the change, None for CREATE; `previous`
    gives the JSON document before it on demand (selector exits need it), None for CREATE.
    `is_logged`: it is in the log and in snapshots; renewals and volatile objects are in neither.
    """

    op: Op
    key: Key
    revision: Revision
    value: bytes
    index: Index
    previous_index: Index | None
    previous: Callable[[], bytes] | None
    is_logged: bool = field(default=True, compare=False)  # nothing that watchers are shown


@dataclass(frozen=True, slots=True)
class Page:
    """One slice of a scan.

    Entries in key order, the revision they were read at, and whether more follow. `remaining`
    counts the keys after the slice when the scan has no `match`, else None.
    """

    entries: list[Stored]
    revision: Revision
    has_more: bool
    remaining: int | None


@dataclass(frozen=True, slots=True)
class Position:
    """Where a store stands: revision, whole-state hash (32 bytes) and the number of objects."""

    revision: Revision
    state_hash: bytes
    count: int


@dataclass(frozen=True, slots=True)
class Record:
    """One object as shipped in a snapshot: `raw` as stored, None = deleted at `revision`."""

    key: Key
    revision: Revision
    raw: bytes | None


Match: TypeAlias = Callable[[Key, Index], bool]
Listener: TypeAlias = Callable[[list[Change]], None]
