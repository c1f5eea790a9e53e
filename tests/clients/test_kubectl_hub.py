"""kubectl and the hub's own kinds."""

from pathlib import Path

import yaml

from tests.clients.cli import Kubectl
from tests.hubs import running_hub


async def test_kubectl_gets_describes_and_explains_the_hub(kubectl: Path, tmp_path: Path) -> None:
    url = (tmp_path / "bucket").as_uri()
    async with running_hub(tmp_path / "data", object_store=url) as hub:
        k = Kubectl(kubectl, hub.kubeconfig, tmp_path)
        ready = "--for=condition=BackupHealthy"
        waited = await k.ok("wait", ready, "hub/hub", "--timeout=20s")
        assert waited.out == "hub.hublet.io/hub condition met\n"
        obj = yaml.safe_load((await k.ok("get", "hub", "hub", "-o", "yaml")).out)
        assert obj["status"]["identity"]["url"] == hub.url
        header, row = (await k.ok("get", "hub")).rows()
        shown = dict(zip(header, row, strict=True))
        assert (shown["NAME"], shown["EPOCH"], shown["BACKUP"]) == ("hub", "1", "True")
        header, *rows = (await k.ok("get", "hsnap")).rows()
        assert header == ["NAME", "KIND", "EPOCH", "REVISION", "SIZE", "VERIFIED", "PINNED", "AGE"]
        assert rows[0][:3] == ["0000000001-full", "full", "1"]
        explained = (await k.ok("explain", "hub.status.lag")).out
        assert "What would be lost with this machine now." in explained
        assert "  seconds\t<number>\n    For how long there have been any.\n" in explained
        refused = await k.run("delete", "hub", "hub")
        assert refused.code == 1
        assert refused.err == (
            "Error from server (MethodNotAllowed): delete is not supported on resources of kind "
            '"hubs.hublet.io": the hub keeps it and clients can only read it\n'
        )


async def test_kubectl_describe_shows_the_events_of_the_hub(kubectl: Path, tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        k = Kubectl(kubectl, hub.kubeconfig, tmp_path)
        described = (await k.ok("describe", "hub", "hub")).out
    assert "Reason:                NoObjectStore" in described
    events = described.partition("Events:")[2]
    assert "BackupHealthy is False: nothing is shipped" in events
    assert "Warning" in events


async def test_kubectl_releases_a_hub(kubectl: Path, tmp_path: Path) -> None:
    url = (tmp_path / "bucket").as_uri()
    async with running_hub(tmp_path / "data", object_store=url) as hub:
        k = Kubectl(kubectl, hub.kubeconfig, tmp_path)
        path = "/apis/hublet.io/v1alpha1/hubs/hub/release"
        told = await k.ok("create", "--raw", path, "-f", "-", stdin="{}")
        assert '"code":202' in told.out
        await hub.run
