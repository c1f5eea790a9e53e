"""Tables of every built-in kind equal those that a real API server made of the same objects."""

import json

import pytest
import pytest_asyncio

from hub.registry.builtin import BUILTIN
from tests.hubs import InProcess
from tests.server.table_cases import CASES, GOLDEN, Shown, show_all

pytestmark = pytest.mark.asyncio(loop_scope="module")
REAL = json.loads(GOLDEN.read_text())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shown(hub: InProcess) -> dict[str, Shown]:
    return await show_all(hub.admin)


@pytest.mark.parametrize("case", CASES)
async def test_columns_and_cells_are_those_of_a_real_server(
    shown: dict[str, Shown], case: str
) -> None:
    assert shown[case] == REAL[case]


async def test_every_built_in_kind_that_can_be_listed_has_a_case() -> None:
    covered = {case.path.rpartition("/")[2] for case in CASES.values()}
    assert {kind.plural for kind in BUILTIN if "list" in kind.verbs} <= covered
