"""An agent by hand: keys, certificate requests, and the identities it goes through."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hub.auth.subject import build_subject
from hub.meta import Obj
from tests.hubs import Api, InProcess, Watch
from tests.server.support import CLUSTERS, REQUESTS, anonymous, cluster_access, named

Condition: TypeAlias = Callable[[Obj], bool]
PREFIX = "system:open-cluster-management:"
MANAGED = f"{PREFIX}managed-clusters"
SIGNER = "kubernetes.io/kube-apiserver-client"
CLUSTER_LABEL = "open-cluster-management.io/cluster-name"
BOOTSTRAP_USER = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap"


@dataclass(frozen=True, slots=True)
class Wish:
    """A certificate request: by default what the agent ``a1`` of a cluster asks for."""

    cluster: str
    common_name: str = ""
    organizations: Sequence[str] | None = None
    dns_names: Sequence[str] = ()
    labels: Obj | None = None
    signer: str = SIGNER
    usages: Sequence[str] = ("digital signature", "key encipherment", "client auth")
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def as_obj(self) -> Obj:
        """The CertificateSigningRequest."""
        common_name = self.common_name or f"{PREFIX}{self.cluster}:a1"
        organizations = self.organizations
        if organizations is None:
            organizations = (f"{PREFIX}{self.cluster}", MANAGED)
        subject = build_subject(common_name, organizations)
        builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
        if self.dns_names:
            alternatives = x509.SubjectAlternativeName([x509.DNSName(d) for d in self.dns_names])
            builder = builder.add_extension(alternatives, critical=False)
        pem = builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        labels = {CLUSTER_LABEL: self.cluster} if self.labels is None else self.labels
        return {
            "metadata": {"generateName": f"{self.cluster}-", "labels": labels},
            "spec": {
                "request": base64.b64encode(pem).decode(),
                "signerName": self.signer,
                "usages": list(self.usages),
            },
        }

    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


async def bootstrap(hub: InProcess) -> Api:
    """The identity with which clusters register."""
    path = "/api/v1/namespaces/open-cluster-management/serviceaccounts/agent-registration-bootstrap"
    made = await hub.admin.create(f"{path}/token", {"spec": {"expirationSeconds": 3600}})
    return anonymous(hub, token=made["status"]["token"])


async def until(hub: InProcess, path: str, name: str, is_there: Condition) -> Obj:
    """Watch one object until a condition holds; return it."""
    query = f"{path}?watch=1&fieldSelector=metadata.name%3D{name}"
    async with hub.admin.watch(query) as watch:
        return await until_event(watch, is_there)


async def until_event(watch: Watch, is_there: Condition) -> Obj:
    while True:
        event = await watch.next()
        if event["type"] != "BOOKMARK" and is_there(event):
            found = event["object"]
            assert isinstance(found, dict)
            return found


def has_condition(type_: str, status: str = "True") -> Condition:
    def check(event: Obj) -> bool:
        conditions = (event["object"].get("status") or {}).get("conditions") or []
        return any((c["type"], c.get("status")) == (type_, status) for c in conditions)

    return check


def has_certificate(event: Obj) -> bool:
    return bool((event["object"].get("status") or {}).get("certificate"))


def is_deleted(event: Obj) -> bool:
    return bool(event["type"] == "DELETED")


async def certified(hub: InProcess, requester: Api, wish: Wish) -> Api:
    """Ask for a certificate, wait for it, and return the identity it gives."""
    made = await requester.create(REQUESTS, wish.as_obj())
    signed = await until(hub, REQUESTS, made["metadata"]["name"], has_certificate)
    server, ca = cluster_access(hub)
    certificate = base64.b64decode(signed["status"]["certificate"])
    return Api.connect(server, ca=ca, cert=certificate, key=wish.key_pem())


async def accept(hub: InProcess, cluster: str) -> Obj:
    """Accept a cluster and wait until the hub has prepared it."""
    await hub.admin.patch(f"{CLUSTERS}/{cluster}", {"spec": {"hubAcceptsClient": True}})
    return await until(hub, CLUSTERS, cluster, has_condition("HubAcceptedManagedCluster"))


async def joined(hub: InProcess, cluster: str) -> Api:
    """Register, accept and certify a cluster; return its agent's identity."""
    first = await bootstrap(hub)
    try:
        await first.create(CLUSTERS, named(cluster))
        agent = await certified(hub, first, Wish(cluster))
    finally:
        await first.close()
    await accept(hub, cluster)
    return agent


def manifest(name: str = "a", **rest: object) -> Obj:
    """Return a ConfigMap, as a work carries it."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **rest}


def work(name: str, *manifests: Obj, finalizers: tuple[str, ...] = ()) -> Obj:
    """Return a ManifestWork, of one ConfigMap when nothing is given."""
    workload = {"workload": {"manifests": list(manifests or [manifest()])}}
    return {"metadata": {"name": name, "finalizers": list(finalizers)}, "spec": workload}
