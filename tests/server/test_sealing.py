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
    encoded = base64.b64encode(text.encode())
    shown = dict.fromkeys((text.encode()[30:200], encoded[30:200]), 0)
    for path in data.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for part in shown:
                shown[part] += content.count(part)
    assert shown[encoded[30:200]] == 0
    # the ConfigMap is not sealed: the search does find what is there
    assert shown[text.encode()[30:200]] >= 1
    async with running_hub(data) as hub:
        found = await hub.admin.get(f"{secrets}/s")
        assert base64.b64decode(found["data"]["password"]).decode() == text
        work = await hub.admin.get(f"{works}/w")
        assert work["spec"]["workload"]["manifests"] == [manifest]
