"""The start-up arbiter: whether this directory may write this prefix.

Owns one pure decision for every way a hub can start: new, restarted, crashed half-way through a
write, restored, copied, pointed at somebody else's prefix. It reads nothing and writes nothing;
`snapshot.start` feeds it and acts.

Why HEAD may be ahead of what the directory recorded: the record is written after HEAD, so a crash
leaves it behind. The session tells whose writes they were, and a session belongs to one directory's
history; as the store commits before anything is shipped, HEAD at or below our own revision is a
prefix of what we hold. HEAD above it means that the directory is an older copy.

    directory          HEAD                                  decision
    -----------------  ------------------------------------  ----------------------------------
    any                none, other objects under the prefix  Refuse
    empty              none                                  Create
    empty              any                                   Refuse: run hub-restore restore
    never shipped      none                                  Create
    has shipped        none                                  Refuse: HEAD is gone
    any                of another hub                        Refuse: foreign
    our session        above our store                       Refuse: the directory is an older copy
    our session        before what we shipped, or forked     Refuse: the bucket went back
    our session        at our revision, another state        Refuse: histories differ
    our session        else                                  Continue
    claim              where it was restored from            TakeClaim
    claim              moved on, or not the same chain       Refuse: restore again
    else               any                                   Refuse: another directory wrote last
"""

from dataclasses import dataclass
from typing import TypeAlias

from snapshot.head import Head
from snapshot.local import Claim, LocalState


@dataclass(frozen=True, slots=True)
class Local:
    """A directory that holds a store: what it remembers, and where the store stands."""

    dir_id: str
    rev: int
    state_hash: str
    """Hex."""
    state: LocalState | None
    claim: Claim | None


@dataclass(frozen=True, slots=True)
class Create:
    """Begin a chain on an empty prefix."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on from HEAD, under the next epoch, with revisions above `floor`.

    The floor matters to a copy of a volume: its original may have handed out what it does not know.
    """

    floor: int


@dataclass(frozen=True, slots=True)
class TakeClaim:
    """Spend the claim: go on from HEAD, under the next epoch, with revisions above `floor`."""

    floor: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Do not start; `hint` says what a human can do."""

    reason: str
    hint: str


Decision: TypeAlias = Create | Continue | TakeClaim | Refuse

_RESTORE = "run: hub-restore restore --object-store URL --data-dir NEWDIR"
_RESTORE_AGAIN = f"stop the other hub if this one shall go on, then restore again ({_RESTORE})"
_CHECK_URL = "check --object-store: every hub has a prefix of its own, with HEAD at its root"


def decide(local: Local | None, head: Head | None, *, is_prefix_in_use: bool) -> Decision:
    """Decide for a directory (None: it holds no store) and HEAD (None: there is none).

    `is_prefix_in_use`: whether anything lies under the prefix; looked at only without HEAD.
    """
    if head is None:
        return _without_head(local, is_prefix_in_use=is_prefix_in_use)
    if local is None:
        return Refuse(
            f"the data directory is empty, and the prefix holds hub {head.hub_id} at revision "
            f"{head.rev}",
            f"{_RESTORE}; or give a new hub a prefix of its own",
        )
    return _identity(local, head) or _with_head(local, head)


def _without_head(local: Local | None, *, is_prefix_in_use: bool) -> Decision:
    if is_prefix_in_use:
        return Refuse(
            "the prefix holds objects but no HEAD",
            f"{_CHECK_URL}; if somebody deleted HEAD, put it back from a copy or an older version",
        )
    if local is None:
        return Create()
    if local.claim is not None:
        return Refuse(
            f"the directory was restored from {local.claim.object_store}, this prefix is empty",
            _CHECK_URL,
        )
    if local.state is not None and local.state.epoch:
        return Refuse(
            f"the directory has shipped up to revision {local.state.rev}, this prefix is empty",
            f"{_CHECK_URL}; if somebody deleted HEAD, put it back from a copy or an older version",
        )
    return Create()


def _identity(local: Local, head: Head) -> Refuse | None:
    """Refuse what belongs to another hub, or memories that came from another directory."""
    known = {each.hub_id for each in (local.state, local.claim) if each is not None}
    if known - {head.hub_id}:
        return Refuse(
            f"the prefix belongs to hub {head.hub_id}, the directory to {', '.join(sorted(known))}",
            _CHECK_URL,
        )
    if local.state is not None and local.state.dir_id != local.dir_id:
        return Refuse(
            f"the directory's state file is of directory {local.state.dir_id}, its store of "
            f"{local.dir_id}",
            f"copy data directories as a whole; or {_RESTORE}",
        )
    return None


def _with_head(local: Local, head: Head) -> Decision:
    if local.state is not None and head.writer.session in local.state.sessions:
        return _own(local, local.state, head)
    if local.claim is not None:
        return _claimed(local, local.claim, head)
    return Refuse(
        f"another directory wrote this prefix last: {head.writer.describe()}, epoch {head.epoch}, "
        f"revision {head.rev}",
        f"to go on from the bucket {_RESTORE}; keep this directory, it may hold unshipped changes",
    )


def _own(local: Local, state: LocalState, head: Head) -> Decision:
    """HEAD was written by a session of this directory."""
    if head.rev > local.rev:
        return Refuse(
            f"the directory is at revision {local.rev} and has shipped {head.rev}: it is an older "
            "copy of itself",
            f"start the newer directory, or go on from the bucket: {_RESTORE}",
        )
    if head.seq < state.seq or (head.seq == state.seq and head.chain != state.chain):
        return Refuse(
            f"HEAD is at segment {head.seq}, this directory has shipped segment {state.seq} of "
            "another history",
            "the bucket was set back or written from elsewhere: put back its newest HEAD",
        )
    if head.seq and head.rev == local.rev and head.state_hash != local.state_hash:
        return Refuse(
            f"the directory and the bucket hold different states at revision {head.rev}",
            f"keep the directory for inspection and go on from the bucket: {_RESTORE}",
        )
    return Continue(floor=head.reserved_rev)


def _claimed(local: Local, claim: Claim, head: Head) -> Decision:
    """Decide for a directory restored and not started on this prefix since."""
    if head.seq > claim.seq:
        return Refuse(
            f"the prefix has moved on since this directory was restored: {head.writer.describe()} "
            f"has shipped {head.seq - claim.seq} more segments, up to revision {head.rev}",
            _RESTORE_AGAIN,
        )
    if (head.seq, head.chain) != (claim.seq, claim.chain) or head.epoch < claim.epoch:
        return Refuse(
            f"the prefix is not at the segment {claim.seq} that this directory was restored from",
            f"{_CHECK_URL}; or {_RESTORE}",
        )
    if head.epoch > claim.epoch:
        return Refuse(
            f"the prefix has moved on since this directory was restored: {head.writer.describe()} "
            f"has taken epoch {head.epoch}",
            _RESTORE_AGAIN,
        )
    is_same_state = local.rev != claim.rev or local.state_hash == claim.state_hash
    if local.rev < claim.rev or not is_same_state:
        return Refuse(
            f"the store at revision {local.rev} is not the one that was restored at {claim.rev}",
            _RESTORE,
        )
    return TakeClaim(floor=head.reserved_rev)
