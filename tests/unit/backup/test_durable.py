"""Waiting for the bucket: who is woken by what."""

import asyncio

import pytest

from hub.backup.durable import DurableWaiters
from hub.store import Revision
from snapshot.errors import Fenced, SnapshotError

FENCED = Fenced("another has taken this prefix", by="another", op="commit", object="HEAD")


async def test_a_segment_wakes_everybody_whose_revision_it_has() -> None:
    waiters = DurableWaiters()
    early, same, late = (waiters.add(Revision(n)) for n in (7, 7, 9))
    waiters.shipped(Revision(6))
    assert not early.done()
    waiters.shipped(Revision(8))
    await early
    await same
    await asyncio.sleep(0)
    assert (late.done(), len(waiters)) == (False, 1)
    waiters.shipped(Revision(9))
    await late


async def test_who_gives_up_is_forgotten_and_disturbs_nobody() -> None:
    waiters = DurableWaiters()
    left, stays = waiters.add(Revision(3)), waiters.add(Revision(3))
    left.cancel()
    waiters.shipped(Revision(3))
    await stays
    with pytest.raises(asyncio.CancelledError):
        await left
    await asyncio.sleep(0)
    assert len(waiters) == 0


async def test_what_ends_shipping_is_told_to_all_and_to_who_comes_later() -> None:
    waiters = DurableWaiters()
    waiting = [waiters.add(Revision(n)) for n in (1, 2)]
    waiters.failed(FENCED)
    waiters.close()
    for future in [*waiting, waiters.add(Revision(3))]:
        with pytest.raises(Fenced):
            await future


async def test_a_stop_says_so() -> None:
    waiters = DurableWaiters()
    waiting = waiters.add(Revision(1))
    waiters.close()
    with pytest.raises(SnapshotError, match="the hub is stopping"):
        await waiting
