"""YAML bodies, read as the JSON they stand for.

Owns the way from one YAML document to an object: which plain words are numbers, booleans or null
(those of go-yaml v2 behind sigs.k8s.io/yaml, which kube-apiserver uses: times and base-60 numbers
stay text), duplicate keys, and the limits. It reads parser events, not PyYAML's node graph, so
nesting and aliases are counted before they cost anything.

Invariant: what comes out could have come from a JSON body: string keys, no times, no shared or
cyclic parts.
"""

import math
import re
from collections.abc import Iterator

import yaml

from hub.meta import Obj
from hub.meta.codec import json
from hub.meta.errors import ApiError, bad_request

MAX_VALUES = 200_000
"""Values accepted in one document, aliases counted at full size."""

MAX_FAULTS = 100
"""Duplicate keys that are told of."""
FAULTS_HEAD = "yaml: unmarshal errors:\n"

_PREFIX = "tag:yaml.org,2002:"
_TAGGED = {
    f"{_PREFIX}int": "number",
    f"{_PREFIX}float": "number",
    f"{_PREFIX}bool": "bool",
    f"{_PREFIX}null": "null",
}
_TRUE = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_NOT_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INT = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LONGEST_INT = 67  # 64 binary digits, a sign and 0b
_INT64, _UINT64 = -(2**63), 2**64


class _YamlError(Exception):
    """What is wrong with the document, and on which line."""

    def __init__(self, text: str, line: int) -> None:
        super().__init__(f"line {line}: {text}")


def decode(data: bytes, faults: list[str] | None = None) -> Obj:
    """Return the object of one YAML document. Raises a 400 ApiError naming the line.

    Of a key that stands twice the last counts; `faults` is told of all such keys in one text, as
    go-yaml's strict decoder has it.
    """
    try:
        reader = _Reader(data)
        value = reader.document()
    except (_YamlError, yaml.YAMLError, UnicodeDecodeError) as e:
        raise _malformed(_describe(e)) from e
    if not isinstance(value, dict):
        raise _malformed(f"the body must be an object, not {json.kind_of(value)}")
    if faults is not None and reader.duplicates:
        lines = reader.duplicates[:MAX_FAULTS]
        faults.append(FAULTS_HEAD + "\n".join(f"  {line}" for line in lines))
    return value


class _Reader:
    """Builds values from parser events; every value made is counted."""

    def __init__(self, data: bytes) -> None:
        self._events: Iterator[yaml.Event] = yaml.parse(data.decode(), Loader=yaml.CSafeLoader)
        self._left = MAX_VALUES
        self._anchors: dict[str, object] = {}
        self.duplicates: list[str] = []

    def document(self) -> object:
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        value = self._value(next(self._events), 0)
        next(self._events)
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise _YamlError("only one document is expected", _line(after))
        return value

    def _spend(self, line: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise _YamlError(f"more than {MAX_VALUES} values", line)

    def _value(self, event: yaml.Event, depth: int) -> object:
        line = _line(event)
        self._spend(line)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise _YamlError(f"unknown anchor '{event.anchor}' referenced", line)
            return self._copy(self._anchors[event.anchor], depth, line)
        if isinstance(event, yaml.ScalarEvent):
            return self._anchored(event.anchor, _scalar(event))
        if depth >= json.MAX_DEPTH:
            raise _YamlError("exceeded max depth", line)
        if isinstance(event, yaml.SequenceStartEvent):
            _refuse_tag(event.tag, "seq", line)
            return self._anchored(event.anchor, self._sequence(depth))
        assert isinstance(event, yaml.MappingStartEvent)
        _refuse_tag(event.tag, "map", line)
        return self._anchored(event.anchor, self._mapping(depth))

    def _anchored(self, anchor: str | None, value: object) -> object:
        # an alias inside its own anchor is unknown there, so nothing can contain itself
        if anchor is not None:
            self._anchors[anchor] = value
        return value

    def _sequence(self, depth: int) -> list[object]:
        items: list[object] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._value(event, depth + 1))
        return items

    def _mapping(self, depth: int) -> dict[str, object]:
        mapping: dict[str, object] = {}
        merged: dict[str, object] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            is_merge = _is_merge_key(event)
            key = _key(self._value(event, depth + 1), _line(event))
            under = next(self._events)
            value = self._value(under, depth + 1)
            if is_merge:
                merged |= _merge_source(value, _line(event))
                continue
            if key in mapping:
                self.duplicates.append(f'line {_line(under)}: key "{key}" already set in map')
            mapping[key] = value
        return merged | mapping

    def _copy(self, value: object, depth: int, line: int) -> object:
        if depth > json.MAX_DEPTH:
            raise _YamlError("exceeded max depth", line)
        self._spend(line)
        if isinstance(value, dict):
            return {k: self._copy(v, depth + 1, line) for k, v in value.items()}
        if isinstance(value, list):
            return [self._copy(v, depth + 1, line) for v in value]
        return value


def _scalar(event: yaml.ScalarEvent) -> object:
    text, tag = event.value, event.tag
    if tag is None and event.implicit[0]:
        return _plain(text, _line(event))
    if tag in {None, "!", f"{_PREFIX}str"}:
        return text
    value = _plain(text, _line(event))
    if json.kind_of(value) != _TAGGED.get(tag):
        raise _YamlError(f"cannot read {text!r} with the tag {tag}", _line(event))
    return value


def _plain(text: str, line: int) -> object:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text in _NULL:
        return None
    if _NOT_JSON.fullmatch(text):
        raise _YamlError(f"{text} has no JSON form", line)
    if text[0] in "+-.0123456789":
        return _number(text)
    return text


def _number(text: str) -> object:
    bare = text.replace("_", "")
    if len(bare) <= _LONGEST_INT and (found := _INT.fullmatch(bare)):
        sign, *written = found.groups()
        digits, base = next((d, b) for d, b in zip(written, (16, 2, 8, 10), strict=True) if d)
        number = int(sign + digits, base)
        if _INT64 <= number < _UINT64:
            return number
    if _FLOAT.fullmatch(bare):
        # too large for a double: go-yaml leaves it text
        return value if math.isfinite(value := float(bare)) else text
    return text


def _is_merge_key(event: yaml.Event) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]


def _merge_source(value: object, line: int) -> dict[str, object]:
    merged: dict[str, object] = {}
    for source in reversed(value if isinstance(value, list) else [value]):
        if not isinstance(source, dict):
            raise _YamlError("map merge requires map or sequence of maps as the value", line)
        merged |= source
    return merged


def _key(value: object, line: int) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (dict, list)):
        raise _YamlError(f"a key must be text, not {json.kind_of(value)}", line)
    return json.encode(value).decode()


def _refuse_tag(tag: str | None, kind: str, line: int) -> None:
    if tag not in {None, "!", _PREFIX + kind}:
        raise _YamlError(f"the tag {tag} has no JSON form", line)


def _line(event: yaml.Event) -> int:
    mark = event.start_mark
    return mark.line + 1 if mark is not None else 0


def _describe(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    return f"line {mark.line + 1}: {problem}" if mark and problem else str(error)


def _malformed(problem: str) -> ApiError:
    return bad_request(f"error converting YAML to JSON: yaml: {problem}")
