"""What two states differ in: a snapshot or a directory on each side.

Owns the comparison. Both sides come as records in order of stored key and are read side by side, so
memory holds the differences and what the deltas of a snapshot say, never a whole state. An object
is changed when its revision is another: no two hubs of one chain hand out the same. Contents are
not looked at, so nothing sealed is opened.

>>> from hub.store import Revision, encode_key
>>> def record(name, revision):
...     return Record(encode_key("pods", "ns", name), Revision(revision), b"")
>>> left, right = [record("a", 1), record("b", 2)], [record("b", 3), record("c", 4)]
>>> [(each.side, each.name) for each in compare(left, right)]
[('left', 'a'), ('changed', 'b'), ('right', 'c')]
"""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from hub import store as hub_store
from hub.store import (
    STORE_DIRECTORY,
    DirectoryLock,
    HubKey,
    Record,
    decode_key,
    has_store,
    read_store,
    stored_key,
)
from snapshot.errors import IntegrityError, KeyMismatch, NothingToRestore, TargetBusy
from snapshot.head import Head
from snapshot.local import load_claim, load_state
from snapshot.merge import merge
from snapshot.plan import Progress, obtain
from snapshot.points import Point, Target
from snapshot.remote import Remote
from snapshot.segment import open_segment

Side: TypeAlias = Literal["left", "right", "changed"]


@dataclass(frozen=True, slots=True)
class Difference:
    """An object on one side only, or of another revision; a revision of 0: it is not there."""

    side: Side
    resource: str
    namespace: str
    name: str
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class State:
    """One side: where it stands, and its records in order of stored key.

    `hub_id` "" when a directory does not remember.
    """

    what: str
    hub_id: str
    revision: int
    objects: int
    records: Iterator[Record]
    point: Point | None = None


def compare(left: Iterable[Record], right: Iterable[Record]) -> Iterator[Difference]:
    """Yield what differs, in order of stored key."""
    ours, theirs = iter(left), iter(right)
    a, b = next(ours, None), next(theirs, None)
    while a is not None or b is not None:
        a_key = stored_key(a.key) if a is not None else None
        b_key = stored_key(b.key) if b is not None else None
        takes_a = b_key is None or (a_key is not None and a_key <= b_key)
        takes_b = a_key is None or (b_key is not None and b_key <= a_key)
        one, other = (a if takes_a else None), (b if takes_b else None)
        if difference := _difference(one, other):
            yield difference
        a = next(ours, None) if takes_a else a
        b = next(theirs, None) if takes_b else b


@contextmanager
def directory_state(directory: Path, key: HubKey) -> Iterator[State]:
    """Give the state of a data directory that nobody works on; changes nothing.

    Raises `NothingToRestore` (no store), `TargetBusy`, `KeyMismatch`, `IntegrityError`.
    """
    place = directory / STORE_DIRECTORY
    if not has_store(place):
        raise NothingToRestore(
            "the directory has no store",
            op="diff",
            object=str(directory),
            hint="name the data directory of a hub",
        )
    memory = load_state(directory) or load_claim(directory)
    with ExitStack() as stack:
        stack.enter_context(_store_errors(directory))
        stack.callback(DirectoryLock(directory).close)
        export = stack.enter_context(read_store(place, hub_key=key))
        position = export.position
        yield State(
            what=str(directory),
            hub_id=memory.hub_id if memory else "",
            revision=position.revision,
            objects=position.count,
            records=export.records,
        )


@contextmanager
def snapshot_state(
    remote: Remote,
    key: HubKey,
    head: Head,
    *,
    to: Target,
    scratch: Path | None = None,
    progress: Progress | None = None,
) -> Iterator[State]:
    """Give a state of a prefix. Raises as `plan.obtain`."""
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="hublet-diff-", dir=scratch))
        obtained = obtain(remote, key, head, Path(name), target=to, progress=progress)
        readers = [
            stack.enter_context(open_segment(each.path, key, name=each.ref.name))
            for each in obtained.fetched
        ]
        records = merge(readers[0].records(), (delta.records() for delta in readers[1:]))
        base = obtained.base
        yield State(remote.url, head.hub_id, base.rev, base.objects, records, obtained.point)


def _difference(a: Record | None, b: Record | None) -> Difference | None:
    found = a or b
    if found is None or (a is not None and b is not None and a.revision == b.revision):
        return None
    resource, namespace, name = decode_key(found.key)
    side: Side = "left" if b is None else "right" if a is None else "changed"
    left, right = (a.revision if a else 0), (b.revision if b else 0)
    return Difference(side, resource, namespace, name, left, right)


@contextmanager
def _store_errors(directory: Path) -> Iterator[None]:
    place = str(directory)
    try:
        yield
    except hub_store.Locked as error:
        raise TargetBusy(
            "a hub or a restore is at work on the directory", op="diff", object=place
        ) from error
    except hub_store.KeyMismatch as error:
        raise KeyMismatch(str(error), op="diff", object=place) from error
    except hub_store.Corrupt as error:
        raise IntegrityError(
            str(error), op="diff", object=place, hint="restore the hub from its bucket"
        ) from error
