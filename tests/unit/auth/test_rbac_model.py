"""The index against a naive walk over all objects, for random histories of writes."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from hub.auth.rbac import Authorizer, Kind
from hub.auth.user import Attributes, User
from hub.meta import Obj
from tests.unit.auth.rbac_support import NaiveRbac, Stored

NAMESPACES = ["one", "two"]
NAMES = ["a", "b"]
USERS = ["ann", "staff", "system:serviceaccount:one:a", "system:serviceaccount:two:a"]
GROUPS = ["staff", "ann", "system:authenticated"]
VERBS = ["get", "list", "*"]
API_GROUPS = ["", "apps", "*"]
RESOURCES = ["pods", "pods/log", "*", "*/log", "secrets", "log"]
OBJECT_NAMES = ["", "x", "y"]
URLS = ["/a", "/a/*", "*", "/a/b", "/a*"]


def _some(values: list[str]) -> st.SearchStrategy[list[str] | None]:
    return st.none() | st.lists(st.sampled_from(values), max_size=2)


def _object(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[Obj]:
    return st.fixed_dictionaries({}, optional=fields)


rules = _object(
    verbs=_some(VERBS),
    apiGroups=_some(API_GROUPS),
    resources=_some(RESOURCES),
    resourceNames=_some(OBJECT_NAMES),
    nonResourceURLs=_some(URLS),
)
roles = _object(rules=st.none() | st.lists(rules, max_size=3))
subjects = st.one_of(
    st.builds(lambda n: {"kind": "User", "name": n}, st.sampled_from(USERS)),
    st.builds(lambda n: {"kind": "Group", "name": n}, st.sampled_from(GROUPS)),
    st.builds(
        lambda n, ns: {"kind": "ServiceAccount", "name": n, "namespace": ns},
        st.sampled_from(NAMES),
        st.sampled_from(["", *NAMESPACES]),
    ),
    st.builds(lambda n: {"kind": "ServiceAccount", "name": n}, st.sampled_from(NAMES)),
)
bindings = st.fixed_dictionaries(
    {
        "roleRef": st.builds(
            lambda k, n: {"kind": k, "name": n},
            st.sampled_from(["Role", "ClusterRole"]),
            st.sampled_from(NAMES),
        ),
        "subjects": st.none() | st.lists(subjects, max_size=3),
    }
)


def _write(
    kind: Kind, namespaces: list[str], objects: st.SearchStrategy[Obj]
) -> st.SearchStrategy[tuple[Kind, str, str, Obj | None]]:
    places = st.sampled_from(namespaces), st.sampled_from(NAMES)
    # three writes for each deletion
    return st.tuples(st.just(kind), *places, objects | objects | objects | st.none())


writes = st.one_of(
    _write("Role", NAMESPACES, roles),
    _write("ClusterRole", [""], roles),
    _write("RoleBinding", NAMESPACES, bindings),
    _write("ClusterRoleBinding", [""], bindings),
)
users = st.builds(
    User,
    st.sampled_from(USERS),
    st.lists(st.sampled_from([*GROUPS, *GROUPS, "system:masters"]), max_size=3).map(tuple),
)
questions = st.one_of(
    st.builds(
        Attributes,
        verb=st.sampled_from(["get", "list"]),
        group=st.sampled_from(["", "apps"]),
        resource=st.sampled_from(["pods", "secrets", "log"]),
        subresource=st.sampled_from(["", "log"]),
        namespace=st.sampled_from(["", *NAMESPACES]),
        name=st.sampled_from(OBJECT_NAMES),
    ),
    st.builds(
        Attributes,
        verb=st.sampled_from(["get", "list"]),
        path=st.sampled_from(["/a", "/a/b", "/b", "/a/"]),
    ),
)


def _as_counts(shown: list[Obj], fields: list[str]) -> Counter[tuple[tuple[str, ...], ...]]:
    return Counter(tuple(tuple(r.get(f) or ()) for f in fields) for r in shown)


@settings(max_examples=300, deadline=None)
@given(
    history=st.lists(writes, max_size=25),
    asked=st.lists(st.tuples(users, questions), min_size=1, max_size=12),
)
def test_the_index_answers_as_a_walk_over_everything(
    history: list[tuple[Kind, str, str, Obj | None]], asked: list[tuple[User, Attributes]]
) -> None:
    authorizer, stored = Authorizer(), Stored()
    for kind, namespace, name, obj in history:
        authorizer.apply(kind, namespace, name, obj)
        stored.pop((kind, namespace, name), None)
        if obj is not None:
            stored[kind, namespace, name] = obj
    naive = NaiveRbac(stored)
    for user, question in asked:
        decision = authorizer.authorize(user, question)
        assert decision.allowed == naive.is_allowed(user, question), (user, question)
        review = authorizer.rules_for(user, question.namespace)
        expected = naive.rules(user, question.namespace)
        fields = ["verbs", "apiGroups", "resources", "resourceNames"]
        resource_rules = [r for r in expected if r.get("resources")]
        assert _as_counts(review.resource_rules, fields) == _as_counts(resource_rules, fields)
        fields = ["verbs", "nonResourceURLs"]
        path_rules = [r for r in expected if r.get("nonResourceURLs")]
        assert _as_counts(review.non_resource_rules, fields) == _as_counts(path_rules, fields)


@settings(max_examples=100, deadline=None)
@given(history=st.lists(writes, max_size=25))
def test_the_index_is_empty_again_once_everything_is_gone(
    history: list[tuple[Kind, str, str, Obj | None]],
) -> None:
    authorizer = Authorizer()
    for kind, namespace, name, obj in history:
        authorizer.apply(kind, namespace, name, obj)
    for kind, namespace, name, _ in history:
        authorizer.apply(kind, namespace, name, None)
    assert authorizer._by_subject == {}
    assert authorizer._bindings == {}
    assert authorizer._rules == {}
