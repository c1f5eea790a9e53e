"""The built-in kinds that agents, kubectl and the hub itself need.

Data and small strategies; field rules mirror
k8s.io/kubernetes/pkg/registry/<group>/<kind>/strategy.go. Kinds of the fleet are in
`hub.fleet.kinds`.
"""

import base64
import re
from collections.abc import Mapping

from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.meta import Obj
from hub.meta.causes import invalid_value
from hub.meta.codec.base64 import decode_base64
from hub.meta.errors import Cause, bad_request
from hub.meta.fields import differs_only_in
from hub.meta.names import label_name_errors
from hub.meta.timestamp import parse_time
from hub.registry.event import EVENT
from hub.registry.kind import STANDARD_VERBS, Kind, View
from hub.registry.objects import meta_of
from hub.registry.printing import Printer, age_printer, computed, name_printer, text_printer
from hub.registry.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING
from hub.registry.requests import CSR
from hub.registry.strategy import Occasion, Strategy
from hub.registry.tabled import shape_of

PROTECTED_NAMESPACES = ("default", "kube-system", "kube-public")
MAX_DATA_BYTES = 1024 * 1024


class NamespaceStrategy(Strategy):
    """A namespace stays, Terminating, until its contents and ``spec.finalizers`` are gone."""

    def name_problems(self, name: str) -> list[str]:
        """Return why `name` is no DNS label."""
        return label_name_errors(name)

    def prepare_create(self, obj: Obj, occasion: Occasion) -> None:
        """Give a new namespace its phase, its own finalizer and the label with its name."""
        obj["spec"] = {"finalizers": ["kubernetes"]}
        obj["status"] = {"phase": "Active"}
        self._label(obj)

    def prepare_update(self, new: Obj, old: Obj, occasion: Occasion) -> None:
        """Keep spec.finalizers (the finalize subresource changes them) and the name label."""
        new["spec"] = old.get("spec", {})
        self._label(new)

    @staticmethod
    def _label(obj: Obj) -> None:
        meta = meta_of(obj)
        labels = {
            **(meta.get("labels") or {}),
            "kubernetes.io/metadata.name": meta.get("name") or "",
        }
        meta["labels"] = labels

    def apply_subresource(
        self, subresource: str, target: Obj, wanted: Obj, occasion: Occasion
    ) -> None:
        """Let ``finalize`` set spec.finalizers, ``status`` the status."""
        if subresource == "finalize":
            finalizers = (wanted.get("spec") or {}).get("finalizers") or []
            target["spec"] = {"finalizers": finalizers} if finalizers else {}
            return
        super().apply_subresource(subresource, target, wanted, occasion)

    def deletes_at_once(self, obj: Obj) -> bool:
        """Whether spec.finalizers is empty."""
        return not (obj.get("spec") or {}).get("finalizers")

    def deletion_refusal(self, name: str) -> str:
        """Keep the namespaces that everything relies on (NamespaceLifecycle admission)."""
        return "this namespace may not be deleted" if name in PROTECTED_NAMESPACES else ""

    def begin_deletion(self, obj: Obj) -> None:
        """Turn the phase to Terminating; a namespace has no grace period."""
        meta_of(obj).pop("deletionGracePeriodSeconds", None)
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}

    def fields(self, obj: Obj) -> Mapping[str, str]:
        """Offer the phase."""
        return {"status.phase": str((obj.get("status") or {}).get("phase", ""))}

    def selectable(self) -> tuple[str, ...]:
        """Name the phase."""
        return ("status.phase",)


class ConfigMapStrategy(Strategy):
    """``immutable: true`` freezes the data for good; keys are file names, a mebibyte in all."""

    data_fields: tuple[str, ...] = ("data", "binaryData")

    def validate(self, obj: Obj) -> list[Cause]:
        """Check the keys and the size; that bytes are base64 is the shape's business."""
        causes: list[Cause] = []
        size = 0
        for field in self.data_fields:
            is_binary = field == "binaryData" or obj["kind"] == "Secret"
            for key, value in (obj.get(field) or {}).items():
                causes += _key_causes(field, key)
                size += len(decode_base64(value) if is_binary else value.encode())
        if size > MAX_DATA_BYTES:
            text = f"Too long: may not be more than {MAX_DATA_BYTES} bytes"
            # kube reports the whole object of a ConfigMap, and the data of a Secret
            causes.append(
                Cause("FieldValueTooLong", text, "" if "binaryData" in self.data_fields else "data")
            )
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Refuse changes to what was frozen."""
        if not old.get("immutable"):
            return []
        if not new.get("immutable"):
            text = "Forbidden: field is immutable when `immutable` is set"
            return [Cause("FieldValueForbidden", text, "immutable")]
        text = "Forbidden: field is immutable when `immutable` is set"
        return [
            Cause("FieldValueForbidden", text, field)
            for field in ("data", "binaryData", "stringData")
            if (new.get(field) or {}) != (old.get(field) or {})
        ]


class SecretStrategy(ConfigMapStrategy):
    """``stringData`` is write-only and merged into ``data``; the type never changes."""

    data_fields = ("data",)

    def default(self, obj: Obj) -> None:
        """Default the type and fold stringData in."""
        plain = obj.pop("stringData", None)
        if plain:
            data = dict(obj.get("data") or {})
            for key, value in plain.items():
                data[key] = base64.b64encode(value.encode()).decode()
            obj["data"] = data
        if not obj.get("type"):
            obj["type"] = "Opaque"

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Refuse a change of type."""
        causes = super().validate_update(new, old)
        if new.get("type") != old.get("type"):
            text = f'Invalid value: "{new.get("type")}": field is immutable'
            causes.append(Cause("FieldValueInvalid", text, "type"))
        return causes

    def fields(self, obj: Obj) -> Mapping[str, str]:
        """Offer the type."""
        return {"type": str(obj.get("type", ""))}

    def selectable(self) -> tuple[str, ...]:
        """Name the type."""
        return ("type",)


class LeaseStrategy(Strategy):
    """Heartbeats of clusters are renewals; leader election is an ordinary durable write."""

    def validate(self, obj: Obj) -> list[Cause]:
        """Check the numbers in spec."""
        spec = obj.get("spec") or {}
        causes = []
        for field, least in (("leaseDurationSeconds", 1), ("leaseTransitions", 0)):
            value = spec.get(field)
            if value is not None and value < least:
                rule = "must be greater than 0" if least else "must be greater than or equal to 0"
                cause = Cause(
                    "FieldValueInvalid", f"Invalid value: {value}: {rule}", f"spec.{field}"
                )
                causes.append(cause)
        for field in ("acquireTime", "renewTime"):
            _check_time(spec.get(field))
        return causes

    def is_renewal(self, new: Obj, old: Obj) -> bool:
        """Whether a cluster's Lease changes in spec.renewTime alone."""
        labels = meta_of(old).get("labels") or {}
        return CLUSTER_NAME_LABEL in labels and differs_only_in(new, old, "spec.renewTime")


def _check_time(text: str | None) -> None:
    """Refuse (400) what is no RFC 3339 time, as Go's decoder does."""
    try:
        if text:
            parse_time(text)
    except ValueError:
        raise bad_request(f'parsing time "{text}": must be RFC 3339') from None


def _key_causes(field: str, key: str) -> list[Cause]:
    problems = []
    if len(key) > 253:
        problems.append("must be no more than 253 characters")
    if re.fullmatch(r"[-._a-zA-Z0-9]+", key) is None:
        problems.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
            "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
            "'[-._a-zA-Z0-9]+')"
        )
    if key == "." or key.startswith(".."):
        problems.append(
            f"must not be '{key}'" if key in (".", "..") else "must not start with '..'"
        )
    return [invalid_value(f"{field}[{key}]", key, p) for p in problems]


def _count(*fields: str) -> Printer:
    return computed(
        "Data",
        lambda obj: sum(len(obj.get(field) or {}) for field in fields),
        description="How many keys there are.",
    )


NAMESPACE = Kind(
    kind="Namespace",
    plural="namespaces",
    singular="namespace",
    short_names=("ns",),
    views=(
        View(
            "",
            "v1",
            printers=(name_printer(), text_printer("Status", ".status.phase"), age_printer()),
            shape=shape_of("v1", "Namespace"),
        ),
    ),
    is_namespaced=False,
    # as in kube: whole namespaces go one by one
    verbs=tuple(verb for verb in STANDARD_VERBS if verb != "deletecollection"),
    strategy=NamespaceStrategy(),
    subresources=("finalize", "status"),
)
CONFIG_MAP = Kind(
    kind="ConfigMap",
    plural="configmaps",
    singular="configmap",
    short_names=("cm",),
    views=(
        View(
            "",
            "v1",
            printers=(name_printer(), _count("data", "binaryData"), age_printer()),
            shape=shape_of("v1", "ConfigMap"),
        ),
    ),
    is_namespaced=True,
    strategy=ConfigMapStrategy(),
)
SECRET = Kind(
    kind="Secret",
    plural="secrets",
    singular="secret",
    views=(
        View(
            "",
            "v1",
            printers=(name_printer(), text_printer("Type", ".type"), _count("data"), age_printer()),
            shape=shape_of("v1", "Secret"),
        ),
    ),
    is_namespaced=True,
    strategy=SecretStrategy(),
    is_sealed=True,
)
SERVICE_ACCOUNT = Kind(
    kind="ServiceAccount",
    plural="serviceaccounts",
    singular="serviceaccount",
    short_names=("sa",),
    views=(View("", "v1", shape=shape_of("v1", "ServiceAccount")),),
    is_namespaced=True,
    subresources=("token",),
    is_conditional=True,
    returns_deleted=True,
)
LEASE = Kind(
    kind="Lease",
    plural="leases",
    singular="lease",
    views=(
        View(
            "coordination.k8s.io",
            "v1",
            printers=(
                name_printer(),
                text_printer("Holder", ".spec.holderIdentity"),
                age_printer(),
            ),
            shape=shape_of("coordination.k8s.io/v1", "Lease"),
        ),
    ),
    is_namespaced=True,
    strategy=LeaseStrategy(),
    is_conditional=True,
)


def _review(kind: str, group: str, *, is_namespaced: bool = False) -> Kind:
    return Kind(
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        views=(View(group, "v1", shape=shape_of(f"{group}/v1", kind)),),
        is_namespaced=is_namespaced,
        verbs=("create",),
        is_virtual=True,
    )


TOKEN_REVIEW = _review("TokenReview", "authentication.k8s.io")
SELF_SUBJECT_REVIEW = _review("SelfSubjectReview", "authentication.k8s.io")
SELF_ACCESS_REVIEW = _review("SelfSubjectAccessReview", "authorization.k8s.io")
ACCESS_REVIEW = _review("SubjectAccessReview", "authorization.k8s.io")
LOCAL_ACCESS_REVIEW = _review(
    "LocalSubjectAccessReview", "authorization.k8s.io", is_namespaced=True
)
SELF_RULES_REVIEW = _review("SelfSubjectRulesReview", "authorization.k8s.io")

BUILTIN = (
    NAMESPACE,
    CONFIG_MAP,
    SECRET,
    SERVICE_ACCOUNT,
    EVENT,
    LEASE,
    CSR,
    ROLE,
    ROLE_BINDING,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    TOKEN_REVIEW,
    SELF_SUBJECT_REVIEW,
    SELF_ACCESS_REVIEW,
    ACCESS_REVIEW,
    LOCAL_ACCESS_REVIEW,
    SELF_RULES_REVIEW,
)
