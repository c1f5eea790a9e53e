"""Placement."""

from hub.fleet.schema.common import (
    CLAIM_SELECTOR,
    CONDITIONS,
    LABEL_SELECTOR,
    QUALIFIED_NAME,
    TAINT_EFFECTS,
)
from hub.fleet.schema.node import array, int_or_text, obj, root, text, time, whole

_GROUP = obj(
    "A group of decisions.",
    {
        "groupClusterSelector*": obj(
            "Which clusters are in it.",
            {"claimSelector": CLAIM_SELECTOR, "labelSelector": LABEL_SELECTOR},
        ),
        "groupName*": text("Its name.", pattern="^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$"),
    },
)
_DECISION_STRATEGY = obj(
    "How decisions are arranged.",
    {
        "groupStrategy": obj(
            "How decisions are grouped.",
            {
                "clustersPerDecisionGroup": int_or_text(
                    "How many clusters a group has at most, as a number or in percent.",
                    pattern="^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$",
                    default="100%",
                ),
                "decisionGroups": array("Groups by cluster, in order.", _GROUP),
            },
        )
    },
)
_PREDICATE = obj(
    "One way for a cluster to be selected.",
    {
        "requiredClusterSelector": obj(
            "What a cluster must be; all selectors must hold.",
            {
                "celSelector": obj(
                    "Selects by CEL; all expressions must hold.",
                    {"celExpressions": array("Expressions over managedCluster.", text())},
                ),
                "claimSelector": CLAIM_SELECTOR,
                "labelSelector": LABEL_SELECTOR,
            },
        )
    },
)
_SCORE = obj(
    "Where the score comes from.",
    {
        "addOn": obj(
            "A score that an add-on gives.",
            {
                "resourceName*": text("Name of the AddOnPlacementScore objects."),
                "scoreName*": text("Name of the score in them."),
            },
        ),
        "builtIn": text("Name of a score that the hub itself gives."),
        "type*": text("Who gives it.", enum=("BuiltIn", "AddOn"), default="BuiltIn"),
    },
)
_PRIORITIZER = obj(
    "One score and how much it counts.",
    {
        "scoreCoordinate*": _SCORE,
        "weight": whole("By what it is multiplied.", bits=32, at_least=-10, at_most=10, default=1),
    },
)
_SPREAD = obj(
    "Spreads decisions over the values of a label or claim.",
    {
        "maxSkew": whole("How uneven it may be.", bits=32, at_least=1, default=1),
        "topologyKey*": text(
            "The label or claim.",
            at_most=316,
            # as QUALIFIED_NAME, but for a pair of parentheses
            pattern=QUALIFIED_NAME.replace("(([A-Za-z0-9][", "([A-Za-z0-9][").replace("])$", "]$"),
        ),
        "topologyKeyType*": text("Which of the two it is.", enum=("Label", "Claim")),
        "whenUnsatisfiable": text(
            "What to do when it cannot be.",
            enum=("DoNotSchedule", "ScheduleAnyway"),
            default="ScheduleAnyway",
        ),
    },
)
_TOLERATION = obj(
    "Which taints do not matter.",
    {
        "effect": text("Effect of the taints, empty = any.", enum=TAINT_EFFECTS),
        "key": text("Their key, empty = any.", at_most=316, pattern=QUALIFIED_NAME),
        "operator": text("How value is compared: Exists or Equal.", default="Equal"),
        "tolerationSeconds": whole("For how long; absent = for ever.", bits=64),
        "value": text("Their value.", at_most=1024),
    },
)
_SPEC = obj(
    "Which clusters are wanted.",
    {
        "clusterSets": array("Sets to select from; none = all that are bound.", text()),
        "decisionStrategy": _DECISION_STRATEGY,
        "numberOfClusters": whole("How many at most; absent = all.", bits=32),
        "predicates": array("Ways to be selected; one must hold.", _PREDICATE),
        "prioritizerPolicy": obj(
            "Which of the clusters come first.",
            {
                "configurations": array("Scores to add up.", _PRIORITIZER),
                "mode": text("Additive to the usual scores, or Exact.", default="Additive"),
            },
        ),
        "scoreRateLimit": text(
            "How often scores are looked at.", pattern="^[0-9]+[hms]$", default="1m"
        ),
        "sortBy": text(
            "How decisions are ordered.", enum=("ClusterName", "Score"), default="ClusterName"
        ),
        "spreadPolicy": obj(
            "How decisions are spread.",
            {"spreadConstraints": array("What to spread over.", _SPREAD, at_most=8)},
        ),
        "tolerations": array("Which taints do not matter.", _TOLERATION),
    },
)
_DECISION_GROUP = obj(
    "A group and its decisions.",
    {
        "clusterCount": whole("How many clusters are in it.", bits=32, default=0),
        "decisionGroupIndex": whole("Its place in the order.", bits=32),
        "decisionGroupName": text("Its name, empty when it has none."),
        "decisions": array("Names of its PlacementDecision objects.", text()),
    },
)
_STATUS = obj(
    "What was decided.",
    {
        "conditions": CONDITIONS,
        "decisionGroups": array("The groups.", _DECISION_GROUP),
        "lastScoreUpdateTime": time("When scores were last looked at."),
        "numberOfSelectedClusters": whole("How many clusters are selected.", bits=32),
    },
)
V1BETA1 = root(
    "Selects clusters from the sets bound to its namespace.", {"spec*": _SPEC, "status": _STATUS}
)
