"""What the tour of kubectl's commands reads: manifests by name, and files.

In a manifest, UID:NAME stands for the uid of that ConfigMap, REQUEST for a certificate request.
"""

FILES: dict[str, bytes] = {
    "text.txt": b"hi\n",
    "some.env": b"A=1\nB=2\n",
    "binary.dat": b"\x00\x01\xff",
}


def _config_map(name: str, data: str = "", meta: str = "") -> str:
    return (
        f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: tour{meta}}}"
        f"{data}}}\n"
    )


def _dependent(name: str, owner: str, extra: str = "") -> str:
    return _config_map(
        name,
        meta=", ownerReferences: [{apiVersion: v1, kind: ConfigMap, "
        f"name: {owner}, uid: 'UID:{owner}'{extra}}}]",
    )


_RBAC = "apiVersion: rbac.authorization.k8s.io/v1"
_SUBJECT = "{kind: User, name: ann, apiGroup: rbac.authorization.k8s.io}"


def _roles(verbs: str, subjects: str) -> str:
    rules = f"rules: [{{apiGroups: [''], resources: [configmaps], verbs: {verbs}}}]"
    documents = []
    for prefix, name, place in (
        ("", "reconciled", "namespace: tour, "),
        ("Cluster", "tour-reconciled", ""),
    ):
        meta = f"metadata: {{{place}name: {name}}}"
        ref = f"{{apiGroup: rbac.authorization.k8s.io, kind: {prefix}Role, name: {name}}}"
        documents += [
            f"{_RBAC}\nkind: {prefix}Role\n{meta}\n{rules}\n",
            f"{_RBAC}\nkind: {prefix}RoleBinding\n{meta}\nroleRef: {ref}\nsubjects: {subjects}\n",
        ]
    return "---\n".join(documents)


_WIDGETS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.tour.example.com}
spec:
  group: tour.example.com
  names: {kind: Widget, plural: widgets, singular: widget, shortNames: [wgt]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale:
        specReplicasPath: .spec.replicas
        statusReplicasPath: .status.replicas
        labelSelectorPath: .status.selector
    additionalPrinterColumns:
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    - {name: Since, type: date, jsonPath: .metadata.creationTimestamp}
    - {name: Ok, type: boolean, jsonPath: .spec.ok, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              replicas: {type: integer, maximum: 5}
              ok: {type: boolean}
              tags: {type: array, items: {type: string}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""

MANIFESTS: dict[str, str] = {
    "plain": _config_map("plain", ", data: {a: b, hello: world}"),
    "plain-changed": _config_map("plain", ", data: {a: c, hello: world}"),
    "plain-stale": _config_map("plain", ", data: {a: d}", ", resourceVersion: '1'"),
    "absent": _config_map("absent"),
    "unknown-field": _config_map("unknown", ", dat: {a: d}"),
    "unknown-fields": _config_map("unknown", ", dat: {a: d}, data: {a: b}", ", nam: x"),
    "generated": "{apiVersion: v1, kind: ConfigMap,"
    " metadata: {generateName: gen-, namespace: tour}}",
    "nowhere": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: nowhere}}",
    "no-such-kind": "{apiVersion: v1, kind: Nope, metadata: {name: a}}",
    "list": "apiVersion: v1\nkind: List\nitems:\n- "
    + _config_map("listed")
    + "- {apiVersion: v1, kind: Secret, metadata: {name: listed, namespace: tour},"
    " stringData: {a: b}}\n",
    "pruned-1": "{apiVersion: v1, kind: Secret, metadata: {name: p1, labels: {app: x}}}",
    "pruned-2": "{apiVersion: v1, kind: Secret, metadata: {name: p2, labels: {app: x}},"
    " stringData: {a: b}}",
    "owned-background": _dependent("owned-background", "owner-background"),
    "owned-foreground": _dependent(
        "owned-foreground", "owner-foreground", ", blockOwnerDeletion: true"
    ),
    "owned-orphan": _dependent("owned-orphan", "owner-orphan"),
    "roles": _roles("[get]", f"[{_SUBJECT}]"),
    "roles-more": _roles("[get, list]", f"[{_SUBJECT}, {_SUBJECT.replace('ann', 'bob')}]"),
    "request": "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\n"
    "metadata: {name: tour-csr}\nspec: {request: REQUEST, signerName: example.com/tour,"
    " usages: [client auth], expirationSeconds: 3600}\n",
    "widgets": _WIDGETS,
    "widget": "{apiVersion: tour.example.com/v1, kind: Widget, metadata: {name: w1},"
    " spec: {replicas: 1, ok: true}}",
    "widget-changed": "{apiVersion: tour.example.com/v1, kind: Widget, metadata: {name: w1},"
    " spec: {replicas: 2, ok: true, tags: [a]}}",
    "widget-bad": "{apiVersion: tour.example.com/v1, kind: Widget, metadata: {name: w2},"
    " spec: {replicas: 7, ok: 1, other: x}}",
}
