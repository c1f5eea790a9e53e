"""Label and field selectors: from text or structure to something that matches.

Owns the selectors' meaning. Which fields a kind can be selected by is the registry's business (it
asks `FieldSelector.requirements`). Selectors are parsed once and matched often, immutable and
hashable. Mirrors apimachinery's ``pkg/labels``, ``pkg/fields/selector.go`` and
``pkg/apis/meta/v1/helpers.go``, error texts included; all come as 400.

>>> parse_label_selector("env in (dev,test),!old").matches({"env": "dev"})
True
>>> parse_field_selector("metadata.name=a,type!=b").pinned("metadata.name")
'a'
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hub.meta import Obj, labelgrammar
from hub.meta.errors import bad_request
from hub.meta.requirement import Operator, Requirement, RequirementError, make_requirement

_STRUCTURED = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A conjunction of conditions, sorted by key; without any it selects everything."""

    requirements: tuple[Requirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether everything is selected."""
        return not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(r.matches(labels) for r in self.requirements)

    def __str__(self) -> str:
        return ",".join(str(r) for r in self.requirements)


NOTHING = LabelSelector((Requirement("", Operator.IN),))


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """A field must (or, if not `is_equal`, must not) have a value; an absent field has ``""``."""

    field: str
    value: str
    is_equal: bool = True

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether `fields` meet the condition."""
        return (fields.get(self.field, "") == self.value) is self.is_equal

    def __str__(self) -> str:
        escaped = re.sub(r"([\\,=])", r"\\\1", self.value)
        return f"{self.field}{'=' if self.is_equal else '!='}{escaped}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """A conjunction of conditions on fields; without any it selects everything."""

    requirements: tuple[FieldRequirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether everything is selected."""
        return not self.requirements

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether an object with these selectable fields is selected."""
        return all(r.matches(fields) for r in self.requirements)

    def pinned(self, field: str) -> str | None:
        """Return the one value `field` must have, None if the selector leaves it open."""
        wanted = (r.value for r in self.requirements if r.is_equal and r.field == field)
        return next(wanted, None)

    def __str__(self) -> str:
        return ",".join(str(r) for r in self.requirements)


def parse_label_selector(text: str) -> LabelSelector:
    """Return the selector of a query parameter; empty text selects everything.

    Raises a 400 ApiError.
    """
    try:
        return _sorted(labelgrammar.parse(text))
    except RequirementError as e:
        raise bad_request(str(e)) from e


def structured_label_selector(selector: Obj | None) -> LabelSelector:
    """Return the selector of a ``metav1.LabelSelector``: None selects nothing, ``{}`` everything.

    Raises a 400 ApiError naming the key, value or operator that is not valid.
    """
    if selector is None:
        return NOTHING
    try:
        requirements = [
            make_requirement(key, Operator.EQUALS, [value])
            for key, value in (selector.get("matchLabels") or {}).items()
        ]
        requirements.extend(_from_expression(e) for e in selector.get("matchExpressions") or ())
    except RequirementError as e:
        raise bad_request(str(e)) from e
    return _sorted(requirements)


def parse_field_selector(text: str) -> FieldSelector:
    r"""Return the selector of a query parameter; empty text selects everything.

    In values ``\\``, ``\,`` and ``\=`` stand for the character itself. Raises a 400 ApiError.
    """
    requirements = []
    for term in sorted(_split_terms(text)):
        found = re.match(r"(?s)(.*?)(!=|==|=)(.*)", term)
        if found is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        field, operator, value = found.groups()
        requirements.append(FieldRequirement(field, _unescape(value), operator != "!="))
    return FieldSelector(tuple(requirements))


def _sorted(requirements: list[Requirement]) -> LabelSelector:
    return LabelSelector(tuple(sorted(requirements, key=lambda r: r.key)))


def _from_expression(expression: Obj) -> Requirement:
    name = expression.get("operator", "")
    operator = _STRUCTURED.get(name)
    if operator is None:
        raise RequirementError(f'"{name}" is not a valid label selector operator')
    return make_requirement(expression.get("key", ""), operator, expression.get("values") or ())


def _split_terms(text: str) -> list[str]:
    return [t for t in re.findall(r"(?s)(?:\\.|[^,\\]|\\$)*", text) if t]


def _unescape(value: str) -> str:
    plain, characters = "", iter(value)
    for character in characters:
        if character in ",=":
            code = ord(character)
            raise bad_request(f"invalid field selector: unescaped character in value: {code}")
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in {"\\", ",", "="}:
                raise bad_request(f"invalid field selector: invalid escape sequence: \\{escaped}")
            plain += escaped
        else:
            plain += character
    return plain
