"""What public reports of other tools tell of, tried on a small chain (docs/bug-reports.md)."""

import asyncio
import dataclasses
import datetime as dt
from pathlib import Path

import pytest

from snapshot.cleanup import look
from snapshot.errors import HeadCorrupt, Unreachable
from snapshot.layout import HEAD
from snapshot.plan import fetch
from snapshot.restore import restore
from snapshot.retention import Retention
from tests.fault.history import History
from tests.fault.memory_remote import MemoryRemote
from tests.unit.snapshot.support import KEY, StillClock

DAY = dt.timedelta(days=1)
BRIEF = Retention(window=DAY, daily=0, weekly=0, min_verified=1, min_age=dt.timedelta(hours=6))


@dataclasses.dataclass
class Rig:
    """A hub two days old whose first day may go."""

    history: History
    remote: MemoryRemote

    def pass_time(self, span: dt.timedelta) -> None:
        self.remote.now += span
        self.history.clock.pass_s(span.total_seconds())

    def segments(self) -> set[str]:
        return {entry.name for entry in self.remote.list() if entry.name.endswith(".hs")}

    async def make(self) -> None:
        self.history.open()
        for day in range(3):
            for number in range(3):
                await self.history.put(f"pod-{number}", text=f"{day}-{number}")
                self.history.ship()
            self.history.full()
            self.pass_time(DAY)
        await self.history.put("pod-9")
        self.history.ship()
        await self.history.close()  # the chain is enough from here on


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    remote = MemoryRemote()
    made = Rig(History(tmp_path / "hub", remote, StillClock()), remote)
    asyncio.run(made.make())
    return made


def plan(rig: Rig) -> set[str]:
    """Do the first half of a clean-up, and return what is to go."""
    before = rig.segments()
    rig.history.clean(BRIEF)
    assert rig.segments() == before  # nothing goes before it has been planned for hours
    found = look(rig.remote, rig.history.head, KEY)
    planned = {name for name in found.planned if name.endswith(".hs")}
    assert planned
    return planned


def test_what_a_running_restore_has_planned_to_read_outlives_the_next_clean_up(
    rig: Rig, tmp_path: Path
) -> None:
    """A restore that was planned right before its segments were let go still finds them."""
    found = look(rig.remote, rig.history.head, KEY)
    planned = plan(rig)
    refs = [ref for ref in found.catalog.segments if ref.name in planned]
    rig.pass_time(dt.timedelta(hours=5))
    assert rig.history.clean(BRIEF).deleted == 0
    assert len(fetch(rig.remote, refs, tmp_path)) == len(planned)
    rig.pass_time(dt.timedelta(hours=2))
    assert rig.history.clean(BRIEF).deleted >= len(planned)
    assert not rig.segments() & planned


def test_what_others_put_beside_the_segments_is_never_cleaned_up(rig: Rig) -> None:
    """Retention goes by what HEAD and manifests name, never by folder, age or a part of a name."""
    names = {"notes.txt", "e00000001/full/12-1-copy.hs", "backup-2026.hs", "e00000001/full/x.hs"}
    for name in names:
        rig.remote.put_if_absent(name, b"somebody's")
    for _ in range(3):
        rig.history.clean(BRIEF)
        rig.pass_time(dt.timedelta(days=2))
    assert names <= {entry.name for entry in rig.remote.list()}


@pytest.mark.parametrize("which", ["full", "delta", HEAD])
def test_an_object_of_no_bytes_is_never_taken_for_a_snapshot(
    rig: Rig, tmp_path: Path, which: str
) -> None:
    """A full has an older one behind it; a newest delta or HEAD has nothing, which is told."""
    head = rig.history.head
    assert head.full is not None
    name = {"full": head.full.name, "delta": head.tail[-1].name}.get(which, HEAD)
    rig.remote.delete(name)
    rig.remote.put_if_absent(name, b"")
    if which == "full":
        done = restore(rig.remote, KEY, tmp_path / "new", clock=StillClock())
        assert (done.damaged, done.state_hash) == ((name,), head.state_hash)
        return
    with pytest.raises((Unreachable, HeadCorrupt)) as raised:
        restore(rig.remote, KEY, tmp_path / "new", clock=StillClock())
    assert raised.value.exit_code == 4
    assert not (tmp_path / "new").exists()
