"""The hub key: the one secret outside the data directory that opens a store and its snapshots.

Owns the key file (one line, ``hublet-key-1:`` and 32 bytes in base64; mode 0600 when we create it,
a read-only mount is fine) and the ring of data keys it wraps. Values are sealed under a data key;
the ring lies in the store and in every full snapshot, wrapped with AES-256-GCM under the hub key,
so that a data key can be added without touching what older ones sealed.

Wrapped ring: ``01``, 8 bytes fingerprint of the hub key, 12 bytes nonce, ciphertext of (u8 number,
32 bytes key) repeated. The fingerprint tells a wrong key from a damaged ring.
"""

import base64
import binascii
import hashlib
import os
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hub.store.errors import Corrupt, KeyMismatch, StoreError

PREFIX = "hublet-key-1:"
KEY_BYTES = 32
NONCE_BYTES = 12
MOST_DATA_KEYS = 255

_VERSION = b"\x01"
_RING_AAD = b"hublet data keys 1"
_ENTRY_BYTES = 1 + KEY_BYTES


@dataclass(frozen=True, slots=True)
class HubKey:
    """A hub key in memory; its repr shows the fingerprint only."""

    secret: bytes = field(repr=False)
    path: Path | None = None
    """Where it was read from, for messages."""

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that name the key without giving it away."""
        return _fingerprint(self.secret).hex()


@dataclass(frozen=True, slots=True)
class DataKeys:
    """The ring of data keys by number (1-255); the highest seals, all of them open."""

    keys: Mapping[int, bytes] = field(repr=False)

    @property
    def current(self) -> int:
        """The number of the key that seals new values."""
        return max(self.keys)


def load_hub_key(path: Path, *, outside: Path | None = None) -> HubKey:
    """Read a hub key file.

    `outside`: the data directory; a key inside it would travel with every copy of the data and is
    refused. Raises KeyMismatch with what to do when the file is missing or no key.
    """
    _refuse_inside(path, outside)
    try:
        text = path.read_text("ascii").strip()
    except FileNotFoundError as error:
        raise KeyMismatch(
            f"hub key file {path} does not exist: put the key of this hub there (it was written "
            "when the hub was created), or name its place"
        ) from error
    except UnicodeDecodeError as error:
        raise KeyMismatch(_malformed(path)) from error
    if not text.startswith(PREFIX):
        raise KeyMismatch(_malformed(path))
    try:
        secret = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        raise KeyMismatch(_malformed(path)) from error
    if len(secret) != KEY_BYTES:
        raise KeyMismatch(_malformed(path))
    return HubKey(secret, path)


def create_hub_key(
    path: Path, *, token: Callable[[int], bytes], outside: Path | None = None
) -> HubKey:
    """Write a fresh key file, mode 0600, durable before this returns; never overwrites one.

    `token` draws random bytes (`Clock.token`). Raises KeyMismatch when the file exists or lies
    inside the data directory `outside`.
    """
    _refuse_inside(path, outside)
    secret = token(KEY_BYTES)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise KeyMismatch(
            f"hub key file {path} exists already: load it, or move it away first"
        ) from error
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{PREFIX}{base64.b64encode(secret).decode()}\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink()  # a part of a key would be in the way of the next start
        raise
    sync_directory(path.parent)
    return HubKey(secret, path)


def add_data_key(
    ring: DataKeys, token: Callable[[int], bytes], *, keep: Container[int]
) -> DataKeys:
    """Return the ring with a fresh key that seals from now on, and of the others those in `keep`.

    Raises StoreError when the numbers are used up.
    """
    number = ring.current + 1
    if number > MOST_DATA_KEYS:
        raise StoreError(
            f"this store has had {MOST_DATA_KEYS} data keys, and there are no more numbers: "
            "the keys it has go on"
        )
    kept = {each: key for each, key in ring.keys.items() if each in keep}
    return DataKeys({**kept, number: token(KEY_BYTES)})


def new_data_keys(token: Callable[[int], bytes]) -> DataKeys:
    """Return a ring with one fresh key."""
    return DataKeys({1: token(KEY_BYTES)})


def wrap_data_keys(ring: DataKeys, hub_key: HubKey, *, token: Callable[[int], bytes]) -> bytes:
    """Return the ring encrypted under the hub key."""
    nonce = token(NONCE_BYTES)
    plain = b"".join(bytes([number]) + key for number, key in sorted(ring.keys.items()))
    sealed = AESGCM(hub_key.secret).encrypt(nonce, plain, _RING_AAD)
    return b"".join((_VERSION, _fingerprint(hub_key.secret), nonce, sealed))


def unwrap_data_keys(wrapped: bytes, hub_key: HubKey) -> DataKeys:
    """Return the ring, or raise KeyMismatch (another hub's key) or Corrupt (damaged ring)."""
    if wrapped[:1] != _VERSION:
        raise Corrupt("the wrapped data keys are damaged or of a newer version of hublet")
    written_for = wrapped[1:9]
    if written_for != _fingerprint(hub_key.secret):
        raise KeyMismatch(
            f"the hub key{_place(hub_key)} has fingerprint {hub_key.fingerprint}, the data was "
            f"sealed under {written_for.hex()}: use the key file of the hub that wrote it"
        )
    nonce, sealed = wrapped[9 : 9 + NONCE_BYTES], wrapped[9 + NONCE_BYTES :]
    try:
        plain = AESGCM(hub_key.secret).decrypt(nonce, sealed, _RING_AAD)
    except (InvalidTag, ValueError) as error:
        raise Corrupt("the wrapped data keys are damaged: restore from a snapshot") from error
    entries = [plain[at : at + _ENTRY_BYTES] for at in range(0, len(plain), _ENTRY_BYTES)]
    return DataKeys({entry[0]: entry[1:] for entry in entries})


def sync_directory(path: Path) -> None:
    """Make the directory's entries durable."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def sync_file(path: Path) -> None:
    """Make a file's bytes durable."""
    _sync(path, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _fingerprint(secret: bytes) -> bytes:
    return hashlib.blake2b(secret, digest_size=8, person=b"hublet-key-1").digest()


def _place(hub_key: HubKey) -> str:
    return f" in {hub_key.path}" if hub_key.path else ""


def _malformed(path: Path) -> str:
    return (
        f"{path} is not a hub key: one line, {PREFIX} and 32 bytes in base64, is expected; "
        "put the key of this hub there"
    )


def _refuse_inside(path: Path, outside: Path | None) -> None:
    if outside is not None and path.resolve().is_relative_to(outside.resolve()):
        raise KeyMismatch(
            f"hub key file {path} lies inside the data directory {outside}, so that every copy of "
            f"the data would carry its key: move it out, for example to {outside}.key"
        )
