"""ManagedClusterSet."""

from hub.fleet.schema.common import DNS_LABEL, LABEL_SELECTOR, LOOSE_CONDITIONS
from hub.fleet.schema.node import array, obj, root, text

_EXCLUSIVE = "ExclusiveClusterSetLabel"
_SELECTOR = obj(
    "Which clusters belong to the set.",
    {
        "labelSelector": LABEL_SELECTOR,
        "selectorType*": text(
            "By the label that names one set, or by any labels.",
            enum=(_EXCLUSIVE, "LabelSelector"),
            default=_EXCLUSIVE,
        ),
    },
    default={"selectorType": _EXCLUSIVE},
)
_NAMESPACE = obj(
    "A namespace on the clusters of the set.",
    {"name*": text("Its name.", at_most=63, pattern=DNS_LABEL)},
)
_SPEC = obj(
    "What the set is.",
    {
        "clusterSelector": _SELECTOR,
        "managedNamespaces": array(
            "Namespaces that the set manages on its clusters.", _NAMESPACE, keys=("name",)
        ),
    },
    default={"clusterSelector": {"selectorType": _EXCLUSIVE}},
)
_STATUS = obj("What the hub found.", {"conditions": LOOSE_CONDITIONS})
V1BETA2 = root("A group of managed clusters.", {"spec": _SPEC, "status": _STATUS})
