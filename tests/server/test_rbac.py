"""Writing roles and bindings: who may, and what is refused.

The texts are those of a real kube-apiserver for the same requests.
"""

import asyncio
import json
from pathlib import Path

import pytest
import pytest_asyncio

from hub.meta import Obj
from tests.clients.cli import Kubectl
from tests.hubs import Api, InProcess, running_hub
from tests.server.support import RBAC, named

pytestmark = pytest.mark.asyncio(loop_scope="module")
GROUP = "rbac.authorization.k8s.io"
WRITER: Obj = {
    "apiGroups": [GROUP],
    "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
    "verbs": ["create", "update", "patch", "get"],
}
PODS: Obj = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
SECRETS: Obj = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}


def user(name: str) -> Obj:
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def binding(name: str, role: str, *subjects: Obj, kind: str = "ClusterRole") -> Obj:
    return named(name, roleRef={"kind": kind, "name": role}, subjects=list(subjects))


async def give(hub: InProcess, who: str, name: str, *rules: Obj) -> None:
    """Bind a user to rules, cluster-wide."""
    await hub.admin.create(f"{RBAC}/clusterroles", named(name, rules=list(rules)))
    await hub.admin.create(f"{RBAC}/clusterrolebindings", binding(name, name, user(who)))


@pytest_asyncio.fixture(loop_scope="module")
async def ann(hub: InProcess, name: str) -> Api:
    """Somebody who may write roles and bindings, and holds little else."""
    who = f"ann-{name}"
    await give(hub, who, f"{name}-writer", WRITER, PODS)
    return hub.admin.acting_as(who, "staff")


def paths(ns: str) -> dict[str, str]:
    local = f"{RBAC}/namespaces/{ns}"
    return {
        "roles": f"{local}/roles",
        "rolebindings": f"{local}/rolebindings",
        "clusterroles": f"{RBAC}/clusterroles",
        "clusterrolebindings": f"{RBAC}/clusterrolebindings",
    }


async def refused(api: Api, path: str, body: Obj, *, method: str = "POST") -> Obj:
    answer = await api.call(method, path, body)
    assert answer.status == 403, answer.body
    return answer.obj()


def grant_text(resource: str, name: str, who: str, *rules: str) -> str:
    return (
        f'{resource}.{GROUP} "{name}" is forbidden: user "ann-{who}" '
        '(groups=["staff" "system:authenticated"]) is attempting to grant RBAC permissions not '
        "currently held:\n" + "\n".join(rules)
    )


# -------------------------------------------------------------------- escalation


async def test_what_is_held_may_be_granted(ann: Api, ns: str) -> None:
    at = paths(ns)
    await ann.create(at["roles"], named("r", rules=[{**PODS, "verbs": ["list"]}]))
    await ann.create(at["rolebindings"], binding("b", "r", user("x"), kind="Role"))
    one = {**PODS, "resourceNames": ["a"]}
    await ann.create(at["clusterroles"], named(f"{ns}-r", rules=[one]))
    await ann.create(at["clusterrolebindings"], binding(f"{ns}-b", f"{ns}-r", user("x")))


async def test_what_is_not_held_is_listed_in_the_refusal(ann: Api, name: str, ns: str) -> None:
    rules = [
        {
            "apiGroups": ["", "apps"],
            "resources": ["pods", "deployments"],
            "verbs": ["get", "list", "watch"],
        },
        {**SECRETS, "resourceNames": ["a", "b"]},
    ]
    found = await refused(ann, paths(ns)["roles"], named("x", rules=rules))
    assert found["message"] == grant_text(
        "roles",
        "x",
        name,
        '{APIGroups:[""], Resources:["deployments"], Verbs:["get" "list" "watch"]}',
        '{APIGroups:[""], Resources:["pods"], Verbs:["watch"]}',
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get"]}',
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}',
        '{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list" "watch"]}',
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "list" "watch"]}',
    )
    assert found["details"] == {"name": "x", "group": GROUP, "kind": "roles"}
    rules = [
        {"nonResourceURLs": ["/metrics", '/x"y'], "verbs": ["get", "post"]},
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    ]
    found = await refused(ann, paths(ns)["clusterroles"], named("x", rules=rules))
    assert found["message"] == grant_text(
        "clusterroles",
        "x",
        name,
        '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}',
        '{NonResourceURLs:["/metrics"], Verbs:["get"]}',
        '{NonResourceURLs:["/metrics"], Verbs:["post"]}',
        '{NonResourceURLs:["/x\\"y"], Verbs:["get"]}',
        '{NonResourceURLs:["/x\\"y"], Verbs:["post"]}',
    )


async def test_a_binding_grants_what_its_role_holds(ann: Api, name: str, ns: str) -> None:
    for resource in ("rolebindings", "clusterrolebindings"):
        found = await refused(ann, paths(ns)[resource], binding("x", "cluster-admin", user("x")))
        assert found["message"] == grant_text(
            resource,
            "x",
            name,
            '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}',
            '{NonResourceURLs:["*"], Verbs:["*"]}',
        )
    for kind in ("ClusterRole", "Role"):
        answer = await ann.call(
            "POST", paths(ns)["rolebindings"], binding("x", f"{ns}-none", kind=kind)
        )
        assert answer.status == 404
        assert answer.obj()["message"] == f'rolebindings.{GROUP} "{ns}-none" not found'


async def test_an_update_may_not_grant_more_either(hub: InProcess, ann: Api, ns: str) -> None:
    at = paths(ns)
    role = await ann.create(at["roles"], named("r", rules=[PODS]))
    await refused(ann, f"{at['roles']}/r", {**role, "rules": [SECRETS]}, method="PUT")
    patch = await ann.call(
        "PATCH",
        f"{at['roles']}/r",
        {"rules": [SECRETS]},
        content_type="application/merge-patch+json",
    )
    assert patch.status == 403
    dry = await ann.call("POST", f"{at['roles']}?dryRun=All", named("d", rules=[SECRETS]))
    assert dry.status == 403
    await hub.admin.create(at["roles"], named("strong", rules=[SECRETS]))
    bound = await hub.admin.create(at["rolebindings"], binding("b", "strong", kind="Role"))
    await refused(
        ann, f"{at['rolebindings']}/b", {**bound, "subjects": [user("ann")]}, method="PUT"
    )
    assert (await hub.admin.get(f"{at['rolebindings']}/b")).get("subjects") == []


async def test_the_collector_may_take_owners_and_finalizers_off_any_role(
    hub: InProcess, ann: Api, ns: str
) -> None:
    path = f"{paths(ns)['roles']}/strong"
    body = named("strong", rules=[SECRETS])
    body["metadata"]["finalizers"] = ["example.com/hold"]
    await hub.admin.create(paths(ns)["roles"], body)
    await ann.patch(path, {"metadata": {"finalizers": None}})
    label = {"metadata": {"labels": {"a": "b"}}}
    answer = await ann.call("PATCH", path, label, content_type="application/merge-patch+json")
    assert answer.status == 403


async def test_escalate_and_bind_exempt_from_it(
    hub: InProcess, ann: Api, name: str, ns: str
) -> None:
    at = paths(ns)
    strong = named("strong", rules=[SECRETS])
    await hub.admin.create(at["roles"], named("other", rules=[SECRETS]))
    await refused(ann, at["roles"], strong)
    rule = {"apiGroups": [GROUP], "resources": ["roles"], "verbs": ["escalate", "bind"]}
    await hub.admin.create(at["roles"], named("boss", rules=[{**rule, "resourceNames": ["other"]}]))
    boss = binding("boss", "boss", user(f"ann-{name}"), kind="Role")
    await hub.admin.create(at["rolebindings"], boss)
    # a right on names does not reach creations, and bind reaches no other role
    await refused(ann, at["roles"], strong)
    await ann.patch(f"{at['roles']}/other", {"rules": [{**SECRETS, "verbs": ["*"]}]})
    await ann.create(at["rolebindings"], binding("b", "other", kind="Role"))
    await hub.admin.patch(f"{at['roles']}/boss", {"rules": [rule]})
    await ann.create(at["roles"], strong)
    await ann.create(at["rolebindings"], binding("b2", "strong", kind="Role"))
    # it holds in its own namespace only
    await refused(ann, at["clusterroles"], strong)
    await refused(ann, at["rolebindings"], binding("b3", "cluster-admin"))


async def test_a_refusal_says_which_roles_it_missed(
    hub: InProcess, ann: Api, name: str, ns: str
) -> None:
    who = user(f"ann-{name}")
    await hub.admin.create(f"{RBAC}/clusterrolebindings", binding(f"{name}-1", f"{name}-gone", who))
    rules = [{**PODS, "verbs": ["watch"]}]
    found = await refused(ann, paths(ns)["roles"], named("x", rules=rules))
    lacking = '{APIGroups:[""], Resources:["pods"], Verbs:["watch"]}; resolution errors: '
    gone = f'roles.{GROUP} "{name}-gone" not found'
    assert found["message"].endswith(f"\n{lacking}[{gone}]")
    await hub.admin.create(
        f"{RBAC}/namespaces/{ns}/rolebindings", binding("2", f"{name}-gone2", who)
    )
    found = await refused(ann, paths(ns)["roles"], named("x", rules=rules))
    second = f'roles.{GROUP} "{name}-gone2" not found'
    assert found["message"].endswith(f"\n{lacking}[[{gone}, {second}]]")


async def test_rules_that_multiply_beyond_measure_are_refused_at_once(ann: Api, ns: str) -> None:
    many = [f"x{number}" for number in range(2000)]
    rule = {"apiGroups": many, "resources": many, "verbs": many}
    found = await refused(ann, paths(ns)["roles"], named("x", rules=[rule]))
    assert "more than 10000 single grants" in found["message"]


# -------------------------------------------------------------------- validation

UNKNOWN_VERB = "rules[0].verbs: Required value: verbs must contain at least one value"
NO_GROUP = "rules[0].apiGroups: Required value: resource rules must supply at least one api group"
NO_RESOURCE = "rules[0].resources: Required value: resource rules must supply at least one resource"
LOCAL_URL = (
    'rules[0].nonResourceURLs: Invalid value: ["/a","/b"]: '
    "namespaced rules cannot apply to non-resource URLs"
)
BOTH = (
    'rules[0].nonResourceURLs: Invalid value: ["/a","/b"]: '
    "rules cannot apply to both regular resources and non-resource URLs"
)
SELECTORS = "aggregationRule.clusterRoleSelectors"
BAD_SELECTOR = f"{SELECTORS}[0]: Invalid value: null: invalid label selector."
URLS = ["/a", "/b"]


def of_selector(**selector: object) -> Obj:
    return {"aggregationRule": {"clusterRoleSelectors": [selector]}}


def of_subject(**subject: str) -> Obj:
    return {"roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": [subject]}


@pytest.mark.parametrize(
    ("resource", "body", "field"),
    [
        ("clusterrolebindings", {**of_subject(), "subjects": [None]}, "subjects[0].name"),
        ("rolebindings", {**of_subject(), "subjects": [None]}, "subjects[0].name"),
        ("clusterroles", {"rules": [None]}, "rules[0].verbs"),
    ],
)
async def test_a_null_element_is_refused_by_its_field(
    hub: InProcess, ns: str, resource: str, body: Obj, field: str
) -> None:
    """Go leaves a zero value there, and validation names what is missing."""
    path = f"{RBAC}/{resource}" if "cluster" in resource else f"{RBAC}/namespaces/{ns}/{resource}"
    answer = await hub.admin.call("POST", path, named("null-element", **body))
    assert answer.status == 422, answer.body
    assert field in {cause["field"] for cause in answer.obj()["details"]["causes"]}


@pytest.mark.parametrize(
    ("resource", "body", "texts"),
    [
        ("roles", {"rules": [{"apiGroups": [""], "resources": ["pods"]}]}, [UNKNOWN_VERB]),
        ("roles", {"rules": [{"resources": ["pods"], "verbs": ["get"]}]}, [NO_GROUP]),
        ("roles", {"rules": [{"apiGroups": [""], "verbs": ["get"]}]}, [NO_RESOURCE]),
        ("roles", {"rules": [{}]}, [UNKNOWN_VERB, NO_GROUP, NO_RESOURCE]),
        ("roles", {"rules": [{"nonResourceURLs": URLS, "verbs": ["get"]}]}, [LOCAL_URL]),
        (
            "roles",
            {"rules": [{"nonResourceURLs": URLS, "verbs": ["get"], "resources": ["a"]}]},
            [LOCAL_URL, BOTH],
        ),
        (
            "clusterroles",
            {"rules": [{"nonResourceURLs": URLS, "resources": ["a"]}]},
            [UNKNOWN_VERB, BOTH],
        ),
        (
            "clusterroles",
            {"aggregationRule": {}},
            [
                (
                    f"{SELECTORS}: Required value: at least one clusterRoleSelector required if "
                    "aggregationRule is non-nil"
                )
            ],
        ),
        (
            "clusterroles",
            of_selector(matchExpressions=[{"key": "a", "operator": "Foo"}]),
            [
                (
                    f'{SELECTORS}[0].matchExpressions[0].operator: Invalid value: "Foo": '
                    "not a valid selector operator"
                ),
                BAD_SELECTOR,
            ],
        ),
        (
            "clusterroles",
            of_selector(matchExpressions=[{"key": "a", "operator": "In"}]),
            [
                (
                    f"{SELECTORS}[0].matchExpressions[0].values: Required value: must be specified "
                    "when `operator` is 'In' or 'NotIn'"
                ),
                BAD_SELECTOR,
            ],
        ),
        (
            "clusterroles",
            of_selector(matchExpressions=[{"key": "a", "operator": "Exists", "values": ["x"]}]),
            [
                (
                    f"{SELECTORS}[0].matchExpressions[0].values: Forbidden: may not be specified "
                    "when `operator` is 'Exists' or 'DoesNotExist'"
                ),
                BAD_SELECTOR,
            ],
        ),
        (
            "rolebindings",
            {},
            [
                'roleRef.kind: Unsupported value: "": supported values: "Role", "ClusterRole"',
                "roleRef.name: Required value",
            ],
        ),
        (
            "rolebindings",
            {"roleRef": {"apiGroup": "foo", "kind": "Role", "name": "x"}},
            [f'roleRef.apiGroup: Unsupported value: "foo": supported values: "{GROUP}"'],
        ),
        (
            "clusterrolebindings",
            {"roleRef": {"kind": "Role", "name": "x"}},
            ['roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'],
        ),
        (
            "rolebindings",
            {"roleRef": {"kind": "Role", "name": "a/b%"}},
            [
                "roleRef.name: Invalid value: \"a/b%\": may not contain '/'",
                "roleRef.name: Invalid value: \"a/b%\": may not contain '%'",
            ],
        ),
        (
            "rolebindings",
            of_subject(name="x"),
            [
                (
                    'subjects[0].kind: Unsupported value: "": supported values: "ServiceAccount", '
                    '"User", "Group"'
                )
            ],
        ),
        ("rolebindings", of_subject(kind="User"), ["subjects[0].name: Required value"]),
        (
            "rolebindings",
            of_subject(kind="Group", apiGroup="x", name="y"),
            [f'subjects[0].apiGroup: Unsupported value: "x": supported values: "{GROUP}"'],
        ),
        (
            "rolebindings",
            of_subject(kind="ServiceAccount", name="a", apiGroup=GROUP),
            [f'subjects[0].apiGroup: Unsupported value: "{GROUP}": supported values: ""'],
        ),
        (
            "clusterrolebindings",
            of_subject(kind="ServiceAccount", name="a"),
            ["subjects[0].namespace: Required value"],
        ),
    ],
)
async def test_what_makes_no_sense_is_422(
    hub: InProcess, ns: str, resource: str, body: Obj, texts: list[str]
) -> None:
    answer = await hub.admin.call("POST", paths(ns)[resource], named("x", **body))
    assert answer.status == 422, answer.body
    found = answer.obj()
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    assert found["message"].endswith(f' "x" is invalid: {joined}')
    causes = [f"{cause['field']}: {cause['message']}" for cause in found["details"]["causes"]]
    assert causes == texts


async def test_what_is_unusual_and_makes_sense_is_taken(hub: InProcess, ns: str) -> None:
    at = paths(ns)
    for resource, body in (
        ("rolebindings", of_subject(kind="ServiceAccount", name="a")),
        ("rolebindings", of_subject(kind="User", name="a", namespace="x")),
        ("clusterroles", of_selector()),
        ("clusterroles", {}),
        ("roles", {"rules": None}),
    ):
        await hub.admin.create(f"{at[resource]}?dryRun=All", named("x", **body))
    # as the JSON of Go's type, which has no omitempty there
    bare = await hub.admin.create(f"{at['roles']}?dryRun=All", named("x"))
    assert "rules" in bare
    assert bare["rules"] is None


async def test_a_binding_keeps_its_role(hub: InProcess, ns: str) -> None:
    path = paths(ns)["rolebindings"]
    made = await hub.admin.create(path, binding("y", "view"))
    made["roleRef"]["name"] = "edit"
    answer = await hub.admin.call("PUT", f"{path}/y", made)
    assert (answer.status, answer.obj()["message"]) == (
        422,
        (
            f'RoleBinding.{GROUP} "y" is invalid: roleRef: Invalid value: '
            f'{{"APIGroup":"{GROUP}","Kind":"ClusterRole","Name":"edit"}}: cannot change roleRef'
        ),
    )


# -------------------------------------------------------------------- aggregation


async def rules_of(hub: InProcess, name: str, expected: list[Obj]) -> None:
    """Wait until a role has these rules."""
    path = f"{RBAC}/clusterroles?fieldSelector=metadata.name%3D{name}&watch=1"
    async with hub.admin.watch(path) as watch:
        while (await watch.next())["object"].get("rules") != expected:
            pass


async def test_a_role_gathers_the_rules_of_those_it_chooses(hub: InProcess, name: str) -> None:
    roles, label = f"{RBAC}/clusterroles", f"example.com/{name}"
    selectors = [
        {"matchLabels": {label: "b"}},
        {"matchExpressions": [{"key": label, "operator": "In", "values": ["a", "b"]}]},
    ]

    def part(suffix: str, value: str, *rules: Obj) -> Obj:
        body = named(f"{name}-{suffix}", rules=list(rules))
        body["metadata"]["labels"] = {label: value}
        return body

    await hub.admin.create(roles, part("1", "a", PODS))
    whole = named(name, aggregationRule={"clusterRoleSelectors": selectors}, rules=[WRITER])
    # it does not choose itself
    whole["metadata"]["labels"] = {label: "a"}
    await hub.admin.create(roles, whole)
    await rules_of(hub, name, [PODS])
    await hub.admin.create(roles, part("2", "b", SECRETS, PODS))
    await rules_of(hub, name, [SECRETS, PODS])
    await hub.admin.patch(f"{roles}/{name}", {"rules": [WRITER]})
    await rules_of(hub, name, [SECRETS, PODS])
    await hub.admin.patch(f"{roles}/{name}-2", {"rules": [SECRETS]})
    await hub.admin.patch(f"{roles}/{name}-1", {"metadata": {"labels": {label: "c"}}})
    await rules_of(hub, name, [SECRETS])
    await hub.admin.create(f"{RBAC}/clusterrolebindings", binding(name, name, user(name)))
    reader = hub.admin.acting_as(name)
    assert (await reader.call("GET", "/api/v1/namespaces/default/secrets/x")).status == 404
    await hub.admin.call("DELETE", f"{roles}/{name}-2")
    await rules_of(hub, name, [])
    # what is in the store reaches the authorizer with the event, a moment later
    async with asyncio.timeout(10):
        while (await reader.call("GET", "/api/v1/namespaces/default/secrets/x")).status != 403:
            pass


async def test_a_start_gives_default_roles_back_what_they_lack(tmp_path: Path) -> None:
    kept, given = f"{RBAC}/clusterroles/system:discovery", f"{RBAC}/clusterroles/system:basic-user"
    bound = f"{RBAC}/clusterrolebindings/system:discovery"
    async with running_hub(tmp_path / "data") as hub:
        rules = (await hub.admin.get(given))["rules"]
        subjects = (await hub.admin.get(bound))["subjects"]
        mark = {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}
        await hub.admin.patch(kept, {"rules": [PODS], "metadata": mark})
        await hub.admin.patch(given, {"rules": [PODS, rules[0]]})
        await hub.admin.patch(bound, {"subjects": [user("ann")]})
    async with running_hub(tmp_path / "data") as hub:
        assert (await hub.admin.get(kept))["rules"] == [PODS]
        assert (await hub.admin.get(given))["rules"] == [PODS, *rules]
        found = await hub.admin.get(bound)
        assert found["subjects"] == [user("ann"), *subjects]
        before = found["metadata"]["resourceVersion"]
    async with running_hub(tmp_path / "data") as hub:
        assert (await hub.admin.get(bound))["metadata"]["resourceVersion"] == before


async def test_only_who_may_do_everything_writes_an_aggregation(
    hub: InProcess, ann: Api, name: str
) -> None:
    body = named(
        f"{name}-a", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {name: "b"}}]}
    )
    path = f"{RBAC}/clusterroles"
    found = await refused(ann, path, body)
    assert found["message"] == (
        f'clusterroles.{GROUP} "{name}-a" is forbidden: must have cluster-admin privileges to use '
        "the aggregationRule"
    )
    made = await hub.admin.create(path, body)
    made["metadata"]["labels"] = {"x": "y"}
    del made["aggregationRule"]
    await refused(ann, f"{path}/{name}-a", made, method="PUT")


async def test_view_edit_and_admin_build_on_each_other(hub: InProcess, ns: str) -> None:
    for level in ("view", "edit", "admin"):
        body = binding(level, level, user(f"{ns}-{level}"))
        await hub.admin.create(f"{RBAC}/namespaces/{ns}/rolebindings", body)

    async def may(verb: str, resource: str, group: str = "") -> list[str]:
        asked = {"verb": verb, "resource": resource, "group": group, "namespace": ns}
        found = []
        for level in ("view", "edit", "admin"):
            spec = {"user": f"{ns}-{level}", "resourceAttributes": asked}
            path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
            if (await hub.admin.create(path, {"spec": spec}))["status"]["allowed"]:
                found.append(level)
        return found

    role = await hub.admin.get(f"{RBAC}/clusterroles/system:aggregate-to-view")
    async with hub.admin.watch(
        f"{RBAC}/clusterroles?fieldSelector=metadata.name%3Dadmin&watch=1"
    ) as watch:
        while role["rules"][0] not in ((await watch.next())["object"].get("rules") or []):
            pass
    assert await may("list", "configmaps") == ["view", "edit", "admin"]
    assert await may("update", "configmaps") == ["edit", "admin"]
    assert await may("get", "secrets") == ["edit", "admin"]
    assert await may("create", "rolebindings", GROUP) == ["admin"]
    works = "work.open-cluster-management.io"
    assert await may("create", "manifestworks", works) == ["admin"]
    assert await may("get", "leases", "coordination.k8s.io") == ["view", "edit", "admin"]
    assert await may("delete", "namespaces") == []
    # an admin may hand on what admins hold, and no more
    admin = hub.admin.acting_as(f"{ns}-admin")
    path = f"{RBAC}/namespaces/{ns}/rolebindings"
    await admin.create(path, binding("helper", "edit", user("helper")))
    await refused(admin, path, binding("boss", "cluster-admin", user("helper")))


async def test_kubectl_creates_binds_and_reconciles(
    hub: InProcess, ns: str, kubectl: Path, tmp_path: Path
) -> None:
    tool = Kubectl(kubectl, hub.kubeconfig, tmp_path)
    await tool.ok("create", "role", "r", "--verb=get", "--resource=configmaps", "-n", ns)
    await tool.ok("create", "rolebinding", "b", "--clusterrole=admin", "--user=ann", "-n", ns)
    label = f"--aggregation-rule=example.com/{ns}=yes"
    await tool.ok("create", "clusterrole", ns, label)
    mine = ("-n", ns, "--as", "ann")
    await tool.ok("create", "role", "own", "--verb=get", "--resource=secrets", *mine)
    refusal = await tool.run(
        "create", "rolebinding", "boss", "--clusterrole=cluster-admin", "--user=eve", *mine
    )
    assert refusal.code == 1
    assert refusal.err == (
        "error: failed to create rolebinding: rolebindings.rbac.authorization.k8s.io "
        '"boss" is forbidden: user "ann" (groups=["system:authenticated"]) is attempting to grant '
        'RBAC permissions not currently held:\n{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n'
        '{NonResourceURLs:["*"], Verbs:["*"]}\n'
    )
    wanted = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Role",
        "metadata": {"name": "r", "namespace": ns},
        "rules": [SECRETS],
    }
    await tool.ok("auth", "reconcile", "-f", "-", stdin=json.dumps(wanted))
    found = await hub.admin.get(f"{paths(ns)['roles']}/r")
    assert found["rules"] == [{**SECRETS, "resources": ["configmaps"]}, SECRETS]
