"""ManagedClusterSetBinding."""

from hub.fleet.schema.common import LOOSE_CONDITIONS
from hub.fleet.schema.node import obj, root, text

_SPEC = obj(
    "What is bound.",
    {"clusterSet": text("The set, which the binding is named after.", at_least=1)},
)
_STATUS = obj("What the hub found.", {"conditions": LOOSE_CONDITIONS})
V1BETA2 = root(
    "Lets the placements of a namespace select from a cluster set.",
    {"spec": _SPEC, "status": _STATUS},
)
