"""The bodies around add-ons: what an administrator creates, what the registration agent sends.

Pure. The agent's steps follow OCM's order: an add-on whose manager asks for a kubeconfig gets its
driver, then a certificate; then it is available, as its Lease on the managed cluster would tell.
"""

import base64
import enum

from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.auth.subject import Subject
from hub.meta import Obj
from hub.registry.requests import ADDON_NAME_LABEL
from tools.simulate.clusterbody import SIGNER, USAGES, preconditions
from tools.simulate.condition import condition, is_true, set_conditions
from tools.simulate.identity import KeyRequest
from tools.simulate.resource import ADDONS, CSRS

AVAILABLE, ROTATED = "Available", "ClusterCertificateRotated"
FEATURE = "feature.open-cluster-management.io/addon-"
"""How the labels begin by which the hub tells of a cluster's add-ons."""
DRIVER = "csr"

_NAMES = ("metrics-agent", "policy-agent", "log-agent", "backup-agent")
_GROUP = "system:open-cluster-management:"


class Step(enum.Enum):
    """The next thing the agent does about an add-on."""

    NOTHING = "nothing"
    SET_DRIVER = "set driver"
    REQUEST_CERTIFICATE = "request certificate"
    REPORT_ROTATED = "report rotated"
    REPORT_AVAILABLE = "report available"


def addon_names(count: int) -> list[str]:
    """Return the names of the simulated add-ons."""
    return [
        _NAMES[n] if n < len(_NAMES) else f"{_NAMES[n % len(_NAMES)]}-{n}" for n in range(count)
    ]


def new_management_addon(name: str) -> Obj:
    """Return the ClusterManagementAddOn of an add-on that is installed by hand."""
    return {
        "apiVersion": ADDONS.api_version,
        "kind": "ClusterManagementAddOn",
        "metadata": {"name": name},
        "spec": {
            "addOnMeta": {"displayName": name, "description": "made by hublet simulate"},
            "installStrategy": {"type": "Manual"},
        },
    }


def new_addon(cluster: str, name: str) -> Obj:
    """Return the ManagedClusterAddOn that installs an add-on."""
    return {
        "apiVersion": ADDONS.api_version,
        "kind": "ManagedClusterAddOn",
        "metadata": {"name": name, "namespace": cluster},
        "spec": {},
    }


def next_step(addon: Obj, *, has_certificate: bool) -> Step:
    """Return what the agent has to do about `addon` as it is now."""
    if addon["metadata"].get("deletionTimestamp"):
        return Step.NOTHING
    client = kube_client(addon)
    if client is not None and not client.get("driver"):
        return Step.SET_DRIVER
    if client is not None and not is_true(addon, ROTATED):
        return Step.REPORT_ROTATED if has_certificate else Step.REQUEST_CERTIFICATE
    mode = ((addon.get("status") or {}).get("healthCheck") or {}).get("mode", "Lease")
    if mode == "Lease" and not is_true(addon, AVAILABLE):
        return Step.REPORT_AVAILABLE
    return Step.NOTHING


def is_done(addon: Obj) -> bool:
    """Whether the hub shows `addon` as available, and nothing is left to do about it."""
    return is_true(addon, AVAILABLE) and next_step(addon, has_certificate=True) is Step.NOTHING


def kube_client(addon: Obj) -> Obj | None:
    """Return the registration by which an add-on's manager asks for a kubeconfig of the hub."""
    for registration in (addon.get("status") or {}).get("registrations") or []:
        if registration.get("type") == "kubeClient":
            client: Obj = registration.get("kubeClient") or {}
            return client
    return None


def step_patch(addon: Obj, step: Step, *, now: str) -> Obj:
    """Return the merge patch of `step`."""
    return {"metadata": preconditions(addon), "status": _status(addon, step, now=now)}


def _status(addon: Obj, step: Step, *, now: str) -> Obj:
    if step is Step.SET_DRIVER:
        return {"registrations": [_driven(r) for r in addon["status"]["registrations"]]}
    name = addon["metadata"]["name"]
    if step is Step.REPORT_ROTATED:
        fresh = condition(
            ROTATED,
            "True",
            reason="ClientCertificateUpdated",
            message=f"client certificate of {name} rotated",
        )
    else:
        fresh = condition(
            AVAILABLE,
            "True",
            reason="ManagedClusterAddOnLeaseUpdated",
            message=f"{name} add-on is available.",
        )
    existing = (addon.get("status") or {}).get("conditions") or []
    return {"conditions": set_conditions(existing, [fresh], now=now)}


def _driven(registration: Obj) -> Obj:
    if registration.get("type") != "kubeClient":
        return registration
    return {
        **registration,
        "kubeClient": {**(registration.get("kubeClient") or {}), "driver": DRIVER},
    }


def addon_subject(cluster: str, addon: Obj, agent: str) -> Subject:
    """Return the subject its manager asks for, OCM's default where it leaves that open."""
    name = addon["metadata"]["name"]
    own = f"{_GROUP}cluster:{cluster}:addon:{name}"
    asked = (kube_client(addon) or {}).get("subject") or {}
    user = asked.get("user") or f"{own}:agent:{agent}"
    return Subject(user, tuple(asked.get("groups") or (own,)))


def addon_host(addon: str) -> str:
    """Return the DNS name that stands in an add-on's request."""
    return f"{addon}.addon.open-cluster-management.io"


def new_addon_csr(cluster: str, addon: str, request: KeyRequest) -> Obj:
    """Return the CSR for an add-on's certificate."""
    return {
        "kind": "CertificateSigningRequest",
        "apiVersion": CSRS.api_version,
        "metadata": {
            "generateName": f"addon-{cluster}-{addon}-",
            "labels": {ADDON_NAME_LABEL: addon, CLUSTER_NAME_LABEL: cluster},
        },
        "spec": {
            "request": base64.b64encode(request.request_pem.encode()).decode(),
            "signerName": SIGNER,
            "usages": list(USAGES),
        },
    }
