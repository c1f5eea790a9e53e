"""What an agent does about an add-on, step by step, as OCM's does."""

import pytest

from hub.meta import Obj
from tools.simulate.addonbody import (
    AVAILABLE,
    ROTATED,
    Step,
    addon_names,
    addon_subject,
    is_done,
    new_addon,
    new_addon_csr,
    next_step,
    step_patch,
)
from tools.simulate.identity import make_request

KUBE: Obj = {"type": "kubeClient", "kubeClient": {"subject": {"user": "u", "groups": ["g", "h"]}}}
SIGNER: Obj = {"type": "customSigner", "customSigner": {"signerName": "s"}}


def addon(status: Obj | None = None, **metadata: object) -> Obj:
    obj = new_addon("c1", "a")
    obj["metadata"].update({"uid": "u1", "resourceVersion": "7", **metadata})
    return {**obj, "status": status or {}}


def after(obj: Obj, step: Step) -> Obj:
    """The add-on as the hub has it when the patch of `step` was applied."""
    patch = step_patch(obj, step, now="2026-01-01T00:00:00Z")
    assert patch["metadata"] == {"uid": "u1", "resourceVersion": "7"}
    return {**obj, "status": {**obj["status"], **patch["status"]}}


def test_an_add_on_without_a_registration_is_reported_as_available() -> None:
    obj = addon()
    assert next_step(obj, has_certificate=False) is Step.REPORT_AVAILABLE
    obj = after(obj, Step.REPORT_AVAILABLE)
    assert next_step(obj, has_certificate=False) is Step.NOTHING
    [condition] = obj["status"]["conditions"]
    assert (condition["type"], condition["status"]) == (AVAILABLE, "True")
    assert condition["reason"] == "ManagedClusterAddOnLeaseUpdated"
    assert condition["message"] == "a add-on is available."
    assert is_done(obj)


def test_one_with_a_registration_gets_driver_and_certificate_first() -> None:
    obj = addon({"registrations": [SIGNER, KUBE]})
    assert next_step(obj, has_certificate=False) is Step.SET_DRIVER
    obj = after(obj, Step.SET_DRIVER)
    signer, client = obj["status"]["registrations"]
    assert signer == SIGNER
    assert client["kubeClient"] == {**KUBE["kubeClient"], "driver": "csr"}
    assert next_step(obj, has_certificate=False) is Step.REQUEST_CERTIFICATE
    assert next_step(obj, has_certificate=True) is Step.REPORT_ROTATED
    obj = after(obj, Step.REPORT_ROTATED)
    assert next_step(obj, has_certificate=False) is Step.REPORT_AVAILABLE
    assert not is_done(obj)
    obj = after(obj, Step.REPORT_AVAILABLE)
    assert {c["type"] for c in obj["status"]["conditions"]} == {ROTATED, AVAILABLE}
    assert is_done(obj)


def test_health_that_is_somebody_elses_and_deletion_are_left_alone() -> None:
    assert next_step(addon({"healthCheck": {"mode": "Customized"}}), has_certificate=False) is (
        Step.NOTHING
    )
    assert next_step(addon(deletionTimestamp="t"), has_certificate=False) is Step.NOTHING


def test_the_subject_is_the_managers_or_ocms_default() -> None:
    asked = addon_subject("c1", addon({"registrations": [KUBE]}), "abcde")
    assert (asked.common_name, asked.organizations) == ("u", ("g", "h"))
    own = "system:open-cluster-management:cluster:c1:addon:a"
    left_open = addon_subject("c1", addon(), "abcde")
    assert (left_open.common_name, left_open.organizations) == (f"{own}:agent:abcde", (own,))


def test_a_request_is_labelled_with_cluster_and_add_on() -> None:
    request = make_request(addon_subject("c1", addon(), "abcde"), "abcde")
    csr = new_addon_csr("c1", "a", request)
    assert csr["metadata"] == {
        "generateName": "addon-c1-a-",
        "labels": {
            "open-cluster-management.io/addon-name": "a",
            "open-cluster-management.io/cluster-name": "c1",
        },
    }


@pytest.mark.parametrize("count", [0, 1, 4, 11])
def test_every_add_on_has_a_name_of_its_own(count: int) -> None:
    names = addon_names(count)
    assert len(set(names)) == count
    assert names == addon_names(20)[:count]
