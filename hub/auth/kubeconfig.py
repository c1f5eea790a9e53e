"""Kubeconfig files: the YAML that kubectl, clusteradm and agents are started with.

Owns rendering only; where a file goes and with which mode is the composition root's business.
"""

import base64
from dataclasses import dataclass, field

import yaml

from hub.auth.keypair import KeyPair
from hub.meta import Obj


@dataclass(frozen=True, slots=True)
class Access:
    """Where a hub is and how to trust it.

    `context_cluster` is the name that agents compare (`hub.auth.identity`).
    """

    server: str
    ca_pem: str
    context_cluster: str


@dataclass(frozen=True, slots=True)
class Credential:
    """Who the kubeconfig speaks as: exactly one of a client certificate and a bearer token."""

    user: str
    client: KeyPair | None = None
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.client is None) == (self.token is None):
            raise ValueError("a credential needs either a client certificate or a token")


def render_kubeconfig(access: Access, credential: Credential, *, namespace: str = "") -> str:
    """Return the YAML text; everything is inline, so that the file can be moved."""
    context: Obj = {"cluster": access.context_cluster, "user": credential.user}
    if namespace:
        context["namespace"] = namespace
    context_name = f"{credential.user}@{access.context_cluster}"
    cluster = {
        "server": access.server,
        "certificate-authority-data": _base64(access.ca_pem),
    }
    config: Obj = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": access.context_cluster, "cluster": cluster}],
        "users": [{"name": credential.user, "user": _user(credential)}],
        "contexts": [{"name": context_name, "context": context}],
        "current-context": context_name,
        "preferences": {},
    }
    return yaml.safe_dump(config, sort_keys=False, width=2**20)


def render_cluster_info(access: Access) -> str:
    """Return the kubeconfig that joining clusters read from kube-public/cluster-info: no users."""
    cluster = {
        "server": access.server,
        "certificate-authority-data": _base64(access.ca_pem),
    }
    config: Obj = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "", "cluster": cluster}],
    }
    return yaml.safe_dump(config, sort_keys=False, width=2**20)


def server_of(kubeconfig: str) -> str:
    """Return the URL in what `render_cluster_info` has made, "" where there is none."""
    try:
        return str(yaml.safe_load(kubeconfig)["clusters"][0]["cluster"]["server"])
    except (yaml.YAMLError, KeyError, IndexError, TypeError):
        return ""


def _user(credential: Credential) -> Obj:
    if credential.client is None:
        return {"token": credential.token}
    return {
        "client-certificate-data": _base64(credential.client.cert_pem),
        "client-key-data": _base64(credential.client.key_pem),
    }


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
