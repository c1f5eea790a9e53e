"""What several kinds have in common: patterns, conditions, selectors, add-on configs."""

from hub.fleet.schema.node import Node, array, int_or_text, mapping, obj, text, time, whole

_LOWER = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DNS_LABEL = f"^{_LOWER}$"
DNS_SUBDOMAIN = rf"^({_LOWER}(\.{_LOWER})*)$"
QUALIFIED_NAME = (
    rf"^({_LOWER}(\.{_LOWER})*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"  # prefix/name
)
SIGNER_NAME = r"^([a-z0-9][a-z0-9-]*[a-z0-9]\.)+[a-z]+\/[a-z0-9-\.]+$"

_NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
_QUANTITY = rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$"
QUANTITY = int_or_text(pattern=_QUANTITY)

INSTALL_NAMESPACE = "open-cluster-management-agent-addon"

_CONDITION = obj(
    "One aspect of the state of this object.",
    {
        "lastTransitionTime*": time("When status last changed."),
        "message*": text("Details for people, may be empty.", at_most=32768),
        "observedGeneration": whole(
            "The metadata.generation that the condition was made from.", bits=64, at_least=0
        ),
        "reason*": text(
            "Why status is what it is, as one word for programs.",
            at_least=1,
            at_most=1024,
            pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        ),
        "status*": text("Whether it holds.", enum=("True", "False", "Unknown")),
        "type*": text("Which aspect it is.", at_most=316, pattern=QUALIFIED_NAME),
    },
)
_CONDITIONS_ABOUT = "What is known about the state, one entry a type."
CONDITIONS = array(_CONDITIONS_ABOUT, _CONDITION, keys=("type",))
LOOSE_CONDITIONS = array(_CONDITIONS_ABOUT, _CONDITION)
"""Conditions of cluster sets and their bindings, a plain list to server-side apply."""

_REQUIREMENT = obj(
    "A test of one key.",
    {
        "key*": text("The key tested."),
        "operator*": text("In, NotIn, Exists or DoesNotExist."),
        "values": array("What In and NotIn compare with.", text(), is_atomic=True),
    },
)
LABEL_SELECTOR = obj(
    "Selects by labels; all conditions must hold.",
    {
        "matchExpressions": array("Tests of labels.", _REQUIREMENT, is_atomic=True),
        "matchLabels": mapping("Labels and the values that they must have.", text()),
    },
    is_atomic=True,
)
CLAIM_SELECTOR = obj(
    "Selects by the claims in a cluster's status; all conditions must hold.",
    {"matchExpressions": array("Tests of claims.", _REQUIREMENT)},
)

TAINT_EFFECTS = ("NoSelect", "PreferNoSelect", "NoSelectIfNew")

_RESOURCE = {
    "group": text("API group of the config's kind.", default=""),
    "resource*": text("Plural name of the config's kind.", at_least=1),
}
_CONFIG = {
    "name*": text("Name of the config object.", at_least=1),
    "namespace": text("Its namespace, empty when its kind has none."),
}


def config_kind(about: str, **fields: Node) -> Node:
    """Return an object that names a kind of config, and has `fields` beside."""
    return obj(about, {**_RESOURCE, **fields})


def config(about: str, **fields: Node) -> Node:
    """Return an object that names one config object, and has `fields` beside."""
    return obj(about, {**_RESOURCE, **_CONFIG, **fields})


def config_name(about: str) -> Node:
    """Return an object that names a config whose kind is known."""
    return obj(about, _CONFIG)


def config_hash(about: str) -> Node:
    """Return an object that names a config and tells what its spec was."""
    return obj(about, {**_CONFIG, "specHash": text("Hash of its spec.")})


ADDON_META = obj(
    "What people are told about the add-on.",
    {
        "description": text("What the add-on does."),
        "displayName": text("Its name for people."),
    },
)
ADDON_COORDINATES = obj(
    "Deprecated: where the add-on's configuration is.",
    {
        "crName": text("Name of the configuration object."),
        "crdName": text("Name of its CustomResourceDefinition."),
        "lastObservedGeneration": whole("Its generation last seen.", bits=64),
    },
)
PLACEMENT_NAME = {
    "name*": text("Name of the Placement.", at_least=1),
    "namespace*": text("Namespace of the Placement.", at_least=1),
}
