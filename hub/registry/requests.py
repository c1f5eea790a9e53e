"""CertificateSigningRequest: who asked is written by the server, what was asked never changes.

Mirrors k8s.io/kubernetes/pkg/registry/certificates/certificates/strategy.go and the validation
beside it. Approving and signing are controllers' business.
"""

from collections.abc import Mapping

from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.auth.certificates import parse_csr
from hub.auth.errors import CsrError
from hub.auth.user import MASTERS
from hub.meta import Obj
from hub.meta.codec.base64 import decode_base64
from hub.meta.errors import Cause, forbidden
from hub.meta.timestamp import human_duration
from hub.registry.kind import Kind, View
from hub.registry.printing import age_printer, computed, name_printer, text_printer
from hub.registry.strategy import Occasion, Strategy
from hub.registry.tabled import shape_of

ADDON_NAME_LABEL = "open-cluster-management.io/addon-name"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
_DECISIONS = ("Approved", "Denied")
_REQUESTER = ("username", "uid", "groups", "extra")


def conditions_of(obj: Obj) -> list[Obj]:
    """Return ``status.conditions``, empty when there are none."""
    found = (obj.get("status") or {}).get("conditions")
    return found if isinstance(found, list) else []


def has_condition(obj: Obj, type_: str) -> bool:
    """Whether a condition of that type is there (CSR conditions are never False)."""
    return any(c.get("type") == type_ for c in conditions_of(obj))


def is_same(obj: Obj, other: Obj) -> bool:
    """Whether two states are of one request, whose spec never changes.

    Not of one that was deleted and made again under its name: what was decided on one says nothing
    of the other.
    """
    return bool(obj["metadata"]["uid"] == other["metadata"]["uid"])


class RequestStrategy(Strategy):
    """Three writers, three parts: requester spec, approver conditions, signer certificate."""

    def prepare_create(self, obj: Obj, occasion: Occasion) -> None:
        """Write the requester from the authenticated user, whatever the body says."""
        spec = obj.setdefault("spec", {})
        for name in _REQUESTER:
            spec.pop(name, None)
        user = occasion.user
        spec["username"] = user.name
        if user.uid:
            spec["uid"] = user.uid
        if user.groups:
            spec["groups"] = list(user.groups)
        if user.extra:
            spec["extra"] = {key: list(values) for key, values in user.extra.items()}
        obj["status"] = {}  # always there, as in the JSON of Go's type
        _refuse_masters(obj)

    def prepare_update(self, new: Obj, old: Obj, occasion: Occasion) -> None:
        """Keep the spec: it is immutable."""
        new["spec"] = old["spec"]

    def apply_subresource(
        self, subresource: str, target: Obj, wanted: Obj, occasion: Occasion
    ) -> None:
        """Let ``approval`` write Approved and Denied, ``status`` the certificate and the rest."""
        asked = wanted.get("status") or {}
        status = dict(target.get("status") or {})
        if subresource == "approval":
            status["conditions"] = asked.get("conditions") or []
        else:
            if asked.get("certificate"):
                status["certificate"] = asked["certificate"]
            kept = [c for c in conditions_of(target) if c.get("type") in _DECISIONS]
            other = [c for c in asked.get("conditions") or [] if c.get("type") not in _DECISIONS]
            if kept or other:
                status["conditions"] = kept + other
        self._stamp(status, target, occasion)
        target["status"] = status

    @staticmethod
    def _stamp(status: Obj, old: Obj, occasion: Occasion) -> None:
        from hub.meta.timestamp import format_time  # noqa: PLC0415

        known = {c.get("type"): c for c in conditions_of(old)}
        now = format_time(occasion.clock.now())
        for condition in status.get("conditions") or []:
            before = known.get(condition.get("type"))
            if not condition.get("lastUpdateTime"):
                condition["lastUpdateTime"] = now
            if not condition.get("lastTransitionTime"):
                is_same = before is not None and before.get("status") == condition.get("status")
                condition["lastTransitionTime"] = (
                    before["lastTransitionTime"] if before is not None and is_same else now
                )

    def validate(self, obj: Obj) -> list[Cause]:
        """Check spec: a PEM request, a signer, usages; and that no decision contradicts another."""
        spec = obj.get("spec") or {}
        causes = _request_problems(spec.get("request"))
        if not spec.get("signerName"):
            causes.append(Cause("FieldValueRequired", "Required value", "spec.signerName"))
        if not spec.get("usages"):
            text = "Required value: usages must be provided"
            causes.append(Cause("FieldValueRequired", text, "spec.usages"))
        seconds = spec.get("expirationSeconds")
        if seconds is not None and seconds < 600:
            text = (
                f"Invalid value: {seconds}: may not specify a duration less than 600 seconds "
                "(10 minutes)"
            )
            causes.append(Cause("FieldValueInvalid", text, "spec.expirationSeconds"))
        if all(has_condition(obj, decision) for decision in _DECISIONS):
            text = 'Invalid value: "Denied": Approved and Denied conditions are mutually exclusive'
            causes.append(Cause("FieldValueInvalid", text, "status.conditions[1].type"))
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Refuse taking a decision back or replacing a certificate."""
        causes = [
            Cause(
                "FieldValueForbidden",
                f"Forbidden: updates may not remove a condition of type {decision!r}".replace(
                    "'", '"'
                ),
                "status.conditions",
            )
            for decision in _DECISIONS
            if has_condition(old, decision) and not has_condition(new, decision)
        ]
        before = (old.get("status") or {}).get("certificate")
        if before and (new.get("status") or {}).get("certificate") != before:
            text = "Forbidden: updates may not set new certificate content"
            causes.append(Cause("FieldValueForbidden", text, "status.certificate"))
        return causes

    def fields(self, obj: Obj) -> Mapping[str, str]:
        """Offer the signer."""
        return {"spec.signerName": str((obj.get("spec") or {}).get("signerName", ""))}

    def selectable(self) -> tuple[str, ...]:
        """Name the signer."""
        return ("spec.signerName",)


def _refuse_masters(obj: Obj) -> None:
    """Refuse (403) a client certificate in system:masters, which no later denial could take back.

    Mirrors k8s.io/kubernetes/plugin/pkg/admission/certificates/subjectrestriction. A request that
    cannot be read is left to validation and to the signer.
    """
    spec = obj["spec"]
    if spec.get("signerName") != CLIENT_SIGNER:
        return
    try:
        organizations = parse_csr(decode_base64(spec.get("request") or "")).organizations
    except (CsrError, ValueError):
        return
    if MASTERS in organizations:
        detail = f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
        raise forbidden(CSR.resource, str(obj["metadata"].get("name") or ""), detail)


def _request_problems(request: str | None) -> list[Cause]:
    """Check what the shape has found to be base64."""
    if b"-----BEGIN CERTIFICATE REQUEST-----" in decode_base64(request or ""):
        return []
    text = "Invalid value: PEM block type must be CERTIFICATE REQUEST"
    return [Cause("FieldValueInvalid", text, "spec.request")]


def _condition_text(obj: Obj) -> str:
    types = [str(c.get("type")) for c in conditions_of(obj)]
    shown = ",".join(types) or "Pending"
    return f"{shown},Issued" if (obj.get("status") or {}).get("certificate") else shown


def _duration_text(obj: Obj) -> str:
    seconds = (obj.get("spec") or {}).get("expirationSeconds")
    return "<none>" if seconds is None else human_duration(int(seconds))


CSR = Kind(
    kind="CertificateSigningRequest",
    plural="certificatesigningrequests",
    singular="certificatesigningrequest",
    short_names=("csr",),
    views=(
        View(
            "certificates.k8s.io",
            "v1",
            printers=(
                name_printer(),
                age_printer(),
                text_printer("SignerName", ".spec.signerName"),
                text_printer("Requestor", ".spec.username"),
                computed(
                    "RequestedDuration", _duration_text, description="How long it asks to live."
                ),
                computed("Condition", _condition_text, description="Decision, and whether issued."),
            ),
            shape=shape_of("certificates.k8s.io/v1", "CertificateSigningRequest"),
        ),
    ),
    is_namespaced=False,
    strategy=RequestStrategy(),
    subresources=("approval", "status"),
    is_protected=True,
    indexed_labels=(CLUSTER_NAME_LABEL,),
)
