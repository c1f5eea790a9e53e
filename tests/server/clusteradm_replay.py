"""Replays the recorded clusteradm against a hub: what kubectl's replay does, and the others.

Beside clusteradm an agent, an administrator, and controllers that no hub of ours has (placement,
the add-on manager, the operator) were at work, and nobody recorded their requests. What they had
written by the time of an answer, `Others` reads off that answer and writes before clusteradm asks:
objects that nobody else makes, and the statuses and finalizers that are theirs.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from hub.fleet.features import PREFIX
from hub.meta import Obj
from hub.meta.timestamp import format_micro_time
from tests.hubs import Api, InProcess
from tests.server.kubectl_recording import KubectlExchange
from tests.server.kubectl_replay import DEFINITIONS, KubectlReplay
from tests.server.replay import OpenWatch, Outcome
from tests.server.support import CLUSTERS, anonymous
from tests.server.wire_compare import Learned, rewrite
from tests.server.wire_recording import RecordedEvent

Condition: TypeAlias = Callable[[Obj], bool]
BOOTSTRAP_USER = "system:bootstrap:ocmhub"
GOOD_TOKEN, WRONG_TOKEN = "ocmhub.notasecret000000", "ocmhub.wrongwrongwrong0"
_TOKENS = {BOOTSTRAP_USER: GOOD_TOKEN, "bootstrap-token": WRONG_TOKEN}
OPERATED = 8
"""The first exchange on a hub with the bootstrap objects of Open Cluster Management."""
AHEAD = {189: 196}
"""Whose answer first shows what others had written before an earlier one."""
LEFT = 232
"""The first exchange after an administrator had deleted a cluster of another recording."""
_NAMESPACE = "/api/v1/namespaces/open-cluster-management"
_ACCOUNT = "agent-registration-bootstrap"
_CLOCK, _ACCEPTED = "ManagedClusterConditionClockSynced", "HubAcceptedManagedCluster"
_MADE = {
    *("clustermanagementaddons", "clustermanagers", "clusterrolebindings"),
    *("managedclusters", "placementdecisions", "secrets"),
}
"""What others made, when it is in an answer and not on our hub."""
_TOLD = {
    *("clustermanagers", "managedclusteraddons", "manifestworks"),
    *("placements", "placementdecisions"),
}
"""Whose status, finalizers and owners others write."""
_SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "generation")
_HUBS_OWN = ("finalizers", "annotations", "ownerReferences", "managedFields")


class Others:
    """The agent, the administrator, and controllers that are not part of the hub."""

    def __init__(self, hub: InProcess, learned: Learned) -> None:
        self._hub, self._learned = hub, learned
        self.written = 0

    async def prepare(self, exchange: KubectlExchange) -> None:
        """Bring the hub to where the recorded one was when it answered."""
        is_read = exchange.method == "GET" and exchange.status == 200 and not exchange.is_watch
        if not is_read or not exchange.parts[2]:
            return
        plural = exchange.parts[2]
        is_list = isinstance(exchange.answer, dict) and "items" in exchange.answer
        for recorded in exchange.objects:
            collection = _collection(exchange, recorded, is_list=is_list)
            await self._bring(collection, plural, recorded)

    async def _bring(self, collection: str, plural: str, recorded: Obj) -> None:
        path = f"{collection}/{recorded['metadata']['name']}"
        present = await self._hub.admin.call("GET", path)
        if present.status == 404 and plural == "certificatesigningrequests":
            return await self._request(collection, recorded)
        if present.status == 404 and plural in _MADE:
            await self._write(self._hub.admin, "POST", collection, _as_made(recorded))
        elif present.status == 404:
            return None
        if plural == "managedclusters":
            await self._bring_cluster(path, recorded)
        elif plural in _TOLD:
            await self._tell(path, recorded)
        elif plural == "managedclustersets" and recorded.get("status"):
            await self._settled(path)
        return None

    async def _write(self, api: Api, method: str, path: str, body: Obj) -> None:
        content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        answer = await api.call(method, path, body, content_type=content_type)
        assert answer.status in (200, 201), answer.body
        self.written += 1

    async def _request(self, collection: str, recorded: Obj) -> None:
        """The agent asks for its certificate, with the token that clusteradm was given."""
        api = anonymous(self._hub, token=self._learned.ours["token"])
        spec = {k: recorded["spec"][k] for k in ("request", "signerName", "usages")}
        meta = {k: recorded["metadata"][k] for k in ("name", "generateName", "labels")}
        try:
            await self._write(api, "POST", collection, {"metadata": meta, "spec": spec})
        finally:
            await api.close()

    async def _tell(self, path: str, recorded: Obj) -> None:
        """Finalizers, owners and status, as their controller had written them."""
        present = await self._hub.admin.get(path)
        for field in ("finalizers", "ownerReferences"):
            wanted = rewrite(recorded["metadata"].get(field), self._learned)
            if wanted and not present["metadata"].get(field):
                await self._write(self._hub.admin, "PATCH", path, {"metadata": {field: wanted}})
        if recorded.get("status") and present.get("status") != recorded["status"]:
            status = {"status": recorded["status"]}
            await self._write(self._hub.admin, "PATCH", f"{path}/status", status)

    async def _bring_cluster(self, path: str, recorded: Obj) -> None:
        """Acceptance by the administrator; lease and conditions by the agent, in their order."""
        accepted = bool(recorded["spec"].get("hubAcceptsClient"))
        present = await self._hub.admin.get(path)
        if bool(present["spec"].get("hubAcceptsClient")) is not accepted:
            spec = {"spec": {"hubAcceptsClient": accepted}}
            await self._write(self._hub.admin, "PATCH", path, spec)
        for wanted in recorded["status"]["conditions"]:
            present = await self._hub.admin.get(path)
            found = {
                c["type"]: c["status"] for c in present.get("status", {}).get("conditions", ())
            }
            if found.get(wanted["type"]) == wanted["status"]:
                continue
            if wanted["type"] == _CLOCK:
                await self._renew(recorded["metadata"]["name"])
            elif wanted["type"] != _ACCEPTED:
                conditions = [*present["status"]["conditions"], wanted]
                rest = {k: v for k, v in recorded["status"].items() if k != "conditions"}
                body = {"status": {**rest, "conditions": conditions}}
                await self._write(self._hub.admin, "PATCH", f"{path}/status", body)
            await self._until(path, wanted["type"], wanted["status"])
        await self._see(path, lambda obj: _hubs_part(obj) == _hubs_part(recorded))
        rest = {k: v for k, v in recorded["status"].items() if k != "conditions"}
        present = await self._hub.admin.get(path)
        if any(present["status"].get(name) != value for name, value in rest.items()):
            await self._write(self._hub.admin, "PATCH", f"{path}/status", {"status": rest})

    async def _renew(self, cluster: str) -> None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{cluster}/leases/managed-cluster-lease"
        spec = {"renewTime": format_micro_time(self._learned.began)}
        await self._write(self._hub.admin, "PATCH", path, {"spec": spec})

    async def _until(self, path: str, type_: str, status: str) -> None:
        await self._see(
            path,
            lambda obj: any(
                (c["type"], c["status"]) == (type_, status)
                for c in (obj.get("status") or {}).get("conditions") or ()
            ),
        )

    async def _settled(self, path: str) -> None:
        """Wait until the hub has counted a set's clusters."""
        clusters = (await self._hub.admin.get(CLUSTERS))["items"]
        name = path.rsplit("/", 1)[1]
        labels = [c["metadata"].get("labels") or {} for c in clusters]
        label = "cluster.open-cluster-management.io/clusterset"
        members = len(clusters) if name == "global" else sum(x.get(label) == name for x in labels)
        await self._until(path, "ClusterSetEmpty", "False" if members else "True")

    async def _see(self, path: str, is_met: Condition) -> None:
        collection, name = path.rsplit("/", 1)
        query = f"{collection}?watch=true&fieldSelector=metadata.name%3D{name}"
        async with self._hub.admin.watch(query) as watch:
            while not is_met((await watch.next())["object"]):
                pass

    async def delete(self, path: str) -> None:
        """Delete an object and wait until it is gone."""
        collection, name = path.rsplit("/", 1)
        query = f"{collection}?watch=true&fieldSelector=metadata.name%3D{name}"
        async with self._hub.admin.watch(query) as watch:
            assert (await self._hub.admin.call("DELETE", path)).status == 200
            while (await watch.next())["type"] != "DELETED":
                pass
        self.written += 1

    async def begin(self) -> None:
        """The hub before anybody made the bootstrap objects."""
        await self.delete(_NAMESPACE)

    async def operate(self) -> None:
        """What an administrator made in place of clusteradm init."""
        collection, name = _NAMESPACE.rsplit("/", 1)
        await self._write(self._hub.admin, "POST", collection, {"metadata": {"name": name}})
        account = {"metadata": {"name": _ACCOUNT}}
        await self._write(self._hub.admin, "POST", f"{_NAMESPACE}/serviceaccounts", account)

    async def follow(self, path: str, event: RecordedEvent) -> None:
        """The agent's next step towards the end of a work."""
        if event.type == "DELETED":
            meta = {"metadata": {"finalizers": None}}
            await self._write(self._hub.admin, "PATCH", path, meta)
        else:
            await self._tell(path, event.object)


class ClusteradmReplay(KubectlReplay):
    """One walk through the recording of clusteradm."""

    others: Others
    _queue: list[KubectlExchange]

    async def walk(self, exchanges: Sequence[KubectlExchange]) -> Outcome:
        """Replay `exchanges` in their order; a watch goes before the deletion it looks at."""
        self.others = Others(self.hub, self.learned)
        self._queue = list(exchanges)
        by_seq = {exchange.seq: exchange for exchange in exchanges}
        await self.others.begin()
        await KubectlReplay.walk(self, [])
        while self._queue:
            exchange = self._queue.pop(0)
            if exchange.seq == OPERATED:
                await self.others.operate()
            if exchange.seq == LEFT:
                await self.others.delete(f"{CLUSTERS}/cluster-a")
            if exchange.seq in AHEAD:
                await self.others.prepare(by_seq[AHEAD[exchange.seq]])
            await self._one(exchange)
        self.outcome.counts["written by others"] = self.others.written
        return self.outcome

    async def _catch_up(self, exchange: KubectlExchange) -> None:
        if exchange.parts[2] != DEFINITIONS:
            await self.others.prepare(exchange)

    def _headers(self, exchange: KubectlExchange) -> list[tuple[str, str]]:
        headers = KubectlReplay._headers(self, exchange)
        token = _TOKENS.get(exchange.user)
        return [*headers, ("authorization", f"Bearer {token}")] if token else headers

    async def _watch(self, exchange: KubectlExchange) -> None:
        """See what there was, send the deletion if it comes next, and see the object go."""
        async with self._stream(exchange) as stream:
            self._judge(exchange, "(status)", exchange.status, stream.status)
            media_type = stream.headers.get("content-type", "")
            self._judge(exchange, "(content-type)", exchange.content_type, media_type)
            watch = OpenWatch(stream)
            for event in exchange.events:
                if event.type != "ADDED":
                    await self._go_on(exchange, event)
                await self._see(exchange, event, watch)
            for ours in watch.waiting():
                self.outcome.unexplained.append(f"{exchange.label}: also sent {ours!r:.900}")
            watch.cancel()
        self.outcome.counts["watches compared"] += 1

    async def _go_on(self, exchange: KubectlExchange, event: RecordedEvent) -> None:
        after = self._queue[0] if self._queue else None
        if after is not None and (after.step, after.method) == (exchange.step, "DELETE"):
            await self._one(self._queue.pop(0))
        else:
            path = f"{exchange.route}/{event.object['metadata']['name']}"
            await self.others.follow(path, event)

    def _compare(self, exchange: KubectlExchange, recorded: Obj, ours: Obj) -> None:
        if exchange.parts[2] == DEFINITIONS and exchange.status == 200:
            self._settle(exchange.label, recorded, _outlined(recorded, ours))
        else:
            KubectlReplay._compare(self, exchange, recorded, ours)


def _hubs_part(cluster: Obj) -> tuple[set[str], Obj, list[str]]:
    """Return what the hub writes after a request: taints, feature labels, namespaces."""
    labels = cluster["metadata"].get("labels") or {}
    return (
        {taint["key"] for taint in cluster["spec"].get("taints") or ()},
        {key: value for key, value in labels.items() if key.startswith(PREFIX)},
        [each["name"] for each in cluster["status"].get("managedNamespaces") or ()],
    )


def _collection(exchange: KubectlExchange, obj: Obj, *, is_list: bool) -> str:
    """Return where an object of an answer lies."""
    route = exchange.route if is_list else exchange.route.rsplit("/", 1)[0]
    namespace = obj["metadata"].get("namespace")
    if namespace and "/namespaces/" not in route:
        root, plural = route.rsplit("/", 1)
        return f"{root}/namespaces/{namespace}/{plural}"
    return route


def _as_made(recorded: Obj) -> Obj:
    """Return an object as its maker sent it."""
    left_out = (*_SERVER_FIELDS, *_HUBS_OWN)
    meta = {k: v for k, v in recorded["metadata"].items() if k not in left_out}
    kept = {k: v for k, v in recorded.items() if k not in ("metadata", "status")}
    if "taints" in (kept.get("spec") or {}):
        kept["spec"] = {k: v for k, v in kept["spec"].items() if k != "taints"}
    return {**kept, "metadata": meta}


def _outlined(recorded: Obj, ours: Obj) -> Obj:
    """Return our definitions as the golden file keeps them: names, or no schemas."""
    if "definitions" in recorded:
        items = ours.get("items") or [ours]
        return {"definitions": {item["metadata"]["name"]: True for item in items}}
    versions = [
        {name: value for name, value in version.items() if name != "schema"}
        for version in ours["spec"]["versions"]
    ]
    return {**ours, "spec": {**ours["spec"], "versions": versions}}
