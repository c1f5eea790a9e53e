import json

import pytest

from hub.auth.bootstrap_policy import (
    CLUSTER_NAME_LABEL,
    cluster_rbac,
    default_objects,
    shared_cluster_roles,
)
from hub.auth.rbac import Authorizer
from hub.auth.user import Attributes, User
from hub.meta import Obj
from tests.unit.auth.rbac_support import apply_all

AUTHENTICATED = ("system:authenticated",)
NOBODY = User("system:anonymous", ("system:unauthenticated",))
ANYBODY = User("ann", AUTHENTICATED)
ROOT = User("admin", ("system:masters", *AUTHENTICATED))
CLUSTERS = "cluster.open-cluster-management.io"
REGISTER = "register.open-cluster-management.io"
CSRS = "certificates.k8s.io"
WORK = "work.open-cluster-management.io"
ADDON = "addon.open-cluster-management.io"


def agent(cluster: str, *, prefix: str = "system:") -> User:
    """A klusterlet as its certificate makes it, or (without the prefix) as AWS IAM does."""
    if not prefix:
        return User("arn:aws:iam::1:role/x", (f"open-cluster-management:{cluster}", *AUTHENTICATED))
    groups = (
        f"system:open-cluster-management:{cluster}",
        "system:open-cluster-management:managed-clusters",
    )
    return User(f"system:open-cluster-management:{cluster}:a1b2c", (*groups, *AUTHENTICATED))


def access_reviews(cluster: str) -> list[Attributes]:
    """What a klusterlet operator asks before it calls the hub healthy (OCM pkg/common/helpers)."""

    def each(verbs: str, **rest: str) -> list[Attributes]:
        return [Attributes(verb=verb, **rest) for verb in verbs.split()]

    clusters = {"group": CLUSTERS, "resource": "managedclusters", "name": cluster}
    works = {"group": WORK, "resource": "manifestworks", "namespace": cluster}
    return [
        *each("get list watch", group=CSRS, resource="certificatesigningrequests"),
        *each("get list update watch", **clusters),
        *each("patch update", subresource="status", **clusters),
        *each(
            "renew", group=REGISTER, resource="managedclusters", subresource="clientcertificates"
        ),
        *each(
            "get update",
            group="coordination.k8s.io",
            resource="leases",
            name="managed-cluster-lease",
            namespace=cluster,
        ),
        *each("create patch update", resource="events", namespace=cluster),
        *each("create patch update", group="events.k8s.io", resource="events", namespace=cluster),
        *each("get list watch update", **works),
        *each("patch update", subresource="status", **works),
    ]


@pytest.fixture
def authorizer() -> Authorizer:
    """A new hub with the clusters one and two accepted."""
    result = Authorizer()
    apply_all(result, default_objects())
    apply_all(result, shared_cluster_roles())
    for cluster in ("one", "two"):
        apply_all(result, cluster_rbac(cluster))
    return result


def test_there_are_24_reviews() -> None:
    assert len(access_reviews("one")) == len(set(access_reviews("one"))) == 24


@pytest.mark.parametrize("prefix", ["system:", ""])
@pytest.mark.parametrize("asked", access_reviews("one"), ids=str)
def test_an_accepted_cluster_passes_the_review(
    authorizer: Authorizer, asked: Attributes, prefix: str
) -> None:
    assert authorizer.authorize(agent("one", prefix=prefix), asked).allowed


def _is_shared(asked: Attributes) -> bool:
    """CSRs and the renewal carry no name: RBAC alone cannot tell clusters apart there."""
    return asked.group in (CSRS, REGISTER)


@pytest.mark.parametrize("asked", access_reviews("one"), ids=str)
def test_another_cluster_fails_it(authorizer: Authorizer, asked: Attributes) -> None:
    assert authorizer.authorize(agent("two"), asked).allowed is _is_shared(asked)
    assert not authorizer.authorize(agent("three"), asked).allowed
    assert not authorizer.authorize(ANYBODY, asked).allowed


@pytest.mark.parametrize("asked", access_reviews("one"), ids=str)
def test_a_denied_cluster_may_only_look_at_itself(
    authorizer: Authorizer, asked: Attributes
) -> None:
    for name in ("registration", "work"):
        binding = f"open-cluster-management:managedcluster:one:{name}"
        authorizer.apply("RoleBinding", "one", binding, None)
    apply_all(authorizer, cluster_rbac("one", accepted=False))
    may = asked.resource == "managedclusters" and asked.group == CLUSTERS
    may = may and not asked.subresource and asked.verb in ("get", "list", "watch")
    assert authorizer.authorize(agent("one"), asked).allowed is may


@pytest.mark.parametrize(
    "asked",
    [
        Attributes(verb="list", group=CLUSTERS, resource="managedclusters"),
        Attributes(verb="watch", group=CLUSTERS, resource="managedclusters"),
        Attributes(verb="create", group=CLUSTERS, resource="managedclusters"),
        Attributes(verb="delete", group=CLUSTERS, resource="managedclusters", name="one"),
        Attributes(verb="patch", group=CLUSTERS, resource="managedclusters", name="one"),
        Attributes(
            verb="update",
            group=REGISTER,
            resource="managedclusters",
            subresource="accept",
            name="one",
        ),
        Attributes(
            verb="update", group=CSRS, resource="certificatesigningrequests", subresource="approval"
        ),
        Attributes(verb="create", group=WORK, resource="manifestworks", namespace="one"),
        Attributes(verb="delete", group=WORK, resource="manifestworks", namespace="one"),
        Attributes(verb="list", group=WORK, resource="manifestworks"),
        Attributes(verb="get", resource="secrets", namespace="one"),
        Attributes(verb="create", group="coordination.k8s.io", resource="leases", namespace="one"),
        Attributes(verb="update", group=ADDON, resource="managedclusteraddons", namespace="one"),
        Attributes(verb="impersonate", resource="groups", name="system:masters"),
    ],
    ids=str,
)
def test_an_agent_may_not_do_more(authorizer: Authorizer, asked: Attributes) -> None:
    assert not authorizer.authorize(agent("one"), asked).allowed


@pytest.mark.parametrize(
    "asked",
    [
        Attributes(verb="watch", group=ADDON, resource="managedclusteraddons", namespace="one"),
        Attributes(
            verb="patch",
            group=ADDON,
            resource="managedclusteraddons",
            subresource="status",
            namespace="one",
            name="x",
        ),
        Attributes(verb="patch", group=WORK, resource="manifestworks", namespace="one", name="w"),
        Attributes(verb="create", group=CSRS, resource="certificatesigningrequests"),
    ],
    ids=str,
)
def test_an_agent_may_do_what_the_reviews_leave_out(
    authorizer: Authorizer, asked: Attributes
) -> None:
    assert authorizer.authorize(agent("one"), asked).allowed


BOOTSTRAP_USERS = [
    User(
        "system:bootstrap:abcdef",
        ("system:bootstrappers", "system:bootstrappers:managedcluster", *AUTHENTICATED),
    ),
    User(
        "system:serviceaccount:open-cluster-management:agent-registration-bootstrap",
        (
            "system:serviceaccounts",
            "system:serviceaccounts:open-cluster-management",
            *AUTHENTICATED,
        ),
    ),
]


@pytest.mark.parametrize("user", BOOTSTRAP_USERS, ids=lambda u: u.name)
def test_a_bootstrap_identity_may_register_and_no_more(authorizer: Authorizer, user: User) -> None:
    def is_allowed(verb: str, group: str, resource: str, **rest: str) -> bool:
        asked = Attributes(verb=verb, group=group, resource=resource, **rest)
        return authorizer.authorize(user, asked).allowed

    for verb in ("get", "list", "watch", "create"):
        assert is_allowed(verb, CSRS, "certificatesigningrequests")
        assert is_allowed(verb, CLUSTERS, "managedclusters", name="c9")
    assert is_allowed("update", CLUSTERS, "managedclusters", name="c9")
    assert is_allowed("create", CLUSTERS, "managedclustersets", subresource="join", name="any")
    assert is_allowed("get", "", "configmaps", namespace="kube-public", name="cluster-info")
    assert not is_allowed("list", "", "configmaps", namespace="kube-public")
    assert not is_allowed("delete", CLUSTERS, "managedclusters", name="c9")
    assert not is_allowed("update", REGISTER, "managedclusters", subresource="accept", name="c9")
    assert not is_allowed("renew", REGISTER, "managedclusters", subresource="clientcertificates")
    assert not is_allowed("update", CSRS, "certificatesigningrequests", subresource="approval")
    assert not is_allowed("list", WORK, "manifestworks", namespace="one")
    assert not is_allowed("get", "", "secrets", namespace="kube-system")


def test_another_bootstrapper_may_not_register(authorizer: Authorizer) -> None:
    other = User("system:bootstrap:abcdef", ("system:bootstrappers", *AUTHENTICATED))
    asked = Attributes(verb="create", group=CSRS, resource="certificatesigningrequests")
    assert not authorizer.authorize(other, asked).allowed


@pytest.mark.parametrize(
    ("path", "nobody", "anybody"),
    [
        ("/healthz", True, True),
        ("/livez", True, True),
        ("/readyz", True, True),
        ("/version", True, True),
        ("/readyz/verbose", False, False),
        ("/api", False, True),
        ("/apis", False, True),
        ("/apis/apps/v1", False, True),
        ("/openapi/v3", False, True),
        ("/metrics", False, False),
        ("/openid/v1/jwks", False, False),
        ("/", False, False),
    ],
)
def test_paths_are_open_to_whom_they_should_be(
    authorizer: Authorizer, path: str, nobody: bool, anybody: bool
) -> None:
    asked = Attributes(verb="get", path=path)
    assert authorizer.authorize(NOBODY, asked).allowed is nobody
    assert authorizer.authorize(ANYBODY, asked).allowed is anybody
    assert authorizer.authorize(ROOT, asked).allowed
    account = User("system:serviceaccount:a:b", ("system:serviceaccounts", *AUTHENTICATED))
    is_open = anybody or path == "/openid/v1/jwks"
    assert authorizer.authorize(account, asked).allowed is is_open


@pytest.mark.parametrize(
    ("group", "resource"),
    [
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
    ],
)
def test_everyone_known_may_ask_about_themselves(
    authorizer: Authorizer, group: str, resource: str
) -> None:
    asked = Attributes(verb="create", group=group, resource=resource)
    assert authorizer.authorize(ANYBODY, asked).allowed
    assert not authorizer.authorize(NOBODY, asked).allowed


def test_the_review_of_others_is_not_for_everyone(authorizer: Authorizer) -> None:
    for group, resource in (
        ("authorization.k8s.io", "subjectaccessreviews"),
        ("authentication.k8s.io", "tokenreviews"),
    ):
        asked = Attributes(verb="create", group=group, resource=resource)
        assert not authorizer.authorize(ANYBODY, asked).allowed


def test_an_administrator_sees_the_star_rules(authorizer: Authorizer) -> None:
    review = authorizer.rules_for(ROOT, "default")
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in review.resource_rules
    assert {"verbs": ["*"], "nonResourceURLs": ["*"]} in review.non_resource_rules


def test_the_objects_of_a_cluster_are_named_labelled_and_finalized() -> None:
    objects = cluster_rbac("one")
    prefix = "open-cluster-management:managedcluster:one"
    assert [
        (o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects
    ] == [
        ("ClusterRole", None, prefix),
        ("ClusterRoleBinding", None, prefix),
        ("RoleBinding", "one", f"{prefix}:registration"),
        ("RoleBinding", "one", f"{prefix}:work"),
    ]
    assert all(o["metadata"]["labels"] == {CLUSTER_NAME_LABEL: "one"} for o in objects)
    finalizers = [o["metadata"].get("finalizers") for o in objects]
    assert finalizers == [
        None,
        None,
        None,
        ["cluster.open-cluster-management.io/manifest-work-cleanup"],
    ]
    for bound in objects[1:]:
        assert [s["name"] for s in bound["subjects"]] == [
            "system:open-cluster-management:one",
            "open-cluster-management:one",
        ]
        assert {s["kind"] for s in bound["subjects"]} == {"Group"}
        assert {s["apiGroup"] for s in bound["subjects"]} == {"rbac.authorization.k8s.io"}
    assert [o["metadata"]["name"] for o in cluster_rbac("one", accepted=False)] == [prefix, prefix]


def test_shared_roles_carry_an_empty_cluster_label() -> None:
    roles = shared_cluster_roles()
    assert [r["metadata"]["name"] for r in roles] == [
        "open-cluster-management:managedcluster:registration",
        "open-cluster-management:managedcluster:work",
    ]
    assert all(r["metadata"]["labels"] == {CLUSTER_NAME_LABEL: ""} for r in roles)


def _all_objects() -> list[Obj]:
    denied = cluster_rbac("one", accepted=False)
    return [*default_objects(), *shared_cluster_roles(), *cluster_rbac("one"), *denied]


def test_every_object_is_complete_json_and_its_own() -> None:
    for obj in _all_objects():
        assert obj["apiVersion"] == "rbac.authorization.k8s.io/v1"
        assert json.loads(json.dumps(obj)) == obj
        if "Binding" in obj["kind"]:
            assert obj["roleRef"]
        else:
            assert obj.get("rules") or obj["aggregationRule"]
    # whoever stores one may change it without changing the next hub's
    for obj in _all_objects():
        obj["metadata"]["labels"]["changed"] = "yes"
        for found in obj.get("rules", []):
            found["verbs"].append("changed")
            found.get("nonResourceURLs", []).append("/changed")
        for subject in obj.get("subjects", []):
            subject["name"] = "changed"
    assert "changed" not in json.dumps(_all_objects())


def test_a_check_does_not_slow_down_with_the_fleet() -> None:
    authorizer = Authorizer()
    apply_all(authorizer, [*default_objects(), *shared_cluster_roles()])
    apply_all(authorizer, cluster_rbac("one"))
    asked = access_reviews("one")

    def visited() -> int:
        """How many bindings are looked at for all reviews."""
        grants = authorizer._grants
        return sum(len(list(grants(agent("one"), a.namespace))) for a in asked)

    alone = visited()
    for n in range(1000):
        apply_all(authorizer, cluster_rbac(f"c{n}"))
    assert visited() == alone
