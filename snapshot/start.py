"""The start of a hub on its prefix: ask the arbiter, take the next epoch, write down the outcome.

Owns the order of those steps, which is what makes a crash between any two of them harmless: the
session is on the local disk before HEAD may carry it, the position after; a claim is spent last.
"""

import os
import socket
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hub.store import Position
from snapshot import local as files
from snapshot.arbiter import (
    Adopt,
    Allowed,
    CatchUp,
    Create,
    Damaged,
    Decision,
    Local,
    Refuse,
    Restore,
    TakeClaim,
    decide,
)
from snapshot.chain import Chain
from snapshot.errors import CatchUpNeeded, ChainMoved, StartRefused
from snapshot.head import Head, Writer
from snapshot.local import LocalState

_TRIES = 5

RESERVE = 10_000_000
"""Revisions reserved ahead in HEAD, hours at 300 writes a second; every write of it renews."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A start that may write: why, and HEAD under the new epoch.

    Before it serves, the hub raises its revisions above `floor` (`Store.raise_floor`); after a
    `TakeClaim` watches may not resume below it either.
    """

    decision: Decision
    head: Head
    floor: int


def arbitrate(
    chain: Chain,
    directory: Path,
    *,
    dir_id: str,
    position: Position | None,
    damage: str = "",
    allowed: Allowed = Allowed(),  # noqa: B008  frozen
    place: str = "",
) -> tuple[Decision, Head | None]:
    """Read HEAD and decide; writes nothing.

    `position` None: the directory holds no store, or with `damage` one that cannot be opened.
    `place` names the volume (`local.place_of`).
    """
    head = chain.read_head()
    local: Local | Damaged | None = None
    if position is not None:
        local = Local(
            dir_id=dir_id,
            rev=position.revision,
            state_hash=position.state_hash.hex(),
            state=files.load_state(directory),
            claim=files.load_claim(directory),
            place=files.place_of(directory, name=place),
        )
    elif damage:
        local = Damaged(
            damage, files.load_state(directory), place=files.place_of(directory, name=place)
        )
    is_in_use = head is None and chain.is_prefix_in_use()
    if is_in_use:  # a create that was given up may have landed between the two
        head = chain.read_head()
    return decide(local, head, is_prefix_in_use=is_in_use, allowed=allowed), head


def begin(
    chain: Chain,
    directory: Path,
    *,
    dir_id: str,
    position: Position,
    reserve: int = RESERVE,
    allowed: Allowed = Allowed(),  # noqa: B008  frozen
    place: str = "",
    keeps_claim: bool = False,
) -> Begun:
    """Decide for a directory that holds a store, and become the writer of its prefix.

    Raises `StartRefused` with the arbiter's reason and hint, `CatchUpNeeded` when the store has to
    be built anew first, `ChainMoved` when others keep moving HEAD, and whatever the chain raises.
    `keeps_claim`: the caller spends the claim, once it has written down where the state came from;
    after a crash before that a start finds it beside its own epoch, where it is worth nothing else.
    """
    session = chain.clock.token(12).hex()
    for _ in range(_TRIES):
        decision, head = arbitrate(
            chain, directory, dir_id=dir_id, position=position, allowed=allowed, place=place
        )
        if isinstance(decision, Refuse):
            raise StartRefused(decision.reason, op="start", hint=decision.hint)
        if isinstance(decision, CatchUp | Restore):
            raise CatchUpNeeded(decision.reason, op="start")
        state = files.load_state(directory) or LocalState(
            dir_id=dir_id, hub_id=head.hub_id if head else chain.clock.uid()
        )
        writer = Writer(dir_id, session, socket.gethostname(), os.getpid())
        here = files.place_of(directory, name=place)
        files.save_state(directory, _tried(state, session, decision, place=here))
        floor = position.revision if isinstance(decision, Create) else decision.floor
        claim = files.load_claim(directory) if isinstance(decision, TakeClaim) else None
        try:
            taken = chain.take_epoch(
                head,
                hub_id=state.hub_id,
                writer=writer,
                reserved_rev=max(floor, position.revision) + reserve,
                base=claim.base if claim else None,
            )
        except ChainMoved:
            continue
        remember(directory, taken, dir_id=dir_id, place=place)
        if not keeps_claim:
            files.spend_claim(directory)
        return Begun(decision, taken, floor)
    raise ChainMoved(
        f"HEAD moved under {_TRIES} tries to take an epoch",
        op="start",
        hint="look for another hub that is starting on this prefix",
    )


def _tried(state: LocalState, session: str, decision: Decision, *, place: str) -> LocalState:
    """Return the state with one more session that may stand in HEAD as ours.

    What a copy got from its original stays told apart: should the try fail, it is a copy still.
    """
    inherited, sessions = state.inherited, state.sessions
    if isinstance(decision, Adopt):
        inherited, sessions = (*inherited, *(e for e in sessions if e not in inherited)), ()
    return msgspec.structs.replace(
        state, sessions=(*sessions, session), inherited=inherited, fenced_by="", place=place
    )


def remember(directory: Path, head: Head, *, dir_id: str, place: str = "") -> None:
    """Write down what HEAD says after a write of ours. Skipping it loses nothing but diagnosis."""
    files.save_state(
        directory,
        LocalState(
            dir_id=dir_id,
            hub_id=head.hub_id,
            sessions=(head.writer.session,),
            epoch=head.epoch,
            seq=head.seq,
            rev=head.rev,
            chain=head.chain,
            place=files.place_of(directory, name=place),
        ),
    )


def remember_fenced(directory: Path, by: str) -> None:
    """Write down that another hub took the prefix: this directory starts no more by itself."""
    state = files.load_state(directory)
    if state is not None:
        files.save_state(directory, msgspec.structs.replace(state, fenced_by=by))
