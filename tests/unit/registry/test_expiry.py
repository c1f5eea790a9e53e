"""Events go after an hour, and a full disk ends nothing."""

import asyncio
from pathlib import Path

import pytest

from hub.registry import expiry
from hub.registry.engine import Engine
from hub.registry.event import EVENT
from hub.registry.expiry import TTL_S, EventExpiry
from hub.store import MapFull, Store
from tests.unit.registry.given import VirtualClock, an_engine


async def create(engine: Engine, name: str) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": "n"}
    event = {"metadata": {"name": name}, "involvedObject": about, "message": "m"}
    await engine.create(EVENT, event, namespace="n")


def names(engine: Engine) -> list[str]:
    return [str(event["metadata"]["name"]) for event in engine.each(EVENT)]


async def test_events_go_when_they_are_an_hour_old(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock, namespaces=("n",)) as engine:
        sweeper = EventExpiry(engine, EVENT, clock)
        await create(engine, "old")
        assert await sweeper.look() == 0
        clock.move(60)
        await create(engine, "young")
        assert await sweeper.look() == 0
        clock.move(TTL_S - 61)
        assert await sweeper.look() == 0
        clock.move(1)
        assert await sweeper.look() == 1
        assert names(engine) == ["young"]
        clock.move(60)
        assert await sweeper.look() == 1


async def test_a_full_disk_does_not_end_the_sweeper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock()
    monkeypatch.setattr(expiry, "_SWEEP_S", 0.0)
    refused, swept = asyncio.Event(), asyncio.Event()

    async def refuse(*_: object) -> None:
        refused.set()
        raise MapFull("the disk is full")

    async with an_engine(tmp_path, clock, namespaces=("n",)) as engine:
        sweeper = EventExpiry(engine, EVENT, clock)
        await create(engine, "old")
        await sweeper.look()
        clock.move(TTL_S)
        engine.watches.listen(EVENT, lambda _: swept.set())
        with monkeypatch.context() as full:
            full.setattr(Store, "commit", refuse)
            running = asyncio.ensure_future(sweeper.run())
            async with asyncio.timeout(10):
                await refused.wait()
        assert names(engine) == ["old"]
        async with asyncio.timeout(10):
            await swept.wait()
        assert names(engine) == []
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
