"""Objects of every built-in kind, and how a server shows them as Tables: data for test_tables.

`python -m tests.server.table_cases KUBECONFIG` writes the golden file anew from the server named.
"""

import asyncio
import base64
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hub.meta import Obj
from tests.hubs import Api
from tests.server.support import RBAC, REQUESTS, TABLE, named
from tests.server.widgets import DEFINITIONS, condition, until

GOLDEN = Path(__file__).parent.parent / "golden" / "tables" / "kube-1.36.json"
GROUP = "tables.example.com"
_CORE = "/api/v1/namespaces/tables"
_EVENTS = "/apis/events.k8s.io/v1/namespaces/tables/events"
_ROLES = f"{RBAC}/namespaces/tables"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/tables/leases"
_GADGETS = f"/apis/{GROUP}/v1/namespaces/tables/gadgets"
_TIME = "2026-01-01T00:00:00Z"
_MICRO_TIME = "2026-01-01T00:00:00.000000Z"


class Shown(TypedDict):
    """Columns as name, type, format and priority; the cells of the one row, times masked."""

    columns: list[list[object]]
    cells: list[object]


@dataclass(frozen=True, slots=True)
class Case:
    """An object, where it is created, what is then written, and from where it is shown.

    `writes` are (subresource, status) to be put; `shown_at` is relative to the object's path unless
    it begins with a slash.
    """

    path: str
    obj: Obj
    writes: tuple[tuple[str, Obj], ...] = ()
    shown_at: str = ""


def _request() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tables")])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject)
    pem = request.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return base64.b64encode(pem).decode()


def _csr(name: str, *writes: tuple[str, Obj], **spec: object) -> Case:
    spec = {
        "request": _request(),
        "signerName": "example.com/tables",
        "usages": ["client auth"],
        **spec,
    }
    return Case(REQUESTS, named(name, spec=spec), writes)


def _decided(type_: str) -> tuple[str, Obj]:
    condition = {"type": type_, "status": "True", "reason": "Tables", "message": "m"}
    return ("status" if type_ == "Failed" else "approval", {"conditions": [condition]})


def _event(name: str, **rest: object) -> Obj:
    about = {"kind": "ConfigMap", "namespace": "tables", "name": "about", "apiVersion": "v1"}
    return named(name, involvedObject=about, reason="Demo", type="Normal", message="m") | rest


def _new_event(name: str, **rest: object) -> Obj:
    about = {"kind": "ConfigMap", "namespace": "tables", "name": "about", "apiVersion": "v1"}
    return {
        **named(name, regarding=about, reason="Demo", type="Normal", note="a note"),
        "eventTime": _MICRO_TIME,
        "action": "Testing",
        "reportingController": "example.com/tables",
        "reportingInstance": "tables-0",
        **rest,
    }


def _gadget(name: str, **rest: object) -> Obj:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", **named(name, **rest)}


def _subject(kind: str, name: str) -> Obj:
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, "namespace": "tables"}
    return {"kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io"}


def _binding(path: str, name: str, role: str, *subjects: Obj) -> Case:
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": "view"}
    return Case(path, named(name, roleRef=ref, subjects=list(subjects)))


_MANY = (
    _subject("ServiceAccount", "a"),
    _subject("User", "u1"),
    _subject("Group", "g1"),
    _subject("User", "u2"),
    _subject("ServiceAccount", "b"),
    _subject("Group", "g2"),
)
_RULES = [{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}]
_COLUMNS = [
    {"name": "Text", "type": "string", "jsonPath": ".spec.text", "description": "A text."},
    {"name": "Count", "type": "integer", "jsonPath": ".spec.size", "format": "int32"},
    {"name": "Ratio", "type": "number", "jsonPath": ".spec.ratio", "priority": 1},
    {"name": "Flag", "type": "boolean", "jsonPath": ".spec.flag"},
    {"name": "Since", "type": "date", "jsonPath": ".spec.since"},
    {"name": "First", "type": "string", "jsonPath": ".spec.list[0]"},
    {"name": "All", "type": "string", "jsonPath": ".spec.list", "priority": 2},
    {"name": "Ready", "type": "string", "jsonPath": '.spec.items[?(@.name=="b")].value'},
]
_DEFINITION: Obj = {
    **named(f"gadgets.{GROUP}"),
    "spec": {
        "group": GROUP,
        "names": {"kind": "Gadget", "plural": "gadgets"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.count",
                        "statusReplicasPath": ".status.count",
                    },
                },
                "additionalPrinterColumns": _COLUMNS,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
_SPEC: Obj = {
    "text": "a text",
    "size": 3,
    "ratio": 0.5,
    "flag": True,
    "since": _TIME,
    "list": ["x", "y"],
    "items": [{"name": "a", "value": 1}, {"name": "b", "value": 2}],
}
_MISFITS: Obj = {
    "text": 7,
    "size": "many",
    "ratio": 2,
    "flag": "yes",
    "since": "long ago",
    "list": "x",
    "items": [],
}

CASES: dict[str, Case] = {
    "namespace": Case("/api/v1/namespaces", named("tables")),
    "config map": Case(
        f"{_CORE}/configmaps", named("a", data={"x": "1"}, binaryData={"y": "AA=="})
    ),
    "config map, empty": Case(f"{_CORE}/configmaps", named("empty")),
    "secret": Case(f"{_CORE}/secrets", named("a", stringData={"x": "1", "y": "2"})),
    "secret, typed": Case(f"{_CORE}/secrets", named("typed", type="example.com/own")),
    "service account": Case(f"{_CORE}/serviceaccounts", named("a", secrets=[{"name": "s"}])),
    "lease": Case(_LEASES, named("a", spec={"holderIdentity": "me", "leaseDurationSeconds": 60})),
    "lease, empty": Case(_LEASES, named("empty")),
    "event": Case(
        f"{_CORE}/events",
        _event(
            "a.1",
            source={"component": "c", "host": "h"},
            message="  a\nlong   message\n",
            firstTimestamp=_TIME,
            lastTimestamp=_TIME,
            count=7,
        ),
    ),
    "event, bare": Case(f"{_CORE}/events", _event("bare.1")),
    "event, of a part": Case(
        f"{_CORE}/events",
        _event(
            "part.1",
            involvedObject={"kind": "Pod", "namespace": "tables", "fieldPath": "spec.x"},
            source={"component": "c"},
        ),
    ),
    "event, in the other group": Case(
        f"{_CORE}/events",
        _event("other.1", source={"component": "c", "host": "h"}, count=2, lastTimestamp=_TIME),
        shown_at=f"{_EVENTS}/other.1",
    ),
    "event, new": Case(_EVENTS, _new_event("new.1")),
    "event, new, in the core group": Case(
        _EVENTS, _new_event("new.2"), shown_at=f"{_CORE}/events/new.2"
    ),
    "event, series": Case(
        _EVENTS,
        _new_event(
            "series.1", series={"count": 5, "lastObservedTime": "2026-01-02T00:00:00.500000Z"}
        ),
    ),
    "request, pending": _csr("tables-pending"),
    "request, lasting": _csr("tables-lasting", expirationSeconds=86400),
    "request, approved": _csr("tables-approved", _decided("Approved"), expirationSeconds=600),
    "request, denied": _csr("tables-denied", _decided("Denied")),
    "request, failed": _csr("tables-failed", _decided("Approved"), _decided("Failed")),
    "role": Case(f"{_ROLES}/roles", named("a", rules=_RULES)),
    "cluster role": Case(f"{RBAC}/clusterroles", named("tables", rules=_RULES)),
    "role binding": _binding(f"{_ROLES}/rolebindings", "a", "Role", *_MANY),
    "role binding, of nobody": _binding(f"{_ROLES}/rolebindings", "none", "ClusterRole"),
    "cluster role binding": _binding(
        f"{RBAC}/clusterrolebindings", "tables", "ClusterRole", *_MANY
    ),
    "definition": Case(DEFINITIONS, _DEFINITION),
    "custom object": Case(_GADGETS, _gadget("a", spec=_SPEC)),
    "custom object, empty": Case(_GADGETS, _gadget("empty")),
    "custom object, of other types": Case(_GADGETS, _gadget("misfits", spec=_MISFITS)),
    "scale": Case(
        _GADGETS,
        _gadget("scaled", spec={"count": 3}),
        (("status", {"count": 2}),),
        shown_at="scale",
    ),
}


async def show(api: Api, case: Case) -> Shown:
    """Create the object of a case and return how the server shows it."""
    await api.create(case.path, case.obj)
    at = f"{case.path}/{case.obj['metadata']['name']}"
    if case.path == DEFINITIONS:
        await until(api, at, lambda o: condition(o, "Established").get("status") == "True")
    for subresource, status in case.writes:
        now = await api.get(at)
        now["status"] = _merged(now.get("status") or {}, status)
        answer = await api.call("PUT", f"{at}/{subresource}", now)
        assert answer.status == 200, answer.body
    where = case.shown_at or at
    table = (
        await api.call("GET", where if where.startswith("/") else f"{at}/{where}", accept=TABLE)
    ).obj()
    (row,) = table["rows"]
    columns = [
        [c["name"], c["type"], c["format"], c["priority"]] for c in table["columnDefinitions"]
    ]
    return {"columns": columns, "cells": [_masked(cell) for cell in row["cells"]]}


def _merged(status: Obj, new: Obj) -> Obj:
    conditions = [*(status.get("conditions") or []), *(new.get("conditions") or [])]
    return {**status, **new, **({"conditions": conditions} if conditions else {})}


def _masked(cell: object) -> object:
    """Return a cell without what depends on the clock, or on who asks."""
    if not isinstance(cell, str):
        return cell
    if re.fullmatch(r"(\d+[smhdy])+", cell) and cell not in ("10m", "24h"):
        return "AGE"
    return "TIME" if re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", cell) else cell


async def show_all(api: Api) -> dict[str, Shown]:
    """Return how the server shows each case, made in order: later ones need earlier ones."""
    return {name: await show(api, case) for name, case in CASES.items()}


async def _record(kubeconfig: Path) -> None:
    api = Api.from_kubeconfig(kubeconfig)
    found = await show_all(api)
    await api.close()
    lines = (f"{json.dumps(name)}: {json.dumps(shown)}" for name, shown in found.items())
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    asyncio.run(_record(Path(sys.argv[1])))
