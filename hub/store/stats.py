"""Sizes of a store, for metrics and reports."""

from dataclasses import dataclass

from hub.store.api import Revision
from hub.store.directory import DATA_FILE
from hub.store.ledger import Shared
from hub.store.lmdb_env import read_marks


@dataclass(frozen=True, slots=True)
class Stats:
    """Sizes at one instant.

    `used_bytes` is what the pages up to the last used one take, free ones among them included.
    The log holds `log_entries` above `log_after`.
    """

    file_bytes: int
    used_bytes: int
    objects: int
    volatile: int
    renewals: int
    log_entries: int
    log_bytes: int
    """Of the pages that the log takes."""
    log_after: Revision
    compacted: Revision
    readers: int


def stats_of(shared: Shared) -> Stats:
    """Return the sizes now."""
    env = shared.env
    info = env.env.info()
    with env.read() as txn:
        marks = read_marks(txn, env)
        objects = txn.stat(env.objects)
        volatile = txn.stat(env.volatile)
        log = txn.stat(env.log)
    pages = log["branch_pages"] + log["leaf_pages"] + log["overflow_pages"]
    return Stats(
        file_bytes=(env.path / DATA_FILE).stat().st_size,
        used_bytes=(info["last_pgno"] + 1) * objects["psize"],
        objects=objects["entries"],
        volatile=volatile["entries"],
        renewals=len(shared.overlay.entries),
        log_entries=log["entries"],
        log_bytes=pages * log["psize"],
        log_after=marks.log_after,
        compacted=marks.compacted,
        readers=info["num_readers"],
    )
