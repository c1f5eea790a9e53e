"""ClusterManagementAddOn in its two versions."""

from hub.fleet.schema.common import (
    ADDON_COORDINATES,
    ADDON_META,
    CONDITIONS,
    PLACEMENT_NAME,
    config,
    config_hash,
    config_kind,
    config_name,
)
from hub.fleet.schema.node import Fields, Node, array, obj, root, text
from hub.fleet.schema.rollout import rollout_strategy

_ABOUT = "An add-on, and on which clusters it is installed."
_PLACEMENT = obj(
    "A Placement whose clusters get the add-on.",
    {
        **PLACEMENT_NAME,
        "configs": array("Configs of the add-on on these clusters.", config("One config.")),
        "rolloutStrategy": rollout_strategy({"type": "All"}),
    },
)
_SPEC: Fields = {
    "addOnMeta": ADDON_META,
    "installStrategy": obj(
        "How it comes to clusters.",
        {
            "placements": array("The placements.", _PLACEMENT, keys=("namespace", "name")),
            "type": text(
                "By hand, or wherever placements say.",
                enum=("Manual", "Placements"),
                default="Manual",
            ),
        },
        default={"type": "Manual"},
    ),
}
_DEFAULT_REFERENCE = config_kind(
    "A default config.", desiredConfig=config_hash("The config that is wanted.")
)
_REFERENCE = config_kind(
    "A config in use.",
    desiredConfig=config_hash("The config that is wanted."),
    lastAppliedConfig=config_hash("The config that all clusters had last."),
    lastKnownGoodConfig=config_hash("The config that all clusters had last without a failure."),
)
_PROGRESSION = obj(
    "How far the add-on has come with one placement.",
    {
        **PLACEMENT_NAME,
        "conditions": CONDITIONS,
        "configReferences": array("The configs.", _REFERENCE),
    },
)
_KEYS = ("group", "resource")


def _addon(spec: Fields, references: str) -> Node:
    status = {
        references: array("The default configs.", _DEFAULT_REFERENCE),
        "installProgressions": array("One entry a placement.", _PROGRESSION),
    }
    return root(
        _ABOUT,
        {
            "spec*": obj("What is wanted.", {**_SPEC, **spec}),
            "status": obj("How far it has come.", status),
        },
    )


V1ALPHA1 = _addon(
    {
        "addOnConfiguration": ADDON_COORDINATES,
        "supportedConfigs": array(
            "Kinds of config that the add-on reads.",
            config_kind("One kind.", defaultConfig=config_name("What is used without another.")),
            keys=_KEYS,
        ),
    },
    # the small c is upstream's
    references="defaultconfigReferences",
)
V1BETA1 = _addon(
    {"defaultConfigs": array("Configs used without others.", config("One config."), keys=_KEYS)},
    references="defaultConfigReferences",
)
