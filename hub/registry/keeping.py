"""The hub's own records in the store: its identity, sealed, under keys that no API path reaches."""

from hub.auth.errors import IdentityError
from hub.auth.identity import HubIdentity, from_bundle
from hub.meta.codec.json import decode, draft
from hub.store import Draft, Op, Store, Write, encode_index, encode_key

IDENTITY = encode_key("identity.hublet", "", "hub")


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
    stored = store.get(IDENTITY)
    head, tail = draft(
        {
            "metadata": {"name": "hub"},
            "bundle": identity.to_bundle(),
            "url": url or load_url(store),
        }
    )
    write = Write(
        op=Op.CREATE if stored is None else Op.UPDATE,
        key=IDENTITY,
        draft=Draft(head, tail),
        index=encode_index({}, {}),
        expect=None if stored is None else stored.revision,
        sealed=True,
    )
    await store.commit(write)
