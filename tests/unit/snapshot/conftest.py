"""Fixtures of the snapshot tests."""

from pathlib import Path

import pytest

from snapshot.chain import Chain
from snapshot.remote import Remote, open_remote
from tests.unit.snapshot.support import KEY, FlakyRemote, StillClock


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def bucket(tmp_path: Path) -> Remote:
    return open_remote((tmp_path / "bucket").as_uri())


@pytest.fixture
def flaky(bucket: Remote) -> FlakyRemote:
    return FlakyRemote(bucket)


@pytest.fixture
def chain(flaky: FlakyRemote, clock: StillClock) -> Chain:
    return Chain(flaky, KEY, clock=clock)
