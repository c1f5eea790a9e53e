"""Paths, bodies and other identities for the server's contract tests."""

import base64
import random
import socket
import ssl
from urllib.parse import urlsplit

import yaml

from hub.http.client import Client
from hub.http.tls import client_context
from hub.meta import Obj
from tests.hubs import Answer, Api, InProcess

CLUSTER_GROUP = "cluster.open-cluster-management.io"
CLUSTERS = f"/apis/{CLUSTER_GROUP}/v1/managedclusters"
SETS = f"/apis/{CLUSTER_GROUP}/v1beta2/managedclustersets"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
PROTOBUF = "application/vnd.kubernetes.protobuf"
ROOT_CA = "kube-root-ca.crt"
"""The ConfigMap that every namespace has; it sorts behind the one-letter names up to k."""

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def config_maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def named(name: str, **rest: object) -> Obj:
    return {"metadata": {"name": name}, **rest}


def cluster_access(hub: InProcess) -> tuple[str, bytes]:
    """The server's address and the CA to trust."""
    cluster = yaml.safe_load(hub.kubeconfig.read_text())["clusters"][0]["cluster"]
    return cluster["server"], base64.b64decode(cluster["certificate-authority-data"])


def anonymous(hub: InProcess, *, token: str = "") -> Api:
    """A client without a certificate."""
    server, ca = cluster_access(hub)
    return Api.connect(server, ca=ca, token=token)


def admin_context(hub: InProcess, *, http2: bool) -> ssl.SSLContext:
    """The administrator's certificate."""
    user = yaml.safe_load(hub.kubeconfig.read_text())["users"][0]["user"]
    cert = base64.b64decode(user["client-certificate-data"])
    key = base64.b64decode(user["client-key-data"])
    return client_context(cluster_access(hub)[1], cert, key, http2=http2)


def over_http1(hub: InProcess) -> Api:
    """The administrator over HTTP/1.1."""
    parts = urlsplit(hub.url)
    assert parts.hostname
    assert parts.port
    context = admin_context(hub, http2=False)
    return Api(Client(parts.hostname, parts.port, context, http2=False))


def dial(hub: InProcess, tls: ssl.SSLContext | None = None) -> ssl.SSLSocket:
    """Return a socket to the hub that speaks HTTP/1.1, the administrator's without `tls`."""
    parts = urlsplit(hub.url)
    assert parts.hostname
    sock = socket.create_connection((parts.hostname, parts.port or 443), timeout=20)
    tls = tls or admin_context(hub, http2=False)
    return tls.wrap_socket(sock, server_hostname=parts.hostname)


def noise(seed: str, size: int) -> str:
    """Return text that hardly compresses."""
    return random.Random(seed).randbytes(size // 2).hex()


async def raw_get(hub: InProcess, path: str, *headers: tuple[str, str]) -> Answer:
    """GET with headers of one's own."""
    answer = await hub.admin._client.request("GET", path, list(headers), timeout_s=20)
    return Answer(answer.status, answer.headers, answer.body)


async def token_for(hub: InProcess, namespace: str, account: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await hub.admin.create(path, named(account))
    made = await hub.admin.create(f"{path}/{account}/token", {"spec": {"expirationSeconds": 600}})
    token = made["status"]["token"]
    assert isinstance(token, str)
    return token


def untyped(obj: Obj) -> Obj:
    """An object of a built-in kind as an item of a list shows it."""
    return {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}
