"""Audit records: who asked for what, when, and how it ended.

Owns the shape of a record (audit.k8s.io/v1 Event at level Metadata: never a body, never a
credential) and what is known of a request while it runs. Writing is `hub.auth.auditlog`'s. Mirrors
k8s.io/apiserver/pkg/audit/request.go; the stages are ResponseStarted, for watches, and
ResponseComplete.
"""

import datetime as dt
import gzip
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from hub.auth.user import Attributes, User, user_info
from hub.meta import Obj
from hub.meta.codec.json import encode
from hub.meta.timestamp import format_micro_time

Stage: TypeAlias = Literal["ResponseStarted", "ResponseComplete"]
MAX_USER_AGENT = 1024
_DECISION, _REASON = "authorization.k8s.io/decision", "authorization.k8s.io/reason"
_STATUS_FIELDS = ("status", "message", "reason", "details")
_GZIP_MAGIC = b"\x1f\x8b"


class _Meta(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_named = msgspec.json.Decoder(_Named)


@dataclass(slots=True)
class Entry:
    """One request, as far as it is known.

    `verb` is empty until its path is understood, and `asked` None if it means nothing; `trouble` is
    why nobody was authenticated.
    """

    audit_id: str
    method: str
    uri: str
    received: dt.datetime
    source_ips: tuple[str, ...]
    user_agent: str
    verb: str = ""
    asked: Attributes | None = None
    user: User | None = None
    impersonated: User | None = None
    decision: tuple[str, str] | None = None
    trouble: str = ""

    def decided(self, asked: Attributes, *, verb: str, allowed: bool, reason: str) -> None:
        """Remember what was asked, and what authorisation said."""
        self.verb, self.asked = verb, asked
        self.decision = ("allow" if allowed else "forbid", reason)


@dataclass(frozen=True, slots=True)
class Record:
    """A stage of a request; `body` is that of an answer that is no stream."""

    entry: Entry
    stage: Stage
    moment: dt.datetime
    code: int
    body: bytes = field(default=b"", repr=False)

    def render(self) -> bytes:
        """Return the record as one line of JSON."""
        entry = self.entry
        event: Obj = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": entry.audit_id,
            "stage": self.stage,
            "requestURI": entry.uri,
            "verb": entry.verb,
            "user": user_info(entry.user) if entry.user is not None else {},
        }
        if entry.impersonated is not None:
            event["impersonatedUser"] = user_info(entry.impersonated)
        event["sourceIPs"] = list(entry.source_ips)
        if entry.user_agent:
            event["userAgent"] = entry.user_agent
        reference = self._reference()
        if reference:
            event["objectRef"] = reference
        event["responseStatus"] = self._status()
        event["requestReceivedTimestamp"] = format_micro_time(entry.received)
        event["stageTimestamp"] = format_micro_time(self.moment)
        if entry.decision is not None:
            decision, reason = entry.decision
            event["annotations"] = {_DECISION: decision, _REASON: reason}
        return encode(event) + b"\n"

    def _reference(self) -> Obj:
        asked = self.entry.asked
        if asked is None or asked.path:
            return {}
        name = asked.name
        if not name and asked.verb == "create" and self.code == 201:
            name = _name_in(self._plain_body())
        reference = {
            "resource": asked.resource,
            "namespace": asked.namespace,
            "name": name,
            "apiGroup": asked.group,
            "apiVersion": asked.version,
            "subresource": asked.subresource,
        }
        return {key: value for key, value in reference.items() if value}

    def _status(self) -> Obj:
        status: Obj = {"metadata": {}}
        if self.entry.trouble:
            status["message"] = self.entry.trouble
        elif self.code >= 400:
            found = _object_in(self._plain_body())
            status |= {name: found[name] for name in _STATUS_FIELDS if name in found}
        return status | {"code": self.code}

    def _plain_body(self) -> bytes:
        return gzip.decompress(self.body) if self.body[:2] == _GZIP_MAGIC else self.body


def authentication_trouble(authorization: str | None, *, has_certificate: bool) -> str:
    """Return what an audit record says of a request whose credentials are no good."""
    scheme, _, rest = (authorization or "").strip().partition(" ")
    tried = [scheme.lower()] if rest and scheme.lower() in ("basic", "bearer") else []
    tried += ["x509"] if has_certificate else []
    if not tried:
        return "Authentication failed, no credentials provided"
    return f"Authentication failed, attempted: {', '.join(tried)}"


def source_ips(headers: Mapping[str, str], remote: str) -> tuple[str, ...]:
    """Return where a request comes from: what proxies say, which anyone may, then the peer.

    `remote` is address and port.
    """
    peer = remote.rpartition(":")[0].strip("[]")
    said = [*headers.get("x-forwarded-for", "").split(","), headers.get("x-real-ip", "")]
    found = [ip for text in said if text and (ip := _address(text.strip()))]
    return tuple(dict.fromkeys([*found, *([peer] if peer and peer not in found[-1:] else [])]))


def shorten_agent(agent: str) -> str:
    """Return a User-Agent header at a length that a log can bear."""
    return agent if len(agent) <= MAX_USER_AGENT else f"{agent[:MAX_USER_AGENT]}...TRUNCATED"


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return ""


def _name_in(body: bytes) -> str:
    """Return the name of the object that an answer holds."""
    try:
        return _named.decode(body).metadata.name
    except msgspec.MsgspecError:
        return ""


def _object_in(body: bytes) -> Obj:
    try:
        found = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        return {}
    return found if isinstance(found, dict) else {}
