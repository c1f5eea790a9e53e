"""The rollout strategy, which add-ons and replica sets of works have in common."""

from hub.fleet.schema.node import Fields, Node, array, int_or_text, obj, text, whole
from hub.meta import Obj

_COUNT = "^((100|[0-9]{1,2})%|[0-9]+)$"
_LIMITS: Fields = {
    "maxFailures": int_or_text(
        "How many clusters may fail, as a number or in percent.", pattern=_COUNT, default=0
    ),
    "minSuccessTime": text("How long a success must last before it counts.", default="0"),
    "progressDeadline": text(
        "How long a cluster may take; None = as long as it likes.",
        pattern="^(([0-9])+[h|m|s])|None$",
        default="None",
    ),
}
_FIRST: Fields = {
    "mandatoryDecisionGroups": array(
        "Groups that come first, one after the other.",
        obj(
            "A decision group, by name or place.",
            {
                "groupIndex": whole("Its place, counted from 0.", bits=32),
                "groupName": text("Its name."),
            },
        ),
    )
}
_PACE: Fields = {
    "maxConcurrency": int_or_text(
        "How many clusters at once, as a number or in percent.", pattern=_COUNT
    )
}


def rollout_strategy(default: Obj) -> Node:
    """Return how a change spreads over clusters."""
    return obj(
        "How a change spreads over the clusters.",
        {
            "all": obj("Limits of a rollout to all at once.", _LIMITS),
            "progressive": obj(
                "Limits of a rollout cluster by cluster.", {**_FIRST, **_PACE, **_LIMITS}
            ),
            "progressivePerGroup": obj(
                "Limits of a rollout group by group.", {**_FIRST, **_LIMITS}
            ),
            "type": text(
                "To all at once, cluster by cluster or group by group.",
                enum=("All", "Progressive", "ProgressivePerGroup"),
                default="All",
            ),
        },
        default=default,
    )
