"""Comparing objects field by field.

Owns one question: do two objects differ in nothing but a given field? The engine asks it to tell a
heartbeat from an ordinary update of a Lease.
"""

from hub.meta import Obj

_BOOKKEEPING = frozenset({"resourceVersion", "managedFields"})


def differs_only_in(new: Obj, old: Obj, path: str) -> bool:
    """Whether the two differ at most at `path` (dotted, such as ``spec.renewTime``).

    ``metadata.resourceVersion`` and ``metadata.managedFields`` are not compared. Objects that do
    not differ at all differ at most there, too. A parent of `path` that is missing on one side is a
    difference of its own.

    >>> differs_only_in({"spec": {"a": 1, "b": 2}}, {"spec": {"a": 1, "b": 3}}, "spec.b")
    True
    """
    return _same_but(_compared(new), _compared(old), path.split("."))


def _compared(obj: Obj) -> Obj:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return obj
    kept = {k: v for k, v in metadata.items() if k not in _BOOKKEEPING}
    return {**obj, "metadata": kept}


def _same_but(new: object, old: object, path: list[str]) -> bool:
    if not isinstance(new, dict) or not isinstance(old, dict):
        return new == old
    field, *below = path
    for key in new.keys() | old.keys():
        if key == field and not below:
            continue
        if key not in new or key not in old:
            return False
        is_same = _same_but(new[key], old[key], below) if key == field else new[key] == old[key]
        if not is_same:
            return False
    return True
