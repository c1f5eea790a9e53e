"""kill -9 under load: every acknowledged write is there, and the file agrees with itself."""

import json
import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hub.store import Op, Revision, Store, encode_key
from hub.store.log import entries
from tests.fault.kill_writer import TASKS
from tests.unit.store.given import hub_key, kill, open_store

ROUNDS, SOAK_ROUNDS = 30, 300
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Ack:
    """An acknowledged durable or volatile write."""

    op: Op
    name: str
    number: int
    revision: int


@dataclass(slots=True)
class Tally:
    """What the rounds have seen."""

    acknowledged: int = 0
    unacknowledged: int = 0
    killed_at_start: int = 0
    last: dict[str, Ack] = field(default_factory=dict)
    highest: int = 0


def run_and_kill(path: Path, seed: int, lines: int) -> list[str]:
    """Let a writer say `lines` lines, kill it, and return all it had said."""
    command = [sys.executable, "-m", "tests.fault.kill_writer", str(path), str(seed)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, bufsize=0) as writer:
        assert writer.stdout is not None
        said = b""
        while said.count(b"\n") < lines:
            chunk = writer.stdout.read(4096)
            assert chunk, "the writer ended by itself"
            said += chunk
        writer.kill()
        said += writer.stdout.read()
    return said.decode().splitlines() if said.endswith(b"\n") else said.decode().splitlines()[:-1]


def acks_of(said: list[str]) -> list[Ack]:
    words = [line.split() for line in said]
    return [
        Ack(Op[op], name, int(number), int(revision))
        for op, name, number, revision in (each for each in words if len(each) == 4)
    ]


def check_objects(store: Store, tally: Tally) -> None:
    """Each object is as last acknowledged, or newer by what was committed but not said."""
    for number in range(TASKS):
        name = f"{number:03}"
        ack = tally.last.get(name)
        resource = "events" if number % 6 == 0 else "widgets"
        stored = store.get(encode_key(resource, "one", name))
        if ack is None:
            continue
        if stored is None:
            newer = ack.op is not Op.DELETE
            assert not newer or _deleted_later(store, ack), f"{ack} is lost"
            tally.unacknowledged += newer
            continue
        found = json.loads(store.read(stored))
        assert found["rv"] == str(stored.revision)
        assert stored.revision >= ack.revision, f"{ack} is lost, found {stored.revision}"
        assert found["number"] >= ack.number
        if stored.revision == ack.revision:
            assert (found["number"], ack.op is Op.DELETE) == (ack.number, False)
        tally.unacknowledged += stored.revision > ack.revision


def check_log(store: Store, acks: list[Ack]) -> None:
    """Every acknowledged durable write above the compaction stands in the log."""
    env = store._shared.env
    with env.read() as txn:
        logged = {entry.revision: entry for entry in entries(txn, env, after=0)}
    log_after = store.stats().log_after
    for ack in acks:
        if ack.revision <= log_after or int(ack.name) % 6 == 0:
            continue
        entry = logged[Revision(ack.revision)]
        assert (entry.op, entry.key) == (ack.op, encode_key("widgets", "one", ack.name))


def _deleted_later(store: Store, ack: Ack) -> bool:
    """Whether the log tells of a deletion that was never acknowledged; events are never deleted."""
    if int(ack.name) % 6 == 0:
        return False
    key = encode_key("widgets", "one", ack.name)
    changes = store.changes(Revision(max(ack.revision, store.compacted)), key)
    return bool(changes) and changes[-1].op is Op.DELETE


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_kill_9_loses_no_acknowledged_write(tmp_path: Path, is_soak: bool) -> None:
    path = tmp_path / "data"
    hub_key(path)
    chance = random.Random(20)
    tally = Tally()
    for round_ in range(SOAK_ROUNDS if is_soak else ROUNDS):
        lines = 1 if round_ == 0 else chance.choice((1, 2, 3, *(chance.randrange(2000),) * 7))
        said = run_and_kill(path, round_, max(lines, 1))
        acks = acks_of(said)
        assert all(ack.revision > tally.highest for ack in acks)
        for ack in acks:
            tally.last[ack.name] = ack
        tally.highest = max((ack.revision for ack in acks), default=tally.highest)
        tally.acknowledged += len(acks)
        tally.killed_at_start += not acks
        store = open_store(path)
        assert store.revision >= tally.highest
        assert store.verify() == store.position
        check_objects(store, tally)
        check_log(store, acks)
        kill(store)
    assert tally.acknowledged > 500
    print(tally.acknowledged, "acknowledged,", tally.unacknowledged, "committed but not said")
