"""One RBAC rule: compiled from a PolicyRule, matched against the attributes of a request.

Mirrors pkg/apis/rbac/v1/evaluation_helpers.go and plugin/pkg/auth/authorizer/rbac/rbac.go. Tuples
and not sets: rules are short, and a fleet has four for every cluster.
"""

from dataclasses import dataclass
from sys import intern

from hub.auth.user import Attributes
from hub.meta import Obj

ALL = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a Role or ClusterRole, its lists in the order they were written."""

    verbs: tuple[str, ...]
    api_groups: tuple[str, ...]
    resources: tuple[str, ...]
    resource_names: tuple[str, ...]
    urls: tuple[str, ...]

    def is_allowing(self, asked: Attributes) -> bool:
        """Whether this rule alone allows what is asked."""
        if asked.verb not in self.verbs and ALL not in self.verbs:
            return False
        if asked.path:
            return any(_is_url_match(url, asked.path) for url in self.urls)
        return (
            (asked.group in self.api_groups or ALL in self.api_groups)
            and self._is_resource_match(asked)
            # no name in the request (create, or a list that no field selector pins) matches no name
            and (not self.resource_names or asked.name in self.resource_names)
        )

    def _is_resource_match(self, asked: Attributes) -> bool:
        if ALL in self.resources:
            return True
        if not asked.subresource:
            return asked.resource in self.resources
        return (
            f"{asked.resource}/{asked.subresource}" in self.resources
            or f"*/{asked.subresource}" in self.resources
        )


def parse_rules(role: Obj) -> tuple[Rule, ...]:
    """Return the rules of a Role or ClusterRole; missing and null lists are empty."""
    return tuple(
        Rule(
            verbs=_strings(rule, "verbs"),
            api_groups=_strings(rule, "apiGroups"),
            resources=_strings(rule, "resources"),
            resource_names=_strings(rule, "resourceNames"),
            urls=_strings(rule, "nonResourceURLs"),
        )
        for rule in role.get("rules") or ()
    )


def _is_url_match(url: str, path: str) -> bool:
    return url in (ALL, path) or (url.endswith(ALL) and path.startswith(url.rstrip(ALL)))


def _strings(rule: Obj, field: str) -> tuple[str, ...]:
    # the same few words stand in thousands of rules: keep one copy of each
    return tuple(intern(str(value)) for value in rule.get(field) or ())
