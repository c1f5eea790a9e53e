"""Comparing a recorded object with ours: equal but for what two hubs cannot have in common.

Those values are learned, not blanked: the first pair of uids, revisions, generated names,
certificates or requests that meet belong together from then on, so a uid that changes under an
object is found.
"""

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from hub.meta import Obj
from hub.meta.timestamp import parse_time

How = Literal["adds", "lacks", "changes"]
_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z$")
_LEARNED = re.compile(
    r"/metadata/(uid|resourceVersion|continue)$|/details/uid$|/userInfo/uid$"
    r"|/status/(certificate|token)$|/spec/request$"
    r"|/extra/authentication\.kubernetes\.io~1credential-id/0$"
)
_REWRITTEN = frozenset({"uid", "resourceVersion", "renewTime", "request", "audiences"})
_LIST_META = re.compile(r"^/metadata/resourceVersion$")


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where ours is not the recorded one."""

    path: str
    how: How
    recorded: object
    ours: object

    def __str__(self) -> str:
        return f"{self.path} {self.how}: recorded {self.recorded!r:.300}, ours {self.ours!r:.300}"


@dataclass(slots=True)
class Learned:
    """Which of our values stands for which recorded one."""

    began: dt.datetime
    ours: dict[str, str] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)
    """What clients sent and the hub has to keep: times of renewal, and of conditions with their
    object and type.
    """
    kept: set[str] = field(default_factory=set)
    """Times that clients sent and that come back wherever they stand."""

    def of(self, recorded: str) -> str:
        return self.ours.get(recorded, recorded)


@dataclass(slots=True)
class Comparison:
    """The findings for one pair of objects, and what it taught; nothing is kept until `keep`."""

    findings: list[Finding]
    taught: dict[str, str]

    def keep(self, learned: Learned) -> None:
        learned.ours.update(self.taught)


def compare(recorded: object, ours: object, learned: Learned) -> Comparison:
    """Compare two decoded bodies."""
    taught: dict[str, str] = {}
    findings = list(_walk("", recorded, ours, _Context(learned, taught)))
    return Comparison(findings, taught)


@dataclass(frozen=True, slots=True)
class _Context:
    learned: Learned
    taught: dict[str, str]
    is_generated: bool = False
    is_collection: bool = False
    uid: str = ""


def _walk(path: str, recorded: object, ours: object, context: _Context) -> Iterator[Finding]:
    if isinstance(recorded, dict) and isinstance(ours, dict):
        yield from _walk_dict(path, recorded, ours, context)
    elif isinstance(recorded, list) and isinstance(ours, list):
        yield from _walk_list(path, recorded, ours, context)
    elif not _is_counterpart(path, recorded, ours, context):
        yield Finding(path, "changes", recorded, ours)


def _walk_dict(path: str, recorded: Obj, ours: Obj, context: _Context) -> Iterator[Finding]:
    if path == "":
        context = replace(context, is_collection="items" in recorded or "rows" in recorded)
    context = replace(context, uid=(recorded.get("metadata") or {}).get("uid", context.uid))
    for name in [*recorded, *(name for name in ours if name not in recorded)]:
        if name == "managedFields":
            continue
        place = f"{path}/{_escape(name)}"
        if _is_changed_condition(name, recorded, ours, context):
            yield Finding(place, "changes", recorded[name], ours[name])
        elif name not in ours:
            yield from _one_sided(place, "lacks", recorded[name])
        elif name not in recorded:
            yield from _one_sided(place, "adds", ours[name])
        else:
            inner = context
            if name == "name" and path.endswith("/metadata") and "generateName" in recorded:
                inner = replace(context, is_generated=True)
            yield from _walk(place, recorded[name], ours[name], inner)


def _is_changed_condition(name: str, recorded: Obj, ours: Obj, context: _Context) -> bool:
    """Whether the hub put another time into a condition that a client had written."""
    if name != "lastTransitionTime" or name not in recorded or name not in ours:
        return False
    is_sent = _condition_key(context.uid, recorded) in context.learned.sent
    return is_sent and recorded[name] != ours[name]


def sent_conditions(body: Obj) -> Iterator[str]:
    """Yield the conditions of a request body as `Learned.sent` names them."""
    uid = (body.get("metadata") or {}).get("uid", "")
    level: list[Obj | list[object]] = [body]
    while level:
        value = level.pop()
        children = value.values() if isinstance(value, dict) else value
        level += [child for child in children if isinstance(child, (dict, list))]
        if isinstance(value, dict) and "lastTransitionTime" in value:
            yield _condition_key(uid, value)


def sent_times(value: object) -> Iterator[str]:
    """Yield every time in a request body."""
    children = value.values() if isinstance(value, dict) else value
    if isinstance(children, str) or not isinstance(children, Iterable):
        if isinstance(value, str) and _TIME.match(value):
            yield value
        return
    for child in children:
        yield from sent_times(child)


def _condition_key(uid: str, condition: Obj) -> str:
    return f"{uid} {condition.get('type')} {condition['lastTransitionTime']}"


def _one_sided(path: str, how: How, value: object) -> Iterator[Finding]:
    """Yield what only one side has, field by field, so that each field needs its own reason."""
    if isinstance(value, dict) and value:
        for name, child in value.items():
            yield from _one_sided(f"{path}/{_escape(name)}", how, child)
    elif how == "lacks":
        yield Finding(path, how, value, None)
    else:
        yield Finding(path, how, None, value)


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _walk_list(
    path: str, recorded: list[object], ours: list[object], context: _Context
) -> Iterator[Finding]:
    for position in range(max(len(recorded), len(ours))):
        place = f"{path}/{position}"
        if position >= len(ours):
            yield from _one_sided(place, "lacks", recorded[position])
        elif position >= len(recorded):
            yield from _one_sided(place, "adds", ours[position])
        else:
            yield from _walk(place, recorded[position], ours[position], context)


def _is_counterpart(path: str, recorded: object, ours: object, context: _Context) -> bool:
    """Whether two leaves are equal, or each other's counterpart on the two hubs."""
    if not isinstance(recorded, str) or not isinstance(ours, str) or not recorded or not ours:
        return recorded == ours and type(recorded) is type(ours)
    if context.is_collection and _LIST_META.match(path):
        return ours.isdecimal()
    known = context.taught.get(recorded, context.learned.ours.get(recorded))
    if known is not None:
        return known == ours
    if context.is_generated or _LEARNED.search(path):
        context.taught[recorded] = ours
        return True
    return recorded == ours or _is_own_time(recorded, ours, context.learned)


def _is_own_time(recorded: str, ours: str, learned: Learned) -> bool:
    """Whether both are times of the same precision that the hubs made themselves."""
    old, new = _TIME.match(recorded), _TIME.match(ours)
    if old is None or new is None or bool(old[1]) != bool(new[1]):
        return False
    if recorded in learned.kept or (recorded in learned.sent and old[1]):
        return False
    return parse_time(ours) >= learned.began - dt.timedelta(seconds=1)


def rewrite(value: object, learned: Learned, name: str = "") -> object:
    """Return a body with every recorded value of `_REWRITTEN` replaced by its counterpart."""
    if isinstance(value, dict):
        return {key: rewrite(child, learned, key) for key, child in value.items()}
    if isinstance(value, list):
        return [rewrite(child, learned, name) for child in value]
    return learned.of(value) if isinstance(value, str) and name in _REWRITTEN else value
