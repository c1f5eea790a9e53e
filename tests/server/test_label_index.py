"""The index by label, over a real store and engine."""

import base64
from pathlib import Path

from tests.hubs import running_hub

_PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_LABEL = "open-cluster-management.io/cluster-name"


async def test_lists_by_an_indexed_label_follow_every_change_and_a_restart(tmp_path: Path) -> None:
    query = f"{_PATH}?labelSelector={_LABEL}%3D"
    async with running_hub(tmp_path / "data") as hub:
        for number, cluster in enumerate(("a", "b", "a")):
            meta = {"name": f"r{number}", "labels": {_LABEL: cluster}}
            await hub.admin.create(_PATH, {"metadata": meta, "spec": _SPEC})
        names = [o["metadata"]["name"] for o in (await hub.admin.get(f"{query}a"))["items"]]
        assert names == ["r0", "r2"]
        await hub.admin.patch(f"{_PATH}/r0", {"metadata": {"labels": {_LABEL: "b"}}})
        await hub.admin.call("DELETE", f"{_PATH}/r2")
        assert (await hub.admin.get(f"{query}a"))["items"] == []
        limited = await hub.admin.get(f"{query}b&limit=500&resourceVersion=0")
        assert [o["metadata"]["name"] for o in limited["items"]] == ["r0", "r1"]
    async with running_hub(tmp_path / "data") as hub:
        found = await hub.admin.get(f"{query}b")
        assert [o["metadata"]["name"] for o in found["items"]] == ["r0", "r1"]


_SPEC = {
    "request": base64.b64encode(
        b"-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n"
    ).decode(),
    "signerName": "example.com/other",
    "usages": ["client auth"],
}
