"""One client's way to the hub: a connection with an identity, counted and judged.

Owns the connection (opened again after a loss, by the next request), the headers, the decoding of
answers and their verdict. Callers see three failures only: `HubAwayError` (no usable answer now,
try later), `RefusedError` (an answer that is not success) and `MalformedError`.
"""

import gzip
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from hub.http.client import Client, ConnectionLost, Poller
from hub.meta import Obj
from hub.meta.codec import json
from hub.meta.errors import ApiError
from hub.meta.protobuf import encode_envelope
from tools.simulate.frame import MalformedError
from tools.simulate.resource import JSON, MERGE_PATCH, PROTOBUF, Resource, Selection
from tools.simulate.tally import Tally
from tools.simulate.verdict import Verdict, is_final, judge

REQUEST_TIMEOUT_S = 30.0
NOTHING: frozenset[int] = frozenset()
UNTRUSTED = "certificate verify failed"
"""What a lost connection says when the hub's certificate is not from the CA that was given."""


class HubAwayError(Exception):
    """The hub did not answer, or said that it cannot now."""


class RefusedError(Exception):
    """The hub's answer was not success."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Route:
    """Where the hub is, and the poller all its connections share."""

    host: str
    port: int
    poller: Poller


@dataclass(frozen=True, slots=True)
class Place:
    """The object or collection a request is about."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def path(self) -> str:
        """Return the request path."""
        return self.resource.path(
            namespace=self.namespace, name=self.name, subresource=self.subresource
        )

    @property
    def label(self) -> str:
        """Return the name it is counted under."""
        plural = self.resource.plural
        return f"{plural}/{self.subresource}" if self.subresource else plural


class Session:
    """A connection with one identity: the client certificate in `tls`, or `token`."""

    def __init__(
        self, route: Route, tls: ssl.SSLContext, *, tally: Tally, agent: str, token: str = ""
    ) -> None:
        self.tally = tally
        self.is_early = True
        """Whether 403 and 404 are still what an agent expects: true until the owner clears it."""
        self.is_admin = False
        """Whether it may do everything, so that a 403 will not go away."""
        self._client = Client(route.host, route.port, tls, poller=route.poller)
        self._has_connected, self._is_lost = False, False
        self._fixed = [("user-agent", agent), ("accept-encoding", "gzip")]
        if token:
            self._fixed.append(("authorization", f"Bearer {token}"))

    @property
    def is_connected(self) -> bool:
        """Whether the hub has answered on this connection, and it is not known to be lost."""
        return self._has_connected and not self._is_lost

    # -- verbs

    async def get(self, place: Place, *, expected: frozenset[int] = NOTHING) -> Obj:
        """Return the object at `place`."""
        return await self._call("get", "GET", place, expected=expected)

    async def list(self, place: Place, query: str) -> Obj:
        """Return one page of the collection at `place`."""
        return await self._call("list", "GET", place, query=query)

    async def create(self, place: Place, obj: Obj, *, expected: frozenset[int] = NOTHING) -> Obj:
        """POST `obj`, as protobuf for the built-in kinds, and return what the hub made of it."""
        return await self._send("create", "POST", place, obj, expected=expected)

    async def update(self, place: Place, obj: Obj) -> Obj:
        """PUT `obj`."""
        return await self._send("update", "PUT", place, obj)

    async def patch(self, place: Place, patch: Obj, *, expected: frozenset[int] = NOTHING) -> Obj:
        """Send a JSON merge patch."""
        body = json.encode(patch)
        return await self._call(
            "patch", "PATCH", place, body=body, media=MERGE_PATCH, expected=expected
        )

    async def delete(self, place: Place, *, expected: frozenset[int] = NOTHING) -> Obj:
        """DELETE what is at `place`."""
        return await self._call("delete", "DELETE", place, expected=expected)

    @asynccontextmanager
    async def watch(self, selection: Selection, target: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch and give its chunks; leaving the block ends it."""
        resource, started_s = selection.resource, time.monotonic()
        headers = [*self._fixed, ("accept", resource.accept)]
        try:
            async with self._client.stream("GET", target, headers) as stream:
                self._reached()
                self.tally.answered(
                    "watch", resource.plural, stream.status, time.monotonic() - started_s
                )
                if stream.status != 200:
                    body = b"".join([chunk async for chunk in stream])
                    raise self._refusal("watch", resource.plural, stream.status, body, NOTHING)
                yield aiter(stream)
        except ConnectionLost as error:
            raise self._lost(str(error)) from error

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    # -- inner workings

    async def _send(
        self, verb: str, method: str, place: Place, obj: Obj, *, expected: frozenset[int] = NOTHING
    ) -> Obj:
        if place.resource.is_builtin:
            body, media = encode_envelope(obj), PROTOBUF
        else:
            body, media = json.encode(obj), JSON
        return await self._call(verb, method, place, body=body, media=media, expected=expected)

    async def _call(
        self,
        verb: str,
        method: str,
        place: Place,
        *,
        body: bytes = b"",
        media: str = "",
        query: str = "",
        expected: frozenset[int] = NOTHING,
    ) -> Obj:
        target = f"{place.path}?{query}" if query else place.path
        headers = [*self._fixed, ("accept", place.resource.accept)]
        if media:
            headers.append(("content-type", media))
        started_s = time.monotonic()
        try:
            response = await self._client.request(
                method, target, headers, body=body, timeout_s=REQUEST_TIMEOUT_S
            )
        except ConnectionLost as error:
            self.tally.unanswered(verb, place.label)
            raise self._lost(str(error)) from error
        except TimeoutError as error:
            self.tally.unanswered(verb, place.label)
            self.tally.unavailable["timeout"] += 1
            raise HubAwayError(f"no answer within {REQUEST_TIMEOUT_S} s") from error
        self._reached()
        self.tally.answered(verb, place.label, response.status, time.monotonic() - started_s)
        content = _plain(response.headers, response.body)
        if response.status in {200, 201}:
            return self._decode(f"{verb} {place.path}", content)
        raise self._refusal(verb, place.label, response.status, content, expected)

    def _reached(self) -> None:
        """Count a new connection at its first answer."""
        if not self._has_connected:
            self._has_connected = True
            self.tally.connections += 1
        elif self._is_lost:
            self.tally.reconnects += 1
        self._is_lost = False

    def _lost(self, reason: str) -> HubAwayError:
        self._is_lost = True
        if UNTRUSTED in reason:
            self.tally.protocol_error(f"connecting: {reason}", kind="serving certificate")
        self.tally.unavailable["connection lost"] += 1
        return HubAwayError(reason)

    def _decode(self, what: str, content: bytes) -> Obj:
        try:
            return json.decode(content)
        except ApiError as error:
            self.tally.protocol_error(
                f"{what}: the answer is not a JSON object: {content[:80]!r}", kind="malformed"
            )
            raise MalformedError(what) from error

    def _refusal(
        self, verb: str, label: str, status: int, content: bytes, expected: frozenset[int]
    ) -> HubAwayError | RefusedError:
        """Count an answer that is not success and return what to raise."""
        reason, message = _status_of(content)
        verdict = judge(status, expected=expected, is_early=self.is_early)
        text = f"{verb} {label}: {status} {reason}: {message}"
        if verdict is Verdict.AWAY:
            self.tally.unavailable[str(status)] += 1
            return HubAwayError(text)
        if verdict is Verdict.CONFLICT:
            self.tally.conflicts += 1
        elif verdict is Verdict.EARLY:
            self.tally.early_refusals[f"{verb} {label} {status}"] += 1
        elif verdict is not Verdict.EXPECTED:
            self.tally.protocol_error(text, kind=f"{verb} {label} {status}")
            if is_final(status, is_admin=self.is_admin):
                self.tally.final_refusal = self.tally.final_refusal or text
        return RefusedError(status, reason, message)


def _plain(headers: Mapping[str, str], body: bytes) -> bytes:
    return gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body


def _status_of(content: bytes) -> tuple[str, str]:
    """Return reason and message of a Status, whatever the content is."""
    try:
        status = json.decode(content)
    except ApiError:
        return "", content[:200].decode(errors="replace")
    return str(status.get("reason", "")), str(status.get("message", ""))
