"""``hublet get token`` and ``hublet join-command``: how a cluster comes to this hub.

The shared bootstrap account registers any cluster. A bootstrap account of a cluster's own, which
``join-command NAME`` makes, registers that one alone, also when the cluster is made anew.
"""

import asyncio
import json
import re
from datetime import timedelta
from pathlib import Path

import click
import yaml

from hub.auth.bootstrap_policy import BOOTSTRAP_ACCOUNT, BOOTSTRAP_NAMESPACE
from hub.auth.bootstrap_token import NAMESPACE, new_bootstrap_token
from hub.auth.kubeconfig import Access, Credential, render_kubeconfig
from hub.clock import SystemClock
from hub.fleet.conditions import ACCEPTED, condition_status
from hub.meta import Obj
from tools.asking import EXIT_CONFIG, EXIT_REFUSED, asks_a_hub, run
from tools.caller import MERGE, Caller
from tools.duration import duration
from tools.failures import fail
from tools.kubeconfig import Kubeconfig

CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
_ROLE = "open-cluster-management:bootstrap:"
_WAIT_S, _LOOK_EVERY_S = 15.0, 0.1
_LEAST_LIFETIME_S = 600


def lifetime(text: str) -> float:
    """Return the seconds of a token's life, given as Go writes a time span."""
    seconds = duration(text)
    if seconds < _LEAST_LIFETIME_S:
        raise click.BadParameter(f"{text} is less than the ten minutes that a token lives at least")
    return seconds


@click.group("get")
def get() -> None:
    """Get what clusters need to join."""


@get.command("token")
@asks_a_hub
@click.option(
    "--expiration",
    type=lifetime,
    metavar="DURATION",
    default="1h",
    show_default=True,
    help="How long it is good.",
)
@click.option(
    "--bootstrap-token",
    is_flag=True,
    help="Make a bootstrap token (id.secret), which clusteradm finds, in place of the account's.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def get_token(
    *, kubeconfig: Path | None, expiration: float, bootstrap_token: bool, output: str
) -> None:
    """Make a token that registers any cluster which has not joined, and say how to use it."""

    async def make(caller: Caller) -> tuple[str, Kubeconfig]:
        if bootstrap_token:
            return await _make_bootstrap_token(caller, expiration), caller.identity
        place = f"/api/v1/namespaces/{BOOTSTRAP_NAMESPACE}/serviceaccounts/{BOOTSTRAP_ACCOUNT}"
        return await _make_token(caller, place, expiration), caller.identity

    token, identity = run(kubeconfig, make)
    _warn_of_loopback(identity)
    server = identity.server
    if output == "json":
        click.echo(json.dumps({"hub-token": token, "hub-apiserver": server}))
        return
    click.echo(f"token={token}")
    click.echo("on the cluster that joins, run:")
    click.echo(f"  {_join(token, server, '<cluster_name>')}")


@click.command("join-command")
@click.argument("name")
@asks_a_hub
@click.option(
    "--expiration",
    type=lifetime,
    metavar="DURATION",
    default="24h",
    show_default=True,
    help="How long it is good.",
)
@click.option("--no-accept", is_flag=True, help="Leave it to somebody to accept the cluster.")
@click.option("-o", "--output", type=click.Choice(["text", "helm", "kubeconfig"]), default="text")
def join_command(
    *, name: str, kubeconfig: Path | None, expiration: float, no_accept: bool, output: str
) -> None:
    """Make a bootstrap account of the cluster NAME's own, and print how it joins.

    "text" is a call of clusteradm, "helm" are values for the chart of the klusterlet, "kubeconfig"
    is the bootstrap kubeconfig alone.
    """
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name):
        raise click.BadParameter(f"{name!r} must be a name as namespaces have", param_hint="NAME")

    async def make(caller: Caller) -> tuple[str, Kubeconfig]:
        if output != "text" and not caller.identity.ca_pem:
            fail(EXIT_CONFIG, "the kubeconfig has no certificate-authority: agents need the hub's")
        await _announce(caller, name, is_accepted=not no_accept)
        place = await _ensure_account(caller, name)
        return await _make_token(caller, place, expiration), caller.identity

    token, identity = run(kubeconfig, make)
    _warn_of_loopback(identity)
    access = Access(identity.server, identity.ca_pem.decode(), identity.cluster_name)
    bootstrap = render_kubeconfig(access, Credential("bootstrap", token=token))
    if output == "kubeconfig":
        click.echo(bootstrap, nl=False)
    elif output == "helm":
        click.echo(_values(name, bootstrap), nl=False)
    else:
        click.echo(_join(token, access.server, name))


def _warn_of_loopback(identity: Kubeconfig) -> None:
    if identity.is_loopback:
        click.echo(
            "warning: the hub's URL is a loopback address; other machines cannot reach it: start "
            "the hub with --url",
            err=True,
        )


def _join(token: str, server: str, name: str) -> str:
    return (
        f"clusteradm join --hub-token {token} --hub-apiserver {server} --wait --cluster-name {name}"
    )


def _values(name: str, bootstrap: str) -> str:
    """Return values of OCM's klusterlet chart."""
    values = {"klusterlet": {"clusterName": name}, "bootstrapHubKubeConfig": bootstrap}
    return yaml.dump(values, sort_keys=False, default_flow_style=False, Dumper=_Literal)


class _Literal(yaml.SafeDumper):
    """Writes text of several lines as it stands."""


def _literal(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Literal.add_representer(str, _literal)


async def _make_token(caller: Caller, account: str, expiration_s: float) -> str:
    asked = {"spec": {"expirationSeconds": int(expiration_s)}}
    made = await caller.call("POST", f"{account}/token", body=asked)
    return str(made["status"]["token"])


async def _make_bootstrap_token(caller: Caller, expiration_s: float) -> str:
    """Make the Secret that ``clusteradm get token --use-bootstrap-token`` looks for."""
    clock = SystemClock()
    token = new_bootstrap_token(clock.token)
    expiration = clock.now() + timedelta(seconds=expiration_s)
    secret = token.as_secret(expiration=expiration, labels={"app": "cluster-manager"})
    await caller.call("POST", f"/api/v1/namespaces/{NAMESPACE}/secrets", body=secret)
    return str(token)


async def _announce(caller: Caller, name: str, *, is_accepted: bool) -> None:
    """Make the ManagedCluster, accept it, and wait until its namespace is there."""
    await caller.ensure(CLUSTERS, {"metadata": {"name": name}})
    if is_accepted:
        await caller.call(
            "PATCH",
            f"{CLUSTERS}/{name}",
            body={"spec": {"hubAcceptsClient": True}},
            media_type=MERGE,
        )
    else:
        await caller.ensure("/api/v1/namespaces", {"metadata": {"name": name}})
        return
    for _ in range(int(_WAIT_S / _LOOK_EVERY_S)):
        found = await caller.call("GET", f"{CLUSTERS}/{name}")
        if condition_status(found, ACCEPTED) == "True":
            return
        await asyncio.sleep(_LOOK_EVERY_S)
    fail(EXIT_REFUSED, f"the hub has not prepared cluster {name} within {_WAIT_S:.0f} s")


async def _ensure_account(caller: Caller, name: str) -> str:
    """Make the cluster's own bootstrap account with its rights; return its path."""
    account = f"{name}-bootstrap-sa"
    accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
    await caller.ensure(accounts, {"metadata": {"name": account}})
    await caller.ensure(f"{RBAC}/clusterroles", _role(name))
    await caller.ensure(f"{RBAC}/clusterrolebindings", _binding(name, account))
    return f"{accounts}/{account}"


async def remove_account(caller: Caller, name: str) -> bool:
    """Remove what `_ensure_account` has made, so that its tokens are dead; whether any was there.

    The namespace of a cluster outlives it, and the account with it: nothing else removes it. Owner
    references would take it from a cluster that is made anew under its name, too.
    """
    account = f"/api/v1/namespaces/{name}/serviceaccounts/{name}-bootstrap-sa"
    rights = [f"{RBAC}/{kind}/{_ROLE}{name}" for kind in ("clusterrolebindings", "clusterroles")]
    found = [path for path in (account, *rights) if await caller.find(path) is not None]
    for path in found:
        await caller.call("DELETE", path)
    return bool(found)


def _role(cluster: str) -> Obj:
    """Return what the agent of one cluster may do before it has a certificate."""
    return {
        "metadata": {"name": f"{_ROLE}{cluster}"},
        "rules": [
            _rule("certificates.k8s.io", "certificatesigningrequests", "create get list watch"),
            _rule(
                "cluster.open-cluster-management.io",
                "managedclusters",
                "get list watch update",
                cluster,
            ),
            _rule("", "configmaps", "get", "cluster-info"),
        ],
    }


def _rule(group: str, resource: str, verbs: str, name: str = "") -> Obj:
    rule: Obj = {"apiGroups": [group], "resources": [resource], "verbs": verbs.split()}
    return {**rule, "resourceNames": [name]} if name else rule


def _binding(cluster: str, account: str) -> Obj:
    return {
        "metadata": {"name": f"{_ROLE}{cluster}"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": f"{_ROLE}{cluster}",
        },
        "subjects": [{"kind": "ServiceAccount", "namespace": cluster, "name": account}],
    }
