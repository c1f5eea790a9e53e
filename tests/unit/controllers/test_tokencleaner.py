"""Bootstrap tokens at the end of their time."""

import base64
import datetime as dt
from pathlib import Path

import pytest

from hub.auth.bootstrap_token import BootstrapToken
from hub.controllers.tokencleaner import TokenCleaner
from hub.registry.builtin import SECRET
from hub.registry.engine import Engine
from tests.unit.controllers.given import run_for, settle
from tests.unit.registry.given import VirtualClock, an_engine

SPACE = "kube-system"
TOKEN = BootstrapToken("abcdef", "0123456789abcdef")
NAME = "bootstrap-token-abcdef"


def is_there(engine: Engine) -> bool:
    return engine.find(SECRET, NAME, SPACE) is not None


async def test_a_token_goes_at_the_time_it_names(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock, namespaces=(SPACE,)) as engine:
        cleaner = TokenCleaner(engine, clock)
        ends = clock.now() + dt.timedelta(hours=2)
        await engine.create(SECRET, TOKEN.as_secret(expiration=ends), namespace=SPACE)
        assert await settle(cleaner) == {NAME: 3600}
        clock.move(3600)
        assert await cleaner.reconcile(NAME) == 3600
        clock.move(3599)
        assert await cleaner.reconcile(NAME) == 1
        assert is_there(engine)
        clock.move(1)
        await cleaner.reconcile(NAME)
        assert not is_there(engine)


async def test_a_token_without_an_end_stays(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock, namespaces=(SPACE,)) as engine:
        cleaner = TokenCleaner(engine, clock)
        await engine.create(SECRET, TOKEN.as_secret(), namespace=SPACE)
        clock.move(10 * 365 * 86_400)
        assert await settle(cleaner) == {}
        assert is_there(engine)


@pytest.mark.parametrize("text", ["soon", "2026-13-01T00:00:00Z", "2030-01-01T00:00:00"])
async def test_an_end_that_cannot_be_read_has_come(tmp_path: Path, text: str) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock, namespaces=(SPACE,)) as engine:
        secret = TOKEN.as_secret()
        secret["data"]["expiration"] = base64.b64encode(text.encode()).decode()
        await engine.create(SECRET, secret, namespace=SPACE)
        await run_for(TokenCleaner(engine, clock).run, lambda: not is_there(engine))


@pytest.mark.parametrize(("space", "type_"), [("a", None), (SPACE, "Opaque")])
async def test_other_secrets_are_none_of_its_business(
    tmp_path: Path, space: str, type_: str | None
) -> None:
    clock = VirtualClock()
    async with an_engine(tmp_path, clock, namespaces=("a", SPACE)) as engine:
        cleaner = TokenCleaner(engine, clock)
        secret = TOKEN.as_secret(expiration=clock.now())
        secret["metadata"]["namespace"] = space
        secret["type"] = type_ or secret["type"]
        await engine.create(SECRET, secret, namespace=space)
        clock.move(100)
        await settle(cleaner)
        assert engine.find(SECRET, NAME, space) is not None
