"""Work queues, on a loop whose time jumps."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest
import structlog

from hub.meta.errors import bad_request, unavailable
from hub.registry.workqueue import Queue, drain, is_refusal
from tests.unit.registry.given import VirtualLoop


def virtually(test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await test()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


async def drained(
    queue: Queue,
    reconcile: Callable[[str], Awaitable[float | None]],
    *,
    for_s: float,
    workers: int = 1,
) -> None:
    """Run the worker loop for some virtual seconds."""
    task = asyncio.ensure_future(drain("test", queue, reconcile, workers=workers))
    await asyncio.sleep(for_s)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_key_asked_for_many_times_is_taken_once() -> None:
    async def test() -> None:
        queue = Queue()
        for key in ("a", "b", "a", "a"):
            queue.add(key)
        assert [await queue.take(), await queue.take()] == ["a", "b"]
        assert len(queue) == 0

    virtually(test)


def test_a_key_asked_for_while_it_is_active_comes_again_afterwards() -> None:
    async def test() -> None:
        queue = Queue()
        queue.add("a")
        assert await queue.take() == "a"
        queue.add("a")
        queue.add("a")
        assert len(queue) == 0
        queue.done("a")
        assert len(queue) == 1
        assert await queue.take() == "a"
        queue.done("a")
        assert len(queue) == 0

    virtually(test)


def test_a_key_never_runs_twice_at_a_time() -> None:
    async def test() -> None:
        queue = Queue()
        active: set[str] = set()
        runs: list[str] = []

        async def reconcile(key: str) -> None:
            assert key not in active
            active.add(key)
            await asyncio.sleep(1)
            active.discard(key)
            runs.append(key)

        for key in ("a", "b", "c"):
            queue.add(key)
        loop = asyncio.get_running_loop()
        for at_s in range(1, 6):
            loop.call_later(at_s / 2, queue.add, "a")
        await drained(queue, reconcile, for_s=10, workers=3)
        assert runs.count("b") == runs.count("c") == 1
        assert 2 <= runs.count("a") <= 4

    virtually(test)


def test_of_several_wishes_for_later_the_earliest_counts() -> None:
    async def test() -> None:
        queue = Queue()
        loop = asyncio.get_running_loop()
        began = loop.time()
        for delay_s in (50, 5, 20):
            queue.add_after("a", delay_s)
        assert await queue.take() == "a"
        assert 5 <= loop.time() - began < 6
        queue.done("a")
        await asyncio.sleep(100)
        assert len(queue) == 0

    virtually(test)


def test_a_wish_for_the_past_is_due_at_once() -> None:
    async def test() -> None:
        queue = Queue()
        queue.add_after("a", -3)
        assert await queue.take() == "a"

    virtually(test)


def test_failures_are_retried_later_and_later_and_a_success_starts_over() -> None:
    async def test() -> None:
        queue = Queue()
        delays = [queue.retry("a") for _ in range(13)]
        assert delays[:4] == [0.05, 0.1, 0.2, 0.4]
        assert delays[-1] == 60.0
        queue.forget("a")
        assert queue.retry("a") == 0.05
        queue.close()

    virtually(test)


@pytest.mark.parametrize("error", [unavailable("later"), RuntimeError("boom")])
def test_a_failing_key_does_not_stop_the_others(error: Exception) -> None:
    async def test() -> None:
        queue = Queue()
        loop = asyncio.get_running_loop()
        at_s: dict[str, list[float]] = {"bad": [], "good": []}

        async def reconcile(key: str) -> None:
            at_s[key].append(loop.time())
            if key == "bad" and len(at_s["bad"]) < 5:
                raise error

        queue.add("bad")
        queue.add("good")
        with structlog.testing.capture_logs():
            await drained(queue, reconcile, for_s=30)
        assert len(at_s["good"]) == 1
        gaps = [b - a for a, b in itertools.pairwise(at_s["bad"])]
        assert [round(gap, 1) for gap in gaps] == [0.1, 0.1, 0.2, 0.4]

    virtually(test)


def test_a_key_comes_again_when_its_work_asks_for_it() -> None:
    async def test() -> None:
        queue = Queue()
        runs: list[float] = []
        loop = asyncio.get_running_loop()

        async def reconcile(_key: str) -> float | None:
            runs.append(loop.time())
            return 10.0 if len(runs) < 4 else None

        queue.add("a")
        await drained(queue, reconcile, for_s=100)
        assert [round(b - a) for a, b in itertools.pairwise(runs)] == [10, 10, 10]

    virtually(test)


def test_a_group_of_refusals_is_a_refusal_and_one_bug_in_it_makes_it_a_bug() -> None:
    refusals = [bad_request("a"), bad_request("b")]
    assert is_refusal(refusals[0])
    assert is_refusal(ExceptionGroup("two", refusals))
    assert not is_refusal(ExceptionGroup("mixed", [*refusals, KeyError("x")]))
    assert not is_refusal(KeyError("x"))


@pytest.mark.parametrize("workers", [1, 16])
def test_keys_that_need_nothing_leave_others_their_turn(workers: int) -> None:
    async def test() -> None:
        queue, seen, turns = Queue(), [], 0
        for n in range(480):
            queue.add(str(n))

        async def reconcile(key: str) -> None:
            seen.append(key)

        task = asyncio.ensure_future(drain("test", queue, reconcile, workers=workers))
        while len(seen) < 480:
            turns += 1
            await asyncio.sleep(0)
        task.cancel()
        assert turns >= 480 / workers

    virtually(test)
