"""The garbage collector: an object goes when all its owners are gone.

Mirrors k8s.io/kubernetes/pkg/controller/garbagecollector. An owner is absent when nothing with its
uid lies at the place that a reference names: in the dependent's namespace, or cluster-scoped. That
is always read from the store before anything is deleted, and the deletion names the uid and the
revision that were judged. What cannot be judged (a kind that is not served) is kept.

Foreground and Orphan deletions leave a finalizer on the owner; taking it off, once the dependents
are gone or no longer name the owner, is done here too.

After a restore the collector only watches until the hold is over: what an older snapshot does not
know yet must not take its dependents with it.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import structlog

from hub.clock import Clock
from hub.controllers.ownership import Link, OwnerGraph, links_of
from hub.meta import Obj
from hub.meta.codec.json import decode
from hub.meta.errors import ApiError
from hub.registry.call import Preconditions
from hub.registry.catalog import Catalog
from hub.registry.deletion import (
    FOREGROUND,
    ORPHAN,
    Policy,
    policy_of,
    waits_for_dependents,
    waits_for_orphaning,
)
from hub.registry.engine import Engine
from hub.registry.hold import Hold
from hub.registry.kind import Kind
from hub.registry.objects import is_deleting, meta_of
from hub.registry.report import reference_to, warn
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain
from hub.store import Key, Op, decode_key, encode_key
from hub.store import prefix as key_prefix

_log = structlog.get_logger("hub.controllers")
_WORKERS = 16
_PAGE = 200
_AT_ONCE = 64
_UNKNOWN_AGAIN_S = 600.0
_REFERENCES = b'"ownerReferences"'
_MARKS = (f'"{FOREGROUND}"'.encode(), f'"{ORPHAN}"'.encode())


@dataclass(slots=True)
class _Verdict:
    """An object's owner references, sorted by what has become of the owner."""

    solid: list[str] = field(default_factory=list)
    dangling: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


class GarbageCollector:
    """Collects what has lost its owners, and finishes deletions that wait for dependents."""

    def __init__(self, engine: Engine, catalog: Catalog, clock: Clock, *, hold: Hold) -> None:
        self._engine, self._catalog, self._clock, self._hold = engine, catalog, clock, hold
        self._queue = Queue()
        self._graph = OwnerGraph()
        self._waiting: dict[str, Key] = {}
        self._gone: set[str] = set()
        self._reported: set[Key] = set()
        engine.watches.listen_to_all(self._changed)

    def __len__(self) -> int:
        """Return how many objects with owners are known."""
        return len(self._graph)

    def _kinds(self) -> Iterator[Kind]:
        return (kind for kind in self._catalog if not kind.is_virtual and not kind.is_volatile)

    # ---------------------------------------------------------------- what is known

    def _changed(self, event: Event) -> None:
        change = event.change
        if event.kind.is_volatile:
            return
        if change.op is Op.DELETE:
            self._removed(event)
            return
        is_dependent = _REFERENCES in change.value
        if is_dependent or change.key in self._graph:
            self._link(change.key, event.obj if is_dependent else {"metadata": {}})
        if any(mark in change.value for mark in _MARKS):
            self._mark(change.key, event.obj)

    def _link(self, key: Key, obj: Obj) -> None:
        links = links_of(obj)
        before = self._graph.put(key, links)
        if links == before:
            return
        self._queue.add(key.decode())
        self._wake(link for link in before if link not in links)

    def _mark(self, key: Key, obj: Obj) -> None:
        """Note an owner that waits for the collector; the first time, look at its dependents."""
        if waits_for_dependents(obj):
            uid = str(meta_of(obj)["uid"])
            if uid not in self._waiting:
                self._waiting[uid] = key
                self._add(self._graph.dependents(uid))
            self._queue.add(key.decode())
        elif waits_for_orphaning(obj):
            self._queue.add(key.decode())

    def _removed(self, event: Event) -> None:
        links = self._graph.drop(event.change.key)
        self._reported.discard(event.change.key)
        self._wake(links)
        if len(self._graph) or self._waiting:
            uid = str(meta_of(event.obj)["uid"])
            self._waiting.pop(uid, None)
            dependents = self._graph.dependents(uid)
            self._add(dependents)
            if dependents:
                self._gone.add(uid)
        self._gone.difference_update(
            link.uid for link in links if not self._graph.dependents(link.uid)
        )

    def _wake(self, links: Iterable[Link]) -> None:
        """Look again at the owners that waited for one of these links to go."""
        self._add(self._waiting[link.uid] for link in links if link.uid in self._waiting)

    def _add(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._queue.add(key.decode())

    # ---------------------------------------------------------------- running

    async def run(self) -> None:
        """Learn what is there, hold still if told to, then collect until cancelled."""
        for kind in self._kinds():
            await self._learn(kind)
        await self._hold.wait()
        await drain("garbage", self._queue, self.reconcile, workers=_WORKERS)

    async def _learn(self, kind: Kind) -> None:
        """Read every object of a kind, in pages between which the loop goes on."""
        store, after = self._engine.store, None
        while True:
            page = store.scan(key_prefix(kind.id, None), after=after, limit=_PAGE, is_counted=False)
            for entry in page.entries:
                value = store.read(entry)
                if _REFERENCES in value or any(mark in value for mark in _MARKS):
                    obj = decode(value)
                    self._link(entry.key, obj)
                    self._mark(entry.key, obj)
            if not page.has_more or not page.entries:
                return
            after = page.entries[-1].key
            await asyncio.sleep(0)

    async def reconcile(self, text: str) -> float | None:
        """Judge one object; return when to look again at one that cannot be judged."""
        await asyncio.sleep(0)  # thousands may wait: the loop goes on between them
        key = Key(text.encode())
        found = self._read(key)
        if found is None:
            return None
        kind, obj = found
        if waits_for_orphaning(obj):
            await self._orphan(kind, obj)
        elif waits_for_dependents(obj):
            await self._release_foreground(kind, obj)
        elif not is_deleting(obj):
            return await self._judge(kind, key, obj)
        return None

    def _read(self, key: Key) -> tuple[Kind, Obj] | None:
        resource, namespace, name = decode_key(key)
        kind = self._catalog.by_id(resource)
        obj = None if kind is None else self._engine.peek(kind, name, namespace)
        return None if kind is None or obj is None else (kind, obj)

    # ---------------------------------------------------------------- owners that wait

    async def _release_foreground(self, kind: Kind, owner: Obj) -> None:
        uid = str(meta_of(owner)["uid"])
        self._waiting.setdefault(uid, _key_of(kind, owner))
        if not self._graph.is_blocked(uid):
            await self._take_off(kind, owner, FOREGROUND)

    async def _orphan(self, kind: Kind, owner: Obj) -> None:
        uid = str(meta_of(owner)["uid"])
        dependents = self._graph.dependents(uid)
        for start in range(0, len(dependents), _AT_ONCE):
            found = (self._read(key) for key in dependents[start : start + _AT_ONCE])
            alive = [each for each in found if each is not None]
            outcomes = await asyncio.gather(
                *(self._modify(each, obj, _without({uid})) for each, obj in alive),
                return_exceptions=True,
            )
            for error in filter(None, outcomes):
                raise error
        await self._take_off(kind, owner, ORPHAN)

    async def _take_off(self, kind: Kind, obj: Obj, finalizer: str) -> None:
        uid = meta_of(obj)["uid"]

        def change(current: Obj) -> None:
            meta = meta_of(current)
            if meta["uid"] == uid:
                found = meta.get("finalizers") or []
                meta["finalizers"] = [name for name in found if name != finalizer]

        await self._modify(kind, obj, change)

    async def _modify(self, kind: Kind, obj: Obj, change: Callable[[Obj], None]) -> None:
        meta = meta_of(obj)
        namespace = str(meta.get("namespace") or "")
        try:
            await self._engine.modify(kind, str(meta["name"]), change, namespace=namespace)
        except ApiError as error:
            if error.code != 404:
                raise

    # ---------------------------------------------------------------- dependents

    async def _judge(self, kind: Kind, key: Key, obj: Obj) -> float | None:
        references = meta_of(obj).get("ownerReferences") or []
        if not references:
            return None
        verdict = await self._classify(kind, key, obj, references)
        if verdict.unknown:
            return _UNKNOWN_AGAIN_S
        lost = {*verdict.dangling, *verdict.waiting}
        if verdict.solid:
            if lost:
                await self._modify(kind, obj, _without(lost))
            return None
        policy = policy_of(obj)
        dependents = self._graph.dependents(str(meta_of(obj)["uid"]))
        if verdict.waiting and dependents:
            policy = "Foreground"
            if any(self._is_waiting(dependent) for dependent in dependents):
                # a circle: somebody has to stop holding up its owner
                await self._modify(kind, obj, _unblock)
                obj = self._engine.peek(kind, *_place(obj)) or obj
        await self._collect(kind, obj, policy)
        return None

    async def _classify(
        self, kind: Kind, key: Key, obj: Obj, references: Sequence[Obj]
    ) -> _Verdict:
        verdict = _Verdict()
        for reference in references:
            uid = str(reference.get("uid"))
            served = self._catalog.find_kind(
                str(reference.get("apiVersion")), str(reference.get("kind"))
            )
            if served is None or served.kind.is_virtual:
                verdict.unknown.append(uid)
                continue
            if served.kind.is_namespaced and not kind.is_namespaced:
                # an owner inside a namespace cannot be found from outside
                await self._report(kind, key, obj, reference)
                verdict.unknown.append(uid)
                continue
            space = str(meta_of(obj).get("namespace") or "") if served.kind.is_namespaced else ""
            owner = self._engine.peek(served.kind, str(reference.get("name")), space)
            if owner is None or meta_of(owner)["uid"] != uid:
                verdict.dangling.append(uid)
                if uid not in self._gone and self._is_elsewhere(served.kind, reference):
                    await self._report(kind, key, obj, reference)
            elif waits_for_dependents(owner):
                verdict.waiting.append(uid)
            else:
                verdict.solid.append(uid)
        return verdict

    def _is_waiting(self, key: Key) -> bool:
        found = self._read(key)
        return found is not None and waits_for_dependents(found[1])

    def _is_elsewhere(self, kind: Kind, reference: Obj) -> bool:
        """Whether the owner that is absent here lives in another namespace."""
        if not kind.is_namespaced:
            return False
        tail = f"\0{reference.get('name')}".encode()
        page = self._engine.store.scan(
            key_prefix(kind.id, None), match=lambda key, _index: key.endswith(tail)
        )
        found = (decode(self._engine.store.read(entry)) for entry in page.entries)
        return any(meta_of(obj)["uid"] == reference.get("uid") for obj in found)

    async def _report(self, kind: Kind, key: Key, obj: Obj, reference: Obj) -> None:
        """Tell with an Event, once, that a reference names an owner of another namespace."""
        if key in self._reported:
            return
        self._reported.add(key)
        namespace = str(meta_of(obj).get("namespace") or "")
        owner = (
            f"[{reference.get('apiVersion')}/{reference.get('kind')}, namespace: {namespace}, "
            f"name: {reference.get('name')}, uid: {reference.get('uid')}]"
        )
        await warn(
            self._engine,
            reference_to(kind, obj),
            reason="OwnerRefInvalidNamespace",
            message=f'ownerRef {owner} does not exist in namespace "{namespace}"',
            component="garbage-collector-controller",
        )

    async def _collect(self, kind: Kind, obj: Obj, policy: Policy) -> None:
        """Delete exactly the object that was judged."""
        meta = meta_of(obj)
        name, namespace = _place(obj)
        judged = Preconditions(str(meta["uid"]), str(meta["resourceVersion"]))
        try:
            await self._engine.delete(
                kind, name, namespace=namespace, preconditions=judged, policy=policy
            )
        except ApiError as error:
            if error.code != 404:
                raise
        else:
            _log.info("garbage_collected", resource=kind.id, namespace=namespace, name=name)


def _place(obj: Obj) -> tuple[str, str]:
    """Return name and namespace."""
    meta = meta_of(obj)
    return str(meta["name"]), str(meta.get("namespace") or "")


def _key_of(kind: Kind, obj: Obj) -> Key:
    name, namespace = _place(obj)
    return encode_key(kind.id, namespace, name)


def _without(uids: set[str]) -> Callable[[Obj], None]:
    """Return a change that takes the references to these owners off."""

    def change(obj: Obj) -> None:
        references = meta_of(obj).get("ownerReferences") or []
        meta_of(obj)["ownerReferences"] = [r for r in references if r.get("uid") not in uids]

    return change


def _unblock(obj: Obj) -> None:
    """Let an object hold up none of its owners."""
    for reference in meta_of(obj).get("ownerReferences") or []:
        if reference.get("blockOwnerDeletion"):
            reference["blockOwnerDeletion"] = False
