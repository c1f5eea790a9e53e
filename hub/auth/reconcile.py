"""Bringing default roles and bindings up to date without taking away what an operator has added.

Pure; mirrors pkg/registry/rbac/reconciliation as kube-apiserver uses it at its start: missing
rules, selectors, subjects, labels and annotations are added, nothing is removed, and an object
marked ``autoupdate: "false"`` is left alone.
"""

from hub.auth.bootstrap_policy import AUTO_UPDATE
from hub.auth.coverage import compact, uncovered
from hub.auth.rule import Rule, parse_rules
from hub.meta import Obj


def is_left_alone(present: Obj) -> bool:
    """Whether an operator has said that this object is theirs."""
    annotations = (present.get("metadata") or {}).get("annotations") or {}
    return bool(annotations.get(AUTO_UPDATE) == "false")


def has_other_role(present: Obj, wanted: Obj) -> bool:
    """Whether a binding gives another role than it should: it must be made anew."""
    return bool(wanted.get("roleRef") != present.get("roleRef"))


def complete(present: Obj, wanted: Obj) -> None:
    """Add to `present`, in place, what it lacks of `wanted`."""
    meta = present["metadata"]
    for field in ("labels", "annotations"):
        merged = {**(wanted["metadata"].get(field) or {}), **(meta.get(field) or {})}
        if merged:
            meta[field] = merged
    if "subjects" in wanted:
        present["subjects"] = _with_missing(present.get("subjects"), wanted["subjects"])
    elif "aggregationRule" in wanted:
        own = (present.get("aggregationRule") or {}).get("clusterRoleSelectors")
        selectors = wanted["aggregationRule"]["clusterRoleSelectors"]
        present["aggregationRule"] = {"clusterRoleSelectors": _with_missing(own, selectors)}
    elif "rules" in wanted:
        lacking = compact(uncovered(parse_rules(present), parse_rules(wanted)))
        present["rules"] = [*(present.get("rules") or []), *(_as_obj(r) for r in lacking)]


def _with_missing(own: list[Obj] | None, wanted: list[Obj]) -> list[Obj]:
    kept = own or []
    return [*kept, *(item for item in wanted if item not in kept)]


def _as_obj(rule: Rule) -> Obj:
    lists = {
        "verbs": rule.verbs,
        "apiGroups": rule.api_groups,
        "resources": rule.resources,
        "resourceNames": rule.resource_names,
        "nonResourceURLs": rule.urls,
    }
    return {field: list(values) for field, values in lists.items() if values}
