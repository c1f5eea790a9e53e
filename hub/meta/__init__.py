"""Kubernetes semantics on plain dicts: no I/O, no asyncio, no LMDB, no clock.

Everything here is a pure function of its arguments. `Obj` is the one place where ``Any`` is
allowed: an untyped Kubernetes object as decoded from JSON.
"""

from typing import Any, TypeAlias

Obj: TypeAlias = dict[str, Any]

__all__ = ["Obj"]
