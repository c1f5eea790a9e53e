"""What an object with a scale subresource must have where its scale is read.

Mirrors ``ValidateScaleSpec`` and ``ValidateScaleStatus`` of apiextensions-apiserver
(``pkg/registry/customresource/validator.go``), whatever the schema allows there.

>>> paths = ScalePaths(("spec", "replicas"), ("status", "replicas"))
>>> [(c.field, c.message) for c in replica_causes({"spec": {"replicas": -1}}, paths)]
[('.spec.replicas', 'Invalid value: -1: should be a non-negative integer')]
"""

from collections.abc import Iterator

from hub.meta import Obj
from hub.meta.causes import invalid_value
from hub.meta.errors import Cause
from hub.meta.schema.gotext import printed, type_name
from hub.registry.kind import ScalePaths

_MAX = 2**31 - 1


class _AccessError(Exception):
    """A value of another type than Go's accessor expects."""


def replica_causes(obj: Obj, paths: ScalePaths) -> list[Cause]:
    """Return what is wrong with the replicas and the selector of an object."""
    return [
        *_number_causes(obj, paths.replicas),
        *_number_causes(obj, paths.current),
        *(_text_causes(obj, paths.selector) if paths.selector else ()),
    ]


def _number_causes(obj: Obj, path: tuple[str, ...]) -> Iterator[Cause]:
    field = f".{'.'.join(path)}"
    try:
        value = _find(obj, path, int)
    except _AccessError as error:
        yield invalid_value(field, 0, str(error))
        return
    if not isinstance(value, int):
        return
    if value < 0:
        yield invalid_value(field, value, "should be a non-negative integer")
    elif value > _MAX:
        yield invalid_value(field, value, f"should be less than or equal to {_MAX}")


def _text_causes(obj: Obj, path: tuple[str, ...]) -> Iterator[Cause]:
    try:
        _find(obj, path, str)
    except _AccessError as error:
        yield invalid_value(f".{'.'.join(path)}", "", str(error))


def _find(obj: Obj, path: tuple[str, ...], wanted: type[int] | type[str]) -> object:
    """Return the value there, None where there is no such field. Raises _AccessError."""
    value: object = obj
    for depth, name in enumerate(path, 1):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _access_error(path[:depth], value, "map[string]interface{}")
        if name not in value:
            return None
        value = value[name]
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise _access_error(path, value, "int64" if wanted is int else "string")
    return value


def _access_error(path: tuple[str, ...], value: object, wanted: str) -> _AccessError:
    return _AccessError(
        f".{'.'.join(path)} accessor error: {printed(value)} is of the type {type_name(value)}, "
        f"expected {wanted}"
    )
