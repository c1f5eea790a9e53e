"""The hub's own records in the store: its identity, sealed, under keys that no API path reaches."""

import datetime as dt
from dataclasses import dataclass

from hub.auth.errors import IdentityError
from hub.auth.identity import HubIdentity, from_bundle
from hub.meta import Obj
from hub.meta.codec.json import decode, draft
from hub.meta.timestamp import format_time, parse_time
from hub.store import Draft, Key, Op, Store, Write, encode_index, encode_key

IDENTITY = encode_key("identity.hublet", "", "hub")
RESTORED = encode_key("restored.hublet", "", "hub")


@dataclass(frozen=True, slots=True)
class Restored:
    """The last restore: when the hub started from it, and the revisions that it lost."""

    at: dt.datetime
    after: int
    upto: int


def load_identity(store: Store) -> HubIdentity | None:
    """Return the identity kept in the store, None for a new store.

    :raises IdentityError: it contradicts itself, or is not where other things are: a hub makes it
        before anything else, and never another silently
    """
    stored = store.get(IDENTITY)
    if stored is not None:
        return from_bundle(decode(store.read(stored))["bundle"])
    if store.position.count:
        raise IdentityError(
            f"the store holds {store.position.count} objects and no identity of a hub: restore it "
            "with hub-restore, or start on another data directory"
        )
    return None


def load_url(store: Store) -> str:
    """Return the URL that this hub was last told to announce, "" when it never was."""
    stored = store.get(IDENTITY)
    return "" if stored is None else str(decode(store.read(stored)).get("url") or "")


async def save_identity(store: Store, identity: HubIdentity, *, url: str = "") -> None:
    """Keep `identity` and the URL it is known by ("": the one kept already), durably."""
    bundle = {"bundle": identity.to_bundle(), "url": url or load_url(store)}
    await _save(store, IDENTITY, bundle)


def load_restored(store: Store) -> Restored | None:
    """Return the last restore that this store has gone through, None when there was none."""
    stored = store.get(RESTORED)
    if stored is None:
        return None
    obj = decode(store.read(stored))
    return Restored(parse_time(obj["at"]), int(obj["after"]), int(obj["upto"]))


async def save_restored(store: Store, restored: Restored) -> None:
    """Keep what is known of a restore: a crash right after it must not end its grace period."""
    at = format_time(restored.at)
    await _save(store, RESTORED, {"at": at, "after": restored.after, "upto": restored.upto})


async def _save(store: Store, key: Key, content: Obj) -> None:
    stored = store.get(key)
    head, tail = draft({"metadata": {"name": "hub"}, **content})
    write = Write(
        op=Op.CREATE if stored is None else Op.UPDATE,
        key=key,
        draft=Draft(head, tail),
        index=encode_index({}, {}),
        expect=None if stored is None else stored.revision,
        sealed=True,
    )
    await store.commit(write)
