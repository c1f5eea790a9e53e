"""kill -9 of a whole hub under load: nothing acknowledged is lost, nothing is handed out twice."""

import asyncio
import contextlib
import random
import shutil
import statistics
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner

from hub.clock import SystemClock
from hub.store import load_hub_key
from snapshot.head import Head, decode_head
from snapshot.layout import HEAD
from snapshot.remote.file import FileRemote
from snapshot.verify import verify
from tests.fault.hub_load import COLLECTIONS, WRITERS, Follower, Load, body_of
from tests.hubs import Api, HubProcess
from tools.restore import cli

ROUNDS, SOAK_ROUNDS = {True: 20, False: 10}, {True: 200, False: 100}
RESTORES, SOAK_RESTORES = 2, 12


@dataclass(frozen=True, slots=True)
class Place:
    """Where a hub and its bucket lie."""

    directory: Path
    port: int
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    """Ends the hubs."""

    @property
    def bucket(self) -> Path:
        return self.directory / "bucket"

    @property
    def key_file(self) -> Path:
        return self.directory / "hub.key"

    def hub(self, name: str, *, is_shipping: bool = True) -> HubProcess:
        flags = ["--key-file", str(self.key_file)]
        if is_shipping:
            flags += ["--object-store", self.bucket.as_uri()]
        hub = HubProcess(self.directory / name, self.port, *flags)
        self.stack.push(hub.__exit__)
        return hub

    def head(self) -> Head:
        return decode_head((self.bucket / HEAD).read_bytes())

    def restore(self, name: str) -> None:
        options = ["--from", self.bucket.as_uri(), "--key-file", str(self.key_file)]
        target = self.directory / name
        done = CliRunner().invoke(cli, ["restore", *options, "--into", str(target)])
        assert done.exit_code == 0, done.output

    def verify(self, head: Head) -> None:
        """Rebuild the state from the bucket, and compare it with what HEAD promises."""
        key = load_hub_key(self.key_file)
        remote = FileRemote(self.bucket)
        done = verify(remote, key, clock=SystemClock(), scratch=self.directory, deep=True)
        assert (done.revision, done.objects) == (head.rev, head.objects)


@pytest.fixture
def place(tmp_path: Path, free_port: int) -> Iterator[Place]:
    place = Place(tmp_path, free_port)
    with place.stack:
        yield place


@contextlib.asynccontextmanager
async def clients(hub: HubProcess, count: int) -> AsyncIterator[list[Api]]:
    """Connect several times as the administrator."""
    apis = [Api.from_kubeconfig(hub.kubeconfig) for _ in range(count)]
    try:
        yield apis
    finally:
        for api in apis:
            await api.close()


@contextlib.contextmanager
def killed(hub: HubProcess) -> Iterator[None]:
    """Kill the hub at the end of the block, whatever happens in it."""
    try:
        yield
    finally:
        hub.kill()


def kill_while_starting(hub: HubProcess, after_s: float) -> None:
    hub.spawn()
    process = hub._process
    assert process is not None
    with killed(hub), pytest.raises(subprocess.TimeoutExpired):
        process.wait(after_s)


async def live_and_die(
    hub: HubProcess, load: Load, followers: list[Follower], mark: str, *, is_quiet: bool = False
) -> None:
    """Catch up with every watch, check it, write until it is enough, and kill.

    `is_quiet`: the last that the hub does is to renew Leases, not to write.
    """
    async with clients(hub, 4) as (first, *others), asyncio.TaskGroup() as group:
        with killed(hub):
            for follower in followers:
                group.create_task(follower.follow(first, mark))
            for collection in COLLECTIONS:
                await first.create(collection, body_of(mark, 0))
            for follower in followers:
                async with asyncio.timeout(20):
                    await follower.caught_up()
                follower.check(load.slots)
            writers = [
                group.create_task(load.write(others[writer % len(others)], writer))
                for writer in range(WRITERS)
            ]
            await load.enough()
            if is_quiet:
                load.is_over = True
                await asyncio.wait(writers)
                await load.renew(first)


async def followers_from_now(api: Api) -> list[Follower]:
    """Watch from what there is now."""
    found = []
    for collection in COLLECTIONS:
        revision = (await api.get(collection))["metadata"]["resourceVersion"]
        found.append(Follower(collection, int(revision)))
    return found


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("is_shipping", [True, False])
async def test_kill_9_of_a_hub_under_load_loses_no_acknowledged_write(
    place: Place, is_soak: bool, is_shipping: bool
) -> None:
    """With and without an object store: revisions are reserved in both places."""
    rounds = (SOAK_ROUNDS if is_soak else ROUNDS)[is_shipping]
    chance, load = random.Random(9), Load(9)
    hub = place.hub("data", is_shipping=is_shipping)
    followers: list[Follower] = []
    starts: list[float] = []
    killed_early = 0
    for round_ in range(rounds):
        if round_ and chance.random() < 0.3:
            kill_while_starting(hub, chance.uniform(0.2, 1.0))
            killed_early += 1
        starts.append(hub.start())
        expected = ("continue" if round_ else "empty") if is_shipping else "local"
        assert f"({expected} start" in hub.greeting
        load.begin(chance.randrange(20, 400))
        async with clients(hub, 1) as (api,):
            await load.check(api)
            followers = followers or await followers_from_now(api)
        await live_and_die(hub, load, followers, f"s-{round_}", is_quiet=round_ % 3 == 1)
    starts.append(hub.start())
    load.begin(0)
    async with clients(hub, 1) as (api,):
        await load.check(api)
    assert hub.stop() == 0
    if is_shipping:
        head = place.head()
        assert head.released
        place.verify(head)
    assert load.acknowledged > 20 * rounds
    print(
        f"{rounds} rounds, {killed_early} of them killed while starting too:"
        f" {load.acknowledged} acknowledged, {load.landed} committed but not said,"
        f" {load.renewed} renewals, {len(load.slots)} objects tracked,"
        f" {sum(len(each.events) for each in followers)} events, revision {load.highest},"
        f" starts {min(starts):.2f}/{statistics.median(starts):.2f}/{max(starts):.2f} s"
    )


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_a_hub_killed_and_deleted_comes_back_with_all_that_was_shipped(
    place: Place, is_soak: bool
) -> None:
    restores = SOAK_RESTORES if is_soak else RESTORES
    chance, load, hub = random.Random(5), Load(5), place.hub("data-0")
    followers: list[Follower] = []
    hub.start()
    for life in range(1, restores + 1):
        load.begin(chance.randrange(100, 500))
        async with clients(hub, 1) as (api,):
            followers = await followers_from_now(api)
        await live_and_die(hub, load, followers, f"s-{life}")
        head = place.head()
        shutil.rmtree(hub.data_dir)
        place.restore(f"data-{life}")
        hub = place.hub(f"data-{life}")
        hub.start()
        assert "(restored start" in hub.greeting
        async with clients(hub, 1) as (api,):
            gone = set().union(*(each.gone(head.rev) for each in followers))
            await load.check_restored(api, head.rev, gone)
            for follower in followers:
                await expect_410(api, follower.collection, follower.since)
                await expect_410(api, follower.collection, head.rev)
                now = (await api.get(follower.collection))["metadata"]["resourceVersion"]
                assert int(now) > load.highest
    load.begin(20)
    await live_and_die(hub, load, [], "s-last")
    print(
        f"{restores} restores: {load.acknowledged} acknowledged, {load.lost} of them not shipped"
        f" when the directory went, revision {load.highest}, epoch {place.head().epoch}"
    )


async def expect_410(api: Api, collection: str, revision: int) -> None:
    """A watch from before the restore ends in the stream, as reflectors expect it."""
    async with api.watch(f"{collection}?watch=1&resourceVersion={revision}") as watch:
        assert watch.status == 200
        event = await watch.next()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410), event
        assert event["object"]["reason"] == "Expired"
