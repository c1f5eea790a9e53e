"""Which changes are shipped at once, kind by kind."""

from typing import cast

import pytest

from hub.backup.protected import Protected
from hub.fleet.kinds import FLEET
from hub.meta import Obj
from hub.meta.codec.json import encode
from hub.registry.builtin import BUILTIN
from hub.registry.catalog import Catalog
from hub.registry.keeping import IDENTITY
from hub.store import Change, Index, Key, Op, Revision, Store, encode_key
from tests.unit.backup.support import FakeStore

CLUSTERS = "managedclusters.cluster.open-cluster-management.io"
REQUESTS = "certificatesigningrequests.certificates.k8s.io"
APPROVED = {"conditions": [{"type": "Approved", "status": "True"}]}
DENIED = {"conditions": [{"type": "Denied", "status": "True"}]}
FAILED = {"conditions": [{"type": "Failed", "status": "True"}]}


def is_protected(key: Key, op: Op, new: Obj | None = None, old: Obj | None = None) -> bool:
    store = FakeStore(objects={encode_key(CLUSTERS, "", "c1")})
    protected = Protected(Catalog((*BUILTIN, *FLEET)), cast("Store", store))
    before, after = encode(old or {}), encode(new or {})
    previous = None if op is Op.CREATE else lambda: before
    return protected(Change(op, key, Revision(2), after, Index(b""), None, previous))


@pytest.mark.parametrize(
    ("resource", "namespace", "ops"),
    [
        (CLUSTERS, "", {Op.CREATE}),
        (REQUESTS, "", {Op.CREATE}),
        ("hostedclusters.hypershift.openshift.io", "clusters", {Op.CREATE}),
        ("nodepools.hypershift.openshift.io", "clusters", {Op.CREATE}),
        ("secrets", "c1", {Op.CREATE, Op.UPDATE}),
        ("secrets", "kube-system", set()),
        ("configmaps", "c1", set()),
        ("manifestworks.work.open-cluster-management.io", "c1", set()),
        ("managedclustersets.cluster.open-cluster-management.io", "", set()),
        ("unknown.example.com", "", {Op.CREATE}),
    ],
)
def test_what_is_protected_of_a_kind(resource: str, namespace: str, ops: set[Op]) -> None:
    key = encode_key(resource, namespace, "x")
    assert {op for op in Op if is_protected(key, op)} == ops


def test_the_hubs_own_identity_is_protected_whatever_happens_to_it() -> None:
    assert all(is_protected(IDENTITY, op) for op in Op)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, APPROVED, True),
        ({}, DENIED, True),
        ({}, FAILED, False),
        (APPROVED, APPROVED, False),
        (APPROVED, {**APPROVED, "certificate": "Y2VydA=="}, True),
        ({**APPROVED, "certificate": "YQ=="}, {**APPROVED, "certificate": "YQ=="}, False),
        (APPROVED, {}, False),
        ({}, {}, False),
    ],
)
def test_the_answer_to_a_certificate_request_is_protected(
    old: Obj, new: Obj, *, expected: bool
) -> None:
    key = encode_key(REQUESTS, "", "r")
    assert is_protected(key, Op.UPDATE, {"status": new}, {"status": old}) is expected
    assert not is_protected(key, Op.DELETE, {"status": new}, {"status": old})
