"""Sweeping: deleting volatile objects that are older than a revision, see `Store.sweep`."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from hub.store.api import Draft, Key, Op, Page, Revision, Stored, Write
from hub.store.errors import Conflict, NotFound
from hub.store.value import is_sealed

SLICE = 200
"""How many objects are looked at, and at most deleted, at a time."""


class Swept(Protocol):
    """What sweeping needs of a store."""

    async def commit(self, *writes: Write) -> tuple[Revision, ...]:
        """Write."""
        ...

    def scan(
        self, prefix: bytes, *, after: Key | None, limit: int | None, is_counted: bool
    ) -> Page:
        """Return a slice."""
        ...

    def read(self, stored: Stored) -> bytes:
        """Return a document."""
        ...


async def sweep(
    store: Swept, prefix: bytes, *, older_than: Revision, redraft: Callable[[bytes], Draft]
) -> int:
    """Delete what is older and return how many; what changes meanwhile is left alone."""
    swept, after = 0, None
    while True:
        page = store.scan(prefix, after=after, limit=SLICE, is_counted=False)
        old = [entry for entry in page.entries if entry.revision < older_than]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_delete(store, entry, redraft)) for entry in old]
        swept += sum(task.result() for task in tasks)
        if not page.has_more:
            return swept
        after = page.entries[-1].key


async def _delete(store: Swept, entry: Stored, redraft: Callable[[bytes], Draft]) -> bool:
    write = Write(
        Op.DELETE,
        entry.key,
        redraft(store.read(entry)),
        entry.index,
        expect=entry.revision,
        sealed=is_sealed(entry.raw),
        volatile=True,
    )
    try:
        await store.commit(write)
    except (Conflict, NotFound):
        return False
    return True
