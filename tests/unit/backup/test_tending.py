"""Tending beside shipping: a real store and chain, a bucket in memory whose puts can be held."""

import asyncio
import datetime as dt
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from hub.backup.lane import Lane
from hub.backup.tend import Tender, TendPolicy
from hub.config import Config
from hub.store import FullExport, Op, Record, Store, create_hub_key
from snapshot.chain import Chain
from snapshot.errors import Fenced, RemoteUnavailable
from snapshot.policy import Policy
from snapshot.remote import Source
from snapshot.restore import needed_bytes
from snapshot.ship import Shipped, ship
from snapshot.verify import verify
from tests.fault.memory_remote import MemoryRemote
from tests.unit.snapshot.support import KEY, StillClock, take, write

T = TypeVar("T")
PATIENCE_S = 30


class Bucket(MemoryRemote):
    """Puts of names with a marked part are held until they are let go, or fail."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, Gate] = {}
        self.faults: dict[str, list[Exception]] = {}
        self.puts: list[str] = []
        self.deletes: list[str] = []

    def hold(self, part: str) -> "Gate":
        """Hold the next put of a name with this part."""
        self.held[part] = Gate()
        return self.held[part]

    def put_if_absent(self, name: str, source: Source) -> str:
        self.puts.append(name)
        for part in [each for each in self.held if each in name]:
            self.held.pop(part).wait()
        for part, faults in self.faults.items():
            if part in name and faults:
                raise faults.pop(0)
        return super().put_if_absent(name, source)

    def delete(self, name: str) -> None:
        self.deletes.append(name)
        for part in [each for each in self.held if each == f"delete {name}"]:
            self.held.pop(part).wait()
        super().delete(name)

    def damage(self, name: str) -> None:
        data = bytearray(self.get(name).data)
        data[len(data) // 2] ^= 1
        self.delete(name)
        MemoryRemote.put_if_absent(self, name, bytes(data))


class Gate:
    """A place in a thread where it stops until it is let go."""

    def __init__(self) -> None:
        self._reached, self._open = threading.Event(), threading.Event()

    def wait(self) -> None:
        self._reached.set()
        assert self._open.wait(PATIENCE_S)

    async def reached(self) -> None:
        assert await asyncio.to_thread(self._reached.wait, PATIENCE_S)

    def open(self) -> None:
        self._open.set()


@dataclass
class Exports:
    """The store as an exporter that remembers its exports; `gate` stops the reading of the next."""

    store: Store
    begun: list[FullExport] = field(default_factory=list)
    gate: Gate | None = None
    read_to_the_end: int = 0

    def export_full(self) -> FullExport:
        export = self.store.export_full()
        self.begun.append(export)
        return replace(export, records=self._read(export.records, self.gate))

    def export_delta(self, after: int) -> object:
        return self.store.export_delta(after)  # type: ignore[arg-type]  # passed through

    def _read(self, records: Iterator[Record], gate: Gate | None) -> Iterator[Record]:
        for number, record in enumerate(records):
            if gate is not None and number == 1:
                gate.wait()
            yield record
        self.read_to_the_end += 1

    def are_closed(self) -> bool:
        """Whether no export holds a transaction: whatever is asked of one fails."""
        for export in self.begun:
            try:
                export.delta(export.position.revision)
            except Exception:  # noqa: BLE001  lmdb's own, which only hub.store may name
                continue
            return False
        return True


@dataclass
class Rig:
    """A tender, and the shipping lane beside it."""

    store: Store
    exports: Exports
    chain: Chain
    remote: Bucket
    clock: StillClock
    tender: Tender
    lane: Lane
    directory: Path
    failed: list[tuple[str, Exception]]
    shipped: list[Shipped]

    async def put(self, *names: str) -> None:
        for name in names:
            found = self.store.get(write(Op.CREATE, name).key)
            op = Op.UPDATE if found else Op.CREATE
            await self.store.commit(write(op, name, "x", expect=found.revision if found else None))

    async def ship(self, *names: str) -> None:
        """Change objects, and ship in the lane of shipping."""
        await self.put(*names)
        await self.lane.run(ship, self.store, self.chain, self.directory / "ship-spool")

    def due_later(self, *names: str) -> None:
        """Let what else is due at the first look wait."""
        now = self.clock.monotonic_s()
        self.tender._next_s |= dict.fromkeys(names, now + 1e9)

    def whole(self) -> int:
        """Return the revision that a restore of the newest state gives, built and compared."""
        return verify(self.remote, KEY, clock=self.clock, deep=True).revision


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    clock, remote = StillClock(), Bucket()
    directory = tmp_path / "data"
    store = Store.open(directory / "store", hub_key=KEY, clock=clock, linger_s=0.0)
    chain = Chain(remote, KEY, clock=clock)
    take(chain)
    lane, exports = Lane("ship"), Exports(store)
    key_file = tmp_path / "hub.key"
    create_hub_key(key_file, token=lambda size: bytes(range(size)))
    tender = Tender(
        exports,  # type: ignore[arg-type]  # the part of a store that it uses
        chain,
        clock,
        Config(data_dir=directory, key_file=key_file),
        commit=lane.run,
        policy=TendPolicy(chain=Policy(max_d0=4)),
    )
    failed: list[tuple[str, Exception]] = []
    shipped: list[Shipped] = []
    tender.on_failed = lambda name, error: failed.append((name, error))
    tender.on_shipped = shipped.append
    made = Rig(store, exports, chain, remote, clock, tender, lane, directory, failed, shipped)
    made.due_later("probe", "list", "drill", "clean")
    await made.ship("a", "b", "secret")
    await made.ship("a")
    yield made
    await asyncio.to_thread(tender.close)
    await asyncio.to_thread(lane.close)
    await store.close()


async def test_deltas_go_on_while_a_full_is_put(rig: Rig) -> None:
    gate = rig.remote.hold("/full/")
    rig.tender.ask_full()
    looking = asyncio.create_task(rig.tender.look())
    await gate.reached()
    at = rig.chain.head.seq
    await rig.ship("b")
    await rig.ship("c")
    assert rig.chain.head.seq == at + 2
    gate.open()
    await looking
    head = rig.chain.head
    assert head.full is not None
    assert (head.full.seq, head.full.is_verified) == (at, True)
    assert [ref.seq for ref in head.tail] == [at + 1, at + 2]
    assert rig.whole() == rig.store.position.revision
    assert rig.failed == []
    assert rig.tender.last_full is not None
    assert rig.tender.last_full.name == head.full.name


async def test_a_full_ships_what_it_stands_on_first(rig: Rig) -> None:
    await rig.put("late")
    rig.tender.ask_full()
    await rig.tender.look()
    assert [each.level for each in rig.shipped] == ["d0", "full"]
    assert (rig.chain.head.tail, rig.whole()) == ((), rig.store.position.revision)


async def test_deltas_go_on_while_others_are_merged(rig: Rig) -> None:
    for name in ("b", "c", "d"):
        await rig.ship(name)
    gate = rig.remote.hold("/d1/")
    looking = asyncio.create_task(rig.tender.look())
    await gate.reached()
    await rig.ship("e")
    await rig.ship("a")
    gate.open()
    await looking
    assert [ref.level for ref in rig.chain.head.tail] == ["d1", "d0", "d0"]
    assert rig.whole() == rig.store.position.revision
    assert rig.failed == []


async def test_a_full_that_fails_is_told_and_tried_again_after_a_pause(rig: Rig) -> None:
    rig.remote.faults["/full/"] = [RemoteUnavailable("no answer", op="put")]
    base = rig.chain.head.full
    rig.tender.ask_full()
    await rig.tender.look()
    assert [name for name, _ in rig.failed] == ["full"]
    assert rig.tender.tended.trouble == "full: put: no answer"
    await asyncio.to_thread(rig.tender._lane.close)
    assert rig.exports.are_closed()
    rig.tender._lane = Lane("tend")
    tried = len(rig.remote.puts)
    rig.clock.pass_s(59)
    await rig.tender.look()
    assert len(rig.remote.puts) == tried
    assert rig.tender.tended.trouble == "full: put: no answer"
    assert rig.chain.head.full == base
    rig.clock.pass_s(2)
    await rig.tender.look()
    assert rig.chain.head.full != base
    assert rig.tender.tended.trouble == ""


async def test_a_damaged_part_of_a_merge_asks_for_a_full(rig: Rig) -> None:
    for name in ("b", "c", "d"):
        await rig.ship(name)
    rig.remote.damage(rig.chain.head.tail[1].name)
    await rig.tender.look()
    assert [name for name, _ in rig.failed] == ["merge"]
    assert rig.chain.head.tail == ()
    assert rig.whole() == rig.store.position.revision


async def test_a_damaged_full_is_replaced_though_nothing_has_changed(rig: Rig) -> None:
    rig.tender.ask_full()
    await rig.tender.look()
    first = rig.chain.head.full
    assert first is not None
    rig.remote.damage(first.name)
    rig.tender._next_s["drill"] = 0.0
    await rig.tender.look()
    assert rig.tender.tended.drill is not None
    assert first.name in rig.tender.tended.drill.problem
    await rig.tender.look()
    assert rig.chain.head.full != first
    assert verify(rig.remote, KEY, clock=rig.clock).damaged == ()


async def test_a_full_that_is_not_read_back_as_put_is_told_and_put_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [False, True]
    monkeypatch.setattr("hub.backup.tend.read_back", lambda *_: answers.pop(0))
    rig.tender.ask_full()
    await rig.tender.look()
    first = rig.chain.head.full
    assert [name for name, _ in rig.failed] == ["full"]
    rig.clock.pass_s(61)
    await rig.tender.look()
    assert rig.chain.head.full != first
    assert rig.chain.head.full is not None
    assert rig.chain.head.full.is_verified


async def test_another_writer_ends_it(rig: Rig) -> None:
    other = Chain(rig.remote, KEY, clock=StillClock("other"))
    take(other, "b")
    rig.tender.ask_full()
    with pytest.raises(Fenced):
        await rig.tender.look()
    await asyncio.to_thread(rig.tender._lane.close)
    assert rig.exports.are_closed()


async def test_a_drill_proves_state_and_key(rig: Rig) -> None:
    rig.tender._next_s["drill"] = 0.0
    await rig.tender.look()
    drill = rig.tender.tended.drill
    assert drill is not None
    assert (drill.problem, drill.revision) == ("", rig.chain.head.rev)
    assert rig.tender.tended.key_proven == drill.at


async def test_a_drill_tells_a_key_file_that_is_another(rig: Rig) -> None:
    rig.tender._config = replace(rig.tender._config, key_file=rig.directory.parent / "other.key")
    create_hub_key(rig.directory.parent / "other.key", token=bytes)
    rig.tender._next_s["drill"] = 0.0
    await rig.tender.look()
    assert rig.tender.tended.drill is not None
    assert "the key at hand is" in rig.tender.tended.drill.problem
    assert rig.tender.tended.key_proven is None


async def test_a_drill_tells_that_the_key_file_is_gone_and_the_hub_goes_on(rig: Rig) -> None:
    (rig.directory.parent / "hub.key").unlink()
    rig.tender._next_s["drill"] = 0.0
    await rig.tender.look()
    assert rig.tender.tended.drill is not None
    assert "does not exist" in rig.tender.tended.drill.problem


async def test_a_drill_leaves_the_volume_its_room(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is built beside a live one must not take what that one still has to write on."""
    needed = needed_bytes(rig.chain.head)
    free = shutil.disk_usage(rig.directory)._replace(free=2 * needed - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    rig.tender._next_s["drill"] = 0.0
    await rig.tender.look()
    ((name, error),) = rig.failed
    assert (name, isinstance(error, OSError)) == ("drill", True)
    assert rig.tender.tended.drill is None, "nothing is known to be wrong with the bucket"
    assert rig.tender._asked is None


async def test_a_list_check_tells_what_is_missing_and_heals_the_newest_state(rig: Rig) -> None:
    lost = rig.chain.head.tail[0].name
    rig.remote.delete(lost)
    rig.tender._next_s["list"] = 0.0
    await rig.tender.look()
    assert rig.tender.tended.listed is not None
    assert f"first {lost}: missing" in rig.tender.tended.listed.problem
    await rig.tender.look()
    assert rig.chain.head.tail == ()
    assert rig.whole() == rig.store.position.revision


async def test_a_probe_tells_what_the_bucket_enforces(rig: Rig) -> None:
    rig.remote.now = rig.clock.now()
    rig.tender._next_s["probe"] = 0.0
    await rig.tender.look()
    tended = rig.tender.tended
    assert (tended.fencing_level, tended.missing) == (2, ())
    assert tended.clock_offset_s is not None
    assert not rig.chain.looks_first


async def test_on_a_bucket_without_a_fence_head_is_looked_at_before_every_commit(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = rig.remote.put_if_match

    def careless(name: str, source: bytes, *, etag: str) -> str:
        is_there = any(entry.name == name for entry in rig.remote.list(name))
        return real(name, source, etag=rig.remote.get(name).etag if is_there else etag)

    monkeypatch.setattr(rig.remote, "put_if_match", careless)
    rig.tender._next_s["probe"] = 0.0
    await rig.tender.look()
    assert rig.tender.tended.fencing_level == 1
    assert rig.chain.looks_first


async def test_a_clean_up_that_cannot_see_everything_asks_for_no_full(rig: Rig) -> None:
    rig.remote.put_if_absent("pins/torn.json", b"{")
    rig.tender._next_s["clean"] = 0.0
    await rig.tender.look()
    assert [name for name, _ in rig.failed] == ["clean"]
    before = rig.chain.head.full
    await rig.ship("b")
    await rig.tender.look()
    assert rig.chain.head.full == before


@pytest.mark.parametrize("where", ["reading", "putting"])
async def test_it_closes_in_the_middle_of_a_full(rig: Rig, where: str) -> None:
    gate = rig.exports.gate = Gate()
    if where == "putting":
        rig.exports.gate, gate = None, rig.remote.hold("/full/")
    rig.tender.ask_full()
    running = asyncio.create_task(rig.tender.run())
    await gate.reached()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    gate.open()
    await asyncio.to_thread(rig.tender.close)
    assert rig.exports.read_to_the_end == 1, "nobody closed it under its reader"
    assert rig.exports.are_closed()
    assert rig.failed == []
    assert rig.whole() == rig.store.position.revision


async def test_it_closes_in_the_middle_of_a_probe(rig: Rig) -> None:
    """A server may make those who race for one name wait for seconds, one after the other."""
    gate = rig.remote.hold("/create-race-0")
    rig.tender._next_s["probe"] = 0.0
    running = asyncio.create_task(rig.tender.run())
    await gate.reached()
    running.cancel()
    rig.tender.end()
    gate.open()
    await asyncio.to_thread(rig.tender.close)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not any("swap-race" in name for name in rig.remote.puts)


async def test_it_closes_in_the_middle_of_a_clean_up(rig: Rig) -> None:
    """Thousands of objects may be to go; those that are left go the next time."""
    rig.remote.now = rig.clock.now()
    orphans = [f"e00000001/d0/{number}-{number + 1}-00000000.hs" for number in range(50)]
    plan = {"hub_id": "hub", "time": "", "names": orphans}
    rig.remote.put_if_absent("trash/1-0.json", msgspec.json.encode(plan))
    for name in orphans:
        rig.remote.put_if_absent(name, b"orphan")
    rig.remote.now += dt.timedelta(hours=7)
    gate = rig.remote.hold(f"delete {orphans[0]}")
    rig.remote.held |= {f"delete {name}": gate for name in orphans}
    rig.tender._next_s["clean"] = 0.0
    running = asyncio.create_task(rig.tender.look())
    await gate.reached()
    running.cancel()
    rig.tender.end()
    gate.open()
    await asyncio.to_thread(rig.tender.close)
    with pytest.raises(asyncio.CancelledError):
        await running
    deleted = set(orphans) & set(rig.remote.deletes)
    assert 1 <= len(deleted) < 20


async def test_it_closes_while_a_full_begins(rig: Rig) -> None:
    await rig.put("late")
    gate = rig.remote.hold("/d0/")
    rig.tender.ask_full()
    running = asyncio.create_task(rig.tender.run())
    await gate.reached()
    running.cancel()
    gate.open()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert rig.exports.are_closed()
