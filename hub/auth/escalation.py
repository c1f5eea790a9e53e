"""Nobody may grant more than they hold: the checks on writing roles and bindings.

Mirrors k8s.io/kubernetes/pkg/registry/rbac (escalation_check.go and the ``policybased`` storages):
a role may be written by who holds all its rules or has the verb ``escalate`` on it, a binding by
who holds all rules of its role or has the verb ``bind`` on the role. Members of system:masters are
asked nothing, and neither is an update that changes owner references or finalizers alone.
"""

from collections.abc import Sequence

from hub.auth.bootstrap_policy import API_GROUP
from hub.auth.coverage import TooManyGrantsError, compact, describe, quote_list, uncovered
from hub.auth.rbac import Authorizer, quote
from hub.auth.rule import Rule, parse_rules
from hub.auth.user import MASTERS, Attributes, User
from hub.meta import Obj
from hub.meta.errors import Resource, forbidden, not_found

_EVERYTHING = parse_rules(
    {
        "rules": [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
            {"verbs": ["*"], "nonResourceURLs": ["*"]},
        ]
    }
)
_AGGREGATION = "must have cluster-admin privileges to use the aggregationRule"
_COLLECTOR_FIELDS = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")


class EscalationGuard:
    """Refuses (403) what would give rights that its writer does not hold.

    `new` is the object as it would be stored, `old` the one before, None on create.
    """

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def check(self, user: User, new: Obj, old: Obj | None, *, plural: str) -> None:
        """Check a write to the RBAC resource `plural`; 404 when a binding's role does not exist."""
        if MASTERS in user.groups or _is_for_collector(new, old):
            return
        if plural.endswith("bindings"):
            self._check_binding(user, new, Resource(API_GROUP, plural))
        else:
            self._check_role(user, new, old, Resource(API_GROUP, plural))

    def _check_role(self, user: User, new: Obj, old: Obj | None, resource: Resource) -> None:
        name, namespace = _named(new)
        # a POST names no object, so resourceNames never allow it
        asked = name if old is not None else ""
        if self._may(user, "escalate", resource.resource, namespace=namespace, name=asked):
            return
        self._confirm(user, parse_rules(new), resource, name=name, namespace=namespace)
        if _is_aggregated(new) or (old is not None and _is_aggregated(old)):
            self._confirm(user, _EVERYTHING, resource, name=name, detail=_AGGREGATION)

    def _check_binding(self, user: User, new: Obj, resource: Resource) -> None:
        name, namespace = _named(new)
        ref = new.get("roleRef") or {}
        kind, role = str(ref.get("kind") or ""), str(ref.get("name") or "")
        roles = {"ClusterRole": "clusterroles", "Role": "roles"}.get(kind)
        if roles is None or (kind == "Role" and not namespace):
            return  # validation refuses it
        if self._may(user, "bind", roles, namespace=namespace, name=role):
            return
        rules = self._authorizer.rules_of(kind, namespace, role)
        if rules is None:
            raise not_found(resource, role)
        self._confirm(user, rules, resource, name=name, namespace=namespace)

    def _may(self, user: User, verb: str, resource: str, *, namespace: str, name: str) -> bool:
        asked = Attributes(verb, API_GROUP, "*", resource, namespace=namespace, name=name)
        return self._authorizer.authorize(user, asked).allowed

    def _confirm(
        self,
        user: User,
        rules: Sequence[Rule],
        resource: Resource,
        *,
        name: str,
        namespace: str = "",
        detail: str = "",
    ) -> None:
        owned, missing = self._authorizer.held_by(user, namespace)
        try:
            lacking = uncovered(owned, rules)
        except TooManyGrantsError as error:
            raise forbidden(resource, name, str(error)) from error
        if not lacking:
            return
        if not detail:
            listed = "\n".join(sorted({describe(rule) for rule in compact(lacking)}))
            detail = (
                f"user {quote(user.name)} (groups={quote_list(user.groups)}) is attempting to "
                f"grant RBAC permissions not currently held:\n{listed}"
                f"{_resolution_errors(resource, missing)}"
            )
        raise forbidden(resource, name, detail)


def _resolution_errors(resource: Resource, missing: Sequence[str]) -> str:
    """Return what kept bindings of the user from counting: their roles are gone."""
    if not missing:
        return ""
    # kube-apiserver names the resource of the request here, whatever the missing role's is
    texts = ", ".join(f"{resource} {quote(role)} not found" for role in missing)
    return f"; resolution errors: [{texts if len(missing) == 1 else f'[{texts}]'}]"


def _named(obj: Obj) -> tuple[str, str]:
    """Return name and namespace."""
    meta = obj["metadata"]
    return str(meta.get("name") or ""), str(meta.get("namespace") or "")


def _is_aggregated(role: Obj) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _is_for_collector(new: Obj, old: Obj | None) -> bool:
    """Whether nothing changes but what the garbage collector must be able to change."""
    return old is not None and _comparable(new) == _comparable(old)


def _comparable(obj: Obj) -> Obj:
    meta = {k: v for k, v in obj["metadata"].items() if k not in _COLLECTOR_FIELDS}
    return {**obj, "metadata": meta}
