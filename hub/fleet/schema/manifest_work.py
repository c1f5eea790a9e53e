"""ManifestWork, and its spec where other kinds have it as a template."""

from hub.fleet.schema.common import CONDITIONS, DNS_SUBDOMAIN
from hub.fleet.schema.node import Fields, Node, array, flag, manifest, obj, root, text, whole

_IDENTIFIER: Fields = {
    "group": text("API group, empty for the core group."),
    "name*": text("Name of the object."),
    "namespace": text("Its namespace, empty when its kind has none."),
    "resource*": text("Plural name of its kind."),
}
_DELETE_OPTION = obj(
    "What happens to the manifests' objects when the work goes.",
    {
        "propagationPolicy": text(
            "Delete them, leave them, or leave some.",
            enum=("Foreground", "Orphan", "SelectivelyOrphan"),
            default="Foreground",
        ),
        "selectivelyOrphans": obj(
            "Which are left.",
            {"orphaningRules": array("The objects.", obj("One that is left.", _IDENTIFIER))},
        ),
        "ttlSecondsAfterFinished": whole("How long the work is kept when it is complete.", bits=64),
    },
)
_EXECUTOR = obj(
    "With whose rights the manifests are applied; absent = the agent's.",
    {
        "subject": obj(
            "Who that is.",
            {
                "serviceAccount": obj(
                    "A ServiceAccount of the managed cluster.",
                    {
                        "name*": text("Its name.", at_least=1, at_most=253, pattern=DNS_SUBDOMAIN),
                        "namespace*": text(
                            "Its namespace.", at_least=1, at_most=253, pattern=DNS_SUBDOMAIN
                        ),
                    },
                ),
                "type*": text("What kind of identity it is.", enum=("ServiceAccount",)),
            },
        )
    },
)
_CONDITION_RULE = obj(
    "Makes a condition from an object's state.",
    {
        "celExpressions": array("Expressions over object; all must hold.", text()),
        "condition*": text("Type of the condition."),
        "message": text("Its message."),
        "messageExpression": text("An expression that makes its message."),
        "type*": text("By which rule.", enum=("WellKnownConditions", "CEL")),
    },
    rules=(
        {
            "message": "a CEL rule must name its condition",
            "rule": "self.type != 'CEL' || self.condition != \"\"",
        },
    ),
)
_JSON_PATH = obj(
    "A value to report.",
    {
        "name*": text("What it is called."),
        "path*": text("Where it is, below the object."),
        "version": text("API version of the object that is asked."),
    },
)
_FEEDBACK_RULE = obj(
    "What of an object's state is reported.",
    {
        "jsonPaths": array("The values.", _JSON_PATH, keys=("name",)),
        "type*": text(
            "The values that are usual for its kind, or the ones named.",
            enum=("WellKnownStatus", "JSONPaths"),
        ),
    },
)
_IGNORE = obj(
    "Fields that are not applied.",
    {
        "condition*": text(
            "When: while the object is there, or when another has changed it.",
            enum=("OnSpokePresent", "OnSpokeChange"),
            default="OnSpokePresent",
        ),
        "jqPathExpressions": array("The fields, as jq paths.", text()),
        "jsonPaths": array("The fields, as JSON paths.", text()),
        "jsonPointers": array("The fields, as JSON pointers.", text()),
    },
)
_UPDATE_STRATEGY = obj(
    "How a manifest reaches an object that is there.",
    {
        "serverSideApply": obj(
            "How it is applied by the server.",
            {
                "fieldManager": text(
                    "Under which name.", pattern="^work-agent", default="work-agent"
                ),
                "force": flag("Whether fields of others are taken over."),
                "ignoreFields": array("What is left out.", _IGNORE, keys=("condition",)),
            },
        ),
        "type*": text(
            "By update, only by creation, applied by the server, or not at all.",
            enum=("Update", "CreateOnly", "ServerSideApply", "ReadOnly"),
            default="Update",
        ),
    },
)
_MANIFEST_CONFIG = obj(
    "How one manifest is treated.",
    {
        "conditionRules": array(
            "Conditions made from the object.", _CONDITION_RULE, keys=("condition",)
        ),
        "feedbackRules": array("What is reported of it.", _FEEDBACK_RULE),
        "feedbackScrapeType": text(
            "How the report is kept fresh.", enum=("Poll", "Watch"), default="Poll"
        ),
        "resourceIdentifier*": obj("Which object it is.", _IDENTIFIER),
        "updateStrategy": _UPDATE_STRATEGY,
    },
)


_SPEC: Fields = {
    "deleteOption": _DELETE_OPTION,
    "executor": _EXECUTOR,
    "manifestConfigs": array("How some of the manifests are treated.", _MANIFEST_CONFIG),
    "workload": obj(
        "What is applied.",
        {"manifests": array("The objects.", manifest("An object as it is to be."))},
    ),
}


def work_spec(about: str) -> Node:
    """Return the spec of a ManifestWork, under a description of its own."""
    return obj(about, _SPEC)


_RESOURCE_META = obj(
    "Which manifest it is, and the object it became.",
    {
        "group": text("API group of the object."),
        "kind": text("Its kind."),
        "name": text("Its name."),
        "namespace": text("Its namespace."),
        "ordinal*": whole("The manifest's place in the work.", bits=32),
        "resource": text("Plural name of its kind."),
        "version": text("API version it was applied in."),
    },
)
_VALUE = obj(
    "A value, in the field that its type tells.",
    {
        "boolean": flag("A boolean."),
        "integer": whole("An integer.", bits=64),
        "jsonRaw": text("Anything, as JSON.", at_most=1024),
        "string": text("A string."),
        "type*": text("Type of the value.", enum=("Integer", "String", "Boolean", "JsonRaw")),
    },
)
_FEEDBACK = obj("A reported value.", {"fieldValue*": _VALUE, "name*": text("What it is called.")})
_MANIFEST_STATUS = obj(
    "What became of one manifest.",
    {
        "conditions*": CONDITIONS,
        "resourceMeta*": _RESOURCE_META,
        "statusFeedback": obj(
            "What is reported of the object.",
            {"values": array("The values.", _FEEDBACK, keys=("name",))},
        ),
    },
)
_STATUS = obj(
    "What became of the work.",
    {
        "conditions": CONDITIONS,
        "resourceStatus": obj(
            "What became of each manifest.",
            {"manifests": array("One entry a manifest.", _MANIFEST_STATUS)},
        ),
    },
)
V1 = root(
    "Objects that the agent of a managed cluster applies there.",
    {"spec": work_spec("What is wanted."), "status": _STATUS},
)
