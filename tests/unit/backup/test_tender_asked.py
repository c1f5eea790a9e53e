"""When the chain is tended: every few seconds, and at once when somebody asks."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from hub.backup.tend import Commit, Tender
from hub.config import Config
from hub.store import Store
from snapshot.chain import Chain
from snapshot.errors import RemoteUnavailable
from snapshot.policy import Due
from tests.unit.backup.virtual import LoopClock, now_s, run


class Tried(Tender):
    """Notes when it looks; a full fails as often as it is told, and takes a second."""

    def __init__(self, directory: Path, *, failures: int = 0) -> None:
        config = Config(data_dir=directory)
        nothing = cast("Store", None), cast("Chain", Head())
        super().__init__(*nothing, LoopClock(), config, commit=cast("Commit", None))
        self.failures = failures
        self.fulls: list[float] = []
        self.looks: list[float] = []

    async def look(self) -> None:
        self.looks.append(now_s())
        await super().look()

    async def _nothing(self) -> None:
        """Only fulls are of interest here."""

    _merge_if_due = _probe = _list = _drill = _clean = _nothing

    async def _full(self, due: Due) -> None:
        assert due is Due.ASKED
        self.fulls.append(now_s())
        await asyncio.sleep(1)
        if self.failures:
            self.failures -= 1
            raise RemoteUnavailable("no answer", op="put")


class Head:
    """A chain whose head calls for nothing."""

    @property
    def head(self) -> "Head":
        return self

    full, remote = "there is one", None


@pytest.fixture(autouse=True)
def _nothing_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hub.backup.tend.full_due", lambda *_, **__: None)


async def tend(tender: Tender, *, for_s: float, asks: tuple[float, ...]) -> None:
    """Tend for so long; ask for a full at these times."""
    loop = asyncio.get_running_loop()
    for at_s in asks:
        loop.call_later(at_s, tender.ask_full)
    try:
        async with asyncio.timeout(for_s):
            await tender.run()
    except TimeoutError:
        return


def test_a_full_that_is_asked_for_is_begun_at_once(tmp_path: Path) -> None:
    async def asked() -> None:
        tender = Tried(tmp_path)
        await tend(tender, for_s=12, asks=(7.0,))
        assert tender.looks == [0.0, 5.0, 7.0]
        assert tender.fulls == [7.0]

    run(asked())


def test_who_asks_while_a_full_is_cut_gets_a_further_one(tmp_path: Path) -> None:
    async def asked() -> None:
        tender = Tried(tmp_path)
        await tend(tender, for_s=6, asks=(1.0, 1.5, 1.6))
        assert tender.fulls == [1.0, 2.0]

    run(asked())


def test_a_full_that_failed_is_tried_again_after_a_pause_which_an_ask_cuts_short(
    tmp_path: Path,
) -> None:
    async def asked() -> None:
        tender = Tried(tmp_path, failures=2)
        await tend(tender, for_s=200, asks=(1.0, 10.0))
        assert tender.fulls[:2] == [1.0, 10.0]
        assert len(tender.fulls) == 3
        assert tender.fulls[2] >= 71.0

    run(asked())


def test_a_full_that_failed_and_one_that_did_not_are_told_at_once(tmp_path: Path) -> None:
    async def asked() -> None:
        tender, told = Tried(tmp_path, failures=1), list[tuple[float, str]]()
        tender.on_news = lambda: told.append((now_s(), tender.tended.trouble))
        await tend(tender, for_s=100, asks=(1.0, 10.0))
        assert told == [(2.0, "full: put: no answer"), (11.0, "")]

    run(asked())
