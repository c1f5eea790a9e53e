"""The composition root: builds one hub from a configuration and runs it until it is told to stop.

Owns the order of a start: store, arbiter and epoch, identity, default objects, rights, Leases, and
only then the listener; and of a stop: watches, listener, last segment, store. It decides nothing
else.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import structlog
from prometheus_client import CollectorRegistry, Gauge, ProcessCollector

from hub.auth.authenticate import Authenticator
from hub.auth.authority import serving_names
from hub.auth.identity import HubIdentity, create_identity
from hub.auth.keypair import KeyPair
from hub.auth.kubeconfig import Access, Credential, render_cluster_info, render_kubeconfig
from hub.auth.rbac import Authorizer
from hub.auth.tokens import ServiceAccountTokens
from hub.backup.history import History
from hub.backup.kinds import OWN, OWN_SCHEMAS
from hub.backup.objects import HubObjects
from hub.backup.opening import open_backup
from hub.backup.pace import PacePolicy
from hub.backup.report import Report
from hub.backup.runner import Backup
from hub.backup.status import Identity
from hub.backup.tend import TendPolicy
from hub.clock import Clock
from hub.config import Config
from hub.controllers.aggregation import RoleAggregator
from hub.controllers.csrcleaner import RequestCleaner
from hub.controllers.defaults import NamespaceDefaults
from hub.controllers.definitions import Definitions
from hub.controllers.garbage import GarbageCollector
from hub.controllers.leaf import LeafKeeper
from hub.controllers.namespace import NamespaceController
from hub.controllers.signer import Signer
from hub.controllers.tokencleaner import TokenCleaner
from hub.fleet.admission import install_admission
from hub.fleet.ahead import Ahead, Lost
from hub.fleet.approval import Approver
from hub.fleet.bindings import Bindings
from hub.fleet.completed import CompletedWorks
from hub.fleet.definitions import OWN_DEFINITIONS, ensure_definitions
from hub.fleet.differences import Differences
from hub.fleet.features import Features
from hub.fleet.kinds import FLEET
from hub.fleet.leases import LeaseJudge
from hub.fleet.namespaces import ManagedNamespaces
from hub.fleet.registration import Registration
from hub.fleet.requestpace import install_pace
from hub.fleet.restoremetrics import RestoreMetrics
from hub.fleet.returns import Returns
from hub.fleet.schema.table import SCHEMAS
from hub.fleet.sets import Sets
from hub.fleet.sightings import Sightings
from hub.http.acting import RELEASE, SNAPSHOT, Action, Actions
from hub.http.app import Api, Services
from hub.http.auditing import Auditor, open_auditor
from hub.http.durably import Durability
from hub.http.health import Health
from hub.http.info import RequestInfo
from hub.http.metrics import ConnectionMetrics
from hub.http.tls import replace_leaf, server_context
from hub.http.transport import Server, bind, serve
from hub.http.watching import Watching
from hub.meta import Obj
from hub.meta.errors import unavailable
from hub.registry.bootstrap import announced_url, ensure_objects
from hub.registry.builtin import BUILTIN
from hub.registry.catalog import Catalog
from hub.registry.crd.definition import definition_kind
from hub.registry.engine import Engine
from hub.registry.event import EVENT
from hub.registry.expiry import EventExpiry
from hub.registry.hold import Hold
from hub.registry.keeping import (
    Restored,
    load_identity,
    load_restored,
    load_url,
    save_identity,
    save_restored,
)
from hub.registry.kind import Served
from hub.registry.lookups import Lookups, follow_rbac, guard_rbac
from hub.registry.metrics import EngineMetrics
from hub.registry.watch import Alarms
from hub.store import Revision, Store
from snapshot.errors import SnapshotError
from snapshot.target import occupied

_log = structlog.get_logger("hub.server")
VERSION = "0.1.0"
KUBERNETES_VERSION = ("1", "35")
_STOP_GRACE_S = 5.0

Task: TypeAlias = tuple[str, Callable[[], Coroutine[None, None, None]]]
"""A name and something that runs until it is cancelled."""


@dataclass(frozen=True, slots=True)
class Started:
    """What a started hub tells whoever started it.

    `start_kind`: local (no object store), empty, continue or restored.
    """

    url: str
    kubeconfig: Path
    start_kind: str
    seconds: float
    listen: str
    """Address and port it serves on; the URL may say another, behind a proxy or from the store."""
    warnings: tuple[str, ...] = ()
    """What whoever started it should know, and do."""


async def run_hub(
    config: Config,
    clock: Clock,
    *,
    stop: asyncio.Event,
    on_started: Callable[[Started], None],
    pace: PacePolicy | None = None,
    tend: TendPolicy | None = None,
) -> None:
    """Run a hub until `stop` is set; `pace` is the timing of shipping, `tend` of all beside it.

    Raises `StoreError` when the directory cannot be opened, and `SnapshotError` when the arbiter
    refuses, the bucket cannot be read, or (`Fenced`, mostly in an exception group) another hub has
    taken the prefix.
    """
    began = clock.monotonic_s()
    # the address first: a start that fails must not have taken the prefix from a hub that serves
    with await _bind(config) as sock:
        config = _with_port(config, sock)
        with occupied(config.data_dir):
            await _run(
                config,
                clock,
                sock,
                stop=stop,
                on_started=on_started,
                pace=pace,
                tend=tend,
                began=began,
            )


async def _run(
    config: Config,
    clock: Clock,
    sock: socket.socket,
    *,
    stop: asyncio.Event,
    on_started: Callable[[Started], None],
    pace: PacePolicy | None,
    tend: TendPolicy | None,
    began: float,
) -> None:
    metrics = CollectorRegistry()
    store, backup = await open_backup(config, clock, metrics=metrics, pace=pace, tend=tend)
    try:
        config = replace(config, url=config.url or load_url(store))
        identity = load_identity(store) or await _new_identity(config, clock, store)
        known = store.position.revision
        await backup.take_over(identity.hub_id)
        restored = load_restored(store)
        if backup.is_from_elsewhere:
            after = store.revision if backup.has_lost_nothing else known
            restored = Restored(clock.now(), after, store.revision)
            await save_restored(store, restored)
        backup.spend_claim()
        identity = await _fit(config, clock, store, identity)
        hub = _Hub(config, clock, store, backup=backup, identity=identity, restored=restored)
        with open_auditor(config.audit_log, clock, metrics) as auditor:
            announced = announced_url(hub.engine)
            server = await hub.open(sock, metrics, stop, auditor)
            try:
                started = Started(
                    url=config.public_url(server.port),
                    kubeconfig=hub.write_kubeconfig(),
                    start_kind=backup.start_kind,
                    seconds=clock.monotonic_s() - began,
                    listen=config.listen,
                    warnings=tuple(_warnings(config, announced, hub.engine.catalog)),
                )
                on_started(started)
                for warning in started.warnings:
                    _log.warning("start_warned", warning=warning)
                _log.info(
                    "hub_started",
                    url=started.url,
                    listen=started.listen,
                    start=started.start_kind,
                    rev=store.revision,
                )
                await hub.beside.run(stop)
            finally:
                hub.engine.watches.close_all()
                await server.close(_STOP_GRACE_S)
    finally:
        try:
            await backup.finish()
        finally:
            await store.close()


class _Hub:
    """The parts of one hub, wired."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        store: Store,
        *,
        backup: Backup,
        identity: HubIdentity,
        restored: Restored | None,
    ) -> None:
        self._config, self._clock, self._backup = config, clock, backup
        self._identity = identity
        self._definition = definition_kind(OWN_DEFINITIONS)
        self._catalog = Catalog((*BUILTIN, self._definition, *FLEET, *OWN))
        # before definitions add theirs
        self._own_groups = frozenset(self._catalog.group_versions())
        self.engine = Engine(store, self._catalog, clock, sealed=config.seal)
        self._authorizer = Authorizer()
        self._alarms = Alarms()
        self._tls: ssl.SSLContext | None = None
        self._judge = LeaseJudge(self.engine, clock)
        follow_rbac(self.engine, self._authorizer)
        guard_rbac(self.engine, self._authorizer)
        install_admission(self.engine, self._authorizer)
        install_pace(self.engine, clock, bootstrap_users=config.auto_approve_users)
        backup.follow(self._catalog)
        self._hold = Hold(clock, grace_s=_grace_left_s(config, clock, restored))
        self._returns = Returns(self.engine, self._hold)
        is_held = restored is not None and not self._hold.is_over
        lost = Lost(Revision(restored.after), Revision(restored.upto)) if restored else None
        self._ahead = Ahead(self._hold, lost if is_held else None)
        self._differences = Differences(
            self.engine, clock, hold=self._hold, ahead=self._ahead, is_restored=is_held
        )
        self._definitions = Definitions(
            self.engine, self._catalog, self._definition, own=OWN_DEFINITIONS, hold=self._hold
        )
        self._objects = self._hub_objects(store)
        backup.tell(self._objects.poke)
        self.beside = _Beside(self._tasks(store))

    def _hub_objects(self, store: Store) -> HubObjects:
        """Return the keeper of what the hub says of itself."""
        identity, clock = self._identity, self._clock
        report = Report(
            backup=self._backup,
            store=store,
            hold=self._hold,
            differences=self._differences,
            identity=Identity(identity.hub_id, VERSION, self._access().server),
            started=clock.now(),
            source=self._config.bootstrap_source,
            takeover=self._config.bootstrap_takeover,
        )
        return HubObjects(self.engine, report.status, report.points)

    def _tasks(self, store: Store) -> tuple[Task, ...]:
        config, clock, engine, hold = self._config, self._clock, self.engine, self._hold
        approver = Approver(engine, self._authorizer, bootstrap_users=config.auto_approve_users)
        names = serving_names(config.public_url(config.address()[1]))
        registration = Registration(engine, clock, auto_accept=config.auto_accept, hold=hold)
        defaults = NamespaceDefaults(engine, ca_pem=self._identity.serving_ca.cert_pem)
        return (
            ("store", store.watch_over),
            ("definitions", self._definitions.run),
            ("aggregation", RoleAggregator(engine).run),
            ("namespace", NamespaceController(engine, self._catalog, hold=hold).run),
            ("defaults", defaults.run),
            ("garbage", GarbageCollector(engine, self._catalog, clock, hold=hold).run),
            ("csr-cleaner", RequestCleaner(engine, clock, hold=hold).run),
            ("token-cleaner", TokenCleaner(engine, clock).run),
            ("approval", approver.run),
            ("signer", Signer(engine, self._identity.client_ca, clock).run),
            ("registration", registration.run),
            ("leases", self._judge.run),
            ("sets", Sets(engine, clock).run),
            ("bindings", Bindings(engine, clock).run),
            ("features", Features(engine).run),
            ("managed-namespaces", ManagedNamespaces(engine).run),
            ("completed-works", CompletedWorks(engine, clock, hold=hold).run),
            ("events", EventExpiry(engine, EVENT, clock).run),
            ("leaf", LeafKeeper(store, self._identity, clock, names=names, use=self._use).run),
            ("backup", self._backup.run),
            ("hub-objects", self._objects.run),
            ("history", History(store, self._backup, clock).run),
            ("alarms", self._tick),
        )

    async def open(
        self,
        sock: socket.socket,
        metrics: CollectorRegistry,
        stop: asyncio.Event,
        auditor: Auditor | None,
    ) -> Server:
        """Bring the state into the shape that clients may see, then listen."""
        await ensure_objects(self.engine, cluster_info=render_cluster_info(self._access()))
        await ensure_definitions(self.engine, self._definition)
        await self._definitions.settle()
        await self._judge.refresh_all()
        self._returns.begin()
        await self._objects.refresh()
        identity = self._identity
        self._tls = server_context(
            identity.leaf.cert_pem.encode(),
            identity.leaf.key_pem.encode(),
            identity.client_ca.cert_pem.encode(),
        )
        api = Api(self._services(metrics, stop, auditor))
        server = await serve(
            api.handle,
            sock=sock.dup(),
            tls=self._tls,
            http2_codec=self._config.http2,
            clock=self._clock,
        )
        metrics.register(ConnectionMetrics(lambda: server.connections))
        return server

    def _services(
        self, metrics: CollectorRegistry, stop: asyncio.Event, auditor: Auditor | None
    ) -> Services:
        engine, identity, clock = self.engine, self._identity, self._clock
        lookups = Lookups(engine)
        tokens = ServiceAccountTokens(
            identity.signing_key_pem, identity.issuer, find_uid=lookups.find_uid, new_id=clock.uid
        )

        def stopping() -> str:
            return "the hub is stopping" if stop.is_set() else ""

        checks = {
            "serving": stopping,
            "backup": self._backup.refusal,
            "store": lambda: engine.store.trouble,
            "controllers": self.beside.missing,
        }
        _export(metrics, engine)
        metrics.register(RestoreMetrics(self._hold, self._differences))
        return Services(
            engine=engine,
            catalog=self._catalog,
            own_groups=self._own_groups,
            authenticator=Authenticator(tokens, find_secret=lookups.find_secret),
            authorizer=self._authorizer,
            tokens=tokens,
            watching=Watching(engine, self._alarms, bookmark=self._bookmark),
            health=Health(live={"ping": lambda: ""}, ready=checks, metrics=metrics),
            auditor=auditor,
            metrics=metrics,
            sightings=Sightings(clock),
            ahead=self._ahead,
            differences=self._differences,
            clock=clock,
            version=_version(),
            schema_of=self._schema_of,
            durability=self._durability(),
            url=self._access().server,
            actions=self._actions(stop),
            refusal=lambda info: stopping() or self._refusal(info),
        )

    def _refusal(self, info: RequestInfo) -> str:
        """Return why a request is not taken, "" when it is."""
        refusal = self._backup.refusal() or _broken(self.engine.store)
        return refusal or ("" if info.method in ("GET", "HEAD") else self._backup.write_refusal())

    def _actions(self, stop: asyncio.Event) -> Actions:
        backup = self._backup
        return {
            RELEASE: Action(self._not_releasable, stop.set),
            SNAPSHOT: Action(self._not_shipping, backup.ask_full),
        }

    def _not_releasable(self) -> str:
        if self._config.object_store:
            return ""
        return "it has no object store, so there is nothing to release; to stop it, send SIGTERM"

    def _not_shipping(self) -> str:
        if self._config.object_store:
            return ""
        return "it has no object store, so there is nowhere to ship a snapshot to"

    def _durability(self) -> Durability:
        wait = self._in_bucket if self._config.object_store else None
        return Durability(self._clock, wait, frozenset(self._config.durable))

    async def _in_bucket(self, revision: Revision) -> str:
        """Wait until a revision is in the bucket; return what keeps it from that for now.

        :raises ApiError: 503 when this hub must not write any more
        """
        try:
            await self._backup.durable(revision)
        except SnapshotError as error:
            if refusal := self._backup.refusal():
                raise unavailable(refusal) from error
            return error.message
        return ""

    def _bookmark(self) -> int:
        """Return what bookmarks may carry: nothing that a restore would not bring back."""
        present, config = self.engine.store.revision, self._config
        return min(present, self._backup.shipped_revision()) if config.object_store else present

    def _schema_of(self, served: Served) -> Obj | None:
        """Return the schema of a kind that is not built in."""
        found = SCHEMAS.get((served.view.group, served.view.version, served.kind.kind))
        found = found or OWN_SCHEMAS.get(served.kind.id)
        return self._definitions.schema_of(served) if found is None else found

    def _access(self) -> Access:
        url = self._config.public_url(self._config.address()[1])
        return Access(url, self._identity.serving_ca.cert_pem, self._identity.context_cluster)

    def write_kubeconfig(self) -> Path:
        """Write ``admin.kubeconfig`` with a fresh client certificate; return its path."""
        admin = Credential("admin", client=self._identity.mint_admin(self._clock.now()))
        path = self._config.data_dir / "admin.kubeconfig"
        fresh = path.with_suffix(".new")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(render_kubeconfig(self._access(), admin))
        fresh.replace(path)
        return path

    def _use(self, leaf: KeyPair) -> None:
        """Take a fresh leaf into service, and give the administrator as long again."""
        if self._tls is not None:
            replace_leaf(self._tls, leaf.cert_pem.encode(), leaf.key_pem.encode())
        self.write_kubeconfig()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self._alarms.run(self._clock.monotonic_s())


class _Beside:
    """What runs beside serving."""

    def __init__(self, tasks: tuple[Task, ...]) -> None:
        self._tasks = tasks
        self._running: dict[str, asyncio.Task[None]] = {}

    def missing(self) -> str:
        """Return what does not run, "" when everything does."""
        running = {name for name, task in self._running.items() if not task.done()}
        absent = [name for name, _ in self._tasks if name not in running]
        return f"not running: {', '.join(absent)}" if absent else ""

    async def run(self, stop: asyncio.Event) -> None:
        """Run everything until `stop`; the first failure ends them all."""
        async with asyncio.TaskGroup() as group:
            for name, run in self._tasks:
                self._running[name] = group.create_task(run(), name=name)
            await stop.wait()
            for task in self._running.values():
                task.cancel()


async def _bind(config: Config) -> socket.socket:
    """Take the address to listen on. Raises OSError that names it."""
    try:
        return await bind(*config.address())
    except OSError as error:
        raise OSError(
            error.errno,
            f"listen: {config.listen} cannot be taken: {error.strerror or error}; stop what has "
            "it, or choose another with --listen",
        ) from error


def _with_port(config: Config, sock: socket.socket) -> Config:
    """Return the configuration with a real port in place of 0: certificates and URLs carry it."""
    host, port = config.address()
    shown = f"[{host}]" if ":" in host else host
    return config if port else replace(config, listen=f"{shown}:{sock.getsockname()[1]}")


def _warnings(config: Config, announced: str, catalog: Catalog) -> list[str]:
    """Return what is allowed and may not be meant."""
    found = []
    if not config.object_store:
        found.append("nothing is shipped: give --object-store to have the state in a bucket")
    url = config.public_url(config.address()[1])
    if announced and url != announced:
        found.append(
            f"this hub was {announced} and now says {url}: cluster-info, join commands and "
            "admin.kubeconfig have the new URL; agents that joined hold the old one, and one that "
            "is given the new one takes it for another hub and removes within an hour what this "
            'one had applied. See "Moving the hub\'s URL" in docs/operations.md'
        )
    found += [
        f"seal: no kind of this hub is called {each}; sealed when one is defined"
        for each in config.seal
        if catalog.by_id(each) is None
    ]
    for each in config.durable:
        kind = catalog.by_id(each)
        if kind is None:
            found.append(f"durable: no kind of this hub is called {each}; so once one is defined")
        elif kind.is_volatile or kind.is_virtual:
            found.append(f"durable: {each} are never shipped: their writes wait for nothing")
    return found


async def _new_identity(config: Config, clock: Clock, store: Store) -> HubIdentity:
    """Make the identity of a new hub and keep it."""
    url = config.public_url(config.address()[1])
    identity = create_identity(url, clock, names=serving_names(url))
    await save_identity(store, identity)
    return identity


async def _fit(config: Config, clock: Clock, store: Store, present: HubIdentity) -> HubIdentity:
    """Return the identity with a serving certificate that fits the URL and has life left.

    A URL that was given is kept with it, so that a restored hub is found where it was.
    """
    names = serving_names(config.public_url(config.address()[1]))
    identity = present.with_leaf_for(names, clock.now())
    if identity is not present or config.url != load_url(store):
        await save_identity(store, identity, url=config.url)
    return identity


def _grace_left_s(config: Config, clock: Clock, restored: Restored | None) -> float:
    """Return how long after this start a restore still holds; a crash meanwhile ends nothing."""
    if restored is None:
        return 0.0
    since_s = (clock.now() - restored.at).total_seconds()
    return max(config.restore_grace - max(since_s, 0.0), 0.0)


def _broken(store: Store) -> str:
    return f"the store cannot be used now: {store.trouble}" if store.is_broken else ""


def _export(metrics: CollectorRegistry, engine: Engine) -> None:
    """Export what the parts know of themselves."""
    metrics.register(EngineMetrics(engine))
    ProcessCollector(namespace="hublet", registry=metrics)
    build = Gauge("hublet_build_info", "Always 1.", ["version", "kubernetes"], registry=metrics)
    build.labels(VERSION, ".".join(KUBERNETES_VERSION)).set(1)


def _version() -> Obj:
    major, minor = KUBERNETES_VERSION
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{major}.{minor}.0+hublet.{VERSION}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }
