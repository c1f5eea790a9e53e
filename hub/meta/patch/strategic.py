"""Strategic merge patch: a merge patch that knows which lists to merge.

Owns the directives, as kube-apiserver reads them (k8s.io/apimachinery/pkg/util/strategicpatch):

- ``$patch: replace`` or ``delete`` in an object speaks of that object, in an item of a merged list
  of the whole list or of that item;
- ``$retainKeys`` lists all members that may be left in an object;
- ``$setElementOrder/f`` gives the order of the merged list ``f``, `hub.meta.patch.order` says how;
- ``$deleteFromPrimitiveList/f`` lists what is taken out of the set ``f``.

Nothing of a directive is ever left in the result, and no null: in built-in kinds null means absent.
Inputs are never changed; the result may share parts with them, so treat all as frozen.

>>> schema = PatchSchema({"secrets": "name"})
>>> strategic_patch({"secrets": [{"name": "a"}]}, {"secrets": [{"name": "b"}]}, schema)
{'secrets': [{'name': 'b'}, {'name': 'a'}]}
"""

from dataclasses import dataclass, field
from typing import Any

from hub.meta import Obj
from hub.meta.codec.json import encode
from hub.meta.errors import bad_request, too_large
from hub.meta.patch.merge import go_kind
from hub.meta.patch.order import arrange, check_items, check_order, identity, ranks
from hub.meta.patch.schema import PatchSchema

_MARK, _RETAIN = "$patch", "$retainKeys"
_ORDER, _DELETE = "$setElementOrder", "$deleteFromPrimitiveList"
_ABSENT = object()
MAX_ITEMS = 20_000
"""How many items a patch may name of one merged list; merging more would hold up everyone else."""


def strategic_patch(target: Obj, patch: object, schema: PatchSchema) -> Obj:
    """Return `target` with `patch` merged in, lists as `schema` says.

    Raises an ApiError: 400 for a patch that is no object or whose directives make no sense, 413 for
    too many items, 422 for lists of lists where items are to be merged.
    """
    if not isinstance(patch, dict):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {go_kind(patch)}"
            " into Go value of type map[string]interface {}"
        )
    try:
        return _merge(target, patch, schema)
    except RecursionError as e:
        raise bad_request("error decoding patch: exceeded max depth") from e


@dataclass(slots=True)
class _Parts:
    """One object of a patch, taken apart: members, and directives by the field they speak of."""

    members: Obj = field(default_factory=dict)
    orders: dict[str, list[Any]] = field(default_factory=dict)
    removals: dict[str, list[Any]] = field(default_factory=dict)


def _merge(old: Obj, patch: Obj, schema: PatchSchema) -> Obj:
    if _MARK in patch:
        return _directed(patch)
    parts = _split(patch)
    kept = _retained(patch, parts)
    merged = old if kept is None else {k: v for k, v in old.items() if k in kept}
    merged = dict(merged)
    for name in {**parts.members, **parts.orders}:
        value = _field(merged.get(name), name, parts, schema)
        if value is _ABSENT:
            merged.pop(name, None)
        else:
            merged[name] = value
    for name, gone in parts.removals.items():
        if isinstance(merged.get(name), list):
            taken = {identity(item, "") for item in gone}
            merged[name] = [i for i in merged[name] if identity(i, "") not in taken]
    return merged


def _directed(patch: Obj) -> Obj:
    """Return what an object with ``$patch`` leaves of the one it meets."""
    directive = patch[_MARK]
    if directive == "delete":
        return {}
    if directive == "replace":
        found = _clean({k: v for k, v in patch.items() if k != _MARK})
        return found if isinstance(found, dict) else {}
    raise bad_request(f"unknown patch type: {directive} in map: {_show(patch)}")


def _split(patch: Obj) -> _Parts:
    parts = _Parts()
    for key, value in patch.items():
        if key.startswith(_ORDER):
            name = _target(key, _ORDER, "setElementOrder")
            parts.orders[name] = _listed(value, "setElementOrder")
        elif key.startswith(_DELETE):
            name = _target(key, _DELETE, "primitive")
            parts.removals[name] = _listed(value, "primitive")
        elif key != _RETAIN:
            parts.members[key] = value
    return parts


def _target(key: str, prefix: str, what: str) -> str:
    """Return the field that a directive ``prefix/field`` speaks of."""
    directive, _, name = key.partition("/")
    if directive != prefix or not name:
        raise bad_request(f"invalid patch format of {what} list")
    return name


def _listed(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise bad_request(f"invalid patch format of {what} list")
    return value


def _retained(patch: Obj, parts: _Parts) -> frozenset[str] | None:
    """Return the members that may stay, None for all."""
    if _RETAIN not in patch:
        return None
    names = patch[_RETAIN]
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise bad_request("invalid patch format of retainKeys")
    kept = frozenset(names)
    if any(value is not None and name not in kept for name, value in parts.members.items()):
        raise bad_request("invalid patch format of retainKeys")
    return kept


def _field(old: object, name: str, parts: _Parts, schema: PatchSchema) -> object:
    """Return what becomes of a field, `_ABSENT` when it goes."""
    new = parts.members.get(name, _ABSENT)
    if name in schema.lists and (isinstance(new, list) or new is _ABSENT):
        order = parts.orders.get(name)
        return _list(old if isinstance(old, list) else None, new, order, name, schema)
    if new is _ABSENT:  # an order for a list that is not merged: nothing to do
        return _ABSENT if old is None else old
    if isinstance(old, dict) and isinstance(new, dict):
        return _ABSENT if new.get(_MARK) == "delete" else _merge(old, new, schema.under(name))
    return _clean(new)


def _list(
    old: list[Any] | None, new: Any, order: list[Any] | None, name: str, schema: PatchSchema
) -> object:
    """Return a merged list; `new` is `_ABSENT` when the patch has nothing but an order for it."""
    key, below = schema.lists[name], schema.under(name)
    if len(order or ()) + (0 if new is _ABSENT else len(new)) > MAX_ITEMS:
        raise too_large(
            f"Request entity is too large: a patch may merge at most {MAX_ITEMS} items into {name}"
        )
    if order is not None:
        check_items(order, key)
        check_order([] if new is _ABSENT else new, order, key)
    if new is _ABSENT:
        if old is None:
            return _ABSENT
        merged = old
    elif old is None:
        merged = _items(new)
        check_items(merged, key)
    else:
        merged = _merge_lists(old, new, key, below)
    return merged if order is None else arrange(merged, order, _ground(old or [], merged, key), key)


def _ground(old: list[Any], merged: list[Any], key: str) -> list[Any]:
    """Return the order in which items stood, for `arrange` by an order of the patch's own.

    In apimachinery new items slide into the room that deleted ones leave in the live list's array,
    and count as having stood there; its tests hold it to that, and what users see depends on it.
    """
    before, after = ranks(old, key), ranks(merged, key)
    kept = [item for item in old if identity(item, key) in after]
    added = [item for item in merged if identity(item, key) not in before]
    return [*kept, *added][: len(old)]


def _merge_lists(old: list[Any], new: list[Any], key: str, below: PatchSchema) -> list[Any]:
    check_items([*old, *new], key)
    if not key:
        both = {identity(item, ""): item for item in [*old, *new]}
        return arrange(list(both.values()), new, old, "")
    plain, gone, is_replaced = _specials(new, key)
    if is_replaced:
        return _items(plain)
    merged = [item for item in old if identity(item, key) not in gone]
    places = ranks(merged, key)
    for item in plain:
        place = places.setdefault(identity(item, key), len(merged))
        if place == len(merged):
            merged.append({})
        merged[place] = _merge(merged[place], item, below)
    return arrange(merged, plain, old, key)


def _specials(items: list[Obj], key: str) -> tuple[list[Obj], set[object], bool]:
    """Return the items to merge, the names of those to delete, and whether all is replaced."""
    plain: list[Obj] = []
    gone: set[object] = set()
    is_replaced = False
    for item in items:
        directive = item.get(_MARK, _ABSENT)
        if directive is _ABSENT:
            plain.append(item)
        elif directive == "delete":
            gone.add(identity(item, key))
        elif directive == "replace":
            is_replaced = True
        elif directive == "merge":
            raise bad_request("merging lists cannot yet be specified in the patch")
        else:
            raise bad_request(f"unknown patch type: {directive} in map: {_show(item)}")
    return plain, gone, is_replaced


def _items(values: list[Any]) -> list[Any]:
    cleaned = (_clean(value) for value in values)
    return [value for value in cleaned if value is not _ABSENT]


def _clean(value: object) -> object:
    """Return a value that meets nothing to merge with: without directives and nulls."""
    if isinstance(value, list):
        return _items(value)
    if not isinstance(value, dict):
        return _ABSENT if value is None else value
    if value.get(_MARK, "replace") != "replace":
        return _ABSENT
    found: Obj = {}
    for key, below in value.items():
        if key in (_MARK, _RETAIN) or key.startswith((f"{_ORDER}/", f"{_DELETE}/")):
            continue
        cleaned = _clean(below)
        if cleaned is not _ABSENT:
            found[key] = cleaned
    return found


def _show(obj: Obj) -> str:
    return encode(obj).decode()
