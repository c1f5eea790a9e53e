"""ClusterManager: what an operator would install on a hub.

This hub needs no operator; the kind is there because tools look for it to tell a hub from any other
cluster. Only what they read has a schema, the rest is kept as it comes.
"""

from hub.fleet.schema.common import CONDITIONS
from hub.fleet.schema.node import Node, array, obj, root, text, whole

_KEPT: Node = {"x-kubernetes-preserve-unknown-fields": True}
_RESOURCE = obj(
    "An object that the operator made.",
    {
        "group": text("Its API group."),
        "name": text("Its name."),
        "namespace": text("Its namespace."),
        "resource": text("The plural name of its kind."),
        "version": text("Its version."),
    },
)
_SPEC = obj(
    "What is to be installed.",
    {
        "deployOption": obj(
            "Where the components run.", {"mode": text("Default or Hosted.", default="Default")}
        )
        | _KEPT,
        "placementImagePullSpec": text("Image of the placement controller."),
        "registrationImagePullSpec": text("Image of the registration controller."),
        "workImagePullSpec": text("Image of the work webhook."),
    },
)
_STATUS = obj(
    "What was installed.",
    {
        "conditions": CONDITIONS,
        "observedGeneration": whole("The generation last seen.", bits=64),
        "relatedResources": array("The objects that were made.", _RESOURCE),
    },
)
V1 = root("The components of a hub.", {"spec": _SPEC | _KEPT, "status": _STATUS | _KEPT})
