"""A list shows what its revision says: what is committed but not shown to watches is not there yet.

Otherwise a watch that goes on from the list's revision brings the same changes a second time.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from hub.fleet.kinds import MANAGED_CLUSTER
from hub.http.listing import select
from hub.meta import Obj
from hub.meta.selectors import parse_field_selector, parse_label_selector
from hub.registry.engine import Engine
from hub.registry.options import ListOptions
from hub.store import Store
from tests.unit.registry.given import VirtualClock, an_engine


@pytest_asyncio.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with an_engine(tmp_path, VirtualClock()) as made:
        await made.create(MANAGED_CLUSTER, {"metadata": {"name": "c1"}})
        yield made


def listed(engine: Engine, name: str) -> dict[str, int]:
    """What a list shows, of everything or of one name."""
    fields = parse_field_selector(f"metadata.name={name}" if name else "")
    found = select(engine, MANAGED_CLUSTER, "", ListOptions(parse_label_selector(""), fields))
    assert found.revision == engine.store.revision
    return {entry.key.decode().split("\0")[-1] or "?": entry.revision for entry in found}


async def committed(engine: Engine, change: Awaitable[object], name: str) -> "asyncio.Task[object]":
    """Wait for the change to be in the file, without a turn of the loop in which it is shown."""

    async def make() -> object:
        return await change

    before = engine.find(MANAGED_CLUSTER, name)
    task = asyncio.create_task(make())
    await asyncio.sleep(0)
    while engine.find(MANAGED_CLUSTER, name) == before:
        assert not task.done()
    return task


async def rename(engine: Engine) -> None:
    def label(obj: Obj) -> None:
        obj["metadata"]["labels"] = {"stage": "new"}

    await engine.modify(MANAGED_CLUSTER, "c1", label)


CHANGES: dict[str, tuple[str, Callable[[Engine], Awaitable[object]]]] = {
    "created": ("c2", lambda e: e.create(MANAGED_CLUSTER, {"metadata": {"name": "c2"}})),
    "updated": ("c1", rename),
    "deleted": ("c1", lambda e: e.delete(MANAGED_CLUSTER, "c1")),
}


@pytest.mark.parametrize("is_by_name", [False, True], ids=["all", "by name"])
@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_that_is_not_shown_yet_is_not_listed(
    engine: Engine, change: str, is_by_name: bool
) -> None:
    name, make = CHANGES[change]
    asked = name if is_by_name else ""
    before = listed(engine, asked)
    task = await committed(engine, make(engine), name)
    assert listed(engine, asked) == before
    await task
    after = listed(engine, asked)
    assert after != before
    assert all(revision <= engine.store.revision for revision in after.values())


@pytest.mark.parametrize("asked", ["c", "c1"])
async def test_of_one_name_its_longer_neighbours_are_not_read(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    await engine.create(MANAGED_CLUSTER, {"metadata": {"name": "c11"}})

    def scan_at(*_: object, **__: object) -> None:
        pytest.fail("a scan takes the name as a prefix")

    monkeypatch.setattr(Store, "scan_at", scan_at)
    assert set(listed(engine, asked)) == ({"c1"} if asked == "c1" else set())
