"""ManagedClusterAddOn in two versions: nothing is lost on the way there and back."""

import copy
import json

from hypothesis import given
from hypothesis import strategies as st

from hub.fleet.addon_view import (
    DEFAULT_INSTALL_NAMESPACE,
    INSTALL_NAMESPACE,
    KUBE_SIGNER,
    V1ALPHA1,
    V1BETA1,
    to_v1alpha1,
    to_v1beta1,
)
from hub.fleet.kinds import MANAGED_CLUSTER_ADDON
from hub.meta import Obj

words = st.text(alphabet="abcxyz-.", min_size=1, max_size=8)
subjects = st.fixed_dictionaries({"user": words}, optional={"groups": st.lists(words, min_size=1)})
with_units = st.fixed_dictionaries(
    {"user": words},
    optional={
        "groups": st.lists(words, min_size=1),
        "organizationUnit": st.lists(words, min_size=1),
    },
)
kube = st.fixed_dictionaries({"signerName": st.just(KUBE_SIGNER), "subject": subjects})
custom = st.fixed_dictionaries(
    {"signerName": words.map(lambda w: f"example.com/{w}"), "subject": with_units}
)


@st.composite
def references(draw: st.DrawFn) -> Obj:
    """A config reference as stored: the deprecated names repeat those of the desired config."""
    name, namespace = draw(words), draw(st.one_of(st.just(""), words))
    found: Obj = {"group": draw(words), "resource": draw(words), "name": name}
    desired: Obj = {"name": name, "specHash": draw(words)}
    if namespace:
        found["namespace"] = desired["namespace"] = namespace
    return {**found, "desiredConfig": desired}


@st.composite
def statuses(draw: st.DrawFn) -> Obj:
    """A status as an agent or manager of either version leaves it."""
    found: Obj = {}
    registrations = draw(st.lists(st.one_of(kube, custom), max_size=4))
    if draw(st.booleans()):
        found["registrations"] = registrations
        if any(r["signerName"] == KUBE_SIGNER for r in registrations) and draw(st.booleans()):
            found["kubeClientDriver"] = draw(st.sampled_from(("csr", "token")))
    if draw(st.booleans()):
        found["configReferences"] = draw(st.lists(references(), max_size=3))
    if draw(st.booleans()):
        found["conditions"] = [{"type": draw(words), "status": "True"}]
    if draw(st.booleans()):
        found["namespace"] = draw(words)
    return found


@st.composite
def stored(draw: st.DrawFn) -> Obj:
    """An object as the hub stores it: defaulted, in v1alpha1."""
    meta: Obj = {"name": draw(words), "uid": "u", "resourceVersion": "7"}
    annotations = draw(st.dictionaries(words, words, max_size=2))
    if annotations:
        meta["annotations"] = annotations
    spec: Obj = {"installNamespace": draw(words)}
    if draw(st.booleans()):
        spec["configs"] = [{"group": "g", "resource": "r", "name": draw(words)}]
    obj: Obj = {
        "apiVersion": V1ALPHA1,
        "kind": "ManagedClusterAddOn",
        "metadata": meta,
        "spec": spec,
    }
    return {**obj, "status": draw(statuses())}


@given(stored())
def test_what_is_stored_survives_the_way_through_v1beta1(obj: Obj) -> None:
    before = copy.deepcopy(obj)
    shown = to_v1beta1(obj)
    assert obj == before
    back = to_v1alpha1(copy.deepcopy(shown))
    # v1beta1 shows two defaults of status that v1alpha1 may leave out
    for name, default in (("addOnMeta", {}), ("healthCheck", {"mode": "Lease"})):
        if name not in obj["status"]:
            assert back["status"].pop(name) == default
    assert back == obj


@given(stored())
def test_a_second_round_changes_nothing(obj: Obj) -> None:
    once = to_v1beta1(obj)
    assert to_v1beta1(to_v1alpha1(once)) == once


@given(stored())
def test_neither_view_shows_a_field_of_the_other(obj: Obj) -> None:
    shown = to_v1beta1(obj)
    assert shown["apiVersion"] == V1BETA1
    assert "installNamespace" not in shown["spec"]
    assert shown["metadata"]["annotations"][INSTALL_NAMESPACE] == obj["spec"]["installNamespace"]
    assert "kubeClientDriver" not in shown["status"]
    for registration in shown["status"].get("registrations", []):
        assert set(registration) == {
            "type",
            "kubeClient" if registration["type"] == "kubeClient" else "customSigner",
        }
    for reference in shown["status"].get("configReferences", []):
        assert not {"name", "namespace"} & set(reference)
    stored_again = to_v1alpha1(shown)
    assert INSTALL_NAMESPACE not in json.dumps(stored_again)
    assert '"kubeClient":' not in json.dumps(stored_again)


def test_an_empty_add_on_gets_the_default_namespace() -> None:
    obj: Obj = {"apiVersion": V1ALPHA1, "kind": "ManagedClusterAddOn", "metadata": {"name": "a"}}
    MANAGED_CLUSTER_ADDON.strategy.default(obj)
    assert obj["spec"] == {"installNamespace": DEFAULT_INSTALL_NAMESPACE}
    assert to_v1beta1(obj)["metadata"]["annotations"] == {
        INSTALL_NAMESPACE: DEFAULT_INSTALL_NAMESPACE
    }


def test_a_view_without_metadata_or_status_converts() -> None:
    bare: Obj = {"apiVersion": V1BETA1, "kind": "ManagedClusterAddOn", "metadata": {"name": "a"}}
    assert to_v1alpha1(bare) == {**bare, "apiVersion": V1ALPHA1, "spec": {}}
