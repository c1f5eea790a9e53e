"""The ledger: one write transaction of the committer thread, with everything kept in step.

Owns the rules of a write: what it expects, the revision it takes, its value, its log entry and its
share of the state hash, all in one transaction, so that the file is consistent at every commit.
Nothing of a refused commit is ever written: all its expectations are checked, and all its values
encoded, before the first byte goes into the transaction.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from hub.store import state_hash
from hub.store.api import Change, Key, Op, Position, Revision, Write
from hub.store.errors import Conflict, Exists, InvariantError, NotFound
from hub.store.key import stored_key
from hub.store.lmdb_env import (
    NAME_CEILING,
    Environment,
    Txn,
    read_marks,
    read_position,
    write_mark,
    write_position,
)
from hub.store.log import encode_entry, encode_revision
from hub.store.logindex import LogIndex
from hub.store.overlay import Overlay, over
from hub.store.sequence import Sequence, Slot
from hub.store.value import Codecs, header_of, revision_of

CEILING_BLOCK = 100_000
"""How many revisions are reserved ahead on disk; after a crash the store goes on above them."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What the threads of one store share."""

    env: Environment
    codecs: Codecs
    sequence: Sequence
    overlay: Overlay
    log_index: LogIndex
    """Read and kept in step on the event loop's thread only."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One checked and encoded write, ready to go into the transaction."""

    write: Write
    slot: Slot
    in_file: bytes
    base: bytes | None
    raw: bytes
    change: Change


class Ledger:
    """One write transaction under construction; used by one thread, once."""

    __slots__ = ("_ceiling", "_count", "_hash", "_revision", "_shared", "settled", "txn")

    def __init__(self, shared: Shared, txn: Txn) -> None:
        self.txn = txn
        self._shared = shared
        position = read_position(txn, shared.env)
        self._revision, self._count = position.revision, position.count
        self._hash = state_hash.from_bytes(position.state_hash)
        self._ceiling = read_marks(txn, shared.env).ceiling
        self.settled: list[tuple[Slot, Change | None]] = []
        """Every slot drawn, with what it stands for should the transaction commit."""

    @property
    def revision(self) -> Revision:
        """The last durable revision, this transaction's writes included."""
        return self._revision

    def write(self, writes: tuple[Write, ...]) -> tuple[Revision, ...]:
        """Apply the writes of one commit, all or nothing.

        Raises Exists, NotFound, Conflict or ValueError with nothing written, lmdb.Error with the
        transaction beyond use.
        """
        bases = [self._expect(write) for write in writes]
        steps = self._encode(writes, bases)
        for step in steps:
            self._apply(step)
        return tuple(step.slot.revision for step in steps)

    def put_extras(self, extras: Mapping[bytes, bytes | None]) -> None:
        """Record a caller's own small values under `extra_name`s; None removes one."""
        meta = self._shared.env.meta
        for name, value in extras.items():
            if value is None:
                self.txn.delete(name, db=meta)
            else:
                self.txn.put(name, value, db=meta)

    def finish(self) -> tuple[Position, Revision]:
        """Record position and ceiling; return them for when the commit has succeeded."""
        env, last = self._shared.env, self._shared.sequence.last
        position = Position(self._revision, state_hash.to_bytes(self._hash), self._count)
        write_position(self.txn, env, position)
        if self._ceiling - last < CEILING_BLOCK // 2:
            self._ceiling = Revision(last + CEILING_BLOCK)
            write_mark(self.txn, env, NAME_CEILING, self._ceiling)
        return position, self._ceiling

    def _expect(self, write: Write) -> bytes | None:
        """Return the value a write replaces, or raise what it did not expect."""
        in_file, env = stored_key(write.key), self._shared.env
        home, other = (env.volatile, env.objects) if write.volatile else (env.objects, env.volatile)
        base = self.txn.get(in_file, db=home)
        if base is None:
            is_elsewhere = self.txn.get(in_file, db=other) is not None
            if write.op is not Op.CREATE:
                if is_elsewhere:
                    raise ValueError(
                        f"{write.key!r}: the write's volatile flag is not the object's"
                    )
                raise NotFound(write.key)
            if is_elsewhere:
                raise Exists(write.key)
            return None
        if write.op is Op.CREATE:
            raise Exists(write.key)
        actual = revision_of(over(base, self._shared.overlay.entries.get(write.key)))
        if write.expect is None or actual != write.expect:
            raise Conflict(write.key, expected=write.expect or Revision(0), actual=actual)
        return base

    def _encode(self, writes: tuple[Write, ...], bases: list[bytes | None]) -> list[_Step]:
        steps = []
        for write, base in zip(writes, bases, strict=True):
            slot = self._shared.sequence.take()
            at = len(self.settled)
            self.settled.append((slot, None))
            document = write.draft.at(slot.revision)
            raw = self._shared.codecs.here().encode(
                write.key,
                slot.revision,
                index=write.index,
                document=document,
                sealed=write.sealed,
            )
            change = self._change(write, slot.revision, document=document, base=base)
            steps.append((at, _Step(write, slot, stored_key(write.key), base, raw, change)))
        for at, step in steps:
            self.settled[at] = (step.slot, step.change)
        return [step for _, step in steps]

    def _change(
        self, write: Write, revision: Revision, *, document: bytes, base: bytes | None
    ) -> Change:
        previous_index, previous = None, None
        if base is not None:
            before = over(base, self._shared.overlay.entries.get(write.key))
            previous_index = header_of(before).index
            previous = partial(self._shared.codecs.decode, write.key, before)
        return Change(
            write.op,
            write.key,
            revision,
            document,
            write.index,
            previous_index,
            previous,
            is_logged=not write.volatile,
        )

    def _apply(self, step: _Step) -> None:
        env, txn, write = self._shared.env, self.txn, step.write
        home = env.volatile if write.volatile else env.objects
        if write.op is Op.DELETE:
            if not txn.delete(step.in_file, db=home):
                raise InvariantError(f"{write.key!r} was there and cannot be deleted")
        else:
            txn.put(step.in_file, step.raw, db=home)
        if write.volatile:
            return
        if write.key in self._shared.overlay.entries:
            txn.delete(step.in_file, db=env.renewals)
        entry = encode_entry(write.op, write.key, new=step.raw, previous=step.base or b"")
        txn.put(encode_revision(step.slot.revision), entry, append=True, db=env.log)
        self._account(write.key, write.op, step)

    def _account(self, key: Key, op: Op, step: _Step) -> None:
        if step.base is not None:
            gone = state_hash.term(key, revision_of(step.base), step.base)
            self._hash = state_hash.subtract(self._hash, gone)
            self._count -= 1
        if op is not Op.DELETE:
            self._hash = state_hash.add(
                self._hash, state_hash.term(key, step.slot.revision, step.raw)
            )
            self._count += 1
        self._revision = step.slot.revision
