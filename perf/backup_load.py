"""Requests and memory, watched while a full is taken."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from hub.http.client import Client
from hub.http.tls import client_context
from perf.machine import usage
from tools.kubeconfig import read_kubeconfig
from tools.simulate.process import HubProcess

_EVERY_S = 0.01
_SAMPLE_S = 0.02


class Load:
    """Requests at a steady pace, a read and a durable write in turn, and how long each took."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._now: list[float] | None = None
        self.without: list[float] = []
        """Milliseconds of the requests sent between fulls."""
        self.during: list[float] = []
        """Milliseconds of those sent while one was taken."""

    @classmethod
    @asynccontextmanager
    async def on(cls, hub: HubProcess) -> AsyncIterator[Self]:
        """Send requests for the length of the block."""
        who = read_kubeconfig(hub.kubeconfig)
        tls = client_context(who.ca_pem, who.cert_pem, who.key_pem)
        async with Client(who.host, who.port, tls) as client, asyncio.TaskGroup() as group:
            load = cls(client)
            sending = group.create_task(load._send(group))
            yield load
            sending.cancel()

    async def quiet(self, seconds: float) -> None:
        """Let requests count as those between fulls for a while."""
        self._now = self.without
        await asyncio.sleep(seconds)
        self._now = None

    async def within(self, full: Awaitable[None]) -> None:
        """Let requests count as those during a full until it is done."""
        self._now = self.during
        await full
        self._now = None

    async def _send(self, group: asyncio.TaskGroup) -> None:
        number, due = 0, time.monotonic()
        while True:
            group.create_task(self._one(number, self._now))
            number, due = number + 1, due + _EVERY_S
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def _one(self, number: int, into: list[float] | None) -> None:
        began = time.monotonic()
        if number % 2:
            path = "/apis/cluster.open-cluster-management.io/v1/managedclusters/sim-0001"
            answer = await self._client.request("GET", path)
        else:
            path = "/api/v1/namespaces/default/configmaps"
            body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"load-"}}'
            headers = [("content-type", "application/json")]
            answer = await self._client.request("POST", path, headers, body=body)
        if answer.status >= 300:
            raise ValueError(f"{path}: {answer.status} {answer.body[:200]!r}")
        if into is not None:
            into.append((time.monotonic() - began) * 1000)


class Memory:
    """Samples a process's memory in a thread; `grown_*` is the most above the beginning."""

    def __init__(self, pid: int) -> None:
        self._pid, self._stop = pid, threading.Event()
        first = usage(pid)
        self._rss = self._most_rss = first.rss_mib
        self._anon = self._most_anon = first.anon_mib
        self._thread = threading.Thread(target=self._sample, daemon=True)

    @property
    def grown_rss_mib(self) -> float:
        """By how much resident memory grew at most."""
        return self._most_rss - self._rss

    @property
    def grown_anon_mib(self) -> float:
        """The same without file pages."""
        return self._most_anon - self._anon

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(_SAMPLE_S):
            now = usage(self._pid)
            self._most_rss = max(self._most_rss, now.rss_mib)
            self._most_anon = max(self._most_anon, now.anon_mib)
