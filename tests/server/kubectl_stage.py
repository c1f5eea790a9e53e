"""A hub as kubectl was recorded with: without OCM's controllers, and with the others held back.

A recorded answer shows how far the controllers had come by then. Ours may be faster or slower, so
each of their steps that an answer shows has a gate: it is closed until the replay has come there,
and the replay waits until the step was taken.
"""

import asyncio
import base64
import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from hub import server
from hub.clock import Clock
from hub.controllers.defaults import NamespaceDefaults
from hub.controllers.namespace import NamespaceController
from hub.fleet.registration import Registration
from hub.fleet.sets import Sets
from hub.http.client import Client
from hub.http.tls import client_context
from hub.meta import Obj
from hub.registry.call import SYSTEM_CALL, Call
from hub.registry.catalog import Catalog
from hub.registry.engine import Change, Engine
from hub.registry.kind import Kind
from hub.registry.objects import is_deleting
from hub.store import Store
from tests.hubs import InProcess, running_hub
from tests.server.kubectl_replay import DEFINITIONS, TOUR, KubectlReplay
from tests.server.wire_compare import Learned
from tests.server.wire_differences import Difference


@dataclass(slots=True)
class Gates:
    """What the hub's controllers may do by now to objects that are being deleted, by resource."""

    empty: dict[str, asyncio.Event] = field(default_factory=dict)
    """Take the contents out of a namespace, a definition, an owner; take off the finalizer."""
    begin: dict[str, asyncio.Event] = field(default_factory=dict)
    """Tell that it has begun."""

    def may_begin(self, resource: str) -> asyncio.Event:
        return self.begin.setdefault(resource, asyncio.Event())

    def may_empty(self, resource: str) -> asyncio.Event:
        return self.empty.setdefault(resource, asyncio.Event())


@dataclass(slots=True)
class Stage:
    """A hub without OCM's controllers, as the recorded one was."""

    hub: InProcess
    clients: Mapping[str, Client]
    engine: Engine
    began: dt.datetime
    gates: Gates

    def replay(self, differences: Sequence[Difference]) -> KubectlReplay:
        learned = Learned(self.began)
        return KubectlReplay(
            self.hub,
            self.clients,
            differences,
            learned,
            on_current=lambda exchange: self.gates.may_empty(exchange.parts[2]).set(),
            on_begun=lambda exchange: self.gates.may_begin(exchange.parts[2]).set(),
        )


@contextlib.asynccontextmanager
async def staged(data_dir: Path) -> AsyncIterator[Stage]:
    """Run such a hub."""
    engines: list[Engine] = []
    began = dt.datetime.now(dt.UTC)
    gates = Gates()
    empty = NamespaceController.run

    class Seen(Engine):
        def __init__(
            self, store: Store, catalog: Catalog, clock: Clock, *, sealed: Iterable[str] = ()
        ) -> None:
            super().__init__(store, catalog, clock, sealed=sealed)
            engines.append(self)

        async def modify(
            self,
            kind: Kind,
            name: str,
            change: Change,
            *,
            namespace: str = "",
            subresource: str = "",
            call: Call = SYSTEM_CALL,
        ) -> Obj:
            present = self.peek(kind, name, namespace)
            if present is not None and is_deleting(present) and _is_gated(kind):
                is_status = subresource == "status"
                gate = gates.may_begin if is_status else gates.may_empty
                await gate(kind.plural).wait()
            return await super().modify(
                kind, name, change, namespace=namespace, subresource=subresource, call=call
            )

    async def idle(_: object) -> None:
        await asyncio.Event().wait()

    async def gated(controller: NamespaceController) -> None:
        await gates.may_empty("namespaces").wait()
        await empty(controller)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "Engine", Seen)
        patch.setattr(Registration, "run", idle)
        patch.setattr(Sets, "run", idle)
        patch.setattr(NamespaceDefaults, "run", idle)
        patch.setattr(NamespaceController, "run", gated)
        async with running_hub(data_dir) as hub:
            clients = clients_of(hub)
            try:
                yield Stage(hub, clients, engines[0], began, gates)
            finally:
                for client in clients.values():
                    await client.close()


def _is_gated(kind: Kind) -> bool:
    """Whether the tour deletes objects of the kind and looks on."""
    return kind.plural == DEFINITIONS or (kind.is_custom and kind.storage.group == TOUR)


def clients_of(hub: InProcess) -> dict[str, Client]:
    """Return a client with the administrator's certificate, and one without any."""
    config = yaml.safe_load(hub.kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    ca = base64.b64decode(cluster["certificate-authority-data"])
    pair = (user["client-certificate-data"], user["client-key-data"])
    parts = urlsplit(hub.url)
    assert parts.hostname
    assert parts.port
    return {
        "admin": Client(
            parts.hostname, parts.port, client_context(ca, *map(base64.b64decode, pair))
        ),
        "service-account-token": Client(parts.hostname, parts.port, client_context(ca)),
    }
