"""One handler a verb: decode what came in, ask the engine, write what comes out.

Owns request bodies, query options of writes, and the answers' status codes
(k8s.io/apiserver/pkg/endpoints/handlers).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hub.auth.user import Attributes, User
from hub.clock import Clock
from hub.http.acting import act
from hub.http.api import Request
from hub.http.deleting import delete_one, delete_selected
from hub.http.durably import WRITES, Held
from hub.http.info import RequestInfo
from hub.http.listing import answer_list, wait_for
from hub.http.negotiate import JSON, Form, choose_form
from hub.http.render import Renderer
from hub.http.reply import Reply
from hub.http.reviews import Reviewer
from hub.http.scaling import get_scale, set_scale
from hub.http.token import create_token
from hub.meta import Obj
from hub.meta.body import decode_body
from hub.meta.causes import not_supported
from hub.meta.duplicates import patch_faults
from hub.meta.errors import (
    bad_request,
    forbidden,
    invalid,
    method_not_allowed,
    not_acceptable,
    not_found,
    path_not_found,
)
from hub.meta.patch import JSON_PATCH, Patch, find_schema, parse_patch
from hub.meta.protobuf.tables import find_message
from hub.registry import checks
from hub.registry.call import Call, Receipt
from hub.registry.kind import SUBRESOURCE_VERBS, Kind, Served
from hub.registry.options import parse_list_options, parse_revision
from hub.registry.requests import CSR
from hub.registry.strictness import IGNORE, Strictness, parse_directive

if TYPE_CHECKING:
    from hub.http.app import Services

_OPTIONS_KINDS = {
    "create": "CreateOptions",
    "update": "UpdateOptions",
    "patch": "PatchOptions",
    "delete": "DeleteOptions",
    "deletecollection": "DeleteOptions",
}


@dataclass(frozen=True, slots=True)
class Ask:
    """An authorised request for a served kind, and where its answer goes."""

    served: Served
    info: RequestInfo
    request: Request
    user: User
    reply: Reply
    clock: Clock
    receipt: Receipt | None = None
    """For a write that is to be durable."""

    @property
    def namespace(self) -> str:
        """Return the namespace of the objects asked for, "" for all or for cluster-scoped kinds."""
        return self.info.namespace if self.served.kind.is_namespaced else ""

    def renderer(self) -> Renderer:
        """Return how the answer is to be written.

        To be asked for before anything is written to the store.

        :raises ApiError: 406
        """
        is_list = self.info.verb in ("list", "deletecollection")
        form = choose_form(self.request.headers.get("accept"), is_list=is_list)
        if self.served.kind.is_virtual and form is not Form.OBJECT:
            raise not_acceptable([JSON])
        return Renderer(self.served, form, self.info.query.get("includeObject", ""), self.clock)

    def body(self, *, accepts_protobuf: bool = True) -> Obj:
        """Return the decoded body, which may be of any kind.

        :raises ApiError: 400 or 415
        """
        content_type = self.request.headers.get("content-type")
        return decode_body(content_type, self.request.body, accepts_protobuf=accepts_protobuf)

    def fields(self, faults: Sequence[str] = ()) -> Strictness:
        """Return how strictly fields are read, with what was found in the body so far.

        :raises ApiError: 422
        """
        text = self.info.query.get("fieldValidation", "")
        directive = parse_directive(text, _OPTIONS_KINDS[self.info.verb])
        return Strictness(directive, faults, self.reply.warn)

    def sent(self) -> tuple[Obj, Strictness]:
        """Return the decoded body, an object of the kind served, and how its fields are read.

        :raises ApiError: 400, 415 or 422
        """
        fields = self.fields()
        if fields.directive == IGNORE:
            return self.body(accepts_protobuf=not self.served.kind.is_custom), fields
        kind, view = self.served.kind, self.served.view
        faults: list[str] = []
        obj = decode_body(
            self.request.headers.get("content-type"),
            self.request.body,
            accepts_protobuf=not kind.is_custom,
            faults=faults,
            message=None if view.prune else find_message(view.api_version, kind.kind),
        )
        fields.faults = faults
        return obj, fields

    def patch(self) -> tuple[Patch, Strictness]:
        """Return the patch in the body, and how its fields are read.

        :raises ApiError: 400, 415 or 422
        """
        kind, view = self.served.kind, self.served.view
        fields, body = self.fields(), self.request.body
        schema = None if kind.is_custom else find_schema(view.api_version, kind.kind)
        media_type = self.request.headers.get("content-type")
        patch = parse_patch(media_type, body, schema)
        if fields.directive != IGNORE:
            is_json_patch = (media_type or "").startswith(JSON_PATCH)
            fields.faults = patch_faults(body, is_json_patch=is_json_patch)
        return patch, fields

    def call(self, dry_run: Sequence[str] = (), fields: Strictness | None = None) -> Call:
        """Return who calls and whether it is a dry run, by query or by the body's `dryRun`.

        :raises ApiError: 422
        """
        asked = list(dry_run) or [v for v in (self.info.query.get("dryRun"),) if v]
        if any(value != "All" for value in asked):
            cause = not_supported("dryRun", asked, ["All"])
            raise invalid("meta.k8s.io", _OPTIONS_KINDS[self.info.verb], "", [cause])
        return Call(
            self.user,
            is_dry_run=bool(asked),
            fields=fields or Strictness(),
            receipt=self.receipt,
        )


class Verbs:
    """Runs resource requests that are already authorised."""

    def __init__(self, services: "Services") -> None:
        self._services = services
        self._engine = services.engine
        self._reviewer = Reviewer(services.authenticator, services.authorizer)
        self._run: dict[str, Callable[[Ask], Awaitable[None]]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": partial(delete_one, self._engine),
            "deletecollection": partial(delete_selected, self._engine),
        }

    async def run(
        self, info: RequestInfo, request: Request, user: User, reply: Reply
    ) -> Held | None:
        """Answer a resource request; return the answer of a write that is to be durable first.

        :raises ApiError: whatever is wrong with it
        """
        served = self._services.catalog.find(info.group, info.version, info.resource)
        if served is None or not _has_path(served.kind, info):
            raise path_not_found()
        subresource = info.subresource
        verbs = SUBRESOURCE_VERBS[subresource] if subresource else served.kind.verbs
        run = self._run.get(info.verb)
        if run is None or info.verb not in verbs:
            raise method_not_allowed(
                served.resource, info.verb, "" if subresource else served.kind.keeper
            )
        if served.view.warning:
            reply.warn(served.view.warning)
        held = None
        if info.verb in WRITES:
            held = self._services.durability.hold(info, served.kind, request, reply)
        if held is None:
            ask = Ask(served, info, request, user, reply, self._services.clock)
        else:
            ask = Ask(served, info, request, user, held, self._services.clock, held.receipt)
        await (self._scale(ask) if subresource == "scale" else run(ask))
        return held

    # ---------------------------------------------------------------- reading

    async def _get(self, ask: Ask) -> None:
        renderer = ask.renderer()
        await wait_for(self._engine, parse_revision(ask.info.query.get("resourceVersion", "")))
        stored = self._engine.find(ask.served.kind, ask.info.name, ask.namespace)
        if stored is None:
            raise not_found(ask.served.resource, ask.info.name)
        ask.reply.send(200, renderer.document(self._engine.store.read(stored)) + b"\n")

    async def _list(self, ask: Ask) -> None:
        options = parse_list_options(ask.info.query, ask.served, is_watch=False)
        await answer_list(self._engine, ask.renderer(), ask.namespace, options, ask.reply)

    async def _watch(self, ask: Ask) -> None:
        # a name stands in the path of the old /watch/ form; it was authorised, so it must bind
        options = parse_list_options(
            ask.info.query, ask.served, is_watch=True, path_name=ask.info.name
        )
        watching = self._services.watching
        await watching.answer(ask.renderer(), ask.namespace, options, ask.reply)

    # ---------------------------------------------------------------- writing

    async def _create(self, ask: Ask) -> None:
        served, info = ask.served, ask.info
        if info.subresource == "token":
            create_token(self._engine, self._services.tokens, ask)
            return
        if (action := self._services.actions.get(info.subresource)) is not None:
            act(self._engine, action, ask)
            return
        if info.name:
            raise method_not_allowed(served.resource, "create")
        renderer = ask.renderer()
        body, fields = ask.sent()
        if served.kind.is_virtual:
            asked = checks.incoming(served, fields.read(served, body), ask.namespace)
            ask.reply.document(201, self._reviewer.answer(asked, ask.user, ask.clock.now()))
            return
        if served.kind.is_namespaced and not info.namespace:
            raise bad_request("an empty namespace may not be set during creation")
        call = ask.call(fields=fields)
        obj = await self._engine.create(served, body, namespace=info.namespace, call=call)
        ask.reply.send(201, renderer.one(obj) + b"\n")

    async def _update(self, ask: Ask) -> None:
        renderer = ask.renderer()
        body, fields = ask.sent()
        self._check_signer(ask)
        obj = await self._engine.update(
            ask.served,
            body,
            name=ask.info.name,
            namespace=ask.namespace,
            subresource=ask.info.subresource,
            call=ask.call(fields=fields),
        )
        ask.reply.send(200, renderer.one(obj) + b"\n")

    async def _patch(self, ask: Ask) -> None:
        renderer = ask.renderer()
        patch, fields = ask.patch()
        self._check_signer(ask)
        obj = await self._engine.patch(
            ask.served,
            patch,
            name=ask.info.name,
            namespace=ask.namespace,
            subresource=ask.info.subresource,
            call=ask.call(fields=fields),
        )
        ask.reply.send(200, renderer.one(obj) + b"\n")

    # ---------------------------------------------------------------- special subresources

    async def _scale(self, ask: Ask) -> None:
        if ask.info.verb == "get":
            get_scale(self._engine, ask)
        else:
            await set_scale(self._engine, ask)

    def _check_signer(self, ask: Ask) -> None:
        """Ask for the right on the signer that approval and signing need.

        Mirrors kube's CertificateApproval and CertificateSigning admission.
        """
        served, info, user = ask.served, ask.info, ask.user
        verb = {"approval": "approve", "status": "sign"}.get(info.subresource)
        if served.kind is not CSR or verb is None:
            return
        request = self._engine.get(CSR, info.name)
        signer = str((request.get("spec") or {}).get("signerName") or "")
        domain = signer.partition("/")[0]
        asked = (
            Attributes(verb, "certificates.k8s.io", "*", "signers", name=name)
            for name in (signer, f"{domain}/*")
        )
        if not any(self._services.authorizer.authorize(user, a).allowed for a in asked):
            detail = f'user not permitted to {verb} requests with signerName "{signer}"'
            raise forbidden(served.resource, info.name, detail)


def _has_path(kind: Kind, info: RequestInfo) -> bool:
    """Whether a kind has what the path names: the subresource, and a namespace if it needs one."""
    if info.subresource and info.subresource not in kind.subresources:
        return False
    if not kind.is_namespaced:
        return not info.namespace or kind.plural == "namespaces"
    return bool(info.namespace) or not (info.name or kind.is_virtual)
