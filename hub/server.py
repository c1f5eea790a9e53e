"""The composition root: builds one hub from a configuration and runs it until it is told to stop.

Owns the order of a start: key, store, arbiter and epoch, identity, default objects, rights, Leases,
and only then the listener; and of a stop: listener, controllers, last segment, store. It decides
nothing else.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry, Gauge

import hub.http.transport
from hub.auth.authenticate import Authenticator
from hub.auth.authority import serving_names
from hub.auth.identity import HubIdentity, create_identity
from hub.auth.kubeconfig import Access, Credential, render_kubeconfig
from hub.auth.rbac import Authorizer
from hub.auth.tokens import ServiceAccountTokens
from hub.backup.runner import Backup, open_backup
from hub.clock import Clock
from hub.config import Config
from hub.controllers.namespace import NamespaceController
from hub.controllers.signer import Signer
from hub.fleet.admission import install_admission
from hub.fleet.approval import Approver
from hub.fleet.kinds import FLEET
from hub.fleet.leases import LeaseJudge
from hub.fleet.registration import Registration
from hub.fleet.sets import Sets
from hub.http.app import Api, Services
from hub.http.health import Health
from hub.http.info import RequestInfo
from hub.http.tls import server_context
from hub.http.watching import Watching
from hub.meta import Obj
from hub.registry.bootstrap import ensure_objects
from hub.registry.builtin import BUILTIN
from hub.registry.catalog import Catalog
from hub.registry.engine import Engine
from hub.registry.event import EVENT
from hub.registry.expiry import EventExpiry
from hub.registry.keeping import load_identity, save_identity
from hub.registry.lookups import Lookups, follow_rbac
from hub.registry.watch import Alarms
from hub.store import HubKey, Store, create_hub_key, load_hub_key

_log = structlog.get_logger("hub.server")
VERSION = "0.1.0"
KUBERNETES_VERSION = ("1", "35")
_STOP_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Started:
    """What a started hub tells whoever started it."""

    url: str
    kubeconfig: Path
    start_kind: str
    seconds: float


@dataclass(frozen=True, slots=True)
class _Parts:
    engine: Engine
    authorizer: Authorizer
    controllers: tuple[tuple[str, Callable[[], Coroutine[None, None, None]]], ...]
    judge: LeaseJudge
    alarms: Alarms


async def run_hub(
    config: Config,
    clock: Clock,
    *,
    stop: asyncio.Event,
    on_started: Callable[[Started], None],
) -> None:
    """Run a hub until `stop` is set.

    :raises StoreError: the directory cannot be opened
    :raises SnapshotError: the arbiter refuses, the bucket cannot be read, or another hub has taken
        the epoch (Fenced)
    """
    began = clock.monotonic_s()
    hub_key = _hub_key(config, clock)
    metrics = CollectorRegistry()
    store, backup = await open_backup(config, clock, hub_key=hub_key, metrics=metrics)
    try:
        await _run(
            config,
            clock,
            store,
            backup,
            metrics=metrics,
            stop=stop,
            on_started=on_started,
            began=began,
        )
    finally:
        await store.close()


def _hub_key(config: Config, clock: Clock) -> HubKey:
    path = config.hub_key_path()
    if path.exists() or (config.data_dir.is_dir() and any(config.data_dir.iterdir())):
        return load_hub_key(path, outside=config.data_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    return create_hub_key(path, token=clock.token, outside=config.data_dir)


async def _run(
    config: Config,
    clock: Clock,
    store: Store,
    backup: Backup,
    *,
    metrics: CollectorRegistry,
    stop: asyncio.Event,
    on_started: Callable[[Started], None],
    began: float,
) -> None:
    catalog = Catalog((*BUILTIN, *FLEET))
    engine = Engine(store, catalog, clock)
    identity = load_identity(store) or await _new_identity(config, clock, store)
    await backup.take_over(identity.hub_id)
    backup.follow(catalog)
    identity = await _fit_leaf(config, clock, store, identity)
    parts = _build(config, clock, engine, catalog, identity)
    services = _services(
        config, clock, parts, catalog, identity, backup, metrics=metrics, stop=stop
    )
    await _prepare(config, engine, parts, identity)
    tls = server_context(
        identity.leaf.cert_pem.encode(),
        identity.leaf.key_pem.encode(),
        identity.client_ca.cert_pem.encode(),
    )
    host, port = config.address()
    server = await hub.http.transport.serve(
        Api(services).handle, host=host, port=port, tls=tls, http2_codec=config.http2, clock=clock
    )
    url = config.public_url(server.port)
    kubeconfig = _write_kubeconfig(config, clock, identity, url)
    on_started(Started(url, kubeconfig, backup.start_kind, clock.monotonic_s() - began))
    _log.info("hub_started", url=url, start=backup.start_kind, revision=store.revision)
    try:
        await _until_stopped(parts, backup, stop, clock)
    finally:
        engine.watches.close_all()
        await server.close(_STOP_GRACE_S)
        await backup.finish()


async def _new_identity(config: Config, clock: Clock, store: Store) -> HubIdentity:
    """Make the identity of a new hub and keep it."""
    url = config.public_url(config.address()[1])
    identity = create_identity(url, clock, names=serving_names(url))
    await save_identity(store, identity)
    return identity


async def _fit_leaf(
    config: Config, clock: Clock, store: Store, present: HubIdentity
) -> HubIdentity:
    """Return the identity with a serving certificate that fits the URL and has life left."""
    names = serving_names(config.public_url(config.address()[1]))
    identity = present.with_leaf_for(names, clock.now())
    if identity is not present:
        await save_identity(store, identity)
    return identity


def _build(
    config: Config, clock: Clock, engine: Engine, catalog: Catalog, identity: HubIdentity
) -> _Parts:
    authorizer = Authorizer()
    follow_rbac(engine, authorizer)
    install_admission(engine, authorizer)
    judge = LeaseJudge(engine, clock)
    controllers = (
        ("namespace", NamespaceController(engine, catalog).run),
        ("approval", Approver(engine, authorizer, bootstrap_users=config.auto_approve_users).run),
        ("signer", Signer(engine, identity.client_ca, clock).run),
        ("registration", Registration(engine, clock, auto_accept=config.auto_accept).run),
        ("leases", judge.run),
        ("sets", Sets(engine, clock).run),
        ("events", EventExpiry(engine, EVENT, clock).run),
    )
    return _Parts(engine, authorizer, controllers, judge, Alarms())


def _services(
    config: Config,
    clock: Clock,
    parts: _Parts,
    catalog: Catalog,
    identity: HubIdentity,
    backup: Backup,
    *,
    metrics: CollectorRegistry,
    stop: asyncio.Event,
) -> Services:
    lookups = Lookups(parts.engine)
    tokens = ServiceAccountTokens(
        identity.signing_key_pem, identity.issuer, find_uid=lookups.find_uid, new_id=clock.uid
    )

    def refusal(_info: RequestInfo) -> str:
        return "the hub is stopping" if stop.is_set() else backup.refusal()

    health = Health(
        live={"ping": lambda: ""},
        ready={"serving": lambda: refusal(RequestInfo("GET", "/", {}, "get"))},
        metrics=metrics,
    )
    watches = Gauge("hublet_watch_count", "Open watches.", registry=metrics)
    watches.set_function(lambda: len(parts.engine.watches))
    revision = Gauge("hublet_store_revision", "Highest visible revision.", registry=metrics)
    revision.set_function(lambda: parts.engine.store.revision)
    return Services(
        engine=parts.engine,
        catalog=catalog,
        authenticator=Authenticator(tokens, find_secret=lookups.find_secret),
        authorizer=parts.authorizer,
        tokens=tokens,
        watching=Watching(parts.engine, parts.alarms),
        health=health,
        clock=clock,
        version=_version(),
        url=config.public_url(config.address()[1]),
        refusal=refusal,
    )


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


async def _prepare(config: Config, engine: Engine, parts: _Parts, identity: HubIdentity) -> None:
    """Bring the state into the shape that clients may see, before anyone can ask."""
    _, port = config.address()
    access = Access(config.public_url(port), identity.serving_ca.cert_pem, identity.context_cluster)
    # a kubeconfig needs a user; a bootstrap token takes the place of this one
    anonymous = render_kubeconfig(access, Credential("anonymous", token="none"))  # noqa: S106  no secret
    await ensure_objects(engine, anonymous_kubeconfig=anonymous)
    await parts.judge.refresh_all()


def _write_kubeconfig(config: Config, clock: Clock, identity: HubIdentity, url: str) -> Path:
    access = Access(url, identity.serving_ca.cert_pem, identity.context_cluster)
    text = render_kubeconfig(access, Credential("admin", client=identity.mint_admin(clock.now())))
    path = config.data_dir / "admin.kubeconfig"
    fresh = path.with_suffix(".new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
    return path


async def _until_stopped(parts: _Parts, backup: Backup, stop: asyncio.Event, clock: Clock) -> None:
    """Run everything that runs beside serving; the first failure ends them all."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(), name=name) for name, run in parts.controllers]
        tasks.append(group.create_task(backup.run(), name="backup"))
        tasks.append(group.create_task(_tick(parts.alarms, clock), name="alarms"))
        await stop.wait()
        for task in tasks:
            task.cancel()


async def _tick(alarms: Alarms, clock: Clock) -> None:
    while True:
        await asyncio.sleep(1.0)
        alarms.run(clock.monotonic_s())
