"""One request at a time for one object, and none based on what is known to be old."""

import asyncio
import random
from collections.abc import Callable

from hub.meta import Obj
from tools.simulate.session import RefusedError
from tools.simulate.upkeep import Upkeep


class _Cache:
    """Objects at a revision, and the requests made for them."""

    def __init__(self) -> None:
        self.objects: dict[str, Obj] = {}
        self.seen: list[tuple[str, str]] = []

    def set(self, name: str, revision: int) -> None:
        self.objects[name] = {"metadata": {"name": name, "resourceVersion": str(revision)}}

    def note(self, obj: Obj) -> None:
        self.seen.append((obj["metadata"]["name"], obj["metadata"]["resourceVersion"]))


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def _run(cache: _Cache, act: Callable[[Obj], bool], *names: str) -> None:
    async def send(obj: Obj) -> bool:
        cache.note(obj)
        return act(obj)

    async with asyncio.TaskGroup() as group:
        upkeep = Upkeep(group, lambda: cache.objects, send, rng=random.Random(1))
        for name in names:
            upkeep.wake(name)


async def test_a_request_is_not_repeated_before_the_watch_shows_its_result() -> None:
    cache = _Cache()
    cache.set("a", 1)
    await _run(cache, lambda _: True, "a", "a")
    assert cache.seen == [("a", "1")]


async def test_what_the_watch_shows_meanwhile_is_acted_on_at_once() -> None:
    cache = _Cache()
    cache.set("a", 1)

    def act(_: Obj) -> bool:
        if len(cache.seen) < 3:
            cache.set("a", len(cache.seen) + 1)
        return True

    await _run(cache, act, "a")
    assert cache.seen == [("a", "1"), ("a", "2"), ("a", "3")]


async def test_a_conflict_with_a_newer_object_is_retried_without_a_pause() -> None:
    cache = _Cache()
    cache.set("a", 1)

    def act(obj: Obj) -> bool:
        if obj["metadata"]["resourceVersion"] == "1":
            cache.set("a", 2)
            raise RefusedError(409, "Conflict", "modified")
        return True

    async with asyncio.timeout(0.5):  # a pause would take 0.8 s or more
        await _run(cache, act, "a")
    assert cache.seen == [("a", "1"), ("a", "2")]


async def test_an_object_that_changed_while_waiting_for_its_turn_is_looked_at_again() -> None:
    cache, limit = _Cache(), asyncio.Semaphore(1)
    cache.set("a", 1)

    async def send(obj: Obj) -> bool:
        cache.note(obj)
        return False

    async with asyncio.TaskGroup() as group:
        upkeep = Upkeep(group, lambda: cache.objects, send, rng=random.Random(1), limit=limit)
        await limit.acquire()
        upkeep.wake("a")
        await _settle()
        cache.set("a", 2)
        upkeep.wake("a")
        limit.release()
    assert cache.seen[-1] == ("a", "2")


async def test_a_change_during_a_request_that_finds_nothing_is_not_missed() -> None:
    cache = _Cache()
    cache.set("a", 1)

    def act(_: Obj) -> bool:
        if len(cache.seen) == 1:
            cache.set("a", 2)
        return False

    await _run(cache, act, "a")
    assert cache.seen == [("a", "1"), ("a", "2")]


async def test_an_object_that_is_gone_is_left_alone() -> None:
    cache = _Cache()
    await _run(cache, lambda _: True, "a")
    assert cache.seen == []
