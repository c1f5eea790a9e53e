"""A tour of kubectl's commands prints what it printed with a real API server."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.clients.cli import Kubectl
from tests.clients.tour import EDITOR, GOLDEN, take
from tests.hubs import InProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
DIFFERENCES = {
    "describe ns tour": "the other server has quotas and limit ranges, which kubectl looks for",
    """patch cm c1 -n tour -p '{"data":{"x":7}}'""": "both refuse it, each in words of its own",
}


@pytest.mark.timeout(180)
async def test_every_command_prints_what_it_did_with_a_real_server(
    hub: InProcess, kubectl: Path, tmp_path: Path
) -> None:
    k = Kubectl(kubectl, hub.kubeconfig, tmp_path, EDITOR)
    found = [asdict(printed) async for printed in take(k, tmp_path)]
    client = (await k.ok("version", "--client", "-o", "json")).obj()["clientVersion"]
    recorded = GOLDEN / f"tour-1.{client['minor']}.jsonl"
    real = [json.loads(line) for line in recorded.read_text().splitlines()]
    assert [step["command"] for step in found] == [step["command"] for step in real]
    differing = [pair for pair in zip(found, real, strict=True) if pair[0] != pair[1]]
    for ours, theirs in differing:
        assert ours["command"] in DIFFERENCES, (ours, theirs)
        assert ours["code"] == theirs["code"]
    assert len(differing) == len(DIFFERENCES)
