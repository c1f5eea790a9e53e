"""RBAC: an index over the four kinds that answers a check in microseconds.

Mirrors kube-apiserver's RBAC authoriser (pkg/registry/rbac/validation/rule.go), which walks every
binding at each request; a hub has four objects for each of thousands of clusters, so here a
dictionary leads from a user or group, then a namespace, to the bindings that name it. Invariant:
the index equals what a walk over all applied objects would find, in whatever order they were
applied.

Not here: escalation checks on writing roles (`hub.auth.escalation`), and ClusterRole aggregation,
which a controller writes into the stored rules.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hub.auth.rule import Rule, parse_rules
from hub.auth.user import MASTERS, Attributes, User, service_account_name
from hub.meta import Obj

Kind: TypeAlias = Literal["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"]
RoleKey: TypeAlias = tuple[str, str]
"""(namespace, name); the namespace of a ClusterRole is empty."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer. `reason` says what allowed it, or is the sentence that a 403 carries."""

    allowed: bool
    reason: str
    trouble: str = ""
    """What kept bindings from being evaluated: roles that do not exist."""

    def review_status(self) -> Obj:
        """Return the status of an access review, which does not repeat the sentence of the 403."""
        reason = self.reason if self.allowed else self.trouble
        return {"allowed": self.allowed} | ({"reason": reason} if reason else {})


@dataclass(frozen=True, slots=True)
class RulesReview:
    """All rules of a user in one namespace, as SelfSubjectRulesReview shows them."""

    resource_rules: list[Obj]
    non_resource_rules: list[Obj]
    trouble: str

    def review_status(self) -> Obj:
        """Return the status of a SelfSubjectRulesReview."""
        status: Obj = {
            "resourceRules": self.resource_rules,
            "nonResourceRules": self.non_resource_rules,
            "incomplete": False,
        }
        return status | ({"evaluationError": self.trouble} if self.trouble else {})


@dataclass(frozen=True, slots=True)
class _Binding:
    """A parsed binding. `subjects` maps user and group keys to how they are described."""

    namespace: str
    name: str
    role_kind: str
    role: RoleKey
    subjects: dict[str, str]

    def describe(self, subject: str) -> str:
        kind = "RoleBinding" if self.namespace else "ClusterRoleBinding"
        # kube-apiserver writes the name before the namespace here
        name = f"{self.name}/{self.namespace}" if self.namespace else self.name
        return f'{kind} "{name}" of {self.role_kind} "{self.role[1]}" to {subject}'

    def missing_role(self) -> str:
        resource = f"{self.role_kind.lower()}.rbac.authorization.k8s.io"
        return f'{resource} "{self.role[1]}" not found'


_Scopes: TypeAlias = dict[str, dict[str, _Binding]]


class Authorizer:
    """Answers who may do what, kept current by `apply`. For one thread."""

    def __init__(self) -> None:
        self._rules: dict[RoleKey, tuple[Rule, ...]] = {}
        self._bindings: dict[RoleKey, _Binding] = {}
        # subject key -> namespace ("" cluster-wide) -> binding name -> binding
        self._by_subject: dict[str, _Scopes] = {}

    def apply(self, kind: Kind, namespace: str, name: str, obj: Obj | None) -> None:
        """Take over an object as it is stored now; None when it is gone.

        `namespace` is empty for the cluster-wide kinds.
        """
        key = (namespace, name)
        if kind in {"Role", "ClusterRole"}:
            self._rules.pop(key, None)
            if obj is not None:
                self._rules[key] = parse_rules(obj)
            return
        old = self._bindings.pop(key, None)
        if old is not None:
            self._unlink(old)
        if obj is not None:
            self._link(_parse_binding(namespace, name, obj))

    def authorize(self, user: User, asked: Attributes) -> Decision:
        """Decide; system:masters may do everything."""
        if MASTERS in user.groups:
            return Decision(allowed=True, reason="")
        missing: set[str] = set()
        for subject, binding in self._grants(user, asked.namespace):
            rules = self._rules.get(binding.role)
            if rules is None:
                missing.add(binding.missing_role())
                continue
            for rule in rules:
                if rule.is_allowing(asked):
                    by = binding.describe(binding.subjects[subject])
                    return Decision(allowed=True, reason=f"RBAC: allowed by {by}")
        trouble = _trouble(missing)
        sentence = denial(user, asked)
        return Decision(
            allowed=False, reason=f"{sentence}: {trouble}" if trouble else sentence, trouble=trouble
        )

    def rules_of(self, kind: str, namespace: str, name: str) -> tuple[Rule, ...] | None:
        """Return the rules of a role as a binding in `namespace` refers to it, None if none is."""
        return self._rules.get(_role_key(kind, name, namespace))

    def held_by(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """Return all rules of `user` in `namespace`, and the names of bound roles that are gone."""
        rules, missing = self._held(user, namespace)
        return rules, sorted({binding.role[1] for binding in missing})

    def rules_for(self, user: User, namespace: str) -> RulesReview:
        """Return everything the user may do in `namespace`, cluster-wide grants included."""
        rules, without = self._held(user, namespace)
        missing = {binding.missing_role() for binding in without}
        return RulesReview(
            resource_rules=[_resource_rule(r) for r in rules if r.resources],
            non_resource_rules=[
                {"verbs": list(r.verbs), "nonResourceURLs": list(r.urls)} for r in rules if r.urls
            ],
            trouble=_trouble(missing),
        )

    def _held(self, user: User, namespace: str) -> tuple[list[Rule], list[_Binding]]:
        """Return the rules of all bindings that apply, and the bindings whose role is gone."""
        missing: list[_Binding] = []
        seen: set[RoleKey] = set()
        rules: list[Rule] = []
        for _, binding in self._grants(user, namespace):
            key = (binding.namespace, binding.name)
            if key in seen:
                continue
            seen.add(key)
            found = self._rules.get(binding.role)
            if found is None:
                missing.append(binding)
            else:
                rules.extend(found)
        return rules, missing

    def _grants(self, user: User, namespace: str) -> Iterator[tuple[str, _Binding]]:
        """Yield (subject key, binding) for all that apply, a binding once per subject it names."""
        subjects = [_user_key(user.name), *(_group_key(g) for g in user.groups)]
        for scope in ("", namespace) if namespace else ("",):
            for subject in subjects:
                scopes = self._by_subject.get(subject)
                if scopes is not None and scope in scopes:
                    for binding in scopes[scope].values():
                        yield subject, binding

    def _link(self, binding: _Binding) -> None:
        self._bindings[binding.namespace, binding.name] = binding
        for subject in binding.subjects:
            scopes = self._by_subject.setdefault(subject, {})
            scopes.setdefault(binding.namespace, {})[binding.name] = binding

    def _unlink(self, binding: _Binding) -> None:
        for subject in binding.subjects:
            scopes = self._by_subject[subject]
            del scopes[binding.namespace][binding.name]
            if not scopes[binding.namespace]:
                del scopes[binding.namespace]
            if not scopes:
                del self._by_subject[subject]


def denial(user: User, asked: Attributes) -> str:
    """Return the sentence of a 403 (k8s.io/apiserver, endpoints/handlers/responsewriters)."""
    who = f"User {quote(user.name)} cannot {asked.verb}"
    if asked.path:
        return _sanitize(f"{who} path {quote(asked.path)}")
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    what = f"{who} resource {quote(resource)} in API group {quote(asked.group)}"
    if asked.namespace:
        return _sanitize(f"{what} in the namespace {quote(asked.namespace)}")
    return _sanitize(f"{what} at the cluster scope")


def _parse_binding(namespace: str, name: str, obj: Obj) -> _Binding:
    ref = obj.get("roleRef") or {}
    role_kind, role_name = str(ref.get("kind", "")), str(ref.get("name", ""))
    subjects: dict[str, str] = {}
    for subject in obj.get("subjects") or ():
        parsed = _parse_subject(subject, namespace)
        if parsed is not None:
            subjects.setdefault(*parsed)
    return _Binding(
        namespace=namespace,
        name=name,
        role_kind=role_kind,
        # a ClusterRoleBinding cannot give a Role: ("", name) would find the ClusterRole of that
        # name
        role=_role_key(role_kind, role_name, namespace),
        subjects=subjects,
    )


def _role_key(kind: str, name: str, namespace: str) -> RoleKey:
    if kind == "ClusterRole":
        return ("", name)
    if kind == "Role" and namespace:
        return (namespace, name)
    return ("\0", name)  # no role is stored there


def _parse_subject(subject: Obj, namespace: str) -> tuple[str, str] | None:
    kind, name = subject.get("kind"), str(subject.get("name", ""))
    if kind == "User":
        return _user_key(name), f'User "{name}"'
    if kind == "Group":
        return _group_key(name), f'Group "{name}"'
    if kind == "ServiceAccount":
        home = subject.get("namespace") or namespace
        if home:
            return _user_key(service_account_name(home, name)), f'ServiceAccount "{name}/{home}"'
    return None


def _user_key(name: str) -> str:
    return "u" + name


def _group_key(name: str) -> str:
    return "g" + name


def _resource_rule(rule: Rule) -> Obj:
    shown: Obj = {
        "verbs": list(rule.verbs),
        "apiGroups": list(rule.api_groups),
        "resources": list(rule.resources),
    }
    return shown | ({"resourceNames": list(rule.resource_names)} if rule.resource_names else {})


def _trouble(missing: set[str]) -> str:
    if not missing:
        return ""
    joined = ", ".join(sorted(missing))
    return f"RBAC: {joined}" if len(missing) == 1 else f"RBAC: [{joined}]"


def quote(text: str) -> str:
    """Return `text` as Go prints it with %q, for all text that is plain."""
    return json.dumps(text, ensure_ascii=False)


def _sanitize(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
