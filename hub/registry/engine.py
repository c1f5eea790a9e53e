"""The generic engine: create, get, list, watch, update, patch and delete over any kind.

Owns the order of steps of a write (k8s.io/apiserver/pkg/registry/generic/registry/store.go) and the
translation of store errors into API errors. HTTP handlers and controllers use the same verbs; it
knows neither HTTP nor a particular kind.

Every write is optimistic: read, compute, commit expecting the revision that was read; when another
write got in between and the caller named no resourceVersion, it is computed again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from hub.auth.user import User
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
    internal_error,
    invalid,
    not_found,
    storage_full,
    unavailable,
)
from hub.meta.names import generate_name
from hub.meta.patch import merge_patch
from hub.meta.selectors import LabelSelector
from hub.registry import objects
from hub.registry.catalog import Catalog
from hub.registry.kind import Kind, Served
from hub.registry.objects import meta_of
from hub.registry.strategy import Admission, Occasion
from hub.registry.watch import WatchHub
from hub.store import (
    Closed,
    Conflict,
    Draft,
    Exists,
    Key,
    MapFull,
    NotFound,
    Op,
    Revision,
    Store,
    Stored,
    StoreError,
    Write,
    encode_key,
)
from hub.store import (
    prefix as key_prefix,
)

Change: TypeAlias = Callable[[Obj], Obj | None]
SYSTEM = User("system:hublet", ("system:masters",))
_ATTEMPTS = 16
_GENERATED_NAME_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls, and how: `is_dry_run` goes through everything but the commit."""

    user: User = SYSTEM
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What must hold of the object for a write to go through; "" = not asked."""

    uid: str = ""
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a deletion came to: the object's last state, and whether it is gone or waits for
    finalizers.
    """

    obj: Obj
    is_gone: bool


SYSTEM_CALL = Call()


class Engine:
    """The verbs. All methods are for the event loop's thread."""

    def __init__(self, store: Store, catalog: Catalog, clock: Clock) -> None:
        self.store, self.catalog, self.clock = store, catalog, clock
        self.watches = WatchHub(catalog.by_id)
        self._admissions: dict[str, list[Admission]] = {}
        self._namespaces = catalog.find("", "v1", "namespaces")
        store.subscribe(self.watches.show)

    def admit(self, kind: Kind, admission: Admission) -> None:
        """Run `admission` on every create and update of `kind`."""
        self._admissions.setdefault(kind.id, []).append(admission)

    # ---------------------------------------------------------------- reading

    def find(self, kind: Kind, name: str, namespace: str = "") -> Stored | None:
        """Return the object as stored, None if there is none."""
        return self.store.get(encode_key(kind.id, namespace, name))

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
        """Yield every object of a kind (in a namespace, when given) in key order, in its stored
        version.
        """
        match = None
        if selector is not None:
            from hub.store import decode_index  # noqa: PLC0415

            def match(_key: Key, index: object) -> bool:
                return selector.matches(decode_index(index)[0])

        page = self.store.scan(key_prefix(kind.id, namespace or None), match=match)
        for stored in page.entries:
            yield decode(self.store.read(stored))

    # ---------------------------------------------------------------- create

    async def create(
        self, served: Served | Kind, obj: Obj, *, namespace: str = "", call: Call = SYSTEM_CALL
    ) -> Obj:
        """Store a new object, given in the view of `served`; return it in its stored version.

        :raises ApiError: 400, 403, 404 (namespace), 409 (taken), 422
        """
        served = _served(served)
        kind = served.kind
        new = self._incoming(served, obj, namespace)
        meta = meta_of(new)
        if meta.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        prefix = meta.get("generateName", "") if not meta.get("name") else ""
        self._check_namespace(kind, str(meta.get("namespace", "")))
        for attempt in range(_GENERATED_NAME_ATTEMPTS if prefix else 1):
            if prefix:
                meta["name"] = generate_name(prefix, self.clock.token)
            ready = self._prepare_create(kind, new, call)
            try:
                return await self._write(kind, Op.CREATE, ready, None, call)
            except Exists as error:
                if not prefix or attempt == _GENERATED_NAME_ATTEMPTS - 1:
                    name = str(meta["name"])
                    raise already_exists(served.resource, name) from error
        raise AssertionError("the loop above returns or raises")

    def _prepare_create(self, kind: Kind, obj: Obj, call: Call) -> Obj:
        new = decode(encode(obj))
        occasion = Occasion(call.user, self.clock)
        if kind.has_status:
            new.pop("status", None)
        objects.stamp_new(kind, new, self.clock)
        kind.strategy.prepare_create(new, occasion)
        kind.strategy.default(new)
        self._validate_names(kind, new)
        for admission in self._admissions.get(kind.id, ()):
            admission(new, None, occasion)
        self._refuse(kind, new, kind.strategy.validate(new))
        return new

    def _validate_names(self, kind: Kind, obj: Obj) -> None:
        name = meta_of(obj).get("name") or ""
        if not name:
            message = "Required value: name or generateName is required"
            causes = [Cause("FieldValueRequired", message, "metadata.name")]
        else:
            causes = [
                Cause("FieldValueInvalid", f'Invalid value: "{name}": {text}', "metadata.name")
                for text in kind.strategy.name_problems(str(name))
            ]
        self._refuse(kind, obj, causes)

    @staticmethod
    def _refuse(kind: Kind, obj: Obj, causes: list[Cause]) -> None:
        if causes:
            name = str(meta_of(obj).get("name") or "")
            raise invalid(kind.storage.group, kind.kind, name, causes)

    def _check_namespace(self, kind: Kind, namespace: str) -> None:
        if not kind.is_namespaced or self._namespaces is None:
            return
        found = self.peek(self._namespaces.kind, namespace)
        if found is None:
            raise not_found(self._namespaces.resource, namespace)
        if objects.is_deleting(found):
            detail = (
                f"unable to create new content in namespace {namespace} "
                "because it is being terminated"
            )
            error = forbidden(kind.resource, "", detail)
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

        :raises ApiError: 400, 403, 404, 409, 422
        """
        served = _served(served)
        incoming = self._incoming(served, obj, namespace)
        meta = meta_of(incoming)
        if name and meta.get("name") not in (None, "", name):
            raise bad_request(
                f"the name of the object ({meta['name']}) does not match the name on the URL ({name})"
            )
        meta["name"] = name = name or str(meta.get("name", ""))
        revision = str(meta.get("resourceVersion") or "")
        if not revision and served.kind.is_custom:
            message = "Invalid value: 0: must be specified for an update"
            cause = Cause("FieldValueInvalid", message, "metadata.resourceVersion")
            raise invalid(served.view.group, served.kind.kind, name, [cause])
        wanted = Preconditions(str(meta.get("uid") or ""), revision)
        return await self._guaranteed(
            served,
            name,
            namespace=namespace or str(meta.get("namespace") or ""),
            change=lambda _old: decode(encode(incoming)),
            subresource=subresource,
            call=call,
            preconditions=wanted,
        )

    async def patch(
        self,
        served: Served,
        patch: Obj,
        *,
        name: str,
        namespace: str = "",
        subresource: str = "",
        call: Call = SYSTEM_CALL,
    ) -> Obj:
        """Apply an RFC 7396 merge patch, in the view of `served`; return the object in its stored
        version.

        ``metadata.uid`` and ``metadata.resourceVersion`` inside the patch are preconditions (409).
        """
        inside = patch.get("metadata")
        inside = inside if isinstance(inside, dict) else {}
        wanted = Preconditions(
            str(inside.get("uid") or ""), str(inside.get("resourceVersion") or "")
        )

        def apply(old: Obj) -> Obj:
            shown = served.view.from_storage(old)
            return served.view.to_storage(self._stamp(served, merge_patch(shown, patch)))

        return await self._guaranteed(
            served,
            name,
            namespace=namespace,
            change=apply,
            subresource=subresource,
            call=call,
            preconditions=wanted,
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
        """Let `change` alter a private copy of the object (in place, or by returning another); for
        controllers.
        """
        return await self._guaranteed(
            _served(kind),
            name,
            namespace=namespace,
            change=change,
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
        change: Change,
        subresource: str,
        call: Call,
        preconditions: Preconditions,
    ) -> Obj:
        kind = served.kind
        for _attempt in range(_ATTEMPTS):
            stored = self.find(kind, name, namespace)
            if stored is None:
                raise not_found(served.resource, name)
            old = decode(self.store.read(stored))
            self._check_preconditions(served, old, preconditions)
            copy = decode(encode(old))
            new = change(copy)
            new = self._prepare_update(
                kind, copy if new is None else new, old, subresource=subresource, call=call
            )
            if not objects.differs(new, old):
                return old
            try:
                return await self._commit_update(kind, new, old, stored, call)
            except Conflict:
                # only an outdated read: a stale resourceVersion of the caller fails at the next check
                continue
            except NotFound as error:
                raise not_found(served.resource, name) from error
        raise conflict(served.resource, name)

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
        if subresource:
            wanted, new = new, decode(encode(old))
            kind.strategy.apply_subresource(subresource, new, wanted, occasion)
        else:
            objects.carry_over(new, old)
            if kind.has_status:
                new.pop("status", None)
                if "status" in old:
                    new["status"] = old["status"]
            kind.strategy.prepare_update(new, old, occasion)
        kind.strategy.default(new)
        if not subresource:
            objects.bump_generation(kind, new, old)
            for admission in self._admissions.get(kind.id, ()):
                admission(new, old, occasion)
        causes = [*kind.strategy.validate(new), *kind.strategy.validate_update(new, old)]
        self._refuse(kind, new, [*causes, *_finalizer_problems(new, old)])
        return new

    async def _commit_update(
        self, kind: Kind, new: Obj, old: Obj, stored: Stored, call: Call
    ) -> Obj:
        meta = meta_of(new)
        if objects.is_deleting(new) and not meta.get("finalizers"):
            if kind.strategy.deletes_at_once(new):
                return await self._write(kind, Op.DELETE, new, stored.revision, call)
        if kind.strategy.is_renewal(new, old) and not call.is_dry_run:
            return self._renew(kind, new, stored)
        return await self._write(kind, Op.UPDATE, new, stored.revision, call)

    def _renew(self, kind: Kind, new: Obj, stored: Stored) -> Obj:
        pieces = _draft(new)
        index = objects.index_of(kind, new)
        revision = self.store.renew(stored.key, pieces, index, expect=stored.revision)
        meta_of(new)["resourceVersion"] = str(revision)
        return new

    # ---------------------------------------------------------------- delete

    async def delete(
        self,
        served: Served | Kind,
        name: str,
        *,
        namespace: str = "",
        preconditions: Preconditions = Preconditions(),
        call: Call = SYSTEM_CALL,
    ) -> Deleted:
        """Delete an object, or mark it when finalizers hold it.

        :raises ApiError: 404, 409 (a precondition does not hold)
        """
        served = _served(served)
        kind = served.kind
        for _attempt in range(_ATTEMPTS):
            stored = self.find(kind, name, namespace)
            if stored is None:
                raise not_found(served.resource, name)
            obj = decode(self.store.read(stored))
            self._check_preconditions(served, obj, preconditions)
            is_held = bool(meta_of(obj).get("finalizers"))
            is_held = is_held or not kind.strategy.deletes_at_once(obj)
            if is_held and objects.is_deleting(obj):
                return Deleted(obj, is_gone=False)
            if is_held:
                objects.begin_deletion(kind, obj, self.clock)
            op = Op.UPDATE if is_held else Op.DELETE
            try:
                obj = await self._write(kind, op, obj, stored.revision, call)
            except (Conflict, NotFound):
                continue
            return Deleted(obj, is_gone=not is_held)
        raise conflict(served.resource, name)

    # ---------------------------------------------------------------- storing

    def _incoming(self, served: Served, obj: Obj, namespace: str) -> Obj:
        """Return the caller's object as it would be stored, its envelope checked against the URL."""
        kind = served.kind
        self._check_envelope(served, obj)
        new = served.view.to_storage(self._stamp(served, obj))
        meta = meta_of(new)
        if not kind.is_namespaced:
            meta.pop("namespace", None)
            return new
        given = meta.get("namespace")
        if namespace and given not in (None, "", namespace):
            raise bad_request(
                f"the namespace of the provided object does not match the namespace sent on "
                f"the request ({given} != {namespace})"
            )
        meta["namespace"] = namespace or given or ""
        return new

    @staticmethod
    def _check_envelope(served: Served, obj: Obj) -> None:
        kind = obj.get("kind", served.kind.kind)
        version = obj.get("apiVersion", served.view.api_version)
        if kind != served.kind.kind:
            raise bad_request(
                f"the kind in the data ({kind}) does not match the expected kind "
                f"({served.kind.kind})"
            )
        if version != served.view.api_version:
            raise bad_request(
                f"the API version in the data ({version}) does not match the expected API version "
                f"({served.view.api_version})"
            )
        if not isinstance(obj.get("metadata", {}), dict):
            raise bad_request("metadata: must be an object")

    @staticmethod
    def _stamp(served: Served, obj: Obj) -> Obj:
        """Return `obj` with its type and a metadata of its own, type fields first as kube writes
        them.
        """
        rest = {k: v for k, v in obj.items() if k not in ("apiVersion", "kind", "metadata")}
        return {
            "apiVersion": served.view.api_version,
            "kind": served.kind.kind,
            "metadata": dict(obj.get("metadata") or {}),
            **rest,
        }

    async def _write(
        self, kind: Kind, op: Op, obj: Obj, expect: Revision | None, call: Call
    ) -> Obj:
        """Commit `obj`; return it with the revision it got."""
        meta = meta_of(obj)
        key = encode_key(kind.id, str(meta.get("namespace") or ""), str(meta["name"]))
        if call.is_dry_run:
            self._rehearse(op, key, obj)
            return obj
        write = Write(
            op=op,
            key=key,
            draft=_draft(obj),
            index=objects.index_of(kind, obj),
            expect=expect,
            sealed=kind.is_sealed,
            volatile=kind.is_volatile,
        )
        try:
            (revision,) = await self.store.commit(write)
        except (Exists, Conflict, NotFound):
            raise
        except StoreError as error:
            raise _as_api_error(error) from error
        meta["resourceVersion"] = str(revision)
        return obj

    def _rehearse(self, op: Op, key: Key, obj: Obj) -> None:
        found = self.store.get(key)
        if op is Op.CREATE and found is not None:
            raise Exists(key)
        if found is not None:
            meta_of(obj)["resourceVersion"] = str(found.revision)


def _served(served: Served | Kind) -> Served:
    return served if isinstance(served, Served) else Served(served, served.storage)


def _draft(obj: Obj) -> Draft:
    head, tail = draft(obj)
    return Draft(head, tail)


def _finalizer_problems(new: Obj, old: Obj) -> list[Cause]:
    """Return the finalizers that were added to an object being deleted."""
    if not objects.is_deleting(old):
        return []
    added = [
        f
        for f in meta_of(new).get("finalizers") or []
        if f not in (meta_of(old).get("finalizers") or [])
    ]
    if not added:
        return []
    shown = ", ".join(f'"{f}"' for f in added)
    message = (
        "Forbidden: no new finalizers can be added if the object is being deleted, "
        f"found new finalizers []string{{{shown}}}"
    )
    return [Cause("FieldValueForbidden", message, "metadata.finalizers")]


def _as_api_error(error: StoreError) -> ApiError:
    """Translate what the store refuses into what a client understands."""
    if isinstance(error, MapFull):
        return storage_full(f"the store cannot take writes now: {error}; reads go on")
    if isinstance(error, Closed):
        return unavailable("the hub is stopping")
    return internal_error(str(error))
