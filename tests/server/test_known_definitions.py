"""Definitions of other projects are accepted, established and served."""

import json
from pathlib import Path

import pytest

from hub.meta import Obj
from tests.hubs import InProcess
from tests.server.widgets import DEFINITIONS, define, until_gone

pytestmark = pytest.mark.asyncio(loop_scope="module")
GOLDEN = Path(__file__).parents[1] / "golden"


def read(folder: str) -> dict[str, Obj]:
    """The golden files of a folder by name."""
    return {p.stem: json.loads(p.read_text()) for p in sorted((GOLDEN / folder).glob("*.json"))}


KNOWN, OWN = read("definitions"), read("crds")


@pytest.mark.parametrize("file", KNOWN)
async def test_a_known_definition_is_served(hub: InProcess, file: str) -> None:
    definition = KNOWN[file]
    made = await define(hub.admin, definition)
    spec = made["spec"]
    for version in spec["versions"]:
        if version["served"]:
            base = f"/apis/{spec['group']}/{version['name']}"
            listed = await hub.admin.get(f"{base}/{spec['names']['plural']}")
            assert listed["kind"] == spec["names"]["listKind"]
            document = await hub.admin.get(f"/openapi/v3{base}")
            assert document["components"]["schemas"]
    at = f"{DEFINITIONS}/{made['metadata']['name']}"
    await hub.admin.call("DELETE", at)
    await until_gone(hub.admin, at)


@pytest.mark.parametrize("file", OWN)
async def test_upstreams_definition_of_a_built_in_kind_is_there_and_may_be_applied(
    hub: InProcess, file: str
) -> None:
    facts = OWN[file]
    at = f"{DEFINITIONS}/{facts['names']['plural']}.{facts['group']}"
    present = await hub.admin.get(at)
    names = {key: present["spec"]["names"].get(key) for key in facts["names"]}
    assert names == facts["names"]
    versions = {v["name"]: (v["served"], v["storage"]) for v in present["spec"]["versions"]}
    assert versions == {v["name"]: (v["served"], v["storage"]) for v in facts["versions"]}
    present["spec"]["versions"] = [
        {
            **{key: version[key] for key in ("name", "served", "storage")},
            "schema": {"openAPIV3Schema": version["schema"]},
            "subresources": {name: {} for name in version["subresources"]},
            "additionalPrinterColumns": version["columns"],
        }
        for version in facts["versions"]
    ]
    assert (await hub.admin.call("PUT", at, present)).status == 200
