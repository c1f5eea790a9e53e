"""The cleaner of requests, on a clock that tests move."""

import base64
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hub.auth.authority import create_authority
from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.auth.certificates import sign_client_certificate
from hub.auth.user import User
from hub.controllers.csrcleaner import RequestCleaner
from hub.controllers.surplus import THRESHOLD
from hub.meta import Obj
from hub.registry.call import SYSTEM_CALL, Call
from hub.registry.engine import Engine
from hub.registry.hold import Hold
from hub.registry.requests import ADDON_NAME_LABEL, CSR
from tests.server.agents import Wish
from tests.unit.controllers.given import run_for, settle
from tests.unit.registry.given import VirtualClock, an_engine

HOUR = 3600.0


@dataclass(slots=True)
class Given:
    engine: Engine
    clock: VirtualClock
    cleaner: RequestCleaner

    async def ask(
        self,
        name: str,
        *,
        agent: str = "a1",
        labels: Obj | None = None,
        call: Call = SYSTEM_CALL,
    ) -> Obj:
        wish = Wish("c", common_name=f"system:open-cluster-management:c:{agent}", labels=labels)
        body = wish.as_obj()
        body["metadata"] = {"name": name, "labels": body["metadata"]["labels"]}
        return await self.engine.create(CSR, body, call=call)

    async def decide(self, name: str, type_: str) -> None:
        def change(obj: Obj) -> None:
            condition = {"type": type_, "status": "True", "reason": "x"}
            obj["status"]["conditions"] = [condition]

        sub = "status" if type_ == "Failed" else "approval"
        await self.engine.modify(CSR, name, change, subresource=sub)

    async def sign(self, name: str, *, duration_s: int = 86_400 * 365) -> None:
        authority = create_authority("test", self.clock.now())

        def change(obj: Obj) -> None:
            pem = sign_client_certificate(
                base64.b64decode(obj["spec"]["request"]),
                authority,
                usages=obj["spec"]["usages"],
                now=self.clock.now(),
                duration_s=duration_s,
            )
            obj["status"]["certificate"] = base64.b64encode(pem).decode()

        await self.engine.modify(CSR, name, change, subresource="status")

    def names(self) -> list[str]:
        return [str(obj["metadata"]["name"]) for obj in self.engine.each(CSR)]


@contextlib.asynccontextmanager
async def a_cleaner(path: Path) -> AsyncIterator[Given]:
    clock = VirtualClock()
    async with an_engine(path, clock) as engine:
        yield Given(engine, clock, RequestCleaner(engine, clock, hold=Hold(clock)))


@pytest.mark.parametrize(
    ("decision", "is_signed", "lasts_s"),
    [
        ("", False, 24 * HOUR),
        ("Approved", True, HOUR),
        ("Approved", False, HOUR),
        ("Denied", False, HOUR),
        ("Failed", False, HOUR),
    ],
)
async def test_a_request_lasts_as_long_as_in_kubernetes(
    tmp_path: Path, decision: str, is_signed: bool, lasts_s: float
) -> None:
    async with a_cleaner(tmp_path) as given:
        await given.ask("x", labels={})
        given.clock.move(100)
        if decision:
            await given.decide("x", decision)
        if is_signed:
            await given.sign("x")
        given.clock.move(lasts_s - (0 if decision else 100))
        await given.cleaner.sweep()
        assert given.names() == ["x"]
        given.clock.move(1)
        await given.cleaner.sweep()
        assert given.names() == []


async def test_a_certificate_that_has_expired_is_of_no_use(tmp_path: Path) -> None:
    async with a_cleaner(tmp_path) as given:
        await given.ask("x")
        await given.decide("x", "Approved")
        await given.sign("x", duration_s=600)
        given.clock.move(601)
        await given.cleaner.sweep()
        assert given.names() == []


async def test_time_in_which_the_hub_was_away_does_not_count(tmp_path: Path) -> None:
    async with a_cleaner(tmp_path) as given:
        await given.ask("x")
        await given.decide("x", "Approved")
        await given.sign("x")
        given.clock.move(10 * HOUR)
        fresh = RequestCleaner(given.engine, given.clock, hold=Hold(given.clock))
        given.clock.move(HOUR)
        await fresh.sweep()
        assert given.names() == ["x"]
        given.clock.move(1)
        await fresh.sweep()
        assert given.names() == []


async def test_an_agent_that_asks_again_and_again_never_meets_its_threshold(
    tmp_path: Path,
) -> None:
    async with a_cleaner(tmp_path) as given:
        for n in range(25):
            given.clock.move(5)
            await given.ask(f"r{n:02}")
            await settle(given.cleaner)
            assert len(given.names()) < THRESHOLD - 1
            assert given.names()[-1] == f"r{n:02}"


async def test_even_under_ever_new_names_it_does_not(tmp_path: Path) -> None:
    async with a_cleaner(tmp_path) as given:
        for n in range(25):
            given.clock.move(5)
            await given.ask(f"r{n:02}", agent=f"a{n}")
            await settle(given.cleaner)
            assert len(given.names()) < THRESHOLD - 1
            assert given.names()[-3:] == [f"r{k:02}" for k in range(max(0, n - 2), n + 1)]


async def test_clusters_and_add_ons_are_counted_apart(tmp_path: Path) -> None:
    async with a_cleaner(tmp_path) as given:
        for n in range(7):
            given.clock.move(1)
            cluster = {CLUSTER_NAME_LABEL: "c"}
            await given.ask(f"agent-{n}", labels=cluster)
            await given.ask(f"addon-{n}", labels={**cluster, ADDON_NAME_LABEL: "x"})
            await given.ask(f"other-{n}", labels={CLUSTER_NAME_LABEL: "d"})
            await given.ask(f"plain-{n}", labels={})
        await settle(given.cleaner)
        found = given.names()
        for group, count in (("agent", 5), ("addon", 5), ("other", 5), ("plain", 7)):
            assert len([name for name in found if name.startswith(group)]) == count


async def test_the_requests_of_another_user_do_not_supersede_an_agents(tmp_path: Path) -> None:
    async with a_cleaner(tmp_path) as given:
        await given.ask("mine")
        for n in range(9):
            given.clock.move(1)
            await given.ask(f"theirs-{n}", call=Call(User("somebody")))
            await settle(given.cleaner)
        assert given.names() == ["mine", *(f"theirs-{n}" for n in range(5, 9))]


async def test_a_group_that_is_too_large_at_the_start_is_cut(tmp_path: Path) -> None:
    async with a_cleaner(tmp_path) as given:
        for n in range(120):
            given.clock.move(1)
            await given.ask(f"r{n:03}")
        fresh = RequestCleaner(given.engine, given.clock, hold=Hold(given.clock))
        await run_for(fresh.run, lambda: len(given.names()) == 5)
        assert given.names()[-1] == "r119"
