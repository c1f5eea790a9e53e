"""``hublet clusters``: the fleet at a glance."""

import asyncio
import datetime as dt
import json
from collections import Counter
from pathlib import Path

import click

from hub.fleet.conditions import AVAILABLE, JOINED, condition_status
from hub.fleet.registration import LEASE_NAME
from hub.meta import Obj
from hub.meta.timestamp import human_duration, parse_time
from tools.asking import asks_a_hub, run
from tools.caller import METADATA, Caller, RefusedError
from tools.joining import CLUSTERS
from tools.why import AGENTS

_WORKS = "/apis/work.open-cluster-management.io/v1/manifestworks"
_ADDONS = "/apis/addon.open-cluster-management.io/v1alpha1/managedclusteraddons"
_LEASES = "/apis/coordination.k8s.io/v1/leases"
_NAMED = 10
"""How many clusters are named that the hub does not know."""
_HEAD = ("NAME", "ACCEPTED", "JOINED", "AVAILABLE", "HEARD", "VERSION", "WORKS", "ADD-ONS")
_KEYS = ("name", "accepted", "joined", "available", "heard", "version", "works", "addons")


@click.command()
@asks_a_hub
@click.option("-l", "--selector", default="", help="Only clusters with these labels.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
def clusters(*, kubeconfig: Path | None, selector: str, output: str) -> None:
    """List the clusters: accepted, joined, available, when last heard of, works and add-ons."""
    rows = run(kubeconfig, lambda caller: read(caller, selector))
    if output == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    for line in lines(rows):
        click.echo(line)
    if names := run(kubeconfig, read_unknown):
        shown = ", ".join(names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        click.echo(f"{len(names)} come with a certificate and are not known: {shown}{more}")


async def read(caller: Caller, selector: str = "") -> list[Obj]:
    """Return one object a cluster, by name; times as RFC 3339, "" where nothing is known."""
    chosen = {"labelSelector": selector} if selector else {}
    found, leases, works, addons = await asyncio.gather(
        caller.items(CLUSTERS, **chosen),
        caller.items(_LEASES, fieldSelector=f"metadata.name={LEASE_NAME}"),
        caller.items(_WORKS, accept=METADATA),
        caller.items(_ADDONS, accept=METADATA),
    )
    heard = {o["metadata"]["namespace"]: (o.get("spec") or {}).get("renewTime") for o in leases}
    number_of_works, number_of_addons = _by_namespace(works), _by_namespace(addons)
    rows: list[Obj] = []
    for cluster in found:
        name = cluster["metadata"]["name"]
        joined = condition_status(cluster, JOINED)
        facts = (
            name,
            bool((cluster.get("spec") or {}).get("hubAcceptsClient")),
            joined,
            condition_status(cluster, AVAILABLE),
            # before an agent has joined, the Lease has the time of the hub that made it
            (heard.get(name) or "") if joined == "True" else "",
            ((cluster.get("status") or {}).get("version") or {}).get("kubernetes", ""),
            number_of_works[name],
            number_of_addons[name],
        )
        is_deleting = "deletionTimestamp" in cluster["metadata"]
        rows.append({**dict(zip(_KEYS, facts, strict=True)), "deleting": is_deleting})
    return rows


async def read_unknown(caller: Caller) -> list[str]:
    """Return the clusters whose agents come though the hub does not know them, if we may know."""
    try:
        found = await caller.find(f"{AGENTS}/")
    except RefusedError:
        return []
    return sorted(str(each["name"]) for each in (found or {}).get("unknown") or ())


def _by_namespace(items: list[Obj]) -> Counter[str]:
    return Counter(str(item["metadata"]["namespace"]) for item in items)


def _cells(row: Obj, now: dt.datetime) -> tuple[str, ...]:
    heard = str(row["heard"])
    ago = f"{human_duration(int((now - parse_time(heard)).total_seconds()))} ago" if heard else ""
    shown = {**row, "accepted": "yes" if row["accepted"] else "no", "heard": ago}
    if row.get("deleting"):
        shown["available"] = "Deleting"
    return tuple(str(shown[key]) or "-" for key in _KEYS)


def lines(rows: list[Obj]) -> list[str]:
    """Return what `read` has found as a table, with its head and a last line that counts."""
    now = dt.datetime.now(dt.UTC)
    table = [_HEAD, *(_cells(row, now) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(_HEAD))]
    available = sum(row["available"] == "True" and not row.get("deleting") for row in rows)
    return [
        *(
            "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in table
        ),
        f"{len(rows)} clusters, {available} available",
    ]
