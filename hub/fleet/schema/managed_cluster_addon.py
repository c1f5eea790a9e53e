"""ManagedClusterAddOn in its two versions."""

from hub.fleet.schema.common import (
    ADDON_COORDINATES,
    ADDON_META,
    CONDITIONS,
    DNS_LABEL,
    INSTALL_NAMESPACE,
    SIGNER_NAME,
    config,
    config_hash,
    config_kind,
)
from hub.fleet.schema.node import Fields, Node, array, obj, root, text, whole

_ABOUT = "An add-on on one managed cluster."
_CONFIGS: Fields = {"configs": array("Configs of this add-on here.", config("One config."))}
_OBJECT = obj(
    "An object that belongs to the add-on.",
    {
        "group*": text("Its API group."),
        "name*": text("Its name."),
        "namespace": text("Its namespace, empty when its kind has none."),
        "resource*": text("Plural name of its kind."),
    },
)
_USER: Fields = {
    "groups": array("Groups (O) of the certificate.", text()),
    "user": text("User (CN) of the certificate."),
}
_SIGNER = text("The signer.", at_least=5, at_most=571, pattern=SIGNER_NAME)
_DRIVERS = ("csr", "token")


def _subject(**fields: Node) -> Node:
    return obj("Who the add-on's agent is to be.", {**_USER, **fields})


def _status(reference: Node, registration: Node, **fields: Node) -> Node:
    common = {
        "addOnMeta": ADDON_META,
        "conditions": CONDITIONS,
        "configReferences": array("The configs in use.", reference),
        "healthCheck": obj(
            "How its health is told.",
            {
                "mode": text(
                    "By its lease, or by whoever manages it.",
                    enum=("Lease", "Customized"),
                    default="Lease",
                )
            },
        ),
        "namespace": text("The namespace that its agent runs in."),
        "registrations": array("Identities that its agent asks for.", registration),
        "relatedObjects": array("Objects that belong to it.", _OBJECT),
        "supportedConfigs": array(
            "Kinds of config that it reads.",
            config_kind("One kind."),
            keys=("group", "resource"),
        ),
    }
    return obj("What became of the add-on.", {**common, **fields})


_REFERENCE: Fields = {
    "desiredConfig": config_hash("The config that is wanted."),
    "lastAppliedConfig": config_hash("The config that was applied last."),
    "lastObservedGeneration": whole("Its generation last seen.", bits=64),
}
_REGISTRATION_V1ALPHA1 = obj(
    "One identity.",
    {
        "signerName*": _SIGNER,
        "subject": _subject(organizationUnit=array("Organization units (OU).", text())),
    },
)
V1ALPHA1 = root(
    _ABOUT,
    {
        "spec*": obj(
            "What is wanted of it.",
            {
                **_CONFIGS,
                "installNamespace": text(
                    "The namespace that its agent is installed in.",
                    at_most=63,
                    pattern=DNS_LABEL,
                    default=INSTALL_NAMESPACE,
                ),
            },
        ),
        "status": _status(
            config("A config in use; name and namespace are deprecated.", **_REFERENCE),
            _REGISTRATION_V1ALPHA1,
            addOnConfiguration=ADDON_COORDINATES,
            kubeClientDriver=text("How its agent gets to the hub's API.", enum=_DRIVERS),
        ),
    },
)

_REGISTRATION_V1BETA1 = obj(
    "One identity.",
    {
        "customSigner": obj(
            "A certificate of a signer that is not the hub's.",
            {
                "signerName*": _SIGNER,
                "subject": _subject(organizationUnits=array("Organization units (OU).", text())),
            },
        ),
        "kubeClient": obj(
            "A client of the hub's API.",
            {
                "driver": text("By certificate or by token.", enum=_DRIVERS),
                "subject": _subject(),
            },
        ),
        "type*": text("Which of the two it is.", enum=("kubeClient", "customSigner")),
    },
)
V1BETA1 = root(
    _ABOUT,
    {
        "spec*": obj("What is wanted of it.", _CONFIGS),
        "status": _status(config_kind("A config in use.", **_REFERENCE), _REGISTRATION_V1BETA1),
    },
)
