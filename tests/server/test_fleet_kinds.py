"""OCM's kinds over the wire: each can be created, read, listed, watched and given a status."""

from dataclasses import dataclass, field

import pytest

from hub.fleet.kinds import FLEET
from hub.meta import Obj
from hub.registry.kind import Kind
from tests.hubs import MERGE, InProcess
from tests.server.support import TABLE

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADDONS = "/apis/addon.open-cluster-management.io"
CLUSTERS = "/apis/cluster.open-cluster-management.io"
WORKS = "/apis/work.open-cluster-management.io"
WHEN = "2026-01-01T00:00:00Z"
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Tested",
    "message": "",
    "lastTransitionTime": WHEN,
}
HASH = {"name": "d", "specHash": "abc"}
ROLLOUT = {"type": "All"}
TEMPLATE = {
    "workload": {
        "manifests": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
        ]
    }
}


@dataclass(frozen=True)
class Sample:
    """An object of one kind: what is sent, what the hub makes of its spec, and a status."""

    kind: str
    base: str
    spec: Obj | None = None
    filled: Obj | None = None
    status: Obj | None = None
    change: Obj = field(default_factory=dict)

    @property
    def served(self) -> Kind:
        return next(kind for kind in FLEET if kind.kind == self.kind)

    def path(self, namespace: str) -> str:
        middle = f"/namespaces/{namespace}" if self.served.is_namespaced else ""
        return f"{self.base}{middle}/{self.served.plural}"

    def obj(self, name: str) -> Obj:
        body: Obj = {"apiVersion": self.base.removeprefix("/apis/"), "kind": self.kind}
        body["metadata"] = {"name": name}
        return body if self.spec is None else {**body, "spec": self.spec}


MANUAL = {"type": "Manual"}
SAMPLES = (
    Sample(
        "Placement",
        f"{CLUSTERS}/v1beta1",
        spec={
            "numberOfClusters": 2,
            "decisionStrategy": {"groupStrategy": {}},
            "prioritizerPolicy": {"configurations": [{"scoreCoordinate": {"builtIn": "Steady"}}]},
            "tolerations": [{"key": "k"}],
            "spreadPolicy": {
                "spreadConstraints": [{"topologyKey": "zone", "topologyKeyType": "Claim"}]
            },
        },
        filled={
            "numberOfClusters": 2,
            "decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "100%"}},
            "prioritizerPolicy": {
                "mode": "Additive",
                "configurations": [
                    {"weight": 1, "scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}}
                ],
            },
            "tolerations": [{"key": "k", "operator": "Equal"}],
            "spreadPolicy": {
                "spreadConstraints": [
                    {
                        "topologyKey": "zone",
                        "topologyKeyType": "Claim",
                        "maxSkew": 1,
                        "whenUnsatisfiable": "ScheduleAnyway",
                    }
                ]
            },
            "scoreRateLimit": "1m",
            "sortBy": "ClusterName",
        },
        status={
            "conditions": [CONDITION],
            "numberOfSelectedClusters": 1,
            "decisionGroups": [{"decisionGroupIndex": 0, "clusterCount": 0}],
        },
        change={"numberOfClusters": 3},
    ),
    Sample(
        "PlacementDecision",
        f"{CLUSTERS}/v1beta1",
        status={"decisions": [{"clusterName": "a", "reason": "", "score": 7}]},
    ),
    Sample(
        "AddOnPlacementScore",
        f"{CLUSTERS}/v1alpha1",
        status={"scores": [{"name": "cpu", "value": -100}], "validUntil": WHEN},
    ),
    Sample(
        "ManifestWorkReplicaSet",
        f"{WORKS}/v1alpha1",
        spec={"manifestWorkTemplate": TEMPLATE, "placementRefs": [{"name": "p"}]},
        filled={
            "cascadeDeletionPolicy": "Background",
            "manifestWorkTemplate": TEMPLATE,
            "placementRefs": [
                {
                    "name": "p",
                    "rolloutStrategy": {
                        "type": "All",
                        "all": {
                            "maxFailures": 0,
                            "minSuccessTime": "0",
                            "progressDeadline": "None",
                        },
                    },
                }
            ],
        },
        status={"conditions": [CONDITION], "summary": {"total": 3, "applied": 0}},
        change={"cascadeDeletionPolicy": "Foreground"},
    ),
    Sample(
        "ClusterManagementAddOn",
        f"{ADDONS}/v1alpha1",
        spec={"supportedConfigs": [{"resource": "rs"}]},
        filled={
            "supportedConfigs": [{"group": "", "resource": "rs"}],
            "installStrategy": MANUAL,
        },
        status={
            "defaultconfigReferences": [{"group": "", "resource": "rs", "desiredConfig": HASH}]
        },
        change={"addOnMeta": {"displayName": "A"}},
    ),
    Sample(
        "ClusterManagementAddOn",
        f"{ADDONS}/v1beta1",
        spec={
            "addOnMeta": {"displayName": "A"},
            "installStrategy": {
                "type": "Placements",
                "placements": [{"namespace": "n", "name": "p"}],
            },
            "defaultConfigs": [{"resource": "rs", "name": "d"}],
        },
        filled={
            "addOnMeta": {"displayName": "A"},
            "installStrategy": {
                "type": "Placements",
                "placements": [{"namespace": "n", "name": "p", "rolloutStrategy": ROLLOUT}],
            },
            "defaultConfigs": [{"group": "", "resource": "rs", "name": "d"}],
        },
        status={
            "installProgressions": [{"namespace": "n", "name": "p", "conditions": [CONDITION]}]
        },
        change={"addOnMeta": {"displayName": "B"}},
    ),
    *(
        Sample(
            "AddOnDeploymentConfig",
            f"{ADDONS}/{version}",
            spec={"customizedVariables": [{"name": "A", "value": "1"}]},
            filled={
                "customizedVariables": [{"name": "A", "value": "1"}],
                "agentInstallNamespace": "open-cluster-management-agent-addon",
            },
            change={"agentInstallNamespace": ""},
        )
        for version in ("v1alpha1", "v1beta1")
    ),
    *(
        Sample(
            "AddOnTemplate",
            f"{ADDONS}/{version}",
            spec={
                "addonName": "a",
                "agentSpec": {**TEMPLATE, "deleteOption": {}},
                "registration": [{"type": "KubeClient"}],
            },
            filled={
                "addonName": "a",
                "agentSpec": {**TEMPLATE, "deleteOption": {"propagationPolicy": "Foreground"}},
                "registration": [{"type": "KubeClient"}],
            },
            change={"addonName": "b"},
        )
        for version in ("v1alpha1", "v1beta1")
    ),
)
FAULTS: tuple[tuple[str, Obj | None, str], ...] = (
    (
        "Placement",
        {"sortBy": "Luck"},
        'spec.sortBy: Unsupported value: "Luck": supported values: "ClusterName", "Score"',
    ),
    ("Placement", None, "spec: Required value"),
    (
        "Placement",
        {"clusterSets": "all"},
        (
            'spec.clusterSets: Invalid value: "string": spec.clusterSets in body must be of type '
            'array: "string"'
        ),
    ),
    (
        "ManifestWorkReplicaSet",
        {"placementRefs": []},
        (
            "spec.placementRefs: Invalid value: 0: spec.placementRefs in body should have at least "
            "1 items"
        ),
    ),
    ("AddOnTemplate", {"addonName": "a"}, "spec.agentSpec: Required value"),
)
EACH = pytest.mark.parametrize(
    "sample", SAMPLES, ids=[f"{s.kind}-{s.base.rpartition('/')[2]}" for s in SAMPLES]
)


async def put_status(hub: InProcess, path: str, obj: Obj, status: Obj) -> Obj:
    answer = await hub.admin.call("PUT", f"{path}/status", {**obj, "status": status})
    assert answer.status == 200, answer.body
    return answer.obj()


@EACH
async def test_an_object_gets_its_defaults_and_comes_back_from_get_and_list(
    hub: InProcess, ns: str, name: str, sample: Sample
) -> None:
    path = sample.path(ns)
    made = await hub.admin.create(path, sample.obj(name))
    assert made.get("spec") == (sample.filled or sample.spec)
    assert made["metadata"]["generation"] == 1
    assert (made["kind"], f"/apis/{made['apiVersion']}") == (sample.kind, sample.base)
    assert await hub.admin.get(f"{path}/{name}") == made
    listed = await hub.admin.get(path)
    assert listed["kind"] == f"{sample.kind}List"
    assert [o for o in listed["items"] if o["metadata"]["name"] == name] == [made]


@EACH
async def test_a_watch_tells_of_an_objects_life(
    hub: InProcess, ns: str, name: str, sample: Sample
) -> None:
    path = sample.path(ns)
    async with hub.admin.watch(f"{path}?watch=1&fieldSelector=metadata.name%3D{name}") as watch:
        made = await hub.admin.create(path, sample.obj(name))
        assert await watch.next() == {"type": "ADDED", "object": made}
        labelled = await hub.admin.patch(f"{path}/{name}", {"metadata": {"labels": {"a": "b"}}})
        assert await watch.next() == {"type": "MODIFIED", "object": labelled}
        assert labelled["metadata"]["generation"] == 1
        if sample.change:
            changed = await hub.admin.patch(f"{path}/{name}", {"spec": sample.change})
            assert await watch.next() == {"type": "MODIFIED", "object": changed}
            assert changed["metadata"]["generation"] == 2
        assert (await hub.admin.call("DELETE", f"{path}/{name}")).status == 200
        assert (await watch.next())["type"] == "DELETED"


@EACH
async def test_status_is_written_by_its_own_subresource_alone(
    hub: InProcess, ns: str, name: str, sample: Sample
) -> None:
    path = sample.path(ns)
    if sample.status is None:
        made = await hub.admin.create(path, sample.obj(name))
        assert (await hub.admin.call("GET", f"{path}/{name}/status")).status == 404
        assert "status" not in made
        return
    made = await hub.admin.create(path, {**sample.obj(name), "status": sample.status})
    assert not made.get("status")
    written = await put_status(hub, f"{path}/{name}", made, sample.status)
    assert written["status"] == sample.status
    assert written.get("spec") == made.get("spec")
    assert written["metadata"]["generation"] == 1
    cleared = await hub.admin.call(
        "PUT", f"{path}/{name}", {k: v for k, v in written.items() if k != "status"}
    )
    assert cleared.obj()["status"] == sample.status
    assert (await hub.admin.get(f"{path}/{name}/status"))["status"] == sample.status


@EACH
async def test_a_table_has_the_columns_of_the_kind(
    hub: InProcess, ns: str, name: str, sample: Sample
) -> None:
    path = sample.path(ns)
    await hub.admin.create(path, sample.obj(name))
    table = (await hub.admin.call("GET", f"{path}/{name}", accept=TABLE)).obj()
    columns = [column["name"] for column in table["columnDefinitions"]]
    assert columns[0] == "Name"
    assert len(columns) >= 2
    assert [len(row["cells"]) for row in table["rows"]] == [len(columns)]
    assert table["rows"][0]["cells"][0] == name


async def test_discovery_tells_short_names_versions_and_status(hub: InProcess) -> None:
    found: dict[str, Obj] = {}
    for kind in FLEET:
        for view in kind.views:
            listed = await hub.admin.get(f"/apis/{view.api_version}")
            resources = {r["name"]: r for r in listed["resources"]}
            found[f"{kind.kind}/{view.version}"] = resources[kind.plural]
            assert (f"{kind.plural}/status" in resources) == kind.has_status
    assert len(found) == 16
    short = {
        kind: resource["shortNames"] for kind, resource in found.items() if "shortNames" in resource
    }
    assert short == {
        "ManagedCluster/v1": ["mcl", "mcls"],
        "ManagedClusterSet/v1beta2": ["mclset", "mclsets"],
        "ManagedClusterSetBinding/v1beta2": ["mclsetbinding", "mclsetbindings"],
        "ManifestWorkReplicaSet/v1alpha1": ["mwrs"],
        "ManagedClusterAddOn/v1alpha1": ["mca", "mcas"],
        "ManagedClusterAddOn/v1beta1": ["mca", "mcas"],
        "ClusterManagementAddOn/v1alpha1": ["cma", "cmas"],
        "ClusterManagementAddOn/v1beta1": ["cma", "cmas"],
    }
    assert not found["AddOnTemplate/v1beta1"]["namespaced"]
    assert found["AddOnDeploymentConfig/v1beta1"]["namespaced"]


async def test_a_management_add_on_is_one_object_in_two_versions(hub: InProcess, name: str) -> None:
    old, new = (f"{ADDONS}/{v}/clustermanagementaddons" for v in ("v1alpha1", "v1beta1"))
    supported = [
        {"group": "g", "resource": "as"},
        {"group": "g", "resource": "bs", "defaultConfig": {"namespace": "n", "name": "d"}},
    ]
    spec = {"supportedConfigs": supported, "addOnConfiguration": {"crdName": "c"}}
    async with hub.admin.watch(f"{new}?watch=1&fieldSelector=metadata.name%3D{name}") as watch:
        made = await hub.admin.create(old, {"metadata": {"name": name}, "spec": spec})
        shown = await hub.admin.get(f"{new}/{name}")
        assert shown["spec"] == {
            "addOnMeta": {},
            "installStrategy": MANUAL,
            "defaultConfigs": [
                {"group": "g", "resource": "as", "name": "__reserved_no_default__"},
                {"group": "g", "resource": "bs", "namespace": "n", "name": "d"},
            ],
        }
        assert shown["metadata"] == made["metadata"]
        assert await watch.next() == {"type": "ADDED", "object": shown}
    references = [{"group": "g", "resource": "as", "desiredConfig": HASH}]
    answer = await hub.admin.call(
        "PATCH",
        f"{new}/{name}/status",
        {"status": {"defaultConfigReferences": references}},
        content_type=MERGE,
    )
    assert answer.obj()["status"] == {"defaultConfigReferences": references}
    kept = await hub.admin.get(f"{old}/{name}")
    assert kept["status"] == {"defaultconfigReferences": references}
    assert kept["spec"] == {**spec, "installStrategy": MANUAL}
    configs = shown["spec"]["defaultConfigs"]
    await hub.admin.patch(f"{new}/{name}", {"spec": {"defaultConfigs": [*configs[1:], configs[0]]}})
    turned = await hub.admin.get(f"{old}/{name}")
    assert turned["spec"]["supportedConfigs"] == supported[::-1]
    assert "addOnConfiguration" not in turned["spec"]


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
async def test_configs_and_templates_are_equal_in_both_versions(
    hub: InProcess, ns: str, name: str, version: str
) -> None:
    other = "v1beta1" if version == "v1alpha1" else "v1alpha1"
    for sample in SAMPLES:
        if sample.kind not in ("AddOnTemplate", "AddOnDeploymentConfig"):
            continue
        if not sample.base.endswith(version):
            continue
        made = await hub.admin.create(sample.path(ns), sample.obj(name))
        there = sample.path(ns).replace(f"/{version}/", f"/{other}/")
        shown = await hub.admin.get(f"{there}/{name}")
        group = made["apiVersion"].partition("/")[0]
        assert shown == {**made, "apiVersion": f"{group}/{other}"}
        assert shown["spec"] == sample.filled


async def test_organization_units_have_their_name_in_each_version(
    hub: InProcess, ns: str, name: str
) -> None:
    old, new = (
        f"{ADDONS}/{v}/namespaces/{ns}/managedclusteraddons/{name}" for v in ("v1alpha1", "v1beta1")
    )
    made = await hub.admin.create(old.rpartition("/")[0], {"metadata": {"name": name}, "spec": {}})
    subject = {"user": "u", "groups": ["g"], "organizationUnit": ["ou"]}
    registrations = [{"signerName": "example.com/signer", "subject": subject}]
    await put_status(hub, old, made, {"registrations": registrations})
    shown = await hub.admin.get(new)
    signer = {
        "signerName": "example.com/signer",
        "subject": {"user": "u", "groups": ["g"], "organizationUnits": ["ou"]},
    }
    assert shown["status"]["registrations"] == [{"type": "customSigner", "customSigner": signer}]
    await put_status(hub, new, shown, shown["status"])
    assert (await hub.admin.get(old))["status"]["registrations"] == registrations


async def test_unknown_fields_are_dropped(hub: InProcess, ns: str, name: str) -> None:
    path = f"{CLUSTERS}/v1beta2/namespaces/{ns}/managedclustersetbindings"
    body = {"metadata": {"name": name}, "spec": {"clusterSet": name, "x": 1}, "y": 2}
    made = await hub.admin.create(path, body)
    assert (made["spec"], "y" in made) == ({"clusterSet": name}, False)


@EACH
async def test_an_object_with_a_finalizer_is_written_to_while_it_is_deleted(
    hub: InProcess, ns: str, name: str, sample: Sample
) -> None:
    path = f"{sample.path(ns)}/{name}"
    body = sample.obj(name)
    body["metadata"]["finalizers"] = ["example.com/hold"]
    await hub.admin.create(sample.path(ns), body)
    held = (await hub.admin.call("DELETE", path)).obj()
    assert held["metadata"]["deletionGracePeriodSeconds"] == 0
    written = await hub.admin.patch(path, {"metadata": {"labels": {"a": "b"}}})
    for obj in (held, written):
        obj["metadata"].pop("resourceVersion")
    assert written["metadata"].pop("labels") == {"a": "b"}
    assert written == held
    await hub.admin.patch(path, {"metadata": {"finalizers": None}})
    assert (await hub.admin.call("GET", path)).status == 404


@pytest.mark.parametrize(("kind", "spec", "fault"), FAULTS)
async def test_what_the_schema_does_not_allow_is_422(
    hub: InProcess, ns: str, kind: str, spec: Obj | None, fault: str
) -> None:
    sample = next(s for s in SAMPLES if s.kind == kind)
    body: Obj = {"metadata": {"name": "a"}}
    answer = await hub.admin.call(
        "POST", sample.path(ns), body if spec is None else {**body, "spec": spec}
    )
    assert answer.status == 422, answer.body
    first = answer.obj()["details"]["causes"][0]
    assert f"{first['field']}: {first['message']}" == fault


async def test_an_agent_may_not_touch_what_others_decide(hub: InProcess, ns: str) -> None:
    stranger = hub.admin.acting_as("somebody", "system:authenticated")
    for sample in SAMPLES:
        assert (await stranger.call("GET", sample.path(ns))).status == 403
        assert (await stranger.call("POST", sample.path(ns), sample.obj("x"))).status == 403
