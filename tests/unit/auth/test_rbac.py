import pytest

from hub.auth.rbac import Authorizer, denial
from hub.auth.user import Attributes, User
from hub.meta import Obj
from tests.unit.auth.rbac_support import (
    account_subject,
    binding,
    group_subject,
    role,
    rule,
    user_subject,
)

ANN = User("ann", ("staff", "system:authenticated"))
ROBOT = User("system:serviceaccount:tour:robot", ("system:serviceaccounts",))


def ask(
    verb: str, resource: str, *, group: str = "", namespace: str = "", name: str = ""
) -> Attributes:
    resource, _, subresource = resource.partition("/")
    return Attributes(
        verb=verb,
        group=group,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
    )


def _cluster_wide(*rules: Obj, subject: Obj | None = None) -> Authorizer:
    """An authorizer in which `ann` (or `subject`) has `rules` cluster-wide."""
    authorizer = Authorizer()
    authorizer.apply("ClusterRole", "", "r", role(*rules))
    bound = binding("ClusterRole", "r", subject or user_subject("ann"))
    authorizer.apply("ClusterRoleBinding", "", "b", bound)
    return authorizer


def _is_allowed(authorizer: Authorizer, asked: Attributes, user: User = ANN) -> bool:
    return authorizer.authorize(user, asked).allowed


def test_nothing_is_allowed_without_a_binding() -> None:
    decision = Authorizer().authorize(ANN, ask("get", "pods"))
    assert not decision.allowed
    assert decision.review_status() == {"allowed": False}


def test_masters_may_do_everything_without_any_object() -> None:
    root = User("root", ("system:masters",))
    decision = Authorizer().authorize(root, ask("delete", "nodes"))
    assert decision.review_status() == {"allowed": True}
    assert Authorizer().authorize(root, Attributes(verb="get", path="/secret")).allowed


@pytest.mark.parametrize(
    ("given", "asked", "allowed"),
    [
        # verbs
        (rule("get", "core", "pods"), ask("get", "pods"), True),
        (rule("get", "core", "pods"), ask("list", "pods"), False),
        (rule("*", "core", "pods"), ask("made-up", "pods"), True),
        (rule("get", "core", "pods"), ask("GET", "pods"), False),
        # groups
        (rule("get", "apps", "pods"), ask("get", "pods"), False),
        (rule("get", "apps core", "pods"), ask("get", "pods"), True),
        (rule("get", "*", "pods"), ask("get", "pods", group="x.y"), True),
        # resources and subresources
        (rule("get", "core", "pods"), ask("get", "pods/log"), False),
        (rule("get", "core", "pods/log"), ask("get", "pods/log"), True),
        (rule("get", "core", "pods/log"), ask("get", "pods"), False),
        (rule("get", "core", "*"), ask("get", "pods/log"), True),
        (rule("get", "core", "*/log"), ask("get", "pods/log"), True),
        (rule("get", "core", "*/log"), ask("get", "pods/exec"), False),
        (rule("get", "core", "*/log"), ask("get", "log"), False),
        (rule("get", "core", "pods/*"), ask("get", "pods/log"), False),
        (rule("get", "core", "pods*"), ask("get", "pods"), False),
        # names
        (rule("get", "core", "pods", names="a b"), ask("get", "pods", name="b"), True),
        (rule("get", "core", "pods", names="a b"), ask("get", "pods", name="c"), False),
        (rule("create", "core", "pods", names="a"), ask("create", "pods"), False),
        (rule("list", "core", "pods", names="a"), ask("list", "pods"), False),
        (rule("list", "core", "pods", names="a"), ask("list", "pods", name="a"), True),
        (rule("watch", "core", "pods", names="a"), ask("watch", "pods", name="b"), False),
        (rule("watch", "core", "pods", names="a"), ask("watch", "pods", name="a"), True),
        (
            rule("deletecollection", "core", "pods", names="a"),
            ask("deletecollection", "pods"),
            False,
        ),
        (
            rule("deletecollection", "core", "pods", names="a"),
            ask("deletecollection", "pods", name="a"),
            True,
        ),
        (rule("get", "core", "pods", names="*"), ask("get", "pods", name="a"), False),
        # paths
        (rule("get", urls="/healthz"), Attributes(verb="get", path="/healthz"), True),
        (rule("get", urls="/healthz"), Attributes(verb="get", path="/healthz/etcd"), False),
        (rule("get", urls="/healthz/*"), Attributes(verb="get", path="/healthz/etcd"), True),
        (rule("get", urls="/healthz/*"), Attributes(verb="get", path="/healthz"), False),
        (rule("get", urls="/api*"), Attributes(verb="get", path="/apis/x"), True),
        (rule("get", urls="*"), Attributes(verb="get", path="/any"), True),
        (rule("get", urls="/a/*/c"), Attributes(verb="get", path="/a/b/c"), False),
        (rule("get", urls="/healthz"), Attributes(verb="post", path="/healthz"), False),
        # the two worlds do not mix
        (rule("*", "*", "*"), Attributes(verb="get", path="/healthz"), False),
        (rule("*", urls="*"), ask("get", "pods"), False),
    ],
)
def test_a_rule_matches_as_in_kubernetes(given: Obj, asked: Attributes, allowed: bool) -> None:
    assert _is_allowed(_cluster_wide(given), asked) is allowed


def test_the_parts_of_two_rules_do_not_add_up() -> None:
    authorizer = _cluster_wide(rule("get", "core", "pods"), rule("delete", "core", "secrets"))
    assert not _is_allowed(authorizer, ask("delete", "pods"))
    assert _is_allowed(authorizer, ask("delete", "secrets"))


def test_a_cluster_role_binding_counts_in_every_namespace_and_outside() -> None:
    authorizer = _cluster_wide(rule("get", "core", "pods"))
    for namespace in ("", "one", "two"):
        assert _is_allowed(authorizer, ask("get", "pods", namespace=namespace))


def test_a_role_binding_counts_in_its_namespace_only() -> None:
    authorizer = Authorizer()
    authorizer.apply("ClusterRole", "", "r", role(rule("*", "*", "*"), rule("get", urls="*")))
    bound = binding("ClusterRole", "r", user_subject("ann"))
    authorizer.apply("RoleBinding", "one", "b", bound)
    assert _is_allowed(authorizer, ask("get", "pods", namespace="one"))
    assert not _is_allowed(authorizer, ask("get", "pods", namespace="two"))
    assert not _is_allowed(authorizer, ask("list", "pods"))
    assert not _is_allowed(authorizer, Attributes(verb="get", path="/healthz"))


def test_a_role_is_found_in_the_namespace_of_its_binding() -> None:
    authorizer = Authorizer()
    authorizer.apply("Role", "one", "r", role(rule("get", "core", "pods")))
    for namespace in ("one", "two"):
        bound = binding("Role", "r", user_subject("ann"))
        authorizer.apply("RoleBinding", namespace, "b", bound)
    assert _is_allowed(authorizer, ask("get", "pods", namespace="one"))
    assert not _is_allowed(authorizer, ask("get", "pods", namespace="two"))


def test_a_cluster_role_binding_cannot_give_a_role() -> None:
    authorizer = Authorizer()
    authorizer.apply("ClusterRole", "", "r", role(rule("*", "*", "*")))
    authorizer.apply("Role", "one", "r", role(rule("*", "*", "*")))
    bound = binding("Role", "r", user_subject("ann"))
    authorizer.apply("ClusterRoleBinding", "", "b", bound)
    assert not _is_allowed(authorizer, ask("get", "pods"))
    assert not _is_allowed(authorizer, ask("get", "pods", namespace="one"))


def test_roles_and_cluster_roles_of_one_name_are_kept_apart() -> None:
    authorizer = Authorizer()
    authorizer.apply("ClusterRole", "", "r", role(rule("get", "core", "pods")))
    authorizer.apply("Role", "one", "r", role(rule("get", "core", "secrets")))
    authorizer.apply("RoleBinding", "one", "b", binding("Role", "r", user_subject("ann")))
    assert _is_allowed(authorizer, ask("get", "secrets", namespace="one"))
    assert not _is_allowed(authorizer, ask("get", "pods", namespace="one"))


def test_users_and_groups_of_one_name_are_kept_apart() -> None:
    given = rule("get", "core", "pods")
    asked = ask("get", "pods")
    by_group = _cluster_wide(given, subject=group_subject("staff"))
    assert _is_allowed(by_group, asked)
    assert not _is_allowed(by_group, asked, User("staff"))
    by_user = _cluster_wide(given, subject=user_subject("staff"))
    assert not _is_allowed(by_user, asked)


@pytest.mark.parametrize(
    ("subject", "allowed"),
    [
        (account_subject("robot", "tour"), True),
        (account_subject("robot", "other"), False),
        (account_subject("robot"), False),
        (account_subject("robot", ""), False),
        (user_subject("system:serviceaccount:tour:robot"), True),
        (user_subject("robot"), False),
        ({"kind": "Robot", "name": "robot", "namespace": "tour"}, False),
    ],
)
def test_a_service_account_is_bound_by_namespace_and_name(subject: Obj, allowed: bool) -> None:
    authorizer = _cluster_wide(rule("get", "core", "pods"), subject=subject)
    assert _is_allowed(authorizer, ask("get", "pods"), ROBOT) is allowed


def test_a_service_account_without_a_namespace_is_the_one_beside_its_role_binding() -> None:
    authorizer = Authorizer()
    authorizer.apply("ClusterRole", "", "r", role(rule("get", "core", "pods")))
    for namespace in ("tour", "other"):
        bound = binding("ClusterRole", "r", account_subject("robot"))
        authorizer.apply("RoleBinding", namespace, "b", bound)
    assert _is_allowed(authorizer, ask("get", "pods", namespace="tour"), ROBOT)
    assert not _is_allowed(authorizer, ask("get", "pods", namespace="other"), ROBOT)


def test_changes_take_effect_at_once() -> None:
    authorizer = _cluster_wide(rule("get", "core", "pods"))
    asked = ask("get", "pods")
    authorizer.apply("ClusterRole", "", "r", role(rule("get", "core", "secrets")))
    assert not _is_allowed(authorizer, asked)
    authorizer.apply("ClusterRole", "", "r", role(rule("get", "core", "pods")))
    assert _is_allowed(authorizer, asked)
    authorizer.apply("ClusterRole", "", "r", None)
    assert not _is_allowed(authorizer, asked)
    authorizer.apply("ClusterRole", "", "r", role(rule("get", "core", "pods")))
    bob = binding("ClusterRole", "r", user_subject("bob"))
    authorizer.apply("ClusterRoleBinding", "", "b", bob)
    assert not _is_allowed(authorizer, asked)
    assert _is_allowed(authorizer, asked, User("bob"))
    authorizer.apply("ClusterRoleBinding", "", "b", None)
    assert not _is_allowed(authorizer, asked, User("bob"))


def test_the_last_trace_of_a_subject_goes_with_its_last_binding() -> None:
    authorizer = Authorizer()
    bound = binding("ClusterRole", "r", user_subject("ann"), user_subject("ann"))
    for namespace in ("one", "two"):
        authorizer.apply("RoleBinding", namespace, "b", bound)
    for namespace in ("one", "two", "three"):
        authorizer.apply("RoleBinding", namespace, "b", None)
    assert authorizer._by_subject == {}
    assert authorizer._bindings == {}


def test_a_binding_may_come_before_its_role() -> None:
    authorizer = Authorizer()
    bound = binding("ClusterRole", "r", user_subject("ann"))
    authorizer.apply("ClusterRoleBinding", "", "b", bound)
    assert not _is_allowed(authorizer, ask("get", "pods"))
    authorizer.apply("ClusterRole", "", "r", role(rule("get", "core", "pods")))
    assert _is_allowed(authorizer, ask("get", "pods"))


@pytest.mark.parametrize(
    "obj", [{}, {"rules": None}, {"rules": [{}]}, {"rules": [{"verbs": None, "apiGroups": None}]}]
)
def test_an_empty_role_gives_nothing(obj: Obj) -> None:
    authorizer = _cluster_wide()
    authorizer.apply("ClusterRole", "", "r", obj)
    assert not _is_allowed(authorizer, ask("get", "pods"))


def test_a_binding_without_subjects_or_role_gives_nothing() -> None:
    authorizer = Authorizer()
    objects: list[Obj] = [{}, {"subjects": None}, {"subjects": [user_subject("ann")]}]
    for number, obj in enumerate(objects):
        authorizer.apply("ClusterRoleBinding", "", str(number), obj)
    assert not _is_allowed(authorizer, ask("get", "pods"))


def test_an_allowance_says_where_it_comes_from() -> None:
    authorizer = _cluster_wide(rule("get", "core", "pods"), subject=group_subject("staff"))
    authorizer.apply("Role", "tour", "x", role(rule("list", "core", "pods")))
    robot = binding("Role", "x", account_subject("robot"))
    authorizer.apply("RoleBinding", "tour", "y", robot)
    wide = authorizer.authorize(ANN, ask("get", "pods"))
    assert wide.review_status() == {
        "allowed": True,
        "reason": 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "staff"',
    }
    local = authorizer.authorize(ROBOT, ask("list", "pods", namespace="tour"))
    assert local.reason == (
        'RBAC: allowed by RoleBinding "y/tour" of Role "x" to ServiceAccount "robot/tour"'
    )


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (
            ask("list", "secrets", namespace="tour"),
            'User "ann" cannot list resource "secrets" in API group "" in the namespace "tour"',
        ),
        (
            ask("watch", "managedclusters", group="cluster.open-cluster-management.io", name="c"),
            (
                'User "ann" cannot watch resource "managedclusters" in API group '
                '"cluster.open-cluster-management.io" at the cluster scope'
            ),
        ),
        (
            ask("patch", "managedclusters/status", group="x.io"),
            (
                'User "ann" cannot patch resource "managedclusters/status" in API group "x.io" '
                "at the cluster scope"
            ),
        ),
        (Attributes(verb="get", path="/p"), 'User "ann" cannot get path "/p"'),
        (
            Attributes(verb="get", path='/<a>&"b"'),
            'User "ann" cannot get path "/&lt;a&gt;&amp;\\"b\\""',
        ),
    ],
)
def test_a_denial_reads_as_kube_apiservers(asked: Attributes, sentence: str) -> None:
    assert denial(ANN, asked) == sentence
    assert Authorizer().authorize(ANN, asked).reason == sentence


def test_a_denial_names_the_roles_that_are_missing() -> None:
    authorizer = Authorizer()
    bound = binding("ClusterRole", "gone", user_subject("ann"), group_subject("staff"))
    authorizer.apply("ClusterRoleBinding", "", "b", bound)
    trouble = 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found'
    decision = authorizer.authorize(ANN, ask("get", "pods"))
    assert decision.reason.endswith(f"at the cluster scope: {trouble}")
    assert decision.review_status() == {"allowed": False, "reason": trouble}
    local = binding("Role", "away", user_subject("ann"))
    authorizer.apply("RoleBinding", "one", "b", local)
    decision = authorizer.authorize(ANN, ask("get", "pods", namespace="one"))
    assert decision.trouble == (
        'RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, '
        'role.rbac.authorization.k8s.io "away" not found]'
    )


def test_rules_for_shows_each_binding_once_with_its_lists_in_order() -> None:
    authorizer = _cluster_wide(
        rule("list get", "core apps", "pods deployments", names="b a"),
        rule("get", urls="/healthz /version"),
    )
    both = binding("ClusterRole", "r", user_subject("ann"), group_subject("staff"))
    authorizer.apply("ClusterRoleBinding", "", "b", both)
    authorizer.apply("Role", "one", "x", role(rule("get", "core", "secrets")))
    authorizer.apply("RoleBinding", "one", "y", binding("Role", "x", group_subject("staff")))
    wide = {
        "verbs": ["list", "get"],
        "apiGroups": ["", "apps"],
        "resources": ["pods", "deployments"],
        "resourceNames": ["b", "a"],
    }
    local = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}
    paths = {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/version"]}
    assert authorizer.rules_for(ANN, "one").review_status() == {
        "resourceRules": [wide, local],
        "nonResourceRules": [paths],
        "incomplete": False,
    }
    assert authorizer.rules_for(ANN, "two").resource_rules == [wide]
    assert authorizer.rules_for(User("bob"), "one").review_status() == {
        "resourceRules": [],
        "nonResourceRules": [],
        "incomplete": False,
    }


def test_rules_for_says_which_roles_are_missing() -> None:
    authorizer = Authorizer()
    bound = binding("ClusterRole", "gone", user_subject("ann"))
    authorizer.apply("ClusterRoleBinding", "", "b", bound)
    status = authorizer.rules_for(ANN, "one").review_status()
    assert "gone" in status["evaluationError"]
