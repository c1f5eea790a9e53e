"""What the store's tests are given: keys, drafts, writes, and stores that open, close and die."""

import hashlib
import itertools
from pathlib import Path

from hub.clock import SystemClock
from hub.store import (
    Draft,
    HubKey,
    Index,
    Key,
    Op,
    Revision,
    Store,
    Write,
    create_hub_key,
    encode_index,
    encode_key,
    load_hub_key,
)

CLOCK = SystemClock()
EMPTY = Index(b"")
_NAMES = itertools.count()


def key(name: str, *, resource: str = "widgets", namespace: str = "one") -> Key:
    return encode_key(resource, namespace, name)


def draft(text: str = "x") -> Draft:
    return Draft(b'{"rv":"', b'","text":"%b"}' % text.encode())


def document(revision: int, text: str = "x") -> bytes:
    return draft(text).at(Revision(revision))


def labels(**pairs: str) -> Index:
    return encode_index(pairs, {})


def create(
    at: Key,
    text: str = "x",
    *,
    index: Index = EMPTY,
    sealed: bool = False,
    volatile: bool = False,
) -> Write:
    return Write(Op.CREATE, at, draft(text), index, sealed=sealed, volatile=volatile)


def update(
    at: Key,
    text: str,
    *,
    expect: int,
    index: Index = EMPTY,
    sealed: bool = False,
    volatile: bool = False,
) -> Write:
    return Write(
        Op.UPDATE, at, draft(text), index, Revision(expect), sealed=sealed, volatile=volatile
    )


def delete(at: Key, *, expect: int, text: str = "gone", volatile: bool = False) -> Write:
    return Write(Op.DELETE, at, draft(text), EMPTY, Revision(expect), volatile=volatile)


def hub_key(path: Path) -> HubKey:
    """The hub key beside a directory, made at the first call."""
    file = path.with_name(path.name + ".key")
    if file.exists():
        return load_hub_key(file, outside=path)
    return create_hub_key(file, token=CLOCK.token, outside=path)


def open_store(path: Path, *, map_bytes: int = 1 << 30, flush_s: float = 3600.0) -> Store:
    """Open the store of a directory; renewals stay in memory until a test flushes them."""
    return Store.open(
        path, hub_key=hub_key(path), clock=CLOCK, map_bytes=map_bytes, flush_s=flush_s
    )


def kill(store: Store) -> None:
    """End a store as kill -9 would: nothing is flushed, nothing marked clean."""
    store._is_closed = True
    if store._timer is not None:
        store._timer.cancel()
    if store._committer is not None:
        store._committer.stop()
        store._committer.join()
    store._release()


def noise(size: int) -> str:
    """Text that does not compress well, another one at each call."""
    seed = str(next(_NAMES)).encode()
    blocks = (
        hashlib.blake2b(seed + bytes([n % 256, n // 256])).hexdigest()
        for n in range(size // 128 + 1)
    )
    return "".join(blocks)[:size]
