"""AddOnTemplate; its versions are alike."""

from hub.fleet.schema.common import SIGNER_NAME
from hub.fleet.schema.manifest_work import work_spec
from hub.fleet.schema.node import array, obj, root, text

_ROLE_REF = obj(
    "A role.",
    {
        "apiGroup*": text("Its API group."),
        "kind*": text("Role or ClusterRole."),
        "name*": text("Its name."),
    },
    is_atomic=True,
)
_PERMISSION = obj(
    "Rights on the hub.",
    {
        "currentCluster": obj(
            "Rights in the namespace of the cluster.",
            {"clusterRoleName*": text("The ClusterRole that the agent gets there.")},
        ),
        "singleNamespace": obj(
            "Rights in one namespace of the hub.",
            {"namespace*": text("The namespace."), "roleRef*": _ROLE_REF},
        ),
        "type*": text("Which of the two they are.", enum=("CurrentCluster", "SingleNamespace")),
    },
)
_CUSTOM_SIGNER = obj(
    "A certificate of a signer that is not the hub's.",
    {
        "signerName*": text("The signer.", at_least=5, at_most=571, pattern=SIGNER_NAME),
        "signingCA*": obj(
            "The Secret that has the signer's CA.",
            {"name*": text("Its name."), "namespace": text("Its namespace.")},
        ),
        "subject": obj(
            "Who the add-on's agent is to be.",
            {
                "groups": array("Groups (O) of the certificate.", text()),
                "organizationUnit": array("Organization units (OU).", text()),
                "user": text("User (CN) of the certificate."),
            },
        ),
    },
)
_REGISTRATION = obj(
    "One identity.",
    {
        "customSigner": _CUSTOM_SIGNER,
        "kubeClient": obj(
            "A client of the hub's API.",
            {"hubPermissions": array("What it may do there.", _PERMISSION)},
        ),
        "type*": text("Which of the two it is.", enum=("KubeClient", "CustomSigner")),
    },
)
_SPEC = obj(
    "The add-on.",
    {
        "addonName*": text("Its name."),
        "agentSpec*": work_spec("What is applied on a cluster that gets it."),
        "registration": array("Identities that its agent asks for.", _REGISTRATION),
    },
)
V1ALPHA1 = V1BETA1 = root(
    "An add-on as a template, without a manager of its own.", {"spec*": _SPEC}
)
