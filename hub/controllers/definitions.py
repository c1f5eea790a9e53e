"""CustomResourceDefinitions come to life: names accepted, kinds served, objects cleaned up.

Mirrors apiextensions-apiserver's naming, establishing, discovery and finalizing controllers. A kind
is in the catalogue before its definition says Established, follows every change of the definition
at once, and leaves with it; its watches end then, so that clients look again. The definitions of
the hub's own kinds get their conditions and change nothing.

After a restore definitions that were being deleted wait for the hold, as all that deletes does.
"""

import asyncio
import copy
import hashlib
from collections.abc import Collection
from dataclasses import dataclass

import structlog

from hub.meta import Obj
from hub.meta.codec.json import encode
from hub.meta.errors import ApiError
from hub.meta.timestamp import format_time
from hub.registry.catalog import Catalog
from hub.registry.crd.conditions import (
    FINALIZER,
    Naming,
    accept_names,
    is_true,
    note_names,
    set_condition,
)
from hub.registry.crd.custom import custom_kind
from hub.registry.engine import Engine
from hub.registry.hold import Hold
from hub.registry.kind import Kind, Served
from hub.registry.objects import is_deleting, meta_of
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain
from hub.store import Key, Op, decode_key
from hub.store import prefix as key_prefix

_log = structlog.get_logger("hub.controllers")
_WORKERS = 4
_AT_ONCE = 64
"""Deletions under way at a time: their commits share an fsync."""

_LOOK_AGAIN_S = 15.0
_BUILT_IN = ("BuiltIn", "the hub itself serves a resource of this name")


@dataclass(frozen=True, slots=True)
class _Live:
    """How a definition is served, to see changes."""

    form: bytes
    is_ending: bool


class Definitions:
    """Keeps the catalogue in step with the definitions.

    `kind` is CustomResourceDefinition, `own` the names of the definitions of built-in kinds.
    """

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        kind: Kind,
        *,
        own: Collection[str],
        hold: Hold,
    ) -> None:
        self._engine, self._catalog, self._kind, self._hold = engine, catalog, kind, hold
        self._own = frozenset(own)
        self._built_in = _names(catalog) - self._own
        self._live: dict[str, _Live] = {}
        self._names: dict[str, tuple[str, Obj]] = {}
        self._emptying: set[str] = set()
        self._held: set[str] = set()
        self._queue = Queue()
        engine.watches.listen(kind, self._changed)
        engine.watches.listen_to_all(self._content_changed)
        for definition in engine.each(kind):
            self._follow(definition)

    # ---------------------------------------------------------------- what is served

    def _changed(self, event: Event) -> None:
        if event.change.op is Op.DELETE:
            self._leave(event.name)
            group, _ = self._names.pop(event.name, ("", {}))
            # who waited for one of its names may have it now
            for name, (other, _) in self._names.items():
                if other == group:
                    self._queue.add(name)
            return
        self._follow(event.obj)
        self._queue.add(event.name)

    def _content_changed(self, event: Event) -> None:
        if event.change.op is Op.DELETE and event.kind.id in self._emptying:
            self._queue.add(event.kind.id)

    def _follow(self, definition: Obj) -> None:
        """Serve an established definition as it is now."""
        name = str(meta_of(definition)["name"])
        accepted = (definition.get("status") or {}).get("acceptedNames") or {}
        self._names[name] = (str(definition["spec"]["group"]), accepted)
        if is_true(definition, "Established") and self._may_serve(name):
            self._serve(name, definition)

    def _may_serve(self, name: str) -> bool:
        return name not in self._own and name not in self._built_in

    def _serve(self, name: str, definition: Obj) -> None:
        fresh, live = _live(definition), self._live.get(name)
        if live == fresh:
            return
        try:
            custom = custom_kind(definition)
        except (KeyError, TypeError, ValueError):  # stored by a hub that checked less: others go on
            _log.exception("kind_not_served", resource=name)
            return
        self._catalog.put(custom.kind, custom.served)
        self._live[name] = fresh
        if live is not None and live.form != fresh.form:
            self._engine.watches.close_kind(name)
        _log.info("kind_served", resource=name, is_new=live is None)

    def _leave(self, name: str) -> None:
        self._emptying.discard(name)
        if self._live.pop(name, None) is None:
            return
        self._catalog.drop(name)
        self._engine.watches.close_kind(name)
        _log.info("kind_gone", resource=name)

    def schema_of(self, served: Served) -> Obj | None:
        """Return the schema of a custom kind in a version, as its definition has it."""
        definition = self._engine.peek(self._kind, served.kind.id)
        for version in definition["spec"]["versions"] if definition is not None else ():
            if version["name"] == served.view.version:
                found: Obj = version["schema"]["openAPIV3Schema"]
                return found
        return None

    # ---------------------------------------------------------------- running

    async def settle(self) -> None:
        """Establish what is not established yet, before anybody asks."""
        for definition in list(self._engine.each(self._kind)):
            if not is_deleting(definition):
                await self._accept(str(meta_of(definition)["name"]), definition)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        for definition in self._engine.each(self._kind):
            name = str(meta_of(definition)["name"])
            if is_deleting(definition):
                self._held.add(name)
            else:
                self._queue.add(name)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(drain("definitions", self._queue, self.reconcile, workers=_WORKERS))
            await self._hold.wait()
            held, self._held = self._held, set()
            for name in held:
                self._queue.add(name)

    async def reconcile(self, name: str) -> float | None:
        """Bring one definition's status in order, or empty and release it."""
        definition = self._engine.peek(self._kind, name)
        if definition is None or name in self._held:
            return None
        if is_deleting(definition):
            return await self._finish(name, definition)
        await self._accept(name, definition)
        return None

    async def _accept(self, name: str, definition: Obj) -> None:
        naming = self._naming(name, definition)
        now = format_time(self._engine.clock.now())
        wanted = {**definition, "status": copy.deepcopy(definition.get("status") or {})}
        note_names(wanted, naming, now)
        # nobody else gets them while this is being written
        self._names[name] = (str(definition["spec"]["group"]), naming.accepted)
        if is_true(wanted, "Established") and self._may_serve(name):
            self._serve(name, wanted)
        if wanted["status"] != definition.get("status"):
            await self._engine.modify(
                self._kind, name, lambda obj: note_names(obj, naming, now), subresource="status"
            )

    def _naming(self, name: str, definition: Obj) -> Naming:
        if name in self._built_in:
            return Naming({"plural": "", "kind": ""}, _BUILT_IN)
        others = (
            accepted
            for other, (group, accepted) in self._names.items()
            if group == definition["spec"]["group"] and other != name
        )
        return accept_names(definition, others)

    # ---------------------------------------------------------------- cleaning up

    async def _finish(self, name: str, definition: Obj) -> float | None:
        if FINALIZER not in (meta_of(definition).get("finalizers") or ()):
            return None  # others hold it
        kind = self._catalog.by_id(name) if self._may_serve(name) else None
        if kind is not None:
            self._emptying.add(name)
            await self._note(name, "True", "InstanceDeletionInProgress", _IN_PROGRESS)
            if await self._empty(kind):
                return _LOOK_AGAIN_S
        await self._engine.modify(self._kind, name, self._release)
        return None

    async def _note(self, name: str, status: str, reason: str, text: str) -> None:
        now = format_time(self._engine.clock.now())
        await self._engine.modify(
            self._kind,
            name,
            lambda obj: set_condition(
                obj, now, "Terminating", status=status, reason=reason, text=text
            ),
            subresource="status",
        )

    async def _empty(self, kind: Kind) -> bool:
        """Delete all objects of a kind; return whether some are left, held by finalizers."""
        keys = [entry.key for entry in self._engine.store.scan(key_prefix(kind.id, None)).entries]
        left: list[bool] = []
        for start in range(0, len(keys), _AT_ONCE):
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._remove(kind, key))
                    for key in keys[start : start + _AT_ONCE]
                ]
            left += [task.result() for task in tasks]
        return any(left)

    async def _remove(self, kind: Kind, key: Key) -> bool:
        _, namespace, name = decode_key(key)
        try:
            deleted = await self._engine.delete(
                kind, name, namespace=namespace, policy="Background"
            )
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return not deleted.is_gone

    @staticmethod
    def _release(obj: Obj) -> None:
        meta = meta_of(obj)
        meta["finalizers"] = [f for f in meta.get("finalizers") or () if f != FINALIZER]


_IN_PROGRESS = "CustomResource deletion is in progress"


def _names(catalog: Catalog) -> frozenset[str]:
    """Return what definitions of the kinds would be named, in every group they are served in."""
    return frozenset(f"{kind.plural}.{view.group}" for kind in catalog for view in kind.views)


def _live(definition: Obj) -> _Live:
    """Return what of a definition decides how its kind is served."""
    names = definition["status"]["acceptedNames"]
    parts = encode([definition["spec"], names, meta_of(definition).get("generation")])
    return _Live(hashlib.sha256(parts).digest(), is_true(definition, "Terminating"))
