"""Every schema and every printer column of OCM's kinds, by group, version and kind.

Owns the look-up. Groups, versions, columns and their paths are upstream's.
"""

import copy
from dataclasses import dataclass

from hub.fleet.schema import (
    addon_deployment_config,
    addon_placement_score,
    addon_template,
    cluster_management_addon,
    managed_cluster,
    managed_cluster_addon,
    managed_cluster_set,
    managed_cluster_set_binding,
    manifest_work,
    manifest_work_replica_set,
    placement,
    placement_decision,
)
from hub.fleet.schema.node import Node

CLUSTER_GROUP = "cluster.open-cluster-management.io"
WORK_GROUP = "work.open-cluster-management.io"
ADDON_GROUP = "addon.open-cluster-management.io"


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column as a CustomResourceDefinition has it."""

    name: str
    path: str
    type_: str = "string"
    priority: int = 0


SCHEMAS: dict[tuple[str, str, str], Node] = {
    (CLUSTER_GROUP, "v1", "ManagedCluster"): managed_cluster.V1,
    (CLUSTER_GROUP, "v1beta2", "ManagedClusterSet"): managed_cluster_set.V1BETA2,
    (CLUSTER_GROUP, "v1beta2", "ManagedClusterSetBinding"): managed_cluster_set_binding.V1BETA2,
    (CLUSTER_GROUP, "v1beta1", "Placement"): placement.V1BETA1,
    (CLUSTER_GROUP, "v1beta1", "PlacementDecision"): placement_decision.V1BETA1,
    (CLUSTER_GROUP, "v1alpha1", "AddOnPlacementScore"): addon_placement_score.V1ALPHA1,
    (WORK_GROUP, "v1", "ManifestWork"): manifest_work.V1,
    (WORK_GROUP, "v1alpha1", "ManifestWorkReplicaSet"): manifest_work_replica_set.V1ALPHA1,
    (ADDON_GROUP, "v1alpha1", "ManagedClusterAddOn"): managed_cluster_addon.V1ALPHA1,
    (ADDON_GROUP, "v1beta1", "ManagedClusterAddOn"): managed_cluster_addon.V1BETA1,
    (ADDON_GROUP, "v1alpha1", "ClusterManagementAddOn"): cluster_management_addon.V1ALPHA1,
    (ADDON_GROUP, "v1beta1", "ClusterManagementAddOn"): cluster_management_addon.V1BETA1,
    (ADDON_GROUP, "v1alpha1", "AddOnDeploymentConfig"): addon_deployment_config.V1ALPHA1,
    (ADDON_GROUP, "v1beta1", "AddOnDeploymentConfig"): addon_deployment_config.V1BETA1,
    (ADDON_GROUP, "v1alpha1", "AddOnTemplate"): addon_template.V1ALPHA1,
    (ADDON_GROUP, "v1beta1", "AddOnTemplate"): addon_template.V1BETA1,
}


def condition_path(type_: str, field: str = "status") -> str:
    """Return the JSON path of a condition's field."""
    return f'.status.conditions[?(@.type=="{type_}")].{field}'


_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_HEALTH = tuple(Column(t, condition_path(t)) for t in ("Available", "Degraded", "Progressing"))
_DISPLAY_NAME = Column("DISPLAY NAME", ".spec.addOnMeta.displayName")
_ADDON_NAME = Column("ADDON NAME", ".spec.addonName")
COLUMNS: dict[tuple[str, str, str], tuple[Column, ...]] = {
    (CLUSTER_GROUP, "v1", "ManagedCluster"): (
        Column("Hub Accepted", ".spec.hubAcceptsClient", "boolean"),
        Column("Managed Cluster URLs", ".spec.managedClusterClientConfigs[*].url"),
        Column("Joined", condition_path("ManagedClusterJoined")),
        Column("Available", condition_path("ManagedClusterConditionAvailable")),
        _AGE,
    ),
    (CLUSTER_GROUP, "v1beta2", "ManagedClusterSet"): (
        Column("Empty", condition_path("ClusterSetEmpty")),
        _AGE,
    ),
    (CLUSTER_GROUP, "v1beta1", "Placement"): (
        Column("Succeeded", condition_path("PlacementSatisfied")),
        Column("Reason", condition_path("PlacementSatisfied", "reason")),
        Column("SelectedClusters", ".status.numberOfSelectedClusters", "integer"),
    ),
    (WORK_GROUP, "v1alpha1", "ManifestWorkReplicaSet"): (
        Column("Placement", condition_path("PlacementVerified", "reason")),
        Column("Found", condition_path("PlacementVerified")),
        Column("ManifestWorks", condition_path("ManifestworkApplied", "reason")),
        Column("Applied", condition_path("ManifestworkApplied")),
    ),
    (ADDON_GROUP, "v1alpha1", "ManagedClusterAddOn"): _HEALTH,
    (ADDON_GROUP, "v1beta1", "ManagedClusterAddOn"): _HEALTH,
    (ADDON_GROUP, "v1alpha1", "ClusterManagementAddOn"): (
        _DISPLAY_NAME,
        Column("CRD NAME", ".spec.addOnConfiguration.crdName"),
    ),
    (ADDON_GROUP, "v1beta1", "ClusterManagementAddOn"): (_DISPLAY_NAME,),
    (ADDON_GROUP, "v1alpha1", "AddOnTemplate"): (_ADDON_NAME,),
    (ADDON_GROUP, "v1beta1", "AddOnTemplate"): (_ADDON_NAME,),
}
"""None for a kind = its name and age, as kube-apiserver does."""


def schema_of(group: str, version: str, kind: str) -> Node:
    """Return a copy of the openAPIV3Schema of one of OCM's kinds.

    :raises KeyError: there is no such kind or version
    """
    return copy.deepcopy(SCHEMAS[group, version, kind])


def columns_of(group: str, version: str, kind: str) -> tuple[Column, ...]:
    """Return the printer columns of a kind beside its name; none = its age only."""
    return COLUMNS.get((group, version, kind), ())
