"""The world of two hubs on one prefix, and what must hold in it: for `tests.fault.explorer`.

Owns one state of it as an immutable value, an in-memory remote with exact conditional semantics,
and the invariants. Every function here is pure.
"""

import functools
import hashlib
from dataclasses import dataclass
from typing import NamedTuple

from snapshot.chain import Chain
from snapshot.head import Head, decode_head
from snapshot.header import chain_hash
from snapshot.layout import HEAD
from tests.fault.replayed import Answer, Event, Files, Node, Process, Request

Objects = dict[str, bytes]


class Violation(AssertionError):  # noqa: N818  the word of the trade
    """An invariant does not hold; `trace` tells how it came to that."""

    def __init__(self, what: str, trace: tuple[str, ...] = ()) -> None:
        super().__init__("\n  ".join((what, *trace)))
        self.what, self.trace = what, trace


@dataclass(frozen=True, slots=True)
class Plan:
    """What is explored: the hubs, the bounds, and the rules of the remote (all true: a good one).

    `second`: how hub B comes by its directory: "restored" from the bucket at any time, "copied"
    from A's at any time, or "fresh", racing A for an empty prefix.
    """

    second: str
    faults: int
    lives: int = 2
    writes: int = 1
    has_vandal: bool = False
    compares_etags: bool = True
    refuses_missing: bool = True
    spares_young: bool = True
    chain: type[Chain] = Chain


class Hub(NamedTuple):
    """A hub in one state of the world; `node` None: no process lives."""

    process: Process
    node: Node | None
    files: Files
    """Where no process lives: what the directory holds."""
    is_fenced: bool = False
    """A process on this directory has found out that another hub has the prefix."""
    is_dead: bool = False
    """It has been fenced in this life."""


class World(NamedTuple):
    """One state; never changed."""

    objects: Objects
    young: frozenset[str]
    """Objects put since HEAD was last replaced."""
    late: tuple[Request, ...]
    """Writes on their way."""
    hubs: tuple[Hub, Hub]
    faults: int
    acked: frozenset[tuple[int, str, str]] = frozenset()
    epochs: frozenset[tuple[int, str]] = frozenset()
    handed: frozenset[tuple[int, str]] = frozenset()
    is_made: bool = False
    """HEAD has been there."""


def perform(world: World, request: Request, plan: Plan) -> tuple[World, Answer]:
    """Do what was asked, by the remote's rules."""
    there = world.objects.get(request.name)
    if request.op == "list":
        names = sorted(name for name in world.objects if name.startswith(request.name))
        return world, Answer(names=tuple(names))
    if request.op in {"get", "fetch"}:
        if there is None:
            return world, Answer("missing")
        return world, Answer(data=there, etag=_etag(there))
    if request.op == "create" and there is not None:
        return world, Answer("exists")
    if request.op == "swap" and there is None and plan.refuses_missing:
        return world, Answer("missing")
    is_other = there is not None and _etag(there) != request.etag
    if request.op == "swap" and is_other and plan.compares_etags:
        return world, Answer("another")
    return _put(world, request, there), Answer(etag=_etag(request.data))


def _put(world: World, request: Request, there: bytes | None) -> World:
    objects = {**world.objects, request.name: request.data}
    if request.name != HEAD:
        return world._replace(objects=objects, young=world.young | {request.name})
    if there is None and world.is_made:
        raise Violation("HEAD was made again")
    head = decoded(request.data)
    if there is not None and (what := _break(decoded(there), head)):
        raise Violation(what)
    missing = [ref.name for ref in head.segments if ref.name not in objects]
    if missing:
        raise Violation(f"HEAD names {missing[0]}, which is not there")
    return world._replace(objects=objects, young=frozenset(), is_made=True)


def can_land(world: World, request: Request, plan: Plan) -> bool:
    """Whether a late write can still do anything; a nonce never comes back, so nor an etag."""
    there = world.objects.get(request.name)
    if request.op == "create":
        return there is None or request.name != HEAD
    if not plan.compares_etags or (there is None and not plan.refuses_missing):
        return True
    return there is not None and _etag(there) == request.etag


# -------------------------------------------------------------------- invariants


def judge(world: World, hub: Hub, event: Event) -> World:
    """Check what a process did or believes; the step in which it learnt it has just been made."""
    name, head = str(hub.process), event.head
    if event.what == "handed":
        if any(revision == event.revision for revision, _ in world.handed):
            raise Violation(f"{name} hands out revision {event.revision} again")
        return world._replace(handed=world.handed | {(event.revision, name)})
    now = decoded(world.objects[HEAD]) if HEAD in world.objects else None
    if event.what == "fenced" and now and (now.epoch, name) in world.epochs:
        raise Violation(f"{name} is fenced by itself")
    if head is None:
        return world
    if event.what == "epoch":
        if hub.is_fenced:
            raise Violation(f"{name} takes an epoch on a directory that was fenced")
        if any(epoch == head.epoch for epoch, _ in world.epochs):
            raise Violation(f"{name} takes epoch {head.epoch}, which was taken")
        return world._replace(epochs=world.epochs | {(head.epoch, name)})
    if now is None or now.nonce != head.nonce or (head.epoch, name) not in world.epochs:
        raise Violation(f"{name} has segment {head.seq} acknowledged, HEAD is another")
    if any(seq == head.seq and tuple(ack) != (name, head.chain) for seq, *ack in world.acked):
        raise Violation(f"{name} has segment {head.seq} acknowledged, which another had before")
    return world._replace(acked=world.acked | {(head.seq, name, head.chain)})


def _break(old: Head, new: Head) -> str:
    """Say what is wrong with one HEAD after another, if anything."""
    if new.hub_id != old.hub_id:
        return "HEAD is of another hub"
    if new.reserved_rev < (new.rev if new.released else old.reserved_rev):
        return f"reserved revisions go down from {old.reserved_rev} to {new.reserved_rev}"
    if new.epoch == old.epoch:
        if new.writer != old.writer:
            return f"two writers in epoch {new.epoch}"
        if old.released:
            return f"epoch {new.epoch} goes on after its release"
        return _break_in_chain(old, new)
    fork = new.fork
    if new.epoch != old.epoch + 1 or fork is None:
        return f"epoch {new.epoch} after {old.epoch}"
    if (fork.epoch, fork.seq, fork.rev, fork.chain) != (old.epoch, old.seq, old.rev, old.chain):
        return f"epoch {new.epoch} forks from seq {fork.seq}, HEAD was at {old.seq}"
    if (new.seq, new.chain) != (old.seq, old.chain):
        return f"epoch {new.epoch} begins at seq {new.seq}, HEAD was at {old.seq}"
    return ""


def _break_in_chain(old: Head, new: Head) -> str:
    """Say what is wrong with one HEAD after another of the same epoch."""
    if new.seq == old.seq:
        return "" if (new.chain, new.rev) == (old.chain, old.rev) else "the chain changes in place"
    ends = {
        chain_hash(bytes.fromhex(old.chain), bytes.fromhex(ref.hash)).hex() for ref in new.segments
    }
    if new.seq != old.seq + 1 or new.chain not in ends or new.rev < old.rev:
        return f"segment {new.seq} does not extend segment {old.seq}"
    return ""


@functools.lru_cache(maxsize=1 << 14)
def decoded(data: bytes) -> Head:
    """Read HEAD; its seal is the hubs' business."""
    return decode_head(data)


def _etag(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()
