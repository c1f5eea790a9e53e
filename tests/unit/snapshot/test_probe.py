"""The probe finds out what a bucket really does: one broken bucket for each capability."""

import datetime as dt
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hub.clock import SystemClock
from snapshot.errors import (
    ObjectExists,
    PreconditionFailed,
    RemoteDenied,
    RemoteError,
    RemoteUnavailable,
)
from snapshot.remote import Blob, Entry, FencingLevel, Remote, Source, open_remote, probe
from tests.fault.memory_remote import MemoryRemote
from tests.unit.snapshot.support import StillClock

FENCE = (
    "can_refuse_create",
    "can_swap",
    "can_refuse_swap",
    "can_refuse_absent",
    "has_one_creator",
    "has_one_swapper",
    "is_read_current",
)
ALL = (*FENCE, "is_list_current", "can_delete")


class IgnoresNoneMatch(MemoryRemote):
    def put_if_absent(self, name: str, source: Source) -> str:
        assert isinstance(source, bytes)
        with self._lock:
            return self._store(name, source)


class IgnoresMatch(MemoryRemote):
    def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
        self.get(name)
        with self._lock:
            return self._store(name, source)


class MatchCreates(MemoryRemote):
    def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
        if name in self._objects:
            return super().put_if_match(name, source, etag=etag)
        return self.put_if_absent(name, source)


class SwapNotImplemented(MemoryRemote):
    def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
        raise RemoteError("the server answers 501", op="put", object=name)


class SwapLoses(MemoryRemote):
    def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
        before = self.get(name).data
        super().put_if_match(name, source, etag=etag)
        return self._store(name, before)


class RacyCreate(MemoryRemote):
    """What clients see of a gateway that looks first and stores later: two creators get through."""

    def put_if_absent(self, name: str, source: Source) -> str:
        assert isinstance(source, bytes)
        with self._lock:
            first = self._objects.get(name)
            if first is None or (
                "race" in name and first.blob.data != b"start" and self._once(name)
            ):
                return self._store(name, source)
        raise ObjectExists("the object exists", op="put", object=name)

    def _once(self, name: str) -> bool:
        self.through: set[str] = getattr(self, "through", set())
        is_first = name not in self.through
        self.through.add(name)
        return is_first


class RacySwap(MemoryRemote):
    """The same of swaps: the etag that the first one replaced is taken once more."""

    def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
        with self._lock:
            self.replaced: set[str] = getattr(self, "replaced", set())
            found = self._find(name, "put").blob.etag
            if found == etag or (etag in self.replaced and "race" in name):
                self.replaced ^= {etag}
                return self._store(name, source)
            raise PreconditionFailed("another object is there", op="put", object=name)


class KeepsDeleted(MemoryRemote):
    def delete(self, name: str) -> None:
        """Say yes."""


class ForbidsDelete(MemoryRemote):
    def delete(self, name: str) -> None:
        raise RemoteDenied("no", op="delete", object=name)


class StaleList(MemoryRemote):
    """Lists what was there at the list before."""

    def list(self, under: str = "") -> Iterator[Entry]:
        shown: tuple[Entry, ...] = getattr(self, "shown", ())
        self.shown = tuple(super().list())
        return (entry for entry in shown if entry.name.startswith(under))


class StaleRead(MemoryRemote):
    """Reads what was there before the last write."""

    def get(self, name: str) -> Blob:
        return Blob(b"", super().get(name).etag)


def test_a_whole_bucket_is_enforced_and_left_empty() -> None:
    clock = StillClock()
    bucket = MemoryRemote(clock.now())
    bucket.put_if_absent("HEAD", b"1")
    found = probe(bucket, clock)
    assert all(getattr(found, name) for name in ALL)
    assert (found.fencing_level, found.missing) == (FencingLevel.ENFORCED, ())
    assert found.clock_offset_s == 0
    assert [entry.name for entry in bucket.list()] == ["HEAD"]


def test_a_directory_is_enforced(tmp_path: Path) -> None:
    bucket = open_remote(tmp_path.as_uri())
    found = probe(bucket, SystemClock())
    assert (found.fencing_level, found.missing) == (FencingLevel.ENFORCED, ())
    assert list(bucket.list()) == []


@pytest.mark.parametrize(
    ("broken", "lacks"),
    [
        (IgnoresNoneMatch, {"can_refuse_create", "has_one_creator"}),
        (IgnoresMatch, {"can_refuse_swap", "has_one_swapper"}),
        (MatchCreates, {"can_refuse_absent"}),
        (
            SwapNotImplemented,
            {"can_swap", "can_refuse_swap", "can_refuse_absent", "has_one_swapper"},
        ),
        (SwapLoses, {"can_swap", "has_one_swapper"}),
        (RacyCreate, {"has_one_creator"}),
        (RacySwap, {"has_one_swapper"}),
        (StaleRead, {*FENCE} - {"can_refuse_absent"}),
    ],
)
def test_a_bucket_without_a_condition_is_degraded(
    broken: type[MemoryRemote], lacks: set[str]
) -> None:
    clock = StillClock()
    bucket = broken(clock.now())
    found = probe(bucket, clock)
    assert {name for name in ALL if not getattr(found, name)} == lacks
    assert found.fencing_level is FencingLevel.DEGRADED
    assert len(found.missing) >= len(lacks)
    assert list(bucket.list()) == []


@pytest.mark.parametrize(
    ("broken", "lacks", "says"),
    [
        (KeepsDeleted, "can_delete", "still there"),
        (ForbidsDelete, "can_delete", "not allowed"),
        (StaleList, "is_list_current", "list"),
    ],
)
def test_what_only_clean_up_needs_does_not_degrade_the_fence(
    broken: type[MemoryRemote], lacks: str, says: str
) -> None:
    clock = StillClock()
    found = probe(broken(clock.now()), clock)
    assert [name for name in ALL if not getattr(found, name)] == [lacks]
    assert found.fencing_level is FencingLevel.ENFORCED
    assert len(found.missing) == 1
    assert says in found.missing[0]


@pytest.mark.parametrize(("ahead_s", "says"), [(300.0, "300 s ahead"), (-90.0, "90 s behind")])
def test_a_clock_that_is_off_is_told(ahead_s: float, says: str) -> None:
    clock = StillClock()
    found = probe(MemoryRemote(clock.now() + dt.timedelta(seconds=ahead_s)), clock)
    assert found.clock_offset_s == ahead_s
    assert says in found.missing[0]
    assert found.fencing_level is FencingLevel.ENFORCED


def test_a_clock_within_the_tolerance_is_not_worth_a_word() -> None:
    clock = StillClock()
    found = probe(MemoryRemote(clock.now() + dt.timedelta(seconds=59)), clock)
    assert (found.clock_offset_s, found.missing) == (59.0, ())


class FailsLater(MemoryRemote):
    """Answers so many puts, and then no more."""

    def __init__(self, puts: int, now: dt.datetime) -> None:
        super().__init__(now)
        self.puts = puts

    def put_if_absent(self, name: str, source: Source) -> str:
        self.puts -= 1
        if self.puts < 0:
            raise RemoteUnavailable("no answer", op="put", object=name)
        return super().put_if_absent(name, source)


@pytest.mark.parametrize("puts", range(0, 20, 3))
def test_no_answer_is_raised_and_the_rest_deleted(puts: int) -> None:
    clock = StillClock()
    bucket = FailsLater(puts, clock.now())
    with pytest.raises(RemoteUnavailable, match="no answer"):
        probe(bucket, clock)
    assert list(bucket.list()) == []


def test_an_error_of_the_trial_is_not_hidden_by_one_of_the_cleaning() -> None:
    class Gone(FailsLater):
        def delete(self, name: str) -> None:
            raise RemoteUnavailable("cannot delete", op="delete", object=name)

    clock = StillClock()
    with pytest.raises(RemoteUnavailable, match="no answer"):
        probe(Gone(1, clock.now()), clock)


def test_what_makes_no_object_at_all_is_an_error() -> None:
    class NoStore(MemoryRemote):
        def put_if_absent(self, name: str, source: Source) -> str:
            raise RemoteError("not that of an S3 server", op="put", object=name)

    with pytest.raises(RemoteError, match="not that of an S3 server"):
        probe(NoStore(), StillClock())


def test_a_retry_that_meets_its_own_effect_is_no_missing_capability() -> None:
    class Retried(MemoryRemote):
        """Every answer is lost once, and the client's retry is refused."""

        def put_if_absent(self, name: str, source: Source) -> str:
            super().put_if_absent(name, source)
            return super().put_if_absent(name, source)

        def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
            super().put_if_match(name, source, etag=etag)
            return super().put_if_match(name, source, etag=etag)

    clock = StillClock()
    found = probe(Retried(clock.now()), clock)
    assert (found.fencing_level, found.missing) == (FencingLevel.ENFORCED, ())


def test_what_a_killed_probe_left_is_swept_by_the_clock_of_the_server() -> None:
    clock = StillClock()
    bucket = MemoryRemote(clock.now() + dt.timedelta(days=9))
    bucket.put_if_absent("probe/dead/held", b"one")
    bucket.now += dt.timedelta(minutes=59)
    bucket.put_if_absent("probe/busy/held", b"one")
    bucket.now += dt.timedelta(minutes=2)
    probe(bucket, clock)
    assert [entry.name for entry in bucket.list()] == ["probe/busy/held"]


def test_two_probes_at_once_do_not_meet(tmp_path: Path) -> None:
    bucket: Remote = open_remote(tmp_path.as_uri())
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: probe(bucket, SystemClock()), range(2)))
    assert [found.missing for found in both] == [(), ()]
    assert list(bucket.list()) == []
