"""AddOnDeploymentConfig; its versions are alike."""

from hub.fleet.schema.common import DNS_LABEL, INSTALL_NAMESPACE, QUANTITY
from hub.fleet.schema.node import array, data, mapping, obj, root, text, whole

_VARIABLE = obj(
    "A variable of the add-on's manifests.",
    {
        "name*": text("Its name.", at_most=255, pattern="^[a-zA-Z_][_a-zA-Z0-9]*$"),
        "value": text("Its value.", at_most=1024),
    },
)
_TOLERATION = obj(
    "Which taints of nodes do not matter.",
    {
        "effect": text("Effect of the taints, empty = any."),
        "key": text("Their key, empty = any."),
        "operator": text("How value is compared."),
        "tolerationSeconds": whole("For how long; absent = for ever.", bits=64),
        "value": text("Their value."),
    },
)
_PROXY = obj(
    "How the agent gets out.",
    {
        "caBundle": data("The CA that the HTTPS proxy's certificate chains to."),
        "httpProxy": text("URL of the proxy for HTTP."),
        "httpsProxy": text("URL of the proxy for HTTPS."),
        "noProxy": text("Hosts and networks that need no proxy, between commas."),
    },
)
_REGISTRY = obj(
    "Where images are taken from instead.",
    {
        "mirror*": text("The registry that has them."),
        "source": text("The registry named in the manifests, empty = any."),
    },
)
_CLAIM = obj(
    "A claim of the pod that the container uses.",
    {
        "name*": text("Its name."),
        "request": text("The request in it, empty = all."),
    },
)
_RESOURCES = obj(
    "Resources of some of the agent's containers.",
    {
        "containerID*": text(
            "Which containers, as resource:object:container; each may be a star.",
            pattern=(
                r"^(deployments|daemonsets|statefulsets|replicasets|jobs|cronjobs|pods|\*):.+:.+$"
            ),
        ),
        "resources*": obj(
            "What they get.",
            {
                "claims": array("Claims used.", _CLAIM, keys=("name",)),
                "limits": mapping("What they get at most.", QUANTITY),
                "requests": mapping("What they get at least.", QUANTITY),
            },
        ),
    },
)
_SPEC = obj(
    "How the agent of an add-on is deployed.",
    {
        "agentInstallNamespace": text(
            "The namespace that it is installed in; empty = the add-on's own choice.",
            at_most=63,
            # as DNS_LABEL, or nothing
            pattern=f"^({DNS_LABEL[1:-1]})?$",
            default=INSTALL_NAMESPACE,
        ),
        "customizedVariables": array("Variables of its manifests.", _VARIABLE, keys=("name",)),
        "nodePlacement": obj(
            "Which nodes it runs on.",
            {
                "nodeSelector": mapping("Labels that the nodes must have.", text()),
                "tolerations": array("Which taints do not matter.", _TOLERATION),
            },
        ),
        "proxyConfig": _PROXY,
        "registries": array("Where its images come from.", _REGISTRY),
        "resourceRequirements": array(
            "Resources of its containers.", _RESOURCES, keys=("containerID",)
        ),
    },
)
V1ALPHA1 = V1BETA1 = root("How the agents of add-ons are deployed.", {"spec*": _SPEC})
