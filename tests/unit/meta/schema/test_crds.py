"""The CRDs of Open Cluster Management, its policies and HyperShift: they load, and judge right."""

import copy
from collections import Counter

import pytest
import yaml

from hub.meta import Obj
from hub.meta.errors import Cause
from hub.meta.schema.check import check_structural
from hub.meta.schema.default import default
from hub.meta.schema.prune import prune
from hub.meta.schema.structural import Schema, parse
from hub.meta.schema.validate import Validator
from tests.unit.meta.schema.golden import (
    GOLDEN,
    SHARED,
    crd_schema,
    documents,
    lines,
    shared_crds,
)

_WORK = "manifestworks.work.open-cluster-management.io/v1"
_CLUSTER = "managedclusters.cluster.open-cluster-management.io/v1"
_PLACEMENT = "placements.cluster.open-cluster-management.io/v1beta1"
_SUITES = SHARED / "hypershift" / "testsuites"
needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="the shared data is not here")


def _texts(causes: list[Cause]) -> str:
    return "\n".join(f"{c.field}: {c.message}" for c in causes)


@pytest.mark.parametrize("name", [_WORK, _CLUSTER, _PLACEMENT])
def test_a_crd_of_the_hub_is_structural(name: str) -> None:
    assert check_structural(crd_schema(name), "schema", has_status=True) == []


def test_a_manifest_keeps_its_fields_and_loses_unknown_metadata() -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "creationTimestamp": None, "nonsense": 1},
        "data": {"k": "v"},
    }
    work = {"metadata": {"name": "w"}, "spec": {"workload": {"manifests": [manifest]}, "x": 1}}
    pruned, unknown = prune(work, crd_schema(_WORK))
    kept = {**manifest, "metadata": {"name": "a"}}
    assert pruned["spec"] == {"workload": {"manifests": [kept]}}
    assert unknown == ["spec.x", "spec.workload.manifests[0].metadata.nonsense"]


def test_a_manifest_without_a_kind_is_refused() -> None:
    work = {"spec": {"workload": {"manifests": [{"apiVersion": "v1"}]}}}
    causes = Validator(crd_schema(_WORK)).validate(work)
    assert _texts(causes[:1]) == "spec.workload.manifests[0].kind: Required value"


def test_a_managed_cluster_gets_its_lease_duration() -> None:
    schema = crd_schema(_CLUSTER)
    found = default({"spec": {"hubAcceptsClient": True}}, schema)
    assert found["spec"] == {"hubAcceptsClient": True, "leaseDurationSeconds": 60}
    assert Validator(schema).validate(found) == []


def test_a_wrong_field_of_a_managed_cluster_is_named() -> None:
    taints = [{"key": "a", "effect": "Never", "timeAdded": "2024-01-01T00:00:00Z"}]
    cluster: Obj = {"spec": {"hubAcceptsClient": "yes", "taints": taints}}
    texts = _texts(Validator(crd_schema(_CLUSTER)).validate(cluster))
    wrong_type = 'spec.hubAcceptsClient in body must be of type boolean: "string"'
    assert f'spec.hubAcceptsClient: Invalid value: "string": {wrong_type}' in texts
    known = '"NoSelect", "PreferNoSelect", "NoSelectIfNew"'
    expected = f'spec.taints[0].effect: Unsupported value: "Never": supported values: {known}'
    assert expected in texts


def test_node_pools_get_the_verdicts_of_a_real_server() -> None:
    head, *rows = lines("nodepool-verdicts.jsonl")
    schema = crd_schema(head["crd"])
    validator = Validator(schema)
    seen: Counter[str] = Counter()
    for row in rows:
        pruned, _ = prune(row["object"], schema)
        causes = validator.validate(default(pruned, schema))
        is_refused = row["verdict"].startswith("invalid")
        assert bool(causes) == is_refused, (row, causes)
        assert row.get("error", "") in _texts(causes)
        seen[row["verdict"]] += 1
    assert seen == {"valid": 29, "cel": 20, "invalid": 1, "invalid and cel": 1}


@needs_shared
def test_every_shared_crd_is_structural() -> None:
    crds = shared_crds()
    assert len(crds) >= 25
    for crd in crds:
        for version in crd["spec"]["versions"]:
            has_status = "status" in version.get("subresources", {})
            schema = parse(version["schema"]["openAPIV3Schema"])
            found = check_structural(schema, "schema", has_status=has_status)
            assert found == [], (crd["metadata"]["name"], version["name"])


@needs_shared
def test_the_golden_crds_are_those_of_the_shared_data() -> None:
    crds = {c["metadata"]["name"]: c for c in shared_crds()}
    work = crds[_WORK.partition("/")[0]]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert _shape(parse(work)) == _shape(crd_schema(_WORK))
    assert (GOLDEN / "README.md").exists()


def _shape(schema: Schema) -> object:
    below = {name: _shape(node) for name, node in schema.properties.items()}
    return schema.type, schema.default, schema.rules.required, below, schema.items is not None


class _Suites:
    """The engines of the verdict suites, each CRD compiled once."""

    def __init__(self) -> None:
        self._crds = {
            (crd["metadata"]["name"], "CustomNoUpgrade" in path.name): crd
            for path in sorted((SHARED / "crds" / "hypershift").glob("*.yaml"))
            for crd in documents(path)
        }
        self._engines: dict[tuple[str, bool], tuple[Schema, Validator]] = {}

    def engine(self, suite: Obj) -> tuple[Schema, Validator]:
        key = (suite["crdName"], bool(suite.get("featureGates")))
        if key not in self._engines:
            self._engines[key] = _engine(self._crds[key])
        return self._engines[key]

    def patched(self, suite: Obj, operations: list[Obj]) -> tuple[Schema, Validator]:
        key = (suite["crdName"], bool(suite.get("featureGates")))
        crd = copy.deepcopy(self._crds[key])
        for operation in operations:
            _remove(crd, operation)
        return _engine(crd)


def _engine(crd: Obj) -> tuple[Schema, Validator]:
    schema = parse(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    return schema, Validator(schema)


def _remove(crd: Obj, operation: Obj) -> None:
    assert operation["op"] == "remove"
    *parents, last = operation["path"].strip("/").split("/")
    place: Obj | list[Obj] = crd
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place[part]
    if isinstance(place, list):
        del place[int(last)]
    else:
        del place[last]


def _admitted(text: str, schema: Schema) -> Obj:
    obj: Obj = yaml.load(text, yaml.CSafeLoader)
    return default(prune(obj, schema)[0], schema)


@needs_shared
@pytest.mark.timeout(120)
def test_the_verdict_suites_hold_but_for_cel() -> None:
    suites, seen = _Suites(), Counter[str]()
    for path in sorted(_SUITES.glob("*.yaml")):
        for suite in documents(path):
            for case in suite["tests"].get("onCreate", ()):
                seen[_judge_create(suites, suite, case)] += 1
            for case in suite["tests"].get("onUpdate", ()):
                seen[_judge_update(suites, suite, case)] += 1
    # four of the refused ones get another cause than the suite names, which a CEL rule gives
    assert seen == {"accepted": 100, "refused": 20, "needs CEL": 92}


def _judge_create(suites: _Suites, suite: Obj, case: Obj) -> str:
    schema, validator = suites.engine(suite)
    causes = validator.validate(_admitted(case["initial"], schema))
    return _judged(causes, case.get("expectedError"), case)


def _judge_update(suites: _Suites, suite: Obj, case: Obj) -> str:
    schema, validator = suites.engine(suite)
    first = suites.patched(suite, case.get("initialCRDPatches") or [])
    old = _admitted(case["initial"], first[0])
    assert first[1].validate(old) == [], case["name"]
    new = _admitted(case["updated"], schema)
    causes = validator.validate_update(new, old)
    verdict = _judged(causes, case.get("expectedError") or case.get("expectedStatusError"), case)
    if verdict == "accepted":
        expected = yaml.load(case["expected"], yaml.CSafeLoader)
        assert {**new, "metadata": 0} == {**expected, "metadata": 0}, case["name"]
    return verdict


def _judged(causes: list[Cause], error: str | None, case: Obj) -> str:
    if error is None:
        assert causes == [], case["name"]
        return "accepted"
    return "refused" if causes else "needs CEL"
