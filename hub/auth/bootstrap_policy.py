"""The RBAC objects a hub starts with, and those it makes for each managed cluster.

Owns data only: who applies them, and when they go again, is the composition root's and
`hub.fleet`'s. Names and rules are the contract with agents and tools (kube-apiserver's bootstrap
policy; OCM pkg/registration/hub/manifests/rbac), so they are spelled as there.
"""

from collections.abc import Sequence

from hub.auth.bootstrap_token import CLUSTER_BOOTSTRAPPERS
from hub.auth.user import AUTHENTICATED, MASTERS, SERVICE_ACCOUNTS, UNAUTHENTICATED
from hub.meta import Obj

API_GROUP = "rbac.authorization.k8s.io"
API_VERSION = f"{API_GROUP}/v1"

CLUSTER_NAME_LABEL = "open-cluster-management.io/cluster-name"
WORK_FINALIZER = "cluster.open-cluster-management.io/manifest-work-cleanup"
CLUSTER_ROLE_PREFIX = "open-cluster-management:managedcluster:"
REGISTRATION_ROLE = f"{CLUSTER_ROLE_PREFIX}registration"
WORK_ROLE = f"{CLUSTER_ROLE_PREFIX}work"
BOOTSTRAP_ROLE = "open-cluster-management:bootstrap"
BOOTSTRAP_NAMESPACE = "open-cluster-management"
BOOTSTRAP_ACCOUNT = "agent-registration-bootstrap"

_CLUSTER = "cluster.open-cluster-management.io"
_HEALTH = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_HEALTH)
_AGGREGATE_LABEL = f"{API_GROUP}/aggregate-to-"
_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_DEFAULT_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"
"""kube's mark for objects that get back, at each start, what they lack; "false" leaves them alone.
"""
_DEFAULT_ANNOTATIONS = {AUTO_UPDATE: "true"}


def default_objects() -> list[Obj]:
    """Return the cluster-wide roles and bindings of every hub, roles before their bindings."""
    health = {"verbs": ["get"], "nonResourceURLs": list(_HEALTH)}
    discovery = {"verbs": ["get"], "nonResourceURLs": list(_DISCOVERY)}
    issuer = {
        "verbs": ["get"],
        "nonResourceURLs": ["/.well-known/openid-configuration", "/openid/v1/jwks"],
    }
    return [
        *_default(
            "cluster-admin",
            [_rule("*", ["*"], ["*"]), {"verbs": ["*"], "nonResourceURLs": ["*"]}],
            [_group(MASTERS)],
        ),
        *_default("system:discovery", [discovery], [_group(AUTHENTICATED)]),
        *_default(
            "system:basic-user",
            [
                _rule(
                    "authorization.k8s.io",
                    ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
                    ["create"],
                ),
                _rule("authentication.k8s.io", ["selfsubjectreviews"], ["create"]),
            ],
            [_group(AUTHENTICATED)],
        ),
        *_default(
            "system:public-info-viewer",
            [health],
            [_group(AUTHENTICATED), _group(UNAUTHENTICATED)],
        ),
        *_default("system:service-account-issuer-discovery", [issuer], [_group(SERVICE_ACCOUNTS)]),
        *_default(BOOTSTRAP_ROLE, _bootstrap_rules(), _bootstrap_subjects()),
        *_namespace_roles(),
    ]


def shared_cluster_roles() -> list[Obj]:
    """Return the two ClusterRoles that every accepted cluster is bound to in its namespace."""
    registration = [
        _rule("coordination.k8s.io", ["leases"], ["get", "list", "watch", "update"]),
        _rule(
            "addon.open-cluster-management.io", ["managedclusteraddons"], ["get", "list", "watch"]
        ),
        _rule(
            "addon.open-cluster-management.io",
            ["managedclusteraddons/status"],
            ["patch", "update"],
        ),
        _rule("events.k8s.io", ["events"], ["create"]),
    ]
    work = [
        {
            **_rule("", ["events"], ["create", "patch", "update"]),
            "apiGroups": ["", "events.k8s.io"],
        },
        _rule(
            "work.open-cluster-management.io",
            ["manifestworks"],
            ["get", "list", "watch", "update", "patch"],
        ),
        _rule("work.open-cluster-management.io", ["manifestworks/status"], ["patch", "update"]),
    ]
    labels = {CLUSTER_NAME_LABEL: ""}
    return [
        _role(REGISTRATION_ROLE, registration, labels=labels),
        _role(WORK_ROLE, work, labels=labels),
    ]


def cluster_rbac(cluster: str, *, accepted: bool = True) -> list[Obj]:
    """Return the objects of one managed cluster: role, binding, and two bindings in its namespace.

    A cluster that was accepted once and is denied now keeps the first two, and may only look at its
    own ManagedCluster. A cluster that was never accepted has none of them.
    """
    name, labels = f"{CLUSTER_ROLE_PREFIX}{cluster}", {CLUSTER_NAME_LABEL: cluster}
    subjects = [
        _group(f"system:open-cluster-management:{cluster}"),
        # agents that AWS IAM vouches for come without the system: prefix
        _group(f"open-cluster-management:{cluster}"),
    ]
    rules = _accepted_rules(cluster) if accepted else _denied_rules(cluster)
    objects = [
        _role(name, rules, labels=labels),
        _binding(name, name, subjects, labels=labels),
    ]
    if not accepted:
        return objects
    registration = _binding(
        f"{name}:registration", REGISTRATION_ROLE, subjects, labels=labels, namespace=cluster
    )
    work = _binding(f"{name}:work", WORK_ROLE, subjects, labels=labels, namespace=cluster)
    # the work agent keeps its rights until its last ManifestWork is gone
    work["metadata"]["finalizers"] = [WORK_FINALIZER]
    return [*objects, registration, work]


def _namespace_roles() -> list[Obj]:
    """Return view, edit and admin, to be bound in namespaces, and the roles they gather.

    Other roles join by the same labels. What the hub does not serve is left out; Secrets are for
    editors, as everywhere, and ManifestWorks for admins, since a work runs with the rights of the
    work agent on the managed cluster.
    """
    addons, works = "addon.open-cluster-management.io", "work.open-cluster-management.io"
    view = [
        _rule("", ["configmaps", "events", "namespaces", "serviceaccounts"], _READ),
        _rule("coordination.k8s.io", ["leases"], _READ),
        _rule("events.k8s.io", ["events"], _READ),
        _rule(addons, ["managedclusteraddons", "managedclusteraddons/status"], _READ),
        _rule("hublet.io", ["hubs", "hubsnapshots"], _READ),
    ]
    edit = [
        _rule("", ["configmaps", "events", "secrets", "serviceaccounts"], _WRITE),
        _rule("", ["secrets"], _READ),
        _rule("", ["serviceaccounts"], ["impersonate"]),
        _rule("", ["serviceaccounts/token"], ["create"]),
        _rule("coordination.k8s.io", ["leases"], _WRITE),
        _rule("events.k8s.io", ["events"], _WRITE),
    ]
    admin = [
        _rule("authorization.k8s.io", ["localsubjectaccessreviews"], ["create"]),
        _rule(API_GROUP, ["roles", "rolebindings"], [*_READ, *_WRITE]),
        _rule(addons, ["managedclusteraddons"], _WRITE),
        _rule(works, ["manifestworks"], [*_READ, *_WRITE]),
        _rule(works, ["manifestworks/status"], _READ),
    ]
    objects: list[Obj] = []
    for name, rules, above in (
        ("admin", admin, ""),
        ("edit", edit, "admin"),
        ("view", view, "edit"),
    ):
        own = {f"{_AGGREGATE_LABEL}{name}": "true"}
        labels = {f"{_AGGREGATE_LABEL}{above}": "true"} if above else {}
        gathering = _role(name, (), labels=_DEFAULT_LABELS | labels)
        del gathering["rules"]
        gathering["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": own}]}
        part = _role(f"system:aggregate-to-{name}", rules, labels=_DEFAULT_LABELS | own)
        objects += [part, gathering]
    return [_with_annotations(obj) for obj in objects]


def _bootstrap_rules() -> list[Obj]:
    return [
        _rule("", ["configmaps"], ["get"]),
        _rule(
            "certificates.k8s.io",
            ["certificatesigningrequests"],
            ["create", "get", "list", "watch"],
        ),
        _rule(_CLUSTER, ["managedclusters"], ["get", "list", "watch", "create", "update"]),
        # as upstream: an agent may register straight into a set. It also means that whoever may
        # register may move clusters between sets; an operator who minds narrows this rule (and
        # marks the role with autoupdate "false")
        _rule(_CLUSTER, ["managedclustersets/join"], ["create"]),
    ]


def _bootstrap_subjects() -> list[Obj]:
    account = {
        "kind": "ServiceAccount",
        "name": BOOTSTRAP_ACCOUNT,
        "namespace": BOOTSTRAP_NAMESPACE,
    }
    return [_group(CLUSTER_BOOTSTRAPPERS), account]


def _accepted_rules(cluster: str) -> list[Obj]:
    own = {"resourceNames": [cluster]}
    return [
        _rule(
            "certificates.k8s.io",
            ["certificatesigningrequests"],
            ["create", "get", "list", "watch"],
        ),
        _rule(
            "register.open-cluster-management.io", ["managedclusters/clientcertificates"], ["renew"]
        ),
        _rule(_CLUSTER, ["managedclusters"], ["get", "list", "update", "watch"]) | own,
        _rule(_CLUSTER, ["managedclusters/status"], ["patch", "update"]) | own,
    ]


def _denied_rules(cluster: str) -> list[Obj]:
    rule = _rule(_CLUSTER, ["managedclusters"], ["get", "list", "watch"])
    return [rule | {"resourceNames": [cluster]}]


def _default(name: str, rules: list[Obj], subjects: list[Obj]) -> list[Obj]:
    objects = [
        _role(name, rules, labels=_DEFAULT_LABELS),
        _binding(name, name, subjects, labels=_DEFAULT_LABELS),
    ]
    return [_with_annotations(obj) for obj in objects]


def _with_annotations(obj: Obj) -> Obj:
    obj["metadata"]["annotations"] = dict(_DEFAULT_ANNOTATIONS)
    return obj


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Obj:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _group(name: str) -> Obj:
    return {"kind": "Group", "apiGroup": API_GROUP, "name": name}


def _role(name: str, rules: Sequence[Obj], *, labels: dict[str, str]) -> Obj:
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": dict(labels)},
        "rules": list(rules),
    }


def _binding(
    name: str, role: str, subjects: Sequence[Obj], *, labels: dict[str, str], namespace: str = ""
) -> Obj:
    metadata: Obj = {"name": name, "labels": dict(labels)}
    if namespace:
        metadata["namespace"] = namespace
    return {
        "apiVersion": API_VERSION,
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": API_GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [dict(s) for s in subjects],
    }
