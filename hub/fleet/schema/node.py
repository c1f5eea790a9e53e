"""Constructors for the nodes of an ``openAPIV3Schema``, so that a schema reads like a table.

Owns the spelling of keywords; knows no kind. The first argument is always the description that
``kubectl explain`` prints. A star after a field's name makes it required.

>>> obj("A box.", {"size*": whole("Its size.", at_least=1)})["required"]
['size']
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from hub.meta import Obj

Node: TypeAlias = Obj
Fields: TypeAlias = Mapping[str, Node]

_API_VERSION = "Group and version of this object, as group/version."
_KIND = "Kind of this object."


def root(about: str, fields: Fields) -> Node:
    """Return the schema of a whole resource; type and metadata are added."""
    envelope = {"apiVersion": text(_API_VERSION), "kind": text(_KIND), "metadata": _plain_object()}
    return obj(about, {**envelope, **fields})


def obj(
    about: str,
    fields: Fields,
    *,
    default: Obj | None = None,
    is_atomic: bool = False,
    rules: Sequence[Mapping[str, str]] = (),
) -> Node:
    """Return an object with named fields; `rules` are CEL rules with their messages."""
    node = _plain_object() | {"description": about}
    if fields:
        node["properties"] = {name.rstrip("*"): node for name, node in fields.items()}
    required = [name.rstrip("*") for name in fields if name.endswith("*")]
    extra = {
        "required": required or None,
        "default": default,
        "x-kubernetes-map-type": "atomic" if is_atomic else None,
        "x-kubernetes-validations": [dict(rule) for rule in rules] or None,
    }
    return node | _given(extra)


def mapping(about: str, values: Node) -> Node:
    """Return an object with any keys, whose values are alike."""
    return _plain_object() | {"description": about, "additionalProperties": values}


def manifest(about: str) -> Node:
    """Return a whole Kubernetes object of any kind, kept as it is."""
    kept = {
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    return _plain_object() | {"description": about} | kept


def array(
    about: str,
    items: Node,
    *,
    keys: Sequence[str] = (),
    is_atomic: bool = False,
    at_least: int | None = None,
    at_most: int | None = None,
) -> Node:
    """Return a list; with `keys` it is a map by those fields of its items."""
    extra = {
        "minItems": at_least,
        "maxItems": at_most,
        "x-kubernetes-list-type": "map" if keys else "atomic" if is_atomic else None,
        "x-kubernetes-list-map-keys": list(keys) or None,
    }
    return {"type": "array", "description": about, "items": items} | _given(extra)


def text(
    about: str = "",
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    pattern: str | None = None,
    enum: Sequence[str] = (),
    format_: str | None = None,
    default: str | None = None,
    is_nullable: bool = False,
) -> Node:
    """Return a string; lengths are in characters."""
    extra = {
        "description": about or None,
        "minLength": at_least,
        "maxLength": at_most,
        "pattern": pattern,
        "enum": list(enum) or None,
        "format": format_,
        "default": default,
        "nullable": is_nullable or None,
    }
    return {"type": "string"} | _given(extra)


def time(about: str, *, is_nullable: bool = False) -> Node:
    """Return a point in time as RFC 3339 writes it."""
    return text(about, format_="date-time", is_nullable=is_nullable)


def data(about: str) -> Node:
    """Return bytes in base64."""
    return text(about, format_="byte")


def flag(about: str) -> Node:
    """Return a boolean."""
    return {"type": "boolean", "description": about}


def whole(
    about: str,
    *,
    bits: int | None = None,
    at_least: int | None = None,
    at_most: int | None = None,
    default: int | None = None,
) -> Node:
    """Return an integer of 32, 64 or any number of bits."""
    extra = {
        "format": f"int{bits}" if bits else None,
        "minimum": at_least,
        "maximum": at_most,
        "default": default,
    }
    return {"type": "integer", "description": about} | _given(extra)


def real(about: str) -> Node:
    """Return a number, whole or not."""
    return {"type": "number", "description": about}


def int_or_text(about: str = "", *, pattern: str, default: int | str | None = None) -> Node:
    """Return an integer, or a string of a pattern (a percentage, a quantity)."""
    either: Node = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": pattern,
        "x-kubernetes-int-or-string": True,
    }
    return either | _given({"description": about or None, "default": default})


def _plain_object() -> Node:
    return {"type": "object"}


def _given(keywords: Mapping[str, object]) -> Node:
    return {name: value for name, value in keywords.items() if value is not None}
