"""ManagedCluster."""

from hub.fleet.schema.common import (
    CONDITIONS,
    DNS_LABEL,
    QUALIFIED_NAME,
    QUANTITY,
    TAINT_EFFECTS,
)
from hub.fleet.schema.node import array, data, flag, mapping, obj, root, text, time, whole

_CLIENT_CONFIG = obj(
    "One address of the cluster's API server.",
    {
        "caBundle": data("The CA that its certificate chains to; empty = the system's CAs."),
        "url*": text("Its URL."),
    },
)
_TAINT = obj(
    "Keeps placements away that do not tolerate it.",
    {
        "effect*": text("What happens to a placement without a toleration.", enum=TAINT_EFFECTS),
        "key*": text("Its key.", at_most=316, pattern=QUALIFIED_NAME),
        "timeAdded": time("When the hub saw it first.", is_nullable=True),
        "value": text("Its value.", at_most=1024),
    },
)
_CLAIM = obj(
    "Something the cluster says about itself.",
    {
        "name": text("What it is about.", at_least=1, at_most=253),
        "value": text("What is said.", at_least=1, at_most=1024),
    },
)
_MANAGED_NAMESPACE = obj(
    "A namespace of the cluster that belongs to a cluster set.",
    {
        "clusterSet*": text("The set."),
        "conditions": CONDITIONS,
        "name*": text("The namespace.", at_most=63, pattern=DNS_LABEL),
    },
)
_SPEC = obj(
    "What is wanted of the cluster.",
    {
        "hubAcceptsClient": flag("Whether the hub lets the cluster's agents in."),
        "leaseDurationSeconds": whole(
            "How often the agent renews its lease, in seconds.", bits=32, default=60
        ),
        "managedClusterClientConfigs": array(
            "How to reach the cluster's API server.", _CLIENT_CONFIG
        ),
        "taints": array("What keeps placements away.", _TAINT),
    },
)
_STATUS = obj(
    "What the hub and the agent know about the cluster.",
    {
        "allocatable": mapping("What of the capacity can be given to workloads.", QUANTITY),
        "capacity": mapping("The sum of what all nodes have.", QUANTITY),
        "clusterClaims": array("What the cluster says about itself.", _CLAIM),
        "conditions": CONDITIONS,
        "managedNamespaces": array(
            "Namespaces that belong to the cluster's sets.",
            _MANAGED_NAMESPACE,
            keys=("clusterSet", "name"),
        ),
        "version": obj(
            "Versions of what runs there.", {"kubernetes": text("Kubernetes' version.")}
        ),
    },
)
V1 = root(
    "A cluster that this hub manages, or that asks to be.", {"spec": _SPEC, "status": _STATUS}
)
