"""The kinds a hub serves, and how they are found."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from hub.fleet.kinds import FLEET
from hub.registry.builtin import BUILTIN
from hub.registry.catalog import Catalog, version_priority
from hub.registry.kind import SUBRESOURCE_VERBS, Kind, View
from hub.registry.strategy import Strategy
from tests.unit.registry.given import CATALOG


def test_the_most_stable_and_newest_version_comes_first() -> None:
    versions = ["v1alpha1", "foo1", "v10", "v1", "v2beta2", "v1beta10", "v2", "v1beta9", "foo10"]
    assert sorted(versions, key=version_priority) == [
        "v10",
        "v2",
        "v1",
        "v2beta2",
        "v1beta10",
        "v1beta9",
        "v1alpha1",
        "foo1",
        "foo10",
    ]


def test_a_kind_is_found_by_path_by_name_and_by_key() -> None:
    for kind in CATALOG:
        for view in kind.views:
            served = CATALOG.find(view.group, view.version, kind.plural)
            assert served is not None
            assert (served.kind, served.view) == (kind, view)
            assert CATALOG.find_kind(view.api_version, kind.kind) == served
            assert str(served.resource).startswith(kind.plural)
        assert CATALOG.by_id(kind.id) is (None if kind.is_virtual else kind)
    assert CATALOG.find("", "v1", "pods") is None
    assert CATALOG.find_kind("v1", "Pod") is None
    assert CATALOG.by_id("identity.hublet") is None


def test_no_two_kinds_share_a_path_a_name_or_a_key() -> None:
    assert _has_no_twins(k.id for k in CATALOG if not k.is_virtual)
    assert _has_no_twins((v.api_version, k.plural) for k in CATALOG for v in k.views)
    assert _has_no_twins((v.api_version, k.kind) for k in CATALOG for v in k.views)
    assert _has_no_twins(name for k in CATALOG for name in k.short_names)


def _has_no_twins(found: Iterable[object]) -> bool:
    listed = list(found)
    return len(listed) == len(set(listed))


def test_the_groups_name_their_preferred_version_first() -> None:
    groups = CATALOG.group_versions()
    assert groups[""] == ["v1"]
    assert groups["addon.open-cluster-management.io"] == ["v1beta1", "v1alpha1"]
    for group, versions in groups.items():
        assert all(CATALOG.in_version(group, version) for version in versions)


@pytest.mark.parametrize("kind", list(CATALOG), ids=lambda kind: kind.kind)
def test_a_kind_is_described_consistently(kind: Kind) -> None:
    assert kind.list_kind == f"{kind.kind}List"
    assert kind.singular == kind.kind.lower()
    assert set(kind.subresources) <= set(SUBRESOURCE_VERBS)
    assert kind.has_status == ("status" in kind.subresources)
    assert kind.storage is kind.views[0]
    if kind.is_custom:
        assert "." in kind.storage.group
        assert kind.needs_revision
    for view in kind.views:
        columns = [printer.column.name for printer in view.printers]
        assert len(columns) == len(set(columns))


def test_a_catalog_keeps_the_order_of_declaration() -> None:
    kinds = [
        Kind(kind=k, plural=f"{k}s", singular=k, views=(View("g", "v1"),), is_namespaced=True)
        for k in ("b", "a", "c")
    ]
    found = Catalog(kinds)
    assert list(found) == kinds
    assert [served.kind.kind for served in found.in_version("g", "v1")] == ["b", "a", "c"]
    assert isinstance(kinds[0].strategy, Strategy)


def test_a_kind_that_is_taken_out_leaves_the_others() -> None:
    found = Catalog((*BUILTIN, *FLEET))
    before = found.generation
    found.drop("leases.coordination.k8s.io")
    assert found.generation > before
    assert found.find("coordination.k8s.io", "v1", "leases") is None
    assert found.find_kind("coordination.k8s.io/v1", "Lease") is None
    assert found.by_id("leases.coordination.k8s.io") is None
    assert "coordination.k8s.io" not in found.group_versions()
    assert found.find("", "v1", "secrets") is not None


def test_a_kind_put_in_again_replaces_itself() -> None:
    found = Catalog((*BUILTIN, *FLEET))
    lease = found.by_id("leases.coordination.k8s.io")
    assert lease is not None
    found.put(replace(lease, short_names=("ls",)))
    served = found.find("coordination.k8s.io", "v1", "leases")
    assert served is not None
    assert served.kind.short_names == ("ls",)
    assert len(found.in_version("coordination.k8s.io", "v1")) == 1


def test_to_take_out_what_is_not_there_changes_nothing() -> None:
    found = Catalog(())
    found.drop("widgets.example.com")
    assert found.generation == 0
