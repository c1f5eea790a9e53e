"""ManifestWorkReplicaSet."""

from hub.fleet.schema.common import CONDITIONS
from hub.fleet.schema.manifest_work import work_spec
from hub.fleet.schema.node import array, obj, root, text, whole
from hub.fleet.schema.rollout import rollout_strategy

_PLACEMENT = obj(
    "A Placement whose clusters get the work.",
    {
        "name*": text("Its name; it is in the same namespace.", at_least=1),
        "rolloutStrategy": rollout_strategy({"type": "All", "all": {"progressDeadline": "None"}}),
    },
)
_SPEC = obj(
    "Which work goes where.",
    {
        "cascadeDeletionPolicy*": text(
            "Whether the set, when deleted, waits for its works to go.",
            enum=("Background", "Foreground"),
            default="Background",
        ),
        "manifestWorkTemplate": work_spec("Spec of the works."),
        "placementRefs*": array("The placements.", _PLACEMENT, at_least=1),
    },
)
_SUMMARY = obj(
    "How many of the works there are in which state.",
    {
        "applied": whole("Applied by their agents."),
        "available": whole("Whose objects are all there."),
        "degraded": whole("Whose objects are not well."),
        "desiredTotal": whole("Wanted."),
        "progressing": whole("Being applied."),
        "total": whole("Created."),
        "updated": whole("Whose spec is the latest."),
    },
)
_PLACEMENT_SUMMARY = obj(
    "The works of one placement.",
    {
        "availableDecisionGroups": text("How many of its groups are reached, for people."),
        "name": text("Name of the Placement."),
        "summary": _SUMMARY,
    },
)
_STATUS = obj(
    "What became of the works.",
    {
        "conditions": CONDITIONS,
        "placementSummary": array("One entry a placement.", _PLACEMENT_SUMMARY),
        "summary": _SUMMARY,
    },
)
V1ALPHA1 = root(
    "One work for each cluster that placements select.", {"spec": _SPEC, "status": _STATUS}
)
