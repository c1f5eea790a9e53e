r"""Keys: how a resource, a namespace and a name become bytes, and how LMDB stores them.

Owns the two forms of a key:

- the *key* is ``resource NUL namespace NUL name`` in UTF-8. NUL sorts below every byte a component
  may hold, so keys sort exactly as the tuples (resource, namespace, name) do, and every key of a
  resource, or of a namespace in it, shares one prefix. A cluster-scoped object has an empty
  namespace.
- the *stored key* is what LMDB sorts. LMDB takes at most 511 bytes; a longer key is stored as its
  first 478 bytes, the byte FF (never part of UTF-8, so no short key can collide) and the
  BLAKE2b-256 of the whole key. The whole key stands in the value's header (`hub.store.value`).
  Stored keys sort as keys do up to byte 478; the few long keys alike that far sort by hash, after
  the short ones.

>>> encode_key("managedclusters", "", "alpha")
b'managedclusters\x00\x00alpha'
>>> decode_key(encode_key("leases", "alpha", "managed-cluster-lease"))
('leases', 'alpha', 'managed-cluster-lease')
>>> len(stored_key(encode_key("roles", "alpha", "x" * 900)))
511
"""

import hashlib

from hub.store.api import Key

STORED_KEY_BYTES = 511
"""The longest key LMDB takes."""

HEAD_BYTES = 478
"""How much of a long key its stored form keeps in order."""

KEY_BYTES = 4096
"""The longest key the store takes at all."""

_LONG = b"\xff"


def encode_key(resource: str, namespace: str, name: str) -> Key:
    """Return the key of one object; `namespace` is empty for a cluster-scoped one.

    Raises ValueError when a component holds NUL, when resource or name is empty, or when the key is
    longer than `KEY_BYTES`.
    """
    key = f"{resource}\0{namespace}\0{name}".encode()
    if not resource or not name:
        raise ValueError(f"a key needs a resource and a name, got {key!r}")
    if key.count(0) != 2:
        raise ValueError(f"a key's components may not hold NUL, got {key!r}")
    if len(key) > KEY_BYTES:
        raise ValueError(f"a key of {len(key)} bytes is longer than {KEY_BYTES}, shorten the name")
    return Key(key)


def decode_key(key: Key) -> tuple[str, str, str]:
    """Return (resource, namespace, name)."""
    resource, namespace, name = key.decode().split("\0")
    return resource, namespace, name


def prefix(resource: str, namespace: str | None = None) -> bytes:
    """Return what every key of a resource begins with, or of one namespace in it.

    None covers all namespaces and the cluster-scoped objects; an empty namespace those only.
    """
    if namespace is None:
        return f"{resource}\0".encode()
    return f"{resource}\0{namespace}\0".encode()


def group_of(key: bytes) -> bytes:
    """Return the first two parts of a key, or of a prefix that has them."""
    end = key.index(0, key.index(0) + 1)
    return key[: end + 1]


def stored_key(key: bytes) -> bytes:
    """Return the form LMDB stores; records in this order load fastest."""
    if len(key) <= STORED_KEY_BYTES:
        return bytes(key)
    return b"".join((key[:HEAD_BYTES], _LONG, hashlib.blake2b(key, digest_size=32).digest()))


def is_long(stored: bytes) -> bool:
    """Whether a stored key is the short form of a long key, so that the value has the whole one."""
    return len(stored) == STORED_KEY_BYTES and stored[HEAD_BYTES : HEAD_BYTES + 1] == _LONG
