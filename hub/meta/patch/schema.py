"""Which lists of the built-in kinds a strategic merge patch merges, and by what.

Owns facts of the public Kubernetes API (``patchStrategy`` and ``patchMergeKey`` of k8s.io/api and
k8s.io/apimachinery). A list that is not named here is replaced as a whole: RBAC's rules and
subjects, a CertificateSigningRequest's conditions and a ServiceAccount's imagePullSecrets are such.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PatchSchema:
    """How the fields of one object merge.

    `lists` names the lists that are merged: the member that tells their items apart, "" for a set
    of texts. `below` has the schema of an object, or of a merged list's items; a field without one
    holds no merged lists.
    """

    lists: Mapping[str, str] = field(default_factory=dict)
    below: Mapping[str, "PatchSchema"] = field(default_factory=dict)

    def under(self, name: str) -> "PatchSchema":
        """Return the schema below a field."""
        return self.below.get(name, PLAIN)


PLAIN = PatchSchema()
"""Objects merge, lists are replaced."""

_METADATA = {"metadata": PatchSchema({"ownerReferences": "uid", "finalizers": ""})}
_ORDINARY = PatchSchema(below=_METADATA)
_SPECIAL = {
    ("v1", "Namespace"): PatchSchema(
        below={**_METADATA, "status": PatchSchema({"conditions": "type"})}
    ),
    ("v1", "ServiceAccount"): PatchSchema({"secrets": "name"}, below=_METADATA),
}


def find_schema(api_version: str, kind: str) -> PatchSchema:
    """Return how a built-in kind merges; for custom kinds there is no strategic merge."""
    return _SPECIAL.get((api_version, kind), _ORDINARY)
