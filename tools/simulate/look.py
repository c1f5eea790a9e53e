"""Looks at a hub over the wire with the admin kubeconfig: readiness, metrics, what it holds.

Each call opens a connection of its own and closes it, as one run of kubectl does.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hub.http.client import Client, ConnectionLost
from hub.http.tls import client_context
from hub.meta import Obj
from hub.meta.codec import json
from tools.kubeconfig import Kubeconfig, read_kubeconfig
from tools.simulate.resource import ACCEPT_JSON, ADDONS, CLUSTERS, CSRS, WORKS, Resource

UNSHIPPED = "hublet_backup_lag_revisions"
_POLL_S = 0.05
_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Sight:
    """What a hub shows: who it is, and the uids of what it holds."""

    ca_pem: bytes
    csr_uids: frozenset[str]
    uids: dict[str, str]
    """Uid of each ManagedCluster, ManifestWork and add-on, by ``plural/namespace/name``."""


async def look(kubeconfig: Path) -> Sight:
    """Return what the hub shows now. Raises ConnectionLost, and ValueError for a refusal."""
    admin = read_kubeconfig(kubeconfig)
    async with _client(admin) as client:
        csrs = await _list_uids(client, CSRS)
        uids: dict[str, str] = {}
        for resource in (CLUSTERS, WORKS, ADDONS):
            uids |= await _list_uids(client, resource)
        return Sight(admin.ca_pem, frozenset(csrs.values()), uids)


async def is_ready(kubeconfig: Path) -> bool:
    """Whether the hub answers ``/readyz`` with 200."""
    async with _client(read_kubeconfig(kubeconfig)) as client:
        try:
            return (await client.request("GET", "/readyz", timeout_s=_TIMEOUT_S)).status == 200
        except (ConnectionLost, TimeoutError):
            return False


async def read_metric(client: Client, name: str) -> float:
    """Return the value of a metric without labels. Raises ValueError when it is not there."""
    response = await client.request("GET", "/metrics", timeout_s=_TIMEOUT_S)
    for line in response.body.decode().splitlines():
        if line.startswith(f"{name} "):
            return float(line.split()[1])
    raise ValueError(f"the hub has no metric {name} (status {response.status})")


async def wait_shipped(kubeconfig: Path, timeout_s: float) -> str:
    """Wait until nothing is left to ship and return the revision then. Raises TimeoutError."""
    end_s = time.monotonic() + timeout_s
    async with _client(read_kubeconfig(kubeconfig)) as client:
        while await read_metric(client, UNSHIPPED) > 0:
            if time.monotonic() > end_s:
                raise TimeoutError(f"{UNSHIPPED} is not 0 within {timeout_s} s")
            await asyncio.sleep(_POLL_S)
        page = await _get(client, f"{CLUSTERS.path()}?limit=1")
        revision: str = page["metadata"]["resourceVersion"]
        return revision


async def _list_uids(client: Client, resource: Resource) -> dict[str, str]:
    found = await _get(client, resource.path())
    return {
        f"{resource.plural}/{m.get('namespace', '')}/{m['name']}": m["uid"]
        for m in (item["metadata"] for item in found["items"])
    }


async def _get(client: Client, target: str) -> Obj:
    response = await client.request("GET", target, [("accept", ACCEPT_JSON)], timeout_s=_TIMEOUT_S)
    if response.status != 200:
        raise ValueError(f"GET {target}: {response.status} {response.body[:200]!r}")
    return json.decode(response.body)


@asynccontextmanager
async def _client(admin: Kubeconfig) -> AsyncIterator[Client]:
    tls = client_context(admin.ca_pem, admin.cert_pem, admin.key_pem)
    async with Client(admin.host, admin.port, tls) as client:
        yield client
