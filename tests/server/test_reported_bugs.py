"""What public reports of other backup tools tell of, tried on a whole hub (docs/bug-reports.md)."""

import asyncio
from pathlib import Path

import pytest

from hub.fleet.kinds import MAX_MANIFESTS_BYTES
from hub.http.app import MAX_BODY_BYTES
from hub.meta import Obj
from hub.meta.codec.json import encode
from snapshot.layout import HEAD
from tests.hubs import Api
from tests.server.support import config_maps, named, noise
from tests.server.test_backup import (
    QUICK,
    Bucket,
    file_bucket,
    hub_on,
    metric,
    restore,
    shipped,
)

__all__ = ["file_bucket"]
WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/default/manifestworks"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
DATA_BYTES = 1 << 20
"""What a ConfigMap or a Secret may hold."""
SECRETS = "/api/v1/namespaces/default/secrets"


def largest(path: str) -> Obj:
    """An object of as many bytes as its kind, or else the hub, takes; hardly any compresses."""
    if path == ROLES:
        rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
        rest = len(encode(named("t-largest", rules=[{**rule, "resourceNames": [""]}])))
        text = noise(path, MAX_BODY_BYTES - rest)
        return named("t-largest", rules=[{**rule, "resourceNames": [text]}])
    if path == WORKS:
        inner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "i"}}
        rest = len(encode({**inner, "data": {"x": ""}}))
        manifests = [{**inner, "data": {"x": noise(path, MAX_MANIFESTS_BYTES - rest)}}]
        return named("t-largest", spec={"workload": {"manifests": manifests}})
    field = "stringData" if path == SECRETS else "data"
    return named("t-largest", **{field: {"x": noise(path, DATA_BYTES - 2)}})


@pytest.mark.parametrize("path", [config_maps("default"), SECRETS, WORKS, ROLES])
async def test_the_largest_object_is_shipped_and_comes_back(
    tmp_path: Path, file_bucket: Bucket, path: str
) -> None:
    """What could be written can be restored: nothing on the way back has a bound of its own."""
    body = largest(path)
    assert len(encode(body)) > MAX_MANIFESTS_BYTES - 2
    async with hub_on(tmp_path, file_bucket) as hub:
        await hub.admin.create(path, body)
        before = await hub.admin.get(f"{path}/t-largest")
        await shipped(hub.admin)
    restore(tmp_path, file_bucket, "new")
    async with hub_on(tmp_path, file_bucket, "new") as hub:
        after = await hub.admin.get(f"{path}/t-largest")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        for field in ("data", "spec", "rules"):
            assert after.get(field) == before.get(field)


def listing(bucket: Bucket) -> dict[str, tuple[int, int]]:
    """What lies in the bucket: size and time of each object's last write."""
    found = {}
    for path in bucket.directory.rglob("*"):
        name = path.relative_to(bucket.directory).as_posix()
        if path.is_file() and not name.startswith("."):
            stat = path.stat()
            found[name] = (stat.st_size, stat.st_mtime_ns)
    return found


async def until_probed(api: Api) -> None:
    """Wait for the one trial of the bucket, which writes and deletes objects of its own."""
    async with asyncio.timeout(20):
        while b"\nhublet_backup_fencing_level 2" not in (await api.call("GET", "/metrics")).body:
            pass


async def heartbeats(api: Api, bucket: Bucket, count: int) -> None:
    """Wait until HEAD was written so many times."""
    seen = {bucket.head().nonce}
    while len(seen) <= count:
        await api.call("GET", "/readyz")
        seen.add(bucket.head().nonce)


async def test_an_idle_hub_writes_nothing_but_its_heartbeat(
    tmp_path: Path, file_bucket: Bucket
) -> None:
    async with hub_on(tmp_path, file_bucket, pace=QUICK) as hub:
        await hub.admin.create(config_maps("default"), named("t-1"))
        await until_probed(hub.admin)
        await shipped(hub.admin)
        await heartbeats(hub.admin, file_bucket, 2)
        before = listing(file_bucket), await metric(hub.admin, "hublet_backup_bytes_total")
        await heartbeats(hub.admin, file_bucket, 6)
        after = listing(file_bucket), await metric(hub.admin, "hublet_backup_bytes_total")
    changed = {name for name, seen in after[0].items() if before[0].get(name) != seen}
    assert changed == {HEAD}
    assert set(after[0]) == set(before[0])
    assert after[1] == before[1]
