"""``serviceaccounts/NAME/token``: a token for the account, if asked bound to a Secret as well.

Mirrors k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage/token.go. Of the objects that a
token may be bound to, this hub has Secrets; Pods and Nodes are "not found", as they always are.
"""

from typing import TYPE_CHECKING

from hub.auth.tokens import ObjectRef, ServiceAccountTokens
from hub.http.deleting import fitting
from hub.http.negotiate import JSON, Form, choose_form
from hub.meta import Obj
from hub.meta.causes import invalid_value
from hub.meta.errors import (
    Resource,
    bad_request,
    conflict,
    invalid,
    not_acceptable,
    not_found,
)
from hub.meta.timestamp import format_time
from hub.registry.builtin import SECRET, SERVICE_ACCOUNT
from hub.registry.engine import Engine
from hub.registry.shape import Shape

if TYPE_CHECKING:
    from hub.http.verbs import Ask

_GROUP, _KIND = "authentication.k8s.io", "TokenRequest"
_MIN_S, _DEFAULT_S, _MAX_S = 600, 3600, 1 << 32
_SHAPE: dict[str, Shape] = {
    "metadata": {"name": str, "namespace": str},
    "spec": {
        "expirationSeconds": int,
        "audiences": [str],
        "boundObjectRef": {"kind": str, "apiVersion": str, "name": str, "uid": str},
    },
}
_ABSENT = {"Pod": "pods", "Node": "nodes"}


def create_token(engine: Engine, tokens: ServiceAccountTokens, ask: "Ask") -> None:
    """Answer a POST.

    :raises ApiError: 400, 404, 406, 409 or 422
    """
    info = ask.info
    if choose_form(ask.request.headers.get("accept"), is_list=False) is not Form.OBJECT:
        raise not_acceptable([JSON])
    sent = fitting(ask.body(), _SHAPE, _KIND)
    spec: Obj = sent.get("spec") or {}
    _check_place(sent.get("metadata") or {}, info.name, info.namespace)
    meta = engine.get(SERVICE_ACCOUNT, info.name, info.namespace)["metadata"]
    seconds = _seconds(spec)
    bound = _bound(engine, spec.get("boundObjectRef"), info.namespace)
    account = ObjectRef("ServiceAccount", info.namespace, info.name, str(meta["uid"]))
    now, audiences = ask.clock.now(), spec.get("audiences") or ()
    issued = tokens.issue(account, now=now, expiration_s=seconds, audiences=audiences, bound=bound)
    answer: Obj = {
        "kind": _KIND,
        "apiVersion": f"{_GROUP}/v1",
        "metadata": {
            "name": info.name,
            "namespace": info.namespace,
            "uid": meta["uid"],
            "creationTimestamp": format_time(now),
        },
        "spec": {
            "audiences": list(issued.audiences),
            "expirationSeconds": seconds,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {
            "token": issued.token,
            "expirationTimestamp": format_time(issued.expiry),
        },
    }
    ask.reply.document(201, answer)


def _check_place(meta: Obj, name: str, namespace: str) -> None:
    if meta.get("name") not in (None, "", name):
        text = "must match the service account name if specified"
        cause = invalid_value("metadata.name", meta["name"], text)
        raise invalid(_GROUP, _KIND, name, [cause])
    if meta.get("namespace") not in (None, "", namespace):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _seconds(spec: Obj) -> int:
    seconds = int(spec.get("expirationSeconds", _DEFAULT_S))  # zero is a value, as in kube
    if not _MIN_S <= seconds <= _MAX_S:
        limit = "less than 10 minutes" if seconds < _MIN_S else "larger than 2^32 seconds"
        text = f"may not specify a duration {limit}"
        # without the name, which kube has not filled in by then
        raise invalid(_GROUP, _KIND, "", [invalid_value("spec.expirationSeconds", seconds, text)])
    return seconds


def _bound(engine: Engine, ref: Obj | None, namespace: str) -> ObjectRef | None:
    """Return the object that the token shall end with, None when none is asked for."""
    if ref is None:
        return None
    kind, name, wanted = (ref.get(key) or "" for key in ("kind", "name", "uid"))
    group, _, version = (ref.get("apiVersion") or "").rpartition("/")
    if not group and kind in _ABSENT:
        raise not_found(Resource("", _ABSENT[kind]), name)
    if group or kind != SECRET.kind:
        text = f"{group}/{version}, Kind={kind}"
        raise bad_request(f"cannot bind token to object of type {text}")
    uid = str(engine.get(SECRET, name, namespace)["metadata"]["uid"])
    if wanted and wanted != uid:
        raise conflict(
            Resource("", kind),
            name,
            f"the UID in the bound object reference ({wanted}) does not match the UID in record."
            " The object might have been deleted and then recreated",
        )
    return ObjectRef(kind, namespace, name, uid)
