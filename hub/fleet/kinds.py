"""The Open Cluster Management kinds: names, versions, defaults, columns, validation.

Facts (groups, names, defaults, columns) are upstream's, the schemas and words ours. Whole
structural schemas come with CustomResourceDefinitions in a later issue; what is checked here is
what the hub itself relies on.
"""

from hub.fleet import addon_view
from hub.meta import Obj
from hub.registry.kind import Kind, View
from hub.registry.printing import age_printer, name_printer, path_printer
from hub.registry.shape import CONDITIONS, MapOf, Shape
from hub.registry.strategy import Strategy

CLUSTER_GROUP = "cluster.open-cluster-management.io"
WORK_GROUP = "work.open-cluster-management.io"
ADDON_GROUP = "addon.open-cluster-management.io"
REGISTER_GROUP = "register.open-cluster-management.io"
MAX_MANIFESTS_BYTES = 500 * 1024


def condition_path(type_: str, field: str = "status") -> str:
    """Return the JSON path of a condition's field."""
    return f'.status.conditions[?(@.type=="{type_}")].{field}'


class ManagedClusterStrategy(Strategy):
    """A cluster waits for acceptance and renews its lease every minute unless told otherwise."""

    def name_problems(self, name: str) -> list[str]:
        """Return why `name` is no cluster's.

        The role of a cluster named like one of the two shared roles would be that role, bound for
        the whole hub.
        """
        if name in ("registration", "work"):
            return ["is reserved: the hub's own roles for agents have this name"]
        return super().name_problems(name)

    def default(self, obj: Obj) -> None:
        """Fill what spec leaves out."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("hubAcceptsClient", False)
        if not spec.get("leaseDurationSeconds"):
            spec["leaseDurationSeconds"] = 60


class SetStrategy(Strategy):
    """A set selects by the exclusive label unless told otherwise."""

    def default(self, obj: Obj) -> None:
        """Fill the selector."""
        spec = obj.setdefault("spec", {})
        selector = spec.setdefault("clusterSelector", {})
        selector.setdefault("selectorType", "ExclusiveClusterSetLabel")


class ManifestWorkStrategy(Strategy):
    """A work carries whole objects, at most 500 KiB of them, each with a name and each once."""

    def default(self, obj: Obj) -> None:
        """Fill the defaults of deleteOption and manifestConfigs."""
        spec = obj.setdefault("spec", {})
        option = spec.get("deleteOption")
        if isinstance(option, dict):
            option.setdefault("propagationPolicy", "Foreground")
        for config in spec.get("manifestConfigs") or []:
            config.setdefault("feedbackScrapeType", "Poll")
            strategy = config.get("updateStrategy")
            if isinstance(strategy, dict):
                strategy.setdefault("type", "Update")
                apply = strategy.get("serverSideApply")
                if isinstance(apply, dict):
                    apply.setdefault("fieldManager", "work-agent")
                    for ignored in apply.get("ignoreFields") or []:
                        ignored.setdefault("condition", "OnSpokePresent")


class AddOnStrategy(Strategy):
    """An add-on installs into a namespace of its own unless told otherwise."""

    def default(self, obj: Obj) -> None:
        """Fill the install namespace (upstream defaults it on every read of v1alpha1)."""
        spec = obj.setdefault("spec", {})
        if not spec.get("installNamespace"):
            spec["installNamespace"] = addon_view.DEFAULT_INSTALL_NAMESPACE


_CLUSTER: dict[str, Shape] = {
    "spec": {
        "hubAcceptsClient": bool,
        "leaseDurationSeconds": int,
        "managedClusterClientConfigs": [{"url": str}],
        "taints": [{"key": str, "value": str, "effect": str, "timeAdded": str}],
    },
    "status": {"conditions": CONDITIONS},
}
_SELECTOR: Shape = {
    "matchLabels": MapOf(str),
    "matchExpressions": [{"key": str, "operator": str, "values": [str]}],
}
_SET: dict[str, Shape] = {
    "spec": {"clusterSelector": {"selectorType": str, "labelSelector": _SELECTOR}},
    "status": {"conditions": CONDITIONS},
}
_UPDATE: Shape = {
    "type": str,
    "serverSideApply": {"fieldManager": str, "ignoreFields": [{"condition": str}]},
}
_WORK: dict[str, Shape] = {
    "spec": {
        "workload": {"manifests": [dict]},
        "deleteOption": {"propagationPolicy": str},
        "manifestConfigs": [{"feedbackScrapeType": str, "updateStrategy": _UPDATE}],
    },
    "status": {"conditions": CONDITIONS},
}
_SUBJECT: Shape = {"user": str, "groups": [str], "organizationUnits": [str]}
_CONFIG: Shape = {"name": str, "namespace": str}
_ADDON_V1ALPHA1: dict[str, Shape] = {
    "spec": {"installNamespace": str},
    "status": {
        "conditions": CONDITIONS,
        "kubeClientDriver": str,
        "registrations": [{"signerName": str, "subject": _SUBJECT}],
        "configReferences": [{"desiredConfig": _CONFIG}],
        "healthCheck": {"mode": str},
    },
}
_ADDON_V1BETA1: dict[str, Shape] = {
    "spec": dict,
    "status": {
        "conditions": CONDITIONS,
        "registrations": [
            {
                "type": str,
                "kubeClient": {"subject": _SUBJECT, "driver": str},
                "customSigner": {"signerName": str, "subject": _SUBJECT},
            }
        ],
        "configReferences": [{"desiredConfig": _CONFIG}],
        "healthCheck": {"mode": str},
    },
}

MANAGED_CLUSTER = Kind(
    kind="ManagedCluster",
    plural="managedclusters",
    singular="managedcluster",
    short_names=("mcl", "mcls"),
    views=(
        View(
            CLUSTER_GROUP,
            "v1",
            printers=(
                name_printer(),
                path_printer("Hub Accepted", ".spec.hubAcceptsClient", type_="boolean"),
                path_printer("Managed Cluster URLs", ".spec.managedClusterClientConfigs[*].url"),
                path_printer("Joined", condition_path("ManagedClusterJoined")),
                path_printer("Available", condition_path("ManagedClusterConditionAvailable")),
                age_printer("date"),
            ),
            shape=_CLUSTER,
        ),
    ),
    is_namespaced=False,
    strategy=ManagedClusterStrategy(),
    subresources=("status",),
    has_generation=True,
    is_custom=True,
    is_protected=True,
)
MANAGED_CLUSTER_SET = Kind(
    kind="ManagedClusterSet",
    plural="managedclustersets",
    singular="managedclusterset",
    short_names=("mclset", "mclsets"),
    views=(
        View(
            CLUSTER_GROUP,
            "v1beta2",
            printers=(
                name_printer(),
                path_printer("Empty", condition_path("ClusterSetEmpty")),
                age_printer("date"),
            ),
            shape=_SET,
        ),
    ),
    is_namespaced=False,
    strategy=SetStrategy(),
    subresources=("status",),
    has_generation=True,
    is_custom=True,
)
MANIFEST_WORK = Kind(
    kind="ManifestWork",
    plural="manifestworks",
    singular="manifestwork",
    views=(View(WORK_GROUP, "v1", printers=(name_printer(), age_printer("date")), shape=_WORK),),
    is_namespaced=True,
    strategy=ManifestWorkStrategy(),
    subresources=("status",),
    has_generation=True,
    is_custom=True,
    is_sealed=True,
)
_ADDON_PRINTERS = (
    name_printer(),
    path_printer("Available", condition_path("Available")),
    path_printer("Degraded", condition_path("Degraded")),
    path_printer("Progressing", condition_path("Progressing")),
)
MANAGED_CLUSTER_ADDON = Kind(
    kind="ManagedClusterAddOn",
    plural="managedclusteraddons",
    singular="managedclusteraddon",
    short_names=("mca", "mcas"),
    views=(
        View(ADDON_GROUP, "v1alpha1", printers=_ADDON_PRINTERS, shape=_ADDON_V1ALPHA1),
        View(
            ADDON_GROUP,
            "v1beta1",
            printers=_ADDON_PRINTERS,
            shape=_ADDON_V1BETA1,
            to_storage=addon_view.to_v1alpha1,
            from_storage=addon_view.to_v1beta1,
        ),
    ),
    is_namespaced=True,
    strategy=AddOnStrategy(),
    subresources=("status",),
    has_generation=True,
    is_custom=True,
)
FLEET = (MANAGED_CLUSTER, MANAGED_CLUSTER_SET, MANIFEST_WORK, MANAGED_CLUSTER_ADDON)
