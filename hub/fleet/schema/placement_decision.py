"""PlacementDecision."""

from hub.fleet.schema.node import array, obj, root, text, whole

_DECISION = obj(
    "A cluster that was selected.",
    {
        "clusterName*": text("Its name, empty when it is gone."),
        "reason*": text("Why it was."),
        "score": whole("The score it had.", bits=64),
    },
)
_STATUS = obj("The decisions.", {"decisions*": array("At most a hundred, in order.", _DECISION)})
V1BETA1 = root("Some of the clusters that a Placement selected.", {"status": _STATUS})
