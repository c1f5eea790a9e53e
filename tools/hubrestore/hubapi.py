"""What ``release`` and ``migrate`` ask a hub through its API."""

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import click

from hub.fleet.conditions import ACCEPTED, condition_status
from hub.fleet.registration import LEASE_NAME
from hub.http.client import ConnectionLost
from hub.meta import Obj
from snapshot.errors import ForeignPrefix, Refused, RemoteUnavailable
from snapshot.head import Head
from snapshot.remote import Remote
from tools.caller import Caller, RefusedError, calling
from tools.hubrestore.access import read_head
from tools.joining import CLUSTERS
from tools.kubeconfig import Kubeconfig, read_kubeconfig

T = TypeVar("T")
HUB_PATH = "/apis/hublet.io/v1alpha1/hubs/hub"
LEASES = "/apis/coordination.k8s.io/v1/leases"
_LOOK_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class HubApi:
    """A hub, as somebody."""

    identity: Kubeconfig

    @classmethod
    def read(cls, path: Path, *, url: str = "") -> "HubApi":
        """Take server and credentials from a kubeconfig; `url` is another server."""
        try:
            identity = read_kubeconfig(path)
            identity.context()
        except (OSError, ValueError) as error:
            raise click.UsageError(f"--kubeconfig: {error}") from error
        if url:
            server = urlsplit(url)
            if server.scheme != "https" or not server.hostname:
                raise click.UsageError(f"--url: {url!r} must be https://HOST:PORT")
            identity = dataclasses.replace(identity, host=server.hostname, port=server.port or 443)
        return cls(identity)

    def hub(self) -> Obj:
        """Return the Hub object. Raises `Refused`, `RemoteUnavailable`."""
        return self._ask(lambda caller: caller.call("GET", HUB_PATH))

    def clusters_missing(self, count: int) -> list[str]:
        """Return the names of the `count` clusters that have not been heard since the start.

        They are the accepted ones whose Leases were written longest ago: a hub that starts after a
        restore writes every Lease before it serves anyone.
        """
        clusters, leases = self._ask(_clusters_and_leases)
        written = {
            lease["metadata"]["namespace"]: int(lease["metadata"]["resourceVersion"])
            for lease in leases
        }
        names = [str(each["metadata"]["name"]) for each in clusters if _is_expected(each)]
        return sorted(sorted(names, key=lambda name: written.get(name, 0))[:count])

    def release(self, *, hub_id: str) -> None:
        """Have the hub ship the rest, release its prefix and stop; it must be the one meant."""
        found = identity_of(self.hub()).hub_id
        if found != hub_id:
            raise ForeignPrefix(
                f"{self.identity.server} is hub {found}, the prefix is of {hub_id}",
                op="release",
                hint="name the kubeconfig of the hub that writes this prefix",
            )
        self._ask(lambda caller: caller.call("POST", f"{HUB_PATH}/release"))

    def _ask(self, work: Callable[[Caller], Awaitable[T]]) -> T:
        try:
            return asyncio.run(self._work(work))
        except RefusedError as error:
            hint = "the kubeconfig must be an administrator's"
            if error.status == HTTPStatus.NOT_FOUND:
                hint = "is this a hub, and of this release?"
            raise Refused(str(error), op="ask", object=self.identity.server, hint=hint) from error
        except (ConnectionLost, TimeoutError, OSError) as error:
            raise RemoteUnavailable(
                f"the hub does not answer: {error or type(error).__name__}",
                op="ask",
                object=self.identity.server,
                hint="see that it runs, and that this is its address",
            ) from error

    async def _work(self, work: Callable[[Caller], Awaitable[T]]) -> T:
        async with calling(self.identity) as caller:
            return await work(caller)


@dataclass(frozen=True, slots=True)
class HubIdentity:
    """Which hub answers, under which epoch, and who writes."""

    hub_id: str
    epoch: int
    writer: str


def identity_of(hub: Obj) -> HubIdentity:
    """Read a Hub object."""
    status = hub.get("status", {})
    hub_id = str(status.get("identity", {}).get("hubID", ""))
    return HubIdentity(hub_id, int(status.get("epoch", 0)), str(status.get("writer", "")))


def wait_released(remote: Remote, *, timeout_s: float) -> Head:
    """Wait until HEAD says that its writer has ended. Raises `RemoteUnavailable`."""
    until_s = time.monotonic() + timeout_s
    while True:
        head = read_head(remote)
        if head.released:
            return head
        if time.monotonic() >= until_s:
            raise RemoteUnavailable(
                f"{head.writer.describe()} has not released the prefix within {timeout_s:.0f} s",
                op="release",
                object=remote.url,
                hint="look at that hub's log; if it is gone for good: hub-restore takeover",
            )
        time.sleep(_LOOK_EVERY_S)


async def _clusters_and_leases(caller: Caller) -> tuple[list[Obj], list[Obj]]:
    clusters = await caller.items(CLUSTERS)
    leases = await caller.items(LEASES, fieldSelector=f"metadata.name={LEASE_NAME}")
    return clusters, leases


def _is_expected(cluster: Obj) -> bool:
    is_deleting = "deletionTimestamp" in cluster["metadata"]
    return condition_status(cluster, ACCEPTED) == "True" and not is_deleting
