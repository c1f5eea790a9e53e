"""The keeper of Hub and HubSnapshot, on a clock that tests move."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import pytest_asyncio

from hub.backup.kinds import HUB, HUB_NAME, OWN, SNAPSHOT
from hub.backup.objects import HubObjects, turned
from hub.backup.status import BACKUP_HEALTHY, SETTLED, Condition, HubStatus, SnapshotPoint, Truth
from hub.fleet.conditions import find_condition
from hub.fleet.kinds import FLEET
from hub.meta import Obj
from hub.registry.builtin import BUILTIN
from hub.registry.catalog import Catalog
from hub.registry.engine import Engine
from hub.registry.event import EVENT
from hub.store import MapFull, Store
from tests.unit.backup.test_wire import BARE, point
from tests.unit.backup.virtual import now_s, run
from tests.unit.registry.given import VirtualClock, an_engine

CATALOG = Catalog((*BUILTIN, *FLEET, *OWN))


def condition(status: Truth, type_: str = BACKUP_HEALTHY, reason: str = "R") -> Condition:
    return Condition(type_, status, reason, "m")


@dataclass(slots=True)
class Given:
    """A keeper and what it is told."""

    engine: Engine
    clock: VirtualClock
    status: HubStatus = BARE
    points: list[SnapshotPoint] = field(default_factory=list)

    def keeper(self) -> HubObjects:
        return HubObjects(self.engine, lambda: self.status, lambda: self.points)

    def hub(self) -> Obj:
        return self.engine.get(HUB, HUB_NAME)

    def events(self) -> list[tuple[str, str]]:
        return sorted((e["type"], e["reason"]) for e in self.engine.each(EVENT))

    def since(self, type_: str = BACKUP_HEALTHY) -> str:
        found = find_condition(self.hub(), type_)
        assert found is not None
        return str(found["lastTransitionTime"])


@pytest_asyncio.fixture
async def given(tmp_path: Path) -> AsyncIterator[Given]:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock, namespaces=["default"], catalog=CATALOG) as engine:
        yield Given(engine, clock)


async def test_the_hub_has_the_uid_of_its_identity(given: Given) -> None:
    await given.keeper().refresh()
    assert given.hub()["metadata"]["uid"] == BARE.identity.hub_id
    assert given.hub()["status"]["position"]["revision"] == BARE.position.revision


async def test_a_look_that_finds_nothing_new_writes_nothing(given: Given) -> None:
    given.status = replace(BARE, conditions=(condition("False"), condition("True", SETTLED)))
    given.points = [point(1, "full"), point(2)]
    keeper = given.keeper()
    await keeper.refresh()
    revision = given.engine.store.revision
    given.clock.move(60)
    await keeper.refresh()
    assert given.engine.store.revision == revision


async def test_what_is_written_stays_out_of_the_durable_state(given: Given) -> None:
    before = given.engine.store.position
    given.status, given.points = replace(BARE, conditions=(condition("False"),)), [point(1)]
    await given.keeper().refresh()
    assert given.events()
    assert given.engine.store.position == before


async def test_a_condition_keeps_its_time_until_its_status_changes(given: Given) -> None:
    keeper = given.keeper()
    times = []
    for status, reason in (("True", "A"), ("True", "B"), ("False", "C"), ("False", "D")):
        given.status = replace(BARE, conditions=(condition(status, reason=reason),))  # type: ignore[arg-type]  # one of the three
        await keeper.refresh()
        times.append(given.since())
        given.clock.move(10)
    assert times == [
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:20Z",
        "2026-01-01T00:00:20Z",
    ]
    found = find_condition(given.hub(), BACKUP_HEALTHY)
    assert found is not None
    assert found["reason"] == "D"


async def test_a_keeper_that_starts_again_goes_on_where_the_last_one_was(given: Given) -> None:
    given.status = replace(BARE, conditions=(condition("False"),))
    await given.keeper().refresh()
    given.clock.move(10)
    await given.keeper().refresh()
    assert given.since() == "2026-01-01T00:00:00Z"
    assert given.events() == [("Warning", "R")]


async def test_an_event_tells_when_a_condition_turns_bad_why_else_and_when_it_is_good_again(
    given: Given,
) -> None:
    keeper = given.keeper()
    for status, reason in (
        ("True", "Up"),
        ("False", "Down"),
        ("False", "Down"),
        ("False", "Worse"),
        ("True", "Back"),
    ):
        given.status = replace(BARE, conditions=(condition(status, reason=reason),))  # type: ignore[arg-type]  # one of the three
        await keeper.refresh()
    assert given.events() == [("Normal", "Back"), ("Warning", "Down"), ("Warning", "Worse")]
    event = next(e for e in given.engine.each(EVENT) if e["reason"] == "Down")
    about = event["involvedObject"]
    assert (about["kind"], about["name"], about["uid"]) == ("Hub", "hub", BARE.identity.hub_id)
    assert event["metadata"]["namespace"] == "default"
    assert event["message"] == "BackupHealthy is False: m"


@pytest.mark.parametrize(
    ("before", "now", "is_told"),
    [
        ("", "True", False),
        ("", "False", True),
        ("", "Unknown", False),
        ("Unknown", "True", False),
        ("Unknown", "False", True),
        ("False", "Unknown", False),
        ("False", "False", False),
        ("False", "True", True),
        ("True", "Unknown", False),
    ],
)
def test_what_is_told(before: str, now: Truth, is_told: bool) -> None:
    was = {"type": BACKUP_HEALTHY, "status": before, "reason": "R"}
    obj: Obj = {"status": {"conditions": [was]}}
    found = turned(obj if before else None, [condition(now)])
    assert found == ([condition(now)] if is_told else [])


async def test_a_condition_that_is_no_longer_reported_goes(given: Given) -> None:
    keeper = given.keeper()
    given.status = replace(BARE, conditions=(condition("True"), condition("True", SETTLED)))
    await keeper.refresh()
    given.status = replace(BARE, conditions=(condition("True"),))
    await keeper.refresh()
    assert [each["type"] for each in given.hub()["status"]["conditions"]] == [BACKUP_HEALTHY]


async def test_snapshots_come_change_and_go(given: Given) -> None:
    keeper = given.keeper()
    given.points = [point(1, "full"), point(2)]
    await keeper.refresh()
    full = given.engine.get(SNAPSHOT, "0000000001-full")
    given.points = [replace(point(1, "full"), is_verified=True), point(3)]
    await keeper.refresh()
    assert given.engine.names(SNAPSHOT) == ["0000000001-full", "0000000003-d0"]
    now = given.engine.get(SNAPSHOT, "0000000001-full")
    assert now["metadata"]["uid"] == full["metadata"]["uid"]
    assert now["status"]["verified"] is True


async def test_watches_may_not_resume_from_before_a_snapshot_went(given: Given) -> None:
    keeper, store = given.keeper(), given.engine.store
    given.points = [point(1), point(2)]
    await keeper.refresh()
    assert given.engine.forgotten.oldest(SNAPSHOT) < store.revision
    given.points = [point(2)]
    await keeper.refresh()
    assert given.engine.forgotten.oldest(SNAPSHOT) == store.revision
    assert given.engine.forgotten.oldest(EVENT) == 0


async def test_a_full_disk_is_survived_and_written_after(
    given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Store.commit

    async def refuse(*_: object, **__: object) -> object:
        raise MapFull("no space left")

    monkeypatch.setattr(Store, "commit", refuse)
    given.points = [point(1)]
    keeper = given.keeper()
    await keeper.refresh()
    assert given.engine.names(HUB) == []
    monkeypatch.setattr(Store, "commit", commit)
    await keeper.refresh()
    assert (given.engine.names(HUB), len(given.engine.names(SNAPSHOT))) == (["hub"], 1)


def test_it_looks_every_five_seconds_and_a_second_after_the_last_look_when_poked() -> None:
    times: list[float] = []

    class Looks(HubObjects):
        async def refresh(self) -> None:
            times.append(round(now_s(), 3))
            self._poked.clear()

    async def look() -> None:
        keeper = Looks(None, lambda: BARE, list)  # type: ignore[arg-type]  # nothing is written
        for after_s in (7.0, 7.1, 7.2, 8.1):
            asyncio.get_running_loop().call_later(after_s, keeper.poke)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(13):
                await keeper.run()

    run(look())
    assert times == [5.0, 7.0, 8.0, 9.0]
