"""The ServiceAccount and the CA that every namespace has."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hub.controllers.defaults import ACCOUNT, ROOT_CA, NamespaceDefaults
from hub.meta import Obj
from hub.registry.builtin import CONFIG_MAP, NAMESPACE, SERVICE_ACCOUNT
from hub.registry.call import Call
from hub.registry.engine import Engine
from hub.store import Change
from tests.unit.controllers.given import run_for, settle, shown
from tests.unit.registry.given import VirtualClock, an_engine


@contextlib.asynccontextmanager
async def with_defaults(path: Path) -> AsyncIterator[tuple[Engine, NamespaceDefaults]]:
    async with an_engine(path, VirtualClock()) as engine:
        yield engine, NamespaceDefaults(engine, ca_pem="CA")


def data(engine: Engine, namespace: str) -> object:
    found = engine.peek(CONFIG_MAP, ROOT_CA, namespace)
    return None if found is None else found.get("data")


async def test_a_namespace_and_what_it_has_are_one_commit(tmp_path: Path) -> None:
    async with with_defaults(tmp_path) as (engine, _):
        batches: list[list[Change]] = []
        engine.store.subscribe(batches.append)
        made = await engine.create(NAMESPACE, {"metadata": {"name": "a"}})
        await shown()
        (batch,) = batches
        assert [bytes(c.key).split(b"\0")[0] for c in batch] == [
            b"namespaces",
            b"serviceaccounts",
            b"configmaps",
        ]
        assert made["metadata"]["resourceVersion"] == str(batch[0].revision)
        account = engine.get(SERVICE_ACCOUNT, ACCOUNT, "a")
        assert (account["apiVersion"], account["kind"]) == ("v1", "ServiceAccount")
        assert account["metadata"]["uid"]
        assert data(engine, "a") == {"ca.crt": "CA"}


async def test_a_rehearsed_namespace_brings_nothing(tmp_path: Path) -> None:
    async with with_defaults(tmp_path) as (engine, _):
        await engine.create(NAMESPACE, {"metadata": {"name": "a"}}, call=Call(is_dry_run=True))
        assert data(engine, "a") is None


@pytest.mark.parametrize("is_immutable", [False, True])
async def test_what_is_deleted_or_changed_comes_back(tmp_path: Path, is_immutable: bool) -> None:
    async with with_defaults(tmp_path) as (engine, defaults):
        await engine.create(NAMESPACE, {"metadata": {"name": "a"}})
        await engine.delete(SERVICE_ACCOUNT, ACCOUNT, namespace="a")
        await engine.delete(CONFIG_MAP, ROOT_CA, namespace="a")
        await settle(defaults)
        assert engine.find(SERVICE_ACCOUNT, ACCOUNT, "a") is not None
        assert data(engine, "a") == {"ca.crt": "CA"}

        def spoil(obj: Obj) -> None:
            obj["data"] = {"ca.crt": "another", "more": "x"}
            obj["metadata"]["labels"] = {"mine": "yes"}
            obj["immutable"] = is_immutable

        await engine.modify(CONFIG_MAP, ROOT_CA, spoil, namespace="a")
        await settle(defaults)
        assert data(engine, "a") == {"ca.crt": "CA"}
        kept = engine.get(CONFIG_MAP, ROOT_CA, "a")["metadata"].get("labels")
        assert kept == (None if is_immutable else {"mine": "yes"})


async def test_nothing_comes_back_in_a_namespace_that_goes(tmp_path: Path) -> None:
    async with with_defaults(tmp_path) as (engine, defaults):
        await engine.create(NAMESPACE, {"metadata": {"name": "a"}})
        await engine.delete(NAMESPACE, "a")
        await engine.delete(SERVICE_ACCOUNT, ACCOUNT, namespace="a")
        await engine.delete(CONFIG_MAP, ROOT_CA, namespace="a")
        await settle(defaults)
        assert engine.find(SERVICE_ACCOUNT, ACCOUNT, "a") is None
        assert data(engine, "a") is None


async def test_namespaces_of_an_older_hub_and_an_older_ca_are_brought_up_to_date(
    tmp_path: Path,
) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("a", "b")) as engine:
        old = {"metadata": {"name": ROOT_CA}, "data": {"ca.crt": "old"}}
        await engine.create(CONFIG_MAP, old, namespace="a")
        defaults = NamespaceDefaults(engine, ca_pem="new")
        wanted = {"ca.crt": "new"}
        await run_for(
            defaults.run,
            lambda: data(engine, "a") == data(engine, "b") == wanted,
        )
        assert engine.find(SERVICE_ACCOUNT, ACCOUNT, "b") is not None
