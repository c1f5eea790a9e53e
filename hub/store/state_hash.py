r"""The whole-state hash: 32 bytes by which any two stores at one revision compare.

The hash of a state is the sum, modulo 2**256, of one term per object: the BLAKE2b-256 of the
length-prefixed key, the revision and the length-prefixed value as stored. A sum does not care for
order and can be kept in every commit by subtracting the term that goes and adding the one that
comes; unlike an exclusive or, a term counted twice does not cancel.

>>> a, b = term(Key(b"r\0\0a"), Revision(1), b"x"), term(Key(b"r\0\0b"), Revision(2), b"y")
>>> to_bytes(add(add(EMPTY, a), b)) == to_bytes(add(add(EMPTY, b), a))
True
>>> subtract(add(add(EMPTY, a), b), b) == add(EMPTY, a)
True
>>> to_bytes(add(EMPTY, a)).hex()[:16]
'b389a9fcf116e88a'
"""

import hashlib
import struct

from hub.store.api import Key, Revision

EMPTY = 0
"""The hash of a store without objects."""

_MODULUS = 1 << 256
_TERM = struct.Struct(">QQ")


def term(key: Key, revision: Revision, raw: bytes) -> int:
    """Return an object's term: u32 length and key, u64 revision, u64 length and value, hashed."""
    digest = hashlib.blake2b(len(key).to_bytes(4, "big"), digest_size=32)
    digest.update(key)
    digest.update(_TERM.pack(revision, len(raw)))
    digest.update(raw)
    return int.from_bytes(digest.digest(), "big")


def add(state: int, one_term: int) -> int:
    """Return the state with a term more."""
    return (state + one_term) % _MODULUS


def subtract(state: int, one_term: int) -> int:
    """Return the state with a term less."""
    return (state - one_term) % _MODULUS


def to_bytes(state: int) -> bytes:
    """Return the 32 bytes of a state, big endian."""
    return state.to_bytes(32, "big")


def from_bytes(state: bytes) -> int:
    """Return the number of 32 bytes."""
    return int.from_bytes(state, "big")
