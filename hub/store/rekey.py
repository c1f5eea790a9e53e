"""Rotating the data key: a fresh one seals what is written from now on, old values are re-sealed.

Owns the step of the ring and the way of the old values under the new key. The ring and its mark are
one transaction, durable before anything is sealed under the new key. Deltas do not carry the ring,
so the mark (`keyed`) makes the next segment a full; no watch is interrupted.

Old keys stay as long as a value needs them, in the file (its log included) or in memory. Those that
nothing needs any more are dropped by the next rotation. Volatile objects are not re-sealed: they
live by their revision, and would live longer with a new one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hub.store.api import Draft, Key, Op, Page, Revision, Stored, Write
from hub.store.errors import Conflict, NotFound
from hub.store.hubkey import DataKeys, HubKey, add_data_key, unwrap_data_keys, wrap_data_keys
from hub.store.key import stored_key
from hub.store.ledger import Ledger, Shared
from hub.store.lmdb_env import NAME_DATA_KEYS, NAME_KEYED, Environment, read_name, write_mark
from hub.store.log import entries
from hub.store.value import data_key_of

SLICE = 200
"""How many objects are looked at, and at most re-sealed, in one commit."""


@dataclass(frozen=True, slots=True)
class RotateJob:
    """Puts a ring in place of the present one; the caller takes it into use afterwards."""

    shared: Shared
    wrapped: bytes

    @property
    def weight(self) -> int:
        """One: two small records."""
        return 1

    def apply(self, ledger: Ledger) -> None:
        """Record the ring, and that a delta from before it would lack a key."""
        env, first = self.shared.env, Revision(self.shared.sequence.last + 1)
        ledger.txn.put(NAME_DATA_KEYS, self.wrapped, db=env.meta)
        write_mark(ledger.txn, env, NAME_KEYED, first)


class Resealed(Protocol):
    """What re-sealing needs of a store."""

    async def commit(self, *writes: Write) -> tuple[Revision, ...]:
        """Write."""
        ...

    def scan(
        self, prefix: bytes, *, after: Key | None, limit: int | None, is_counted: bool
    ) -> Page:
        """Return a slice."""
        ...

    def read(self, stored: Stored) -> bytes:
        """Return a document."""
        ...


def next_ring(shared: Shared, hub_key: HubKey) -> tuple[DataKeys, bytes]:
    """Return the ring with a fresh key and without those that nothing needs, plain and wrapped.

    Raises KeyMismatch when the hub key is not the one that the present ring is wrapped under.
    """
    env, codecs = shared.env, shared.codecs
    with env.read() as txn:
        unwrap_data_keys(read_name(txn, env, NAME_DATA_KEYS), hub_key)
    present = codecs.keys
    in_memory = {data_key_of(entry.raw) for entry in shared.overlay.entries.values()}
    keep = used(env) | in_memory | {present.current}
    ring = add_data_key(present, codecs.token, keep=keep)
    return ring, wrap_data_keys(ring, hub_key, token=codecs.token)


def used(env: Environment) -> set[int]:
    """Return the numbers of the data keys that values of the file are sealed under; 0: unsealed.

    Takes about 1 us a value.
    """
    found: set[int] = set()
    with env.read() as txn:
        for db in (env.objects, env.volatile, env.renewals):
            with txn.cursor(db) as cursor:
                found.update(data_key_of(raw) for raw in cursor.iternext(keys=False, values=True))
        for entry in entries(txn, env, after=0):
            found.update(data_key_of(raw) for raw in (entry.new, entry.previous) if raw)
    return found


async def reseal(
    store: Resealed, env: Environment, *, under: int, redraft: Callable[[bytes], Draft]
) -> int:
    """Write what is sealed under another data key anew, unchanged; return how many objects.

    Each takes a new revision, as every write does, and watchers see it. What changes meanwhile is
    left alone: it is under the new key by then.
    """
    done, after = 0, None
    while True:
        page = store.scan(b"", after=after, limit=SLICE, is_counted=False)
        old = [entry for entry in page.entries if data_key_of(entry.raw) not in (0, under)]
        done += await _rewrite(store, _durable(env, old), redraft)
        if not page.has_more:
            return done
        after = page.entries[-1].key


def _durable(env: Environment, found: list[Stored]) -> list[Stored]:
    with env.read() as txn:
        return [
            entry for entry in found if txn.get(stored_key(entry.key), db=env.objects) is not None
        ]


async def _rewrite(store: Resealed, old: list[Stored], redraft: Callable[[bytes], Draft]) -> int:
    if not old:
        return 0
    writes = [
        Write(
            Op.UPDATE,
            entry.key,
            redraft(store.read(entry)),
            entry.index,
            expect=entry.revision,
            sealed=True,
        )
        for entry in old
    ]
    try:
        return len(await store.commit(*writes))
    except (Conflict, NotFound):
        if len(old) == 1:
            return 0
    return sum([await _rewrite(store, [entry], redraft) for entry in old])
