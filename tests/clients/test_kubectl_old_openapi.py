"""The real kubectl where it reads OpenAPI v2: Lists, kinds of nobody, explain in the old form."""

import json

import pytest

from tests.clients.cli import Kubectl
from tests.hubs import InProcess
from tests.server.test_known_definitions import KNOWN
from tests.server.widgets import define

pytestmark = pytest.mark.asyncio(loop_scope="module")
LIST = {"apiVersion": "v1", "kind": "List"}


def config_map(name: str, **rest: object) -> dict[str, object]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **rest}


async def test_a_list_is_created_beside_whatever_kinds_are_defined(
    k: Kubectl, hub: InProcess
) -> None:
    present = (await k.ok("get", "crd", "-o", "name")).out
    for definition in KNOWN.values():
        if f"/{definition['metadata']['name']}\n" not in present:
            await define(hub.admin, definition)
            present += f"/{definition['metadata']['name']}\n"
    both = {**LIST, "items": [config_map("a", data={"x": "1"}), config_map("b")]}
    made = await k.ok("create", "-f", "-", stdin=json.dumps(both))
    assert made.out == "configmap/a created\nconfigmap/b created\n"
    exported = await k.ok("get", "cm", "a", "b", "-o", "yaml", "-n", "default")
    await k.ok("delete", "cm", "a", "b", "-n", "default")
    assert (await k.ok("apply", "-f", "-", stdin=exported.out)).out == made.out
    await k.ok("delete", "-f", "-", stdin=json.dumps(both))


async def test_the_items_of_a_list_are_checked(k: Kubectl) -> None:
    wrong = {**LIST, "items": [config_map("c", dat={"x": "1"})]}
    refused = await k.run("create", "-f", "-", stdin=json.dumps(wrong))
    assert refused.code == 1
    assert 'unknown field "dat" in io.k8s.api.core.v1.ConfigMap' in refused.err


async def test_a_kind_that_nobody_serves_is_said_to_be_none(k: Kubectl) -> None:
    nothing = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    refused = await k.run("create", "-f", "-", stdin=json.dumps(nothing))
    assert (refused.code, refused.err) == (
        1,
        (
            'error: resource mapping not found for name: "d" namespace: "" from "STDIN": no matches'
            ' for kind "Deployment" in version "apps/v1"\nensure CRDs are installed first\n'
        ),
    )


async def test_a_kind_is_explained_in_the_old_form(k: Kubectl) -> None:
    found = await k.ok("explain", "managedcluster.spec", "--output=plaintext-openapiv2")
    assert "RESOURCE: spec <Object>" in found.out
    assert "hubAcceptsClient\t<boolean>" in found.out
