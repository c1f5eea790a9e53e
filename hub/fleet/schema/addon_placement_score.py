"""AddOnPlacementScore."""

from hub.fleet.schema.common import CONDITIONS
from hub.fleet.schema.node import array, obj, root, text, time, whole

_SCORE = obj(
    "One score.",
    {
        "name*": text("Its name."),
        "value*": whole("How good the cluster is.", bits=32, at_least=-100, at_most=100),
    },
)
_STATUS = obj(
    "What the add-on found.",
    {
        "conditions": CONDITIONS,
        "scores": array("The scores.", _SCORE, keys=("name",)),
        "validUntil": time("From when on the scores do not count."),
    },
)
V1ALPHA1 = root("Scores that an add-on gives to a cluster.", {"status": _STATUS})
