"""The scale subresource of custom kinds: an ``autoscaling/v1`` Scale made from an object.

Mirrors ``ScaleREST`` of apiextensions-apiserver (``pkg/registry/customresource/etcd.go``): writing
it is an update of the object itself, with all that belongs to that.
"""

from collections.abc import Callable

from hub.meta import Obj
from hub.meta.causes import invalid_value
from hub.meta.errors import bad_request, conflict, internal_error, invalid
from hub.registry.call import Call
from hub.registry.crd.paths import value_at
from hub.registry.engine import Engine
from hub.registry.kind import ScalePaths, Served
from hub.registry.objects import meta_of
from hub.registry.shape import Shape, conform

GROUP, VERSION = "autoscaling", "v1"
API_VERSION = f"{GROUP}/{VERSION}"
_SHAPE: dict[str, Shape] = {"metadata": dict, "spec": {"replicas": int}, "status": dict}
_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(served: Served, obj: Obj, *, is_strict: bool = True) -> Obj:
    """Return the Scale of an object as stored.

    :raises ApiError: 500 when it has no number of replicas and `is_strict`
    """
    paths = _paths(served)
    shown = served.view.from_storage(obj)
    replicas = value_at(shown, paths.replicas)
    if not isinstance(replicas, int) and is_strict:
        at = "." + ".".join(paths.replicas)
        raise internal_error(f'the spec replicas field "{at}" does not exist')
    meta = meta_of(shown)
    status: Obj = {"replicas": value_at(shown, paths.current) or 0}
    selector = value_at(shown, paths.selector) if paths.selector else None
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": API_VERSION,
        "metadata": {key: meta[key] for key in _META if key in meta},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


async def change_scale(
    engine: Engine,
    served: Served,
    change: Callable[[Obj], Obj],
    *,
    name: str,
    namespace: str,
    call: Call,
) -> Obj:
    """Write what `change` makes of an object's Scale; return the object as stored.

    :raises ApiError: 400, 404, 409, 422
    """
    at = _paths(served).replicas

    def apply(obj: Obj) -> Obj:
        wanted = _checked(change(scale_of(served, obj, is_strict=False)), name)
        _check_place(served, obj, meta_of(wanted))
        new = served.view.from_storage(obj)
        below = new
        for key in at[:-1]:
            # views share what they leave alone, and it is not ours to change
            below[key] = dict(below.get(key) or {})
            below = below[key]
        below[at[-1]] = (wanted.get("spec") or {}).get("replicas") or 0
        return served.view.to_storage(new)

    return await engine.modify(served.kind, name, apply, namespace=namespace, call=call)


def _paths(served: Served) -> ScalePaths:
    paths = served.kind.scale
    if paths is None:
        raise internal_error(f"{served.kind.kind} has no scale")
    return paths


def _checked(scale: Obj, name: str) -> Obj:
    kind, version = scale.get("kind") or "Scale", scale.get("apiVersion") or API_VERSION
    if (kind, version) != ("Scale", API_VERSION):
        raise bad_request(
            f"the object provided is unrecognized (must be of type Scale in {API_VERSION}, "
            f"got {kind} in {version})"
        )
    fitting, misfits = conform(scale, _SHAPE)
    if misfits:
        first = misfits[0]
        raise bad_request(
            f'Scale in version "{VERSION}" cannot be handled as a Scale: json: cannot unmarshal '
            f"{first.got} into Go struct field Scale.{first.path} of type {first.wanted}"
        )
    replicas = (fitting.get("spec") or {}).get("replicas") or 0
    if replicas < 0:
        text = "must be greater than or equal to 0"
        raise invalid(GROUP, "Scale", name, [invalid_value("spec.replicas", replicas, text)])
    return fitting


def _check_place(served: Served, obj: Obj, wanted: Obj) -> None:
    meta = meta_of(obj)
    name = str(meta["name"])
    if wanted.get("name") not in (None, "", name):
        raise bad_request(
            f"the name of the object ({wanted['name']}) does not match the name on the URL ({name})"
        )
    uid = wanted.get("uid")
    if uid and uid != meta["uid"]:
        raise conflict(
            served.resource,
            name,
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}",
        )
    if wanted.get("resourceVersion") not in (None, "", meta["resourceVersion"]):
        raise conflict(served.resource, name)
