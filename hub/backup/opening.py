"""Opening a hub's directory: what the start-up arbiter decides, done.

Owns the order. HEAD is read before the directory is touched; what the arbiter wants built from the
bucket is built before the store is opened for good; and only then does shipping begin. The caller
holds the directory (`snapshot.target.occupied`).
"""

import asyncio
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry

from hub.backup.pace import PacePolicy
from hub.backup.runner import Backup
from hub.backup.tend import TendPolicy
from hub.clock import Clock
from hub.config import Config
from hub.registry.keeping import load_identity
from hub.store import Corrupt, HubKey, Store, create_hub_key, has_store, load_hub_key
from snapshot.arbiter import Allowed, CatchUp, Decision, Refuse, Restore, Source, Takeover
from snapshot.chain import Chain
from snapshot.errors import StartRefused
from snapshot.local import LocalState, load_claim, load_state, save_state
from snapshot.moving import move_in_from
from snapshot.points import Latest, parse_target
from snapshot.remote import Remote, open_remote
from snapshot.restore import restore
from snapshot.start import arbitrate

_log = structlog.get_logger("hub.backup")


async def open_backup(
    config: Config,
    clock: Clock,
    *,
    metrics: CollectorRegistry,
    pace: PacePolicy | None = None,
    tend: TendPolicy | None = None,
) -> tuple[Store, Backup]:
    """Open the data directory as the arbiter decides, restored first if need be.

    Raises `StoreError` when the directory cannot be opened; `SnapshotError` when the arbiter
    refuses, or the bucket cannot be read.
    """
    is_new = not has_store(config.store_dir())
    if is_new and config.bootstrap_source == Source.VOLUME:
        _refuse_without_volume(config)
    if not config.object_store and not config.detach:
        _refuse_without_store(config.data_dir)
    remote = open_remote(config.object_store) if config.object_store else None
    if remote is not None and is_new and not config.hub_key_path().exists():
        await asyncio.to_thread(_refuse_without_key, remote, config)
    can_create = is_new and config.bootstrap_source != Source.SNAPSHOT
    hub_key = _hub_key(config, clock, can_create=can_create)
    if remote is None:
        store = Store.open(config.store_dir(), hub_key=hub_key, clock=clock)
        return store, Backup(config, clock, store, chain=None, metrics=metrics)
    chain = Chain(remote, hub_key, clock=clock)
    allowed = Allowed(Source(config.bootstrap_source), Takeover(config.bootstrap_takeover))
    store = await _opened(config, clock, chain, allowed, hub_key)
    backup = Backup(
        config,
        clock,
        store,
        chain=chain,
        metrics=metrics,
        allowed=allowed,
        pace=pace,
        tend=tend,
    )
    return store, backup


async def _opened(
    config: Config, clock: Clock, chain: Chain, allowed: Allowed, hub_key: HubKey
) -> Store:
    """Return the store that the hub runs on."""
    if not has_store(config.store_dir()):
        if config.bootstrap_snapshot_url:
            await asyncio.to_thread(_move_in, config, chain, allowed)
        await _prepare(config, clock, chain, allowed, key=hub_key, store=None, damage="")
        return Store.open(config.store_dir(), hub_key=hub_key, clock=clock)
    try:
        store = Store.open(config.store_dir(), hub_key=hub_key, clock=clock)
    except Corrupt as error:
        decision = await _prepare(
            config, clock, chain, allowed, key=hub_key, store=None, damage=str(error)
        )
        if not isinstance(decision, Restore | CatchUp):
            raise
        return Store.open(config.store_dir(), hub_key=hub_key, clock=clock)
    try:
        _tell_whose(config.data_dir, store)
        decision = await _prepare(
            config, clock, chain, allowed, key=hub_key, store=store, damage=""
        )
    except BaseException:
        await store.close()
        raise
    if isinstance(decision, Restore | CatchUp):
        return Store.open(config.store_dir(), hub_key=hub_key, clock=clock)
    return store


def _tell_whose(directory: Path, store: Store) -> None:
    """Write down which hub's a store is that never shipped: no prefix of another may replace it."""
    identity = load_identity(store)
    if identity is not None and load_state(directory) is None:
        save_state(directory, LocalState(dir_id=store.dir_id, hub_id=identity.hub_id))


async def _prepare(
    config: Config,
    clock: Clock,
    chain: Chain,
    allowed: Allowed,
    *,
    key: HubKey,
    store: Store | None,
    damage: str,
) -> Decision:
    """Ask the arbiter, and restore if it says so; a store that is given is closed for that."""
    decision, _ = await asyncio.to_thread(
        arbitrate,
        chain,
        config.data_dir,
        dir_id=store.dir_id if store else "",
        position=store.position if store else None,
        damage=damage,
        allowed=allowed,
        place=config.place,
    )
    if isinstance(decision, Refuse):
        raise StartRefused(decision.reason, op="start", hint=decision.hint)
    if isinstance(decision, Restore | CatchUp):
        _log.warning("restoring", reason=decision.reason)
        if store is not None:
            await store.close()
        is_first = store is None and not damage
        done = await asyncio.to_thread(
            restore,
            chain.remote,
            key,
            config.data_dir,
            clock=clock,
            to=parse_target(config.bootstrap_snapshot_to) if is_first else Latest(),
            is_held=True,
            is_own=isinstance(decision, Restore) and decision.is_own,
        )
        _log.info(
            "restored", rev=done.revision, objects=done.objects, seconds=done.seconds["total"]
        )
    return decision


def _move_in(config: Config, chain: Chain, allowed: Allowed) -> None:
    """Bring the chain of another prefix into this one, which is empty, and end it there."""
    if chain.read_head() is None:
        source = open_remote(config.bootstrap_snapshot_url)
        try:
            move_in_from(
                source,
                chain.remote,
                chain.key,
                clock=chain.clock,
                allowed=allowed,
                to=parse_target(config.bootstrap_snapshot_to),
            )
        finally:
            source.close()


def _hub_key(config: Config, clock: Clock, *, can_create: bool) -> HubKey:
    path = config.hub_key_path()
    if path.exists() or not can_create:
        return load_hub_key(path, outside=config.data_dir)
    return _new_hub_key(path, config.data_dir, clock)


def _new_hub_key(path: Path, directory: Path, clock: Clock) -> HubKey:
    path.parent.mkdir(parents=True, exist_ok=True)
    return create_hub_key(path, token=clock.token, outside=directory)


def _refuse_without_volume(config: Config) -> None:
    raise StartRefused(
        f"bootstrap source {config.bootstrap_source}, and the data directory {config.data_dir} "
        "holds no store",
        op="start",
        hint="mount the hub's volume; a new hub has --bootstrap-source Empty or Auto",
    )


def _refuse_without_store(directory: Path) -> None:
    """Refuse to run what has a prefix without looking at it: another hub may have it by now."""
    state, claim = load_state(directory), load_claim(directory)
    if claim is not None:
        what = f"the data directory was restored from {claim.object_store}"
    elif state is not None and state.epoch:
        what = f"the data directory has shipped up to revision {state.rev}"
    else:
        return
    raise StartRefused(
        f"{what}, and no object store is given",
        op="start",
        hint="give the same --object-store; or, to run it apart from its prefix for good, --detach "
        "(two hubs of one identity must never serve the same agents)",
    )


def _refuse_without_key(remote: Remote, config: Config) -> None:
    """Refuse to make a new key for a prefix that was written under another, HEAD there or not."""
    if next(iter(remote.list()), None) is None:
        return
    raise StartRefused(
        f"the data directory is empty, there is no key file {config.hub_key_path()}, and the "
        "prefix holds what a hub wrote",
        op="start",
        hint="give the hub its key with --key-file and run: hub-restore restore --from URL "
        "--into DIR --key-file KEY; or give a new hub a prefix of its own",
    )
