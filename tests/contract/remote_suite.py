"""The contract of `snapshot.remote.api.Remote`, as functions taking the remote under test.

Every remote given is empty. `SUITE` lists the functions; test_remote.py runs each against every
implementation.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from snapshot.errors import (
    ObjectExists,
    ObjectMissing,
    PreconditionFailed,
    RemoteInvalid,
)
from snapshot.remote.api import Remote

Check = Callable[[Remote, Path], None]
_RACERS = 12


def an_object_reads_back_as_written(remote: Remote, _: Path) -> None:
    etag = remote.put_if_absent("HEAD", b"\x00one\xff")
    blob = remote.get("HEAD")
    assert (blob.data, blob.etag) == (b"\x00one\xff", etag)
    assert remote.head("HEAD").size == 5


def an_empty_object_is_an_object(remote: Remote, _: Path) -> None:
    remote.put_if_absent("empty", b"")
    assert remote.get("empty").data == b""
    assert [entry.size for entry in remote.list()] == [0]


def a_file_goes_up_and_comes_down_whole(remote: Remote, scratch: Path) -> None:
    source = scratch / "up"
    source.write_bytes(bytes(range(256)) * 12_000)
    remote.put_if_absent("e00000001/full/9-1-aaaaaaaa.hs", source)
    assert remote.get_to_file("e00000001/full/9-1-aaaaaaaa.hs", scratch / "down") == 3_072_000
    assert (scratch / "down").read_bytes() == source.read_bytes()


def a_missing_object_is_missing_for_every_reader(remote: Remote, scratch: Path) -> None:
    for read in (
        lambda: remote.get("none"),
        lambda: remote.head("none"),
        lambda: remote.get_to_file("none", scratch / "none"),
    ):
        with pytest.raises(ObjectMissing):
            read()
    assert not (scratch / "none").exists()


def create_only_never_replaces(remote: Remote, _: Path) -> None:
    remote.put_if_absent("a/b", b"first")
    with pytest.raises(ObjectExists):
        remote.put_if_absent("a/b", b"second")
    assert remote.get("a/b").data == b"first"


def swap_replaces_only_what_it_names(remote: Remote, _: Path) -> None:
    first = remote.put_if_absent("HEAD", b"1")
    second = remote.put_if_match("HEAD", b"2", etag=first)
    with pytest.raises(PreconditionFailed):
        remote.put_if_match("HEAD", b"3", etag=first)
    assert (remote.get("HEAD").data, remote.get("HEAD").etag) == (b"2", second)


def swap_never_creates(remote: Remote, _: Path) -> None:
    etag = remote.put_if_absent("HEAD", b"1")
    remote.delete("HEAD")
    with pytest.raises(ObjectMissing):
        remote.put_if_match("HEAD", b"2", etag=etag)
    with pytest.raises(ObjectMissing):
        remote.get("HEAD")


def listing_is_by_prefix_and_in_order(remote: Remote, _: Path) -> None:
    names = ["HEAD", "e00000001/d0/2-3-b.hs", "e00000001/full/2-1-a.hs", "e00000002/full/9-2-c.hs"]
    for name in reversed(names):
        remote.put_if_absent(name, name.encode())
    assert [entry.name for entry in remote.list()] == names
    assert [entry.name for entry in remote.list("e00000001/")] == names[1:3]
    assert [entry.size for entry in remote.list("HEAD")] == [4]
    assert list(remote.list("f")) == []


def deleting_is_final_and_repeatable(remote: Remote, _: Path) -> None:
    remote.put_if_absent("x", b"1")
    remote.delete("x")
    remote.delete("x")
    assert list(remote.list()) == []
    remote.put_if_absent("x", b"2")
    assert remote.get("x").data == b"2"


def an_unclean_name_is_refused(remote: Remote, _: Path) -> None:
    for name in ("", "/x", "a//b", "../x", "a/./b", ".lock", "a/.tmp", "x/"):
        with pytest.raises(RemoteInvalid):
            remote.put_if_absent(name, b"")


def of_twelve_creators_exactly_one_wins(remote: Remote, _: Path) -> None:
    won = _race(lambda who: remote.put_if_absent("race", b"%d" % who))
    assert len(won) == 1
    assert remote.get("race").data == b"%d" % won[0]


def of_twelve_swappers_exactly_one_wins(remote: Remote, _: Path) -> None:
    etag = remote.put_if_absent("HEAD", b"start")
    won = _race(lambda who: remote.put_if_match("HEAD", b"%d" % who, etag=etag))
    assert len(won) == 1
    assert remote.get("HEAD").data == b"%d" % won[0]


def _race(attempt: Callable[[int], str]) -> list[int]:
    """Run `attempt` in twelve threads at once and return who was not refused."""
    start = threading.Barrier(_RACERS)

    def run(who: int) -> bool:
        start.wait()
        try:
            attempt(who)
        except (ObjectExists, PreconditionFailed):
            return False
        return True

    with ThreadPoolExecutor(_RACERS) as pool:
        won = list(pool.map(run, range(_RACERS)))
    return [who for who, is_winner in enumerate(won) if is_winner]


SUITE: tuple[Check, ...] = (
    an_object_reads_back_as_written,
    an_empty_object_is_an_object,
    a_file_goes_up_and_comes_down_whole,
    a_missing_object_is_missing_for_every_reader,
    create_only_never_replaces,
    swap_replaces_only_what_it_names,
    swap_never_creates,
    listing_is_by_prefix_and_in_order,
    deleting_is_final_and_repeatable,
    an_unclean_name_is_refused,
    of_twelve_creators_exactly_one_wins,
    of_twelve_swappers_exactly_one_wins,
)
