"""kill -9 of the hub and of the store server: what was acknowledged as durable is in the bucket.

A hub that merges, cuts fulls, drills and cleans up within seconds ships to a SeaweedFS; in every
round the hub, the server or both are killed at random moments, the server is started again on its
directory, and so is the hub; in every few rounds the hub's directory is destroyed and restored from
the bucket.

The server may lose nothing that it acknowledged: it hands every object to the operating system
before it answers, and a kill leaves that alone (it fsyncs nothing: power loss is the server's own
durability, and no test of ours). So HEAD must be there after every kill and never go back, and a
round in which it is not fails.
"""

import asyncio
import contextlib
import os
import random
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hub.clock import SystemClock
from hub.store import create_hub_key, load_hub_key
from snapshot.catalog import load_catalog
from snapshot.head import Head, decode_head
from snapshot.layout import HEAD
from snapshot.remote import Remote, open_remote
from snapshot.restore import restore
from snapshot.verify import verify
from tests.fault.hub_load import WRITERS, Load
from tests.hubs import Api, HubProcess
from tests.seaweed import Seaweed, seaweed

ROUNDS, SOAK_ROUNDS = 6, 500
_EXIT_REMOTE = 6


@dataclass(slots=True)
class Rig:
    """One hub's directory, its prefix and the server, and what was seen of HEAD."""

    directory: Path
    port: int
    server: Seaweed
    chance: random.Random
    load: Load
    prefix: str = field(default_factory=lambda: secrets.token_hex(6))
    lives: int = 0
    head: Head | None = None
    levels: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    _hub: HubProcess | None = None

    @property
    def url(self) -> str:
        return f"{self.server.url(f'hubs/{self.prefix}')}&timeout=1&attempts=1"

    @property
    def key_file(self) -> Path:
        return self.directory / "hub.key"

    @property
    def hub(self) -> HubProcess:
        if self._hub is None:
            flags = ("--key-file", str(self.key_file), "--object-store", self.url)
            place = self.directory / f"data-{self.lives}"
            program = "tests.fault.hurried_hub"
            self._hub = HubProcess(place, self.port, *flags, program=program)
            self._hub.log = self.directory / "hub.log"
        return self._hub

    @contextlib.contextmanager
    def remote(self) -> Iterator[Remote]:
        remote = open_remote(self.url)
        try:
            yield remote
        finally:
            remote.close()

    def look(self) -> Head:
        """Read HEAD, which is there and has not gone back."""
        with self.remote() as remote:
            head = decode_head(remote.get(HEAD).data)
        if self.head is not None:
            before, now = self.head, head
            assert now.hub_id == before.hub_id
            assert (now.epoch, now.last_seq) >= (before.epoch, before.last_seq)
            assert (now.rev, now.horizon) >= (before.rev, before.horizon) or now.fork != before.fork
            assert now.reserved_rev >= before.reserved_rev
        self.levels.update({ref.level for ref in head.segments})
        self.head = head
        return head

    def destroy_and_restore(self) -> int:
        """Lose the directory, and build another from the bucket; return its revision."""
        before = self.look()
        shutil.rmtree(self.hub.data_dir)
        self.lives, self._hub = self.lives + 1, None
        key = load_hub_key(self.key_file)
        with self.remote() as remote:
            done = restore(remote, key, self.hub.data_dir, clock=SystemClock())
        # a request that the dead hub had sent may have been done between two looks
        head = before if done.revision == before.rev else self.look()
        assert (done.revision, done.objects) == (head.rev, head.objects)
        assert (done.state_hash, done.hub_id) == (head.state_hash, head.hub_id)
        assert not done.damaged
        return done.revision

    def verify(self) -> None:
        """Rebuild the state from the bucket, every segment read, and look at what it holds."""
        key, head = load_hub_key(self.key_file), self.look()
        with self.remote() as remote:
            done = verify(remote, key, clock=SystemClock(), scratch=self.directory, deep=True)
            catalog = load_catalog(remote, head, key)
        assert (done.revision, done.objects, done.damaged) == (head.rev, head.objects, ())
        self.levels.update({ref.level for ref in catalog.segments})


@pytest.fixture
def rig(tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    with seaweed() as server:
        for name, value in server.environ.items():
            monkeypatch.setenv(name, value)
        seed = int(os.environ.get("HUBLET_SEED", "11"))
        rig = Rig(tmp_path, free_port, server, random.Random(seed), Load(seed, durable=0.9))
        create_hub_key(rig.key_file, token=SystemClock().token)
        try:
            yield rig
        finally:
            rig.hub.__exit__()


async def live_and_die(rig: Rig, victims: str) -> None:
    """Write, and kill what is to be killed; the hub is dead and the server up at the end."""
    load, chance = rig.load, rig.chance
    apis = [Api.from_kubeconfig(rig.hub.kubeconfig) for _ in range(4)]
    try:
        async with asyncio.TaskGroup() as group:
            try:
                for writer in range(WRITERS):
                    group.create_task(load.write(apis[writer % len(apis)], writer))
                await load.more(chance.randrange(20, 250))
                await a_moment(chance)
                if victims != "hub":
                    rig.server.kill()
                    await load.more(chance.randrange(1, 60))  # without a bucket
                if victims == "store, back before the hub dies":
                    await asyncio.to_thread(rig.server.start)
                    await load.more(chance.randrange(20, 250))
                    await a_moment(chance)
            finally:
                rig.hub.kill()
    finally:
        for api in apis:
            await api.close()


async def a_moment(chance: random.Random) -> None:
    """Wait for something that does not come, for a random part of a shipping round or a merge."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), chance.uniform(0.0, 0.3))


def start_again(rig: Rig, victims: str) -> None:
    """Start the hub, and the server where it is dead; without it the hub must not start."""
    if victims == "both":
        if rig.chance.random() < 0.3:
            rig.hub.spawn()
            assert rig.hub.wait() == _EXIT_REMOTE
            rig.counts["starts refused"] += 1
        rig.server.start()
    assert rig.look().rev >= rig.load.highest_durable


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_kill_9_of_hub_and_store_server_loses_no_durable_write(
    rig: Rig, is_soak: bool
) -> None:
    rounds, load, chance = SOAK_ROUNDS if is_soak else ROUNDS, rig.load, rig.chance
    rig.hub.start()
    for round_ in range(rounds):
        victims = chance.choice(["hub", "both", "store, back before the hub dies"])
        rig.counts[victims] += 1
        await live_and_die(rig, victims)
        start_again(rig, victims)
        is_restored = round_ % 3 == 1
        shipped = rig.destroy_and_restore() if is_restored else 0
        if round_ % 5 == 3:
            rig.verify()
        load.begin(0)
        rig.hub.start()
        assert f"({'restored' if is_restored else 'continue'} start" in rig.hub.greeting
        api = Api.from_kubeconfig(rig.hub.kubeconfig)
        try:
            if is_restored:
                await load.check_restored(api, shipped, set())
            else:
                await load.check(api)
        finally:
            await api.close()
    assert rig.hub.stop() == 0
    assert rig.look().released
    rig.verify()
    head = rig.look()
    told = ", ".join(f"{name} {count}" for name, count in sorted(rig.counts.items()))
    print(
        f"{rounds} rounds ({told}), {rig.lives} restores: {load.acknowledged} acknowledged,"
        f" {load.durable} of them durable, 0 of these lost; {load.late} not durable in time,"
        f" {load.landed} committed but not said, {load.lost} plain ones not shipped when the"
        f" directory went; levels seen {dict(rig.levels)}; in the end epoch {head.epoch},"
        f" position {head.seq}, cleaned up to {head.horizon}, {len(load.slots)} objects tracked"
    )
    assert {"full", "d0", "d1"} <= set(rig.levels)
    assert not is_soak or ("d2" in rig.levels and head.horizon)
