"""RBAC objects and questions in few words, and the naive evaluator the index is compared with."""

from collections.abc import Iterable, Sequence

from hub.auth.rbac import Authorizer, Kind
from hub.auth.user import Attributes, User
from hub.meta import Obj


def role(*rules: Obj) -> Obj:
    return {"rules": list(rules)}


def rule(
    verbs: str, groups: str = "", resources: str = "", *, names: str = "", urls: str = ""
) -> Obj:
    """Lists as words: ``rule("get list", "apps", "pods")``; the core group is written ``core``."""
    result: Obj = {"verbs": verbs.split()}
    if resources:
        result["apiGroups"] = ["" if g == "core" else g for g in groups.split()]
        result["resources"] = resources.split()
    if names:
        result["resourceNames"] = names.split()
    if urls:
        result["nonResourceURLs"] = urls.split()
    return result


def binding(role_kind: str, role_name: str, *subjects: Obj) -> Obj:
    return {
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": role_kind,
            "name": role_name,
        },
        "subjects": list(subjects),
    }


def user_subject(name: str) -> Obj:
    return {"kind": "User", "name": name}


def group_subject(name: str) -> Obj:
    return {"kind": "Group", "name": name}


def account_subject(name: str, namespace: str | None = None) -> Obj:
    subject: Obj = {"kind": "ServiceAccount", "name": name}
    return subject | ({} if namespace is None else {"namespace": namespace})


def apply_all(authorizer: Authorizer, objects: Iterable[Obj]) -> None:
    for obj in objects:
        kind: Kind = obj["kind"]
        metadata = obj["metadata"]
        authorizer.apply(kind, metadata.get("namespace", ""), metadata["name"], obj)


Stored = dict[tuple[Kind, str, str], Obj]


class NaiveRbac:
    """A walk over everything at each question, without an index."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored

    def is_allowed(self, user: User, asked: Attributes) -> bool:
        if "system:masters" in user.groups:
            return True
        return any(_is_rule_allowing(r, asked) for r in self.rules(user, asked.namespace))

    def rules(self, user: User, namespace: str) -> list[Obj]:
        found: list[Obj] = []
        for (kind, home, _), obj in self._stored.items():
            if kind == "ClusterRoleBinding" or (kind == "RoleBinding" and home == namespace):
                names_user = any(_is_naming(s, user, home) for s in obj.get("subjects") or [])
                if names_user:
                    found.extend(self._rules_of(obj["roleRef"], home))
        return found

    def _rules_of(self, ref: Obj, home: str) -> Sequence[Obj]:
        if ref["kind"] == "ClusterRole":
            stored = self._stored.get(("ClusterRole", "", ref["name"]))
        elif ref["kind"] == "Role" and home != "":
            stored = self._stored.get(("Role", home, ref["name"]))
        else:
            stored = None
        return (stored or {}).get("rules") or []


def _is_naming(subject: Obj, user: User, home: str) -> bool:
    if subject["kind"] == "User":
        return bool(subject["name"] == user.name)
    if subject["kind"] == "Group":
        return subject["name"] in user.groups
    if subject["kind"] == "ServiceAccount":
        namespace = subject.get("namespace") or home
        return namespace != "" and user.name == ":".join(
            ["system", "serviceaccount", namespace, subject["name"]]
        )
    return False


def _is_rule_allowing(rule_obj: Obj, asked: Attributes) -> bool:
    verbs = rule_obj.get("verbs") or []
    if not ("*" in verbs or asked.verb in verbs):
        return False
    if asked.path != "":
        return any(
            url in ("*", asked.path) or (url[-1:] == "*" and asked.path.startswith(url[:-1]))
            for url in rule_obj.get("nonResourceURLs") or []
        )
    groups = rule_obj.get("apiGroups") or []
    if not ("*" in groups or asked.group in groups):
        return False
    names = rule_obj.get("resourceNames") or []
    if names and asked.name not in names:
        return False
    whole = asked.resource + ("/" + asked.subresource if asked.subresource else "")
    for resource in rule_obj.get("resources") or []:
        if resource in ("*", whole):
            return True
        if asked.subresource and resource == "*/" + asked.subresource:
            return True
    return False
