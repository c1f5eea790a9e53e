"""The store's contract in memory: plain dicts, no threads, nothing that could go wrong.

The contract suite runs against it too, so that the model is known to keep the contract before the
LMDB store is compared with it step by step.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from hub.store import (
    Change,
    Compacted,
    Conflict,
    Draft,
    Exists,
    FutureRevision,
    Index,
    Key,
    Listener,
    Match,
    NotFound,
    Op,
    Page,
    Revision,
    Stored,
    Write,
    stored_key,
)


@dataclass(frozen=True, slots=True)
class Held:
    """What the model holds at a key; `raw` of its entries is the document itself."""

    entry: Stored
    is_volatile: bool
    renewed_over: Stored | None = None


class ModelStore:
    def __init__(self) -> None:
        self.held: dict[Key, Held] = {}
        self.history: list[Change] = []
        self.replaced: dict[Revision, Stored | None] = {}
        """What each durable write replaced, renewals left out: they are in no log."""
        self.compacted = Revision(0)
        self.revision = Revision(0)
        self.extras: dict[str, bytes] = {}
        self.given: list[Revision] = []
        """Revisions to hand out next, when somebody else draws them."""
        self._listeners: list[Listener] = []

    async def commit(
        self, *writes: Write, meta: dict[str, bytes | None] | None = None
    ) -> tuple[Revision, ...]:
        await asyncio.sleep(0)
        if len({write.key for write in writes}) != len(writes):
            raise ValueError("a key twice")
        for write in writes:
            self._expect(write)
        changes = [self._apply(write) for write in writes]
        for name, value in (meta or {}).items():
            self.extras.pop(name, None)
            if value is not None:
                self.extras[name] = value
        self._publish(changes)
        return tuple(change.revision for change in changes)

    def renew(self, key: Key, draft: Draft, index: Index, *, expect: Revision) -> Revision:
        held = self.held.get(key)
        if held is None or held.is_volatile:
            raise NotFound(key)
        if held.entry.revision != expect:
            raise Conflict(key, expected=expect, actual=held.entry.revision)
        if held.entry.index != index:
            raise ValueError("another index")
        revision = self._take()
        entry = Stored(key, revision, index, draft.at(revision))
        self.held[key] = Held(
            entry, is_volatile=False, renewed_over=held.renewed_over or held.entry
        )
        before = held.entry.raw
        self._publish(
            [
                Change(
                    Op.UPDATE,
                    key,
                    revision,
                    entry.raw,
                    index,
                    held.entry.index,
                    lambda: before,
                    is_logged=False,
                )
            ]
        )
        return revision

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def get(self, key: Key) -> Stored | None:
        held = self.held.get(key)
        return None if held is None else held.entry

    def read(self, stored: Stored) -> bytes:
        return stored.raw

    def scan(
        self,
        prefix: bytes,
        *,
        after: Key | None = None,
        limit: int | None = None,
        match: Match | None = None,
        is_counted: bool = True,
    ) -> Page:
        state = {key: held.entry for key, held in self.held.items()}
        return self._page(
            state, prefix, self.revision, after=after, limit=limit, match=match, count=is_counted
        )

    def scan_at(
        self,
        prefix: bytes,
        revision: Revision,
        *,
        after: Key | None = None,
        limit: int | None = None,
        match: Match | None = None,
        is_counted: bool = True,
    ) -> Page:
        if revision < self.compacted:
            raise Compacted(asked=revision, oldest=self.compacted)
        if revision > self.revision:
            raise FutureRevision(asked=revision, current=self.revision)
        state = {key: held.entry for key, held in self.held.items()}
        for change in reversed(self.history):
            if change.revision > revision:
                state.pop(change.key, None)
                before = self.replaced[change.revision]
                if before is not None:
                    state[change.key] = before
        return self._page(
            state, prefix, revision, after=after, limit=limit, match=match, count=is_counted
        )

    def get_at(self, key: Key, revision: Revision) -> Stored | None:
        found = self.scan_at(key, revision).entries
        return next((entry for entry in found if entry.key == key), None)

    @staticmethod
    def _page(
        state: dict[Key, Stored],
        prefix: bytes,
        revision: Revision,
        *,
        after: Key | None,
        limit: int | None,
        match: Match | None,
        count: bool,
    ) -> Page:
        passed = None if after is None else stored_key(after)
        keys = [
            key
            for key in sorted(state, key=stored_key)
            if key.startswith(prefix) and (passed is None or stored_key(key) > passed)
        ]
        entries: list[Stored] = []
        rest = iter(keys)
        left: list[Key] = []
        for key in rest:
            if limit is not None and len(entries) >= limit:
                left = [key, *rest]
                break
            if match is None or match(key, state[key].index):
                entries.append(state[key])
        remaining = len(left) if match is None and count else None
        return Page(entries, revision, bool(left), remaining)

    def changes(self, after: Revision, prefix: bytes, *, limit: int | None = None) -> list[Change]:
        if after < self.compacted:
            raise Compacted(asked=after, oldest=self.compacted)
        if after > self.revision:
            raise FutureRevision(asked=after, current=self.revision)
        present = [
            Change(
                Op.UPDATE if held.renewed_over else Op.CREATE,
                held.entry.key,
                held.entry.revision,
                held.entry.raw,
                held.entry.index,
                held.entry.index if held.renewed_over else None,
                None,
                is_logged=False,
            )
            for held in self.held.values()
            if held.is_volatile or held.renewed_over
        ]
        found = [
            change
            for change in [*self.history, *present]
            if change.revision > after and change.key.startswith(prefix)
        ]
        return sorted(found, key=attrgetter("revision"))[:limit]

    async def compact_log(self, keep_after: Revision) -> None:
        self.compacted = keep_after
        self.history = [change for change in self.history if change.revision > keep_after]

    def _take(self) -> Revision:
        revision = self.given.pop(0) if self.given else Revision(self.revision + 1)
        assert revision > self.revision
        self.revision = revision
        return revision

    def _expect(self, write: Write) -> None:
        held = self.held.get(write.key)
        if write.op is Op.CREATE:
            if held is not None:
                raise Exists(write.key)
            return
        if held is None:
            raise NotFound(write.key)
        if held.is_volatile is not write.volatile:
            raise ValueError("volatile flag")
        if held.entry.revision != write.expect:
            raise Conflict(
                write.key, expected=write.expect or Revision(0), actual=held.entry.revision
            )

    def _apply(self, write: Write) -> Change:
        before = self.held.pop(write.key, None)
        revision = self._take()
        document = write.draft.at(revision)
        if write.op is not Op.DELETE:
            entry = Stored(write.key, revision, write.index, document)
            self.held[write.key] = Held(entry, write.volatile)
        change = Change(
            write.op,
            write.key,
            revision,
            document,
            write.index,
            before.entry.index if before else None,
            (lambda: before.entry.raw) if before else None,
            is_logged=not write.volatile,
        )
        if not write.volatile:
            self.history.append(change)
            self.replaced[revision] = (before.renewed_over or before.entry) if before else None
        return change

    def _publish(self, changes: list[Change]) -> None:
        for listener in list(self._listeners):
            listener(changes)
