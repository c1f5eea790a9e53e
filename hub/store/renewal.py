"""Renewing: an update of an object that stays in memory, see `hub.store.overlay`."""

from functools import partial

from hub.store.api import Change, Draft, Index, Key, Op, Revision, Stored
from hub.store.errors import Conflict, MapFull, NotFound
from hub.store.key import stored_key
from hub.store.ledger import Shared
from hub.store.overlay import over
from hub.store.value import header_of, is_sealed, revision_of


def renew(
    shared: Shared, key: Key, draft: Draft, *, index: Index, expect: Revision, ceiling: Revision
) -> Revision:
    """Take a renewal and settle its change; see `Store.renew` for the contract."""
    base = _base(shared, key)
    current = over(base, shared.overlay.entries.get(key))
    actual = revision_of(current)
    if actual != expect or shared.overlay.is_frozen(key):
        raise Conflict(key, expected=expect, actual=actual)
    if header_of(current).index != index:
        raise ValueError(f"{key!r}: a renewal keeps labels and fields, use commit")
    slot = shared.sequence.take_below(ceiling)
    if slot is None:
        raise MapFull("no reserved revisions are left, the volume is full: free space")
    document = draft.at(slot.revision)
    raw = shared.codecs.here().encode(
        key, slot.revision, index=index, document=document, sealed=is_sealed(base)
    )
    shared.overlay.put(Stored(key, slot.revision, index, raw))
    before = partial(shared.codecs.decode, key, current)
    change = Change(Op.UPDATE, key, slot.revision, document, index, index, before, is_logged=False)
    shared.sequence.settle(slot, change)
    return slot.revision


def _base(shared: Shared, key: Key) -> bytes:
    with shared.env.read() as txn:
        base = txn.get(stored_key(key), db=shared.env.objects)
    if base is None:
        raise NotFound(key)
    return base
