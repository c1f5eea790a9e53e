"""Which certificate requests have served their time, and which are too many.

Pure. The ages are those of k8s.io/kubernetes/pkg/controller/certificates/cleaner. The counts are
ours: an agent of Open Cluster Management stops asking for certificates for good when it sees ten
requests of its cluster (of its add-on), whatever their state, so a group is kept well below that.

An agent waits for the last request it made and for no other, and makes a new one when it finds that
one gone. So within a group a request is given up in this order: superseded by a newer one for the
same identity, oldest first; finished so long ago that its agent has fetched the answer; and only
when nothing else keeps the group below the threshold, the oldest of those that are still open.
"""

import base64
import binascii
import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.auth.certificates import certificate_end, parse_csr
from hub.auth.errors import CsrError
from hub.meta import Obj
from hub.meta.timestamp import parse_time
from hub.registry.requests import ADDON_NAME_LABEL, conditions_of, has_condition

THRESHOLD = 10
"""At so many requests an agent stops (OCM pkg/registration/register/csr, clusterCSRThreshold)."""

KEPT = 5
"""How many of a group may stay when others can be given up without a doubt."""

_CROWDED = 8
"""From here on even open requests go, before the agent meets the threshold."""

_LATEST = 3
"""The newest of a group are never given up for their number."""

DECIDED_S = 3600.0
PENDING_S = 24 * 3600.0
_SETTLED_S = 600.0


@dataclass(frozen=True, slots=True)
class Request:
    """What matters of a request here.

    `identity`: who asked which signer for whose certificate. `decided` is when it was approved,
    denied or failed.
    """

    name: str
    identity: tuple[str, str, str]
    created: dt.datetime
    decided: dt.datetime | None
    is_finished: bool


def group_of(obj: Obj) -> tuple[str, str] | None:
    """Return the cluster and add-on whose agent counts this request, None for other requests."""
    labels = obj["metadata"].get("labels") or {}
    cluster = labels.get(CLUSTER_NAME_LABEL)
    return (str(cluster), str(labels.get(ADDON_NAME_LABEL) or "")) if cluster else None


def summarize(obj: Obj) -> Request:
    """Return what matters of a stored request."""
    is_issued = bool((obj.get("status") or {}).get("certificate"))
    spec = obj.get("spec") or {}
    return Request(
        name=str(obj["metadata"]["name"]),
        identity=(str(spec.get("username")), str(spec.get("signerName")), _common_name(spec)),
        created=parse_time(str(obj["metadata"]["creationTimestamp"])),
        decided=_decided(obj),
        is_finished=is_issued or has_condition(obj, "Denied") or has_condition(obj, "Failed"),
    )


def has_served(obj: Obj, *, now: dt.datetime, awake_since: dt.datetime) -> bool:
    """Whether a request's time is over, by kube's rules.

    Time in which the hub was away does not count: nobody could fetch an answer then.
    """
    certificate = (obj.get("status") or {}).get("certificate")
    if certificate and has_condition(obj, "Approved") and _has_ended(certificate, now):
        return True
    decided = _decided(obj)
    if decided is not None:
        return (now - max(decided, awake_since)).total_seconds() > DECIDED_S
    if conditions_of(obj):
        return False
    created = parse_time(str(obj["metadata"]["creationTimestamp"]))
    return (now - max(created, awake_since)).total_seconds() > PENDING_S


def surplus(group: Iterable[Request], now: dt.datetime) -> list[str]:
    """Return the names of the requests of one group that are to go.

    At most `KEPT` stay as far as certain ones can go; fewer than the agents' threshold always.
    """
    # times are whole seconds: of two made in one, the undecided is taken for the newer
    requests = sorted(group, key=lambda r: (r.created, not r.is_finished, r.name))
    excess = len(requests) - KEPT
    if excess <= 0:
        return []
    latest = {r.identity: r.name for r in requests}
    superseded = [r.name for r in requests if latest[r.identity] != r.name]
    older = [r for r in requests[:-_LATEST] if r.name not in superseded]
    settled = [r.name for r in older if _is_settled(r, now)]
    going = (superseded + settled)[:excess]
    left = len(requests) - len(going)
    if left >= _CROWDED:
        still_open = [r.name for r in older if r.name not in going]
        going += still_open[: left - _CROWDED + 1]
    return going


def _is_settled(request: Request, now: dt.datetime) -> bool:
    if not request.is_finished or request.decided is None:
        return False
    return (now - request.decided).total_seconds() > _SETTLED_S


def _decided(obj: Obj) -> dt.datetime | None:
    """Return when the last decision fell: approval, denial or failure."""
    times = [
        parse_time(str(condition["lastUpdateTime"]))
        for condition in conditions_of(obj)
        if condition.get("type") in ("Approved", "Denied", "Failed")
        and condition.get("lastUpdateTime")
    ]
    return max(times, default=None)


def _common_name(spec: Obj) -> str:
    """Return whom the certificate would name; "" when the request cannot be read."""
    try:
        return parse_csr(base64.b64decode(spec.get("request") or "")).common_name
    except (CsrError, ValueError, binascii.Error):
        return ""


def _has_ended(certificate: str, now: dt.datetime) -> bool:
    try:
        return certificate_end(base64.b64decode(certificate)) < now
    except (ValueError, binascii.Error):
        return False
