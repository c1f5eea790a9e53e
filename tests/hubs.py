"""Hubs for tests: in this process (fast, inspectable) and as a subprocess (to be killed).

Both are whole hubs: store, TLS, RBAC, controllers. `Api` is a small client of one identity over the
real wire.
"""

import asyncio
import base64
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import yaml

from hub.backup.pace import PacePolicy
from hub.clock import SystemClock
from hub.config import Config, Http2
from hub.http.client import Client
from hub.http.tls import client_context
from hub.meta import Obj
from hub.meta.codec.json import decode, encode
from hub.server import Started, run_hub

MERGE = "application/merge-patch+json"
ROOT = Path(__file__).resolve().parent.parent


@dataclass(slots=True)
class Answer:
    """A response, its body decoded on demand."""

    status: int
    headers: dict[str, str]
    body: bytes

    def obj(self) -> Obj:
        return decode(self.body)


class Api:
    """One identity's way to a hub: HTTP/2, client certificate or bearer token."""

    def __init__(
        self, client: Client, *, token: str = "", headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        self._client, self._token, self._headers = client, token, tuple(headers)

    def acting_as(self, user: str, *groups: str, extra: Sequence[tuple[str, str]] = ()) -> "Api":
        """The same connection, asking to be somebody else; it needs no closing."""
        named = [("impersonate-user", user), *(("impersonate-group", group) for group in groups)]
        return self.with_headers(*named, *extra)

    def with_headers(self, *headers: tuple[str, str]) -> "Api":
        """The same connection, with more headers on every request; it needs no closing."""
        return Api(self._client, token=self._token, headers=(*self._headers, *headers))

    @classmethod
    def from_kubeconfig(cls, path: Path) -> Self:
        """Use the certificate or token in a kubeconfig."""
        config = yaml.safe_load(path.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        return cls.connect(
            cluster["server"],
            ca=_unbase64(cluster["certificate-authority-data"]),
            cert=_unbase64(user["client-certificate-data"]) if "client-key-data" in user else None,
            key=_unbase64(user["client-key-data"]) if "client-key-data" in user else None,
            token=user.get("token", ""),
        )

    @classmethod
    def connect(
        cls,
        server: str,
        *,
        ca: bytes,
        cert: bytes | None = None,
        key: bytes | None = None,
        token: str = "",
    ) -> Self:
        parts = urlsplit(server)
        assert parts.hostname
        assert parts.port
        return cls(Client(parts.hostname, parts.port, client_context(ca, cert, key)), token=token)

    async def call(
        self,
        method: str,
        path: str,
        body: Obj | bytes | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        """Send one request and return the answer, whatever its status."""
        headers = [("accept", accept), *self._headers]
        if self._token:
            headers.append(("authorization", f"Bearer {self._token}"))
        data = body if isinstance(body, bytes) else b"" if body is None else encode(body)
        if body is not None:
            headers.append(("content-type", content_type))
        answer = await self._client.request(method, path, headers, body=data, timeout_s=20)
        return Answer(answer.status, answer.headers, answer.body)

    async def get(self, path: str) -> Obj:
        """GET, which must succeed."""
        answer = await self.call("GET", path)
        assert answer.status == 200, answer.body
        return answer.obj()

    async def create(self, path: str, obj: Obj) -> Obj:
        """POST, which must succeed."""
        answer = await self.call("POST", path, obj)
        assert answer.status == 201, answer.body
        return answer.obj()

    async def patch(self, path: str, patch: Obj) -> Obj:
        """PATCH (merge), which must succeed."""
        answer = await self.call("PATCH", path, patch, content_type=MERGE)
        assert answer.status == 200, answer.body
        return answer.obj()

    @contextlib.asynccontextmanager
    async def watch(self, path: str) -> AsyncIterator["Watch"]:
        """Open a watch (the path carries its query)."""
        headers = [("accept", "application/json"), *self._headers]
        if self._token:
            headers.append(("authorization", f"Bearer {self._token}"))
        async with self._client.stream("GET", path, headers) as stream:
            yield Watch(stream.status, aiter(stream))

    async def close(self) -> None:
        await self._client.close()


@dataclass(slots=True)
class Watch:
    """The events of one watch stream."""

    status: int
    _chunks: AsyncIterator[bytes]
    _rest: bytes = field(default=b"")

    async def next(self, timeout_s: float = 10.0) -> Obj:
        """Return the next event; StopAsyncIteration at a clean end."""
        async with asyncio.timeout(timeout_s):
            while b"\n" not in self._rest:
                self._rest += await anext(self._chunks)
        line, self._rest = self._rest.split(b"\n", 1)
        return decode(line)


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text)


@dataclass(slots=True)
class InProcess:
    """A hub running on this event loop."""

    url: str
    kubeconfig: Path
    start_kind: str
    admin: Api
    data_dir: Path
    run: asyncio.Future[None]
    warnings: tuple[str, ...] = ()
    has_told_end: bool = False

    async def end(self, timeout_s: float = 20.0) -> BaseException:
        """Wait for the hub to end by itself, and return what ended it."""
        await asyncio.wait([self.run], timeout=timeout_s)
        assert self.run.done(), "the hub goes on"
        error = self.run.exception()
        assert error is not None, "the hub was stopped"
        self.has_told_end = True
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return error


@contextlib.asynccontextmanager
async def running_hub(
    data_dir: Path,
    *,
    port: int = 0,
    url: str = "",
    object_store: str = "",
    detach: bool = False,
    key_file: Path | None = None,
    auto_accept: bool = False,
    auto_approve_users: tuple[str, ...] = (),
    http2: Http2 = "auto",
    audit_log: str = "",
    seal: tuple[str, ...] = (),
    durable: tuple[str, ...] = (),
    pace: PacePolicy | None = None,
    restore_grace: float = 300.0,
    bootstrap_source: str = "Auto",
    bootstrap_snapshot_url: str = "",
    bootstrap_snapshot_to: str = "latest",
    bootstrap_takeover: str = "Claimed",
    place: str = "",
    strict_fencing: int = 0,
) -> AsyncIterator[InProcess]:
    """Run a hub for the length of the block, and stop it cleanly; raises what ended it."""
    config = Config(
        data_dir=data_dir,
        listen=f"127.0.0.1:{port}",
        url=url,
        object_store=object_store,
        detach=detach,
        key_file=key_file,
        auto_accept=auto_accept,
        auto_approve_users=auto_approve_users,
        http2=http2,
        audit_log=audit_log,
        seal=seal,
        bootstrap_source=bootstrap_source,
        bootstrap_snapshot_url=bootstrap_snapshot_url,
        bootstrap_snapshot_to=bootstrap_snapshot_to,
        bootstrap_takeover=bootstrap_takeover,
        place=place,
        strict_fencing=strict_fencing,
        durable=durable,
        restore_grace=restore_grace,
    )
    stop = asyncio.Event()
    started: asyncio.Future[Started] = asyncio.get_running_loop().create_future()
    run = asyncio.ensure_future(
        run_hub(config, SystemClock(), stop=stop, on_started=started.set_result, pace=pace)
    )
    run.add_done_callback(lambda _: started.done() or started.cancel())
    try:
        told = await started
    except asyncio.CancelledError:
        await run  # it ended before it started: show why
        raise
    admin = Api.from_kubeconfig(told.kubeconfig)
    hub = InProcess(told.url, told.kubeconfig, told.start_kind, admin, data_dir, run, told.warnings)
    try:
        yield hub
    finally:
        await admin.close()
        stop.set()
        if not hub.has_told_end:
            await run


class HubProcess:
    """A hub in a process of its own, to be killed and started again."""

    def __init__(
        self,
        data_dir: Path,
        port: int,
        *flags: str,
        env: dict[str, str] | None = None,
        program: str = "tools.hublet",
    ) -> None:
        """`program`: the module that is run, with the command line of `hublet`."""
        self.data_dir, self.port = data_dir, port
        self._flags, self._env = flags, {**os.environ, **(env or {})}
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self.log = data_dir.with_name(f"{data_dir.name}.log")
        self.greeting = ""
        """What it said first: where it serves, and which kind of start this was."""

    @property
    def kubeconfig(self) -> Path:
        return self.data_dir / "admin.kubeconfig"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, timeout_s: float = 20.0) -> float:
        """Start and wait until it says where it serves; return the seconds it took."""
        began = time.monotonic()
        self.spawn()
        self.greeting = self.first_line().decode()
        assert "hublet serves" in self.greeting, self.log.read_text()[-2000:]
        assert time.monotonic() - began < timeout_s
        return time.monotonic() - began

    def spawn(self) -> None:
        """Start and return at once."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    self._program,
                    "serve",
                    "--data-dir",
                    str(self.data_dir),
                    "--listen",
                    f"127.0.0.1:{self.port}",
                    *self._flags,
                ],
                cwd=ROOT,
                env=self._env,
                stdout=subprocess.PIPE,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def first_line(self) -> bytes:
        """Return the first line that it says, b"" when it ended without a word."""
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def kill(self) -> None:
        """SIGKILL, as a lost machine."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; return the exit code."""
        return self._end(signal.SIGTERM)

    def wait(self, timeout_s: float = 20.0) -> int:
        """Wait for the process to end by itself; return the exit code."""
        assert self._process is not None
        code = self._process.wait(timeout_s)
        self._close()
        return code

    def _end(self, number: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return self.wait()

    def _close(self) -> None:
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()
