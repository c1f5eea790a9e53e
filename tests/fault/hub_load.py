"""Load for a hub that is killed under it: writers and watchers that remember what they were told.

Every object has one writer, so what may be found after a crash is known exactly: its last
acknowledged state, or what the one unanswered request would have made of it. Some writes ask to be
durable (`Hublet-Durable: true`): what those were told must be in the bucket. Renewals of Leases are
acknowledged from memory: of them only the revisions count.
"""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.http.client import ConnectionLost
from hub.meta import Obj
from tests.hubs import Answer, Api

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
COLLECTIONS = (CONFIG_MAPS, SECRETS, CLUSTERS)
NUMBER, TEXT = "tests.hublet/number", "tests.hublet/text"
WRITERS, SLOTS = 6, 5
_MOST_CLUSTERS = 400
_DURABLE = ("hublet-durable", "true")
_WITHIN = "?timeout=5s"

Op: TypeAlias = Literal["create", "update", "delete"]


@dataclass(frozen=True, slots=True, order=True)
class State:
    """An object as it was told to us; `number` is ours, drawn anew for every write."""

    revision: int
    uid: str
    number: int


@dataclass(frozen=True, slots=True)
class Ack:
    """An acknowledged write; `state` is what a deletion left behind."""

    op: Op
    state: State


@dataclass(frozen=True, slots=True)
class Seen:
    """An event of a watch."""

    type: str
    name: str
    state: State


@dataclass(slots=True)
class Slot:
    """One object and all that its one writer knows of it."""

    collection: str
    name: str
    state: State | None = None
    tried: tuple[Op, int] | None = None
    """A request without an answer."""
    acks: list[Ack] = field(default_factory=list)
    base: State | None = None
    """What the last restore brought back, before the first of `acks`."""
    durable: int = 0
    """How many of `acks`, counted from the first, are in the bucket: we were told so."""

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.name}"

    @property
    def is_ours(self) -> bool:
        """Whether nobody else writes it; controllers touch clusters."""
        return self.collection != CLUSTERS

    def is_same(self, found: State | None, told: State | None) -> bool:
        """Whether what is found is what we were told."""
        if found is None or told is None:
            return found is told
        if (found.uid, found.number) != (told.uid, told.number):
            return False
        return found.revision == told.revision or (not self.is_ours and found > told)


def state_of(obj: Obj) -> State:
    meta = obj["metadata"]
    annotations = meta.get("annotations", {})
    number = int(annotations.get(NUMBER, -1))
    assert NUMBER not in annotations or annotations[TEXT] == text_of(number), obj
    return State(int(meta["resourceVersion"]), meta["uid"], number)


def body_of(name: str, number: int, revision: int = 0) -> Obj:
    meta = {"name": name, "annotations": {NUMBER: str(number), TEXT: text_of(number)}}
    return {"metadata": {**meta, "resourceVersion": str(revision)} if revision else meta}


def text_of(number: int) -> str:
    """Return the text that goes with a number, so that no byte of it can change unseen."""
    return random.Random(number).randbytes(number % 97).hex()


async def _send(api: Api, slot: Slot, before: State | None) -> Answer:
    """Send the request that `slot.tried` tells."""
    assert slot.tried is not None
    op, number = slot.tried
    if op == "create":
        return await api.call("POST", f"{slot.collection}{_WITHIN}", body_of(slot.name, number))
    if before is not None and op == "update":
        body = body_of(slot.name, number, before.revision)
        return await api.call("PUT", f"{slot.path}{_WITHIN}", body)
    return await api.call("DELETE", f"{slot.path}{_WITHIN}")


class Load:
    """Writers, and the account of what they were told.

    `durable`: the part of the writes that ask to be in the bucket before they are answered, for
    the first half of the writers; the others never ask, and go on while the bucket is away.
    """

    def __init__(self, seed: int, *, durable: float = 0.0) -> None:
        self._chance, self._durable = random.Random(seed), durable
        self._numbers = itertools.count(1)
        self.slots = [
            Slot(collection, f"w-{writer}-{slot}")
            for writer in range(WRITERS)
            for slot in range(SLOTS)
            for collection in (CONFIG_MAPS, SECRETS)
        ]
        self.revisions: set[int] = set()
        """Every revision that the hub ever handed out to us; it repeats none."""
        self.floor = 0
        """The highest of them before this life of the hub."""
        self.acknowledged = self.renewed = self.landed = self.lost = 0
        self.durable = self.late = 0
        """Writes that were in the bucket when they were answered, or not there in time."""
        self.highest_durable = 0
        """The highest revision of the durable ones."""
        self.clusters = 0
        self.is_over = False
        self._wanted = 0
        self._enough = asyncio.Event()

    @property
    def highest(self) -> int:
        return max(self.revisions, default=0)

    def begin(self, wanted: int) -> None:
        """Begin a life of the hub in which `wanted` writes shall be acknowledged."""
        self.floor, self._enough = self.highest, asyncio.Event()
        self.is_over = False
        self._wanted = self.acknowledged + wanted

    async def enough(self) -> None:
        await self._enough.wait()

    async def more(self, wanted: int) -> None:
        """Wait until `wanted` more writes are acknowledged."""
        self._wanted, self._enough = self.acknowledged + wanted, asyncio.Event()
        await self._enough.wait()

    async def write(self, api: Api, writer: int) -> None:
        """Write until the hub is gone, or it is over."""
        mine = [slot for slot in self.slots if slot.name.startswith(f"w-{writer}-")]
        lease = f"w-{writer}"
        durable = self._durable if writer < WRITERS // 2 else 0.0
        try:
            await self._make_lease(api, lease)
            while not self.is_over:
                kind = self._chance.random()
                if kind < 0.1:
                    await self._renew(api, lease)
                    continue
                is_new = kind < 0.15 and self.clusters < _MOST_CLUSTERS
                slot = self._new_cluster(writer) if is_new else self._chance.choice(mine)
                await self._step(api, slot, is_durable=self._chance.random() < durable)
        except ConnectionLost:
            return

    async def renew(self, api: Api) -> None:
        """Renew every Lease: the last revisions handed out are then in memory only.

        Several times, as the next start takes a revision for each Lease before it serves.
        """
        for _ in range(4):
            for writer in range(WRITERS):
                await self._renew(api, f"w-{writer}")

    def _new_cluster(self, writer: int) -> Slot:
        slot = Slot(CLUSTERS, f"c-{writer}-{next(self._numbers)}")
        self.slots.append(slot)
        self.clusters += 1
        return slot

    async def _step(self, api: Api, slot: Slot, *, is_durable: bool) -> None:
        number, before = next(self._numbers), slot.state
        op: Op = "create"
        if before is not None:
            op = "delete" if self._chance.random() < 0.25 else "update"
        slot.tried = (op, number)
        answer = await _send(api.with_headers(_DURABLE) if is_durable else api, slot, before)
        if is_durable and answer.status == 504:
            self.late += 1
            answer = await api.call("GET", slot.path)  # it was made all the same
            assert answer.status == (404 if op == "delete" else 200), (slot, answer.body)
            is_durable = False
        else:
            assert answer.status == (201 if op == "create" else 200), (slot, answer.body)
        slot.tried = None
        slot.state = None if op == "delete" else state_of(answer.obj())
        told = slot.state or before
        assert told is not None
        slot.acks.append(Ack(op, told))
        if slot.state is not None:
            assert slot.state.number == number
            self._handed_out(slot.state.revision)
        if is_durable:
            assert answer.headers["hublet-durable"] == "true"
            slot.durable = len(slot.acks)
            self.durable += 1
            if slot.state is not None:
                self.highest_durable = max(self.highest_durable, slot.state.revision)
        self.acknowledged += 1
        if self.acknowledged >= self._wanted:
            self._enough.set()

    async def _make_lease(self, api: Api, name: str) -> None:
        labels = {CLUSTER_NAME_LABEL: name}
        body: Obj = {"metadata": {"name": name, "labels": labels}, "spec": {}}
        answer = await api.call("POST", LEASES, body)
        assert answer.status in (201, 409), answer.body

    async def _renew(self, api: Api, name: str) -> None:
        second, micro = divmod(next(self._numbers), 1_000_000)
        at = f"2026-01-01T00:00:{second:02}.{micro:06}Z"
        found = await api.patch(f"{LEASES}/{name}", {"spec": {"renewTime": at}})
        assert found["spec"]["renewTime"] == at
        self._handed_out(int(found["metadata"]["resourceVersion"]))
        self.renewed += 1

    def _handed_out(self, revision: int) -> None:
        assert revision > self.floor, f"{revision} is below {self.floor} of an earlier life"
        assert revision not in self.revisions, f"{revision} was handed out twice"
        self.revisions.add(revision)

    # ------------------------------------------------------------ after a crash

    async def check(self, api: Api) -> None:
        """Find every object as last acknowledged, or as the unanswered request made it."""
        found = await read_all(api)
        for slot in self.slots:
            self._settle(slot, found.pop(slot.path, None))
        assert found == {}

    def _settle(self, slot: Slot, found: State | None) -> None:
        if not slot.is_same(found, slot.state):
            assert slot.tried is not None, f"{slot} is lost: found {found}"
            op, number = slot.tried
            if op == "delete":
                assert found is None, f"{slot} was not being changed: found {found}"
            else:
                assert found is not None, f"{slot} is lost"
                assert found.number == number, f"{slot} is lost: found {found}"
                assert found.revision > (slot.state.revision if slot.state else 0)
                assert op == "create" or (slot.state and found.uid == slot.state.uid)
            left = found or slot.state
            if left is not None:
                slot.acks.append(Ack(op, left))
            self.landed += 1
        slot.state, slot.tried = found, None

    async def check_restored(self, api: Api, shipped: int, gone: set[str]) -> None:
        """Find what was shipped, up to a revision, and nothing newer.

        `gone`: uids of objects known to have been deleted at or below it.
        """
        found = await read_all(api)
        for slot in self.slots:
            state = found.pop(slot.path, None)
            _check_shipped(slot, state, shipped)
            _check_durable(slot, state)
            assert state is None or state.uid not in gone, f"{slot} was deleted: found {state}"
            self.lost += sum(
                ack.op != "delete" and ack.state.revision > shipped for ack in slot.acks
            )
            slot.state, slot.tried = state, None
            slot.base, slot.acks, slot.durable = state, [], 0
        assert found == {}


def _check_shipped(slot: Slot, found: State | None, shipped: int) -> None:
    places = [
        place
        for place, ack in enumerate(slot.acks)
        if ack.op != "delete" and ack.state.revision <= shipped
    ]
    later = [ack.op for ack in slot.acks[places[-1] + 1 if places else 0 :]]
    next_op = later[0] if later else slot.tried[0] if slot.tried else None
    last = slot.acks[places[-1]].state if places else slot.base
    if found is None:
        assert last is None or next_op == "delete", f"{slot} is lost, {last} was shipped"
        return
    assert found.revision <= shipped or not slot.is_ours
    if last is None or not slot.is_same(found, last):
        assert slot.tried is not None, f"{slot}: found {found}, shipped was {last}"
        assert found.number == slot.tried[1], f"{slot}: found {found}, shipped was {last}"


def _check_durable(slot: Slot, found: State | None) -> None:
    """Find the last write that was told to be in the bucket, or what came after it."""
    if not slot.durable:
        return
    last, later = slot.acks[slot.durable - 1], slot.acks[slot.durable :]
    ops = [last.op, *(ack.op for ack in later), *(slot.tried[:1] if slot.tried else ())]
    if found is None:
        assert "delete" in ops, f"{slot} is lost, {last} was durable"
    elif last.op == "delete":
        assert found.revision > last.state.revision, f"{slot} came back, {last} was durable"
    else:
        assert found.revision >= last.state.revision, f"{slot} is old, {last} was durable"


async def read_all(api: Api) -> dict[str, State]:
    """List what the writers write, by path."""
    found = {}
    for collection in COLLECTIONS:
        for item in (await api.get(collection))["items"]:
            name = item["metadata"]["name"]
            if name[:2] in ("w-", "c-"):
                found[f"{collection}/{name}"] = state_of(item)
    return found


class Follower:
    """One watch, resumed in every life of the hub from the last event it saw."""

    def __init__(self, collection: str, since: int) -> None:
        self.collection, self.since = collection, since
        self.events: list[Seen] = []
        self._mark, self._marked = "", asyncio.Event()

    async def follow(self, api: Api, mark: str) -> None:
        """Watch until the hub is gone; `caught_up` returns once the object `mark` was seen."""
        self._mark, self._marked = mark, asyncio.Event()
        path = f"{self.collection}?watch=1&resourceVersion={self.since}"
        try:
            async with api.watch(path) as watch:
                assert watch.status == 200
                while True:
                    self._take(await watch.next(timeout_s=60))
        except (ConnectionLost, StopAsyncIteration):
            return

    async def caught_up(self) -> None:
        await self._marked.wait()

    def _take(self, event: Obj) -> None:
        assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
        obj = event["object"]
        seen = Seen(event["type"], obj["metadata"]["name"], state_of(obj))
        assert seen.state.revision > self.since, f"{seen} after {self.since}"
        self.since = seen.state.revision
        self.events.append(seen)
        if seen.name == self._mark:
            self._marked.set()

    def check(self, slots: Iterable[Slot]) -> None:
        """Every acknowledged change was seen once, and all events make up what there is."""
        changes = Counter((e.name, e.state.revision) for e in self.events if e.type != "DELETED")
        deletions = Counter(e.state.uid for e in self.events if e.type == "DELETED")
        final = {e.name: None if e.type == "DELETED" else e.state for e in self.events}
        for slot in slots:
            if slot.collection != self.collection:
                continue
            for ack in slot.acks:
                if ack.op == "delete":
                    assert deletions[ack.state.uid] == 1, f"{slot}: {ack}"
                else:
                    assert changes[slot.name, ack.state.revision] == 1, f"{slot}: {ack}"
            if slot.acks or slot.name in final:
                assert slot.is_same(final.get(slot.name), slot.state), f"{slot}"

    def gone(self, until: int) -> set[str]:
        """Return the uids of what was deleted at or below a revision."""
        return {
            seen.state.uid
            for seen in self.events
            if seen.type == "DELETED" and seen.state.revision <= until
        }
