"""Replays recorded agents against a hub and holds its answers to the recorded ones.

The walk follows the timeline. A request is sent as recorded, but for the values that two hubs
cannot share (uids, revisions, generated names, times of renewal, the key of a certificate request).
An event is waited for in the watch in which the client saw it. Whatever differs is looked up in the
table of differences; what is not there stands in `Outcome.unexplained`.
"""

import asyncio
import base64
import contextlib
import datetime as dt
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hub import server
from hub.auth.bootstrap_token import BootstrapToken
from hub.clock import Clock
from hub.fleet.registration import ACCEPTED_ON
from hub.http.client import Client, ClientStream, ConnectionLost
from hub.http.tls import client_context
from hub.meta import Obj
from hub.meta.codec.json import decode, encode
from hub.meta.protobuf import MAGIC, decode_envelope, encode_envelope
from hub.meta.timestamp import format_micro_time
from hub.registry.catalog import Catalog
from hub.registry.engine import Engine
from hub.store import Store
from tests.hubs import InProcess, running_hub
from tests.server.wire_actions import CUT
from tests.server.wire_compare import Comparison, Learned, compare, rewrite, sent_conditions
from tests.server.wire_differences import Difference
from tests.server.wire_recording import INITIAL_END, Exchange, RecordedEvent
from tests.server.wire_timeline import Act, Ask, Close, Compact, Item, Restart, See, build_timeline

TOKEN = BootstrapToken("abcdef", "0123456789abcdef")
CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_TIMEOUT_S = 10.0
_NUMBER = re.compile(r"\d+")
_REVISION = re.compile(r"(?<=[?&]resourceVersion=)[1-9]\d*")
_SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "generation")
_ADDON_LABEL = "open-cluster-management.io/addon-name"
_INSTALL_NAMESPACE = "addon.open-cluster-management.io/v1alpha1-install-namespace"


@dataclass(slots=True)
class Outcome:
    """What a replay found."""

    counts: Counter[str] = field(default_factory=Counter)
    used: Counter[Difference] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)


class OpenWatch:
    """One of our watches: a task reads it, the walk takes events off it."""

    def __init__(self, stream: ClientStream) -> None:
        self.revision = 0
        self._stream = stream
        self._events: asyncio.Queue[Obj | None] = asyncio.Queue()
        self._task = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        rest = b""
        with contextlib.suppress(ConnectionLost):
            async for chunk in self._stream:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._events.put_nowait(decode(line))
        self._events.put_nowait(None)

    async def next(self) -> Obj | None:
        """The next event; None when none came in time, or the stream has ended."""
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                event = await self._events.get()
        except TimeoutError:
            return None
        return self._noted(event)

    def waiting(self) -> list[Obj]:
        """The events that have arrived and nobody took."""
        found = []
        while not self._events.empty():
            event = self._noted(self._events.get_nowait())
            if event is not None:
                found.append(event)
        return found

    async def ended(self) -> None:
        """Wait for the end of the stream."""
        await self._task

    def cancel(self) -> None:
        self._task.cancel()

    def _noted(self, event: Obj | None) -> Obj | None:
        if event is not None and event["type"] != "ERROR":
            self.revision = max(self.revision, int(event["object"]["metadata"]["resourceVersion"]))
        return event


@dataclass(slots=True)
class _Key:
    """The key that stands for an agent's own, which nobody recorded."""

    pem: bytes
    csr_name: str = ""


class Replay:
    """One walk through the recordings of one hub."""

    def __init__(
        self, exchanges: Sequence[Exchange], differences: Sequence[Difference], data_dir: Path
    ) -> None:
        self.outcome = Outcome()
        self._timeline: list[Item] = build_timeline(exchanges)
        self._differences = differences
        self._data_dir = data_dir
        self._learned = Learned(dt.datetime.now(dt.UTC))
        self._keys: dict[str, _Key] = {}
        self._clients: dict[str, Client] = {}
        self._retired: list[Client] = []
        self._watches: dict[Exchange, OpenWatch] = {}
        self._streams: dict[Exchange, AsyncExitStack] = {}
        self._informers: dict[tuple[str, str], int] = {}
        self._hub: InProcess
        self._engine: Engine

    async def run(self) -> Outcome:
        """Walk the timeline, over as many lives of one hub as there are restarts in it."""
        lives: list[list[Item]] = [[]]
        for item in self._timeline:
            if isinstance(item, Restart):
                lives.append([])
            else:
                lives[-1].append(item)
        for number, items in enumerate(lives):
            async with self._life():
                if number == 0:
                    secret = TOKEN.as_secret()
                    await self._hub.admin.create("/api/v1/namespaces/kube-system/secrets", secret)
                await self._walk(items)
        return self.outcome

    @contextlib.asynccontextmanager
    async def _life(self) -> AsyncIterator[None]:
        """A hub on the directory; its end ends the watches, and every event has arrived then."""
        hub = running_hub(
            self._data_dir, auto_accept=True, auto_approve_users=("system:bootstrap:*",)
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(server, "Engine", self._remembered)
            async with hub as self._hub:
                try:
                    yield
                except BaseException:
                    for watch in self._watches.values():
                        watch.cancel()
                    raise
        for exchange in list(self._watches):
            await self._watches[exchange].ended()
            await self._close(exchange)
        for client in [*self._clients.values(), *self._retired]:
            await client.close()
        self._clients.clear()
        self._retired.clear()

    def _remembered(
        self, store: Store, catalog: Catalog, clock: Clock, *, sealed: Iterable[str] = ()
    ) -> Engine:
        self._engine = Engine(store, catalog, clock, sealed=sealed)
        return self._engine

    async def _walk(self, items: Iterable[Item]) -> None:
        for item in items:
            match item:
                case Ask(exchange) if exchange.is_watch:
                    await self._open(exchange)
                case Ask(exchange):
                    await self._ask(exchange)
                case See(exchange, event, run):
                    await self._see(exchange, event, run)
                case Close(exchange) if exchange.end != "error" or exchange.recording in CUT:
                    await self._close(exchange)
                case Act(_, exchange, event):
                    await self._act(item, exchange, event)
                case Compact():
                    store = self._engine.store
                    await store.compact_log(store.revision)
                case _:
                    pass  # a watch that a hub's end has ended

    # ---------------------------------------------------------------- requests

    async def _client(self, exchange: Exchange) -> Client:
        """Return the client of the exchange's identity."""
        user = f"{exchange.recording} {exchange.user}"
        if user not in self._clients:
            key = self._keys.get(exchange.user)
            certificate = await self._certificate(exchange.user, key) if key else None
            config = yaml.safe_load(self._hub.kubeconfig.read_text())
            ca = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"])
            tls = client_context(ca, certificate, key.pem if key else None)
            address = urlsplit(self._hub.url)
            assert address.hostname
            assert address.port
            self._clients[user] = Client(address.hostname, address.port, tls)
        return self._clients[user]

    async def _certificate(self, user: str, key: _Key) -> bytes:
        """Wait until the agent is let in, as the recorded one did, and return its certificate."""
        request = await self._until(CSRS, key.csr_name, lambda obj: "certificate" in obj["status"])
        await self._until(CLUSTERS, user.split(":")[2], _is_registered)
        return base64.b64decode(request["status"]["certificate"])

    async def _until(self, collection: str, name: str, is_met: Callable[[Obj], bool]) -> Obj:
        path = f"{collection}?watch=true&fieldSelector=metadata.name%3D{name}"
        async with self._hub.admin.watch(path) as watch:
            while True:
                obj: Obj = (await watch.next())["object"]
                if is_met(obj):
                    return obj

    def _headers(self, exchange: Exchange) -> list[tuple[str, str]]:
        if exchange.user.startswith("system:bootstrap:"):
            return [*exchange.headers, ("authorization", f"Bearer {TOKEN}")]
        return list(exchange.headers)

    def _path(self, exchange: Exchange) -> str:
        """Resume where this informer is, instead of at the recorded revision."""
        revision = self._informers.get(_informer(exchange))
        if revision is None:
            return exchange.path
        return _REVISION.sub(str(revision), exchange.path)

    async def _ask(self, exchange: Exchange) -> None:
        client = await self._client(exchange)
        body = self._body(exchange)
        stream = client.stream(
            exchange.method, self._path(exchange), self._headers(exchange), body=body
        )
        async with stream as answer:
            self._judge(exchange.label, "(status)", exchange.status, answer.status)
            if answer.status != exchange.status and exchange.status in (403, 429):
                self.outcome.counts["asked, not compared"] += 1
                return
            media_type = answer.headers.get("content-type", "")
            self._judge(exchange.label, "(content-type)", exchange.content_type, media_type)
            ours = decode(await answer.read())
        self._settle(exchange.label, compare(exchange.answer, ours, self._learned))
        self.outcome.counts["requests compared"] += 1
        self._note(exchange, ours)

    def _note(self, exchange: Exchange, ours: Obj) -> None:
        """Keep what later requests need of an answer."""
        if "items" in ours:
            self._informers[_informer(exchange)] = int(ours["metadata"]["resourceVersion"])
        for user, key in self._keys.items():
            if not key.csr_name and exchange.resource == "certificatesigningrequests":
                key.csr_name = str(ours["metadata"]["name"])
                # a renewal: from here on with the new certificate, but for what is open
                old = self._clients.pop(f"{exchange.recording} {user}", None)
                self._retired += [] if old is None else [old]

    def _body(self, exchange: Exchange) -> bytes:
        """Return the recorded body with our values in it."""
        if not exchange.body:
            return b""
        is_protobuf = exchange.body.startswith(MAGIC)
        recorded = decode_envelope(exchange.body) if is_protobuf else decode(exchange.body)
        self._prepare(exchange, recorded)
        ours = rewrite(recorded, self._learned)
        assert isinstance(ours, dict)
        return encode_envelope(ours) if is_protobuf else encode(ours)

    def _prepare(self, exchange: Exchange, recorded: Obj) -> None:
        """Make the counterparts that only the sender can make."""
        self._learned.sent.update(sent_conditions(recorded))
        spec = recorded.get("spec") or {}
        if exchange.resource == "leases":
            renewed = str(spec["renewTime"])
            now = format_micro_time(dt.datetime.now(dt.UTC))
            self._learned.ours[renewed] = now
            self._learned.sent.add(renewed)
        is_request = exchange.resource == "certificatesigningrequests"
        if is_request and _ADDON_LABEL not in recorded["metadata"]["labels"]:
            pem, user, request = _own_request(base64.b64decode(spec["request"]))
            self._keys[user] = _Key(pem)
            self._learned.ours[str(spec["request"])] = base64.b64encode(request).decode()

    # ---------------------------------------------------------------- watches

    async def _open(self, exchange: Exchange) -> None:
        client = await self._client(exchange)
        stack = AsyncExitStack()
        stream = client.stream(exchange.method, self._path(exchange), self._headers(exchange))
        await stack.enter_async_context(stream)
        self._judge(exchange.label, "(status)", exchange.status, stream.status)
        if exchange.status == stream.status != 200:
            ours = decode(await stream.read())
            self._settle(exchange.label, compare(exchange.answer, ours, self._learned))
            self.outcome.counts["requests compared"] += 1
            await stack.aclose()
            return
        self._streams[exchange] = stack
        watch = self._watches[exchange] = OpenWatch(stream)
        watch.revision = self._informers.get(_informer(exchange), 0)
        if exchange.status != stream.status:  # resumed here, refused there: nothing may come
            self.outcome.counts["asked, not compared"] += 1
            return
        media_type = stream.headers.get("content-type", "")
        self._judge(exchange.label, "(content-type)", exchange.content_type, media_type)
        self.outcome.counts["watches compared"] += 1

    async def _see(
        self, exchange: Exchange, event: RecordedEvent, run: tuple[RecordedEvent, ...]
    ) -> None:
        """Take our counterpart of an event; the hub's own steps towards it may differ."""
        label = exchange.event_label(event)
        if self._explain(label, "no event", "(event)"):
            self.outcome.counts["events without a counterpart"] += 1 + len(run)
            return
        taken: list[Obj] = []
        while True:
            ours = await self._watches[exchange].next()
            if ours is None:
                self.outcome.unexplained.append(f"{label}: no such event; before it {taken!r:.900}")
                return
            if _is_periodic_bookmark(ours):
                continue
            found = self._pair(event, ours)
            if not run or not self._open_findings(label, found):
                break
            taken.append(ours)
        self._compare_steps(exchange, run, taken)
        self._settle(label, found)
        self.outcome.counts["events compared"] += 1

    def _compare_steps(
        self, exchange: Exchange, run: tuple[RecordedEvent, ...], taken: list[Obj]
    ) -> None:
        """Hold the hub's own steps to the recorded ones; their number or content may differ."""
        pairs = [
            (exchange.event_label(event), self._pair(event, ours))
            for event, ours in zip(run, taken, strict=False)
        ]
        if len(run) == len(taken) and not any(self._open_findings(*pair) for pair in pairs):
            for label, found in pairs:
                self._settle(label, found)
            self.outcome.counts["events compared"] += len(run)
            return
        for event in run:
            label = exchange.event_label(event)
            self.outcome.counts["events folded"] += 1
            if not self._explain(label, "steps", "(event)"):
                self.outcome.unexplained.append(f"{label}: other steps: {taken!r:.900}")

    def _pair(self, event: RecordedEvent, ours: Obj) -> Comparison:
        recorded = {"type": event.type, "object": event.object}
        if event.type != "BOOKMARK":
            found = compare(_undated(event.object), _undated(ours["object"]), self._learned)
            wrapped = compare(recorded["type"], ours["type"], self._learned)
            return Comparison([*wrapped.findings, *found.findings], found.taught)
        found = compare(recorded, ours, self._learned)
        is_ours = [f for f in found.findings if not f.path.endswith("/resourceVersion")]
        return Comparison(is_ours, {})

    async def _close(self, exchange: Exchange) -> None:
        watch = self._watches.pop(exchange, None)
        if watch is None:  # it was refused
            return
        for ours in watch.waiting():
            if not _is_periodic_bookmark(ours):
                self.outcome.unexplained.append(f"{exchange.label}: also sent {ours!r:.900}")
        self._informers[_informer(exchange)] = watch.revision
        await self._streams.pop(exchange).aclose()
        watch.cancel()

    # ---------------------------------------------------------------- the administrator

    async def _act(self, act: Act, exchange: Exchange, event: RecordedEvent) -> None:
        admin, obj = self._hub.admin, event.object
        collection = exchange.path.split("?")[0]
        path = f"{collection}/{self._learned.of(event.name)}"
        self.outcome.counts["administrator's acts"] += 1
        match act.action.verb:
            case "create":
                await admin.create(collection, _as_created(obj))
                if (obj.get("spec") or {}).get("hubAcceptsClient"):
                    await self._until(CLUSTERS, event.name, _is_registered)
            case "mark":
                meta = obj["metadata"]
                marks = {n: meta[n] for n in ("annotations", "labels") if n in meta}
                await admin.patch(path, {"metadata": marks})
            case "replace":
                meta = (await admin.get(path))["metadata"]
                kept = {name: meta[name] for name in ("name", "namespace", "resourceVersion")}
                answer = await admin.call("PUT", path, {**_as_created(obj), "metadata": kept})
                assert answer.status == 200, answer.body
            case "delete":
                answer = await admin.call("DELETE", path)
                assert answer.status == 200, answer.body
            case "patch-status":
                wanted = {n: obj["status"][n] for n in ("namespace", "registrations")}
                await admin.patch(f"{path}/status", {"status": wanted})
            case "approve":
                request = await admin.get(path)
                conditions = [_untimed(c) for c in obj["status"]["conditions"]]
                request["status"]["conditions"] = conditions
                answer = await admin.call("PUT", f"{path}/approval", request)
                assert answer.status == 200, answer.body

    # ---------------------------------------------------------------- judging

    def _explain(self, label: str, kind: str, path: str) -> bool:
        for difference in self._differences:
            if difference.explains(label, kind, path):
                self.outcome.used[difference] += 1
                return True
        return False

    def _open_findings(self, label: str, found: Comparison) -> list[str]:
        """The findings without an entry in the table; marks nothing as used."""
        return [
            f"{label}: {finding}"
            for finding in found.findings
            if not any(d.explains(label, finding.how, finding.path) for d in self._differences)
        ]

    def _settle(self, label: str, found: Comparison) -> None:
        """Keep what a pair taught, and mark or report every finding."""
        self.outcome.unexplained += self._open_findings(label, found)
        for finding in found.findings:
            is_known = self._explain(label, finding.how, finding.path)
            if is_known and finding.how == "changes":  # a Lease renewed by the hub's start
                found.taught[str(finding.recorded)] = str(finding.ours)
        found.keep(self._learned)

    def _judge(self, label: str, path: str, recorded: object, ours: object) -> None:
        place = f"{path} {recorded} -> {ours}"
        if recorded != ours and not self._explain(label, "changes", place):
            self.outcome.unexplained.append(f"{label}: {place}")


def _is_registered(cluster: Obj) -> bool:
    """Whether the hub has done everything that acceptance brings with it; the taint is last."""
    conditions = (cluster.get("status") or {}).get("conditions") or []
    types = {condition["type"] for condition in conditions}
    is_new = "ManagedClusterJoined" not in types
    return "HubAcceptedManagedCluster" in types and (not is_new or "taints" in cluster["spec"])


def _informer(exchange: Exchange) -> tuple[str, str]:
    """What lists and watches the same things over and over."""
    return f"{exchange.recording} {exchange.user}", exchange.path.split("?")[0]


def _is_periodic_bookmark(event: Obj) -> bool:
    annotations = event["object"]["metadata"].get("annotations") or {}
    return event["type"] == "BOOKMARK" and INITIAL_END not in annotations


def _undated(obj: Obj) -> Obj:
    """Return a Status without the revisions it tells of."""
    message = obj.get("message")
    return {**obj, "message": _NUMBER.sub("N", message)} if isinstance(message, str) else obj


def _as_created(obj: Obj) -> Obj:
    """Return an object as its creator sent it: without what servers and controllers add."""
    meta = {k: v for k, v in obj["metadata"].items() if k not in _SERVER_FIELDS}
    annotations = dict(meta.pop("annotations", {}))
    for name in (_INSTALL_NAMESPACE, ACCEPTED_ON):
        annotations.pop(name, None)
    if annotations:
        meta["annotations"] = annotations
    kept = {k: v for k, v in obj.items() if k not in ("metadata", "status")}
    if "hubAcceptsClient" in (obj.get("spec") or {}):
        meta.pop("finalizers", None)
        kept["spec"] = {k: v for k, v in obj["spec"].items() if k != "taints"}
    return {**kept, "metadata": meta}


def _untimed(condition: Obj) -> Obj:
    times = ("lastUpdateTime", "lastTransitionTime")
    return {k: v for k, v in condition.items() if k not in times}


def _own_request(pem: bytes) -> tuple[bytes, str, bytes]:
    """Return a key, the common name, and a request with the recorded subject for that key."""
    subject = x509.load_pem_x509_csr(pem).subject
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(subject)
    key_pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    user = str(subject.get_attributes_for_oid(x509.oid.NameOID.COMMON_NAME)[0].value)
    signed = request.sign(key, hashes.SHA256())
    return key_pem, user, signed.public_bytes(serialization.Encoding.PEM)
