"""DELETE of one object and of a whole selection: options in, Status or objects out.

Mirrors k8s.io/apiserver/pkg/endpoints/handlers/delete.go and the collection part of
pkg/registry/generic/registry/store.go. What a deletion does is the engine's.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from hub.http.listing import answer_page, read_page, wait_for
from hub.meta import Obj
from hub.meta.causes import invalid_value, not_supported
from hub.meta.errors import ApiError, Cause, bad_request, invalid, method_not_allowed
from hub.registry.call import Call, Deleted, Preconditions
from hub.registry.deletion import Policy
from hub.registry.engine import Engine
from hub.registry.kind import Served
from hub.registry.options import is_true, parse_list_options
from hub.registry.shape import Shape, conform
from hub.store import Key, decode_key

if TYPE_CHECKING:
    from hub.http.verbs import Ask

_POLICIES = ("Foreground", "Background", "Orphan")
_AT_ONCE = 64
"""Deletions of a collection under way at a time: their commits share an fsync."""

_OPTIONS: dict[str, Shape] = {
    "preconditions": {"uid": str, "resourceVersion": str},
    "dryRun": [str],
    "propagationPolicy": str,
    "orphanDependents": bool,
    "gracePeriodSeconds": int,
}


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete.

    `is_legacy_cascade`: ``orphanDependents: false`` was asked for, which is answered with 202 while
    finalizers hold the object.
    """

    preconditions: Preconditions
    policy: Policy
    call: Call
    is_legacy_cascade: bool = False


def read_options(ask: "Ask") -> DeleteOptions:
    """Return the options in the body or, when there is none, in the query.

    :raises ApiError: 400, 415 or 422
    """
    found = fitting(ask.body(), _OPTIONS, "DeleteOptions") if ask.request.body else _queried(ask)
    policy, orphans = found.get("propagationPolicy"), found.get("orphanDependents")
    call = ask.call(found.get("dryRun") or ())
    causes = _problems(found)
    if causes:
        raise invalid("meta.k8s.io", "DeleteOptions", "", causes)
    if orphans is not None:
        policy = "Orphan" if orphans else "Background"
    wanted = found.get("preconditions") or {}
    return DeleteOptions(
        Preconditions(wanted.get("uid") or "", wanted.get("resourceVersion") or ""),
        cast("Policy", policy or ""),
        call,
        is_legacy_cascade=orphans is False,
    )


def _queried(ask: "Ask") -> Obj:
    query = ask.info.query
    found: Obj = {}
    if query.get("propagationPolicy"):
        found["propagationPolicy"] = query["propagationPolicy"]
    if query.get("orphanDependents"):
        found["orphanDependents"] = is_true(query["orphanDependents"])
    return found


def _problems(options: Obj) -> list[Cause]:
    policy = options.get("propagationPolicy")
    causes = []
    if policy is not None and options.get("orphanDependents") is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(invalid_value("propagationPolicy", policy, text))
    if policy is not None and policy not in _POLICIES:
        causes.append(not_supported("propagationPolicy", policy, [*_POLICIES, "nil"]))
    return causes


async def delete_one(engine: Engine, ask: "Ask") -> None:
    """Answer DELETE of one object."""
    renderer = ask.renderer()
    options = read_options(ask)
    deleted = await _delete(engine, ask, ask.info.name, ask.namespace, options)
    if deleted.is_gone and not ask.served.kind.returns_deleted:
        ask.reply.document(200, _success(ask.served, deleted.obj))
        return
    status = 202 if options.is_legacy_cascade and not deleted.is_gone else 200
    ask.reply.send(status, renderer.one(deleted.obj) + b"\n")


async def delete_selected(engine: Engine, ask: "Ask") -> None:
    """Answer DELETE of a collection: everything that list options select, as one list.

    The list shows the objects as they were. The first refusal is the answer, whatever has been
    deleted by then; an object that somebody else deletes meanwhile is no refusal.
    """
    kind = ask.served.kind
    if kind.is_namespaced and not ask.namespace:
        raise method_not_allowed(ask.served.resource, "deletecollection")
    renderer = ask.renderer()
    deletion = read_options(ask)
    options = parse_list_options(ask.info.query, ask.served, is_watch=False)
    await wait_for(engine, options.revision)
    entries, meta = read_page(engine, ask.served, ask.namespace, options)
    if kind.is_volatile:
        entries = entries.held()
    await _delete_all(engine, ask, [entry.key for entry in entries], deletion)
    await answer_page(engine, renderer, entries, meta, ask.reply)


async def _delete_all(
    engine: Engine, ask: "Ask", keys: Sequence[Key], options: DeleteOptions
) -> None:
    for start in range(0, len(keys), _AT_ONCE):
        places = (decode_key(key) for key in keys[start : start + _AT_ONCE])
        outcomes = await asyncio.gather(
            *(_delete(engine, ask, name, namespace, options) for _, namespace, name in places),
            return_exceptions=True,
        )
        for outcome in outcomes:
            is_race = isinstance(outcome, ApiError) and outcome.code == 404
            if isinstance(outcome, BaseException) and not is_race:
                raise outcome


async def _delete(
    engine: Engine, ask: "Ask", name: str, namespace: str, options: DeleteOptions
) -> Deleted:
    return await engine.delete(
        ask.served,
        name,
        namespace=namespace,
        preconditions=options.preconditions,
        policy=options.policy,
        call=options.call,
    )


def fitting(obj: Obj, shape: dict[str, Shape], kind: str) -> Obj:
    """Return an object that is no served kind (options, TokenRequest), its field types checked.

    :raises ApiError: 400
    """
    if obj.get("kind") not in (None, "", kind):
        raise bad_request(f"the kind in the data ({obj['kind']}) must be {kind}")
    found, misfits = conform(obj, shape)
    if misfits:
        first = misfits[0]
        raise bad_request(
            f"json: cannot unmarshal {first.got} into Go struct field {kind}.{first.path} "
            f"of type {first.wanted}"
        )
    return found


def _success(served: Served, obj: Obj) -> Obj:
    meta = obj["metadata"]
    details: Obj = {"name": meta["name"]}
    if served.view.group:
        details["group"] = served.view.group
    details |= {"kind": served.kind.plural, "uid": meta["uid"]}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
