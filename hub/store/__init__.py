"""The store: one LMDB file of bytes and revisions; knows nothing of Kubernetes.

This package's names are what the layers above use; `snapshot` imports nothing else of the hub.
"""

from hub.store.api import (
    Change,
    Draft,
    Index,
    Key,
    Listener,
    Match,
    Op,
    Page,
    Position,
    Record,
    Revision,
    Stored,
    Write,
)
from hub.store.build import build_store
from hub.store.directory import DirectoryLock, has_store, is_unfinished, prepare
from hub.store.errors import (
    Broken,
    Closed,
    Compacted,
    Conflict,
    Corrupt,
    Exists,
    FutureRevision,
    InvariantError,
    KeyMismatch,
    Locked,
    MapFull,
    NotFound,
    StoreError,
    WriteFailed,
)
from hub.store.export import DeltaExport, FullExport
from hub.store.hubkey import HubKey, create_hub_key, load_hub_key
from hub.store.index import decode_index, encode_index
from hub.store.key import decode_key, encode_key, prefix, stored_key
from hub.store.maintenance import (
    Compaction,
    Report,
    compact_store,
    read_store,
    verify_store,
)
from hub.store.place import STORE_DIRECTORY, has_old_store, move_in
from hub.store.state_hash import term
from hub.store.stats import Stats
from hub.store.store import Store
from hub.store.value import revision_of

__all__ = [
    "STORE_DIRECTORY",
    "Broken",
    "Change",
    "Closed",
    "Compacted",
    "Compaction",
    "Conflict",
    "Corrupt",
    "DeltaExport",
    "DirectoryLock",
    "Draft",
    "Exists",
    "FullExport",
    "FutureRevision",
    "HubKey",
    "Index",
    "InvariantError",
    "Key",
    "KeyMismatch",
    "Listener",
    "Locked",
    "MapFull",
    "Match",
    "NotFound",
    "Op",
    "Page",
    "Position",
    "Record",
    "Report",
    "Revision",
    "Stats",
    "Store",
    "StoreError",
    "Stored",
    "Write",
    "WriteFailed",
    "build_store",
    "compact_store",
    "create_hub_key",
    "decode_index",
    "decode_key",
    "encode_index",
    "encode_key",
    "has_old_store",
    "has_store",
    "is_unfinished",
    "load_hub_key",
    "move_in",
    "prefix",
    "prepare",
    "read_store",
    "revision_of",
    "stored_key",
    "term",
    "verify_store",
]
