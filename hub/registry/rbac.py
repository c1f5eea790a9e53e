"""The four RBAC kinds: their defaults, columns and what makes one invalid.

Mirrors k8s.io/kubernetes/pkg/apis/rbac/validation. Who may write them is `hub.auth.escalation`'s
business; what they allow is `hub.auth.rbac`'s.
"""

from hub.auth.bootstrap_policy import API_GROUP
from hub.meta import Obj
from hub.meta.causes import invalid_value, not_supported, required
from hub.meta.errors import Cause
from hub.meta.names import path_segment_errors, subdomain_errors
from hub.meta.selectorcauses import label_selector_causes
from hub.registry.kind import Kind, View
from hub.registry.printing import (
    Printer,
    age_printer,
    computed,
    created_printer,
    name_printer,
)
from hub.registry.strategy import Strategy
from hub.registry.tabled import shape_of

_SUBJECT_KINDS = ("ServiceAccount", "User", "Group")


class RbacStrategy(Strategy):
    """What the four kinds share: names may hold colons."""

    def __init__(self, *, is_namespaced: bool) -> None:
        self._is_namespaced = is_namespaced

    def name_problems(self, name: str) -> list[str]:
        """Return why `name` could not stand in a path."""
        return path_segment_errors(name)


class RoleStrategy(RbacStrategy):
    """Rules for resources or, in a ClusterRole, for paths; or selectors of roles to take from."""

    def default(self, obj: Obj) -> None:
        """Write the rules even when there are none, as the JSON of Go's type does."""
        obj.setdefault("rules", None)

    def validate(self, obj: Obj) -> list[Cause]:
        """Check each rule and each selector."""
        causes: list[Cause] = []
        for position, rule in enumerate(obj.get("rules") or ()):
            causes += self._rule_causes(rule, f"rules[{position}]")
        aggregation = obj.get("aggregationRule")
        if aggregation is None or self._is_namespaced:
            return causes
        field = "aggregationRule.clusterRoleSelectors"
        selectors = aggregation.get("clusterRoleSelectors") or []
        if not selectors:
            detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            causes.append(required(field, detail))
        for position, selector in enumerate(selectors):
            found = label_selector_causes(selector, f"{field}[{position}]")
            if found:
                found.append(invalid_value(f"{field}[{position}]", None, "invalid label selector."))
            causes += found
        return causes

    def _rule_causes(self, rule: Obj, field: str) -> list[Cause]:
        causes: list[Cause] = []
        if not rule.get("verbs"):
            causes.append(required(f"{field}.verbs", "verbs must contain at least one value"))
        urls = rule.get("nonResourceURLs")
        if urls:
            where = f"{field}.nonResourceURLs"
            if self._is_namespaced:
                detail = "namespaced rules cannot apply to non-resource URLs"
                causes.append(invalid_value(where, urls, detail))
            if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                causes.append(invalid_value(where, urls, detail))
            return causes
        for name, noun in (("apiGroups", "api group"), ("resources", "resource")):
            if not rule.get(name):
                detail = f"resource rules must supply at least one {noun}"
                causes.append(required(f"{field}.{name}", detail))
        return causes


class BindingStrategy(RbacStrategy):
    """Subjects and roleRef get the API groups they leave out; roleRef never changes."""

    def default(self, obj: Obj) -> None:
        """Default the groups: users and groups belong to RBAC, ServiceAccounts to the core."""
        role = obj.setdefault("roleRef", {})
        role["apiGroup"] = role.get("apiGroup") or API_GROUP
        for subject in obj.get("subjects") or []:
            if subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = subject.get("apiGroup") or API_GROUP

    def validate(self, obj: Obj) -> list[Cause]:
        """Check the role's kind and name, and each subject."""
        role = obj["roleRef"]
        kinds = ("Role", "ClusterRole") if self._is_namespaced else ("ClusterRole",)
        causes: list[Cause] = []
        if role["apiGroup"] != API_GROUP:
            causes.append(not_supported("roleRef.apiGroup", role["apiGroup"], [API_GROUP]))
        if role.get("kind") not in kinds:
            causes.append(not_supported("roleRef.kind", role.get("kind") or "", kinds))
        name = role.get("name") or ""
        if not name:
            causes.append(required("roleRef.name"))
        causes += [invalid_value("roleRef.name", name, e) for e in path_segment_errors(name)]
        for position, subject in enumerate(obj.get("subjects") or ()):
            causes += self._subject_causes(subject, f"subjects[{position}]")
        return causes

    def _subject_causes(self, subject: Obj, field: str) -> list[Cause]:
        kind, name = subject.get("kind") or "", subject.get("name") or ""
        group = subject.get("apiGroup") or ""
        causes = [] if name else [required(f"{field}.name")]
        if kind not in _SUBJECT_KINDS:
            return [*causes, not_supported(f"{field}.kind", kind, _SUBJECT_KINDS)]
        is_account = kind == "ServiceAccount"
        if is_account and name:
            causes += [invalid_value(f"{field}.name", name, e) for e in subdomain_errors(name)]
        wanted = "" if is_account else API_GROUP
        if group != wanted:
            causes.append(not_supported(f"{field}.apiGroup", group, [wanted]))
        if is_account and not self._is_namespaced and not subject.get("namespace"):
            causes.append(required(f"{field}.namespace"))
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Refuse another roleRef."""
        if new.get("roleRef") == old.get("roleRef"):
            return []
        # the names of Go's internal type, which has no JSON ones
        given = {n: new["roleRef"].get(n[0].lower() + n[1:]) or "" for n in ("Kind", "Name")}
        shown = {"APIGroup": new["roleRef"]["apiGroup"], **given}
        return [invalid_value("roleRef", shown, "cannot change roleRef")]


def _role_ref(obj: Obj) -> str:
    role = obj.get("roleRef") or {}
    return f"{role.get('kind')}/{role.get('name')}"


def _named_subjects(obj: Obj, kind: str) -> str:
    found = [s for s in obj.get("subjects") or () if s.get("kind") == kind]
    if kind == "ServiceAccount":
        return ", ".join(f"{s.get('namespace') or ''}/{s.get('name')}" for s in found)
    return ", ".join(str(s.get("name")) for s in found)


def _subjects_printer(name: str, kind: str) -> Printer:
    return computed(
        name,
        lambda obj: _named_subjects(obj, kind),
        description=f"The subjects of kind {kind}.",
        priority=1,
    )


def _role_kind(kind: str, plural: str, *, is_namespaced: bool) -> Kind:
    shape = shape_of(f"{API_GROUP}/v1", kind)
    printers = (name_printer(), created_printer())
    return Kind(
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        views=(View(API_GROUP, "v1", printers=printers, shape=shape),),
        is_namespaced=is_namespaced,
        strategy=RoleStrategy(is_namespaced=is_namespaced),
    )


def _binding_kind(kind: str, plural: str, *, is_namespaced: bool) -> Kind:
    role = computed("Role", _role_ref, description="The role that is bound.")
    shape = shape_of(f"{API_GROUP}/v1", kind)
    printers = (
        name_printer(),
        role,
        age_printer(),
        _subjects_printer("Users", "User"),
        _subjects_printer("Groups", "Group"),
        _subjects_printer("ServiceAccounts", "ServiceAccount"),
    )
    return Kind(
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        views=(View(API_GROUP, "v1", printers=printers, shape=shape),),
        is_namespaced=is_namespaced,
        strategy=BindingStrategy(is_namespaced=is_namespaced),
    )


ROLE = _role_kind("Role", "roles", is_namespaced=True)
ROLE_BINDING = _binding_kind("RoleBinding", "rolebindings", is_namespaced=True)
CLUSTER_ROLE = _role_kind("ClusterRole", "clusterroles", is_namespaced=False)
CLUSTER_ROLE_BINDING = _binding_kind(
    "ClusterRoleBinding", "clusterrolebindings", is_namespaced=False
)
