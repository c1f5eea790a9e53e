"""Manifests: what HEAD named once and names no more.

Owns their JSON form (docs/snapshot-format.md, "Manifests"). Whenever HEAD drops segments (a merge
stands for them now, a full makes them unnecessary, a fork leaves them behind) they are written into
a new manifest first, which names the one before it. So HEAD and the manifests together name every
segment that was ever committed and not cleaned up.
"""

import hashlib
from typing import Annotated

import msgspec

from snapshot.errors import IntegrityError, SegmentCorrupt, UnsupportedFormat
from snapshot.head import ObjectRef, SegmentRef
from snapshot.layout import manifest_name
from snapshot.seal import HubKey
from snapshot.sealed import encode_sealed, is_sealed_by

FORMAT = 1


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One step of what was dropped; `seq` is the highest position given out at that time."""

    format: Annotated[int, msgspec.Meta(ge=1)] = FORMAT
    hub_id: str
    epoch: int
    seq: int
    time: str
    prev: ObjectRef | None
    segments: tuple[SegmentRef, ...]
    seal: str = ""
    """On the wire only."""


def encode_manifest(manifest: Manifest, key: HubKey) -> tuple[ObjectRef, bytes]:
    """Return the manifest's name and hash, and its bytes."""
    data = encode_sealed(manifest, key)
    digest = hashlib.blake2b(data, digest_size=32).digest()
    return ObjectRef(manifest_name(seq=manifest.seq, digest=digest), digest.hex()), data


def manifest_hash(data: bytes) -> str:
    """Return the hash by which a manifest of these bytes is named."""
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def decode_manifest(data: bytes, ref: ObjectRef, key: HubKey) -> Manifest:
    """Parse a manifest that must be the one `ref` names, sealed by `key`.

    Raises `SegmentCorrupt`, `UnsupportedFormat`.
    """
    if manifest_hash(data) != ref.hash:
        raise SegmentCorrupt("this is not the manifest that is named", op="read", object=ref.name)
    if not is_sealed_by(data, key):
        raise SegmentCorrupt("its seal is broken", op="read", object=ref.name)
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise IntegrityError(f"does not parse: {error}", op="read", object=ref.name) from error
    if manifest.format != FORMAT:
        raise UnsupportedFormat(
            f"manifest format {manifest.format}, this release reads {FORMAT}",
            op="read",
            object=ref.name,
        )
    return msgspec.structs.replace(manifest, seal="")
