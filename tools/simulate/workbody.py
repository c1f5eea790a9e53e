"""The bodies around ManifestWorks: what an administrator creates and what the work agent patches.

Pure. The agent's steps follow OCM's order: finalizer, status Applied, status Available with a
result for each manifest; after a deletion: status Deleting, then the finalizer goes.
"""

import enum
import hashlib

from hub.meta import Obj
from tools.simulate.clusterbody import preconditions
from tools.simulate.condition import Conditions, condition, is_true, set_conditions
from tools.simulate.resource import WORKS

FINALIZER = "cluster.open-cluster-management.io/manifest-work-cleanup"
APPLIED, AVAILABLE, DELETING = "Applied", "Available", "Deleting"

_PLURALS = {"ConfigMap": "configmaps", "Deployment": "deployments"}
_TEAMS = ("payments", "identity", "platform", "telemetry", "storefront")
_STAGES = ("production", "production", "staging", "development")
_SETTINGS = 12


class Step(enum.Enum):
    """The next thing the agent does about a work."""

    NOTHING = "nothing"
    ADD_FINALIZER = "add finalizer"
    REPORT_APPLIED = "report applied"
    REPORT_AVAILABLE = "report available"
    REPORT_DELETING = "report deleting"
    REMOVE_FINALIZER = "remove finalizer"


def new_work(cluster: str, number: int) -> Obj:
    """Return the ManifestWork `number` of `cluster`: a ConfigMap and a Deployment of one app."""
    seed = hashlib.sha256(f"{cluster}/{number}".encode()).hexdigest()
    team, stage = _TEAMS[number % len(_TEAMS)], _STAGES[int(seed[:2], 16) % len(_STAGES)]
    app = f"{team}-app-{number}"
    labels = {
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/part-of": team,
        "app.kubernetes.io/managed-by": "hublet-simulate",
        "environment": stage,
    }
    return {
        "apiVersion": WORKS.api_version,
        "kind": "ManifestWork",
        "metadata": {"name": app, "namespace": cluster, "labels": labels},
        "spec": {
            "workload": {
                "manifests": [_config_map(app, labels, seed), _deployment(app, labels, seed)]
            }
        },
    }


def kept_work(work: Obj) -> Obj:
    """Return what the agent has to know of `work`: of its manifests only which they are.

    They would be most of the memory of a fleet.
    """
    manifests = [
        {
            "apiVersion": manifest["apiVersion"],
            "kind": manifest["kind"],
            "metadata": {k: manifest["metadata"].get(k, "") for k in ("name", "namespace")},
        }
        for manifest in work["spec"]["workload"]["manifests"]
    ]
    metadata = {key: value for key, value in work["metadata"].items() if key != "managedFields"}
    return {**work, "metadata": metadata, "spec": {"workload": {"manifests": manifests}}}


def next_step(work: Obj) -> Step:
    """Return what the agent has to do about `work` as it is now."""
    metadata: Obj = work["metadata"]
    has_finalizer = FINALIZER in (metadata.get("finalizers") or [])
    if metadata.get("deletionTimestamp"):
        if not has_finalizer:
            return Step.NOTHING
        is_told = is_true(work, DELETING)
        return Step.REMOVE_FINALIZER if is_told else Step.REPORT_DELETING
    if not has_finalizer:
        return Step.ADD_FINALIZER
    generation = metadata.get("generation", 1)
    if not is_true(work, APPLIED, generation=generation):
        return Step.REPORT_APPLIED
    if not is_true(work, AVAILABLE, generation=generation):
        return Step.REPORT_AVAILABLE
    return Step.NOTHING


def is_done(work: Obj) -> bool:
    """Whether `work` is applied and available at its generation."""
    return next_step(work) is Step.NOTHING and not work["metadata"].get("deletionTimestamp")


def step_patch(work: Obj, step: Step, *, now: str) -> Obj:
    """Return the merge patch of `step`."""
    metadata = preconditions(work)
    if step is Step.ADD_FINALIZER:
        finalizers = [*(work["metadata"].get("finalizers") or []), FINALIZER]
        return {"metadata": {"finalizers": finalizers, **metadata}}
    if step is Step.REMOVE_FINALIZER:
        others = [f for f in work["metadata"]["finalizers"] if f != FINALIZER]
        return {"metadata": {"finalizers": others or None, **metadata}}
    return {"metadata": metadata, "status": _status(work, step, now=now)}


def _status(work: Obj, step: Step, *, now: str) -> Obj:
    generation = work["metadata"].get("generation", 1)
    existing = (work.get("status") or {}).get("conditions") or []
    if step is Step.REPORT_DELETING:
        gone = condition(
            DELETING,
            "True",
            reason="WorkDeleting",
            message="ManifestWork is being deleted",
            generation=generation,
        )
        return {"conditions": set_conditions(existing, [gone], now=now)}
    wanted = [
        condition(
            APPLIED,
            "True",
            reason="AppliedManifestWorkComplete",
            message="Apply manifest work complete",
            generation=generation,
        )
    ]
    if step is Step.REPORT_AVAILABLE:
        wanted.append(
            condition(
                AVAILABLE,
                "True",
                reason="ResourcesAvailable",
                message="All resources are available",
                generation=generation,
            )
        )
    return {
        "conditions": set_conditions(existing, wanted, now=now),
        "resourceStatus": {"manifests": _results(work, step, now=now)},
    }


def _results(work: Obj, step: Step, *, now: str) -> list[Obj]:
    """Return the result of each manifest, keeping the transition times of earlier ones."""
    before = ((work.get("status") or {}).get("resourceStatus") or {}).get("manifests") or []
    known = {entry["resourceMeta"]["ordinal"]: entry.get("conditions") or [] for entry in before}
    manifests = work["spec"]["workload"]["manifests"]
    return [
        _result(manifest, ordinal, known.get(ordinal, []), step=step, now=now)
        for ordinal, manifest in enumerate(manifests)
    ]


def _result(manifest: Obj, ordinal: int, existing: Conditions, *, step: Step, now: str) -> Obj:
    group, _, version = manifest["apiVersion"].rpartition("/")
    kind, metadata = manifest["kind"], manifest["metadata"]
    wanted = [
        condition(
            "Applied",
            "True",
            reason="AppliedManifestComplete",
            message="Apply manifest complete",
        )
    ]
    if step is Step.REPORT_AVAILABLE:
        wanted += [
            condition(
                "Available", "True", reason="ResourceAvailable", message="Resource is available"
            ),
            condition("StatusFeedbackSynced", "True", reason="NoStatusFeedbackSynced", message=""),
        ]
    return {
        "conditions": set_conditions(existing, wanted, now=now),
        "resourceMeta": {
            "group": group,
            "kind": kind,
            "name": metadata["name"],
            "namespace": metadata.get("namespace", ""),
            "ordinal": ordinal,
            "resource": _PLURALS.get(kind, f"{kind.lower()}s"),
            "version": version,
        },
        "statusFeedback": {},
    }


def _config_map(app: str, labels: dict[str, str], seed: str) -> Obj:
    data = {
        f"setting.{n:02}": f"{seed[n * 4 : n * 4 + 4]}.{app}.svc.cluster.local"
        for n in range(_SETTINGS)
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{app}-settings", "namespace": "default", "labels": labels},
        "data": {**data, "log.level": "info", "revision": seed[:40]},
    }


def _deployment(app: str, labels: dict[str, str], seed: str) -> Obj:
    container = {
        "name": "main",
        "image": f"registry.example.com/{app}@sha256:{seed}",
        "ports": [{"name": "http", "containerPort": 8080}],
        "envFrom": [{"configMapRef": {"name": f"{app}-settings"}}],
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "256Mi"},
        },
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 10},
    }
    selector = {"app.kubernetes.io/name": app}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": app, "namespace": "default", "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "serviceAccountName": "default"},
            },
        },
    }
