"""Fixtures that every directory of tests may use; what one part needs lives in its own modules."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.kubectl import locate

# A busy machine is no finding: timing is measured in perf/, and pytest-timeout catches hangs.
# CI tries the same examples every time, as Hypothesis does by itself; people's runs explore.
settings.register_profile(
    "house",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize="CI" in os.environ,
)
settings.load_profile("house")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the long rounds of `make soak` take their time: their own limits are for short ones."""
    if os.environ.get("HUBLET_SOAK"):
        for item in items:
            if item.get_closest_marker("soak"):
                item.add_marker(pytest.mark.timeout(0), append=False)


@pytest.fixture(scope="session")
def kubectl() -> Path:
    """The kubectl binary; fails with a hint when it is not there."""
    return locate()


@pytest.fixture(scope="session")
def is_soak() -> bool:
    """Whether `make soak` runs: long rounds choose their number by it."""
    return bool(os.environ.get("HUBLET_SOAK"))


@pytest.fixture
def free_port() -> int:
    """A loopback port that nothing listens on now; better is a server that binds port 0."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert isinstance(port, int)
    return port
