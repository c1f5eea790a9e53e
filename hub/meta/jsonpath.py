r"""The subset of Kubernetes' JSONPath that printer columns and selectable fields use.

Owns parsing and finding; how a value is printed is `hub.meta.table`'s business. Mirrors client-go's
``util/jsonpath`` as far as CustomResourceDefinitions use it, with missing keys allowed::

    .spec.a   ['a.b']   .labels.a\.b   [0]   [-1]   [*]   [?(@.type=="Ready")]   [?(@.a.b!=1)]

>>> JsonPath.parse('.c[?(@.type=="B")].status').find({"c": [{"type": "B", "status": "True"}]})
['True']
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from hub.meta import Obj


@dataclass(frozen=True, slots=True)
class Key:
    """A member of an object."""

    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """An item of a list; negative from the end."""

    at: int


@dataclass(frozen=True, slots=True)
class Every:
    """All members of an object or items of a list."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The items of a list whose value at `path` is, or with `is_equal` False is not, `value`."""

    path: tuple[Key, ...]
    value: str | int | float | bool | None
    is_equal: bool


Step: TypeAlias = Key | Index | Every | Filter

_NAME = r"(?:[^.\[\]\\()?@*'\"{}\s]|\\.)+"
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_STEP = re.compile(
    rf"""
      \.(?P<key>{_NAME})
    | \[(?P<quoted>{_QUOTED})\]
    | \[(?P<index>-?\d+)\]
    | (?P<every>\.\*|\[\*\])
    | \[\?\(\s*@(?P<inner>(?:\.{_NAME})+)\s*(?P<op>==|!=)\s*
        (?P<value>{_QUOTED}|-?\d+(?:\.\d+)?|true|false|null)\s*\)\]
    """,
    re.VERBOSE,
)
_INNER = re.compile(rf"\.({_NAME})")
_LITERALS = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A parsed path."""

    steps: tuple[Step, ...]

    @classmethod
    def parse(cls, text: str) -> "JsonPath":
        """Return the path of `text`, with or without ``{}`` around and ``$`` before it.

        Raises ValueError naming the place it stops understanding.
        """
        bare = re.fullmatch(r"(?s)\{?\$?(.*?)\}?", text.strip())
        rest = bare[1] if bare else text
        steps: list[Step] = []
        at = 0
        while at < len(rest):
            found = _STEP.match(rest, at)
            if found is None:
                raise ValueError(f"JSON path {text!r} is not understood from {rest[at:]!r} on")
            steps.append(_step(found))
            at = found.end()
        return cls(tuple(steps))

    def find(self, obj: Obj) -> list[object]:
        """Return every value at the path, in order; none where something is missing."""
        values: list[object] = [obj]
        for step in self.steps:
            values = [below for value in values for below in _follow(step, value)]
        return values


def _step(found: re.Match[str]) -> Step:
    if found["key"] is not None:
        return Key(_plain(found["key"]))
    if found["quoted"] is not None:
        return Key(_plain(found["quoted"][1:-1]))
    if found["index"] is not None:
        return Index(int(found["index"]))
    if found["every"] is not None:
        return Every()
    path = tuple(Key(_plain(name)) for name in _INNER.findall(found["inner"]))
    return Filter(path, _literal(found["value"]), found["op"] == "==")


def _literal(text: str) -> str | int | float | bool | None:
    if text in _LITERALS:
        return _LITERALS[text]
    if text[0] in "'\"":
        return _plain(text[1:-1])
    return float(text) if "." in text else int(text)


def _plain(text: str) -> str:
    return re.sub(r"(?s)\\(.)", r"\1", text)


def _follow(step: Step, value: object) -> Iterable[object]:
    if isinstance(step, Key):
        return (value[step.name],) if isinstance(value, dict) and step.name in value else ()
    if isinstance(step, Index):
        is_inside = isinstance(value, list) and -len(value) <= step.at < len(value)
        return (value[step.at],) if isinstance(value, list) and is_inside else ()
    if isinstance(step, Every):
        return value.values() if isinstance(value, dict) else _items(value)
    return (item for item in _items(value) if _passes(step, item))


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _passes(condition: Filter, item: object) -> bool:
    for found in _inner(condition.path, item):
        is_same = type(found) is type(condition.value) and found == condition.value
        return is_same is condition.is_equal
    return False  # an item without the field passes neither == nor !=, as in client-go


def _inner(path: tuple[Key, ...], item: object) -> Iterator[object]:
    values: Iterable[object] = (item,)
    for key in path:
        values = [below for value in values for below in _follow(key, value)]
    yield from values
