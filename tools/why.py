"""``hublet why NAME``: why a cluster is not available, from everything the hub knows of it.

Reads, and judges from the most certain cause to the least; what was looked at is printed too, so
that a person can judge again.
"""

import asyncio
import base64
import binascii
import datetime as dt
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click

from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.auth.kubeconfig import server_of
from hub.fleet.conditions import AVAILABLE, CLOCK_SYNCED, find_condition
from hub.fleet.registration import LEASE_NAME
from hub.meta import Obj
from hub.meta.timestamp import human_duration, parse_time
from hub.registry.requests import ADDON_NAME_LABEL, has_condition
from tools.accepting import REQUESTS, common_name_of
from tools.asking import EXIT_REFUSED, asks_a_hub, run
from tools.caller import METADATA, Caller
from tools.failures import fail
from tools.joining import CLUSTERS

AGENTS = "/hublet/v1/agents"
_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{{}}/leases/{LEASE_NAME}"
_CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
_HOLDING = {
    "add-on": "/apis/addon.open-cluster-management.io/v1alpha1/namespaces/{}/managedclusteraddons",
    "work": "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks",
}
_NAMED = 10
"""How many works and add-ons are named that hold a cluster."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the hub knows of one cluster."""

    name: str
    cluster: Obj | None
    lease: Obj | None
    requests: list[Obj]
    seen: Obj
    server: str
    ca_sha256: str
    context_cluster: str
    held_by: tuple[str, ...] = ()
    """Works and add-ons that are left, as ``work NAME``; looked for when it is being deleted."""
    now: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))

    def condition(self, type_: str) -> Obj:
        """Return a condition of the cluster, {} when there is none."""
        return find_condition(self.cluster or {}, type_) or {}

    @property
    def deleted(self) -> str:
        """Return since when the cluster is being deleted, "" when it is not."""
        return str(((self.cluster or {}).get("metadata") or {}).get("deletionTimestamp") or "")

    @property
    def last(self) -> Obj:
        """Return the latest request of the cluster's agents, {} when none was seen."""
        return max(self.seen["last"].values(), key=lambda each: str(each["time"]), default={})


@click.command()
@click.argument("name")
@asks_a_hub
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def why(*, name: str, kubeconfig: Path | None, output: str) -> None:
    """Say why the cluster NAME is not available, and what to do."""
    facts = run(kubeconfig, lambda caller: read(caller, name))
    causes = list(judge(facts))
    if output == "json":
        known = {"causes": causes, "seen": facts.seen, "compared": _compared(facts)}
        click.echo(json.dumps({"cluster": name, **known}, indent=2))
    else:
        for line in [*causes, "", *_told(facts)]:
            click.echo(line)
    if facts.cluster is None:
        fail(EXIT_REFUSED, f"there is no ManagedCluster {name}")


async def read(caller: Caller, name: str) -> Facts:
    """Collect what there is to know."""
    cluster, lease, seen, requests, info = await asyncio.gather(
        caller.find(f"{CLUSTERS}/{name}"),
        caller.find(_LEASE.format(name)),
        caller.call("GET", f"{AGENTS}/{name}"),
        caller.items(REQUESTS, labelSelector=f"{CLUSTER_NAME_LABEL}={name}"),
        caller.find(_CLUSTER_INFO),
    )
    identity = caller.identity
    is_deleting = "deletionTimestamp" in ((cluster or {}).get("metadata") or {})
    return Facts(
        name=name,
        cluster=cluster,
        lease=lease,
        requests=requests,
        seen=seen,
        server=server_of(_kubeconfig_in(info)) or identity.server,
        ca_sha256=_fingerprint(identity.ca_pem),
        context_cluster=identity.cluster_name,
        held_by=await _holding(caller, name) if is_deleting else (),
    )


async def _holding(caller: Caller, name: str) -> tuple[str, ...]:
    """Return what is left in the namespace of a cluster that goes, in the order it goes."""
    found = [
        f"{what} {each['metadata']['name']}"
        for what, path in _HOLDING.items()
        for each in await caller.items(path.format(name), accept=METADATA)
    ]
    return tuple(found)


def judge(facts: Facts) -> Iterator[str]:
    """Yield the causes, the most certain first; one line when all is well."""
    waiting = [r for r in facts.requests if not (r.get("status") or {}).get("conditions")]
    refused = [
        r for r in facts.requests if has_condition(r, "Denied") or has_condition(r, "Failed")
    ]
    if facts.cluster is None and facts.seen.get("unknownSince"):
        yield (
            f"the hub does not know it, and since {_ago(facts, facts.seen['unknownSince'])} its "
            "agent comes with a valid certificate of this hub: it was deleted, or the hub was "
            "restored to a state from before it joined. Make the ManagedCluster again, with "
            "spec.hubAcceptsClient: true, and the agent goes on without registering"
        )
    elif facts.cluster is None:
        yield "the hub does not know it: its agent has never registered, or it was deleted"
    elif facts.deleted:
        yield _going(facts)
    elif not (facts.cluster.get("spec") or {}).get("hubAcceptsClient"):
        yield f"it is not accepted: hublet accept {facts.name}"
    way = f"hublet accept {facts.name}"
    if facts.cluster is None:  # `hublet accept` accepts ManagedClusters
        way = (
            "it was detached or never made here, and its agent goes on asking: make it with "
            f"hublet join-command {facts.name}, or remove the klusterlet from the cluster"
        )
    for request in waiting:
        yield (
            f"certificate request {request['metadata']['name']} of {common_name_of(request)} waits "
            f"for a person since {_ago(facts, request['metadata']['creationTimestamp'])}: {way}"
        )
    for request in refused:
        last = request["status"]["conditions"][-1]
        yield (
            f"certificate request {request['metadata']['name']} was refused: {last['type']}, "
            f"{last.get('reason', '')} {last.get('message', '')}".rstrip()
        )
    if facts.cluster is not None and not facts.deleted:
        yield from _after_a_restore(facts)
        yield from _of_a_known_one(facts)


def _after_a_restore(facts: Facts) -> Iterator[str]:
    """Yield what the agent has and a restored hub lacks."""
    missing = [str(each["name"]) for each in facts.seen.get("unknownObjects") or ()]
    shown = ", ".join(missing[-_NAMED:])
    if facts.seen.get("isHeld"):
        yield (
            "the hub was restored to an older state than its agent has seen: its works are not "
            "listed to it until the restore grace period is over, and then it removes within an "
            "hour what it applied for works that the hub lacks. Make them again before, restore a "
            "later state, or start the hub with another --restore-grace"
        )
    elif facts.seen.get("isAhead"):
        yield (
            "the hub was restored to an older state than its agent had seen: what it applied for "
            "works that the hub lacks goes within an hour, unless they are made again"
        )
    if missing:
        yield f"its agent reports on what the hub does not have: {shown}"


def _going(facts: Facts) -> str:
    """Return what holds a cluster that is being deleted, and the way out."""
    shown = ", ".join(facts.held_by[:_NAMED])
    more = f" and {len(facts.held_by) - _NAMED} more" if len(facts.held_by) > _NAMED else ""
    return (
        f"it is being deleted since {_ago(facts, facts.deleted)}, "
        + (f"held by {shown}{more}" if shown else "and nothing is left in its namespace")
        + ": wait for its agent to remove what it had applied, or, when the cluster is gone for "
        f"good, hublet detach {facts.name} --force"
    )


def _of_a_known_one(facts: Facts) -> Iterator[str]:
    available, last = facts.condition(AVAILABLE), facts.last
    ends = last.get("certificateEnds")
    if ends and parse_time(str(ends)) < facts.now:
        yield (
            f"its certificate has ended {_ago(facts, ends)} ago: the agent registers again by "
            "itself, if its bootstrap token still lives"
        )
    if facts.condition(CLOCK_SYNCED).get("status") == "False":
        yield f"its clock is off by {_skew(facts)}: the agent reports no status until it is right"
    if available.get("status") == "True":
        yield "it is available"
    elif not available and not last and (issued := _issued(facts)):
        yield f"{issued}, and the agent has not used it yet"
    elif not available and not last and facts.lease is not None:
        yield (
            "no agent of it has come yet: see on the cluster that the klusterlet runs, with the "
            f"bootstrap kubeconfig of: hublet join-command {facts.name}"
        )
    elif available.get("status") == "False":
        yield f"its agent reports: {available.get('message', '')}"
    elif not last:
        yield (
            "nothing was heard of its agent since the hub started "
            f"{_ago(facts, facts.seen['since'])} ago: see on the cluster that the klusterlet runs "
            "and reaches the address below"
        )
    elif facts.seen["refused"] and facts.seen["refused"][-1] == last:
        yield f"the hub refuses it: {last['request']} was answered with {last['code']}"
    else:
        yield f"its agent was last heard of {_ago(facts, last['time'])} ago: {last['request']}"


def _issued(facts: Facts) -> str:
    """Return which certificate was issued to the agent last, while this hub ran; "" if none."""
    times = {
        str(request["metadata"]["name"]): str(condition["lastUpdateTime"])
        for request in facts.requests
        if (request.get("status") or {}).get("certificate")
        and ADDON_NAME_LABEL not in (request["metadata"].get("labels") or {})
        for condition in request["status"]["conditions"]
        if condition["type"] == "Approved" and condition.get("lastUpdateTime")
    }
    if not times:
        return ""
    name = max(times, key=lambda each: parse_time(times[each]))
    if parse_time(times[name]) < parse_time(str(facts.seen["since"])):
        return ""  # it may have been used before the hub was started again
    return f"its certificate {name} was issued {_ago(facts, times[name])} ago"


def _renewed(facts: Facts) -> str:
    """Return when the Lease was renewed; the one that a hub makes has the time it was made."""
    lease = facts.lease or {}
    renewed = (lease.get("spec") or {}).get("renewTime")
    if not renewed:
        return "none"
    made = (lease.get("metadata") or {}).get("creationTimestamp")
    if made and abs((parse_time(renewed) - parse_time(made)).total_seconds()) < 1:
        return f"made by the hub {_ago(facts, renewed)} ago, never renewed"
    return f"renewed {_ago(facts, renewed)} ago"


def _told(facts: Facts) -> Iterator[str]:
    """Yield what was looked at."""
    yield f"lease      {_renewed(facts)}"
    available = facts.condition(AVAILABLE)
    since = available.get("lastTransitionTime")
    state = available.get("status", "not reported yet")
    yield f"available  {state}{f' for {_ago(facts, since)}' if since else ''}"
    for program, request in sorted(facts.seen["last"].items()):
        ends = request.get("certificateEnds")
        until = f", certificate of {request['agent']} until {ends}" if ends else ""
        yield (
            f"last seen  {program}: {request['request']} {request['code']}, "
            f"{_ago(facts, request['time'])} ago{until}"
        )
    for request in facts.seen["refused"]:
        ago = _ago(facts, request["time"])
        yield f"refused    {request['request']} {request['code']}, {ago} ago"
    yield "an agent registers anew when its bootstrap kubeconfig differs from the one in use in:"
    for key, value in _compared(facts).items():
        yield f"  {key:<27} {value}"


def _compared(facts: Facts) -> dict[str, str]:
    """Return the five fields that an agent compares, as this hub has them."""
    return {
        "server": facts.server,
        "proxy-url": "(none; as the agent's network has it)",
        "certificate-authority": "(a path on the cluster; inline data is used)",
        "certificate-authority-data": f"SHA-256 {facts.ca_sha256}",
        "context's cluster": facts.context_cluster,
    }


def _ago(facts: Facts, time: object) -> str:
    seconds = int((facts.now - parse_time(str(time))).total_seconds())
    return human_duration(max(seconds, 0))


def _skew(facts: Facts) -> str:
    lease = ((facts.lease or {}).get("spec") or {}).get("renewTime")
    last = facts.last.get("time")
    if not lease or not last:
        return "more than five lease durations"
    return human_duration(int(abs((parse_time(lease) - parse_time(last)).total_seconds())))


def _kubeconfig_in(cluster_info: Obj | None) -> str:
    return str(((cluster_info or {}).get("data") or {}).get("kubeconfig") or "")


def _fingerprint(ca_pem: bytes) -> str:
    if not ca_pem:
        return "unknown: the kubeconfig has none"
    body = b"".join(line for line in ca_pem.splitlines() if not line.startswith(b"-----"))
    try:
        return hashlib.sha256(base64.b64decode(body)).hexdigest()
    except binascii.Error:
        return "unreadable"
