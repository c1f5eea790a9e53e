"""The types of apiVersion, kind and metadata, which every object has whatever its kind.

Owns types only, so that code behind it may take ``metadata.labels`` for a map of texts; values are
validated by `hub.meta.names` and the kinds' own rules. Nulls pass: Go clients send
``"creationTimestamp":null``. Errors are worded as Go's JSON decoder does.
"""

from hub.meta import Obj
from hub.meta.codec.json import kind_of
from hub.meta.errors import ApiError, bad_request

_TEXTS = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
)
_NUMBERS = ("generation", "deletionGracePeriodSeconds")
_MAPS = ("labels", "annotations")
_LISTS = {"finalizers": str, "ownerReferences": dict, "managedFields": dict}
_OWNER = {
    **dict.fromkeys(("apiVersion", "kind", "name", "uid"), str),
    **dict.fromkeys(("controller", "blockOwnerDeletion"), bool),
}
_GO_TYPES = {bool: "bool", str: "string", dict: "object", list: "array", int: "int64"}


def check_types(obj: Obj) -> None:
    """Raise a 400 ApiError for the first of these parts that is of a wrong type."""
    for field in ("apiVersion", "kind"):
        _check(obj.get(field), str, field)
    metadata = obj.get("metadata")
    _check(metadata, dict, "metadata")
    if not metadata:
        return
    for field in _TEXTS:
        _check(metadata.get(field), str, f"metadata.{field}")
    for field in _NUMBERS:
        _check(metadata.get(field), int, f"metadata.{field}")
    for field in _MAPS:
        _check(metadata.get(field), dict, f"metadata.{field}")
        for value in (metadata.get(field) or {}).values():
            _check(value, str, f"metadata.{field}", is_null_allowed=False)
    for field, item_type in _LISTS.items():
        _check(metadata.get(field), list, f"metadata.{field}")
        for item in metadata.get(field) or ():
            _check(item, item_type, f"metadata.{field}", is_null_allowed=False)
    for reference in metadata.get("ownerReferences") or ():
        for field, field_type in _OWNER.items():
            _check(reference.get(field), field_type, f"metadata.ownerReferences.{field}")


def _check(value: object, wanted: type, path: str, *, is_null_allowed: bool = True) -> None:
    if value is None and is_null_allowed:
        return
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise _wrong_type(value, wanted, path)


def _wrong_type(value: object, wanted: type, path: str) -> ApiError:
    parent = "ObjectMeta." if "." in path else ""
    return bad_request(
        f"json: cannot unmarshal {kind_of(value)} into Go struct field {parent}{path}"
        f" of type {_GO_TYPES[wanted]}"
    )
