"""The schemas of OCM's kinds say what upstream's CRDs say, field by field."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hub.fleet.kinds import FLEET
from hub.fleet.schema import COLUMNS, SCHEMAS, columns_of, schema_of
from hub.meta import Obj
from hub.meta.schema.check import check_structural
from hub.meta.schema.default import default
from hub.meta.schema.structural import parse
from hub.registry.kind import Kind, View
from tests.golden.crds.strip import strip

GOLDEN = Path(__file__).parents[2] / "golden" / "crds"
UPSTREAM = [json.loads(path.read_text()) for path in sorted(GOLDEN.glob("*.json"))]
VERSIONS = [(crd, version) for crd in UPSTREAM for version in crd["versions"]]
IDS = [f"{crd['names']['kind']}-{version['name']}" for crd, version in VERSIONS]
KINDS = {kind.kind: kind for kind in FLEET}

DIFFERENCES: dict[str, str] = {}
"""Every difference from upstream's schemas, as `differences` words it, and its reason."""

_UNORDERED = ("required",)
_NESTED = ("items", "additionalProperties", "not")


def differences(theirs: Obj, ours: Obj, at: str) -> Iterator[str]:
    """Compare two schemas node by node; descriptions and the words of CEL rules are not compared.

    The order of enums and map keys counts, since errors and merges show it.
    """
    for keyword in sorted({*theirs, *ours} - {"description", "properties", *_NESTED}):
        a, b = _comparable(keyword, theirs), _comparable(keyword, ours)
        # as text, since 0 and False are equal to Python
        if json.dumps(a, sort_keys=True) != json.dumps(b, sort_keys=True):
            yield f"{at}: {keyword}: {json.dumps(a)} is {json.dumps(b)} here"
    for keyword in _NESTED:
        a, b = theirs.get(keyword), ours.get(keyword)
        if isinstance(a, dict) and isinstance(b, dict):
            yield from differences(a, b, f"{at}.{keyword}")
        elif a != b:
            yield f"{at}: {keyword}: {json.dumps(a)} is {json.dumps(b)} here"
    yield from _fields(theirs.get("properties", {}), ours.get("properties", {}), at)


def _fields(theirs: Obj, ours: Obj, at: str) -> Iterator[str]:
    for name in sorted(theirs.keys() | ours.keys()):
        if name not in ours:
            yield f"{at}.{name}: missing here"
        elif name not in theirs:
            yield f"{at}.{name}: only here"
        else:
            yield from differences(theirs[name], ours[name], f"{at}.{name}")


def _comparable(keyword: str, node: Obj) -> object:
    value = node.get(keyword)
    if keyword in _UNORDERED:
        return sorted(value or [])
    if keyword == "x-kubernetes-validations":
        return [{k: v for k, v in rule.items() if k != "message"} for rule in value or []]
    return value


def nodes(schema: Obj) -> Iterator[Obj]:
    """Every node of a schema."""
    yield schema
    for node in schema.get("properties", {}).values():
        yield from nodes(node)
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield from nodes(schema[keyword])


def test_we_have_upstreams_kinds_and_versions_and_no_others() -> None:
    upstream = {(c["group"], v["name"], c["names"]["kind"]) for c, v in VERSIONS}
    assert set(SCHEMAS) == upstream
    assert len(upstream) == 16
    assert set(COLUMNS) <= upstream


def test_every_difference_from_upstream_has_a_reason() -> None:
    found = [
        difference
        for crd, version in VERSIONS
        for difference in differences(
            version["schema"],
            schema_of(crd["group"], version["name"], crd["names"]["kind"]),
            f"{crd['names']['kind']} {version['name']}",
        )
    ]
    assert sorted(found) == sorted(DIFFERENCES)
    assert all(DIFFERENCES.values())


@pytest.mark.parametrize(("crd", "version"), VERSIONS, ids=IDS)
def test_the_comparison_notices_each_keyword_and_field_that_is_lost(crd: Obj, version: Obj) -> None:
    count = 0
    for index, node in enumerate(nodes(version["schema"])):
        lost = [(keyword, None) for keyword in node if keyword != "properties"]
        lost += [("properties", name) for name in node.get("properties", {})]
        for keyword, name in lost:
            changed = copy.deepcopy(version["schema"])
            target = list(nodes(changed))[index]
            del (target if name is None else target["properties"])[name or keyword]
            assert list(differences(version["schema"], changed, "")), (keyword, name)
            count += 1
    assert count > 20


@pytest.mark.parametrize(("crd", "version"), VERSIONS, ids=IDS)
def test_the_columns_are_upstreams(crd: Obj, version: Obj) -> None:
    ours = [
        {"name": column.name, "jsonPath": column.path, "type": column.type_}
        for column in columns_of(crd["group"], version["name"], crd["names"]["kind"])
    ]
    assert ours == version["columns"]


@pytest.mark.parametrize("key", SCHEMAS, ids=lambda key: f"{key[2]}-{key[1]}")
def test_a_schema_may_be_served(key: tuple[str, str, str]) -> None:
    schema = parse(schema_of(*key))
    has_status = "status" in schema.properties
    assert check_structural(schema, "schema", has_status=has_status) == []


@pytest.mark.parametrize("key", SCHEMAS, ids=lambda key: f"{key[2]}-{key[1]}")
def test_every_field_is_described(key: tuple[str, str, str]) -> None:
    schema = schema_of(*key)
    plain = {"metadata"}
    fields = [
        (name, field)
        for node in nodes(schema)
        for name, field in node.get("properties", {}).items()
        if not (node is schema and name in plain)
    ]
    for name, field in fields:
        about = field.get("description", "")
        assert about[:1].isupper(), name
        assert about.endswith("."), name
        assert len(about) <= 80, name


def test_a_schema_is_the_callers_own_copy() -> None:
    key = next(iter(SCHEMAS))
    schema_of(*key)["properties"].clear()
    assert schema_of(*key)["properties"]


def test_an_unknown_version_is_a_key_error() -> None:
    group, _, kind = next(iter(SCHEMAS))
    with pytest.raises(KeyError):
        schema_of(group, "v9", kind)


@pytest.mark.parametrize("crd", UPSTREAM, ids=[crd["names"]["kind"] for crd in UPSTREAM])
def test_the_hub_serves_each_kind_under_upstreams_names(crd: Obj) -> None:
    kind, names = KINDS[crd["names"]["kind"]], crd["names"]
    assert (kind.plural, kind.singular, kind.list_kind) == (
        names["plural"],
        names["singular"],
        names["listKind"],
    )
    assert list(kind.short_names) == names.get("shortNames", [])
    assert kind.is_namespaced == (crd["scope"] == "Namespaced")
    assert (kind.is_custom, kind.has_generation) == (True, True)
    assert [view.version for view in kind.views] == [v["name"] for v in crd["versions"]]
    assert {view.group for view in kind.views} == {crd["group"]}
    stored = [v["name"] for v in crd["versions"] if v["storage"]]
    assert stored == [kind.storage.version]
    assert all(v["served"] for v in crd["versions"])
    assert list(kind.subresources) == crd["versions"][0]["subresources"]


def views() -> list[tuple[Kind, View]]:
    """Every kind of OCM's in every version."""
    return [(kind, view) for kind in FLEET for view in kind.views]


@pytest.mark.parametrize(
    ("kind", "view"), views(), ids=[f"{kind.kind}-{view.version}" for kind, view in views()]
)
def test_the_hub_prints_the_name_and_upstreams_columns(kind: Kind, view: View) -> None:
    printed = [(p.column.name, p.column.type) for p in view.printers]
    columns = [
        (column.name, column.type_) for column in columns_of(view.group, view.version, kind.kind)
    ]
    assert printed == [("Name", "string"), *(columns or [("Age", "date")])]


def test_nested_defaults_are_filled() -> None:
    key = ("cluster.open-cluster-management.io", "v1beta2", "ManagedClusterSet")
    assert default({}, parse(schema_of(*key))) == {
        "spec": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}
    }
    key = ("work.open-cluster-management.io", "v1alpha1", "ManifestWorkReplicaSet")
    spec = {"placementRefs": [{"name": "p"}], "manifestWorkTemplate": {}}
    strategy = {
        "type": "All",
        "all": {"maxFailures": 0, "minSuccessTime": "0", "progressDeadline": "None"},
    }
    assert default({"spec": spec}, parse(schema_of(*key)))["spec"] == {
        **spec,
        "cascadeDeletionPolicy": "Background",
        "placementRefs": [{"name": "p", "rolloutStrategy": strategy}],
    }


def test_stripping_leaves_no_prose_and_no_template() -> None:
    schema: Obj = {
        "description": "prose",
        "properties": {
            "description": {"type": "string", "description": "prose"},
            "list": {"type": "array", "items": {"description": "prose", "type": "string"}},
            "rule": {"x-kubernetes-validations": [{"rule": "self", "message": "prose"}]},
        },
    }
    names = {"kind": "A", "plural": "as"}
    version = {"name": "v1", "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": schema}
    version["additionalPrinterColumns"] = [{"name": "X", "description": "prose"}]
    spec = {"group": "g", "names": names, "scope": "Cluster", "versions": [version]}
    text = f"caBundle: {{{{ .CA }}}}\nspec: {json.dumps(spec)}\n"
    found = strip(text)
    assert "prose" not in json.dumps(found)
    assert found["versions"][0]["schema"]["properties"]["description"] == {"type": "string"}


@pytest.mark.parametrize(
    ("kind", "obj", "more"),
    [
        ("ManagedCluster", {"spec": {}}, {"spec": {"hubAcceptsClient": False}}),
        ("ManagedClusterSet", {}, {}),
        ("ManagedClusterSet", {"spec": {"clusterSelector": {}}}, {}),
        (
            "ManifestWork",
            {
                "spec": {
                    "deleteOption": {},
                    "manifestConfigs": [
                        {"updateStrategy": {"serverSideApply": {"ignoreFields": [{}]}}}
                    ],
                }
            },
            {},
        ),
        ("ManagedClusterAddOn", {"spec": {}}, {}),
    ],
)
def test_the_hubs_own_defaults_are_those_of_the_schema(kind: str, obj: Obj, more: Obj) -> None:
    stored = KINDS[kind].storage
    wanted = default(obj, parse(schema_of(stored.group, stored.version, kind)))
    wanted = {**wanted, "spec": {**wanted["spec"], **more.get("spec", {})}}
    ours = copy.deepcopy(obj)
    KINDS[kind].strategy.default(ours)
    assert ours == wanted
    assert wanted != obj
