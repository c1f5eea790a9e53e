"""The jobs of the committer: commit, flush the overlay, compact the log."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice, takewhile

from hub.store.api import Revision, Write
from hub.store.ledger import Ledger
from hub.store.lmdb_env import NAME_COMPACTED, NAME_LOG_AFTER, Environment, read_marks, write_mark
from hub.store.log import decode_revision, encode_revision

COMPACT_ENTRIES = 1000
"""How many log entries one job removes, so that writers never wait long for it."""


@dataclass(frozen=True, slots=True)
class CommitJob:
    """Writes and small values of one caller, all or nothing; returns the revisions."""

    writes: tuple[Write, ...]
    meta: Mapping[bytes, bytes | None]

    @property
    def weight(self) -> int:
        """The number of writes."""
        return max(len(self.writes), 1)

    def apply(self, ledger: Ledger) -> tuple[Revision, ...]:
        """Write; refused as a whole or done as a whole."""
        revisions = ledger.write(self.writes)
        ledger.put_extras(self.meta)
        return revisions


@dataclass(frozen=True, slots=True)
class FlushJob:
    """Renewals as sorted rows for the `renewals` database."""

    env: Environment
    rows: list[tuple[bytes, bytes]]

    @property
    def weight(self) -> int:
        """One: the rows are small and lie together."""
        return 1

    def apply(self, ledger: Ledger) -> None:
        """Write the rows."""
        with ledger.txn.cursor(self.env.renewals) as cursor:
            cursor.putmulti(self.rows)


@dataclass(frozen=True, slots=True)
class CompactJob:
    """Removes log entries at or below a revision; returns whether more are left."""

    env: Environment
    keep_after: Revision

    @property
    def weight(self) -> int:
        """As much as it may remove."""
        return COMPACT_ENTRIES

    def apply(self, ledger: Ledger) -> bool:
        """Remove up to `COMPACT_ENTRIES` entries and record how far the log now reaches back."""
        txn, env, limit = ledger.txn, self.env, encode_revision(self.keep_after)
        with txn.cursor(env.log) as cursor:
            old = takewhile(limit.__ge__, cursor.iternext(keys=True, values=False))
            keys = list(islice(old, COMPACT_ENTRIES))
        for key in keys:
            txn.delete(key, db=env.log)
        has_more = len(keys) == COMPACT_ENTRIES
        reached = Revision(decode_revision(keys[-1])) if has_more else self.keep_after
        marks = read_marks(txn, env)
        log_after = max(marks.log_after, min(reached, ledger.revision))
        write_mark(txn, env, NAME_LOG_AFTER, Revision(log_after))
        write_mark(txn, env, NAME_COMPACTED, max(marks.compacted, reached))
        return has_more
