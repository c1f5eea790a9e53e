"""Validation of custom resources: every rule a schema states but CEL, in kube-apiserver's order.

Owns the order: values against the schema, embedded resources, lists that are sets or maps. CEL
rules are a later step; when there are any and an object has faults that keep them from being
tried, the note that kube-apiserver adds then is added here.

>>> from hub.meta.schema.structural import parse
>>> schema = parse({"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}})
>>> validator = Validator(schema)
>>> validator.validate({"n": 9})
[]
>>> validator.validate({"n": 11})[0].message
'Invalid value: 11: n in body should be less than or equal to 9'
"""

from collections.abc import Iterable

from hub.meta import Obj
from hub.meta.errors import Cause
from hub.meta.schema.embedded import embedded_causes
from hub.meta.schema.explain import NOWHERE, value_causes
from hub.meta.schema.fast import Check, compile_check
from hub.meta.schema.listtype import list_causes
from hub.meta.schema.structural import Schema

_BLOCKING = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
UNCHECKED = Cause(
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
    NOWHERE,
)
"""What is added when faults keep CEL rules from being tried."""


class Validator:
    """A schema compiled for validation: built once a version of a kind, used for every write."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._checks: dict[int, Check] = {}
        self._is_valid = compile_check(schema, self._checks)
        self._has_cel = schema.has_cel

    def validate(self, obj: Obj) -> list[Cause]:
        """Return what is wrong with a new object; empty = nothing but perhaps CEL rules."""
        if self._is_valid(obj):
            return []
        causes = value_causes(obj, self._schema, checks=self._checks)
        causes += embedded_causes(obj, self._schema)
        return self._noted(causes + list_causes(obj, self._schema))

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Return what is wrong with an update, but for faults of parts that it leaves alone.

        Embedded resources are judged as new ones; duplicates in lists count only when the old
        object had none.
        """
        if self._is_valid(new):
            return []
        causes = value_causes(new, self._schema, old=old, checks=self._checks)
        causes += embedded_causes(new, self._schema)
        if not list_causes(old, self._schema):
            causes += list_causes(new, self._schema)
        return self._noted(causes)

    def _noted(self, causes: list[Cause]) -> list[Cause]:
        return [*causes, UNCHECKED] if self._has_cel and blocks_cel(causes) else causes


def blocks_cel(causes: Iterable[Cause]) -> bool:
    """Whether faults are of a kind that CEL rules cannot be tried beside."""
    return any(cause.reason in _BLOCKING for cause in causes)
