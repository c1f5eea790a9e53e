"""Where a reflector goes after each event and each end of a stream."""

import pytest

from hub.meta import Obj
from tools.simulate.frame import INITIAL_EVENTS_END, MalformedError, WatchEvent
from tools.simulate.watchstate import End, Phase, WatchState


def _event(kind: str, name: str, revision: int) -> WatchEvent:
    return WatchEvent(kind, {"metadata": {"name": name, "resourceVersion": str(revision)}})


def _bookmark(revision: int, *, is_end: bool = False) -> WatchEvent:
    metadata: Obj = {"resourceVersion": str(revision)}
    if is_end:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    return WatchEvent("BOOKMARK", {"metadata": metadata})


def _synced(*names: str) -> WatchState:
    state = WatchState()
    state.opened()
    for number, name in enumerate(names):
        state.apply(_event("ADDED", name, number + 1))
    state.apply(_bookmark(10, is_end=True))
    return state


def test_initial_events_show_at_their_end_and_not_before() -> None:
    state = WatchState()
    state.opened()
    assert state.apply(_event("ADDED", "a", 3)) == []
    assert not state.objects
    assert not state.is_synced
    assert state.apply(_bookmark(5, is_end=True)) == ["a"]
    assert (state.phase, state.revision, state.is_synced) == (Phase.WATCH, "5", True)


def test_a_list_after_an_expiry_tells_what_changed_and_what_is_gone() -> None:
    state = _synced("same", "changed", "gone")
    assert state.ended(End.EXPIRED, lasted_s=9)
    assert (state.phase, state.revision) == (Phase.LIST, "10")
    state.opened()
    state.apply(_event("ADDED", "same", 1))
    state.apply(_event("ADDED", "changed", 12))
    state.apply(_event("ADDED", "new", 13))
    assert sorted(state.apply(_bookmark(20, is_end=True))) == ["changed", "gone", "new"]
    assert sorted(state.objects) == ["changed", "new", "same"]


def test_a_list_broken_off_leaves_the_old_objects() -> None:
    state = _synced("a", "b")
    state.ended(End.REFUSED, lasted_s=9)
    state.opened()
    state.apply(_event("ADDED", "a", 1))
    assert state.ended(End.AWAY, lasted_s=1)
    assert sorted(state.objects) == ["a", "b"]
    state.opened()
    state.apply(_event("ADDED", "b", 2))
    assert state.apply(_bookmark(20, is_end=True)) == ["a"]
    assert sorted(state.objects) == ["b"]


def test_a_bookmark_moves_the_revision_only() -> None:
    state = _synced("a")
    assert state.apply(_bookmark(30)) == []
    assert state.revision == "30"
    assert sorted(state.objects) == ["a"]


def test_a_deleted_object_is_told_once() -> None:
    state = _synced("a")
    assert state.apply(_event("DELETED", "a", 11)) == ["a"]
    assert state.apply(_event("DELETED", "a", 12)) == []
    assert state.revision == "12"


def test_a_watch_that_ends_cleanly_goes_on_at_once_from_the_last_revision() -> None:
    state = _synced("a")
    state.apply(_event("MODIFIED", "a", 44))
    assert not state.ended(End.CLEAN, lasted_s=0.1)
    assert (state.phase, state.revision) == (Phase.WATCH, "44")


def test_a_very_short_watch_is_followed_by_a_pause() -> None:
    state = _synced("a")
    state.opened()
    assert state.ended(End.CLEAN, lasted_s=0.2)
    state.opened()
    assert not state.ended(End.CLEAN, lasted_s=400.0)


def test_a_lost_connection_resumes_at_the_last_revision() -> None:
    state = _synced("a")
    assert state.ended(End.AWAY, lasted_s=9)
    assert (state.phase, state.revision) == (Phase.WATCH, "10")


def test_a_refused_watch_lists_again_from_the_old_revision() -> None:
    state = _synced("a")
    assert state.ended(End.REFUSED, lasted_s=0)
    assert (state.phase, state.revision) == (Phase.LIST, "10")


def test_an_expired_list_takes_whatever_is_there() -> None:
    state = _synced("a")
    state.ended(End.EXPIRED, lasted_s=9)
    assert state.ended(End.EXPIRED, lasted_s=0)
    assert (state.phase, state.revision) == (Phase.LIST, "")


def test_a_plain_bookmark_among_the_initial_events_is_malformed() -> None:
    state = WatchState()
    state.opened()
    with pytest.raises(MalformedError, match="before the end"):
        state.apply(_bookmark(4))
