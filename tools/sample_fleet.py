"""Made-up objects of a typical fleet, as a hub stores them.

Owns the samples' shape: what a hub holds for a managed cluster, written as the hub writes it.
Names, digests and times are drawn from a seeded generator, so that a run gives the same samples.
`tools.train_dictionary` trains the store's dictionary on them.
"""

import base64
import json
import random
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]  # type: ignore[explicit-any]  # untyped Kubernetes objects

_REGIONS = ("us-east-1", "us-west-2", "eu-west-1", "eu-central-1", "ap-southeast-1", "westeurope")
_VENDORS = ("OpenShift", "EKS", "AKS", "GKE", "Other")
_ADDONS = (
    "application-manager",
    "cert-policy-controller",
    "cluster-proxy",
    "config-policy-controller",
    "governance-policy-framework",
    "managed-serviceaccount",
    "observability-controller",
    "search-collector",
    "work-manager",
)
_APPS = ("frontend", "checkout", "inventory", "billing", "ingress", "logging", "metrics", "cache")
_OCM = "open-cluster-management.io"
_RBAC = "rbac.authorization.k8s.io"


class Fleet:
    """Draws the objects of one cluster after another.

    `blobs` scales certificates, tokens and digests: 1 for real sizes; near 0 to train on, so that
    the dictionary is not spent on noise that never comes again.
    """

    def __init__(self, seed: int, *, blobs: float) -> None:
        self._random = random.Random(seed)  # noqa: S311  samples, nothing secret
        self._blobs = blobs

    def cluster(self, number: int) -> Iterator[Json]:
        """Yield every object a hub holds for one cluster."""
        name = self._random.choice(("cluster", "prod", "edge-store", "dev")) + f"-{number:04d}"
        yield self.managed_cluster(name)
        yield self.namespace(name)
        yield from self.rbac(name)
        yield self.lease(name, "managed-cluster-lease")
        yield self.signing_request(name)
        for addon in self._random.sample(_ADDONS, 4):
            yield self.addon(name, addon)
            yield self.lease(name, addon)
        for app in self._random.sample(_APPS, 5):
            yield self.work(name, app)
        yield self.secret(name)
        yield self.config_map(name)
        yield self.service_account(name)
        yield self.event(name)

    def managed_cluster(self, name: str) -> Json:
        """Return a ManagedCluster as a joined agent and the hub leave it."""
        vendor, region = self._random.choice(_VENDORS), self._random.choice(_REGIONS)
        labels = {
            f"cluster.{_OCM}/clusterset": self._random.choice(
                ("default", "global", "prod", "edge")
            ),
            f"feature.{_OCM}/addon-work-manager": "available",
            "cloud": self._random.choice(("Amazon", "Azure", "Google", "BareMetal")),
            "clusterID": self._uid(),
            "env": self._random.choice(("prod", "staging", "dev")),
            "name": name,
            "region": region,
            "vendor": vendor,
        }
        claims = {
            "id.k8s.io": self._uid(),
            f"kubeversion.{_OCM}": "v1.34.2",
            f"platform.{_OCM}": "AWS",
            f"product.{_OCM}": vendor,
            f"region.{_OCM}": region,
            "version.openshift.io": f"4.{self._random.randint(14, 21)}.{self._random.randrange(9)}",
        }
        return {
            "apiVersion": f"cluster.{_OCM}/v1",
            "kind": "ManagedCluster",
            "metadata": self._meta(
                name,
                labels=labels,
                annotations={f"agent.{_OCM}/cluster-name": name},
                finalizers=[f"cluster.{_OCM}/api-resource-cleanup"],
                managers=("registration", "registration-controller"),
            ),
            "spec": {
                "hubAcceptsClient": True,
                "leaseDurationSeconds": 60,
                "managedClusterClientConfigs": [
                    {"url": f"https://api.{name}.example.com:6443", "caBundle": self._base64(900)}
                ],
                "taints": [],
            },
            "status": {
                "allocatable": self._capacity(),
                "capacity": self._capacity(),
                "clusterClaims": [{"name": key, "value": value} for key, value in claims.items()],
                "conditions": [
                    self._condition(
                        "HubAcceptedManagedCluster",
                        "HubClusterAdminAccepted",
                        "Accepted by hub cluster admin",
                    ),
                    self._condition(
                        "ManagedClusterJoined", "ManagedClusterJoined", "Managed cluster joined"
                    ),
                    self._condition(
                        "ManagedClusterConditionAvailable",
                        "ManagedClusterAvailable",
                        "Managed cluster is available",
                    ),
                    self._condition(
                        "ManagedClusterConditionClockSynced",
                        "ManagedClusterClockSynced",
                        "The clock of the managed cluster is synced with the hub.",
                    ),
                ],
                "version": {"kubernetes": "v1.34.2"},
            },
        }

    def namespace(self, cluster: str) -> Json:
        """Return a cluster's namespace."""
        labels = {"kubernetes.io/metadata.name": cluster, f"cluster.{_OCM}/managedCluster": cluster}
        return {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": self._meta(cluster, labels=labels, managers=("registration-controller",)),
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }

    def rbac(self, cluster: str) -> Iterator[Json]:
        """Yield the roles and bindings that let a cluster's agents work."""
        group = f"system:{_OCM}:{cluster}"
        for part, api, resource in (
            ("registration", f"cluster.{_OCM}", "managedclusters"),
            ("work", f"work.{_OCM}", "manifestworks"),
        ):
            rules = [
                {
                    "apiGroups": [api],
                    "resources": [resource, f"{resource}/status"],
                    "resourceNames": [cluster],
                    "verbs": ["get", "list", "watch", "update", "patch"],
                },
                {
                    "apiGroups": ["coordination.k8s.io"],
                    "resources": ["leases"],
                    "verbs": ["get", "create", "update", "patch"],
                },
                {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
            ]
            name = f"{_OCM}:managedcluster:{cluster}:{part}"
            for kind, scope in (("ClusterRole", None), ("Role", cluster)):
                metadata = self._meta(name, namespace=scope, managers=("registration-controller",))
                yield {
                    "apiVersion": f"{_RBAC}/v1",
                    "kind": kind,
                    "metadata": metadata,
                    "rules": rules,
                }
                yield {
                    "apiVersion": f"{_RBAC}/v1",
                    "kind": f"{kind}Binding",
                    "metadata": self._meta(
                        name,
                        namespace=scope,
                        labels={f"cluster.{_OCM}/cluster-name": cluster},
                        managers=("registration-controller",),
                    ),
                    "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
                    "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group}],
                }

    def lease(self, cluster: str, name: str) -> Json:
        """Return a heartbeat Lease."""
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": self._meta(
                name,
                namespace=cluster,
                labels={f"cluster.{_OCM}/cluster-name": cluster},
                managers=("registration",),
            ),
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": 60,
                "renewTime": self._time().replace("Z", f".{self._random.randint(0, 999999):06d}Z"),
            },
        }

    def signing_request(self, cluster: str) -> Json:
        """Return a CertificateSigningRequest, approved and signed."""
        user = f"system:{_OCM}:{cluster}:agent-{self._random.randbytes(4).hex()}"
        return {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": self._meta(
                f"{cluster}-{self._random.randbytes(3).hex()}",
                labels={f"{_OCM}/cluster-name": cluster},
                generate=f"{cluster}-",
                managers=("registration",),
            ),
            "spec": {
                "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={self._uid()}"]},
                "groups": [
                    "system:serviceaccounts",
                    f"system:serviceaccounts:{_OCM.split('.', maxsplit=1)[0]}",
                    "system:authenticated",
                ],
                "request": self._pem("CERTIFICATE REQUEST", 450),
                "signerName": "kubernetes.io/kube-apiserver-client",
                "usages": ["digital signature", "key encipherment", "client auth"],
                "username": user,
            },
            "status": {
                "certificate": self._pem("CERTIFICATE", 700),
                "conditions": [
                    self._condition(
                        "Approved", "AutoApprovedByHubCSRApprovingController", "Auto approving CSR"
                    )
                ],
            },
        }

    def addon(self, cluster: str, name: str) -> Json:
        """Return a ManagedClusterAddOn with its registration and conditions."""
        return {
            "apiVersion": f"addon.{_OCM}/v1alpha1",
            "kind": "ManagedClusterAddOn",
            "metadata": self._meta(
                name,
                namespace=cluster,
                owners=[
                    {
                        "apiVersion": f"addon.{_OCM}/v1alpha1",
                        "blockOwnerDeletion": True,
                        "controller": True,
                        "kind": "ClusterManagementAddOn",
                        "name": name,
                        "uid": self._uid(),
                    }
                ],
                finalizers=[f"addon.{_OCM}/addon-pre-delete"],
                managers=("addon-manager", "registration"),
            ),
            "spec": {"installNamespace": f"{_OCM.split('.', maxsplit=1)[0]}-agent-addon"},
            "status": {
                "addOnMeta": {"displayName": name, "description": f"{name} for managed clusters"},
                "conditions": [
                    self._condition("Progressing", "Completed", "completed with no errors."),
                    self._condition(
                        "Configured", "ConfigurationsConfigured", "Configurations configured"
                    ),
                    self._condition(
                        "RegistrationApplied",
                        "SetPermissionApplied",
                        "Registration of the addon agent is configured",
                    ),
                    self._condition("ManifestApplied", "AddonManifestApplied", "manifests applied"),
                    self._condition(
                        "Available",
                        "ManagedClusterAddOnLeaseUpdated",
                        f"{name} add-on is available.",
                    ),
                ],
                "healthCheck": {"mode": "Lease"},
                "namespace": f"{_OCM.split('.', maxsplit=1)[0]}-agent-addon",
                "registrations": [
                    {
                        "signerName": "kubernetes.io/kube-apiserver-client",
                        "subject": {
                            "groups": [
                                f"system:{_OCM}:cluster:{cluster}:addon:{name}",
                                f"system:{_OCM}:addon:{name}",
                                "system:authenticated",
                            ],
                            "user": f"system:{_OCM}:cluster:{cluster}:addon:{name}:agent:{name}",
                        },
                    }
                ],
                "supportedConfigs": [
                    {"group": f"addon.{_OCM}", "resource": "addondeploymentconfigs"}
                ],
            },
        }

    def work(self, cluster: str, app: str) -> Json:
        """Return a ManifestWork: a namespace, a deployment, a config map and a service, applied."""
        manifests = list(self._workload(app))
        return {
            "apiVersion": f"work.{_OCM}/v1",
            "kind": "ManifestWork",
            "metadata": self._meta(
                f"{app}-{self._random.randint(1, 9)}",
                namespace=cluster,
                labels={"app": app, "tier": self._random.choice(("gold", "silver", "bronze"))},
                finalizers=[f"cluster.{_OCM}/manifest-work-cleanup"],
                managers=("work", "kubectl-client-side-apply"),
            ),
            "spec": {
                "deleteOption": {"propagationPolicy": "Foreground"},
                "workload": {"manifests": manifests},
            },
            "status": {
                "conditions": [
                    self._condition(
                        "Applied", "AppliedManifestWorkComplete", "Apply manifest work complete"
                    ),
                    self._condition(
                        "Available", "ResourcesAvailable", "All resources are available"
                    ),
                ],
                "resourceStatus": {
                    "manifests": [
                        self._manifest_status(number, each) for number, each in enumerate(manifests)
                    ]
                },
            },
        }

    def secret(self, cluster: str) -> Json:
        """Return a Secret (stored sealed; compressed first)."""
        return {
            "apiVersion": "v1",
            "data": {
                "token": self._base64(600),
                "ca.crt": self._pem("CERTIFICATE", 700),
                "namespace": base64.b64encode(cluster.encode()).decode(),
            },
            "kind": "Secret",
            "metadata": self._meta(f"{cluster}-import", namespace=cluster, managers=("hub",)),
            "type": "Opaque",
        }

    def config_map(self, cluster: str) -> Json:
        """Return the ConfigMap every namespace has."""
        return {
            "apiVersion": "v1",
            "data": {"ca.crt": self._pem("CERTIFICATE", 700)},
            "kind": "ConfigMap",
            "metadata": self._meta("kube-root-ca.crt", namespace=cluster, managers=("hub",)),
        }

    def service_account(self, cluster: str) -> Json:
        """Return a ServiceAccount."""
        metadata = self._meta(f"{cluster}-bootstrap-sa", namespace=cluster, managers=("hub",))
        return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}

    def event(self, cluster: str) -> Json:
        """Return an Event of an agent."""
        reason = self._random.choice(("ManagedClusterJoined", "CSRCreated", "AvailableUpdated"))
        return {
            "apiVersion": "v1",
            "count": 1,
            "eventTime": None,
            "firstTimestamp": self._time(),
            "involvedObject": {
                "apiVersion": f"cluster.{_OCM}/v1",
                "kind": "ManagedCluster",
                "name": cluster,
                "namespace": cluster,
                "uid": self._uid(),
            },
            "kind": "Event",
            "lastTimestamp": self._time(),
            "message": f"{reason}: managed cluster {cluster}",
            "metadata": self._meta(
                f"{cluster}.{self._random.randbytes(8).hex()}", namespace=cluster
            ),
            "reason": reason,
            "reportingComponent": "registration",
            "reportingInstance": "registration",
            "source": {"component": "registration"},
            "type": "Normal",
        }

    def _workload(self, app: str) -> Iterator[Json]:
        labels = {"app": app, "app.kubernetes.io/name": app, "app.kubernetes.io/managed-by": "hub"}
        metadata = {"labels": labels, "name": app, "namespace": app}
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": labels, "name": app}}
        container = {
            "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "REGION", "value": "eu"}],
            "image": f"registry.example.com/{app}@sha256:{self._random.randbytes(32).hex()}",
            "imagePullPolicy": "IfNotPresent",
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
            "name": app,
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 10},
            "resources": {
                "limits": {"cpu": "500m", "memory": "512Mi"},
                "requests": {"cpu": "100m", "memory": "128Mi"},
            },
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
                "runAsNonRoot": True,
            },
            "volumeMounts": [{"mountPath": "/etc/config", "name": "config"}],
        }
        yield {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": self._random.randint(1, 5),
                "selector": {"matchLabels": {"app": app}},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "containers": [container],
                        "serviceAccountName": app,
                        "volumes": [{"configMap": {"name": app}, "name": "config"}],
                    },
                },
            },
        }
        yield {
            "apiVersion": "v1",
            "data": {"config.yaml": f"name: {app}\nreplicas: 2\nlogLevel: info\n"},
            "kind": "ConfigMap",
            "metadata": metadata,
        }
        yield {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {
                "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http"}],
                "selector": {"app": app},
                "type": "ClusterIP",
            },
        }

    def _manifest_status(self, ordinal: int, manifest: Json) -> Json:
        group, _, version = str(manifest["apiVersion"]).rpartition("/")
        kind = str(manifest["kind"])
        return {
            "conditions": [
                self._condition("Applied", "AppliedManifestComplete", "Apply manifest complete"),
                self._condition("Available", "ResourceAvailable", "Resource is available"),
                self._condition("StatusFeedbackSynced", "NoStatusFeedbackSynced", ""),
            ],
            "resourceMeta": {
                "group": group,
                "kind": kind,
                "name": manifest["metadata"]["name"],
                "namespace": manifest["metadata"].get("namespace", ""),
                "ordinal": ordinal,
                "resource": kind.lower() + "s",
                "version": version,
            },
            "statusFeedback": {},
        }

    def _meta(
        self,
        name: str,
        *,
        namespace: str | None = None,
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        finalizers: list[str] | None = None,
        owners: list[Json] | None = None,
        generate: str | None = None,
        managers: tuple[str, ...] = (),
    ) -> Json:
        optional: Json = {
            "annotations": annotations,
            "finalizers": finalizers,
            "generateName": generate,
            "labels": labels,
            "managedFields": [self._managed(each) for each in managers] or None,
            "namespace": namespace,
            "ownerReferences": owners,
        }
        fixed: Json = {
            "creationTimestamp": self._time(),
            "generation": self._random.randint(1, 3),
            "name": name,
            "resourceVersion": str(self._random.randint(1000, 9_999_999)),
            "uid": self._uid(),
        }
        present = {key: value for key, value in optional.items() if value is not None}
        return dict(sorted((fixed | present).items()))

    def _managed(self, manager: str) -> Json:
        fields: Json = {
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:finalizers": {".": {}}},
            "f:spec": {},
            "f:status": {
                "f:conditions": {".": {}, 'k:{"type":"Available"}': {".": {}, "f:type": {}}}
            },
        }
        return {
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
            "manager": manager,
            "operation": "Update",
            "time": self._time(),
        }

    def _condition(self, kind: str, reason: str, message: str) -> Json:
        return {
            "lastTransitionTime": self._time(),
            "message": message,
            "observedGeneration": 1,
            "reason": reason,
            "status": "True",
            "type": kind,
        }

    def _capacity(self) -> dict[str, str]:
        return {
            "cpu": str(self._random.choice((8, 16, 48, 96))),
            "ephemeral-storage": f"{self._random.randint(100, 900)}Gi",
            "hugepages-1Gi": "0",
            "hugepages-2Mi": "0",
            "memory": f"{self._random.randint(32, 512)}Gi",
            "pods": "750",
        }

    def _time(self) -> str:
        draw = self._random.randint
        clock = f"{draw(0, 23):02d}:{draw(0, 59):02d}:{draw(0, 59):02d}"
        return f"{draw(2025, 2027)}-{draw(1, 12):02d}-{draw(1, 28):02d}T{clock}Z"

    def _uid(self) -> str:
        digits = self._random.randbytes(16).hex()
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    def _base64(self, size: int) -> str:
        return base64.b64encode(self._random.randbytes(int(size * self._blobs))).decode()

    def _pem(self, kind: str, size: int) -> str:
        body = self._base64(size)
        lines = [body[at : at + 64] for at in range(0, len(body), 64)]
        text = "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])
        return base64.b64encode(text.encode()).decode()


def samples(*, clusters: int, seed: int, blobs: float = 1.0) -> list[bytes]:
    """Return the documents of `clusters` clusters as the store would be given them."""
    fleet = Fleet(seed, blobs=blobs)
    return [
        json.dumps(each, separators=(",", ":")).encode()
        for number in range(clusters)
        for each in fleet.cluster(number)
    ]
