"""JSON merge patch (RFC 7396).

Inputs are never changed; the result may share unchanged parts with them, so treat all three as
frozen.

>>> merge_patch({"a": {"b": 1, "c": 2}}, {"a": {"c": None, "d": 3}})
{'a': {'b': 1, 'd': 3}}
"""

from typing import Any

from hub.meta import Obj
from hub.meta.errors import bad_request

_GO_KINDS = {dict: "object", list: "array", str: "string", bool: "bool", int: "number"}


def go_kind(value: object) -> str:
    """Return what Go's JSON decoder calls the type of `value` in its errors."""
    return "number" if isinstance(value, float) else _GO_KINDS.get(type(value), "null")


def merge_patch(target: Obj, patch: object) -> Obj:
    """Return `target` with `patch` merged in; null deletes, arrays and scalars replace.

    Raises a 400 ApiError when the patch is not an object (an RFC 7396 patch may be any value, but
    an object cannot become one), worded as Go's decoder does in apiserver's ``handlers/patch.go``.
    """
    if not isinstance(patch, dict):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {go_kind(patch)}"
            " into Go value of type map[string]interface {}"
        )
    try:
        return _merge(target, patch)
    except RecursionError as e:
        raise bad_request("error decoding patch: exceeded max depth") from e


def _merge(target: Obj, patch: Obj) -> Obj:
    merged = dict(target)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            below: Any = merged.get(key)
            merged[key] = _merge(below if isinstance(below, dict) else {}, value)
        else:
            merged[key] = value
    return merged
