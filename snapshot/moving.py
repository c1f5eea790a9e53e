"""Copying and moving: the chain of one prefix brought into another.

Owns the order of it. Segments go first and HEAD last, so that the target is empty or whole; a copy
that was cut short is taken up again. A move ends the source before the target can be started: HEAD
there says `moved`, under a higher epoch, so whatever still writes there is fenced.
"""

import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hub.clock import Clock
from snapshot.arbiter import Allowed
from snapshot.chain import Base, Chain
from snapshot.errors import (
    ChainBroken,
    ForeignPrefix,
    ObjectExists,
    ObjectMissing,
    SegmentCorrupt,
    StartRefused,
)
from snapshot.head import FORMAT, Head, SegmentRef, encode_head, open_head
from snapshot.layout import FORMAT as FORMAT_NOTE
from snapshot.layout import HEAD, is_note_of_another
from snapshot.plan import (
    FETCHERS,
    Progress,
    Quiet,
    check_chain,
    fetch,
    find_point,
    require_full,
)
from snapshot.points import Latest, Target
from snapshot.remote import Remote
from snapshot.seal import HubKey


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy brought over: the state at `revision`, in `segments` of `size` bytes."""

    hub_id: str
    epoch: int
    revision: int
    segments: int
    size: int


def copy_chain(
    source: Remote,
    target: Remote,
    key: HubKey,
    *,
    clock: Clock,
    to: Target = Latest(),  # noqa: B008  frozen
    progress: Progress | None = None,
    scratch: Path | None = None,
) -> Copied:
    """Copy what a restore of `to` reads, every byte checked on the way, and a HEAD that names it.

    The target must be empty, or hold an earlier copy of the same chain; its HEAD counts as
    released. Raises `ForeignPrefix` when the target holds anything else, `IntegrityError`.
    """
    head = require_full(Chain(source, key, clock=clock).read_head(), source)
    _, _, path = find_point(source, key, head, to)
    told = progress or Quiet()
    told.phase("copy", sum(ref.size for ref in path))
    with tempfile.TemporaryDirectory(prefix="hublet-copy-", dir=scratch) as name:
        fetched = fetch(source, path, Path(name))
        with ThreadPoolExecutor(FETCHERS) as pool:
            puts = [pool.submit(_put, target, each.ref, each.path) for each in fetched]
            for put, each in zip(puts, fetched, strict=True):
                put.result()
                told.advance(each.ref.size)
        base = check_chain(head, fetched, key)
    _put_head(target, key, _as_copy(head, base, clock))
    return Copied(head.hub_id, head.epoch, base.rev, len(path), sum(ref.size for ref in path))


def move_in_from(
    source: Remote,
    target: Remote,
    key: HubKey,
    *,
    clock: Clock,
    allowed: Allowed,
    to: Target = Latest(),  # noqa: B008  frozen
    progress: Progress | None = None,
) -> Copied:
    """Copy a state, the newest by default, into an empty target, and end the chain at the source.

    Raises `StartRefused` when the source has not been released and may not be taken by force, or
    was moved elsewhere; `NothingToRestore` before anything is changed.
    """
    chain = Chain(source, key, clock=clock)
    head = require_full(chain.read_head(), source)
    if head.moved and head.moved != target.url:
        raise StartRefused(
            f"this hub has been moved to {head.moved}", op="move", hint="start it there"
        )
    if not head.moved and not allowed.takes(head):
        raise StartRefused(
            f"{head.writer.describe()} has not released the prefix {source.url}",
            op="move",
            hint="stop that hub in good order, or give --bootstrap-takeover Force when it is gone "
            "for good",
        )
    if not head.moved:
        _, _, path = find_point(source, key, head, to)
        _check_there(source, path)  # what cannot end well must not end the source
        _check_free(target, head)
        chain.mark_moved(target.url)
    return copy_chain(source, target, key, clock=clock, to=to, progress=progress)


def _check_free(target: Remote, head: Head) -> None:
    """Refuse a prefix that another hub has been in; rests of a copy of this one are fine."""
    try:
        note = target.get(FORMAT_NOTE).data
    except ObjectMissing:
        return
    if is_note_of_another(note, head.hub_id):
        raise ForeignPrefix(
            f"{target.url} was written by another hub", op="move", object=FORMAT_NOTE
        )


def _check_there(source: Remote, path: Iterable[SegmentRef]) -> None:
    """Raise `ChainBroken` for a segment that is missing or of another size."""
    for ref in path:
        try:
            size = source.head(ref.name).size
        except ObjectMissing as error:
            raise ChainBroken("a segment is missing", op="move", object=ref.name) from error
        if size != ref.size:
            raise ChainBroken(
                f"{size} bytes long, it was put with {ref.size}", op="move", object=ref.name
            )


def _as_copy(head: Head, base: Base, clock: Clock) -> Head:
    """Return HEAD as it stands in a copy: at `base`, of its segments only, free to be taken."""
    return msgspec.structs.replace(
        head,
        format=FORMAT,
        nonce=clock.token(12).hex(),
        seq=base.seq,
        rev=base.rev,
        chain=base.chain,
        state_hash=base.state_hash,
        objects=base.objects,
        full=base.full,
        tail=base.tail,
        manifest=None,
        kept=None,
        horizon=0,
        branches=(),
        released=True,
        drained=head.drained and base.seq == head.seq,
        moved="",
    )


def _put(target: Remote, ref: SegmentRef, path: Path) -> None:
    """Put a segment, unless it is there from a copy that was cut short."""
    try:
        target.put_if_absent(ref.name, path)
    except ObjectExists as error:
        if target.head(ref.name).size != ref.size:
            raise SegmentCorrupt(
                "another object has this name", op="copy", object=ref.name
            ) from error


def _put_head(target: Remote, key: HubKey, new: Head) -> None:
    """Put HEAD into an empty prefix, or replace that of an earlier copy that nobody started on."""
    try:
        target.put_if_absent(HEAD, encode_head(new, key))
    except ObjectExists as error:
        blob = target.get(HEAD)
        found = open_head(blob.data, key)
        is_older = found.hub_id == new.hub_id and found.epoch <= new.epoch and found.released
        if not is_older or found.seq > new.seq:
            raise ForeignPrefix(
                f"{target.url} holds hub {found.hub_id}, epoch {found.epoch}, revision {found.rev}",
                op="copy",
                object=HEAD,
            ) from error
        target.put_if_match(HEAD, encode_head(new, key), etag=blob.etag)
