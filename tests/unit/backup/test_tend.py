"""Tending: what the hub's stop does to work that is under way in the thread."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from hub.backup import tend
from hub.backup.tend import Tender
from hub.config import Config
from snapshot.remote import open_remote
from snapshot.ship import FullBegun
from tests.unit.snapshot.hub import serve
from tests.unit.snapshot.support import StillClock

T = TypeVar("T")


async def commit(function: Callable[[], T], /) -> T:
    return function()


async def test_a_stop_lets_a_full_be_read_to_its_end_before_its_transaction_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LMDB does not survive a transaction that ends while another thread reads in it."""
    remote = open_remote((tmp_path / "bucket").as_uri())
    reading, go_on, order = threading.Event(), threading.Event(), list[str]()

    def put_full(begun: FullBegun, *_: object) -> None:
        reading.set()
        go_on.wait(20)
        order.extend(f"read {record.key.decode()}" for record in begun.export.records)
        raise OSError(28, "No space left on device")

    close = FullBegun.close

    def ended(begun: FullBegun) -> None:
        order.append("ended")
        close(begun)

    monkeypatch.setattr(tend, "put_full", put_full)
    monkeypatch.setattr(FullBegun, "close", ended)
    async with serve(tmp_path / "d", remote) as hub:
        await hub.put("a")
        hub.ship()
        await hub.put("b")
        tender = Tender(
            hub.store, hub.chain, StillClock(), Config(data_dir=tmp_path / "d"), commit=commit
        )
        tender.ask_full()
        looking = asyncio.ensure_future(tender.look())
        await asyncio.to_thread(reading.wait, 20)
        looking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await looking
        assert order == []
        go_on.set()
        tender.close()
    assert [each.replace("\0", "/") for each in order] == [
        "read pods/ns/a",
        "read pods/ns/b",
        "ended",
    ]
