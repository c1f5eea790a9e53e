"""How many certificate requests one identity may make, and that others are not concerned."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hub.auth.user import MASTERS, User
from hub.fleet.requestpace import AGENT, BOOTSTRAP, MOST_WAITING, RequestPace
from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.registry.engine import Engine
from hub.registry.requests import CSR
from hub.registry.strategy import Occasion
from tests.server.agents import Wish
from tests.unit.registry.given import VirtualClock, an_engine

SHARED = User("system:bootstrap:abcdef", ("system:bootstrappers",))
REQUEST: Obj = {"metadata": {"name": "r"}}


@dataclass(frozen=True, slots=True)
class Given:
    engine: Engine
    clock: VirtualClock
    pace: RequestPace

    def refusal(self, user: User) -> ApiError | None:
        """Ask once; return how it was refused, None when it was not."""
        try:
            self.pace(REQUEST, None, Occasion(user, self.clock))
        except ApiError as error:
            return error
        return None

    def taken(self, user: User, tries: int) -> int:
        return sum(self.refusal(user) is None for _ in range(tries))


@asynccontextmanager
async def given(path: Path) -> AsyncIterator[Given]:
    clock = VirtualClock()
    async with an_engine(path, clock) as engine:
        listed = ("fleet-bootstrap", "corp:*")
        yield Given(engine, clock, RequestPace(engine, clock, bootstrap_users=listed))


async def test_ten_thousand_requests_at_once_are_cut_to_the_burst(tmp_path: Path) -> None:
    async with given(tmp_path) as each:
        assert each.taken(SHARED, 10_000) == BOOTSTRAP.burst
        refused = each.refusal(SHARED)
        assert refused is not None
        assert (refused.code, refused.reason, refused.retry_after_s) == (429, "TooManyRequests", 1)
        assert each.taken(User("system:bootstrap:other"), 10) == 10, "another is not concerned"
        each.clock.move(1)
        assert each.taken(SHARED, 10_000) == BOOTSTRAP.a_second
        each.clock.move(3600)
        assert each.taken(SHARED, 10_000) == BOOTSTRAP.burst


async def test_three_thousand_clusters_that_join_within_a_minute_are_all_heard(
    tmp_path: Path,
) -> None:
    async with given(tmp_path) as each:
        for _ in range(3000):
            assert each.refusal(SHARED) is None
            each.clock.move(0.02)


async def test_a_listed_user_is_a_shared_one_whatever_its_name(tmp_path: Path) -> None:
    """A user of a client certificate, say: 3,000 clusters would take four hours as one agent."""
    async with given(tmp_path) as each:
        for name in ("fleet-bootstrap", "corp:joiner"):
            assert each.taken(User(name), 2000) == BOOTSTRAP.burst
        assert each.taken(User("fleet-bootstrap-2"), 2000) == AGENT.burst


async def test_an_agent_may_ask_a_few_times(tmp_path: Path) -> None:
    async with given(tmp_path) as each:
        agent = User("system:open-cluster-management:c:a1")
        assert each.taken(agent, 100) == AGENT.burst
        each.clock.move(5)
        assert each.taken(agent, 100) == 1


async def test_an_administrator_and_updates_have_no_pace(tmp_path: Path) -> None:
    async with given(tmp_path) as each:
        assert each.taken(User("admin", (MASTERS,)), 5000) == 5000
        for _ in range(5000):
            each.pace(REQUEST, REQUEST, Occasion(SHARED, each.clock))


async def test_undecided_requests_of_one_identity_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_WAITING == 10_000
    monkeypatch.setattr("hub.fleet.requestpace.MOST_WAITING", 2)
    async with given(tmp_path) as each:
        for name in ("one", "two"):
            await _request(each.engine, name)
        assert each.refusal(User("system:hublet")) is not None
        await _approve(each.engine, "one")
        assert each.refusal(User("system:hublet")) is None
        await _request(each.engine, "three")
        assert each.refusal(User("system:hublet")) is not None
        await each.engine.delete(CSR, "three")
        assert each.refusal(User("system:hublet")) is None
        again = RequestPace(each.engine, each.clock)
        assert again._waiting == each.pace._waiting == {"system:hublet": 1}


async def _request(engine: Engine, name: str) -> None:
    body = Wish("c").as_obj()
    await engine.create(CSR, {**body, "metadata": {"name": name}})


async def _approve(engine: Engine, name: str) -> None:
    def approve(obj: Obj) -> None:
        obj["status"]["conditions"] = [{"type": "Approved", "status": "True", "reason": "R"}]

    await engine.modify(CSR, name, approve, subresource="approval")
