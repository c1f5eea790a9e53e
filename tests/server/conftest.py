"""One hub for each module of contract tests; tests keep apart by namespaces and names."""

import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.hubs import InProcess, running_hub


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[InProcess]:
    async with running_hub(tmp_path_factory.mktemp("hub") / "data") as found:
        yield found


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"t-{uuid.uuid4().hex[:8]}"


@pytest_asyncio.fixture(loop_scope="module")
async def ns(hub: InProcess, name: str) -> str:
    """A fresh namespace."""
    await hub.admin.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return name
