"""docs/api-table.md says what a hub serves."""

from pathlib import Path

import pytest

from hub.meta import Obj
from hub.registry.kind import STANDARD_VERBS
from tests.hubs import InProcess
from tools.api_table import kinds, render

PAGE = Path(__file__).parents[2] / "docs" / "api-table.md"


def test_the_page_is_the_one_that_is_made() -> None:
    hint = "run: python -m tools.api_table docs/api-table.md"
    assert PAGE.read_text() == render(), hint


@pytest.mark.asyncio(loop_scope="module")
async def test_the_page_says_what_discovery_says(hub: InProcess) -> None:
    """Whatever other tests have defined on this hub is not in the page."""
    told: dict[str, Obj] = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not cells[0].startswith("`"):
            continue
        group = cells[0].strip("`").partition(".")[2]
        for version in cells[3].split("; "):
            name = version if "/" in version or not group else f"{group}/{version}"
            told[f"{name} {cells[1]}"] = {
                "plural": cells[0].strip("`").partition(".")[0],
                "short": cells[2],
                "namespaced": cells[4] == "namespaced",
                "verbs": sorted(STANDARD_VERBS if cells[5] == "all" else cells[5].split(", ")),
                "subresources": [each.split(" (")[0] for each in cells[6].split("; ") if each],
            }
    groups = (await hub.admin.get("/apis"))["groups"]
    versions = ["v1", *(each["groupVersion"] for group in groups for each in group["versions"])]
    found: dict[str, Obj] = {}
    for version in versions:
        root = "/api/v1" if version == "v1" else f"/apis/{version}"
        resources: list[Obj] = (await hub.admin.get(root))["resources"]
        for each in resources:
            if "/" not in each["name"]:
                found[f"{version} {each['kind']}"] = {
                    "plural": each["name"],
                    "short": ", ".join(each.get("shortNames", [])),
                    "namespaced": each["namespaced"],
                    "verbs": sorted(each["verbs"]),
                    "subresources": sorted(
                        other["name"].partition("/")[2]
                        for other in resources
                        if other["name"].startswith(f"{each['name']}/")
                    ),
                }
    assert {name: found.get(name) for name in told} == told
    own = {kind.storage.group for kind in kinds()} | {"events.k8s.io"}
    ours = {name for name in found if name.partition("/")[0] in own or name.startswith("v1 ")}
    assert ours == set(told)
