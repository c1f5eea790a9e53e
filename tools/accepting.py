"""``hublet accept`` and ``hublet detach``: who belongs to the fleet.

Acceptance approves what the cluster's agent waits for and sets ``hubAcceptsClient``, as
``clusteradm accept`` does. Whoever has a bootstrap token chooses the label of a request and what it
asks for: the hub's own rule (`hub.fleet.approval`) says which request is an agent's of the cluster.
"""

import asyncio
import base64
from datetime import UTC, datetime
from pathlib import Path

import click

from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.auth.certificates import csr_key_sha256, parse_csr
from hub.auth.errors import CsrError
from hub.fleet.approval import agent_subject_problem
from hub.fleet.conditions import find_condition
from hub.fleet.detachment import DELETING, FORCE
from hub.meta import Obj
from hub.meta.timestamp import format_time
from hub.registry.requests import ADDON_NAME_LABEL, CLIENT_SIGNER, has_condition
from tools.asking import EXIT_REFUSED, asks_a_hub, run
from tools.caller import MERGE, Caller, RefusedError
from tools.duration import duration
from tools.failures import fail
from tools.joining import CLUSTERS, remove_account

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_BOOTSTRAP = ("system:serviceaccount:", "system:bootstrap:")
_LOOK_EVERY_S = 0.2
_UNKNOWN = "there is no such ManagedCluster"


@click.command()
@click.argument("names", nargs=-1, required=True)
@asks_a_hub
@click.option(
    "--all-agents", is_flag=True, help="Approve every agent that asks in a cluster's name."
)
def accept(*, names: tuple[str, ...], kubeconfig: Path | None, all_agents: bool) -> None:
    """Approve the agents of clusters NAMES, and accept them."""

    async def work(caller: Caller) -> list[str]:
        return [
            f"{name}: {problem}"
            for name in names
            if (problem := await _accept(caller, name, all_agents=all_agents))
        ]

    problems = run(kubeconfig, work)
    for problem in problems[:-1]:
        click.echo(f"error: {problem}", err=True)
    if problems:
        fail(EXIT_REFUSED, problems[-1])


@click.command()
@click.argument("names", nargs=-1, required=True)
@asks_a_hub
@click.option(
    "--force",
    is_flag=True,
    help="Give up what only the cluster's agent could remove: it stays on the cluster.",
)
@click.option(
    "--timeout",
    type=duration,
    metavar="DURATION",
    default="60s",
    show_default=True,
    help="How long to wait for each cluster.",
)
def detach(*, names: tuple[str, ...], kubeconfig: Path | None, force: bool, timeout: float) -> None:
    """Delete clusters NAMES from the hub, with their works and add-ons, and wait for it."""

    async def work(caller: Caller) -> list[str]:
        return [each for name in names for each in await _detach(caller, name, force, timeout)]

    problems = run(kubeconfig, work)
    for problem in problems[:-1]:
        click.echo(f"error: {problem}", err=True)
    if problems:
        hint = (
            "what an agent has not removed yet holds its cluster; --force gives it up, for a "
            "cluster that is gone for good"
        )
        if all(problem.endswith(_UNKNOWN) for problem in problems):
            hint = "see hublet clusters"
        fail(EXIT_REFUSED, problems[-1], hint)


async def _accept(caller: Caller, name: str, *, all_agents: bool) -> str:
    """Accept one cluster; return why not, "" when it is done."""
    cluster = await caller.find(f"{CLUSTERS}/{name}")
    if cluster is None:
        return _UNKNOWN
    waiting: list[Obj] = []
    for request in await _undecided(caller, name):
        if problem := _problem(request, name):
            click.echo(f"{name}: skipped {request['metadata']['name']}: {problem}", err=True)
        else:
            waiting.append(request)
    if len({_agent_of(request) for request in waiting}) > 1 and not all_agents:
        asked = (f"{r['metadata']['name']} of {common_name_of(r)}" for r in waiting)
        return (
            f"several agents, or several keys of one, ask in its name: {', '.join(sorted(asked))}; "
            "deny those that are not it (kubectl certificate deny), or approve all with "
            "--all-agents"
        )
    for request in waiting:
        await _approve(caller, request)
        click.echo(f"{name}: approved {request['metadata']['name']} of {common_name_of(request)}")
    if (cluster.get("spec") or {}).get("hubAcceptsClient"):
        click.echo(f"{name}: is accepted already")
        return ""
    body = {"spec": {"hubAcceptsClient": True}}
    await caller.call("PATCH", f"{CLUSTERS}/{name}", body=body, media_type=MERGE)
    click.echo(f"{name}: accepted")
    return ""


async def _undecided(caller: Caller, cluster: str) -> list[Obj]:
    selector = f"{CLUSTER_NAME_LABEL}={cluster},!{ADDON_NAME_LABEL}"
    found = await caller.items(REQUESTS, labelSelector=selector)
    return [r for r in found if not (has_condition(r, "Approved") or has_condition(r, "Denied"))]


def _problem(request: Obj, cluster: str) -> str:
    """Return why a request is not the first one of an agent of the cluster, "" when it is."""
    spec = request["spec"]
    requester, signer = str(spec.get("username") or ""), spec.get("signerName")
    if not requester.startswith(_BOOTSTRAP):
        return f"it was made by {requester!r}, which is no bootstrap account"
    if signer != CLIENT_SIGNER:
        return f"signer {signer!r} must be {CLIENT_SIGNER}"
    try:
        info = parse_csr(_pem_of(request))
    except (CsrError, ValueError) as error:
        return f"it cannot be read: {error}"
    return agent_subject_problem(info, cluster)


def _agent_of(request: Obj) -> tuple[str, str]:
    """Return what tells agents apart: anybody can copy a name, and nobody a key."""
    return common_name_of(request), csr_key_sha256(_pem_of(request))


def common_name_of(request: Obj) -> str:
    """Return whom a certificate request is for."""
    try:
        return parse_csr(_pem_of(request)).common_name
    except (CsrError, ValueError):
        return "nobody (the request cannot be read)"


def _pem_of(request: Obj) -> bytes:
    return base64.b64decode(request["spec"]["request"])


async def _approve(caller: Caller, request: Obj) -> None:
    status = dict(request.get("status") or {})
    approval = {
        "type": "Approved",
        "status": "True",
        "reason": "HubletAccept",
        "message": "This CSR was approved by hublet accept.",
        "lastUpdateTime": format_time(datetime.now(UTC)),
    }
    status["conditions"] = [*(status.get("conditions") or []), approval]
    path = f"{REQUESTS}/{request['metadata']['name']}/approval"
    await caller.call("PUT", path, body={**request, "status": status})


async def _detach(caller: Caller, name: str, force: bool, timeout_s: float) -> list[str]:
    """Delete one cluster; return what still holds it when the time is over."""
    path = f"{CLUSTERS}/{name}"
    if await caller.find(path) is None:
        return [f"{name}: {_UNKNOWN}"]
    if force:
        mark = {"metadata": {"annotations": {FORCE: "true"}}}
        await caller.call("PATCH", path, body=mark, media_type=MERGE)
    await caller.call("DELETE", path)
    left: Obj | None = None
    for _ in range(max(int(timeout_s / _LOOK_EVERY_S), 1)):
        left = await caller.find(path)
        if left is None:
            click.echo(f"{name}: detached")
            if await remove_account(caller, name):
                click.echo(f"{name}: its bootstrap account is removed, tokens of it are dead")
            if force:
                await _tell_abandoned(caller, name)
            return []
        await asyncio.sleep(_LOOK_EVERY_S)
    return [f"{name}: {_holding(left or {})}"]


def _holding(cluster: Obj) -> str:
    found = find_condition(cluster, DELETING)
    return str(found["message"]) if found else "is still being deleted"


async def _tell_abandoned(caller: Caller, name: str) -> None:
    """Print what the hub says that it has given up."""
    selector = f"involvedObject.name={name},reason=ForcedDetach"
    try:
        events = await caller.items("/api/v1/namespaces/default/events", fieldSelector=selector)
    except RefusedError:
        return
    for event in events:
        click.echo(f"{name}: {event['message']}")
