"""A hub that lies on a watch: each lie is told apart, and what is no lie is not taken for one."""

import pytest

from hub.meta import Obj
from tools.simulate.frame import INITIAL_EVENTS_END, WatchEvent
from tools.simulate.honesty import MISSED, OMITTED, OUT_OF_ORDER, OUTDATED, REPEATED
from tools.simulate.report import Outcome, render_report
from tools.simulate.tally import Tally
from tools.simulate.watchstate import End, WatchState
from tools.simulate.workbody import FINALIZER
from tools.simulate.writes import PATIENCE_S, Writes


def work(name: str, revision: int, *, held: bool = False, **metadata: object) -> Obj:
    found: Obj = {"name": name, "resourceVersion": str(revision), "uid": name, "generation": 1}
    if held:
        found["finalizers"] = [FINALIZER]
    return {"metadata": {**found, **metadata}}


def event(kind: str, obj: Obj) -> WatchEvent:
    return WatchEvent(kind, obj)


def bookmark(revision: int) -> WatchEvent:
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(revision)}})


class Watch:
    """A work agent's watch, fed with what a hub says."""

    def __init__(self, *objects: Obj, at: int = 10, held: frozenset[str] = frozenset()) -> None:
        self.clock_s, self.delivered_s = 0.0, list[float]()
        self.writes = Writes(lambda: self.clock_s, self.delivered_s.append)
        self.state = WatchState(hold=FINALIZER, held=held, writes=self.writes)
        self.listed(*objects, at=at)

    def listed(self, *objects: Obj, at: int) -> None:
        self.state.opened()
        for obj in objects:
            self.state.apply(event("ADDED", obj))
        end: Obj = {"resourceVersion": str(at), "annotations": {INITIAL_EVENTS_END: "true"}}
        self.state.apply(event("BOOKMARK", {"metadata": end}))

    def list_again(self, *objects: Obj, at: int) -> None:
        self.state.ended(End.EXPIRED, lasted_s=9)
        self.listed(*objects, at=at)

    def show(self, *events: WatchEvent) -> None:
        for each in events:
            self.state.apply(each)

    @property
    def faults(self) -> list[str]:
        return [fault.kind for fault in self.state.faults]


def test_an_honest_hub_is_believed() -> None:
    watch = Watch(work("a", 3), work("b", 10))
    watch.show(
        event("MODIFIED", work("a", 11, held=True)),
        event("MODIFIED", work("a", 12, held=True, generation=2)),
        bookmark(12),
        event("ADDED", work("c", 13)),
        event("DELETED", work("c", 14)),
        event("MODIFIED", work("a", 15, held=True, generation=3, deletionTimestamp="t")),
        event("DELETED", work("a", 16, deletionTimestamp="t")),
        event("ADDED", work("a", 17, uid="another")),
        bookmark(20),
        bookmark(20),
    )
    watch.list_again(work("a", 17, uid="another"), work("b", 21), at=30)
    assert watch.faults == []


@pytest.mark.parametrize(
    ("lie", "kind"),
    [
        (event("MODIFIED", work("a", 9)), OUT_OF_ORDER),
        (bookmark(9), OUT_OF_ORDER),
        (event("MODIFIED", work("a", 10)), REPEATED),
        (event("MODIFIED", work("new", 11)), MISSED),
        (event("DELETED", work("new", 11)), MISSED),
        (event("ADDED", work("a", 11)), MISSED),
        (event("MODIFIED", work("a", 11, uid="another")), MISSED),
        (event("MODIFIED", work("a", 11, generation=3)), MISSED),
        (event("MODIFIED", work("a", 11, generation=0)), MISSED),
        (event("DELETED", work("a", 11)), MISSED),
    ],
    ids=[
        "older",
        "older bookmark",
        "twice",
        "never added",
        "deleted unknown",
        "added again",
        "another object",
        "two generations on",
        "a generation back",
        "held, and deleted without a word",
    ],
)
def test_an_event_that_cannot_be_is_a_lie(lie: WatchEvent, kind: str) -> None:
    watch = Watch(work("a", 3, held=True))
    watch.show(lie)
    assert watch.faults == [kind]


def test_the_same_stream_after_a_reconnect_must_go_on_and_not_back() -> None:
    watch = Watch(work("a", 3))
    watch.show(event("MODIFIED", work("a", 11)))
    watch.state.ended(End.AWAY, lasted_s=9)
    watch.state.opened()
    watch.show(event("MODIFIED", work("a", 11)))
    assert watch.faults == [REPEATED]


@pytest.mark.parametrize(
    ("listed", "at", "kind"),
    [
        ([], 20, OMITTED),
        ([work("a", 15, uid="another")], 20, None),
        ([work("a", 3, held=True)], 9, OUTDATED),
        ([work("a", 2, held=True)], 20, OUTDATED),
        ([work("a", 21, held=True)], 20, OUT_OF_ORDER),
        ([work("a", 3, held=True), work("a", 3, held=True)], 20, REPEATED),
    ],
    ids=["left out", "made anew", "older list", "older object", "newer than itself", "twice"],
)
def test_a_list_must_be_whole_and_of_its_revision(
    listed: list[Obj], at: int, kind: str | None
) -> None:
    watch = Watch(work("a", 3, held=True))
    watch.list_again(*listed, at=at)
    assert watch.faults == ([kind] if kind else [])


def test_what_is_not_held_or_is_being_deleted_may_be_gone_from_a_list() -> None:
    watch = Watch(work("a", 3), work("b", 4, held=True, deletionTimestamp="t"))
    watch.list_again(at=20)
    assert watch.faults == []


def test_a_work_held_since_an_earlier_run_must_be_in_the_first_list() -> None:
    assert Watch(work("a", 3), held=frozenset({"a"})).faults == []
    assert Watch(work("b", 3), held=frozenset({"a", "b"})).faults == [OMITTED]


def test_an_omitted_work_fails_the_run_by_name() -> None:
    watch, tally = Watch(work("a", 3, held=True)), Tally()
    watch.list_again(at=20)
    tally.lied("watch manifestworks", watch.state.faults)
    good = Outcome(
        clusters=1,
        works_each=1,
        works_done=1,
        ready_after_s=[1.0],
        steady_s=1.0,
        wanted_s=1.0,
        is_interrupted=False,
        seconds=2.0,
        cpu_s=1.0,
    )
    report = render_report(good, tally)
    assert not report["passed"]
    assert report["failures"][0].startswith("1 works were left out of a list")
    assert report["errors"] == {OMITTED: 1}
    assert "leaves out a, which this agent holds" in report["protocol_error_samples"][0]


# -- what was written must be shown


def test_a_write_is_shown_before_or_after_its_answer() -> None:
    watch = Watch(work("a", 3))
    early = watch.writes.begin("a", "3")
    watch.show(event("MODIFIED", work("a", 11)))
    assert watch.writes.end(early, "11") == []
    late = watch.writes.begin("a", "11")
    assert watch.writes.end(late, "12") == []
    watch.show(event("MODIFIED", work("a", 12)), bookmark(20))
    assert watch.faults == []


@pytest.mark.parametrize(
    "later",
    [event("MODIFIED", work("a", 13)), event("ADDED", work("b", 13)), bookmark(12), bookmark(30)],
    ids=["the object goes on", "another object", "a bookmark there", "a bookmark beyond"],
)
def test_a_write_that_the_watch_goes_past_was_left_out(later: WatchEvent) -> None:
    watch = Watch(work("a", 3))
    assert watch.writes.end(watch.writes.begin("a", "3"), "12") == []
    watch.show(later)
    assert watch.faults == [MISSED]


def test_a_write_answered_after_the_watch_went_past_it_was_left_out_too() -> None:
    watch = Watch(work("a", 3))
    write = watch.writes.begin("a", "3")
    watch.show(event("MODIFIED", work("a", 13)))
    assert [fault.kind for fault in watch.writes.end(write, "12")] == [MISSED]


def test_a_write_that_changed_nothing_or_got_no_answer_is_not_waited_for() -> None:
    watch = Watch(work("a", 3))
    assert watch.writes.end(watch.writes.begin("a", "3"), "3") == []
    assert watch.writes.end(watch.writes.begin("a", "3"), "") == []
    watch.show(bookmark(40))
    assert watch.faults == []


def test_a_list_stands_for_what_was_written_before_it_but_not_for_an_older_state() -> None:
    watch = Watch(work("a", 3))
    watch.writes.end(watch.writes.begin("a", "3"), "12")
    watch.list_again(work("a", 15), at=20)
    assert watch.faults == []
    write = watch.writes.begin("a", "15")
    watch.list_again(work("a", 25), at=30)
    assert watch.writes.end(write, "22") == []
    watch.writes.end(watch.writes.begin("a", "25"), "32")
    watch.list_again(work("a", 25), at=40)
    assert watch.faults == [OUTDATED]


def test_a_write_that_is_never_shown_is_overdue_in_the_end() -> None:
    watch = Watch(work("a", 3))
    watch.writes.end(watch.writes.begin("a", "3"), "12")
    assert watch.writes.overdue() == []
    watch.clock_s = PATIENCE_S + 1
    assert [fault.kind for fault in watch.writes.overdue()] == [MISSED]


def test_a_new_object_is_timed_from_its_request_to_the_watch_and_not_by_a_list() -> None:
    watch = Watch()
    write = watch.writes.begin("new")
    watch.clock_s = 0.25
    watch.show(event("ADDED", work("new", 11)))
    watch.writes.end(write, "11")
    watch.writes.end(watch.writes.begin("listed"), "12")
    watch.list_again(work("new", 11), work("listed", 12), at=20)
    assert watch.faults == []
    assert watch.delivered_s == [0.25]
