"""Secrets lie encrypted: no file of the data directory holds their plain text."""

import base64
from pathlib import Path

from tests.hubs import running_hub
from tests.server.support import config_maps, named

PLAIN = "correct-horse-battery-staple-"


async def test_secrets_and_works_are_sealed_at_rest_and_readable_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    secrets = "/api/v1/namespaces/default/secrets"
    works = "/apis/work.open-cluster-management.io/v1/namespaces/default/manifestworks"
    # as much text as there is, so that no compression hides it; random, so that none is possible
    text = PLAIN + base64.b64encode(bytes(range(256))).decode()
    manifest = {"apiVersion": "v1", "kind": "Secret", **named("inner", stringData={"p": text})}
    async with running_hub(data) as hub:
        await hub.admin.create(secrets, named("s", stringData={"password": text}))
        await hub.admin.create(works, named("w", spec={"workload": {"manifests": [manifest]}}))
        await hub.admin.create(config_maps("default"), named("open", data={"x": text}))
    encoded = base64.b64encode(text.encode()).decode()
    assert shown_in(data, encoded) == 0
    # the ConfigMap is not sealed: the search does find what is there
    assert shown_in(data, text) >= 1
    async with running_hub(data) as hub:
        found = await hub.admin.get(f"{secrets}/s")
        assert base64.b64decode(found["data"]["password"]).decode() == text
        work = await hub.admin.get(f"{works}/w")
        assert work["spec"]["workload"]["manifests"] == [manifest]


async def test_what_is_asked_to_be_sealed_is_from_its_next_write_on(tmp_path: Path) -> None:
    data = tmp_path / "data"
    text = PLAIN + base64.b64encode(bytes(range(256))).decode()
    async with running_hub(data, seal=("configmaps", "widgets.example.com")) as hub:
        assert [each for each in hub.warnings if each.startswith("seal")] == [
            "seal: no kind of this hub is called widgets.example.com; sealed when one is defined"
        ]
        path = config_maps("default")
        await hub.admin.create(path, named("closed", data={"x": text}))
    assert shown_in(data, text) == 0
    async with running_hub(data) as hub:
        assert (await hub.admin.get(f"{path}/closed"))["data"] == {"x": text}
        await hub.admin.patch(f"{path}/closed", {"data": {"y": "z"}})
    assert shown_in(data, text) >= 1


def shown_in(data: Path, text: str) -> int:
    """Return how often the middle of a text stands in the files of a directory."""
    part = text.encode()[30:200]
    return sum(each.read_bytes().count(part) for each in data.rglob("*") if each.is_file())
