"""The start-up arbiter: what a start of a hub does with its directory and its prefix.

Owns one pure decision for every way a hub can start: new, restarted, crashed half-way through a
write, restored, copied, on an empty volume, pointed at somebody else's prefix. It reads nothing and
writes nothing; `snapshot.start` feeds it and acts.

A directory is its prefix's *own* when a session of it stands in HEAD, it is where it was, and its
store is not behind: nobody else can have written since. Why HEAD may be ahead of what the directory
recorded: the record is written after HEAD, so a crash leaves it behind; as the store commits before
anything is shipped, HEAD at or below our own revision is a prefix of what we hold.

Anything else takes the prefix from whoever wrote it last, and *may* do that when `takeover` says
so: Never; IfReleased: the last writer stopped in good order; Claimed: that, or a restore or an
adoption left its one-time claim, or the caller holds a lease; Force: always.

    directory                      HEAD                              decision
    -----------------------------  --------------------------------  -----------------------------
    any                            none, objects under the prefix    Refuse
    empty                          none                              Create (source Volume: Refuse)
    never shipped                  none                              Create
    has shipped, claim, damaged    none                              Refuse: HEAD is gone
    any                            of another hub                    Refuse: foreign
    any                            moved elsewhere                   Refuse (Force: as below)
    empty                          any                               Restore if it may, else Refuse
    empty, source Empty or Volume  any                               Refuse
    damaged                        any                               Restore if own or may
    damaged, a copy or fenced      any                               Restore if may; fenced: Force
    claim                          where it stood                    TakeClaim, Adopt or CatchUp
    claim                          moved on, not the same chain      Refuse: restore again
    fenced                         any                               CatchUp by Force, else Refuse
    own session, a copy            at or below our store             Adopt if it may, else Refuse
    own session                    above our store: an older copy    CatchUp if it may, else Refuse
    own session                    before what we shipped, forked    Refuse: the bucket went back
    own session                    at our revision, another state    Refuse: histories differ
    own session                    else                              Continue
    another wrote last             any                               CatchUp by Force, else Refuse
"""

import enum
from dataclasses import dataclass
from typing import TypeAlias

from snapshot.head import Head
from snapshot.local import Claim, LocalState


class Source(enum.StrEnum):
    """Where a hub takes its state from."""

    AUTO = "Auto"
    """From its directory when that is sound and its own, else from the bucket; else a new hub."""
    EMPTY = "Empty"
    """Nothing is restored: a new hub, or the directory's."""
    VOLUME = "Volume"
    """The directory must hold the store."""
    SNAPSHOT = "Snapshot"
    """An empty directory is restored from the bucket; one that holds a store goes on."""


class Takeover(enum.StrEnum):
    """When a prefix may be taken from the directory that wrote it last."""

    NEVER = "Never"
    IF_RELEASED = "IfReleased"
    CLAIMED = "Claimed"
    FORCE = "Force"


@dataclass(frozen=True, slots=True)
class Allowed:
    """What whoever starts the hub allows it."""

    source: Source = Source.AUTO
    takeover: Takeover = Takeover.CLAIMED
    has_lease: bool = False
    """Whether a lease was won that counts as a claim."""

    def takes(self, head: Head, *, has_claim: bool = False) -> bool:
        """Whether the prefix may be taken from its last writer."""
        if self.takeover is Takeover.FORCE:
            return True
        if self.takeover is Takeover.NEVER:
            return False
        is_claimed = self.takeover is Takeover.CLAIMED and (has_claim or self.has_lease)
        return head.released or is_claimed


@dataclass(frozen=True, slots=True)
class Local:
    """A directory that holds a store: what it remembers, and where the store stands."""

    dir_id: str
    rev: int
    state_hash: str
    """Hex."""
    state: LocalState | None
    claim: Claim | None
    place: str = ""
    """Where the directory is now (`local.place_of`); "": not known."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A directory whose store cannot be opened; `reason` says why."""

    reason: str
    state: LocalState | None
    place: str = ""


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
class Adopt:
    """Go on with a copy of the directory that wrote last, which must not write any more."""

    floor: int


@dataclass(frozen=True, slots=True)
class CatchUp:
    """The bucket is ahead of the directory: build the store anew from it, keep the old one aside.

    A restore of the newest state takes about as long as replaying what is missing, and ends with a
    verified state.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Restore:
    """There is no usable store: build one from the bucket.

    `is_own`: the directory itself wrote the prefix last, nothing is taken from another.
    """

    reason: str
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """Do not start; `hint` says what a human can do."""

    reason: str
    hint: str


Decision: TypeAlias = Create | Continue | TakeClaim | Adopt | CatchUp | Restore | Refuse


class _Standing(enum.Enum):
    """What the last writer of HEAD is to a directory."""

    OWN = enum.auto()
    COPIED = enum.auto()
    """The directory that this one is a copy of."""
    OTHER = enum.auto()


_RESTORE = "run: hub-restore restore --from URL --into DIR"
_RESTORE_AGAIN = f"stop the other hub if this one shall go on, then restore again ({_RESTORE})"
_CHECK_URL = "check --object-store: every hub has a prefix of its own, with HEAD at its root"
_ADOPT = "stop that hub and run: hub-restore adopt --from URL --into DIR"
_TAKE = (
    "stop that hub in good order (it releases the prefix), run hub-restore takeover --from URL, or "
    "start with --bootstrap-takeover Force when it is gone for good"
)
_BRING_BACK = f"{_CHECK_URL}; if somebody deleted HEAD, put it back from a copy or an older version"


def decide(
    local: Local | Damaged | None,
    head: Head | None,
    *,
    is_prefix_in_use: bool,
    allowed: Allowed = Allowed(),
) -> Decision:
    """Decide for a directory (None: it holds no store) and HEAD (None: there is none).

    `is_prefix_in_use`: whether anything lies under the prefix; looked at only without HEAD.
    """
    if head is None:
        return _without_head(local, allowed, is_prefix_in_use=is_prefix_in_use)
    if foreign := _foreign(local, head) or _mixed(local):
        return foreign
    if head.moved and allowed.takeover is not Takeover.FORCE:
        return Refuse(
            f"this hub has been moved to {head.moved}",
            "start it there; or, if that hub is gone for good, here with "
            "--bootstrap-takeover Force",
        )
    if local is None:
        return _empty(head, allowed)
    if isinstance(local, Damaged):
        return _damaged(local, head, allowed)
    return _with_head(local, head, allowed)


def _without_head(
    local: Local | Damaged | None, allowed: Allowed, *, is_prefix_in_use: bool
) -> Decision:
    if is_prefix_in_use:
        return Refuse("the prefix holds objects but no HEAD", _BRING_BACK)
    if mixed := _mixed(local):
        return mixed
    if local is None:
        if allowed.source in {Source.VOLUME, Source.SNAPSHOT}:
            what = "directory" if allowed.source is Source.VOLUME else "prefix"
            return Refuse(
                f"bootstrap source {allowed.source}, and the {what} is empty",
                "mount the right volume or name the right bucket; a new hub has source Empty or "
                "Auto",
            )
        return Create()
    if isinstance(local, Damaged):
        return Refuse(
            f"the store is damaged and the prefix is empty: {local.reason}",
            f"{_CHECK_URL}; or move the directory away to start a new hub",
        )
    if local.claim is not None:
        return Refuse(
            f"the directory was restored from {local.claim.object_store}, this prefix is empty",
            _CHECK_URL,
        )
    if local.state is not None and local.state.epoch:
        return Refuse(
            f"the directory has shipped up to revision {local.state.rev}, this prefix is empty",
            _BRING_BACK,
        )
    return Create()


def _foreign(local: Local | Damaged | None, head: Head) -> Refuse | None:
    """Refuse what belongs to another hub."""
    if local is None:
        return None
    claim = local.claim if isinstance(local, Local) else None
    known = {each.hub_id for each in (local.state, claim) if each is not None}
    if known - {head.hub_id}:
        return Refuse(
            f"the prefix belongs to hub {head.hub_id}, the directory to {', '.join(sorted(known))}",
            _CHECK_URL,
        )
    return None


def _mixed(local: Local | Damaged | None) -> Refuse | None:
    """Refuse memories that came from another directory."""
    if isinstance(local, Local) and local.state and local.state.dir_id != local.dir_id:
        return Refuse(
            f"the directory's state file is of directory {local.state.dir_id}, its store of "
            f"{local.dir_id}",
            f"copy data directories as a whole; or {_RESTORE}",
        )
    return None


def _empty(head: Head, allowed: Allowed) -> Decision:
    what = f"the data directory is empty, and the prefix holds hub {head.hub_id} at {head.rev}"
    if allowed.source is Source.EMPTY:
        return Refuse(
            f"{what}; bootstrap source Empty restores nothing", "give a new hub a prefix of its own"
        )
    if allowed.source is Source.VOLUME:
        return Refuse(f"{what}; bootstrap source is Volume", "mount the hub's volume")
    if allowed.takes(head):
        return Restore(what)
    return Refuse(
        f"{what}, written by {head.writer.describe()}, which has not released it",
        f"{_TAKE}; or give a new hub a prefix of its own",
    )


def _damaged(local: Damaged, head: Head, allowed: Allowed) -> Decision:
    reason = f"the store cannot be used: {local.reason}"
    is_own = _standing(local.state, local.place, head) is _Standing.OWN
    is_fenced = local.state is not None and bool(local.state.fenced_by)
    may = is_own or allowed.takes(head)
    if is_fenced:
        may = allowed.takeover is Takeover.FORCE
    if may and allowed.source in {Source.AUTO, Source.SNAPSHOT}:
        return Restore(reason, is_own=is_own)
    return Refuse(reason, f"{_RESTORE}; {_TAKE}")


def _standing(state: LocalState | None, place: str, head: Head) -> _Standing:
    session = head.writer.session
    if state is None or session not in (*state.sessions, *state.inherited):
        return _Standing.OTHER
    if session in state.inherited or _is_elsewhere(state.place, place):
        return _Standing.COPIED
    return _Standing.OWN


def _is_elsewhere(then: str, now: str) -> bool:
    """Whether a directory is not where it was; what is not known does not tell."""
    if not then or not now:
        return False
    *marks_then, name_then = then.split("/")
    *marks, name = now.split("/")
    return marks != marks_then or (bool(name and name_then) and name != name_then)


def _with_head(local: Local, head: Head, allowed: Allowed) -> Decision:
    state, claim = local.state, local.claim
    standing = _standing(state, local.place, head)
    if claim is not None and not _is_spent(claim, state, head):
        return _claimed(local, claim, head, allowed)
    if state is not None and state.fenced_by:
        return _taken(f"{state.fenced_by} took the prefix from this directory", allowed)
    if state is not None and standing is not _Standing.OTHER:
        return _own(local, state, head, allowed, is_copy=standing is _Standing.COPIED)
    by = f"{head.writer.describe()}, epoch {head.epoch}, revision {head.rev}"
    if head.writer.dir == local.dir_id:  # since this copy was made, or this original copied
        return _taken(f"a copy of this directory has gone on in its place: {by}", allowed)
    return _taken(f"another directory wrote this prefix last: {by}", allowed)


def _is_spent(claim: Claim, state: LocalState | None, head: Head) -> bool:
    """Whether the claim's epoch was taken already, and a crash left the file.

    A copy that is adopted has a session in HEAD before, that of its original.
    """
    is_ours = state is not None and head.writer.session in state.sessions
    return is_ours and (not claim.adopted or head.epoch > claim.epoch)


def _taken(reason: str, allowed: Allowed) -> Decision:
    """Decide for a directory whose prefix another one has taken; its own changes stay aside."""
    if allowed.takeover is Takeover.FORCE:
        return CatchUp(reason)
    return Refuse(
        reason,
        f"to go on from the bucket {_RESTORE}; to go on here {_ADOPT}; keep this directory, it may "
        "hold unshipped changes (hub-restore diff shows them)",
    )


def _own(
    local: Local, state: LocalState, head: Head, allowed: Allowed, *, is_copy: bool
) -> Decision:
    """HEAD was written by a session of this directory, or of the one it is a copy of."""
    if head.rev > local.rev:
        reason = (
            f"the directory is at revision {local.rev} and has shipped {head.rev}: it is an older "
            "copy of itself"
        )
        if allowed.takes(head):
            return CatchUp(reason)
        return Refuse(reason, f"start the newer directory; or go on from the bucket: {_TAKE}")
    if head.seq < state.seq or (head.seq == state.seq and head.chain != state.chain):
        return Refuse(
            f"HEAD is at position {head.seq}, this directory has shipped position {state.seq} of "
            "another history",
            "the bucket was set back or written from elsewhere: put back its newest HEAD",
        )
    if differs := _different(local, head):
        return differs
    if not is_copy:
        return Continue(floor=head.reserved_rev)
    if allowed.takes(head):
        return Adopt(floor=head.reserved_rev)
    return Refuse(
        f"the directory is a copy of the one that wrote this prefix last: {head.writer.describe()}",
        f"start the original; or {_ADOPT}",
    )


def _different(local: Local, head: Head) -> Refuse | None:
    if not head.seq or head.rev != local.rev or head.state_hash == local.state_hash:
        return None
    return Refuse(
        f"the directory and the bucket hold different states at revision {head.rev}",
        f"keep the directory for inspection and go on from the bucket: {_RESTORE}",
    )


def _claimed(local: Local, claim: Claim, head: Head, allowed: Allowed) -> Decision:
    """Decide for a directory restored or adopted, and not started on this prefix since."""
    if moved_on := _moved_on(claim, head):
        return moved_on
    if not claim.own and not allowed.takes(head, has_claim=True):
        return Refuse(
            f"the directory was restored to take the prefix, takeover is {allowed.takeover}",
            "start it with --bootstrap-takeover Claimed",
        )
    if claim.adopted:
        if local.rev < head.rev:
            return CatchUp(f"the directory is at revision {local.rev}, the bucket at {head.rev}")
        if differs := _different(local, head):
            return differs
        return Adopt(floor=head.reserved_rev)
    rev, state_hash = (claim.base or claim).rev, (claim.base or claim).state_hash
    if local.rev < rev or (local.rev == rev and local.state_hash != state_hash):
        return Refuse(
            f"the store at revision {local.rev} is not the one that was restored at {rev}",
            _RESTORE,
        )
    return TakeClaim(floor=head.reserved_rev)


def _moved_on(claim: Claim, head: Head) -> Refuse | None:
    if head.seq > claim.seq:
        return Refuse(
            f"the prefix has moved on since this directory was restored: {head.writer.describe()} "
            f"has shipped up to position @{head.seq}, revision {head.rev}",
            _RESTORE_AGAIN,
        )
    if (head.seq, head.chain) != (claim.seq, claim.chain) or head.epoch < claim.epoch:
        return Refuse(
            f"the prefix is not at the position {claim.seq} that this directory was restored from",
            f"{_CHECK_URL}; or {_RESTORE}",
        )
    if head.epoch > claim.epoch:
        return Refuse(
            f"the prefix has moved on since this directory was restored: {head.writer.describe()} "
            f"has taken epoch {head.epoch}",
            _RESTORE_AGAIN,
        )
    return None
