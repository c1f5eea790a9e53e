"""ManagedClusterAddOn between v1alpha1 (stored) and v1beta1.

The rules are those of OCM's conversion (api: addon/v1beta1/conversion.go, read as facts): the
install namespace moves to an annotation, signer names become registration types, the kube client
driver moves into the registration, organization units get their plural, and the deprecated
configuration of status goes. Pure; both directions leave their argument alone.
"""

from hub.meta import Obj

V1ALPHA1 = "addon.open-cluster-management.io/v1alpha1"
V1BETA1 = "addon.open-cluster-management.io/v1beta1"
INSTALL_NAMESPACE = "addon.open-cluster-management.io/v1alpha1-install-namespace"
DEFAULT_INSTALL_NAMESPACE = "open-cluster-management-agent-addon"
KUBE_SIGNER = "kubernetes.io/kube-apiserver-client"


def to_v1beta1(obj: Obj) -> Obj:
    """Return the stored object as v1beta1 shows it."""
    meta = dict(obj["metadata"])
    spec = dict(obj.get("spec") or {})
    namespace = spec.pop("installNamespace", None)
    if namespace:
        meta["annotations"] = {**(meta.get("annotations") or {}), INSTALL_NAMESPACE: namespace}
    shown: Obj = {"apiVersion": V1BETA1, "kind": obj["kind"], "metadata": meta, "spec": spec}
    shown["status"] = _status_to_v1beta1(obj.get("status") or {})
    return shown


def _status_to_v1beta1(status: Obj) -> Obj:
    moved = ("addOnConfiguration", "kubeClientDriver", "registrations")
    shown = {k: v for k, v in status.items() if k not in moved}
    shown.setdefault("addOnMeta", {})
    shown["healthCheck"] = {"mode": "Lease", **(shown.get("healthCheck") or {})}
    if "registrations" in status:
        driver = status.get("kubeClientDriver") or ""
        shown["registrations"] = [
            _registration_to_v1beta1(r, driver) for r in status["registrations"] or []
        ]
    if "configReferences" in status:
        shown["configReferences"] = [
            {k: v for k, v in reference.items() if k not in ("name", "namespace")}
            for reference in status["configReferences"] or []
        ]
    return shown


def _registration_to_v1beta1(registration: Obj, driver: str) -> Obj:
    subject = registration.get("subject") or {}
    if registration.get("signerName") == KUBE_SIGNER:
        client: Obj = {"subject": _subject(subject)}
        if driver:
            client["driver"] = driver
        return {"type": "kubeClient", "kubeClient": client}
    whole = {**_subject(subject), **_units(subject, "organizationUnit", "organizationUnits")}
    signer = {"signerName": registration.get("signerName", ""), "subject": whole}
    return {"type": "customSigner", "customSigner": signer}


def _subject(subject: Obj) -> Obj:
    return {name: subject[name] for name in ("user", "groups") if subject.get(name)}


def _units(subject: Obj, old: str, new: str) -> Obj:
    return {new: subject[old]} if subject.get(old) else {}


def to_v1alpha1(obj: Obj) -> Obj:
    """Return a v1beta1 object as it is stored."""
    meta = dict(obj["metadata"])
    spec = dict(obj.get("spec") or {})
    annotations = dict(meta.get("annotations") or {})
    if INSTALL_NAMESPACE in annotations:
        namespace = annotations.pop(INSTALL_NAMESPACE)
        if namespace:
            spec["installNamespace"] = namespace
        if annotations:
            meta["annotations"] = annotations
        else:
            meta.pop("annotations")
    stored: Obj = {"apiVersion": V1ALPHA1, "kind": obj["kind"], "metadata": meta, "spec": spec}
    if "status" in obj:
        stored["status"] = _status_to_v1alpha1(obj["status"] or {})
    return stored


def _status_to_v1alpha1(status: Obj) -> Obj:
    stored = {k: v for k, v in status.items() if k != "registrations"}
    if "registrations" in status:
        registrations = status["registrations"] or []
        stored["registrations"] = [_registration_to_v1alpha1(r) for r in registrations]
        clients = (_client(r) for r in registrations)
        driver = next((c.get("driver") for c in clients if c is not None), "")
        if driver:
            stored["kubeClientDriver"] = driver
    if "configReferences" in status:
        stored["configReferences"] = [
            {**reference, **((reference.get("desiredConfig") or {}) and _referent(reference))}
            for reference in status["configReferences"] or []
        ]
    return stored


def _referent(reference: Obj) -> Obj:
    desired = reference["desiredConfig"]
    return {name: desired[name] for name in ("name", "namespace") if desired.get(name)}


def _client(registration: Obj) -> Obj | None:
    is_client = registration.get("type") == "kubeClient"
    return registration.get("kubeClient") if is_client else None


def _registration_to_v1alpha1(registration: Obj) -> Obj:
    if registration.get("type") == "kubeClient":
        subject = _subject((_client(registration) or {}).get("subject") or {})
        return {"signerName": KUBE_SIGNER, "subject": subject}
    signer = registration.get("customSigner") or {}
    subject = signer.get("subject") or {}
    whole = {**_subject(subject), **_units(subject, "organizationUnits", "organizationUnit")}
    return {"signerName": signer.get("signerName", ""), "subject": whole}
