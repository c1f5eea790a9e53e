"""The metadata of a resource, also of one embedded in another: known fields, and nothing empty.

Owns what Go's round trip through ``metav1.ObjectMeta`` does to it: unknown fields and nulls go,
and so do empty values (``omitempty``). Values of a wrong type stay, for the validators to find.
The fields are those of `hub.meta.protobuf.tables`.

>>> clean({"name": "a", "labels": {}, "creationTimestamp": None, "foo": 1})
{'name': 'a'}
>>> list(unknown({"name": "a", "foo": 1, "ownerReferences": [{"bar": 1}]}, "metadata"))
['metadata.foo', 'metadata.ownerReferences[0].bar']
"""

from collections.abc import Iterator
from typing import Any

from hub.meta.protobuf.schema import MessageSpec, Presence, Shape
from hub.meta.protobuf.tables import MESSAGES

_OBJECT_META = MESSAGES["ObjectMeta"]


def clean(metadata: Any) -> Any:
    """Return `metadata` as Go would write it back; itself when nothing changes."""
    return _clean(metadata, _OBJECT_META)


def unknown(metadata: Any, path: str) -> Iterator[str]:
    """Yield the paths of the fields that ObjectMeta does not have, in the order found."""
    return _unknown(metadata, _OBJECT_META, path)


def _clean(value: Any, message: MessageSpec) -> Any:
    if not isinstance(value, dict):
        return value
    fields = message.by_name
    kept = {}
    is_same = True
    for key, item in value.items():
        field = fields.get(key)
        is_always = field is not None and field.presence is Presence.ALWAYS
        if field is None or (not item and not is_always):
            is_same = False
            continue
        new = item
        if field.type in MESSAGES and isinstance(item, list):
            new = [_clean(i, MESSAGES[field.type]) for i in item]
            new = item if all(a is b for a, b in zip(new, item, strict=True)) else new
        is_same = is_same and new is item
        kept[key] = new
    return value if is_same else kept


def _unknown(value: Any, message: MessageSpec, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        field = message.by_name.get(key)
        if field is None:
            yield f"{path}.{key}"
        elif field.type in MESSAGES and field.shape is Shape.LIST and isinstance(item, list):
            for index, below in enumerate(item):
                yield from _unknown(below, MESSAGES[field.type], f"{path}.{key}[{index}]")
