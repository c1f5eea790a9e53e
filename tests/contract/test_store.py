"""Runs the store's contract against the LMDB store and against the model it is compared with."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hub.store import Store
from tests.contract.store_past import PAST
from tests.contract.store_suite import SUITE
from tests.unit.store.given import open_store
from tests.unit.store.model import ModelStore

CONTRACT = {**SUITE, **PAST}


@pytest.fixture
async def lmdb_store(tmp_path: Path) -> AsyncIterator[Store]:
    store = open_store(tmp_path / "data")
    yield store
    await store.close()


@pytest.mark.parametrize("name", CONTRACT)
async def test_the_lmdb_store_keeps_the_contract(name: str, lmdb_store: Store) -> None:
    await CONTRACT[name](lmdb_store)
    lmdb_store.verify()


@pytest.mark.parametrize("name", CONTRACT)
async def test_the_model_keeps_the_contract(name: str) -> None:
    await CONTRACT[name](ModelStore())
