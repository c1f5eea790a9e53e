"""The Open Cluster Management kinds: names, versions, defaults.

Facts (groups, names, defaults) are upstream's. Field types and columns of every kind come from
`hub.fleet.schema`; the kinds that the hub itself acts on have strategies of their own, the others
follow their schema in everything.
"""

from hub.fleet import addon_view, management_addon_view
from hub.fleet.custom import SchemaStrategy, converted_to, view_of
from hub.fleet.schema import schema_of
from hub.fleet.schema.table import ADDON_GROUP, CLUSTER_GROUP, WORK_GROUP
from hub.meta import Obj
from hub.meta.names import label_name_errors
from hub.registry.kind import Kind, View
from hub.registry.strategy import Strategy

__all__ = [
    "ADDON_DEPLOYMENT_CONFIG",
    "ADDON_GROUP",
    "ADDON_PLACEMENT_SCORE",
    "ADDON_TEMPLATE",
    "CLUSTER_GROUP",
    "CLUSTER_MANAGEMENT_ADDON",
    "FLEET",
    "MANAGED_CLUSTER",
    "MANAGED_CLUSTER_ADDON",
    "MANAGED_CLUSTER_SET",
    "MANAGED_CLUSTER_SET_BINDING",
    "MANIFEST_WORK",
    "MANIFEST_WORK_REPLICA_SET",
    "MAX_MANIFESTS_BYTES",
    "PLACEMENT",
    "PLACEMENT_DECISION",
    "REGISTER_GROUP",
    "WORK_GROUP",
]

REGISTER_GROUP = "register.open-cluster-management.io"
MAX_MANIFESTS_BYTES = 500 * 1024
MAX_WORK_NAME = 188
_OCM_NAMESPACE = "open-cluster-management"
_SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system", _OCM_NAMESPACE)


class ManagedClusterStrategy(Strategy):
    """A cluster waits for acceptance and renews its lease every minute unless told otherwise."""

    def name_problems(self, name: str) -> list[str]:
        """Return why `name` is no cluster's.

        The role of a cluster named like one of the two shared roles would be that role, bound for
        the whole hub; the group of a cluster ``managed-clusters`` is one that every agent is in.
        The name must be a namespace's, as in OCM's webhook (which looks only when there are client
        configs): without its namespace a cluster can never be accepted. Nor may it be the system's:
        the agent would have rights there, and what is in it would be the cluster's.
        """
        if name in ("registration", "work"):
            return ["is reserved: the hub's own roles for agents have this name"]
        if name == "managed-clusters":
            return ["is reserved: the group of all agents has this name"]
        if name in _SYSTEM_NAMESPACES or name.startswith(f"{_OCM_NAMESPACE}-"):
            return ["is reserved: the namespace of this name is the system's"]
        return label_name_errors(name)

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

    def name_problems(self, name: str) -> list[str]:
        """Return why `name` is no work's.

        An agent keeps its record of a work under a hash of 64 digits, a dash and this name, which
        together must be a name (OCM accepts longer ones, and the agent fails on them).
        """
        if len(name) > MAX_WORK_NAME:
            return [f"must be no more than {MAX_WORK_NAME} characters"]
        return super().name_problems(name)

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


def _by_schema(group: str, version: str, kind: str) -> Strategy:
    return SchemaStrategy(schema_of(group, version, kind))


def _alike(kind: str) -> tuple[View, ...]:
    """Return the two versions of an add-on kind that differ by name only."""
    stored = view_of(ADDON_GROUP, "v1alpha1", kind)
    shown = view_of(
        ADDON_GROUP,
        "v1beta1",
        kind,
        to_storage=converted_to(stored.api_version),
        from_storage=converted_to(f"{ADDON_GROUP}/v1beta1"),
    )
    return stored, shown


MANAGED_CLUSTER = Kind(
    kind="ManagedCluster",
    plural="managedclusters",
    singular="managedcluster",
    short_names=("mcl", "mcls"),
    views=(view_of(CLUSTER_GROUP, "v1", "ManagedCluster"),),
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
    views=(view_of(CLUSTER_GROUP, "v1beta2", "ManagedClusterSet"),),
    is_namespaced=False,
    strategy=SetStrategy(),
    subresources=("status",),
    has_generation=True,
    is_custom=True,
)
MANAGED_CLUSTER_SET_BINDING = Kind(
    kind="ManagedClusterSetBinding",
    plural="managedclustersetbindings",
    singular="managedclustersetbinding",
    short_names=("mclsetbinding", "mclsetbindings"),
    views=(view_of(CLUSTER_GROUP, "v1beta2", "ManagedClusterSetBinding"),),
    is_namespaced=True,
    strategy=_by_schema(CLUSTER_GROUP, "v1beta2", "ManagedClusterSetBinding"),
    subresources=("status",),
    has_generation=True,
    is_custom=True,
)
PLACEMENT = Kind(
    kind="Placement",
    plural="placements",
    singular="placement",
    views=(view_of(CLUSTER_GROUP, "v1beta1", "Placement"),),
    is_namespaced=True,
    strategy=_by_schema(CLUSTER_GROUP, "v1beta1", "Placement"),
    subresources=("status",),
    has_generation=True,
    is_custom=True,
)
PLACEMENT_DECISION = Kind(
    kind="PlacementDecision",
    plural="placementdecisions",
    singular="placementdecision",
    views=(view_of(CLUSTER_GROUP, "v1beta1", "PlacementDecision"),),
    is_namespaced=True,
    strategy=_by_schema(CLUSTER_GROUP, "v1beta1", "PlacementDecision"),
    subresources=("status",),
    has_generation=True,
    is_custom=True,
)
ADDON_PLACEMENT_SCORE = Kind(
    kind="AddOnPlacementScore",
    plural="addonplacementscores",
    singular="addonplacementscore",
    views=(view_of(CLUSTER_GROUP, "v1alpha1", "AddOnPlacementScore"),),
    is_namespaced=True,
    strategy=_by_schema(CLUSTER_GROUP, "v1alpha1", "AddOnPlacementScore"),
    subresources=("status",),
    has_generation=True,
    is_custom=True,
)
MANIFEST_WORK = Kind(
    kind="ManifestWork",
    plural="manifestworks",
    singular="manifestwork",
    views=(view_of(WORK_GROUP, "v1", "ManifestWork"),),
    is_namespaced=True,
    strategy=ManifestWorkStrategy(),
    subresources=("status",),
    has_generation=True,
    is_custom=True,
    is_sealed=True,
)
MANIFEST_WORK_REPLICA_SET = Kind(
    kind="ManifestWorkReplicaSet",
    plural="manifestworkreplicasets",
    singular="manifestworkreplicaset",
    short_names=("mwrs",),
    views=(view_of(WORK_GROUP, "v1alpha1", "ManifestWorkReplicaSet"),),
    is_namespaced=True,
    strategy=_by_schema(WORK_GROUP, "v1alpha1", "ManifestWorkReplicaSet"),
    subresources=("status",),
    has_generation=True,
    is_custom=True,
    is_sealed=True,
)
MANAGED_CLUSTER_ADDON = Kind(
    kind="ManagedClusterAddOn",
    plural="managedclusteraddons",
    singular="managedclusteraddon",
    short_names=("mca", "mcas"),
    views=(
        view_of(ADDON_GROUP, "v1alpha1", "ManagedClusterAddOn"),
        view_of(
            ADDON_GROUP,
            "v1beta1",
            "ManagedClusterAddOn",
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
CLUSTER_MANAGEMENT_ADDON = Kind(
    kind="ClusterManagementAddOn",
    plural="clustermanagementaddons",
    singular="clustermanagementaddon",
    short_names=("cma", "cmas"),
    views=(
        view_of(ADDON_GROUP, "v1alpha1", "ClusterManagementAddOn"),
        view_of(
            ADDON_GROUP,
            "v1beta1",
            "ClusterManagementAddOn",
            to_storage=management_addon_view.to_v1alpha1,
            from_storage=management_addon_view.to_v1beta1,
        ),
    ),
    is_namespaced=False,
    strategy=_by_schema(ADDON_GROUP, "v1alpha1", "ClusterManagementAddOn"),
    subresources=("status",),
    has_generation=True,
    is_custom=True,
)
ADDON_DEPLOYMENT_CONFIG = Kind(
    kind="AddOnDeploymentConfig",
    plural="addondeploymentconfigs",
    singular="addondeploymentconfig",
    views=_alike("AddOnDeploymentConfig"),
    is_namespaced=True,
    strategy=_by_schema(ADDON_GROUP, "v1alpha1", "AddOnDeploymentConfig"),
    has_generation=True,
    is_custom=True,
)
ADDON_TEMPLATE = Kind(
    kind="AddOnTemplate",
    plural="addontemplates",
    singular="addontemplate",
    views=_alike("AddOnTemplate"),
    is_namespaced=False,
    strategy=_by_schema(ADDON_GROUP, "v1alpha1", "AddOnTemplate"),
    has_generation=True,
    is_custom=True,
    is_sealed=True,
)
FLEET = (
    MANAGED_CLUSTER,
    MANAGED_CLUSTER_SET,
    MANAGED_CLUSTER_SET_BINDING,
    PLACEMENT,
    PLACEMENT_DECISION,
    ADDON_PLACEMENT_SCORE,
    MANIFEST_WORK,
    MANIFEST_WORK_REPLICA_SET,
    MANAGED_CLUSTER_ADDON,
    CLUSTER_MANAGEMENT_ADDON,
    ADDON_DEPLOYMENT_CONFIG,
    ADDON_TEMPLATE,
)
