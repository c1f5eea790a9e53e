"""A hub to measure: a directory filled in this process, then `hublet serve` as its own process.

Filling makes the hub's identity, too, so that the measurer holds the client CA and can mint as many
distinct client certificates as it wants, without a signing request each. A hub never gives that key
away; here it never left.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hub.auth.authority import serving_names
from hub.auth.certificates import mint_client
from hub.auth.identity import HubIdentity, create_identity
from hub.auth.user import MASTERS
from hub.clock import SystemClock
from hub.http.client import Client, ConnectionLost, Poller
from hub.http.tls import client_context
from hub.registry.keeping import save_identity
from hub.store import STORE_DIRECTORY, Store, create_hub_key
from perf.fleet import fill
from perf.machine import split_cores
from tools.simulate.look import read_metric
from tools.simulate.process import HubProcess

_QUIET_S = 4.0
_POLL_S = 0.002
_READY_S = 300.0
AGENTS = "system:open-cluster-management:managed-clusters"


@dataclass(frozen=True, slots=True)
class Site:
    """Where a hub to measure lives, and who it is."""

    root: Path
    port: int
    identity: HubIdentity
    name: str = "hub"
    """What the data directory is called in `root`."""

    @property
    def data_dir(self) -> Path:
        """Return the data directory."""
        return self.root / self.name

    @property
    def store_dir(self) -> Path:
        """Return where the store is in it."""
        return self.data_dir / STORE_DIRECTORY

    @property
    def key_file(self) -> Path:
        """Return the hub key's place."""
        return self.root / "hub.key"

    def process(self, object_store: str = "") -> HubProcess:
        """Return the hub as a process, not started."""
        return HubProcess(
            data_dir=self.data_dir,
            key_file=self.key_file,
            object_store=object_store,
            address=f"127.0.0.1:{self.port}",
            log=self.root / "hub.log",
        )

    def client(self, user: str, groups: Sequence[str], *, poller: Poller | None = None) -> Client:
        """Return a client with a certificate of its own for `user`."""
        pair = mint_client(user, groups, self.identity.client_ca, now=SystemClock().now())
        ca = self.identity.serving_ca.cert_pem.encode()
        tls = client_context(ca, pair.cert_pem.encode(), pair.key_pem.encode())
        return Client("127.0.0.1", self.port, tls, poller=poller)

    def admin(self) -> Client:
        """Return a client that may do everything."""
        return self.client("perf", [MASTERS])

    def agent(self, cluster: str, *, poller: Poller | None = None) -> Client:
        """Return a client that is the agent of `cluster`."""
        own = f"system:open-cluster-management:{cluster}"
        return self.client(f"{own}:perf", [own, AGENTS], poller=poller)


def cache_bytecode(root: Path) -> None:
    """Let what is started keep its bytecode, as an installed hub does, out of the work tree."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(root / "bytecode")


async def make_site(root: Path, port: int, clusters: int) -> Site:
    """Make a hub's directory with a fleet in it."""
    clock, url = SystemClock(), f"https://127.0.0.1:{port}"
    identity = create_identity(url, clock, names=serving_names(url))
    site = Site(root, port, identity)
    key = create_hub_key(site.key_file, token=clock.token, outside=site.data_dir)
    store = Store.open(site.store_dir, hub_key=key, clock=clock)
    await save_identity(store, identity, url=url)
    await fill(store, clusters)
    await store.close()
    return site


def start(process: HubProcess, cores: set[int] | None = None) -> float:
    """Start a hub, on `cores` only when given; return when, by the monotonic clock."""
    began = time.monotonic()
    process.start()
    if cores is not None:
        os.sched_setaffinity(process.pid, cores)
    return began


async def wait_ready(site: Site, process: HubProcess) -> float:
    """Return when ``/readyz`` answered 200, by the monotonic clock.

    Raises RuntimeError with what it said when the hub has ended, and TimeoutError.
    """
    end_s = time.monotonic() + _READY_S
    async with site.admin() as client:
        while time.monotonic() < end_s:
            if process.has_ended:
                raise RuntimeError(f"the hub has ended: {process.log_tail()}")
            try:
                if (await client.request("GET", "/readyz")).status == 200:
                    return time.monotonic()
            except ConnectionLost:
                pass
            await asyncio.sleep(_POLL_S)
    raise TimeoutError(f"the hub is not ready within {_READY_S} s: {process.log_tail()}")


async def wait_quiet(site: Site) -> None:
    """Wait until the hub's controllers write nothing more."""
    async with site.admin() as client:
        last, since = -1.0, time.monotonic()
        while time.monotonic() - since < _QUIET_S:
            await asyncio.sleep(0.5)
            revision = await read_metric(client, "hublet_store_revision")
            if revision != last:
                last, since = revision, time.monotonic()


@asynccontextmanager
async def serving(site: Site) -> AsyncIterator[int]:
    """Run a hub on a core of its own, at rest, and this process on the others; yield its pid."""
    process = site.process()
    own, others = split_cores()
    start(process, own)
    os.sched_setaffinity(0, others)
    try:
        await wait_ready(site, process)
        await wait_quiet(site)
        yield process.pid
    finally:
        process.kill()
