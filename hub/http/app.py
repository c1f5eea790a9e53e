"""The API: from a request to the handler of its verb.

Owns the order of steps (authenticate, impersonate, route, authorise, decode, act) and the
translation of whatever goes wrong into a Status. What a verb does is the engine's; how objects look
is `hub.http.render`'s.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import structlog
from prometheus_client import CollectorRegistry

from hub.auth.audit import Entry, authentication_trouble
from hub.auth.authenticate import Authenticator
from hub.auth.impersonation import impersonate, is_impersonating
from hub.auth.rbac import Authorizer
from hub.auth.tokens import ServiceAccountTokens
from hub.auth.user import User
from hub.clock import Clock
from hub.fleet.ahead import RETRY_AFTER_S, Ahead, Look
from hub.fleet.differences import Asked, Differences
from hub.fleet.sightings import Sightings, is_agent
from hub.http.acting import Actions
from hub.http.api import Request, Responder
from hub.http.auditing import Auditor
from hub.http.coding import accepts_gzip
from hub.http.deadline import read_timeout, within
from hub.http.discovery import Discovery
from hub.http.durably import Durability
from hub.http.health import Health
from hub.http.info import RequestInfo, parse_request
from hub.http.metrics import RequestMetrics
from hub.http.openapi import OpenApi, SchemaOf
from hub.http.reply import Reply
from hub.http.swagger import Swagger
from hub.http.verbs import Verbs
from hub.http.watching import Watching
from hub.meta import Obj
from hub.meta.codec.json import encode
from hub.meta.errors import (
    ApiError,
    Resource,
    forbidden,
    internal_error,
    method_not_allowed,
    path_not_found,
    too_large,
    too_many_requests,
    unavailable,
)
from hub.registry.catalog import Catalog
from hub.registry.engine import Engine

_log = structlog.get_logger("hub.http")
MAX_BODY_BYTES = 3 * 1024 * 1024
MAX_UNDER_WAY = 2000
"""Requests for resources at one time, watches left out; administrators are never turned away."""
SIGHTINGS_PATH = "/hublet/v1/agents/"
"""What was seen of the agents of a cluster; for whoever may ``get`` it, as administrators may."""
_MASTERS = "system:masters"
_NO_BOUND = nullcontext()
_FOR_AN_HOUR = (("cache-control", "public, max-age=3600"),)  # what does not change while a hub runs


@dataclass(frozen=True, slots=True)
class Services:
    """What the API stands on."""

    engine: Engine
    catalog: Catalog
    own_groups: frozenset[str]
    """The API groups of the hub's own kinds: those of definitions come and go."""
    authenticator: Authenticator
    authorizer: Authorizer
    tokens: ServiceAccountTokens
    watching: Watching
    health: Health
    auditor: Auditor | None
    metrics: CollectorRegistry
    sightings: Sightings
    ahead: Ahead
    differences: Differences
    clock: Clock
    version: Obj
    url: str
    schema_of: SchemaOf
    actions: Actions
    durability: Durability
    refusal: Callable[[RequestInfo], str]
    """Why the hub will not take this request now ("" = it will): stopping, fenced, or not sure of
    its state.
    """


class Api:
    """The handler of every request."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._discovery = Discovery(services.catalog)
        release = str(services.version["gitVersion"])
        self._openapi = OpenApi(services.catalog, services.schema_of, release=release)
        self._swagger = Swagger(self._openapi, release=release)
        self._verbs = Verbs(services)
        self._version = encode(services.version) + b"\n"
        self._under_way = 0
        self._metrics = RequestMetrics(
            services.metrics, services.own_groups, under_way=lambda: self._under_way
        )

    async def handle(self, request: Request, responder: Responder) -> None:
        """Answer one request."""
        clock = self._services.clock
        began_s = clock.monotonic_s()
        audit_id = request.headers.get("audit-id") or clock.uid()
        entry = None
        if self._services.auditor is not None:
            entry = self._services.auditor.begin(request, audit_id)
            responder = self._services.auditor.follow(entry, responder)
        is_gzip = accepts_gzip(request.headers.get("accept-encoding"))
        reply = Reply(responder, audit_id, accepts_gzip=is_gzip)
        try:
            await self._serve(request, reply, entry)
        except ApiError as error:
            reply.fail(error)
        except Exception as error:  # noqa: BLE001  the top of a request: logged with its traceback
            _log.exception("request_failed", audit_id=audit_id, target=request.target[:200])
            reply.fail(internal_error(f"{type(error).__name__}; see the hub's log for {audit_id}"))
        self._metrics.answered(reply.info, reply.status, clock.monotonic_s() - began_s)
        if request.peer is not None and is_agent(request.peer.common_name):
            self._sight(request, reply)

    def _sight(self, request: Request, reply: Reply) -> None:
        """Note what a cluster's agent asked, and what it was told."""
        peer, info = request.peer, reply.info
        if peer is None:
            return
        what = f"{info.verb} {info.resource or info.path}" if info else request.method
        self._services.sightings.note(
            peer.common_name,
            what=what,
            code=reply.status,
            user_agent=request.headers.get("user-agent") or "",
            certificate_ends_unix_s=peer.not_after_unix_s,
        )
        if info is not None and reply.status >= 400:
            self._services.differences.note(
                Asked(
                    user=peer.common_name,
                    verb=info.verb,
                    group=info.group,
                    resource=info.resource,
                    namespace=info.namespace,
                    name=info.name,
                    code=reply.status,
                )
            )

    async def _serve(self, request: Request, reply: Reply, entry: Entry | None) -> None:
        services = self._services
        user = self._identify(request, entry)
        info = reply.info = parse_request(request.method, request.target)
        self._authorize(user, info, entry)
        if request.is_too_large or len(request.body) > MAX_BODY_BYTES:
            raise too_large(f"Request entity too large: limit is {MAX_BODY_BYTES}")
        if not info.is_resource:
            if timeout := info.query.get("timeout"):
                read_timeout(timeout)  # nothing here takes as long as any could be
            self._plain(info, request, reply)
            return
        refusal = services.refusal(info)
        if refusal:
            raise unavailable(refusal)
        if info.verb in ("list", "watch"):
            self._hold_back(user, info)
        if info.verb == "watch":
            await self._verbs.run(info, request, user, reply)
        else:
            await self._bounded(info, request, user, reply)

    def _hold_back(self, user: User, info: RequestInfo) -> None:
        """Refuse for now what would make an agent remove what a restored state does not know."""
        revision = info.query.get("resourceVersion", "")
        look = Look(user.name, info.group, info.resource, info.namespace, revision)
        if why := self._services.ahead.refusal(look):
            raise unavailable(why, retry_after_s=RETRY_AFTER_S)

    async def _bounded(self, info: RequestInfo, request: Request, user: User, reply: Reply) -> None:
        """Run what must come to an end: not too many at once, and no longer than was asked.

        Who waits for the bucket then is not under way any more: a bucket that is away must not keep
        others from the hub.
        """
        if self._under_way >= MAX_UNDER_WAY and _MASTERS not in user.groups:
            raise too_many_requests()
        self._under_way += 1
        try:
            timeout = info.query.get("timeout")
            async with within(timeout) if timeout else _NO_BOUND:
                held = await self._verbs.run(info, request, user, reply)
        finally:
            self._under_way -= 1
        if held is not None:
            await held.give()

    def _identify(self, request: Request, entry: Entry | None) -> User:
        """Return as whom the request is to be treated; note who sent it."""
        services, authorization = self._services, request.headers.get("authorization")
        try:
            user = services.authenticator.authenticate(
                peer=request.peer, authorization=authorization, now=services.clock.now()
            )
        except ApiError:
            self._metrics.not_authenticated("token" if authorization else "certificate")
            if entry is not None:
                has_certificate = request.peer is not None
                entry.trouble = authentication_trouble(
                    authorization, has_certificate=has_certificate
                )
            raise
        if entry is not None:
            entry.user = user
        if is_impersonating(request.headers):
            user = impersonate(user, request.headers, services.authorizer)
            if entry is not None:
                entry.impersonated = user
        return user

    def _authorize(self, user: User, info: RequestInfo, entry: Entry | None) -> None:
        asked = info.attributes()
        decision = self._services.authorizer.authorize(user, asked)
        if entry is not None:
            reason = decision.reason if decision.allowed else decision.trouble
            entry.decided(asked, verb=info.verb, allowed=decision.allowed, reason=reason)
        if decision.allowed:
            return
        resource = Resource(info.group, info.resource) if info.is_resource else Resource("", "")
        raise forbidden(resource, asked.name, decision.reason)

    def _plain(self, info: RequestInfo, request: Request, reply: Reply) -> None:
        """Answer what is no resource: discovery, version, health, keys, metrics."""
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed(Resource("", info.path), request.method.lower())
        if self._discover(info, request, reply):
            return
        path = info.path.rstrip("/")  # the Python client asks for /version/
        if path == "/version":
            reply.send(200, self._version)
        elif path == "/openid/v1/jwks":
            body = encode(self._services.tokens.keys())
            reply.send(200, body, "application/jwk-set+json", extra=_FOR_AN_HOUR)
        elif info.path == "/.well-known/openid-configuration":
            about = self._services.tokens.openid_configuration(self._services.url)
            reply.send(200, encode(about), extra=_FOR_AN_HOUR)
        elif info.path.startswith(SIGHTINGS_PATH):
            self._tell_sightings(info.path.removeprefix(SIGHTINGS_PATH), reply)
        elif not self._services.health.answer(info, reply):
            raise path_not_found()

    def _tell_sightings(self, cluster: str, reply: Reply) -> None:
        """Tell what was seen of one cluster; without a name, which ones the hub does not know."""
        services = self._services
        if cluster:
            seen = services.sightings.of(cluster) | services.differences.of(cluster)
            reply.document(200, seen)
        else:
            reply.document(200, {"unknown": services.differences.unknown_clusters()})

    def _discover(self, info: RequestInfo, request: Request, reply: Reply) -> bool:
        document = self._discovery.find(info.path, request.headers.get("accept"))
        document = document or self._openapi.find(info.path, info.query.get("hash", ""))
        document = document or self._swagger.find(info.path, request.headers.get("accept"))
        if document is None:
            return False
        extra: list[tuple[str, str]] = []
        if document.etag:
            extra = [("etag", document.etag), ("cache-control", document.cache), ("vary", "accept")]
        if document.etag and request.headers.get("if-none-match") == document.etag:
            reply.send(304, b"", "", extra=extra)
        else:
            reply.send(200, document.body, document.content_type, extra=extra)
        return True
