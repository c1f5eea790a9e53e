"""Restore: from a prefix to a data directory that a hub can start on.

Owns the order: HEAD and key first, then whether the target may be written to, then every segment
fetched and the whole chain checked, and only then a store built aside, compared by its state hash
and put in place (`target`). A restore that fails or is killed leaves what was there as it was.

The directory gets an id of its own, a revision floor (no revision that any hub of this chain may
have handed out is used again, and watches from before get 410), and the one-time claim
``restore-claim.json``, with which the next start takes the next epoch.
"""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hub import store as hub_store
from hub.clock import Clock
from hub.store import HubKey, Position, Record, Revision, build_store
from snapshot import local
from snapshot.chain import Chain
from snapshot.errors import (
    KeyMismatch,
    SnapshotError,
    StateMismatch,
    TargetBusy,
    TargetNotEmpty,
)
from snapshot.head import Head
from snapshot.local import LocalState
from snapshot.merge import merge
from snapshot.plan import Obtained, Progress, Quiet, obtain, require_full
from snapshot.points import Latest, Point, Target, left_behind
from snapshot.remote import Remote
from snapshot.segment import Preamble, open_segment
from snapshot.target import staged

_TELL_EVERY = 500
"""Objects between two words on how far a build is."""
_SPACE_FACTOR = 3
"""Room asked for before a start, times the segments' size: spool, and a store that is larger."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did. `seconds` by phase: fetch (with the checks), build, and total."""

    directory: Path
    hub_id: str
    dir_id: str
    epoch: int
    """Of the HEAD restored from; the next start takes a higher one."""
    revision: int
    floor: int
    state_hash: str
    objects: int
    segments: int
    size: int
    """Bytes fetched."""
    replaced: str
    """The name under which the store that was there is kept aside, "" when there was none."""
    in_use_by: str
    """The hub that has not released the prefix; a start on this directory ends it. "": none."""
    point: Point
    left_behind: int
    """Positions of HEAD's history after the point; a start leaves them behind as a branch."""
    damaged: tuple[str, ...]
    """Segments that are missing or altered, and were gone around."""
    seconds: dict[str, float] = field(default_factory=dict)


def restore(
    remote: Remote,
    key: HubKey,
    target: Path,
    *,
    clock: Clock,
    to: Target = Latest(),  # noqa: B008  frozen
    is_last_consistent: bool = False,
    is_held: bool = False,
    is_own: bool = False,
    progress: Progress | None = None,
) -> Restored:
    """Restore a state of a prefix, the newest by default, into a directory: new, empty or a hub's.

    `is_held`: the caller holds the directory (`target.occupied`). `is_own`: it wrote the prefix
    last, so that its claim takes nothing from another. `is_last_consistent`: where
    segments are lost, be content with the newest state before `to`.
    Raises `NothingToRestore`, `KeyMismatch` (before anything but HEAD is fetched),
    `TargetNotEmpty`, `TargetBusy`, `IntegrityError`, `RemoteError`.
    """
    seconds: dict[str, float] = {}
    began_s = clock.monotonic_s()
    head = require_full(Chain(remote, key, clock=clock).read_head(), remote)
    with staged(target, clock=clock, is_held=is_held) as stage:
        _check_space(stage.spool, head)
        with _timed(seconds, "fetch", clock):
            obtained = obtain(
                remote,
                key,
                head,
                stage.spool,
                target=to,
                is_last_consistent=is_last_consistent,
                progress=progress,
            )
        dir_id = clock.uid()
        with _timed(seconds, "build", clock):
            build(stage.store, obtained, key, dir_id=dir_id, progress=progress)
        local.save_state(stage.store, LocalState(dir_id=dir_id, hub_id=head.hub_id))
        claim = local.claim_on(
            head, obtained.base, object_store=remote.url, clock=clock, own=is_own
        )
        local.save_claim(stage.store, claim)
    seconds["total"] = clock.monotonic_s() - began_s
    base = obtained.base
    return Restored(
        directory=target,
        hub_id=head.hub_id,
        dir_id=dir_id,
        epoch=head.epoch,
        revision=base.rev,
        floor=head.reserved_rev,
        state_hash=base.state_hash,
        objects=base.objects,
        segments=len(obtained.fetched),
        size=obtained.size,
        replaced=stage.replaces,
        in_use_by="" if head.released else head.writer.describe(),
        point=obtained.point,
        left_behind=left_behind(head, base.seq),
        damaged=obtained.damaged,
        seconds=seconds,
    )


def build(
    directory: Path,
    obtained: Obtained,
    key: HubKey,
    *,
    dir_id: str,
    progress: Progress | None = None,
) -> None:
    """Build a store from checked segments; the state hash must come out as promised.

    Raises `StateMismatch`, `KeyMismatch`, `SegmentCorrupt`, `TargetBusy`, `TargetNotEmpty`.
    """
    told = progress or Quiet()
    told.phase("build", obtained.base.objects)
    with contextlib.ExitStack() as stack:
        readers = [
            stack.enter_context(open_segment(each.path, key, name=each.ref.name))
            for each in obtained.fetched
        ]
        full, deltas = readers[0], readers[1:]
        records = merge(full.records(), (delta.records() for delta in deltas))
        with _store_errors(directory):
            _build(
                directory,
                obtained,
                _telling(records, told),
                full.preamble,
                key=key,
                dir_id=dir_id,
            )


def _telling(records: Iterator[Record], progress: Progress) -> Iterator[Record]:
    """Pass records on and say how many there were, now and then."""
    count = 0
    for count, record in enumerate(records, 1):
        yield record
        if count % _TELL_EVERY == 0:
            progress.advance(_TELL_EVERY)
    progress.advance(count % _TELL_EVERY)


def _build(
    directory: Path,
    obtained: Obtained,
    records: Iterator[Record],
    preamble: Preamble,
    *,
    key: HubKey,
    dir_id: str,
) -> None:
    base = obtained.base
    build_store(
        directory,
        records=records,
        dicts=preamble.dictionaries,
        wrapped_data_key=preamble.data_keys,
        position=Position(Revision(base.rev), bytes.fromhex(base.state_hash), base.objects),
        hub_key=key,
        dir_id=dir_id,
        floor=Revision(obtained.head.reserved_rev),
    )


def needed_bytes(head: Head) -> int:
    """Return about how much room the newest state takes while it is built, segments included."""
    return _SPACE_FACTOR * sum(ref.size for ref in head.segments)


def _check_space(place: Path, head: Head) -> None:
    """Refuse early when the volume cannot take the segments and the store."""
    needed = needed_bytes(head)
    free = shutil.disk_usage(place).free
    if free < needed:
        raise SnapshotError(
            f"{free >> 20} MiB are free, about {needed >> 20} MiB are needed",
            op="restore",
            object=str(place.parent),
            hint="free space on the volume, or restore to another one",
        )


@contextlib.contextmanager
def _store_errors(directory: Path) -> Iterator[None]:
    """Translate the store's errors into ours."""
    place = str(directory)
    try:
        yield
    except hub_store.KeyMismatch as error:
        raise KeyMismatch(str(error), op="build", object=place) from error
    except hub_store.Corrupt as error:
        raise StateMismatch(str(error), op="build", object=place) from error
    except hub_store.Locked as error:
        raise TargetBusy(str(error), op="build", object=place) from error
    except FileExistsError as error:
        raise TargetNotEmpty(str(error), op="build", object=place) from error
    except hub_store.MapFull as error:
        hint = "free space on the volume, or restore to another one"
        raise SnapshotError("the volume is full", op="build", object=place, hint=hint) from error


@contextlib.contextmanager
def _timed(seconds: dict[str, float], phase: str, clock: Clock) -> Iterator[None]:
    began_s = clock.monotonic_s()
    yield
    seconds[phase] = clock.monotonic_s() - began_s
