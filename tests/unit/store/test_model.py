"""The LMDB store against the model: random commits, renewals, flushes, restarts and kills.

After every step the file verifies, and both give the same answers to the same questions.
"""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hub.store import (
    Change,
    Index,
    Key,
    Op,
    Page,
    Revision,
    Store,
    Stored,
    StoreError,
    Write,
    decode_index,
    prefix,
)
from tests.unit.store.given import EMPTY, draft, hub_key, key, kill, labels, open_store
from tests.unit.store.model import Held, ModelStore

KEYS = [
    *(key(name, namespace=space) for space in ("", "one", "two") for name in "ab"),
    key("a" * 600),
    key("a" * 600 + "b"),
]
EVENTS = [key(name, resource="events") for name in "abc"]
SCOPES = [b"", prefix("widgets"), prefix("widgets", "one"), prefix("events")]
INDEXES = [EMPTY, labels(env="prod"), labels(env="dev", tier="gold")]


class Machine(RuleBasedStateMachine):
    """Drives both stores; `saved` is the model's overlay as of the last flush."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory(prefix="hublet-model-")
        self.path = Path(self.directory.name) / "data"
        self.runner = asyncio.Runner()
        self.model = ModelStore()
        self.seen: list[Change] = []
        self.expected: list[Change] = []
        self.saved: dict[Key, Held] = {}
        self.model.subscribe(self.expected.extend)

    @initialize()
    def open(self) -> None:
        self._open()

    @rule(
        at=st.lists(st.sampled_from(KEYS), min_size=1, max_size=3),
        op=st.sampled_from(Op),
        stale=st.booleans(),
        index=st.sampled_from(INDEXES),
        sealed=st.booleans(),
        text=st.text("ab", max_size=4),
    )
    def commit(
        self, at: list[Key], op: Op, *, stale: bool, index: Index, sealed: bool, text: str
    ) -> None:
        writes = [
            Write(op, each, draft(text), index, self._expect(each, op, stale=stale), sealed)
            for each in at
        ]
        self._commit(*writes)

    @rule(at=st.sampled_from(EVENTS), op=st.sampled_from(Op), stale=st.booleans())
    def commit_volatile(self, at: Key, op: Op, *, stale: bool) -> None:
        expect = self._expect(at, op, stale=stale)
        self._commit(Write(op, at, draft("event"), EMPTY, expect, volatile=True))

    @rule(keys=st.lists(st.sampled_from(KEYS), min_size=2, max_size=8, unique=True))
    def commit_concurrently(self, keys: list[Key]) -> None:
        """Commits of one batch: each succeeds or fails as it would alone, in order."""

        async def both() -> list[object]:
            return await asyncio.gather(
                *(self.store.commit(each) for each in writes), return_exceptions=True
            )

        writes = [Write(Op.CREATE, each, draft("c"), EMPTY) for each in keys]
        for write, outcome in zip(writes, self.runner.run(both()), strict=True):
            self._mirror((write,), outcome)

    @rule(at=st.sampled_from(KEYS), stale=st.booleans(), text=st.text("ab", max_size=4))
    def renew(self, at: Key, *, stale: bool, text: str) -> None:
        expect = self._expect(at, Op.UPDATE, stale=stale) or Revision(1)
        held = self.model.get(at)
        index = held.index if held else EMPTY

        async def renewing() -> Revision:
            return self.store.renew(at, draft(text), index, expect=expect)

        self._same(
            lambda: self.runner.run(renewing()),
            lambda: self.model.renew(at, draft(text), index, expect=expect),
        )
        self.runner.run(asyncio.sleep(0))

    @rule()
    def flush(self) -> None:
        self.runner.run(self.store.flush())
        self._save()

    @precondition(lambda self: self.model.revision > 0)
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        to = Revision(data.draw(st.integers(self.model.compacted, self.model.revision)))
        self.runner.run(self.store.compact_log(to))
        self.runner.run(self.model.compact_log(to))

    @precondition(lambda self: self.model.revision > 0)
    @rule(
        data=st.data(),
        scope=st.sampled_from(SCOPES),
        limit=st.none() | st.integers(1, 4),
        after=st.none() | st.sampled_from([*KEYS, *EVENTS]),
        is_selective=st.booleans(),
    )
    def look_back(
        self,
        data: st.DataObject,
        scope: bytes,
        limit: int | None,
        after: Key | None,
        *,
        is_selective: bool,
    ) -> None:
        at = Revision(data.draw(st.integers(self.model.compacted, self.model.revision)))
        match = _is_prod if is_selective else None

        def look(store: Store | ModelStore) -> Page:
            return store.scan_at(scope, at, after=after, limit=limit, match=match)

        real, model = look(self.store), look(self.model)
        assert _read(self.store, real.entries) == _read(self.model, model.entries)
        assert (real.revision, real.has_more, real.remaining) == (
            at,
            model.has_more,
            model.remaining,
        )
        for asked in (*KEYS, *EVENTS):
            one, same = self.store.get_at(asked, at), self.model.get_at(asked, at)
            assert _read(self.store, [one] if one else []) == _read(
                self.model, [same] if same else []
            )

    @rule()
    def rotate(self) -> None:
        """Seal under another data key from now on; nobody sees a difference."""
        before = self.store.position
        self.runner.run(self.store.rotate_data_key(hub_key(self.path)))
        assert self.store.position == before

    @rule()
    def restart(self) -> None:
        self.runner.run(self.store.close())
        self._save()
        self._open()
        assert self.store.was_clean
        assert self.store.revision == self.model.revision

    @rule()
    def die(self) -> None:
        """Kill it: what was acknowledged stays, but for renewals since the last flush."""
        kill(self.store)
        for at, held in list(self.model.held.items()):
            if held.renewed_over is not None:
                self.model.held[at] = self.saved.get(at) or Held(
                    held.renewed_over, is_volatile=False
                )
        self._open()
        assert not self.store.was_clean
        assert self.store.revision > self.model.revision
        self.model.revision = self.store.revision

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "store"):
            return
        position = self.store.verify()
        assert position == self.store.position
        durable = [held for held in self.model.held.values() if not held.is_volatile]
        assert position.count == len(durable)
        assert self.store.revision == self.model.revision
        for scope in SCOPES:
            assert self._entries(self.store, scope) == self._entries(self.model, scope)
            after = self.model.compacted
            assert self._changes(self.store, after, scope) == self._changes(
                self.model, after, scope
            )
        assert _plain(self.seen) == _plain(self.expected)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.runner.run(self.store.close())
        self.runner.close()
        self.directory.cleanup()

    def _open(self) -> None:
        async def opening() -> Store:
            store = open_store(self.path)
            store.subscribe(self.seen.extend)
            return store

        self.store = self.runner.run(opening())

    def _save(self) -> None:
        self.saved = {at: held for at, held in self.model.held.items() if held.renewed_over}

    def _expect(self, at: Key, op: Op, *, stale: bool) -> Revision | None:
        if op is Op.CREATE:
            return None
        held = self.model.get(at)
        revision = held.revision if held else 1
        return Revision(revision + 1 if stale else revision)

    def _commit(self, *writes: Write) -> None:
        try:
            outcome: object = self.runner.run(self.store.commit(*writes))
        except (StoreError, ValueError) as error:
            outcome = error
        self._mirror(writes, outcome)

    def _mirror(self, writes: tuple[Write, ...], outcome: object) -> None:
        """Do to the model what the store did, and compare the outcomes."""
        if isinstance(outcome, tuple):
            self.model.given = list(outcome)
            assert self.runner.run(self.model.commit(*writes)) == outcome
            for write in writes:
                self.saved.pop(write.key, None)
            return
        try:
            self.runner.run(self.model.commit(*writes))
        except (StoreError, ValueError) as error:
            assert type(error) is type(outcome)  # noqa: PT017  compared with the other store's
        else:
            raise AssertionError(f"the store refused what the model takes: {outcome!r}")

    def _same(self, real: Callable[[], Revision], model: Callable[[], Revision]) -> None:
        try:
            revision = real()
        except StoreError as refused:
            try:
                model()
            except StoreError as error:
                assert type(error) is type(refused)  # noqa: PT017  compared with the other store's
                return
            raise AssertionError(
                f"the store refused what the model takes: {refused!r}"
            ) from refused
        self.model.given = [revision]
        assert model() == revision

    @staticmethod
    def _entries(store: Store | ModelStore, scope: bytes) -> list[tuple[Key, int, bytes, bytes]]:
        found, after = [], None
        while True:
            page = store.scan(scope, after=after, limit=3)
            found += page.entries
            if not page.has_more:
                break
            after = page.entries[-1].key
        return _read(store, found)

    @staticmethod
    def _changes(
        store: Store | ModelStore, after: Revision, scope: bytes
    ) -> list[tuple[Op, Key, int, bytes, bytes | None]]:
        found = []
        while batch := store.changes(after, scope, limit=4):
            found += batch
            after = batch[-1].revision
        return _plain(found)


def _is_prod(_: Key, index: Index) -> bool:
    return decode_index(index)[0].get("env") == "prod"


def _read(store: Store | ModelStore, entries: list[Stored]) -> list[tuple[Key, int, bytes, bytes]]:
    return [(each.key, each.revision, each.index, store.read(each)) for each in entries]


def _plain(changes: list[Change]) -> list[tuple[Op, Key, int, bytes, bytes | None]]:
    return [
        (change.op, change.key, change.revision, change.value, change.previous_index)
        for change in changes
    ]


Machine.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestTheStoreDoesWhatTheModelDoes = Machine.TestCase
