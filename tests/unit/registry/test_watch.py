"""The watch hub's index delivers what testing every watcher against every change would."""

import itertools
import json
from dataclasses import dataclass, field
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.meta import Obj
from hub.meta.selectors import FieldSelector, parse_field_selector, parse_label_selector
from hub.registry.kind import Kind
from hub.registry.objects import index_of
from hub.registry.watch import Alarms, Event, Variant, Watcher, WatchHub
from hub.store import Change, Op, Revision, decode_key, encode_key
from tests.unit.registry.given import CATALOG, kind_named

CONFIG_MAP, CLUSTER = kind_named("ConfigMap"), kind_named("ManagedCluster")
PLAIN = Variant(("plain",), lambda document: document)
NAMES, NAMESPACES = ("a", "b", "c"), ("x", "y")
SELECTORS = ("", "on", "on=1", "on=2", "on!=1", "on in (1,2)", "!on", "on=1,tier=t", "tier")
FIELDS = ("", "metadata.name=a", "metadata.name!=a", "metadata.namespace=x")


@dataclass(slots=True)
class Seen:
    """A watcher and what it was given."""

    watcher: Watcher
    lines: list[bytes] = field(default_factory=list)


def watcher(kind: Kind, namespace: str, labels: str, fields: str) -> Seen:
    selector: FieldSelector = parse_field_selector(fields)
    lines: list[bytes] = []
    made = Watcher(
        kind=kind,
        namespace=namespace,
        name=selector.pinned("metadata.name") or "",
        labels=parse_label_selector(labels),
        fields=selector,
        variant=PLAIN,
        sink=lines.append,
        since=Revision(0),
    )
    return Seen(made, lines)


watchers = st.tuples(
    st.sampled_from((CONFIG_MAP, CLUSTER)),
    st.sampled_from(("", *NAMESPACES)),
    st.sampled_from(SELECTORS),
    st.sampled_from(FIELDS),
)
labels = st.dictionaries(st.sampled_from(("on", "tier")), st.sampled_from(("1", "2", "t")))
steps = st.lists(
    st.tuples(
        st.sampled_from((CONFIG_MAP, CLUSTER)),
        st.sampled_from(NAMESPACES),
        st.sampled_from(NAMES),
        st.one_of(st.none(), labels),
    ),
    max_size=25,
)


Asked: TypeAlias = tuple[Kind, str, str, str]
Step: TypeAlias = tuple[Kind, str, str, dict[str, str] | None]


class History:
    """Makes the changes a store would show."""

    def __init__(self) -> None:
        self._objects: dict[bytes, Obj] = {}
        self._revision = 0

    def step(self, step: Step) -> Change | None:
        kind, namespace, name, wanted = step
        namespace = namespace if kind.is_namespaced else ""
        key = encode_key(kind.id, namespace, name)
        before = self._objects.get(key)
        if wanted is None and before is None:
            return None
        self._revision += 1
        meta: Obj = {"name": name, "namespace": namespace, "resourceVersion": str(self._revision)}
        if wanted is None:
            after = {**(before or {}), "metadata": {**(before or {})["metadata"], **meta}}
            op = Op.DELETE
            del self._objects[key]
        else:
            after = {"metadata": {**meta, "labels": wanted}}
            op = Op.CREATE if before is None else Op.UPDATE
            self._objects[key] = after
        return Change(
            op=op,
            key=key,
            revision=Revision(self._revision),
            value=json.dumps(after).encode(),
            index=index_of(kind, after),
            previous_index=None if before is None else index_of(kind, before),
            previous=None if before is None else lambda: json.dumps(before).encode(),
        )


def compare(asked: list[Asked], plan: list[Step]) -> None:
    """Show a history through the index, and to every watcher; both must tell the same."""
    hub = WatchHub(CATALOG.by_id)
    indexed = [watcher(*each) for each in asked]
    walked = [watcher(*each) for each in asked]
    for each in indexed:
        hub.add(each.watcher)
    history = History()
    for step in plan:
        change = history.step(step)
        if change is None:
            continue
        hub.show([change])
        resource, namespace, name = decode_key(change.key)
        kind = CATALOG.by_id(resource)
        assert kind is not None
        for each in walked:
            if each.watcher.kind is kind:
                each.watcher.offer(Event(change, kind, namespace, name))
    assert [each.lines for each in indexed] == [each.lines for each in walked]


@given(st.lists(watchers, min_size=1, max_size=8), steps)
def test_the_index_finds_every_watcher_that_a_walk_over_all_would(
    asked: list[Asked], plan: list[Step]
) -> None:
    compare(asked, plan)


STATES: tuple[dict[str, str] | None, ...] = (None, {}, {"on": "1"}, {"on": "2", "tier": "t"})


@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("after", STATES)
def test_every_step_from_one_state_to_another_reaches_whom_it_concerns(
    before: dict[str, str] | None, after: dict[str, str] | None
) -> None:
    plan: list[Step] = [(CONFIG_MAP, "x", "a", before), (CONFIG_MAP, "x", "a", after)]
    asked = itertools.product((CONFIG_MAP, CLUSTER), ("", *NAMESPACES), SELECTORS, FIELDS)
    compare(list(asked), plan)


@given(st.sampled_from(SELECTORS), steps)
def test_what_a_watcher_was_shown_adds_up_to_what_is_there(selector: str, plan: list[Step]) -> None:
    hub = WatchHub(CATALOG.by_id)
    seen = watcher(CONFIG_MAP, "", selector, "")
    hub.add(seen.watcher)
    history = History()
    there: dict[tuple[str, str], Obj] = {}
    for step in plan:
        change = history.step(step)
        if change is None:
            continue
        hub.show([change])
        if step[0] is CONFIG_MAP:
            there.pop(step[1:3], None)
            if seen.watcher.labels.matches(step[3] or {}) and change.op is not Op.DELETE:
                there[step[1:3]] = json.loads(change.value)
    known: dict[tuple[str, str], Obj] = {}
    revisions = []
    for line in seen.lines:
        event = json.loads(line)
        meta = event["object"]["metadata"]
        place = (meta["namespace"], meta["name"])
        revisions.append(int(meta["resourceVersion"]))
        assert (event["type"] == "ADDED") == (place not in known)
        if event["type"] == "DELETED":
            del known[place]
        else:
            known[place] = event["object"]
    assert known == there
    assert revisions == sorted(set(revisions))


def test_an_event_is_encoded_once_for_all_watchers_of_a_form() -> None:
    calls: list[bytes] = []

    def encode(document: bytes) -> bytes:
        calls.append(document)
        return document

    hub = WatchHub(CATALOG.by_id)
    for number in range(5):
        seen = watcher(CONFIG_MAP, "", "", "")
        seen.watcher.variant = Variant(("one" if number else "other",), encode)
        hub.add(seen.watcher)
    change = History().step((CONFIG_MAP, "x", "a", {}))
    assert change is not None
    hub.show([change])
    assert len(calls) == 2


def test_who_fails_keeps_nobody_else_from_a_change() -> None:
    def broken(_document: bytes) -> bytes:
        raise ValueError("broken")

    def failing_listener(event: Event) -> None:
        broken(event.change.value)

    hub = WatchHub(CATALOG.by_id)
    first, failing, last = (watcher(CONFIG_MAP, "", "", "") for _ in range(3))
    failing.watcher.variant = Variant(("broken",), broken)
    ended: list[bool] = []
    failing.watcher.cut = lambda: ended.append(True)
    heard: list[str] = []
    hub.listen(CONFIG_MAP, failing_listener)
    hub.listen(CONFIG_MAP, lambda event: heard.append(event.name))
    for each in (first, failing, last):
        hub.add(each.watcher)
    history = History()
    changes = [history.step((CONFIG_MAP, "x", name, {})) for name in "ab"]
    with pytest.raises(ExceptionGroup) as raised:
        hub.show([change for change in changes if change is not None])
    assert len(raised.value.exceptions) == 3  # the listener twice, the watcher once
    assert (len(first.lines), len(failing.lines), len(last.lines)) == (2, 0, 2)
    assert heard == ["a", "b"]
    assert ended == [True]
    assert len(hub) == 2


def test_a_removed_watcher_gets_nothing_more_and_leaves_nothing_behind() -> None:
    hub = WatchHub(CATALOG.by_id)
    history = History()
    for selector, fields in (("", ""), ("on=1", ""), ("", "metadata.name=a")):
        seen = watcher(CONFIG_MAP, "", selector, fields)
        hub.add(seen.watcher)
        assert len(hub) == 1
        hub.remove(seen.watcher)
        hub.remove(seen.watcher)
        assert len(hub) == 0
        change = history.step((CONFIG_MAP, "x", "a", {"on": "1"}))
        assert change is not None
        hub.show([change])
        assert seen.lines == []
    assert hub._watchers == {}


def test_lines_held_back_come_after_the_start_and_too_many_end_the_watch() -> None:
    seen = watcher(CONFIG_MAP, "", "", "")
    seen.watcher.held = []
    seen.watcher.held_limit_bytes = 10
    ended: list[bool] = []
    seen.watcher.cut = lambda: ended.append(True)
    seen.watcher.send(b"12345")
    assert seen.watcher.take_held() == [b"12345"]
    for _ in range(2):
        seen.watcher.send(b"12345")
    assert (seen.lines, ended) == ([], [])
    seen.watcher.release()
    assert seen.lines == [b"12345", b"12345"]
    seen.watcher.send(b"x")
    assert seen.lines[-1] == b"x"
    slow = watcher(CONFIG_MAP, "", "", "")
    slow.watcher.held, slow.watcher.held_limit_bytes = [], 10
    slow.watcher.cut = lambda: ended.append(True)
    for _ in range(3):
        slow.watcher.send(b"12345")
    assert ended == [True]


@pytest.mark.parametrize("is_off", [False, True])
def test_alarms_ring_when_due_again_when_asked_and_not_when_off(*, is_off: bool) -> None:
    alarms = Alarms()
    rung: list[str] = []

    def twice() -> float | None:
        rung.append("twice")
        return 30.0 if rung.count("twice") == 1 else None

    first = alarms.at(10, twice)
    alarms.at(20, lambda: rung.append("once"))
    alarms.run(9.9)
    assert rung == []
    if is_off:
        first.off()
    alarms.run(25)
    assert rung == (["once"] if is_off else ["twice", "once"])
    alarms.run(100)
    assert rung == (["once"] if is_off else ["twice", "once", "twice"])
    alarms.run(1000)
    assert len(rung) == (1 if is_off else 3)


def test_alarms_that_are_off_do_not_pile_up_however_far_away_they_are() -> None:
    alarms = Alarms()
    rung: list[str] = []
    kept = [alarms.at(1e12 + n, lambda: rung.append("x")) for n in range(50)]
    for _ in range(10_000):
        alarms.at(1e15, lambda: None).off()
    assert len(alarms) < 2_000
    alarms.run(1e13)
    assert len(rung) == len(kept)
