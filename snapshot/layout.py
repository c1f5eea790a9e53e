"""Where objects lie under a prefix.

Owns the names: ``HEAD`` and ``format.json`` at the root, segments under their epoch. A segment's
name holds its place and eight digits of its hash, so that a stalled writer's late create is an
orphan and never another's segment.

>>> full_name(epoch=7, rev=120, seq=31, digest=bytes.fromhex("0badcafe") + bytes(28))
'e00000007/full/120-31-0badcafe.hs'
>>> delta_name(epoch=7, level="d0", from_rev=120, to_rev=125,
...            digest=bytes.fromhex("0badcafe") + bytes(28))
'e00000007/d0/120-125-0badcafe.hs'
>>> manifest_name(seq=31, digest=bytes.fromhex("0badcafe") + bytes(28))
'manifest/31-0badcafe.json'
>>> is_segment_name("e00000007/d1/120-125-0badcafe.hs"), is_segment_name("e7/notes.txt")
(True, False)
"""

import json
import re

HEAD = "HEAD"
FORMAT = "format.json"
MANIFESTS = "manifest/"
PINS = "pins/"
TRASH = "trash/"
PROBES = "probe/"
"""Objects that a trial of the bucket makes and deletes again."""

_SEGMENT = re.compile(r"e\d{8}/(full|d[012])/\d+-\d+-[0-9a-f]{8}\.hs")
_MANIFEST = re.compile(r"manifest/\d+-[0-9a-f]{8}\.json")


def full_name(*, epoch: int, rev: int, seq: int, digest: bytes) -> str:
    """Return the name of a full."""
    return f"e{epoch:08d}/full/{rev}-{seq}-{digest[:4].hex()}.hs"


def delta_name(*, epoch: int, level: str, from_rev: int, to_rev: int, digest: bytes) -> str:
    """Return the name of a delta as cut (d0) or merged (d1, d2)."""
    return f"e{epoch:08d}/{level}/{from_rev}-{to_rev}-{digest[:4].hex()}.hs"


def manifest_name(*, seq: int, digest: bytes) -> str:
    """Return the name of a manifest."""
    return f"{MANIFESTS}{seq}-{digest[:4].hex()}.json"


def is_segment_name(name: str) -> bool:
    """Whether an object has the name of a segment."""
    return _SEGMENT.fullmatch(name) is not None


def is_manifest_name(name: str) -> bool:
    """Whether an object has the name of a manifest."""
    return _MANIFEST.fullmatch(name) is not None


def is_note_of_another(note: bytes, hub_id: str) -> bool:
    """Whether a note at the root names another hub; one that cannot be read names none."""
    try:
        found = json.loads(note)
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("hub_id", hub_id) != hub_id
