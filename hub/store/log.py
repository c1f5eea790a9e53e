"""The log: every durable write in revision order, as it lies in the `log` database.

Owns the entry's layout and reading it back. An entry has both the new value and the one before it,
so that any revision can be replayed: a watch resumed, a selector's exit computed, a delete shown.

Key: u64 revision, big endian. Entry, big endian:

    u8 operation | u16 length of the key | key | u32 length of the new value | new value | value
    before

The new value of a DELETE is the object's last state at the revision of the deletion; the value
before is empty for a CREATE. Revisions in the log rise but do not follow one another: volatile
writes and renewals take revisions too.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from hub.store.api import Key, Op, Revision
from hub.store.errors import Corrupt
from hub.store.lmdb_env import (
    Environment,
    Txn,
)

KEY_AT = 3

_HEAD = struct.Struct(">BH")
_LENGTH = struct.Struct(">I")
_REVISION = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class Entry:
    """One durable write."""

    revision: Revision
    op: Op
    key: Key
    new: bytes
    previous: bytes
    """Empty for a CREATE."""


def encode_revision(revision: int) -> bytes:
    """Return the log's key of a revision."""
    return _REVISION.pack(revision)


def decode_revision(key: bytes) -> Revision:
    """Return the revision of a log key."""
    return Revision(int(_REVISION.unpack(key)[0]))


def encode_entry(op: Op, key: Key, *, new: bytes, previous: bytes) -> bytes:
    """Return the bytes of an entry."""
    return b"".join((_HEAD.pack(op, len(key)), key, _LENGTH.pack(len(new)), new, previous))


def key_of(raw: bytes | memoryview) -> Key:
    """Return the key that an entry wrote, without decoding the rest."""
    (_, key_bytes) = _HEAD.unpack_from(raw)
    return Key(bytes(raw[KEY_AT : KEY_AT + key_bytes]))


def decode_entry(revision: bytes, raw: bytes | memoryview) -> Entry:
    """Return an entry, or raise Corrupt."""
    try:
        (number,) = _REVISION.unpack(revision)
        op, key_bytes = _HEAD.unpack_from(raw)
        key_end = KEY_AT + key_bytes
        (new_bytes,) = _LENGTH.unpack_from(raw, key_end)
        new_at = key_end + _LENGTH.size
        new_end = new_at + new_bytes
        return Entry(
            Revision(number),
            Op(op),
            Key(bytes(raw[KEY_AT:key_end])),
            bytes(raw[new_at:new_end]),
            bytes(raw[new_end:]),
        )
    except (struct.error, ValueError) as error:
        raise Corrupt(f"the log entry at {revision.hex()} is damaged: {error}") from error


def keeping(txn: Txn, env: Environment, count: int) -> Revision:
    """Return the revision above which the log has at most `count` entries."""
    with txn.cursor(env.log) as cursor:
        backwards = cursor.iterprev(keys=True, values=False)
        cut = next(islice(backwards, count, None), None)
    return Revision(0) if cut is None else decode_revision(cut)


def entries(txn: Txn, env: Environment, *, after: int) -> Iterator[Entry]:
    """Yield the entries above a revision, in order; reads as it goes, inside the caller's `txn`."""
    with txn.cursor(env.log) as cursor:
        if cursor.set_range(encode_revision(after + 1)):
            for revision, raw in cursor:
                yield decode_entry(revision, raw)
