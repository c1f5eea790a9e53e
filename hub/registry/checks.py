"""What is checked of every object whatever its kind: type and namespace, field types, metadata.

Pure; the engine decides when. Mirrors k8s.io/apiserver/pkg/registry/rest/{create,update,meta}.go
and k8s.io/apimachinery/pkg/api/validation/objectmeta.go.
"""

from http import HTTPStatus

from hub.meta import Obj
from hub.meta.causes import invalid_value
from hub.meta.errors import (
    ApiError,
    Cause,
    bad_request,
    internal_error,
    invalid,
    storage_full,
    unavailable,
)
from hub.meta.names import annotation_causes, label_causes
from hub.meta.objectmeta import check_types
from hub.meta.owners import finalizer_name_causes, owner_causes
from hub.registry import objects
from hub.registry.kind import Kind, Served
from hub.registry.objects import meta_of
from hub.registry.shape import Misfit, conform
from hub.store import Broken, Closed, MapFull, StoreError, WriteFailed

MAX_NAME = 1000
"""Longest name of kinds that have no shorter limit (RBAC); a key must fit the store."""


def incoming(served: Served, obj: Obj, namespace: str) -> Obj:
    """Return the caller's object as it would be stored, its envelope checked against the URL.

    :raises ApiError: 400 or 422
    """
    _check_envelope(served, obj)
    return _placed(served, to_storage(served, obj), namespace)


def patched(served: Served, obj: Obj, namespace: str) -> Obj:
    """Return what a patch has made of an object as it would be stored, checked as by `incoming`.

    :raises ApiError: 400 when it names another kind or namespace, 422 when types do not fit
    """
    _check_envelope(served, obj)
    try:
        new = to_storage(served, obj)
    except ApiError as error:
        if error.code != HTTPStatus.BAD_REQUEST:
            raise
        # as k8s.io/apiserver/pkg/endpoints/handlers/patch.go, which shows the whole object, too
        cause = Cause("FieldValueInvalid", f"Invalid value: {error.message}", "patch")
        raise invalid("", "", "", [cause]) from error
    return _placed(served, new, namespace)


def _placed(served: Served, new: Obj, namespace: str) -> Obj:
    meta = meta_of(new)
    if not served.kind.is_namespaced:
        meta.pop("namespace", None)
        return new
    given = meta.get("namespace")
    if namespace and given not in (None, "", namespace):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    meta["namespace"] = namespace or given or ""
    return new


def to_storage(served: Served, shown: Obj) -> Obj:
    """Return an object, given in the view of `served`, as it is stored; field types checked.

    :raises ApiError: 400 (built-in kinds, as Go's decoder) or 422 (custom ones, as a schema)
    """
    check_types(shown)
    fitting, misfits = conform(stamp_type(served, shown), served.view.shape)
    if misfits and served.kind.is_custom:
        name = str(meta_of(fitting).get("name") or "")
        raise invalid(served.view.group, served.kind.kind, name, [_cause(m) for m in misfits])
    if misfits:
        first = misfits[0]
        kind = served.kind.kind
        raise bad_request(
            f'{kind} in version "{served.view.version}" cannot be handled as a {kind}: json: '
            f"cannot unmarshal {first.got} into Go struct field {kind}.{first.path} "
            f"of type {first.wanted}"
        )
    return served.view.to_storage(fitting)


def _cause(misfit: Misfit) -> Cause:
    text = (
        f'Invalid value: "{misfit.got}": {misfit.path} in body must be of type '
        f'{misfit.wanted}: "{misfit.got}"'
    )
    return Cause("FieldValueTypeInvalid", text, misfit.path)


def _check_envelope(served: Served, obj: Obj) -> None:
    kind = obj.get("kind") or served.kind.kind
    version = obj.get("apiVersion") or served.view.api_version
    if kind != served.kind.kind:
        raise bad_request(
            f"the kind in the data ({kind}) does not match the expected kind ({served.kind.kind})"
        )
    if version != served.view.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({served.view.api_version})"
        )


def stamp_type(served: Served, obj: Obj) -> Obj:
    """Return `obj` with its type and a metadata of its own, in the order kube writes them."""
    rest = {k: v for k, v in obj.items() if k not in ("apiVersion", "kind", "metadata")}
    return {
        "apiVersion": served.view.api_version,
        "kind": served.kind.kind,
        "metadata": dict(obj.get("metadata") or {}),
        **rest,
    }


def check_name(obj: Obj, name: str) -> None:
    """Refuse (400) an object that names itself otherwise than the URL does."""
    given = meta_of(obj).get("name")
    if given not in (None, "", name):
        raise bad_request(
            f"the name of the object ({given}) does not match the name on the URL ({name})"
        )


def metadata_causes(kind: Kind, obj: Obj) -> list[Cause]:
    """Return what is wrong with name, labels, annotations, owner references and finalizers."""
    meta = meta_of(obj)
    name = meta.get("name") or ""
    if not name:
        message = "Required value: name or generateName is required"
        causes = [Cause("FieldValueRequired", message, "metadata.name")]
    else:
        causes = [
            Cause("FieldValueInvalid", f'Invalid value: "{name}": {text}', "metadata.name")
            for text in kind.strategy.name_problems(str(name))
        ]
        if "\0" in name or len(name) > MAX_NAME:
            text = f"may be no longer than {MAX_NAME} characters and not contain NUL"
            causes.append(invalid_value("metadata.name", name[:80], text))
    causes += label_causes(meta.get("labels") or {}, "metadata.labels")
    causes += annotation_causes(meta.get("annotations") or {}, "metadata.annotations")
    causes += owner_causes(meta.get("ownerReferences") or (), "metadata.ownerReferences")
    return causes + finalizer_name_causes(meta.get("finalizers") or (), "metadata.finalizers")


def finalizer_causes(new: Obj, old: Obj) -> list[Cause]:
    """Return the finalizers that were added to an object being deleted."""
    if not objects.is_deleting(old):
        return []
    before = meta_of(old).get("finalizers") or []
    added = [f for f in meta_of(new).get("finalizers") or [] if f not in before]
    if not added:
        return []
    shown = ", ".join(f'"{f}"' for f in added)
    message = (
        "Forbidden: no new finalizers can be added if the object is being deleted, "
        f"found new finalizers []string{{{shown}}}"
    )
    return [Cause("FieldValueForbidden", message, "metadata.finalizers")]


def missing_revision(served: Served, name: str) -> ApiError:
    """Return the 422 for an update that must carry a resourceVersion and does not."""
    message = "Invalid value: 0: must be specified for an update"
    cause = Cause("FieldValueInvalid", message, "metadata.resourceVersion")
    # kube's generic store puts the resource where other errors have the kind
    return invalid(served.view.group, served.kind.plural, name, [cause])


def as_api_error(error: StoreError) -> ApiError:
    """Translate what the store refuses into what a client understands."""
    refusal = f"the store cannot take writes now: {error}"
    if isinstance(error, Broken):
        return unavailable(refusal, retry_after_s=5)
    if isinstance(error, WriteFailed):
        return unavailable(f"{refusal}; reads go on", retry_after_s=5)
    if isinstance(error, MapFull):
        return storage_full(f"{refusal}; reads go on")
    if isinstance(error, Closed):
        return unavailable("the hub is stopping")
    return internal_error(str(error))
