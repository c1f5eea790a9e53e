"""Whether rules cover rules: what somebody holds against what a role would give.

Pure; mirrors k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go and
pkg/registry/rbac/validation/policy_compact.go. A wanted rule is taken apart into single grants (one
group, verb, resource and name, or one URL and verb), each of which one owned rule must cover.

>>> have = parse_rules({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})
>>> want = parse_rules(
...     {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]}
... )
>>> [describe(rule) for rule in uncovered(have, want)]
['{APIGroups:[""], Resources:["pods"], Verbs:["list"]}']
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from hub.auth.rule import ALL, Rule, parse_rules

__all__ = ["MAX_GRANTS", "TooManyGrantsError", "compact", "describe", "parse_rules", "uncovered"]

MAX_GRANTS = 10_000
"""How many single grants are compared: three lists of a thousand make a thousand millions, and
they fit in one small body.
"""


class TooManyGrantsError(ValueError):
    """The rules multiply to more grants than are compared."""


def uncovered(owned: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """Return the single grants of `wanted` that no rule of `owned` covers.

    Raises `TooManyGrantsError` when there are too many of them to be compared one by one.
    """
    # a rule that is covered as a whole is covered in all its parts, and most are
    rest = [rule for rule in wanted if not any(_is_covering(own, rule) for own in owned)]
    grants = list(islice((grant for rule in rest for grant in _grants(rule)), MAX_GRANTS + 1))
    if len(grants) > MAX_GRANTS:
        raise TooManyGrantsError(
            f"the rules not held as a whole make more than {MAX_GRANTS} single grants: "
            "split them over several roles"
        )
    return [grant for grant in grants if not any(_is_covering(own, grant) for own in owned)]


def compact(grants: Iterable[Rule]) -> list[Rule]:
    """Return grants with the verbs of one resource and name put together."""
    verbs: dict[Rule, list[str]] = {}
    for grant in grants:
        key = grant if grant.urls else _with_verbs(grant, ())
        verbs.setdefault(key, []).extend(() if grant.urls else grant.verbs)
    return [_with_verbs(key, tuple(found) or key.verbs) for key, found in verbs.items()]


def describe(rule: Rule) -> str:
    """Return a rule as kube-apiserver prints it (rbac/v1 CompactString); empty lists are left out.

    Also the order in which such texts are sorted.
    """
    parts = (
        ("APIGroups", rule.api_groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.urls),
        ("ResourceNames", rule.resource_names),
        ("Verbs", rule.verbs),
    )
    return "{" + ", ".join(f"{name}:{quote_list(values)}" for name, values in parts if values) + "}"


def quote_list(values: Iterable[str]) -> str:
    """Return strings as Go prints a list of them with %q."""
    return "[" + " ".join(json.dumps(value, ensure_ascii=False) for value in values) + "]"


def _grants(rule: Rule) -> Iterator[Rule]:
    """Take a rule apart."""
    names: list[tuple[str, ...]] = [(name,) for name in rule.resource_names] or [()]
    for group in rule.api_groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                for name in names:
                    yield Rule((verb,), (group,), (resource,), name, ())
    for url in rule.urls:
        for verb in rule.verbs:
            yield Rule((verb,), (), (), (), (url,))


def _with_verbs(rule: Rule, verbs: tuple[str, ...]) -> Rule:
    return Rule(verbs, rule.api_groups, rule.resources, rule.resource_names, rule.urls)


def _is_covering(own: Rule, wanted: Rule) -> bool:
    """Whether one owned rule allows all that `wanted` allows."""
    return (
        _has_all(own.verbs, wanted.verbs)
        and _has_all(own.api_groups, wanted.api_groups)
        and _has_resources(own.resources, wanted.resources)
        and _has_names(own.resource_names, wanted.resource_names)
        and all(any(_is_url_covering(o, url) for o in own.urls) for url in wanted.urls)
    )


def _has_all(own: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return ALL in own or all(value in own for value in wanted)


def _has_resources(own: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return ALL in own or all(_has_resource(own, resource) for resource in wanted)


def _has_resource(own: tuple[str, ...], resource: str) -> bool:
    if resource in own:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in own


def _has_names(own: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return not own or (bool(wanted) and all(name in own for name in wanted))


def _is_url_covering(own: str, url: str) -> bool:
    return own == url or (own.endswith(ALL) and url.startswith(own.rstrip(ALL)))
