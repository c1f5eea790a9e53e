"""JSON patch (RFC 6902), as kube-apiserver applies it.

Owns the six operations and their limits. Where kube-apiserver's library (evanphx/json-patch v4) is
laxer than the RFC, so are we, since clients rely on it:

- ``replace`` of a member that is not there adds it; ``copy`` of one gives null;
- ``test`` of a member that is not there holds for null; a missing ``value`` is null;
- an index may be negative: it counts from the end.

It is stricter in one point, and so are we: the whole document cannot be added or removed.
Inputs are never changed, and the result shares nothing with them.

>>> json_patch({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}])
{'a': [1, 2]}
"""

import re
from collections.abc import Callable
from typing import Any

from hub.meta import Obj
from hub.meta.codec.json import check_depth, decode_value, encode
from hub.meta.errors import ApiError, bad_request, too_large
from hub.meta.patch.merge import go_kind
from hub.meta.patch.refusal import PatchError, unprocessable

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024
"""How much JSON all copy operations of a patch may add."""

MAX_MOVED_ITEMS = 200_000_000
"""How many items of lists may make room for others; more would hold up everyone else."""

_END = "-"
_INDEX = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


def json_patch(target: Obj, operations: object) -> Obj:
    """Return `target` with the operations applied in order; all of them or none.

    Raises an ApiError: 400 when `operations` is no list of operations, 413 when there are too many,
    422 when one does not apply (a failed test, a missing path, too much copied).
    """
    listed = _check(operations)
    try:
        document = _Document(_clone(target))
        for position, operation in enumerate(listed):
            document.apply(position, operation or {})
        found = document.root
    except (PatchError, RecursionError) as error:
        raise unprocessable() from error
    if not isinstance(found, dict):
        raise unprocessable() from PatchError("the result is not an object")
    check_depth(found)
    return found


def _check(operations: object) -> list[Obj | None]:
    """Return the list of operations, null counting as an empty list, as in Go."""
    if operations is None:
        return []
    if not isinstance(operations, list):
        raise _malformed(operations, "value of type []handlers.jsonPatchOp")
    for operation in operations:
        if operation is not None and not isinstance(operation, dict):
            raise _malformed(operation, "value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            value = (operation or {}).get(name)
            if value is not None and not isinstance(value, str):
                raise _malformed(value, f"struct field jsonPatchOp.{name} of type string")
    if len(operations) > MAX_OPERATIONS:
        raise too_large(
            "Request entity is too large: The allowed maximum operations in a JSON patch is"
            f" {MAX_OPERATIONS}, got {len(operations)}"
        )
    return operations


def _malformed(value: object, place: str) -> ApiError:
    return bad_request(
        f"error decoding patch: json: cannot unmarshal {go_kind(value)} into Go {place}"
    )


class _Document:
    """The value being patched: its own copy, changed in place."""

    __slots__ = ("_copied_bytes", "_moved_items", "root")

    def __init__(self, root: Any) -> None:
        self.root = root
        self._copied_bytes = self._moved_items = 0

    def apply(self, position: int, operation: Obj) -> None:
        """Apply one operation.

        :raises PatchError: it does not apply
        """
        name = operation.get("op") or ""
        try:
            _OPERATIONS.get(name, _Document.refuse)(self, operation)
        except PatchError as error:
            where = f"operation {position}, {name!r} of {operation.get('path')!r}"
            raise PatchError(f"{where}: {error}") from error

    def refuse(self, _operation: Obj) -> None:
        """Refuse an operation that is none.

        :raises PatchError: always
        """
        raise PatchError(f"the operations are {', '.join(_OPERATIONS)}")

    def add(self, operation: Obj) -> None:
        """Insert into a list, or set a member."""
        self._put(operation, _clone(operation.get("value")))

    def remove(self, operation: Obj) -> None:
        """Take a member or an item out."""
        self._take(operation, "path")

    def replace(self, operation: Obj) -> None:
        """Set a member, an item, or the whole document."""
        value = _clone(operation.get("value"))
        if operation.get("path") == "":
            self.root = value
            return
        parent, token = self._find(operation, "path")
        if isinstance(parent, dict):
            parent[token] = value
        else:
            parent[_index(token, len(parent))] = value

    def move(self, operation: Obj) -> None:
        """Take from one place, add at another."""
        self._put(operation, self._take(operation, "from"))

    def copy(self, operation: Obj) -> None:
        """Add at another place what stands at one, within the limit on all copies."""
        encoded = encode(_member(*self._find(operation, "from")))
        self._copied_bytes += len(encoded)
        if self._copied_bytes > MAX_COPIED_BYTES:
            raise PatchError(
                f"the copies amount to {self._copied_bytes} bytes, more than {MAX_COPIED_BYTES}"
            )
        self._put(operation, decode_value(encoded))

    def test(self, operation: Obj) -> None:
        """Compare a value with the expected one, numbers by value."""
        is_whole = operation.get("path") == ""
        found = self.root if is_whole else _member(*self._find(operation, "path"))
        if not _equal(found, operation.get("value")):
            raise PatchError("the value is another one")

    def _find(self, operation: Obj, name: str) -> tuple[Any, str]:
        """Return the container that a pointer's last token speaks of, and that token."""
        pointer = operation.get(name)
        if not pointer or pointer[0] != "/":
            raise PatchError(f"{name!r} must be a path that begins with '/', not {pointer!r}")
        *above, token = (_unescape(part) for part in pointer[1:].split("/"))
        parent = self.root
        for part in above:
            parent = _member(parent, part)
        if not isinstance(parent, dict | list):
            raise PatchError(f"there is nothing that could hold {pointer!r}")
        return parent, token

    def _shift(self, items: int) -> None:
        self._moved_items += items
        if self._moved_items > MAX_MOVED_ITEMS:
            raise PatchError(f"more than {MAX_MOVED_ITEMS} items of lists would be moved")

    def _put(self, operation: Obj, value: object) -> None:
        parent, token = self._find(operation, "path")
        if isinstance(parent, dict):
            parent[token] = value
        elif token == _END:
            parent.append(value)
        else:
            index = _index(token, len(parent) + 1)
            self._shift(len(parent) - index)
            parent.insert(index, value)

    def _take(self, operation: Obj, name: str) -> object:
        parent, token = self._find(operation, name)
        if isinstance(parent, list):
            index = _index(token, len(parent))
            self._shift(len(parent) - index)
            return parent.pop(index)
        if token not in parent:
            raise PatchError(f"there is no member {token!r}")
        return parent.pop(token)


_OPERATIONS: dict[str, Callable[[_Document, Obj], None]] = {
    "add": _Document.add,
    "remove": _Document.remove,
    "replace": _Document.replace,
    "move": _Document.move,
    "copy": _Document.copy,
    "test": _Document.test,
}


def _member(parent: Any, token: str) -> Any:
    """Return what stands at `token`, None for a member that is not there."""
    if isinstance(parent, dict):
        return parent.get(token)
    if isinstance(parent, list):
        return parent[_index(token, len(parent))]
    raise PatchError(f"there is nothing that could hold {token!r}")


def _index(token: str, size: int) -> int:
    """Return the index, below `size`, that a token means."""
    if not _INDEX.fullmatch(token):
        raise PatchError(f"{token!r} is no index")
    index = int(token)
    if not -size <= index < size:
        raise PatchError(f"the index {index} is out of range")
    return index % size


def _unescape(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")


def _clone(value: Any) -> Any:
    return decode_value(encode(value)) if isinstance(value, dict | list) else value


def _equal(left: object, right: object) -> bool:
    """Compare as JSON does: true is not 1, the order of members does not matter."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and _all_equal(left.values(), [right[k] for k in left])
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and _all_equal(left, right)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return left == right


def _all_equal(left: Any, right: Any) -> bool:
    return all(_equal(a, b) for a, b in zip(left, right, strict=True))
