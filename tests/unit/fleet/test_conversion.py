"""Both add-on kinds convert between their versions as OCM's webhook does."""

import copy
import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from hub.fleet.kinds import CLUSTER_MANAGEMENT_ADDON, MANAGED_CLUSTER_ADDON
from hub.fleet.management_addon_view import NO_DEFAULT, to_v1alpha1, to_v1beta1
from hub.meta import Obj

GOLDEN = Path(__file__).parents[2] / "golden" / "conversion" / "addons.jsonl"
PAIRS = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
KINDS = {kind.kind: kind for kind in (CLUSTER_MANAGEMENT_ADDON, MANAGED_CLUSTER_ADDON)}
API = "addon.open-cluster-management.io"

FILLED = {
    "*.addOnConfiguration": "an empty struct; what v1beta1 does not have is not invented",
    "*.progressive.maxConcurrency": "the zero of a struct; absent and 0 mean the same",
    "*.registrations.*.subject.user": "the empty string of a struct",
}
"""What Go's structs fill in and we leave out: only zero values, by path."""


def converted(obj: Obj) -> Obj:
    """What the other version shows of an object."""
    stored, other = KINDS[obj["kind"]].views
    is_stored = obj["apiVersion"] == stored.api_version
    return other.from_storage(obj) if is_stored else other.to_storage(obj)


def differences(theirs: object, ours: object, at: str = "") -> Iterator[tuple[str, object, object]]:
    """Where two objects differ: path, value there, value here; None = absent."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in theirs.keys() | ours.keys():
            yield from differences(theirs.get(key), ours.get(key), f"{at}.{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (a, b) in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(a, b, f"{at}.{index}")
    elif theirs != ours:
        yield at, theirs, ours


@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
def test_an_object_converts_as_upstream_converts_it(pair: Obj) -> None:
    for path, theirs, ours in differences(pair["upstream"], converted(pair["given"])):
        assert any(fnmatchcase(path, pattern) for pattern in FILLED), path
        assert (theirs in ({}, 0, ""), ours) == (True, None), path


def test_no_filled_field_is_idle() -> None:
    found = {
        pattern
        for pair in PAIRS
        for path, _, _ in differences(pair["upstream"], converted(pair["given"]))
        for pattern in FILLED
        if fnmatchcase(path, pattern)
    }
    assert found == set(FILLED)


@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
def test_nothing_but_what_v1beta1_lacks_is_lost_on_a_round_trip(pair: Obj) -> None:
    given = pair["given"]
    before = copy.deepcopy(given)
    once = converted(given)
    assert given == before
    twice = converted(once)
    assert converted(twice) == once
    lost = {path for path, theirs, _ in differences(given, twice) if theirs is not None}
    allowed = (
        "*.addOnConfiguration",
        "*.subject.organizationUnit",
        # a driver has no place without a kube client; it moves to the first, and from there to all
        "*.kubeClientDriver",
        "*.driver",
    )
    assert all(any(fnmatchcase(path, a) for a in allowed) for path in lost), lost


def management_addon(**spec: object) -> Obj:
    return {
        "apiVersion": f"{API}/v1alpha1",
        "kind": "ClusterManagementAddOn",
        "metadata": {"name": "a"},
        "spec": spec,
    }


def test_a_kind_without_a_default_gets_the_reserved_name_that_v1alpha1_never_shows() -> None:
    stored = management_addon(supportedConfigs=[{"group": "g", "resource": "rs"}])
    shown = to_v1beta1(stored)
    assert shown["spec"]["defaultConfigs"] == [{"group": "g", "resource": "rs", "name": NO_DEFAULT}]
    assert NO_DEFAULT == "__reserved_no_default__"
    assert to_v1alpha1(shown)["spec"]["supportedConfigs"] == stored["spec"]["supportedConfigs"]


def test_a_default_moves_into_the_config_and_back() -> None:
    default = {"name": "d", "namespace": "n"}
    stored = management_addon(
        supportedConfigs=[{"group": "g", "resource": "rs", "defaultConfig": default}]
    )
    shown = to_v1beta1(stored)
    assert shown["spec"]["defaultConfigs"] == [{"group": "g", "resource": "rs", **default}]
    assert to_v1alpha1(shown)["spec"]["supportedConfigs"] == stored["spec"]["supportedConfigs"]


def test_the_references_of_status_change_their_capital() -> None:
    stored = management_addon() | {"status": {"defaultconfigReferences": [{"resource": "rs"}]}}
    shown = to_v1beta1(stored)
    assert shown["status"] == {"defaultConfigReferences": [{"resource": "rs"}]}
    assert to_v1alpha1(shown)["status"] == stored["status"]


def test_an_object_without_spec_stays_without_so_that_the_schema_refuses_it() -> None:
    bare: Obj = {
        "apiVersion": f"{API}/v1beta1",
        "kind": "ClusterManagementAddOn",
        "metadata": {"name": "a"},
    }
    assert to_v1alpha1(bare) == {**bare, "apiVersion": f"{API}/v1alpha1"}
    strategy = CLUSTER_MANAGEMENT_ADDON.strategy
    assert [cause.field for cause in strategy.validate(to_v1alpha1(bare))] == ["spec"]
