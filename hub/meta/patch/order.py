"""The order of a merged list, and what makes two of its items the same.

Owns the rule of Kubernetes' "preserve order in strategic merge patch": the items that the patch
names come in the patch's order, the others in the order they had; where both are interleaved, an
item the patch does not name goes before the first named one that it used to precede.

>>> arrange(["a", "b", "c", "d"], ["c", "a"], ["a", "b", "c", "d"], "")
['b', 'c', 'a', 'd']
"""

from collections.abc import Iterable
from typing import Any

from hub.meta.codec.json import encode
from hub.meta.errors import bad_request
from hub.meta.patch.refusal import PatchError, unprocessable


def identity(item: Any, key: str) -> object:
    """Return what tells `item` from others: the value of its member `key`, itself for key "".

    Raises a 400 ApiError when it has none.
    """
    if key and key not in item:
        raise bad_request(f"map: {_show(item)} does not contain declared merge key: {key}")
    value = item[key] if key else item
    if isinstance(value, str):  # nearly always; apart from the rest, in which 1 == True
        return value
    return (type(value), encode(value) if isinstance(value, dict | list) else value)


def check_items(items: Iterable[Any], key: str) -> None:
    """Raise an ApiError when `items` are not all objects (with a key) or all scalars (without)."""
    for item in items:
        if isinstance(item, list):
            raise unprocessable() from PatchError("lists of lists are not supported")
        if isinstance(item, dict) and not key:
            raise bad_request("cannot merge lists without merge key")
        if key and not isinstance(item, dict):
            raise bad_request(f"list element types are not identical: {_show(item)} is no object")


def check_order(items: list[Any], order: list[Any], key: str) -> None:
    """Raise a 400 ApiError unless the items, those with a directive aside, stand so in `order`."""
    check_items(items, key)
    named = [i for i in items if not key or "$patch" not in i]
    wanted = iter([identity(o, key) for o in order])
    if order and not all(identity(item, key) in wanted for item in named):
        raise bad_request(
            f"The order in patch list:\n{_show(items)}\n doesn't match $setElementOrder list:\n"
            f"{_show(order)}\n"
        )


def arrange(items: list[Any], order: list[Any], before: list[Any], key: str) -> list[Any]:
    """Return `items`: those in `order` as it says, the rest as they stood in `before`."""
    asked_rank, old_rank = ranks(order, key), ranks(before, key)
    known = [(identity(item, key), item) for item in items]
    asked = sorted((k for k in known if k[0] in asked_rank), key=lambda k: asked_rank[k[0]])
    last = len(old_rank)
    rest = [(old_rank.get(k[0], last), k[1]) for k in known if k[0] not in asked_rank]
    rest.sort(key=lambda r: r[0])
    found: list[Any] = []
    waiting = 0
    for name, item in asked:
        rank = old_rank.get(name, -1)
        while waiting < len(rest) and rest[waiting][0] < rank:
            found.append(rest[waiting][1])
            waiting += 1
        found.append(item)
    return [*found, *(r[1] for r in rest[waiting:])]


def ranks(items: list[Any], key: str) -> dict[object, int]:
    """Return the position of each item by its identity, that of the first among several."""
    found: dict[object, int] = {}
    for position, item in enumerate(items):
        found.setdefault(identity(item, key), position)
    return found


def _show(value: object) -> str:
    return encode(value).decode()
