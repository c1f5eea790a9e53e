"""Metadata of stored objects: reading it, stamping it, comparing it.

Pure helpers on plain objects in their stored version; mirrors
k8s.io/apiserver/pkg/registry/rest/{create,update,meta}.go.
"""

from hub.clock import Clock
from hub.meta import Obj
from hub.meta.timestamp import format_time
from hub.registry.kind import Kind
from hub.store import Index, encode_index

_SERVER_OWNED = ("uid", "creationTimestamp", "generation", "selfLink")
_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")


def meta_of(obj: Obj) -> Obj:
    """Return the object's metadata, creating it when absent."""
    meta = obj.setdefault("metadata", {})
    if not isinstance(meta, dict):
        obj["metadata"] = meta = {}
    return meta


def index_of(kind: Kind, obj: Obj) -> Index:
    """Return the index block: what selectors may ask of the object without decoding it."""
    labels = meta_of(obj).get("labels") or {}
    return encode_index(labels, kind.strategy.fields(obj))


def stamp_new(kind: Kind, obj: Obj, clock: Clock) -> None:
    """Give a new object its uid, creation time and generation; drop what clients may not set."""
    meta = meta_of(obj)
    for name in (*_SERVER_OWNED, *_DELETION, "resourceVersion"):
        meta.pop(name, None)
    meta["uid"] = clock.uid()
    meta["creationTimestamp"] = format_time(clock.now())
    if kind.has_generation:
        meta["generation"] = 1
    _drop_empty(meta)


def carry_over(new: Obj, old: Obj) -> None:
    """Keep what no update may change: uid, creation, deletion, generation."""
    meta, before = meta_of(new), meta_of(old)
    for name in (*_SERVER_OWNED, *_DELETION):
        meta.pop(name, None)
        if name in before:
            meta[name] = before[name]
    meta["name"] = before["name"]
    if "namespace" in before:
        meta["namespace"] = before["namespace"]
    _drop_empty(meta)


def take_metadata(new: Obj, wanted: Obj) -> None:
    """Take what a writer may say in metadata, as a write to a built-in kind's subresource does.

    Only custom resources keep metadata from those who may write status alone
    (k8s.io/kubernetes/pkg/registry/core/namespace/strategy.go, namespaceStatusStrategy).
    """
    meta, asked = meta_of(new), meta_of(wanted)
    for name in _WRITTEN:
        meta.pop(name, None)
        if name in asked:
            meta[name] = asked[name]
    _drop_empty(meta)


_WRITTEN = ("labels", "annotations", "finalizers", "ownerReferences")


def _drop_empty(meta: Obj) -> None:
    for name in (*_WRITTEN, "managedFields"):
        if name in meta and not meta[name]:
            del meta[name]


def is_deleting(obj: Obj) -> bool:
    """Whether deletion has begun."""
    return bool(meta_of(obj).get("deletionTimestamp"))


def begin_deletion(kind: Kind, obj: Obj, clock: Clock) -> None:
    """Mark the object as being deleted (finalizers keep it for now)."""
    meta = meta_of(obj)
    meta["deletionTimestamp"] = format_time(clock.now())
    meta["deletionGracePeriodSeconds"] = 0
    if kind.has_generation:
        meta["generation"] = int(meta.get("generation", 0)) + 1
    kind.strategy.begin_deletion(obj)


def differs(new: Obj, old: Obj) -> bool:
    """Whether a write would change anything a client can see, revision and managedFields aside."""
    return _comparable(new) != _comparable(old)


def _comparable(obj: Obj) -> Obj:
    meta = {
        key: value
        for key, value in meta_of(obj).items()
        if key not in ("resourceVersion", "managedFields")
    }
    return {**obj, "metadata": meta}


def bump_generation(kind: Kind, new: Obj, old: Obj) -> None:
    """Count a change outside metadata, and outside status where that is a subresource."""
    if kind.has_generation and _desired(kind, new) != _desired(kind, old):
        meta = meta_of(new)
        meta["generation"] = int(meta.get("generation", 0)) + 1


def _desired(kind: Kind, obj: Obj) -> Obj:
    aside = ("metadata", "status") if kind.has_status else ("metadata",)
    return {key: value for key, value in obj.items() if key not in aside}
