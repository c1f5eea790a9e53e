"""One hub and both kubectls for each module of client tests; tests keep apart by namespaces."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from kubernetes import client, config

from tests.clients.cli import Kubectl
from tests.hubs import InProcess, running_hub
from tests.kubectl import locate
from tools.fetch_kubectl import PINS


@pytest.fixture(scope="session", params=PINS)
def kubectl(request: pytest.FixtureRequest) -> Path:
    """Each of the kubectl versions that must work."""
    return locate(request.param)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[InProcess]:
    async with running_hub(tmp_path_factory.mktemp("hub") / "data") as found:
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def k(kubectl: Path, hub: InProcess, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(kubectl, hub.kubeconfig, tmp_path_factory.mktemp("home"))


@pytest.fixture
def api(hub: InProcess) -> Iterator[client.ApiClient]:
    """The Python client as administrator."""
    made = config.new_client_from_config(str(hub.kubeconfig))
    yield made
    made.close()
