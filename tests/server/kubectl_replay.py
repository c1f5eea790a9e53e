"""Replays a recorded tour of kubectl against a hub and holds its answers to the recorded ones.

One command follows the other, so the walk is one line: send, compare, go on. What nobody recorded
is done by an administrator: the changes that a watch saw, and what server-side apply left behind
(`_stand_in`). Whatever differs is looked up in the table of differences; what is not there stands
in `Outcome.unexplained`.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from hub.http.client import Client, ClientStream
from hub.meta import Obj
from hub.meta.codec.json import decode, decode_value
from hub.meta.protobuf import MAGIC, decode_envelope, encode_envelope
from tests.hubs import InProcess
from tests.server.kubectl_compare import aligned, narrowed, outlined, without_nulls
from tests.server.kubectl_recording import UUID, KubectlExchange
from tests.server.replay import OpenWatch, Outcome
from tests.server.wire_compare import Learned, compare, rewrite, sent_times
from tests.server.wire_differences import Difference
from tests.server.wire_recording import INITIAL_END, RecordedEvent

NOT_SERVED: Obj = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "the server could not find the requested resource",
    "reason": "NotFound",
    "details": {},
    "code": 404,
}
_REVISION = re.compile(r"(?<=[?&]resourceVersion=)\d+")
_CONTINUE = re.compile(r"(?<=[?&]continue=)[^&]+")
_AUDIENCE = "https://kubernetes.default.svc"
"""The audience that the recorded hub took for itself; ours is its own URL."""
_AT_ONCE_S = 0.05
DEFINITIONS = "customresourcedefinitions"
TOUR = "demo.example.com"
"""The group of the definition that the tour makes."""
_SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "generation", "selfLink")


@dataclass(slots=True)
class KubectlReplay:
    """One walk through one recording."""

    hub: InProcess
    clients: Mapping[str, Client]
    differences: Sequence[Difference]
    learned: Learned
    outcome: Outcome = field(default_factory=Outcome)
    on_current: Callable[[KubectlExchange], None] = lambda _: None
    """Called when a watch has brought what there was."""
    on_begun: Callable[[KubectlExchange], None] = lambda _: None
    """Called when an answer is due that shows a deletion under way."""
    revisions: dict[str, str] = field(default_factory=dict)
    """Our counterparts of revisions of lists, and of revisions that nobody saw."""
    _served: set[tuple[str, str, str]] = field(default_factory=set)
    _etags: dict[str, str] = field(default_factory=dict)

    async def walk(self, exchanges: Sequence[KubectlExchange]) -> Outcome:
        """Replay `exchanges` in their order."""
        if not self._served:
            self._served = await _served(self.hub)
            identity = await self.hub.admin.get("/.well-known/openid-configuration")
            self.learned.ours[_AUDIENCE] = identity["issuer"]
        for exchange in exchanges:
            await self._one(exchange)
        return self.outcome

    async def _one(self, exchange: KubectlExchange) -> None:
        await self._catch_up(exchange)
        if exchange.left_out:
            self.outcome.counts[f"left out: {exchange.left_out}"] += 1
            if exchange.left_out == "server-side apply":
                await self._stand_in(exchange)
        elif not self._is_served(exchange):
            await self._ask_unserved(exchange)
        elif exchange.is_watch:
            await self._watch(exchange)
        else:
            await self._ask(exchange)
        if exchange.parts[2] == DEFINITIONS:
            self._served = await _served(self.hub)

    async def _catch_up(self, exchange: KubectlExchange) -> None:
        """Wait until the hub has come as far with a definition as the answer shows."""
        if exchange.parts[2] != DEFINITIONS or exchange.method != "GET":
            return
        for recorded in exchange.objects:
            wanted = _reasons(recorded)
            if "InstanceDeletionInProgress" in wanted:
                self.on_begun(exchange)
            name = str(recorded["metadata"]["name"])
            collection = exchange.route.removesuffix(f"/{name}")
            await self._until(collection, name, partial(_has_come_to, wanted))

    def _is_served(self, exchange: KubectlExchange) -> bool:
        return not exchange.parts[2] or exchange.parts in self._served

    # ---------------------------------------------------------------- requests

    def _stream(self, exchange: KubectlExchange) -> ClientStream:
        return self._client(exchange).stream(
            exchange.method,
            self._path(exchange),
            self._headers(exchange),
            body=self._body(exchange),
        )

    def _client(self, exchange: KubectlExchange) -> Client:
        return self.clients[exchange.user]

    def _headers(self, exchange: KubectlExchange) -> list[tuple[str, str]]:
        """Return the recorded headers; who was known to be current is so here, too."""
        headers = [(name, value) for name, value in exchange.headers if name != "if-none-match"]
        if exchange.status == 304:
            headers.append(("if-none-match", self._etags[exchange.route]))
        elif "if-none-match" in dict(exchange.headers):
            headers.append(("if-none-match", dict(exchange.headers)["if-none-match"]))
        if exchange.user == "service-account-token":
            headers.append(("authorization", f"Bearer {self.learned.ours['token']}"))
        return headers

    def _path(self, exchange: KubectlExchange) -> str:
        """Return the path with our uids, revisions and tokens in it."""
        path = UUID.sub(lambda found: self.learned.of(found[0]), exchange.path)
        path = _CONTINUE.sub(lambda found: self.learned.of(found[0]), path)
        path = _REVISION.sub(lambda found: self._revision(found[0]), path)
        return path.split("?")[0] if "hash=" in path else path

    def _revision(self, recorded: str) -> str:
        return self.revisions.get(recorded, self.learned.of(recorded))

    def _body(self, exchange: KubectlExchange) -> bytes:
        """Return the recorded body, with our values in it where it has any of the other hub."""
        body = exchange.body
        if not body or "yaml" in dict(exchange.headers).get("content-type", ""):
            return body
        is_protobuf = body.startswith(MAGIC)
        recorded = decode_envelope(body) if is_protobuf else decode_value(body)
        if exchange.method in ("POST", "PATCH"):  # the body of a PUT has the hub's times
            self.learned.kept.update(sent_times(recorded))
        ours = rewrite(recorded, self.learned)
        if ours == recorded:
            return body
        if is_protobuf and isinstance(ours, dict):
            return encode_envelope(ours)
        return json.dumps(ours).encode()

    async def _ask_unserved(self, exchange: KubectlExchange) -> None:
        async with self._unread(exchange) as answer:
            self._judge(exchange, "(status)", 404, answer.status)
            self._judge(exchange, "(body)", NOT_SERVED, decode(await answer.read()))
        self.outcome.counts["kinds not served"] += 1

    def _unread(self, exchange: KubectlExchange) -> ClientStream:
        """Send a request whose body this hub cannot decode, as it is."""
        return self._client(exchange).stream(
            exchange.method, exchange.path, exchange.headers, body=exchange.body
        )

    async def _ask(self, exchange: KubectlExchange) -> None:
        async with self._stream(exchange) as answer:
            self._judge(exchange, "(status)", exchange.status, answer.status)
            media_type = answer.headers.get("content-type", "")
            self._judge(exchange, "(content-type)", exchange.content_type, media_type)
            warning = answer.headers.get("warning", "")
            self._judge(exchange, "(warning)", exchange.warning, warning)
            self._etags[exchange.route] = answer.headers.get("etag", "")
            body = await answer.read()
        self.outcome.counts["requests compared"] += 1
        if exchange.route == "/openapi/v2":
            return  # no golden file has its body
        if isinstance(exchange.answer, dict) and body.startswith(b"{"):
            ours = decode(body)
            is_exact = "protobuf" not in exchange.content_type
            self._compare(exchange, exchange.answer, ours if is_exact else without_nulls(ours))
        else:
            self._judge(exchange, "(body)", exchange.answer or "", body.decode())
        await self._settle_down(exchange)

    def _compare(self, exchange: KubectlExchange, recorded: Obj, ours: Obj) -> None:
        if exchange.document and exchange.status == 200:
            ours = outlined(exchange.document, ours)
            recorded = narrowed(recorded, ours)
            self.outcome.counts["outlines compared"] += 1
        if exchange.parts[2] == DEFINITIONS and "items" in ours:
            ours = {**ours, "items": [i for i in ours["items"] if i["spec"]["group"] == TOUR]}
        self._note(exchange, recorded, ours)
        self._settle(exchange.label, recorded, ours)

    def _note(self, exchange: KubectlExchange, recorded: Obj, ours: Obj) -> None:
        """Keep what later requests need of an answer."""
        if "items" in recorded or "rows" in recorded:
            new = ours["metadata"].get("resourceVersion", "")  # none in a Status
            self.revisions[recorded["metadata"]["resourceVersion"]] = new
        if exchange.parts[2] == "serviceaccounts/token" and exchange.status == 201:
            self.learned.ours["token"] = ours["status"]["token"]

    async def _settle_down(self, exchange: KubectlExchange) -> None:
        """Wait for what the recorded hub had done when the next command came."""
        if exchange.parts[2] == "certificatesigningrequests/approval":
            collection, name = exchange.route.removesuffix("/approval").rsplit("/", 1)
            await self._until(collection, name, _is_decided)

    async def _until(self, collection: str, name: str, is_met: Callable[[Obj], bool]) -> None:
        query = f"{collection}?watch=true&fieldSelector=metadata.name%3D{name}"
        async with self.hub.admin.watch(query) as watch:
            while not is_met((await watch.next())["object"]):
                pass

    # ---------------------------------------------------------------- watches

    async def _watch(self, exchange: KubectlExchange) -> None:
        async with self._stream(exchange) as stream:
            self._judge(exchange, "(status)", exchange.status, stream.status)
            media_type = stream.headers.get("content-type", "")
            self._judge(exchange, "(content-type)", exchange.content_type, media_type)
            watch = OpenWatch(stream)
            is_current = False
            for event in exchange.events:
                is_change = event.t > _AT_ONCE_S or event.type == "DELETED"
                if is_change and event.type != "ERROR":
                    if not is_current:
                        self.on_current(exchange)
                    is_current = True
                    await self._act(exchange, event)
                await self._see(exchange, event, watch)
            for ours in watch.waiting():
                self.outcome.unexplained.append(f"{exchange.label}: also sent {ours!r:.900}")
            watch.cancel()
        self.outcome.counts["watches compared"] += 1

    async def _see(self, exchange: KubectlExchange, event: RecordedEvent, watch: OpenWatch) -> None:
        label = exchange.event_label(event)
        if self._explain(label, "no event", "(event)"):
            self.outcome.counts["events without a counterpart"] += 1
            return
        ours = await watch.next()
        while ours is not None and _is_periodic_bookmark(ours):
            ours = await watch.next()
        if ours is None:
            self.outcome.unexplained.append(f"{label}: no such event")
            return
        self._judge_at(label, "(type)", event.type, ours["type"])
        recorded, found = event.object, ours["object"]
        if event.type == "BOOKMARK":
            recorded, found = _bookmark(recorded), _bookmark(found)
        self._settle(label, recorded, found)
        self.outcome.counts["events compared"] += 1

    # ---------------------------------------------------------------- the administrator

    async def _act(self, exchange: KubectlExchange, event: RecordedEvent) -> None:
        """Make the change that a watch saw, unless the hub makes it."""
        if exchange.step.split(" ", 2)[-1].startswith("delete"):
            return
        rows = event.object.get("rows") or [{"object": event.object}]
        obj, admin = rows[0]["object"], self.hub.admin
        path = f"{exchange.route}/{obj['metadata']['name']}"
        self.outcome.counts["administrator's acts"] += 1
        if event.type == "ADDED":
            await admin.create(exchange.route, {"metadata": {"name": obj["metadata"]["name"]}})
        elif event.type == "DELETED":
            answer = await admin.call("DELETE", path)
            assert answer.status == 200, answer.body
        else:
            await self._modify(path, obj)

    async def _modify(self, path: str, obj: Obj) -> None:
        """Bring labels and, when those are as wanted, the status to what a watch saw."""
        present = await self.hub.admin.get(path)
        labels = obj["metadata"].get("labels") or {}
        if not labels.items() <= (present["metadata"].get("labels") or {}).items():
            await self.hub.admin.patch(path, {"metadata": {"labels": labels}})
        else:
            await self.hub.admin.patch(f"{path}/status", {"status": obj["status"]})

    async def _stand_in(self, exchange: KubectlExchange) -> None:
        """Write what server-side apply left behind, as its answer shows it."""
        if exchange.status not in (200, 201) or "dryRun=All" in exchange.path:
            return
        assert isinstance(exchange.answer, dict)
        admin, wanted = self.hub.admin, exchange.answer
        meta = {k: v for k, v in wanted["metadata"].items() if k not in _SERVER_FIELDS}
        present = await admin.call("GET", exchange.route)
        if present.status == 200:
            kept = present.obj()["metadata"]["resourceVersion"]
            meta["resourceVersion"] = kept
            answer = await admin.call("PUT", exchange.route, {**wanted, "metadata": meta})
        else:
            collection = exchange.route.rsplit("/", 1)[0]
            answer = await admin.call("POST", collection, {**wanted, "metadata": meta})
        assert answer.status in (200, 201), answer.body
        self._settle(exchange.label, wanted, answer.obj())

    # ---------------------------------------------------------------- judging

    def _settle(self, label: str, recorded: Obj, ours: Obj) -> None:
        """Compare two objects, keep what they taught, and mark or report every finding."""
        recorded, ours, findings = aligned(recorded, ours)
        found = compare(recorded, ours, self.learned)
        for finding in [*findings, *found.findings]:
            if not self._explain(label, finding.how, finding.path):
                self.outcome.unexplained.append(f"{label}: {finding}")
        found.keep(self.learned)

    def _judge(self, exchange: KubectlExchange, path: str, recorded: object, ours: object) -> None:
        self._judge_at(exchange.label, path, recorded, ours)

    def _judge_at(self, label: str, path: str, recorded: object, ours: object) -> None:
        place = f"{path} {recorded} -> {ours}"
        if recorded != ours and not self._explain(label, "changes", place):
            self.outcome.unexplained.append(f"{label}: {place}")

    def _explain(self, label: str, kind: str, path: str) -> bool:
        for difference in self.differences:
            if difference.explains(label, kind, path):
                self.outcome.used[difference] += 1
                return True
        return False


def _is_decided(request: Obj) -> bool:
    """Whether a certificate request has come as far as it will."""
    status = request.get("status") or {}
    denied = any(c["type"] == "Denied" for c in status.get("conditions") or ())
    return denied or "certificate" in status


def _has_come_to(wanted: set[str], definition: Obj) -> bool:
    return wanted <= _reasons(definition)


def _reasons(definition: Obj) -> set[str]:
    """Return how far a definition has come: the reasons of its conditions."""
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return {str(condition["reason"]) for condition in conditions}


def _is_periodic_bookmark(event: Obj) -> bool:
    annotations = event["object"].get("metadata", {}).get("annotations") or {}
    return event["type"] == "BOOKMARK" and INITIAL_END not in annotations


def _bookmark(obj: Obj) -> Obj:
    """Return a bookmark without its revision, which is nobody else's."""
    meta = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
    return {**obj, "metadata": meta}


async def _served(hub: InProcess) -> set[tuple[str, str, str]]:
    """Return every resource and subresource in the hub's own discovery."""
    found = set()
    groups = (await hub.admin.get("/apis"))["groups"]
    versions = [v["groupVersion"] for group in groups for v in group["versions"]]
    for path in ["/api/v1", *(f"/apis/{version}" for version in versions)]:
        listed = await hub.admin.get(path)
        group, _, version = listed["groupVersion"].rpartition("/")
        found |= {(group, version, resource["name"]) for resource in listed["resources"]}
    return found
