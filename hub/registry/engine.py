"""The generic engine: create, get, list, watch, update, patch and delete over any kind.

Owns the order of steps of a write (k8s.io/apiserver/pkg/registry/generic/registry/store.go) and the
translation of store errors into API errors. HTTP handlers and controllers use the same verbs; it
knows neither HTTP nor a particular kind.

Every write is optimistic: read, compute, commit expecting the revision that was read; when another
write got in between and the caller named no resourceVersion, it is computed again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import TypeAlias

from hub.clock import Clock
from hub.meta import Obj
from hub.meta.codec.json import decode, draft, encode
from hub.meta.errors import (
    ApiError,
    Cause,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
)
from hub.meta.names import generate_name
from hub.meta.patch import Patch
from hub.meta.requirement import Operator
from hub.meta.selectors import LabelSelector
from hub.registry import checks, objects
from hub.registry.call import NO_PRECONDITIONS, SYSTEM_CALL, Call, Deleted, Preconditions
from hub.registry.catalog import Catalog
from hub.registry.deletion import Policy, finalizers_for
from hub.registry.forgotten import Forgotten
from hub.registry.kind import Kind, Served
from hub.registry.labelindex import LabelIndex
from hub.registry.objects import meta_of
from hub.registry.races import Races
from hub.registry.strategy import Admission, Occasion
from hub.registry.watch import WatchHub
from hub.store import (
    Conflict,
    Draft,
    Exists,
    Index,
    Key,
    NotFound,
    Op,
    Revision,
    Store,
    Stored,
    StoreError,
    Write,
    decode_index,
    decode_key,
    encode_key,
)
from hub.store import (
    prefix as key_prefix,
)

_BREATH = 50
"""How many objects a long look at a kind decodes (1 ms) before others have their turn."""
Change: TypeAlias = Callable[[Obj], Obj | None]
Companions: TypeAlias = Callable[[Obj], Sequence[tuple[Kind, Obj]]]
"""Returns what a new object never is without."""

_GENERATED_NAME_ATTEMPTS = 8


class Engine:
    """The verbs. All methods are for the event loop's thread."""

    def __init__(
        self, store: Store, catalog: Catalog, clock: Clock, *, sealed: Iterable[str] = ()
    ) -> None:
        """Take the parts; `sealed` names resources (`Kind.id`) sealed beside those that always are.

        What lies there already is sealed with its next write.
        """
        self.store, self.catalog, self.clock = store, catalog, clock
        self._sealed = frozenset(sealed)
        self._races = Races()
        self.watches = WatchHub(catalog.by_id)
        self._admissions: dict[str, list[Admission]] = {}
        self._reviews: dict[str, list[Admission]] = {}
        self._companions: dict[str, Companions] = {}
        self._namespaces = catalog.find("", "v1", "namespaces")
        self._label_indexes: dict[tuple[str, str], LabelIndex] = {}
        for kind in catalog:
            for label in kind.indexed_labels:
                index = LabelIndex(kind, label, store)
                self._label_indexes[kind.id, label] = index
                self.watches.listen(kind, index.follow)
        self.forgotten = Forgotten(catalog, self.watches, store.revision)
        store.subscribe(self.watches.show)

    def admit(self, kind: Kind, admission: Admission) -> None:
        """Run `admission` on every create and update of `kind`, before its schema is checked."""
        self._admissions.setdefault(kind.id, []).append(admission)

    def review(self, kind: Kind, admission: Admission) -> None:
        """Run `admission`, which changes nothing, once the schema has been checked."""
        self._reviews.setdefault(kind.id, []).append(admission)

    def accompany(self, kind: Kind, companions: Companions) -> None:
        """Store what `companions` returns for each new object of `kind`, in the same commit."""
        self._companions[kind.id] = companions

    # ---------------------------------------------------------------- reading

    def find(self, kind: Kind, name: str, namespace: str = "") -> Stored | None:
        """Return the object as stored, None if there is none."""
        try:
            key = encode_key(kind.id, namespace, name)
        except ValueError:  # a name that no object can have
            return None
        return self.store.get(key)

    def candidates(self, kind: Kind, selector: LabelSelector) -> list[Key] | None:
        """Return a superset of what `selector` selects, None when only a scan can tell."""
        for wanted in selector.requirements:
            index = self._label_indexes.get((kind.id, wanted.key))
            if index is not None and wanted.operator is Operator.EQUALS:
                return index.keys(wanted.values[0])
        return None

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        """Return the object in its stored version.

        :raises ApiError: 404
        """
        obj = self.peek(kind, name, namespace)
        if obj is None:
            raise not_found(kind.resource, name)
        return obj

    def peek(self, kind: Kind, name: str, namespace: str = "") -> Obj | None:
        """Return the object in its stored version, None if there is none."""
        stored = self.find(kind, name, namespace)
        return None if stored is None else decode(self.store.read(stored))

    def each(
        self, kind: Kind, namespace: str = "", selector: LabelSelector | None = None
    ) -> Iterator[Obj]:
        """Yield every object of a kind, in a namespace when given, in key order, as stored."""

        def match(_key: Key, index: Index) -> bool:
            return selector is None or selector.matches(decode_index(index)[0])

        found = None if selector is None else match
        page = self.store.scan(key_prefix(kind.id, namespace or None), match=found)
        for stored in page.entries:
            yield decode(self.store.read(stored))

    def names(self, kind: Kind, namespace: str = "") -> list[str]:
        """Return the names of a cluster-scoped kind, or of one in a namespace; nothing is read."""
        return [decode_key(key)[2] for key in self._keys(kind, namespace)]

    async def paced(self, kind: Kind, namespace: str = "") -> AsyncIterator[Obj]:
        """Yield the objects of a kind as `each` does, giving the loop back now and then.

        For controllers' looks at everything: requests are served between its slices, so each object
        is what it is when its turn comes, and those that are gone by then are left out.
        """
        for count, key in enumerate(self._keys(kind, namespace)):
            if count % _BREATH == 0:
                await asyncio.sleep(0)
            stored = self.store.get(key)
            if stored is not None:
                yield decode(self.store.read(stored))

    def _keys(self, kind: Kind, namespace: str) -> list[Key]:
        prefix = key_prefix(kind.id, namespace or None)
        return [stored.key for stored in self.store.scan(prefix, is_counted=False).entries]

    # ---------------------------------------------------------------- create

    async def create(
        self, served: Served | Kind, obj: Obj, *, namespace: str = "", call: Call = SYSTEM_CALL
    ) -> Obj:
        """Store a new object, given in the view of `served`; return it in its stored version.

        :raises ApiError: 400, 403, 404 (namespace), 409 (taken), 422
        """
        served = _served(served)
        kind = served.kind
        new = checks.incoming(served, call.fields.read(served, obj), namespace)
        meta = meta_of(new)
        refusal = kind.strategy.creation_refusal()
        if refusal:
            raise forbidden(served.resource, str(meta.get("name") or ""), refusal)
        if meta.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        prefix = meta.get("generateName", "") if not meta.get("name") else ""
        self._check_namespace(kind, meta)
        for attempt in range(_GENERATED_NAME_ATTEMPTS if prefix else 1):
            if prefix:
                meta["name"] = generate_name(prefix, self.clock.token)
            ready = self._prepare_create(kind, new, call)
            try:
                return await self._write(
                    kind, Op.CREATE, ready, None, call, beside=self._beside(kind, ready)
                )
            except Exists as error:
                if not prefix or attempt == _GENERATED_NAME_ATTEMPTS - 1:
                    raise self._taken(served, meta) from error
        raise AssertionError("the loop above returns or raises")

    def _taken(self, served: Served, meta: Obj) -> ApiError:
        """Return the refusal of a name that another object has, perhaps not for long."""
        name = str(meta["name"])
        present = self.peek(served.kind, name, str(meta.get("namespace") or ""))
        is_going = present is not None and objects.is_deleting(present)
        return already_exists(served.resource, name, is_going=is_going)

    def _beside(self, kind: Kind, obj: Obj) -> list[Write]:
        """Return the writes of a new object's companions that are not there yet."""
        companions = self._companions.get(kind.id)
        writes = []
        for other, companion in companions(obj) if companions is not None else ():
            ready = self._prepare_create(other, companion, SYSTEM_CALL)
            write = self._write_of(other, Op.CREATE, ready, None)
            if self.store.get(write.key) is None:
                writes.append(write)
        return writes

    def _prepare_create(self, kind: Kind, obj: Obj, call: Call) -> Obj:
        new = decode(encode(obj))
        occasion = Occasion(call.user, self.clock)
        if kind.has_status:
            new.pop("status", None)
        objects.stamp_new(kind, new, self.clock)
        kind.strategy.prepare_create(new, occasion)
        kind.strategy.default(new)
        self._refuse(kind, new, checks.metadata_causes(kind, new))
        for admission in self._admissions.get(kind.id, ()):
            admission(new, None, occasion)
        self._refuse(kind, new, kind.strategy.validate(new))
        for admission in self._reviews.get(kind.id, ()):
            admission(new, None, occasion)
        return new

    @staticmethod
    def _refuse(kind: Kind, obj: Obj, causes: list[Cause]) -> None:
        if causes:
            name = str(meta_of(obj).get("name") or "")
            raise invalid(kind.storage.group, kind.kind, name, causes)

    def _check_namespace(self, kind: Kind, meta: Obj) -> None:
        if not kind.is_namespaced or self._namespaces is None:
            return
        namespace = str(meta.get("namespace") or "")
        found = self.peek(self._namespaces.kind, namespace)
        if found is None:
            raise not_found(self._namespaces.resource, namespace)
        if objects.is_deleting(found):
            detail = (
                f"unable to create new content in namespace {namespace} "
                "because it is being terminated"
            )
            error = forbidden(kind.resource, str(meta.get("name") or "Unknown"), detail)
            message = f"namespace {namespace} is being terminated"
            error.causes = (Cause("NamespaceTerminating", message, "metadata.namespace"),)
            raise error

    # ---------------------------------------------------------------- update

    async def update(
        self,
        served: Served | Kind,
        obj: Obj,
        *,
        name: str = "",
        namespace: str = "",
        subresource: str = "",
        call: Call = SYSTEM_CALL,
    ) -> Obj:
        """Replace an object, given in the view of `served`; return it in its stored version.

        What `obj` holds is the engine's from then on.

        :raises ApiError: 400, 403, 404, 409, 422
        """
        served = _served(served)
        incoming = checks.incoming(served, call.fields.read(served, obj), namespace)
        if name:
            checks.check_name(incoming, name)
        meta = meta_of(incoming)
        meta["name"] = name = name or str(meta.get("name", ""))
        revision = str(meta.get("resourceVersion") or "")
        if not revision and served.kind.needs_revision:
            raise checks.missing_revision(served, name)
        wanted = Preconditions(str(meta.get("uid") or ""), revision)
        # the first try may keep what was sent, further ones need it as it was
        tries = chain((incoming,), map(decode, repeat(encode(incoming))))
        return await self._guaranteed(
            served,
            name,
            namespace=namespace or str(meta.get("namespace") or ""),
            make=lambda _stored: next(tries),
            subresource=subresource,
            call=call,
            preconditions=wanted,
        )

    async def patch(
        self,
        served: Served,
        patch: Patch,
        *,
        name: str,
        namespace: str = "",
        subresource: str = "",
        call: Call = SYSTEM_CALL,
    ) -> Obj:
        """Apply a patch, in the view of `served`; return the object as stored.

        A uid or resourceVersion that the patch sets is a precondition (409).
        """

        def apply(document: bytes) -> Obj:
            old = decode(document)
            shown = call.fields.read_patched(served, patch(served.view.from_storage(old)))
            patched = checks.patched(served, shown, namespace)
            checks.check_name(patched, name)
            meta = meta_of(patched)
            wanted = Preconditions(
                str(meta.get("uid") or ""), str(meta.get("resourceVersion") or "")
            )
            self._check_preconditions(served, old, wanted)
            return patched

        return await self._guaranteed(
            served,
            name,
            namespace=namespace,
            make=apply,
            subresource=subresource,
            call=call,
            preconditions=Preconditions(),
        )

    async def modify(
        self,
        kind: Kind,
        name: str,
        change: Change,
        *,
        namespace: str = "",
        subresource: str = "",
        call: Call = SYSTEM_CALL,
    ) -> Obj:
        """Let `change` alter a private copy of the object, in place or by returning another.

        For controllers.
        """

        def make(document: bytes) -> Obj:
            copy = decode(document)
            new = change(copy)
            return copy if new is None else new

        return await self._guaranteed(
            _served(kind),
            name,
            namespace=namespace,
            make=make,
            subresource=subresource,
            call=call,
            preconditions=Preconditions(),
        )

    async def _guaranteed(
        self,
        served: Served,
        name: str,
        *,
        namespace: str,
        make: Callable[[bytes], Obj],
        subresource: str,
        call: Call,
        preconditions: Preconditions,
    ) -> Obj:
        """Store what `make` makes of the stored document, again when another write came first."""
        kind = served.kind

        async def attempt() -> Obj:
            stored = self.find(kind, name, namespace)
            if stored is None:
                raise not_found(served.resource, name)
            document = self.store.read(stored)
            old = decode(document)
            self._check_preconditions(served, old, preconditions)
            new = make(document)
            if subresource:
                wanted, new = new, decode(document)
                occasion = Occasion(call.user, self.clock)
                kind.strategy.apply_subresource(subresource, new, wanted, occasion)
                if not kind.is_custom:
                    objects.take_metadata(new, wanted)
            new = self._prepare_update(kind, new, old, subresource=subresource, call=call)
            if not objects.differs(new, old):
                call.note_found(kind, old, stored.revision)
                return old
            try:
                return await self._commit_update(kind, new, old, stored, call)
            except NotFound as error:
                raise not_found(served.resource, name) from error

        return await self._races.settle((kind.id, namespace, name), attempt)

    @staticmethod
    def _check_preconditions(served: Served, old: Obj, wanted: Preconditions) -> None:
        meta = meta_of(old)
        name = str(meta["name"])
        if wanted.uid and wanted.uid != meta["uid"]:
            raise conflict(
                served.resource,
                name,
                f"Precondition failed: UID in precondition: {wanted.uid}, "
                f"UID in object meta: {meta['uid']}",
            )
        if wanted.revision and wanted.revision != meta["resourceVersion"]:
            raise conflict(served.resource, name)

    def _prepare_update(
        self, kind: Kind, new: Obj, old: Obj, *, subresource: str, call: Call
    ) -> Obj:
        occasion = Occasion(call.user, self.clock)
        if not subresource:
            objects.carry_over(new, old)
            if kind.has_status:
                new.pop("status", None)
                if "status" in old:
                    new["status"] = old["status"]
            kind.strategy.prepare_update(new, old, occasion)
        kind.strategy.default(new)
        causes: list[Cause] = []
        if not subresource:
            for admission in self._admissions.get(kind.id, ()):
                admission(new, old, occasion)
            objects.bump_generation(kind, new, old)
        if not subresource or not kind.is_custom:
            causes += checks.metadata_causes(kind, new)
        causes += kind.strategy.validate_change(new, old)
        self._refuse(kind, new, [*causes, *checks.finalizer_causes(new, old)])
        for admission in self._reviews.get(kind.id, ()) if not subresource else ():
            admission(new, old, occasion)
        return new

    async def _commit_update(
        self, kind: Kind, new: Obj, old: Obj, stored: Stored, call: Call
    ) -> Obj:
        meta = meta_of(new)
        is_free = objects.is_deleting(new) and not meta.get("finalizers")
        if is_free and kind.strategy.deletes_at_once(new):
            # as kube-apiserver: watchers see the object as it was, the caller what it wrote
            await self._write(kind, Op.DELETE, decode(encode(old)), stored.revision, call)
            return new
        if kind.strategy.is_renewal(new, old) and not call.is_dry_run:
            return self._renew(kind, new, stored)
        return await self._write(kind, Op.UPDATE, new, stored.revision, call)

    def _renew(self, kind: Kind, new: Obj, stored: Stored) -> Obj:
        pieces = _draft(new)
        index = objects.index_of(kind, new)
        try:
            revision = self.store.renew(stored.key, pieces, index, expect=stored.revision)
        except (Conflict, NotFound):
            raise
        except StoreError as error:
            raise checks.as_api_error(error) from error
        meta_of(new)["resourceVersion"] = str(revision)
        return new

    # ---------------------------------------------------------------- delete

    async def delete(
        self,
        served: Served | Kind,
        name: str,
        *,
        namespace: str = "",
        preconditions: Preconditions = NO_PRECONDITIONS,
        policy: Policy = "",
        call: Call = SYSTEM_CALL,
    ) -> Deleted:
        """Delete an object, or mark it when finalizers hold it.

        `policy` says what becomes of its dependents; a later one overrides an earlier.

        :raises ApiError: 403 (protected), 404, 409 (a precondition does not hold)
        """
        served = _served(served)
        kind = served.kind
        refusal = kind.strategy.deletion_refusal(name)
        if refusal:
            raise forbidden(served.resource, name, refusal)

        async def attempt() -> Deleted:
            stored = self.find(kind, name, namespace)
            if stored is None:
                raise not_found(served.resource, name)
            obj = decode(self.store.read(stored))
            self._check_preconditions(served, obj, preconditions)
            held = self._held(kind, obj, policy)
            if held is obj:
                call.note_found(kind, obj, stored.revision)
                return Deleted(obj, is_gone=False)
            op = Op.DELETE if held is None else Op.UPDATE
            try:
                obj = await self._write(kind, op, held or obj, stored.revision, call)
            except NotFound as error:
                raise not_found(served.resource, name) from error
            return Deleted(obj, is_gone=held is None)

        return await self._races.settle((kind.id, namespace, name), attempt)

    def _held(self, kind: Kind, obj: Obj, policy: Policy) -> Obj | None:
        """Return the object as it waits for finalizers: itself if it does already, None if none."""
        is_waiting = objects.is_deleting(obj)
        is_kept = not kind.strategy.deletes_at_once(obj)
        if is_kept and is_waiting:
            return obj
        present = meta_of(obj).get("finalizers") or []
        finalizers = present if kind.is_volatile else finalizers_for(policy, present)
        if not finalizers and not is_kept:
            return None
        if is_waiting and finalizers == present:
            return obj
        held = decode(encode(obj))
        meta_of(held)["finalizers"] = finalizers
        if not finalizers:
            del meta_of(held)["finalizers"]
        if not is_waiting:
            objects.begin_deletion(kind, held, self.clock)
        return held

    # ---------------------------------------------------------------- storing

    async def _write(
        self,
        kind: Kind,
        op: Op,
        obj: Obj,
        expect: Revision | None,
        call: Call,
        *,
        beside: Sequence[Write] = (),
    ) -> Obj:
        """Commit `obj`, and `beside` with it; return it with the revision it got."""
        write = self._write_of(kind, op, obj, expect)
        if call.is_dry_run:
            self._rehearse(op, write.key, obj)
            return obj
        try:
            revisions = await self.store.commit(write, *beside)
        except (Exists, Conflict, NotFound):
            raise
        except StoreError as error:
            raise checks.as_api_error(error) from error
        meta_of(obj)["resourceVersion"] = str(revisions[0])
        call.note(kind, revisions[-1])
        return obj

    def _rehearse(self, op: Op, key: Key, obj: Obj) -> None:
        found = self.store.get(key)
        if op is Op.CREATE and found is not None:
            raise Exists(key)
        if found is not None:
            meta_of(obj)["resourceVersion"] = str(found.revision)

    def _write_of(self, kind: Kind, op: Op, obj: Obj, expect: Revision | None) -> Write:
        meta = meta_of(obj)
        return Write(
            op=op,
            key=encode_key(kind.id, str(meta.get("namespace") or ""), str(meta["name"])),
            draft=_draft(obj),
            index=objects.index_of(kind, obj),
            expect=expect,
            sealed=kind.is_sealed or kind.id in self._sealed,
            volatile=kind.is_volatile,
        )


def _served(served: Served | Kind) -> Served:
    return served if isinstance(served, Served) else Served(served, served.storage)


def _draft(obj: Obj) -> Draft:
    head, tail = draft(obj)
    return Draft(head, tail)
