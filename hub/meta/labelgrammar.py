"""The grammar of ``labelSelector=``: a recursive descent over a few tokens.

Owns the text form only; what a condition means is `hub.meta.requirement`'s business. Mirrors
``Parser`` of apimachinery's ``pkg/labels/selector.go``, error texts included.

    selector    = [ requirement *( "," requirement ) ]
    requirement = [ "!" ] KEY | KEY ( "in" | "notin" ) "(" values ")" | KEY sign [ VALUE ]
    values      = [ VALUE ] *( "," [ VALUE ] )
    sign        = "=" | "==" | "!=" | ">" | "<"
"""

import re

from hub.meta.causes import invalid_value
from hub.meta.names import label_key_errors
from hub.meta.requirement import SETS, Operator, Requirement, RequirementError, make_requirement

_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+")
_SYMBOLS = frozenset({"=", "==", "!=", "!", "(", ")", ",", "<", ">"})
_OPERATORS = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}
_EXPECTED_OPERATORS = ", ".join(_OPERATORS.values())
_END = ""


def parse(text: str) -> list[Requirement]:
    """Return the conditions in the order written. Raises RequirementError."""
    tokens = _Tokens(text)
    if not tokens.has_requirement and tokens.peek() != _END:
        raise _found(tokens.peek(), ", expected: !, identifier, or 'end of string'")
    requirements: list[Requirement] = []
    while tokens.has_requirement:
        try:
            requirements.append(_parse_requirement(tokens))
        except RequirementError as e:
            raise RequirementError(f"unable to parse requirement: {e}") from e
        word = tokens.take()
        if word not in {_END, ","}:
            raise _found(word, ", expected: ',' or 'end of string'")
        if word == "," and not tokens.has_requirement:
            raise _found(tokens.peek(), ", expected: identifier after ','")
    return requirements


class _Tokens:
    """The tokens and a position; the end may be taken again and again."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._at = 0

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def take(self) -> str:
        word = self.peek()
        self._at += 1
        return word

    @property
    def has_requirement(self) -> bool:
        return self.peek() == "!" or _is_word(self.peek())


def _parse_requirement(tokens: _Tokens) -> Requirement:
    key = tokens.take()
    is_negated = key == "!"
    if is_negated:
        key = tokens.take()
    if not _is_word(key):
        raise _found(key, ", expected: identifier")
    if errors := label_key_errors(key):
        cause = invalid_value("<nil>", key, "; ".join(errors))
        raise RequirementError(f"{cause.field}: {cause.message}")
    if is_negated:
        return make_requirement(key, Operator.DOES_NOT_EXIST)
    if tokens.peek() in {_END, ","}:
        return make_requirement(key, Operator.EXISTS)
    word = tokens.take()
    operator = _OPERATORS.get(word)
    if operator is None:
        raise _found(word, f", expected: {_EXPECTED_OPERATORS}")
    values = _parse_set(tokens) if operator in SETS else {_parse_exact_value(tokens)}
    return make_requirement(key, operator, sorted(values))


def _parse_set(tokens: _Tokens) -> set[str]:
    word = tokens.take()
    if word != "(":
        raise _found(word, " expected: '('")
    if not _is_word(tokens.peek()) and tokens.peek() not in {",", ")"}:
        raise _found(tokens.peek(), ", expected: ',', ')' or identifier")
    values: set[str] = set()
    while True:
        word = tokens.peek()
        if not _is_word(word) and word not in {",", ")"}:
            raise _found(word, ", expected: ',', or identifier")
        values.add(tokens.take() if _is_word(word) else "")
        word = tokens.take()
        if word == ")":
            return values
        if word != ",":
            raise _found(word, ", expected: ',' or ')'")


def _parse_exact_value(tokens: _Tokens) -> str:
    if tokens.peek() in {_END, ","}:
        return ""
    word = tokens.take()
    if not _is_word(word):
        raise _found(word, ", expected: identifier")
    return word


def _is_word(word: str) -> bool:
    return word != _END and word not in _SYMBOLS


def _found(word: str, expected: str) -> RequirementError:
    return RequirementError(f"found '{word}'{expected}")
