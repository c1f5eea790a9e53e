"""One condition on one label.

Owns operators, what they mean, and which keys and values they accept. Mirrors ``Requirement`` of
apimachinery's ``pkg/labels/selector.go``, error texts included.
"""

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hub.meta.causes import invalid_value
from hub.meta.errors import Cause
from hub.meta.names import label_key_errors, label_value_errors


class RequirementError(ValueError):
    """A condition that cannot be: the text is apimachinery's and ready for a client's eyes."""


class Operator(enum.StrEnum):
    """How a key relates to values, spelled as apimachinery's ``selection`` package does."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


SETS = frozenset({Operator.IN, Operator.NOT_IN})
COMPARISONS = frozenset({Operator.GREATER_THAN, Operator.LESS_THAN})
UNARY = frozenset({Operator.EXISTS, Operator.DOES_NOT_EXIST})
_WANTS_VALUE = frozenset({Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS})
_REFUSES_VALUE = frozenset({Operator.NOT_IN, Operator.NOT_EQUALS})


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition; `values` are sorted. An `IN` without values holds for nothing."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` meet the condition; an absent key meets only the negative ones."""
        value = labels.get(self.key)
        if self.operator in _WANTS_VALUE:
            return value is not None and value in self.values
        if self.operator in _REFUSES_VALUE:
            return value is None or value not in self.values
        if self.operator is Operator.EXISTS:
            return value is not None
        if self.operator is Operator.DOES_NOT_EXIST:
            return value is None
        return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        label, bound = _int64(value), _int64(self.values[0])
        if label is None or bound is None:
            return False
        return label > bound if self.operator is Operator.GREATER_THAN else label < bound

    def __str__(self) -> str:
        if self.operator is Operator.EXISTS:
            return self.key
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        if self.operator in SETS:
            return f"{self.key} {self.operator} ({','.join(self.values)})"
        sign = {Operator.GREATER_THAN: ">", Operator.LESS_THAN: "<"}.get(self.operator)
        return f"{self.key}{sign or self.operator}{self.values[0]}"


def make_requirement(key: str, operator: Operator, values: Sequence[str] = ()) -> Requirement:
    """Return the condition after checking key, values and their number.

    Raises RequirementError with every complaint, in brackets when there is more than one.
    """
    causes = [invalid_value("key", key, "; ".join(e))] if (e := label_key_errors(key)) else []
    causes.extend(_count_causes(operator, values))
    for i, value in enumerate(values):
        if errors := label_value_errors(value):
            causes.append(invalid_value(f"values[{i}][{key}]", value, "; ".join(errors)))
    if causes:
        texts = [f"{c.field}: {c.message}" for c in causes]
        raise RequirementError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    return Requirement(key, operator, tuple(sorted(set(values))))


def _count_causes(operator: Operator, values: Sequence[str]) -> list[Cause]:
    if operator in SETS:
        is_wrong, rule = not values, "for 'in', 'notin' operators, values set can't be empty"
    elif operator in UNARY:
        is_wrong, rule = bool(values), "values set must be empty for exists and does not exist"
    elif operator in COMPARISONS:
        is_wrong, rule = len(values) != 1, "for 'Gt', 'Lt' operators, exactly one value is required"
        if not is_wrong and _int64(values[0]) is None:
            rule = "for 'Gt', 'Lt' operators, the value must be an integer"
            return [invalid_value("values[0]", values[0], rule)]
    else:
        is_wrong, rule = len(values) != 1, "exact-match compatibility requires one single value"
    return [invalid_value("values", list(values), rule)] if is_wrong else []


def _int64(text: str) -> int | None:
    if re.fullmatch(r"[+-]?[0-9]{1,64}", text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
