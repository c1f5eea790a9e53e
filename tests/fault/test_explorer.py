"""Two hubs on one prefix, every execution within bounds; and proof that the explorer can object."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from snapshot.chain import Chain, _Held
from snapshot.errors import PreconditionFailed, RemoteUnavailable
from snapshot.head import Head
from tests.fault.explored_world import Plan, Violation
from tests.fault.explorer import explore

pytestmark = pytest.mark.timeout(300)

MEMORY = Path("/dev/shm")
"""Where there is one, directories that are written ten thousand times lie there."""

QUICK = [
    Plan("restored", faults=2, lives=1),
    Plan("restored", faults=1),
    Plan("restored", faults=1, lives=1, writes=2, has_vandal=True),
    Plan("copied", faults=1, lives=1, writes=2),
    Plan("fresh", faults=1),
]
DEEP = [
    Plan("restored", faults=2),
    Plan("restored", faults=3, lives=1),
    Plan("restored", faults=2, lives=1, writes=2, has_vandal=True),
    Plan("copied", faults=2),
    Plan("copied", faults=3, lives=1),
    Plan("fresh", faults=2, writes=2),
]


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that is as fast as this machine has one."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as path:
        yield Path(path)


def name(plan: Plan) -> str:
    vandal = "-vandal" if plan.has_vandal else ""
    return f"{plan.second}-{plan.faults}-faults-{plan.lives}-lives-{plan.writes}-writes{vandal}"


@pytest.mark.parametrize("plan", QUICK, ids=name)
def test_no_execution_of_two_hubs_breaks_the_chain(place: Path, plan: Plan) -> None:
    check(plan, place)


@pytest.mark.soak
@pytest.mark.parametrize("plan", DEEP, ids=name)
def test_no_deeper_execution_breaks_the_chain(place: Path, plan: Plan, is_soak: bool) -> None:
    """Without soak, a first look at each: one fault and one life."""
    check(plan if is_soak else replace(plan, faults=1, lives=1, writes=1), place)


def check(plan: Plan, place: Path) -> None:
    report = explore(plan, place)
    print(f"{name(plan)}: {report}")
    expected = {"epoch", "handed", "acked", "released", "done", "StartRefused"}
    if plan.second != "fresh":
        expected |= {"fenced", "Fenced", "clean-up"}
    if plan.has_vandal:
        expected |= {"HeadGone"}
    assert expected <= report.seen.keys()


# ------------------------------------------------------------------ what it must find


class TrustsContent(Chain):
    """Takes HEAD for its own when it stands where its own would."""

    def _resolve(
        self, new: Head, error: PreconditionFailed | RemoteUnavailable, *, op: str
    ) -> _Held:
        found = self._read()
        if found and (found.head.epoch, found.head.chain) == (new.epoch, new.chain):
            return found
        return super()._resolve(new, error, op=op)


class KeepsTheEpoch(Chain):
    """Takes over without a new epoch."""

    def _swap(self, new: Head, *, op: str) -> Head:
        if op == "take epoch":
            new = msgspec.structs.replace(new, epoch=new.epoch - 1)
        return super()._swap(new, op=op)


class GoesOn(Chain):
    """Does not care that it was fenced."""

    def _check_writer(self) -> None:
        pass


class ForgetsReservations(Chain):
    """Lets its heartbeat give back what it has reserved."""

    def confirm(self, *, reserved_rev: int = 0) -> Head:
        new = self._next(self.head, reserved_rev=reserved_rev)
        return self._swap(msgspec.structs.replace(new, reserved_rev=new.rev), op="confirm")


RESTORED = Plan("restored", faults=2, lives=1)
BROKEN = {
    "a remote that ignores etags": (
        replace(RESTORED, compares_etags=False),
        "forks from|does not extend|two writers|changes in place",
    ),
    "a remote that replaces what is missing": (
        replace(RESTORED, refuses_missing=False, has_vandal=True),
        "HEAD was made again",
    ),
    "a clean-up that deletes young segments": (
        replace(RESTORED, spares_young=False),
        "HEAD names .*, which is not there",
    ),
    "lost answers resolved by content": (
        replace(RESTORED, faults=1, lives=2, chain=TrustsContent),
        "which was taken|HEAD is another",
    ),
    "no new epoch": (replace(RESTORED, chain=KeepsTheEpoch), "two writers in epoch 1"),
    "a fenced hub that goes on": (replace(RESTORED, chain=GoesOn), "was fenced and writes again"),
    "a heartbeat that gives reservations back": (
        replace(RESTORED, chain=ForgetsReservations),
        "reserved revisions go down",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_the_explorer_finds_what_is_broken(place: Path, what: str) -> None:
    plan, expected = BROKEN[what]
    with pytest.raises(Violation, match=expected) as caught:
        explore(plan, place)
    print(f"{what}: {caught.value}")
    assert caught.value.trace
