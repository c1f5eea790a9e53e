"""Clean-up in two phases: what retention lets go is named in a plan, and deleted hours later.

Owns the plan objects, ``trash/<position>-<token>.json``, and the order. A plan is written, then
HEAD stops naming what is in it (`Chain.commit_horizon`); once the plan is older than the minimum
age by the bucket's clock its objects are deleted, each only if nothing names it (again), and each
looked for afterwards, since there are stores that say "deleted" and keep the object. So a restore
that is under way finds its segments for hours after they were let go.
"""

import datetime as dt
import functools
import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import msgspec

from snapshot.catalog import Catalog, load_catalog
from snapshot.errors import IntegrityError, ObjectMissing, RemoteDenied
from snapshot.head import Head
from snapshot.layout import PROBES, TRASH
from snapshot.pins import list_pins
from snapshot.remote import Entry, Remote
from snapshot.retention import Retention, Verdict, judge
from snapshot.seal import HubKey

_CLOCK = f"{PROBES}clock-"
_DELETERS = 8
"""Deletions under way at once: a busy hub lets thousands of deltas go every hour."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be deleted, and when that was decided (by the bucket's clock)."""

    format: int = 1
    hub_id: str
    time: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a sweep did; `failed`: objects that are still there, or may not be deleted."""

    deleted: int = 0
    failed: int = 0
    plans: int = 0
    """Plans that are done."""


@dataclass(frozen=True, slots=True)
class Look:
    """The bucket as it was looked at: all that lies there, and the plans among it."""

    catalog: Catalog
    entries: Mapping[str, Entry]
    plans: Mapping[str, Plan]
    now: dt.datetime

    @property
    def planned(self) -> frozenset[str]:
        """What is to go already."""
        return frozenset(name for plan in self.plans.values() for name in plan.names)

    @property
    def in_use(self) -> frozenset[str]:
        """What HEAD leads to."""
        return self.catalog.names()


def look(remote: Remote, head: Head, key: HubKey) -> Look:
    """List the bucket and read its plans and manifests.

    Raises `IntegrityError` for a plan that does not parse or a manifest that is lost.
    """
    catalog = load_catalog(remote, head, key)
    entries = {entry.name: entry for entry in remote.list()}
    plans = {name: _read_plan(remote, name) for name in entries if name.startswith(TRASH)}
    return Look(catalog, entries, plans, bucket_now(remote))


def propose(remote: Remote, at: Look, retention: Retention) -> Verdict:
    """Say what may go."""
    return judge(
        at.catalog,
        at.entries,
        list_pins(remote),
        now=at.now,
        retention=retention,
        planned=at.planned,
    )


def write_plan(remote: Remote, at: Look, verdict: Verdict) -> str:
    """Write the plan of a verdict and return its name; then `Chain.commit_horizon`.

    A plan that names what HEAD names still was followed by no such commit. This one takes its
    place, since the age at which a plan is carried out counts from when HEAD lets go.
    """
    idle = [name for name, plan in at.plans.items() if not at.in_use.isdisjoint(plan.names)]
    names = {*verdict.names, *verdict.orphans}
    names.update(*(set(at.plans[name].names) - at.in_use for name in idle))
    plan = Plan(
        hub_id=at.catalog.head.hub_id,
        time=at.now.isoformat(timespec="seconds").replace("+00:00", "Z"),
        names=tuple(sorted(names)),
    )
    written = f"{TRASH}{at.catalog.head.last_seq}-{secrets.token_hex(6)}.json"
    remote.put_if_absent(written, msgspec.json.encode(plan))
    for name in idle:
        _delete(remote, name)
    return written


def sweep(remote: Remote, at: Look, retention: Retention) -> Cleaned:
    """Delete what was planned long enough ago and is still named by nothing.

    `at` must have been looked at with the HEAD that is in force. Raises `RemoteError`.
    """
    done = Cleaned()
    in_use = at.in_use
    with ThreadPoolExecutor(_DELETERS) as pool:
        for name, plan in at.plans.items():
            if at.now - at.entries[name].modified < retention.min_age:
                continue
            victims = [each for each in plan.names if each in at.entries and each not in in_use]
            are_gone = list(pool.map(functools.partial(_delete, remote), victims))
            deleted, failed = are_gone.count(True), are_gone.count(False)
            is_done = not failed and _delete(remote, name)
            done = Cleaned(done.deleted + deleted, done.failed + failed, done.plans + is_done)
    return done


def bucket_now(remote: Remote) -> dt.datetime:
    """Return the bucket's time: that of an object written now."""
    name = f"{_CLOCK}{secrets.token_hex(6)}"
    remote.put_if_absent(name, b"now")
    try:
        return remote.head(name).modified
    finally:
        _delete(remote, name)


def _delete(remote: Remote, name: str) -> bool:
    """Delete an object; whether it is gone."""
    try:
        remote.delete(name)
    except RemoteDenied:  # an object under a lock, or a bucket that keeps what it has
        return False
    try:
        remote.head(name)
    except ObjectMissing:
        return True
    return False


def _read_plan(remote: Remote, name: str) -> Plan:
    try:
        return msgspec.json.decode(remote.get(name).data, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise IntegrityError(
            f"does not parse: {error}",
            op="clean up",
            object=name,
            hint="delete the plan: what it named is found again",
        ) from error
