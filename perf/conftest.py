"""What the micro benchmarks share: an event loop, a filled store, a whole hub on that loop."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hub.clock import SystemClock
from hub.config import Config
from hub.http.client import Client
from hub.server import Started, run_hub
from hub.store import Store, load_hub_key
from perf.hub import Site, make_site

CLUSTERS = 300


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that a benchmark drives by hand: pytest-benchmark calls plain functions."""
    with asyncio.Runner() as runner:
        yield runner.get_loop()


@pytest.fixture(scope="module")
def site(loop: asyncio.AbstractEventLoop, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A hub's directory with a fleet, closed."""
    root: Path = tmp_path_factory.mktemp("site")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return loop.run_until_complete(make_site(root, port, CLUSTERS))


@pytest.fixture(scope="module")
def store(loop: asyncio.AbstractEventLoop, site: Site) -> Iterator[Store]:
    """The fleet's store, open on the loop."""
    key = load_hub_key(site.key_file, outside=site.data_dir)
    opened = Store.open(site.store_dir, hub_key=key, clock=SystemClock(), loop=loop)
    yield opened
    loop.run_until_complete(opened.close())


@pytest.fixture(scope="module")
def admin(loop: asyncio.AbstractEventLoop, site: Site) -> Iterator[Client]:
    """A client of a whole hub that runs on the same loop, over loopback and mutual TLS."""
    stop, started = asyncio.Event(), asyncio.Event()

    def note(_: Started) -> None:
        started.set()

    config = Config(data_dir=site.data_dir, key_file=site.key_file, listen=f"127.0.0.1:{site.port}")
    running = loop.create_task(run_hub(config, SystemClock(), stop=stop, on_started=note))

    async def connect() -> Client:
        await asyncio.wait(
            (running, asyncio.ensure_future(started.wait())), return_when=asyncio.FIRST_COMPLETED
        )
        if running.done():
            await running  # it ended before it started: show why
        return site.admin()

    async def end(client: Client) -> None:
        await client.close()
        stop.set()
        await running

    client = loop.run_until_complete(connect())
    yield client
    loop.run_until_complete(end(client))
