"""One handler a verb: decode what came in, ask the engine, write what comes out.

Owns request bodies, query options of writes, and the answers' status codes
(k8s.io/apiserver/pkg/endpoints/handlers).
"""

from typing import TYPE_CHECKING

from hub.auth.tokens import ObjectRef
from hub.auth.user import Attributes, User
from hub.http.api import Request
from hub.http.info import RequestInfo
from hub.http.listing import answer_list
from hub.http.negotiate import choose_form
from hub.http.render import Renderer
from hub.http.reply import Reply
from hub.http.reviews import review_access, review_self
from hub.meta import Obj
from hub.meta.body import decode_body
from hub.meta.codec.json import decode
from hub.meta.errors import (
    Cause,
    bad_request,
    forbidden,
    invalid,
    method_not_allowed,
    not_found,
    path_not_found,
    unsupported_media_type,
)
from hub.meta.timestamp import format_time
from hub.registry.builtin import SERVICE_ACCOUNT
from hub.registry.engine import Call, Preconditions
from hub.registry.kind import Served
from hub.registry.options import parse_list_options
from hub.registry.requests import CSR

if TYPE_CHECKING:
    from hub.http.app import Services

_MERGE = "application/merge-patch+json"
_READS = ("get", "list", "watch")
_MIN_TOKEN_S, _DEFAULT_TOKEN_S, _MAX_TOKEN_S = 600, 3600, 1 << 32


class Verbs:
    """Runs resource requests that are already authorised."""

    def __init__(self, services: "Services") -> None:
        self._services = services
        self._engine = services.engine
        self._run = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
        }

    async def run(self, info: RequestInfo, request: Request, user: User, reply: Reply) -> None:
        """Answer a resource request.

        :raises ApiError: whatever is wrong with it
        """
        served = self._services.catalog.find(info.group, info.version, info.resource)
        if served is None or (
            info.subresource and info.subresource not in served.kind.subresources
        ):
            raise path_not_found()
        kind = served.kind
        if kind.is_namespaced is False and info.namespace and kind.plural != "namespaces":
            raise path_not_found()
        if not info.subresource and info.verb not in kind.verbs:
            raise method_not_allowed(served.resource, info.verb)
        run = self._run.get(info.verb)
        if run is None:
            raise method_not_allowed(served.resource, info.verb)
        await run(served, info, request, user, reply)

    # ---------------------------------------------------------------- reading

    def _renderer(self, served: Served, info: RequestInfo, request: Request) -> Renderer:
        is_list = info.verb == "list"
        form = choose_form(request.headers.get("accept"), is_list=is_list)
        include = info.query.get("includeObject", "")
        return Renderer(served, form, include, self._services.clock)

    async def _get(
        self, served: Served, info: RequestInfo, request: Request, _user: User, reply: Reply
    ) -> None:
        renderer = self._renderer(served, info, request)
        namespace = info.namespace if served.kind.is_namespaced else ""
        stored = self._engine.find(served.kind, info.name, namespace)
        if stored is None:
            raise not_found(served.resource, info.name)
        reply.send(200, renderer.document(self._engine.store.read(stored)) + b"\n")

    async def _list(
        self, served: Served, info: RequestInfo, request: Request, _user: User, reply: Reply
    ) -> None:
        options = parse_list_options(info.query, served, is_watch=False)
        renderer = self._renderer(served, info, request)
        await answer_list(self._engine, renderer, info.namespace, options, reply)

    async def _watch(
        self, served: Served, info: RequestInfo, request: Request, _user: User, reply: Reply
    ) -> None:
        options = parse_list_options(info.query, served, is_watch=True)
        renderer = self._renderer(served, info, request)
        await self._services.watching.answer(renderer, info.namespace, options, reply)

    # ---------------------------------------------------------------- writing

    @staticmethod
    def _body(request: Request) -> Obj:
        content_type = request.headers.get("content-type")
        return decode_body(content_type, request.body, accepts_protobuf=True)

    @staticmethod
    def _call(info: RequestInfo, user: User) -> Call:
        dry_run = info.query.get("dryRun", "")
        if dry_run not in ("", "All"):
            message = f'Unsupported value: "{dry_run}": supported values: "All"'
            cause = Cause("FieldValueNotSupported", message, "dryRun")
            raise invalid("meta.k8s.io", "CreateOptions", "", [cause])
        return Call(user, is_dry_run=dry_run == "All")

    def _answer(
        self,
        status: int,
        served: Served,
        obj: Obj,
        info: RequestInfo,
        request: Request,
        reply: Reply,
    ) -> None:
        renderer = self._renderer(served, info, request)
        reply.send(status, renderer.one(obj) + b"\n")

    async def _create(
        self, served: Served, info: RequestInfo, request: Request, user: User, reply: Reply
    ) -> None:
        body = self._body(request)
        if info.subresource == "token":
            self._create_token(served, info, body, reply)
            return
        if info.name:
            raise method_not_allowed(served.resource, "create")
        if served.kind.is_virtual:
            reply.document(201, self._review(served, body, user))
            return
        if served.kind.is_namespaced and not info.namespace:
            raise bad_request("an empty namespace may not be set during creation")
        call = self._call(info, user)
        obj = await self._engine.create(served, body, namespace=info.namespace, call=call)
        self._answer(201, served, obj, info, request, reply)

    def _review(self, served: Served, body: Obj, user: User) -> Obj:
        typed = {"kind": served.kind.kind, "apiVersion": served.view.api_version, **body}
        if served.kind.kind == "SelfSubjectReview":
            return review_self(typed, user)
        if served.kind.kind == "SelfSubjectRulesReview":
            namespace = str((body.get("spec") or {}).get("namespace") or "")
            rules = self._services.authorizer.rules_for(user, namespace)
            return {**typed, "metadata": {}, "status": rules.review_status()}
        return review_access(typed, user, self._services.authorizer)

    async def _update(
        self, served: Served, info: RequestInfo, request: Request, user: User, reply: Reply
    ) -> None:
        body = self._body(request)
        self._check_signer(served, info, user)
        namespace = info.namespace if served.kind.is_namespaced else ""
        obj = await self._engine.update(
            served,
            body,
            name=info.name,
            namespace=namespace,
            subresource=info.subresource,
            call=self._call(info, user),
        )
        self._answer(200, served, obj, info, request, reply)

    async def _patch(
        self, served: Served, info: RequestInfo, request: Request, user: User, reply: Reply
    ) -> None:
        content_type = (request.headers.get("content-type") or "").partition(";")[0].strip()
        if content_type != _MERGE:
            raise unsupported_media_type([_MERGE])
        self._check_signer(served, info, user)
        obj = await self._engine.patch(
            served,
            decode(request.body),
            name=info.name,
            namespace=info.namespace if served.kind.is_namespaced else "",
            subresource=info.subresource,
            call=self._call(info, user),
        )
        self._answer(200, served, obj, info, request, reply)

    async def _delete(
        self, served: Served, info: RequestInfo, request: Request, user: User, reply: Reply
    ) -> None:
        options = self._body(request) if request.body else {}
        wanted = options.get("preconditions") or {}
        call = self._call(info, user)
        if options.get("dryRun") == ["All"]:
            call = Call(user, is_dry_run=True)
        deleted = await self._engine.delete(
            served,
            info.name,
            namespace=info.namespace if served.kind.is_namespaced else "",
            preconditions=Preconditions(
                str(wanted.get("uid") or ""), str(wanted.get("resourceVersion") or "")
            ),
            call=call,
        )
        if not deleted.is_gone:
            self._answer(200, served, deleted.obj, info, request, reply)
            return
        reply.document(200, _deleted_status(served, deleted.obj))

    # ---------------------------------------------------------------- special subresources

    def _check_signer(self, served: Served, info: RequestInfo, user: User) -> None:
        """Ask for the right on the signer that approval and signing need.

        Mirrors kube's CertificateApproval and CertificateSigning admission.
        """
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

    def _create_token(self, served: Served, info: RequestInfo, body: Obj, reply: Reply) -> None:
        account = self._engine.get(SERVICE_ACCOUNT, info.name, info.namespace)
        spec = body.get("spec") or {}
        seconds = spec.get("expirationSeconds") or _DEFAULT_TOKEN_S
        if not _MIN_TOKEN_S <= seconds <= _MAX_TOKEN_S:
            limit = "less than 10 minutes" if seconds < _MIN_TOKEN_S else "larger than 2^32 seconds"
            message = f"Invalid value: {seconds}: may not specify a duration {limit}"
            cause = Cause("FieldValueInvalid", message, "spec.expirationSeconds")
            raise invalid("authentication.k8s.io", "TokenRequest", info.name, [cause])
        if spec.get("boundObjectRef"):
            raise bad_request("spec.boundObjectRef: this hub binds tokens to ServiceAccounts only")
        meta = account["metadata"]
        ref = ObjectRef("ServiceAccount", info.namespace, info.name, str(meta["uid"]))
        now = self._services.clock.now()
        issued = self._services.tokens.issue(
            ref, now=now, expiration_s=int(seconds), audiences=spec.get("audiences") or ()
        )
        reply.document(
            201,
            {
                "kind": "TokenRequest",
                "apiVersion": "authentication.k8s.io/v1",
                "metadata": {
                    "name": info.name,
                    "namespace": info.namespace,
                    "creationTimestamp": format_time(now),
                },
                "spec": {
                    "audiences": list(issued.audiences),
                    "expirationSeconds": int(seconds),
                    "boundObjectRef": None,
                },
                "status": {
                    "token": issued.token,
                    "expirationTimestamp": format_time(issued.expiry),
                },
            },
        )


def _deleted_status(served: Served, obj: Obj) -> Obj:
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
